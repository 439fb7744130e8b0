#include "agentd/sender.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agentd/answer.h"
#include "agentd/upload.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "lib/metric.h"

#define TOKEN_MAX 4096u
#define HEADERS_MAX 8u
#define HEADER_BYTES 256u
#define PATH_BYTES 96u
/* A body refused as too large is halved down to this; a single block always goes. */
#define BODY_MIN 4096u

enum kind { KIND_NONE, KIND_BLOCKS, KIND_FACTS, KIND_PLAN, KIND_MAX_ };

struct sender {
        struct upload *upload;
        sd_event *event;
        sd_event_source *timer;
        struct spool *spool;
        struct agent_counters *counters;
        char *sources, *token_file, *authorization;
        char host[ID_TEXT_MAX];
        uint64_t random;
        void (*plan)(void *userdata, const json_t *plan);
        void *userdata;

        enum kind flying;
        uint32_t blocks; /* in the request under way */
        size_t body_max;
        struct backoff backoff;
        uint64_t wait_until_us; /* monotonic */
        uint64_t spoken_us;     /* when the collector last answered well */
        bool healthy;
        int trouble[KIND_MAX_]; /* the status last told, by kind; 0: none */
        uint64_t plan_revision;

        char *facts;
        char *facts_flying; /* what the request under way reads */
        bool facts_due;
        uint64_t facts_not_before_us;
        struct backoff facts_backoff;
};

/* xorshift64: jitter needs no more. */
static uint64_t next_random(struct sender *sender)
{
        sender->random ^= sender->random << 13;
        sender->random ^= sender->random >> 7;
        sender->random ^= sender->random << 17;
        return sender->random;
}

/* The first word of the file. -EINVAL: nothing in it that can stand in a header. */
static int read_token(const char *path, char *ret)
{
        CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = read(fd, ret, TOKEN_MAX - 1);
        if (n < 0)
                return -errno;
        ret[n] = '\0';
        ret[strcspn(ret, " \t\r\n")] = '\0';
        for (const char *c = ret; *c; c++)
                if (*c <= ' ' || *c > '~')
                        return -EINVAL;
        return ret[0] ? 0 : -EINVAL;
}

/* True when it is another token than before. */
static bool load_token(struct sender *sender)
{
        char token[TOKEN_MAX];
        char *header = NULL;
        bool changed;
        int r;

        if (!sender->token_file[0])
                return false;
        r = read_token(sender->token_file, token);
        if (r < 0) {
                log_error("%s: cannot read the token: %s", sender->token_file,
                        r == -EINVAL ? "no token in it" : strerror(-r));
                return false;
        }
        r = asprintf(&header, "Authorization: Bearer %s", token);
        explicit_bzero(token, sizeof(token));
        if (r < 0)
                return false;
        changed = !sender->authorization || strcmp(sender->authorization, header) != 0;
        free(sender->authorization);
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

static int start(struct sender *sender, enum kind kind, const struct upload_request *what)
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

static int start_facts(struct sender *sender)
{
        char path[PATH_BYTES];

        free(sender->facts_flying);
        sender->facts_flying = strdup(sender->facts);
        if (!sender->facts_flying)
                return -ENOMEM;
        snprintf(path, sizeof(path), "/api/v1/facts/%s", sender->host);
        return start(sender, KIND_FACTS,
                &(struct upload_request){
                        .method = "PUT",
                        .path = path,
                        .body = sender->facts_flying,
                        .size = strlen(sender->facts_flying),
                });
}

static int start_plan(struct sender *sender)
{
        char path[PATH_BYTES];

        snprintf(path, sizeof(path), "/api/v1/plans/%s", sender->host);
        return start(sender, KIND_PLAN, &(struct upload_request){.method = "GET", .path = path});
}

/* 1 when blocks are on their way, 0 when there are none. */
static int start_blocks(struct sender *sender)
{
        struct spool_batch batch;
        int r;

        r = spool_read(sender->spool, sender->body_max, &batch);
        if (r <= 0)
                return r;
        sender->blocks = batch.blocks;
        r = start(sender, KIND_BLOCKS,
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
        int r;

        if (sender->facts && sender->facts_due && now_us >= sender->facts_not_before_us)
                return start_facts(sender);
        r = start_blocks(sender);
        if (r != 0)
                return r;
        if (now_us >= sender->spoken_us + SENDER_PLAN_POLL_US)
                return start_plan(sender);
        arm(sender, sender->spoken_us + SENDER_PLAN_POLL_US);
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
static void tell(struct sender *sender, enum kind kind, const struct upload_answer *answer,
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

static void succeeded(struct sender *sender, enum kind kind)
{
        tell(sender, kind, NULL, "");
        sender->healthy = true;
        sender->spoken_us = clock_monotonic_us();
        if (kind != KIND_BLOCKS)
                return;
        /* Whoever answers after a while may be new and know nothing of this host. */
        if (sender->backoff.failures > 0)
                sender->facts_due = true;
        sender->backoff.failures = 0;
}

static void failed(struct sender *sender, enum kind kind, const struct upload_answer *answer,
        const char *detail)
{
        uint64_t delay_us;

        tell(sender, kind, answer, detail);
        sender->healthy = false;
        sender->counters->upload_failures++;
        if (answer->status == 401 && load_token(sender))
                return;
        delay_us = backoff_next(&sender->backoff, next_random(sender), answer->retry_after_us);
        sender->wait_until_us = clock_monotonic_us() + delay_us;
        arm(sender, sender->wait_until_us);
}

static void refused(
        struct sender *sender, const struct upload_answer *answer, const struct answer *meaning)
{
        struct block_header header;
        const char *source;
        int r;

        r = spool_refuse(sender->spool, meaning->block, meaning->gap, &header);
        if (r <= 0 || header.flags & BLOCK_FLAG_GAP)
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

        answer_read_blocks(answer->status, answer->body, answer->size, sender->blocks, &meaning);
        switch (meaning.verdict) {
        case ANSWER_STORED:
                spool_acknowledge(sender->spool);
                sender->counters->uploads++;
                sender->body_max = SENDER_BODY_MAX;
                succeeded(sender, KIND_BLOCKS);
                if (meaning.plan)
                        sender->plan(sender->userdata, meaning.plan);
                break;
        case ANSWER_REFUSED:
                refused(sender, answer, &meaning);
                succeeded(sender, KIND_BLOCKS);
                break;
        case ANSWER_SMALLER:
                if (sender->blocks > 1 && sender->body_max > BODY_MIN) {
                        sender->body_max /= 2;
                        break;
                }
                failed(sender, KIND_BLOCKS, answer, meaning.detail);
                break;
        case ANSWER_RETRY:
                failed(sender, KIND_BLOCKS, answer, meaning.detail);
                break;
        }
        answer_done(&meaning);
}

/* Its trouble is no reason to hold back the samples, unless nobody answers at all. */
static void aside_failed(struct sender *sender, enum kind kind, const struct upload_answer *answer,
        const char *detail)
{
        if (answer->status < 0 || answer->status == 401)
                failed(sender, kind, answer, detail);
        else
                tell(sender, kind, answer, detail);
}

static void plan_answered(struct sender *sender, const struct upload_answer *answer)
{
        struct answer meaning;

        answer_read_plan(answer->status, answer->body, answer->size, &meaning);
        if (meaning.verdict == ANSWER_STORED) {
                succeeded(sender, KIND_PLAN);
                sender->plan(sender->userdata, meaning.plan);
        } else {
                sender->spoken_us = clock_monotonic_us();
                aside_failed(sender, KIND_PLAN, answer, meaning.detail);
        }
        answer_done(&meaning);
}

static void facts_answered(struct sender *sender, const struct upload_answer *answer)
{
        uint64_t now_us = clock_monotonic_us();
        struct answer meaning;

        answer_read_facts(answer->status, answer->body, answer->size, &meaning);
        if (meaning.verdict == ANSWER_STORED) {
                succeeded(sender, KIND_FACTS);
                /* Unless they changed while these were on their way. */
                sender->facts_due = strcmp(sender->facts, sender->facts_flying) != 0;
                sender->facts_backoff.failures = 0;
        } else {
                aside_failed(sender, KIND_FACTS, answer, meaning.detail);
                /* Later than the samples, so that these get their turn. */
                if (sender->wait_until_us > now_us)
                        now_us = sender->wait_until_us;
                sender->facts_not_before_us =
                        now_us + backoff_next(&sender->facts_backoff, next_random(sender),
                                         meaning.verdict == ANSWER_REFUSED ? BACKOFF_MAX_US : 0);
        }
        answer_done(&meaning);
}

static void on_answer(void *userdata, const struct upload_answer *answer)
{
        struct sender *sender = userdata;
        enum kind kind = sender->flying;

        sender->flying = KIND_NONE;
        if (kind == KIND_BLOCKS)
                blocks_answered(sender, answer);
        else if (kind == KIND_PLAN)
                plan_answered(sender, answer);
        else
                facts_answered(sender, answer);
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
        sender->spool = options->spool;
        sender->counters = options->counters;
        sender->plan = options->plan;
        sender->userdata = options->userdata;
        sender->random = options->random | 1;
        sender->body_max = SENDER_BODY_MAX;
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
        if (sender->authorization)
                explicit_bzero(sender->authorization, strlen(sender->authorization));
        free(sender->authorization);
        free(sender->facts);
        free(sender->facts_flying);
        free(sender);
        return NULL;
}
