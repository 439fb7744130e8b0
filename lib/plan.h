#pragma once
/*
 * The plan: what the collector tells an agent to sample. Travels as JSON (docs/api.md, "Plan") and
 * is pure data here. A plan that does not validate is refused as a whole, with one sentence.
 */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "lib/cleanup.h"
#include "lib/id.h"
#include "lib/metric.h"

#define PLAN_INTERVAL_MIN_US 100000ull     /* 100 ms: below, the pool statistics mean nothing */
#define PLAN_INTERVAL_MAX_US 3600000000ull /* 1 hour */
#define PLAN_COUNT_MAX 9007199254740991ull /* 2^53 - 1: exact in every JSON reader */
#define PLAN_METRICS_MAX 1024u
#define PLAN_CLUSTERS_MAX 8u           /* that one agent may ask */
#define PLAN_CLUSTER_UNKNOWN "unknown" /* in place of the fsid of one not asked yet */

struct plan_source {
        bool enabled;
        uint64_t interval_us;
        uint64_t count;    /* samples to take, then stop; 0 goes on for ever */
        int64_t start_us;  /* Unix time of the first sample; 0 is at once */
        uint16_t *metrics; /* ascending metric ids; NULL and 0 mean all of the source */
        uint32_t n_metrics;
};

struct plan {
        uint64_t revision; /* grows with every change; 0 is the built-in default */
        struct plan_source sources[SOURCE_MAX_]; /* by enum source_id; SOURCE_NONE is unused */
        /* Of `ceph`: the fsids of those that the agent is elected for; zero is any whose fsid it
         * does not know yet. None: all that it can reach. */
        struct id clusters[PLAN_CLUSTERS_MAX];
        uint32_t n_clusters;
};

/* The built-in plan: diskstats and osd each second, host and agent every 10 s; ceph and
 * osd_histogram are off (5 s and 60 s once they are on). */
void plan_init(struct plan *plan);
/* Frees what is inside; a plan of zeroes ({0}) is accepted, and is what remains. */
void plan_done(struct plan *plan);

/* CLEANUP(plan) struct plan plan = {0}; for a plan on the stack. To hand the content on: copy the
 * struct, then memset the local to zero. */
static inline void plan_cleanup(struct plan *plan)
{
        plan_done(plan);
}

/* Deep copy into an uninitialised @ret. -ENOMEM. */
int plan_copy(const struct plan *plan, struct plan *ret);

/*
 * Reads "revision" and "sources" of @json over the built-in plan; a source that is not named keeps
 * the default. -EINVAL: *ret_message (freed by the caller) is one sentence that names the field,
 * what it may be, and what it is.
 * @ret is written on success only. -ENOMEM.
 */
int plan_from_json(const json_t *json, struct plan *ret, char **ret_message);
/* A new reference in *ret. -ENOMEM. */
int plan_to_json(const struct plan *plan, json_t **ret);
/* Whether @metric (of @source) is wanted. */
bool plan_wants(const struct plan_source *source, uint16_t metric);
/* Whether `ceph` is to ask @cluster (zero: one whose fsid is not known yet). */
bool plan_wants_cluster(const struct plan *plan, const struct id *cluster);
