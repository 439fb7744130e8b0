#include "agentd/feed.h"

void feed_init(struct feed *feed, struct spool *spool, uint64_t backfill_rate)
{
        *feed = (struct feed){
                .spool = spool,
                .backfill = {.rate = backfill_rate},
                .body_max = FEED_BODY_MAX,
        };
}

int feed_next(struct feed *feed, uint64_t now_us, struct spool_batch *ret, uint64_t *ret_next_us)
{
        enum spool_next next = spool_look(feed->spool);
        size_t size_max = feed->body_max;
        int r;

        *ret_next_us = UINT64_MAX;
        if (next == SPOOL_EMPTY)
                return 0;
        if (next == SPOOL_BACKLOG) {
                if (!backfill_is_due(&feed->backfill, now_us)) {
                        *ret_next_us = feed->backfill.next_us;
                        return 0;
                }
                size_max = backfill_limit(&feed->backfill, size_max);
        }
        r = spool_read(feed->spool, size_max, ret);
        if (r <= 0)
                return r;
        if (next == SPOOL_BACKLOG)
                backfill_charge(&feed->backfill, ret->size, now_us);
        feed->blocks = ret->blocks;
        return 1;
}

void feed_stored(struct feed *feed)
{
        spool_acknowledge(feed->spool);
        if (!feed->live)
                spool_go_live(feed->spool);
        feed->live = true;
        feed->body_max = FEED_BODY_MAX;
}

void feed_failed(struct feed *feed)
{
        feed->live = false;
        spool_go_away(feed->spool);
}

bool feed_shrink(struct feed *feed)
{
        if (feed->blocks <= 1 || feed->body_max <= FEED_BODY_MIN)
                return false;
        feed->body_max /= 2;
        return true;
}
