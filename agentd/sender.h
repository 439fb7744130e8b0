#pragma once
/*
 * Brings what the spool holds to the collector, with the facts and for the plan: what to send next,
 * what an answer means, when to try again. What was sampled since the collector answers goes at
 * once, the backlog of an outage behind it, at a limited rate. One request at a time, on the
 * caller's loop; upload.c does the HTTP.
 */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>
#include <systemd/sd-event.h>

#include "agentd/counters.h"
#include "agentd/spool.h"
#include "lib/id.h"

/* Ask for the plan when nothing else was said for so long; one that can be elected, sooner. */
#define SENDER_PLAN_POLL_US 30000000ull
#define SENDER_PLAN_POLL_MIN_US 500000ull
#define SENDER_CLUSTERS_MAX 384u

struct sender_options {
        const char *url, *ca_file, *token_file; /* token_file "": no token */
        const char *sources;                    /* what this agent could sample: "diskstats,host" */
        uint64_t interval_us; /* between two seals: how often it is to be heard of us */
        bool electable;       /* it is asked for the plan at each half interval */
        struct id host;
        uint64_t backfill_rate;          /* bytes per second of the backlog; 0: no limit */
        struct spool *spool;             /* outlives the sender */
        struct agent_counters *counters; /* the same */
        uint64_t random;                 /* seed of the jitter */
        /* The collector's plan, not validated. */
        void (*plan)(void *userdata, const json_t *plan);
        void *userdata;
};

struct sender;

/* All strings are copied or only used here. */
int sender_new(sd_event *event, const struct sender_options *options, struct sender **ret);
struct sender *sender_free(struct sender *sender);
DEFINE_CLEANUP(sender, struct sender *, sender_free)

/* There may be something to send. */
void sender_kick(struct sender *sender);
/* Takes @text (JSON, allocated): sent now, and again after the collector was away. */
void sender_set_facts(struct sender *sender, char *text);
/* What Strata-Clusters says; when it changes, the collector is told at once. */
void sender_set_clusters(struct sender *sender, const char *clusters);
void sender_set_plan_revision(struct sender *sender, uint64_t revision);
/* Whether the last request was answered well; false before the first. */
bool sender_is_healthy(const struct sender *sender);
