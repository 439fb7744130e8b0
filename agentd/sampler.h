#pragma once
/*
 * Runs the sources by the plan: opens them, samples each at its aligned ticks, stops at the count,
 * and hands every row to the caller. A source that may wait runs on a thread of its own; one that
 * asks without waiting goes on when its answers should be there. A tick that finds a source busy is
 * skipped and counted, never queued. The caller owns the loop: it calls
 * sampler_run when its timer is due or the descriptor is readable. The clock is an argument.
 *
 * `ceph` runs once for each cluster, its instances: each has its own thread, connection, ticks and
 * deadline, so that a dead cluster delays no other.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agentd/ceph-clusters.h"
#include "agentd/counters.h"
#include "agentd/source.h"
#include "agentd/tick.h"
#include "lib/plan.h"

struct sampler_row {
        enum source_id source;
        uint32_t instance;              /* of `ceph`; 0 of all others */
        const struct plan_source *plan; /* interval and metrics in force */
        /* Rows of one epoch and one sample generation have the same meaning; another epoch starts
         * when the source was opened again or the plan changed. */
        uint64_t epoch;
        const struct sample *sample;
};

struct sampler_options {
        struct source_options source; /* strings outlive the sampler */
        /* The instances of `ceph`; outlives the sampler. NULL or none: one, by @source. */
        const struct ceph_clusters *clusters;
        int (*class_get)(enum source_id id, const struct source_class **ret);
        bool allowed[SOURCE_MAX_]; /* by the local configuration; the plan decides among these */
        struct moment (*clock)(void *userdata); /* also called on the sources' threads */
        void (*row)(void *userdata, const struct sampler_row *row);
        void *userdata;                  /* of clock and row */
        struct agent_counters *counters; /* outlives the sampler */
};

struct sampler;

int sampler_new(const struct sampler_options *options, struct sampler **ret);
/*
 * Ends the threads and closes the sources, within @timeout_us; then frees and returns NULL. When a
 * source does not come back in time the sampler is returned and must stay: end the process.
 */
struct sampler *sampler_free(struct sampler *sampler, uint64_t timeout_us);

/*
 * Samples what is due by the plan before, then takes a copy of @plan: no tick is lost. Sources
 * whose interval and start stay keep their ticks. A new revision begins the counts anew. -ENOMEM:
 * the plan before is still in force.
 */
int sampler_apply(struct sampler *sampler, const struct plan *plan);
const struct plan *sampler_get_plan(const struct sampler *sampler);

/* Readable when a thread has finished: call sampler_run. */
int sampler_get_fd(const struct sampler *sampler);
/* Samples what is due and hands over what the threads finished. *ret_next_us: the monotonic time at
 * which to call again; UINT64_MAX when only the descriptor or another plan can bring work. */
void sampler_run(struct sampler *sampler, uint64_t *ret_next_us);

/* Samples of this plan revision so far, kept over a restart by the caller. */
uint64_t sampler_get_taken(const struct sampler *sampler, enum source_id source);
void sampler_set_taken(struct sampler *sampler, enum source_id source, uint64_t taken);

/* Grows whenever a source's facts change. */
uint64_t sampler_get_facts_revision(const struct sampler *sampler);
/* What @source said, or NULL; belongs to the sampler, valid until sampler_run. */
const struct facts *sampler_get_facts(
        const struct sampler *sampler, enum source_id source, uint32_t instance);

/* Room for the longest list of clusters. */
#define SAMPLER_CLUSTERS_TEXT (PLAN_CLUSTERS_MAX * (ID_TEXT_MAX + 1u) + 1u)
/* What the collector is told of the instances of `ceph`, as docs/api.md has it: "FSID,FSID!". */
void sampler_list_clusters(const struct sampler *sampler, char *ret, size_t size);
