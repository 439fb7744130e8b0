#pragma once
/* The inside of the sampler, shared by sampler.c (all streams) and sampler-stream.c (one). */

#include "agentd/sampler.h"
#include "agentd/worker.h"

#define STREAMS_MAX (SOURCE_MAX_ + PLAN_CLUSTERS_MAX - 1)
#define LABEL_BYTES 64

/* What one step of a source reads and writes; a worker's while a step is under way. */
struct step {
        const struct sampler *sampler;
        const struct source_class *class;
        const struct source_options *options;
        struct source_report report;
        bool close; /* close instead of sampling */
        uint64_t deadline_us;
        struct source *source;
        bool opened; /* in this step */
        int result;
        uint64_t begin_us, took_us;
        struct sample sample;
        bool facts_known;
        uint64_t facts_generation;
        struct facts *facts; /* new ones, or NULL */
};

struct stream {
        struct sampler *sampler;
        enum source_id id;
        uint32_t instance;
        char label[LABEL_BYTES]; /* "osd"; "ceph backup.conf" where there are several */
        struct source_options source;
        struct id fsid;     /* of the instance's cluster; zero: not known yet */
        uint64_t failed_us; /* when it last gave no row, in a row of failures; 0: it did */
        bool late;          /* told that its step is past the deadline */
        bool wanted;
        bool busy;    /* the worker has a step */
        bool pending; /* a row is begun on the loop, and goes on at step.sample.again_us */
        struct tick tick;
        uint64_t taken;
        uint64_t epoch;
        uint64_t reopen_us, reopen_delay_us;
        int last_error;
        struct facts *facts;
        struct worker *worker;
        struct step step;
};

struct sampler {
        struct sampler_options options;
        struct plan plan;
        int done_fd;
        uint64_t facts_revision;
        uint32_t n_streams;
        struct stream streams[STREAMS_MAX]; /* by source, then the other instances of ceph */
};

static inline struct moment sampler_now(const struct sampler *sampler)
{
        return sampler->options.clock(sampler->options.userdata);
}

/* @at: the place among the sampler's streams. */
void stream_init(struct sampler *sampler, uint32_t at);
/* Takes what a thread has finished, goes on with what is pending, and samples when a tick is due.
 */
void stream_run(struct stream *stream);
/* When to run it next, CLOCK_MONOTONIC; UINT64_MAX: no matter. */
uint64_t stream_due(const struct stream *stream);
void stream_apply(
        struct stream *stream, const struct plan_source *before, const struct plan_source *plan);
/* Whether the plan means this cluster; true for all other sources. */
bool stream_is_chosen(const struct stream *stream);
/* Asks an idle worker to close its source as its last step; a busy one just ends after its step.
 * The worker stays when that takes longer. */
void stream_end(struct stream *stream, uint64_t timeout_us);
