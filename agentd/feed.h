#pragma once
/*
 * What of the spool goes to the collector next: the samples of now at once, what an outage left
 * behind them and at a limited rate. Knows neither network nor loop; the monotonic clock is an
 * argument.
 */

#include "agentd/backfill.h"
#include "agentd/spool.h"

#define FEED_BODY_MAX (1u << 20)
/* A body refused as too large is halved down to this; a single block always goes. */
#define FEED_BODY_MIN 4096u

struct feed {
        struct spool *spool; /* outlives the feed */
        struct backfill backfill;
        size_t body_max;
        bool live;       /* the collector stores; false while it does not */
        uint32_t blocks; /* in the batch under way */
};

void feed_init(struct feed *feed, struct spool *spool, uint64_t backfill_rate);
/*
 * 1: *ret goes now. 0: nothing before *ret_next_us, or, when that is UINT64_MAX, before something
 * is sealed. -errno: the disk does not give it now.
 */
int feed_next(struct feed *feed, uint64_t now_us, struct spool_batch *ret, uint64_t *ret_next_us);
/* The batch is stored. */
void feed_stored(struct feed *feed);
/* It is not, and all of it will be sent again. */
void feed_failed(struct feed *feed);
/* It was too large for somebody in between. False: it cannot be made smaller. */
bool feed_shrink(struct feed *feed);
