#pragma once
/* The inside of the sender, shared by sender.c (blocks, retries) and sender-aside.c (facts and
 * plan, which go beside the samples). */

#include "agentd/answer.h"
#include "agentd/feed.h"
#include "agentd/sender.h"
#include "agentd/upload.h"

enum sender_kind { KIND_NONE, KIND_BLOCKS, KIND_FACTS, KIND_PLAN, KIND_MAX_ };

struct sender {
        struct upload *upload;
        sd_event *event;
        sd_event_source *timer;
        struct feed feed;
        struct agent_counters *counters;
        char *sources, *token_file, *authorization;
        char host[ID_TEXT_MAX];
        uint64_t random;
        void (*plan)(void *userdata, const json_t *plan);
        void *userdata;

        enum sender_kind flying;
        struct backoff backoff;
        uint64_t wait_until_us; /* monotonic */
        uint64_t spoken_us;     /* when the collector last answered well */
        bool healthy;
        int trouble[KIND_MAX_]; /* the status last told, by kind; 0: none */
        uint64_t plan_revision;
        uint64_t interval_us, poll_us;
        char clusters[SENDER_CLUSTERS_MAX];

        char *facts;
        char *facts_flying; /* what the request under way reads */
        bool facts_due;
        uint64_t facts_not_before_us;
        struct backoff facts_backoff;
};

/* xorshift64: jitter needs no more. */
uint64_t sender_random(struct sender *sender);
int sender_start(struct sender *sender, enum sender_kind kind, const struct upload_request *what);
/* Trouble (@answer NULL: its end) is told when it begins, when it changes and when it ends. */
void sender_tell(struct sender *sender, enum sender_kind kind, const struct upload_answer *answer,
        const char *detail);
void sender_succeeded(struct sender *sender, enum sender_kind kind);
void sender_failed(struct sender *sender, enum sender_kind kind, const struct upload_answer *answer,
        const char *detail);

int sender_start_facts(struct sender *sender);
int sender_start_plan(struct sender *sender);
void sender_facts_answered(struct sender *sender, const struct upload_answer *answer);
void sender_plan_answered(struct sender *sender, const struct upload_answer *answer);
