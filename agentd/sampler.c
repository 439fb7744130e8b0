#include "agentd/sampler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "agentd/worker.h"
#include "lib/log.h"

/* A source that cannot be opened (no module, no mon) is tried again after this, doubled up to the
 * maximum. */
#define REOPEN_MIN_US 1000000ull
#define REOPEN_MAX_US 60000000ull
/* A cluster that gave no answer is tried by another agent; after this, this one may try again. */
#define FAILING_FORGET_US 300000000ull
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
        uint64_t took_us;
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
        bool busy; /* the worker has a step */
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

static struct moment now(const struct sampler *sampler)
{
        return sampler->options.clock(sampler->options.userdata);
}

static void step_add_facts(struct step *step)
{
        CLEANUP(facts) struct facts *facts = NULL;

        if (!step->class->add_facts ||
                (step->facts_known && step->facts_generation == step->sample.facts_generation))
                return;
        /* On failure the next sample tries again. */
        if (facts_new(&facts) < 0 || step->class->add_facts(step->source, facts) < 0)
                return;
        facts_free(step->facts);
        step->facts = STEAL(facts);
        step->facts_known = true;
        step->facts_generation = step->sample.facts_generation;
}

static void step_close(struct step *step)
{
        step->class->close(step->source);
        step->source = NULL;
        step->facts_known = false;
}

static void step_sample(struct step *step)
{
        if (!step->source) {
                step->result = step->class->open(step->options, &step->report, &step->source);
                if (step->result < 0)
                        return;
                step->opened = true;
        }
        step->result = step->class->collect(step->source, step->deadline_us, &step->sample);
        if (step->result >= 0)
                step_add_facts(step);
}

/* Runs on the worker's thread, or inline for a source that never waits. */
static void step_run(void *userdata)
{
        struct step *step = userdata;
        const struct sampler *sampler = step->sampler;
        uint64_t begin_us = now(sampler).monotonic_us;

        step->opened = false;
        step->result = 0;
        if (step->close)
                step_close(step);
        else
                step_sample(step);
        step->took_us = now(sampler).monotonic_us - begin_us;
}

static void report_line(void *userdata, int level, const char *text)
{
        const struct stream *stream = userdata;

        log_write((enum log_level)level, "%s: %s", stream->label, text);
}

/* The same trouble is told once, not at every tick. */
static void stream_tell(struct stream *stream, int result)
{
        if (result == -EAGAIN)
                result = 0;
        if (result == stream->last_error)
                return;
        if (result < 0)
                log_warning("%s: no samples: %s", stream->label, strerror(-result));
        else
                log_notice("%s: samples again", stream->label);
        stream->last_error = result;
}

static void stream_take_facts(struct stream *stream)
{
        if (!stream->step.facts)
                return;
        facts_free(stream->facts);
        stream->facts = STEAL(stream->step.facts);
        stream->sampler->facts_revision++;
        if (stream->facts->n_clusters > 0)
                stream->fsid = stream->facts->clusters[0].fsid;
}

static void stream_closed(struct stream *stream)
{
        stream->step.close = false;
        if (!stream->facts)
                return;
        stream->facts = facts_free(stream->facts);
        stream->sampler->facts_revision++;
}

static void stream_delay_reopen(struct stream *stream)
{
        uint64_t delay = stream->reopen_delay_us;

        stream->reopen_us = now(stream->sampler).monotonic_us + delay;
        stream->reopen_delay_us = delay * 2 < REOPEN_MAX_US ? delay * 2 : REOPEN_MAX_US;
}

static void stream_count(struct stream *stream, const struct plan_source *plan)
{
        stream->sampler->options.counters->rows++;
        stream->taken++;
        if (plan->count > 0 && stream->taken >= plan->count) {
                stream->wanted = false;
                log_info("%s: all %llu samples of the plan are taken", stream->label,
                        (unsigned long long)plan->count);
        }
}

/* Whether the plan means this cluster. */
static bool stream_is_chosen(const struct stream *stream)
{
        return stream->id != SOURCE_CEPH ||
               plan_wants_cluster(&stream->sampler->plan, &stream->fsid);
}

static void stream_note_failure(struct stream *stream, int result)
{
        stream->failed_us = result < 0 ? now(stream->sampler).monotonic_us : 0;
}

/* A library may ignore its own time-outs: then the collector is to know it all the same. */
static void stream_watch(struct stream *stream)
{
        uint64_t deadline_us = stream->step.deadline_us;

        if (!stream->busy || now(stream->sampler).monotonic_us <= deadline_us || stream->late)
                return;
        stream->late = true;
        log_warning("%s: no answer by its deadline", stream->label);
        stream_note_failure(stream, -ETIMEDOUT);
}

/* A step has ended, on whichever thread. */
static void stream_finish(struct stream *stream)
{
        struct sampler *sampler = stream->sampler;
        struct agent_counters *counters = sampler->options.counters;
        const struct plan_source *plan = &sampler->plan.sources[stream->id];
        struct step *step = &stream->step;

        *(step->class->asks ? &counters->socket_time_us : &counters->sample_time_us) +=
                step->took_us;
        if (step->close) {
                stream_closed(stream);
                return;
        }
        if (step->opened)
                stream->epoch++;
        if (!step->source)
                stream_delay_reopen(stream);
        else
                stream->reopen_delay_us = REOPEN_MIN_US;
        stream_take_facts(stream);
        if (!stream->wanted)
                return;
        stream_tell(stream, step->result);
        stream_note_failure(stream, step->result);
        if (!stream_is_chosen(stream))
                return; /* it only found out which cluster it is */
        if (step->result < 0) {
                counters->failures += step->result != -EAGAIN;
                return;
        }
        counters->failed_parts += step->sample.failures;
        sampler->options.row(sampler->options.userdata, &(struct sampler_row){
                                                                .source = stream->id,
                                                                .instance = stream->instance,
                                                                .plan = plan,
                                                                .epoch = stream->epoch,
                                                                .sample = &step->sample,
                                                        });
        stream_count(stream, plan);
}

static void stream_step(struct stream *stream)
{
        if (stream->worker) {
                stream->busy = worker_start(stream->worker) == 0;
                return;
        }
        step_run(&stream->step);
        stream_finish(stream);
}

/* A fifth of the interval is left for what comes behind the deadline, and is granted at least. */
static uint64_t stream_deadline(const struct stream *stream, struct moment at)
{
        uint64_t deadline_us = at.monotonic_us + stream->step.class->deadline_us;
        uint64_t spare_us = stream->tick.interval_us / 5;
        uint64_t next_us = tick_due_monotonic(&stream->tick) - spare_us;

        if (!stream->step.class->in_interval || deadline_us <= next_us)
                return deadline_us;
        return next_us > at.monotonic_us + spare_us ? next_us : at.monotonic_us + spare_us;
}

static void stream_sample(struct stream *stream, struct moment at)
{
        if (stream->busy) {
                stream->sampler->options.counters->skips++;
                stream_watch(stream);
                return;
        }
        if (!stream->step.source && at.monotonic_us < stream->reopen_us)
                return;
        stream->step.deadline_us = stream_deadline(stream, at);
        stream_step(stream);
}

static void stream_tick(struct stream *stream)
{
        struct agent_counters *counters = stream->sampler->options.counters;
        struct moment at = now(stream->sampler);
        uint64_t missed, late_us;

        if (tick_look(&stream->tick, at, &missed, &late_us) != TICK_SAMPLE)
                return;
        counters->ticks++;
        counters->ticks_missed += missed;
        if (late_us > counters->lateness_max_us)
                counters->lateness_max_us = late_us;
        stream_sample(stream, at);
}

static void stream_run(struct stream *stream)
{
        if (stream->busy && worker_take(stream->worker)) {
                stream->busy = false;
                stream->late = false;
                stream_finish(stream);
        }
        if (stream->wanted)
                stream_tick(stream);
        if (!stream->wanted && !stream->busy && stream->step.source) {
                stream->step.close = true;
                stream_step(stream);
        }
}

/*
 * Those with a thread (or without); the earliest of what is due next goes to @next_us. The host's
 * thread is woken before the OSDs', which has more to do and would keep it waiting on a busy CPU.
 */
static void streams_run(struct sampler *sampler, bool with_thread, uint64_t *next_us)
{
        for (uint32_t i = 0; i < sampler->n_streams; i++) {
                uint32_t at = with_thread ? sampler->n_streams - 1 - i : i;
                struct stream *stream = &sampler->streams[at];

                if (!stream->step.class || (stream->worker != NULL) != with_thread)
                        continue;
                stream_run(stream);
                if (stream->wanted && tick_due_monotonic(&stream->tick) < *next_us)
                        *next_us = tick_due_monotonic(&stream->tick);
        }
}

void sampler_run(struct sampler *sampler, uint64_t *ret_next_us)
{
        uint64_t next_us = UINT64_MAX;
        eventfd_t ignored;

        (void)eventfd_read(sampler->done_fd, &ignored);
        /* On a busy machine a thread that is woken takes the loop's CPU: it reads its own first. */
        streams_run(sampler, false, &next_us);
        streams_run(sampler, true, &next_us);
        *ret_next_us = next_us;
}

/* Finds the class when the source is first wanted, so that one never enabled costs nothing. */
static bool stream_prepare(struct stream *stream)
{
        struct sampler *sampler = stream->sampler;
        const struct source_class *class = NULL;
        int r;

        if (stream->step.class)
                return true;
        r = sampler->options.class_get(stream->id, &class);
        if (r >= 0 && class->may_wait)
                r = worker_new(step_run, &stream->step, sampler->done_fd, &stream->worker);
        if (r < 0) {
                stream_tell(stream, r);
                return false;
        }
        stream->step.class = class;
        return true;
}

static bool same_metrics(const struct plan_source *a, const struct plan_source *b)
{
        return a->n_metrics == b->n_metrics &&
               (a->n_metrics == 0 ||
                       memcmp(a->metrics, b->metrics, a->n_metrics * sizeof(*a->metrics)) == 0);
}

static void stream_apply(
        struct stream *stream, const struct plan_source *before, const struct plan_source *plan)
{
        struct sampler *sampler = stream->sampler;
        bool was_wanted = stream->wanted;

        stream->wanted = plan->enabled && sampler->options.allowed[stream->id] &&
                         (plan->count == 0 || stream->taken < plan->count) &&
                         stream_is_chosen(stream) && stream_prepare(stream);
        if (before->interval_us != plan->interval_us || !same_metrics(before, plan))
                stream->epoch++;
        if (!stream->wanted)
                return;
        if (!was_wanted || before->interval_us != plan->interval_us ||
                before->start_us != plan->start_us)
                tick_start(&stream->tick, plan->interval_us, plan->start_us, now(sampler));
}

int sampler_apply(struct sampler *sampler, const struct plan *plan)
{
        CLEANUP(plan) struct plan before = {0};
        struct plan copy;
        uint64_t ignored;
        int r;

        /* A tick that is due is the plan's before. */
        sampler_run(sampler, &ignored);
        r = plan_copy(plan, &copy);
        if (r < 0)
                return r;
        before = sampler->plan;
        sampler->plan = copy;
        for (uint32_t i = SOURCE_NONE + 1; i < sampler->n_streams; i++) {
                struct stream *stream = &sampler->streams[i];

                if (before.revision != copy.revision)
                        stream->taken = 0;
                stream_apply(stream, &before.sources[stream->id], &copy.sources[stream->id]);
        }
        return 0;
}

const struct plan *sampler_get_plan(const struct sampler *sampler)
{
        return &sampler->plan;
}

int sampler_get_fd(const struct sampler *sampler)
{
        return sampler->done_fd;
}

/* Of several instances the one that is furthest. */
uint64_t sampler_get_taken(const struct sampler *sampler, enum source_id source)
{
        uint64_t taken = 0;

        for (uint32_t i = 0; i < sampler->n_streams; i++)
                if (sampler->streams[i].id == source && sampler->streams[i].taken > taken)
                        taken = sampler->streams[i].taken;
        return taken;
}

void sampler_set_taken(struct sampler *sampler, enum source_id source, uint64_t taken)
{
        const struct plan_source *plan = &sampler->plan.sources[source];

        for (uint32_t i = 0; i < sampler->n_streams; i++) {
                struct stream *stream = &sampler->streams[i];

                if (stream->id != source)
                        continue;
                stream->taken = taken;
                if (plan->count > 0 && taken >= plan->count)
                        stream->wanted = false;
        }
}

uint64_t sampler_get_facts_revision(const struct sampler *sampler)
{
        return sampler->facts_revision;
}

const struct facts *sampler_get_facts(
        const struct sampler *sampler, enum source_id source, uint32_t instance)
{
        uint32_t at = instance == 0 ? (uint32_t)source : SOURCE_MAX_ + instance - 1;

        /* What was only found out for the collector to elect somebody is not told. */
        if (at >= sampler->n_streams || !stream_is_chosen(&sampler->streams[at]))
                return NULL;
        return sampler->streams[at].facts;
}

void sampler_list_clusters(const struct sampler *sampler, char *ret, size_t size)
{
        uint64_t now_us = now((struct sampler *)sampler).monotonic_us;
        size_t used = 0;

        ret[0] = '\0';
        for (uint32_t i = SOURCE_NONE + 1; i < sampler->n_streams && used < size; i++) {
                const struct stream *stream = &sampler->streams[i];
                char fsid[ID_TEXT_MAX];
                bool failing = stream->failed_us > 0 &&
                               (stream->wanted || now_us < stream->failed_us + FAILING_FORGET_US);

                if (stream->id != SOURCE_CEPH || !sampler->options.allowed[SOURCE_CEPH])
                        continue;
                used += (size_t)snprintf(ret + used, size - used, "%s%s%s", used ? "," : "",
                        id_is_zero(&stream->fsid) ? PLAN_CLUSTER_UNKNOWN
                                                  : id_format(&stream->fsid, fsid),
                        failing ? "!" : "");
        }
}

static void stream_init(struct sampler *sampler, uint32_t at)
{
        const struct ceph_clusters *clusters = sampler->options.clusters;
        struct stream *stream = &sampler->streams[at];
        const char *name;

        stream->sampler = sampler;
        stream->id = at < SOURCE_MAX_ ? (enum source_id)at : SOURCE_CEPH;
        stream->instance = at < SOURCE_MAX_ ? 0 : at - SOURCE_MAX_ + 1;
        stream->reopen_delay_us = REOPEN_MIN_US;
        stream->source = sampler->options.source;
        stream->step.sampler = sampler;
        stream->step.options = &stream->source;
        stream->step.report.line = report_line;
        stream->step.report.userdata = stream;
        name = source_name(stream->id);
        snprintf(stream->label, sizeof(stream->label), "%s", name ? name : "");
        if (stream->id != SOURCE_CEPH || !clusters || clusters->n == 0)
                return;
        stream->source.ceph_conf = clusters->list[stream->instance].conf;
        stream->source.ceph_name = clusters->list[stream->instance].name;
        stream->source.ceph_keyring = clusters->list[stream->instance].keyring;
        stream->fsid = clusters->list[stream->instance].fsid;
        if (clusters->n > 1) {
                const char *slash = strrchr(stream->source.ceph_conf, '/');

                snprintf(stream->label, sizeof(stream->label), "ceph %.40s",
                        slash ? slash + 1 : stream->source.ceph_conf);
        }
}

int sampler_new(const struct sampler_options *options, struct sampler **ret)
{
        struct sampler *sampler = calloc(1, sizeof(*sampler));

        if (!sampler)
                return -ENOMEM;
        sampler->options = *options;
        sampler->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (sampler->done_fd < 0) {
                int r = -errno;

                free(sampler);
                return r;
        }
        sampler->n_streams = SOURCE_MAX_;
        if (options->clusters && options->clusters->n > 1)
                sampler->n_streams += (uint32_t)options->clusters->n - 1;
        for (uint32_t i = 0; i < sampler->n_streams; i++)
                stream_init(sampler, i);
        *ret = sampler;
        return 0;
}

/* Asks an idle worker to close its source as its last step; a busy one just ends after its step. */
static void stream_end(struct stream *stream, uint64_t timeout_us)
{
        stream->wanted = false;
        if (stream->busy && worker_take(stream->worker))
                stream->busy = false;
        if (stream->worker && !stream->busy && stream->step.source) {
                stream->step.close = true;
                (void)worker_start(stream->worker);
        }
        stream->worker = worker_free(stream->worker, timeout_us);
        if (stream->worker)
                return;
        if (stream->step.class)
                stream->step.class->close(stream->step.source);
        stream->step.source = NULL;
        stream->step.facts = facts_free(stream->step.facts);
        stream->facts = facts_free(stream->facts);
}

struct sampler *sampler_free(struct sampler *sampler, uint64_t timeout_us)
{
        uint64_t end_us, at_us;
        bool stuck = false;

        if (!sampler)
                return NULL;
        end_us = now(sampler).monotonic_us + timeout_us;
        for (uint32_t i = 0; i < sampler->n_streams; i++) {
                at_us = now(sampler).monotonic_us;
                stream_end(&sampler->streams[i], at_us < end_us ? end_us - at_us : 0);
                stuck |= sampler->streams[i].worker != NULL;
        }
        if (stuck)
                return sampler;
        close(sampler->done_fd);
        plan_done(&sampler->plan);
        free(sampler);
        return NULL;
}
