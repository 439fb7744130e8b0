#include "agentd/sender-private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agentd/token.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "lib/metric.h"

#define HEADERS_MAX 12u
#define HEADER_BYTES (SENDER_CLUSTERS_MAX + 32u)

/* xorshift64: jitter needs no more. */
uint64_t sender_random(struct sender *sender)
{
        sender->random ^= sender->random << 13;
        sender->random ^= sender->random >> 7;
        sender->random ^= sender->random << 17;
        return sender->random;
}

/* True when it is another token than before. */
static bool load_token(struct sender *sender)
{
        char *header = NULL;
        bool changed;
        int r;

        if (!sender->token_file[0])
                return false;
        r = token_read_header(sender->token_file, &header);
        if (r < 0) {
                log_error("%s: cannot read the token: %s", sender->token_file,
                        r == -EINVAL ? "no token in it" : strerror(-r));
                return false;
        }
        changed = !sender->authorization || strcmp(sender->authorization, header) != 0;
        token_free(sender->authorization);
        sender->authorization = header;
        return changed;
}

static void arm(struct sender *sender, uint64_t at_us)
{
        if (sd_event_source_set_time(sender->timer, at_us) < 0 ||
                sd_event_source_set_enabled(sender->timer, SD_EVENT_ONESHOT) < 0)
                log_error("cannot set the timer of the uploads");
}

struct headers {
        const char *list[HEADERS_MAX + 1];
        char texts[HEADERS_MAX][HEADER_BYTES];
        unsigned count;
};

__attribute__((format(printf, 2, 3))) static void add_header(
        struct headers *headers, const char *format, ...)
{
        char *text = headers->texts[headers->count];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, HEADER_BYTES, format, arguments);
        va_end(arguments);
        headers->list[headers->count++] = text;
        headers->list[headers->count] = NULL;
}

int sender_start(struct sender *sender, enum sender_kind kind, const struct upload_request *what)
{
        static const char *const types[] = {
                [KIND_BLOCKS] = "application/vnd.strata.blocks",
                [KIND_FACTS] = "application/json",
        };
        struct upload_request request = *what;
        struct headers headers = {0};
        int r;

        add_header(&headers, "Strata-Host: %s", sender->host);
        add_header(&headers, "Strata-Plan-Revision: %" PRIu64, sender->plan_revision);
        add_header(&headers, "Strata-Sent-At: %" PRId64, clock_realtime_us());
        add_header(&headers, "Strata-Backlog: %" PRIu64, sender->counters->spool_rows);
        add_header(&headers, "Strata-Sources: %s", sender->sources);
        add_header(&headers, "Strata-Interval: %" PRIu64, sender->interval_us);
        if (sender->clusters[0])
                add_header(&headers, "Strata-Clusters: %s", sender->clusters);
        if (request.body)
                add_header(&headers, "Content-Type: %s", types[kind]);
        if (sender->authorization) {
                headers.list[headers.count++] = sender->authorization;
                headers.list[headers.count] = NULL;
        }
        request.headers = headers.list;
        r = upload_start(sender->upload, &request);
        if (r >= 0)
                sender->flying = kind;
        return r;
}

/* 1 when blocks are on their way; 0 when there are none before *ret_next_us. */
static int start_blocks(struct sender *sender, uint64_t now_us, uint64_t *ret_next_us)
{
        struct spool_batch batch;
        int r;

        r = feed_next(&sender->feed, now_us, &batch, ret_next_us);
        if (r <= 0)
                return r;
        r = sender_start(sender, KIND_BLOCKS,
                &(struct upload_request){
                        .method = "POST",
                        .path = "/api/v1/blocks",
                        .body = batch.bytes,
                        .size = batch.size,
                });
        return r < 0 ? r : 1;
}

static int start_next(struct sender *sender, uint64_t now_us)
{
        uint64_t next_us;
        int r;

        if (sender->facts && sender->facts_due && now_us >= sender->facts_not_before_us)
                return sender_start_facts(sender);
        r = start_blocks(sender, now_us, &next_us);
        if (r != 0)
                return r;
        if (now_us >= sender->spoken_us + sender->poll_us)
                return sender_start_plan(sender);
        if (next_us > sender->spoken_us + sender->poll_us)
                next_us = sender->spoken_us + sender->poll_us;
        arm(sender, next_us);
        return 0;
}

void sender_kick(struct sender *sender)
{
        uint64_t now_us = clock_monotonic_us();
        int r;

        if (sender->flying != KIND_NONE || now_us < sender->wait_until_us)
                return;
        r = start_next(sender, now_us);
        if (r >= 0)
                return;
        log_warning("cannot start an upload: %s", strerror(-r));
        sender->wait_until_us = now_us + BACKOFF_MAX_US;
        arm(sender, sender->wait_until_us);
}

static int on_timer(sd_event_source *source, uint64_t time_us, void *userdata)
{
        (void)source;
        (void)time_us;
        sender_kick(userdata);
        return 0;
}

/* Trouble is told when it begins, when it changes and when it ends. */
void sender_tell(struct sender *sender, enum sender_kind kind, const struct upload_answer *answer,
        const char *detail)
{
        static const char *const names[] = {
                [KIND_BLOCKS] = "samples",
                [KIND_FACTS] = "facts",
                [KIND_PLAN] = "plan",
        };
        int status = answer ? answer->status : 0;

        if (status == sender->trouble[kind])
                return;
        sender->trouble[kind] = status;
        if (!answer)
                log_notice("collector: takes the %s again", names[kind]);
        else if (status < 0)
                log_warning("collector: %s: no answer: %s", names[kind], answer->reason);
        else
                log_warning("collector: %s: status %d%s%s", names[kind], status,
                        *detail ? ": " : "", detail);
}

void sender_succeeded(struct sender *sender, enum sender_kind kind)
{
        sender_tell(sender, kind, NULL, "");
        sender->healthy = true;
        sender->spoken_us = clock_monotonic_us();
        if (kind != KIND_BLOCKS)
                return;
        /* Whoever answers after a while may be new and know nothing of this host. */
        if (sender->backoff.failures > 0)
                sender->facts_due = true;
        sender->backoff.failures = 0;
}

void sender_failed(struct sender *sender, enum sender_kind kind, const struct upload_answer *answer,
        const char *detail)
{
        uint64_t delay_us;

        sender_tell(sender, kind, answer, detail);
        sender->healthy = false;
        feed_failed(&sender->feed);
        sender->counters->upload_failures++;
        if (answer->status == 401 && load_token(sender))
                return;
        delay_us = backoff_next(&sender->backoff, sender_random(sender), answer->retry_after_us);
        sender->wait_until_us = clock_monotonic_us() + delay_us;
        arm(sender, sender->wait_until_us);
}

static void refused(
        struct sender *sender, const struct upload_answer *answer, const struct answer *meaning)
{
        struct block_header header;
        const char *source;
        int r;

        r = spool_refuse(sender->feed.spool, meaning->block, meaning->gap, &header);
        if (r < 0 || header.flags & BLOCK_FLAG_GAP)
                return;
        source = source_name((enum source_id)header.source);
        log_error("collector: refuses block %s/%" PRIu64 " (%" PRIu32
                  " rows) for good with status %d: %s; it is kept in rejected",
                source ? source : "?", header.sequence, header.rows, answer->status,
                meaning->detail);
}

static void blocks_answered(struct sender *sender, const struct upload_answer *answer)
{
        struct answer meaning;

        answer_read_blocks(
                answer->status, answer->body, answer->size, sender->feed.blocks, &meaning);
        switch (meaning.verdict) {
        case ANSWER_STORED:
                feed_stored(&sender->feed);
                sender->counters->uploads++;
                sender_succeeded(sender, KIND_BLOCKS);
                if (meaning.plan)
                        sender->plan(sender->userdata, meaning.plan);
                break;
        case ANSWER_REFUSED:
                refused(sender, answer, &meaning);
                sender_succeeded(sender, KIND_BLOCKS);
                break;
        case ANSWER_SMALLER:
                if (feed_shrink(&sender->feed))
                        break;
                sender_failed(sender, KIND_BLOCKS, answer, meaning.detail);
                break;
        case ANSWER_RETRY:
                sender_failed(sender, KIND_BLOCKS, answer, meaning.detail);
                break;
        }
        answer_done(&meaning);
}

static void on_answer(void *userdata, const struct upload_answer *answer)
{
        struct sender *sender = userdata;
        enum sender_kind kind = sender->flying;

        sender->flying = KIND_NONE;
        if (kind == KIND_BLOCKS)
                blocks_answered(sender, answer);
        else if (kind == KIND_PLAN)
                sender_plan_answered(sender, answer);
        else
                sender_facts_answered(sender, answer);
        sender_kick(sender);
}

void sender_set_facts(struct sender *sender, char *text)
{
        bool same = sender->facts && strcmp(sender->facts, text) == 0;

        free(sender->facts);
        sender->facts = text;
        if (same)
                return;
        sender->facts_due = true;
        sender->facts_not_before_us = 0;
        sender_kick(sender);
}

void sender_set_clusters(struct sender *sender, const char *clusters)
{
        if (strcmp(sender->clusters, clusters) == 0)
                return;
        snprintf(sender->clusters, sizeof(sender->clusters), "%s", clusters);
        sender->spoken_us = 0;
        sender_kick(sender);
}

void sender_set_plan_revision(struct sender *sender, uint64_t revision)
{
        sender->plan_revision = revision;
}

bool sender_is_healthy(const struct sender *sender)
{
        return sender->healthy;
}

static int copy_strings(struct sender *sender, const struct sender_options *options)
{
        sender->sources = strdup(options->sources);
        sender->token_file = strdup(options->token_file);
        return sender->sources && sender->token_file ? 0 : -ENOMEM;
}

int sender_new(sd_event *event, const struct sender_options *options, struct sender **ret)
{
        CLEANUP(sender) struct sender *sender = calloc(1, sizeof(*sender));
        struct upload_options upload = {.url = options->url, .ca_file = options->ca_file};
        int r;

        if (!sender)
                return -ENOMEM;
        feed_init(&sender->feed, options->spool, options->backfill_rate);
        sender->counters = options->counters;
        sender->plan = options->plan;
        sender->userdata = options->userdata;
        sender->random = options->random | 1;
        sender->interval_us = options->interval_us;
        sender->poll_us = SENDER_PLAN_POLL_US;
        if (options->electable && options->interval_us / 2 < sender->poll_us)
                sender->poll_us = options->interval_us / 2;
        if (sender->poll_us < SENDER_PLAN_POLL_MIN_US)
                sender->poll_us = SENDER_PLAN_POLL_MIN_US;
        id_format(&options->host, sender->host);
        r = copy_strings(sender, options);
        if (r < 0)
                return r;
        r = upload_new(event, &upload, on_answer, sender, &sender->upload);
        if (r < 0)
                return r;
        r = sd_event_add_time(
                event, &sender->timer, CLOCK_MONOTONIC, UINT64_MAX, 1000, on_timer, sender);
        if (r < 0)
                return r;
        load_token(sender);
        *ret = STEAL(sender);
        return 0;
}

struct sender *sender_free(struct sender *sender)
{
        if (!sender)
                return NULL;
        upload_free(sender->upload);
        sd_event_source_disable_unref(sender->timer);
        free(sender->sources);
        free(sender->token_file);
        token_free(sender->authorization);
        free(sender->facts);
        free(sender->facts_flying);
        free(sender);
        return NULL;
}
