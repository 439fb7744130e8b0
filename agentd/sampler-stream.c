/* One source, or one cluster, as the sampler runs it. */
#include "agentd/sampler-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"

/* A source that cannot be opened (no module, no mon) is tried again after this, doubled up to the
 * maximum. */
#define REOPEN_MIN_US 1000000ull
#define REOPEN_MAX_US 60000000ull

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
}

static void step_begin(struct step *step)
{
        step->begin_us = sampler_now(step->sampler).monotonic_us;
        step->opened = false;
        step->result = 0;
        if (step->close)
                step_close(step);
        else
                step_sample(step);
}

static void step_end(struct step *step)
{
        if (step->source && step->result >= 0)
                step_add_facts(step);
        step->took_us = sampler_now(step->sampler).monotonic_us - step->begin_us;
}

/* Runs on the worker's thread. */
static void step_run(void *userdata)
{
        struct step *step = userdata;

        step_begin(step);
        step->result = source_wait(step->class, step->source, step->result, &step->sample);
        step_end(step);
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

        stream->reopen_us = sampler_now(stream->sampler).monotonic_us + delay;
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
bool stream_is_chosen(const struct stream *stream)
{
        const struct sampler *sampler = stream->sampler;

        if (stream->id != SOURCE_CEPH)
                return true;
        /* Two configurations of one cluster: the first is enough. */
        for (const struct stream *other = sampler->streams; other < stream; other++)
                if (other->id == SOURCE_CEPH && !id_is_zero(&stream->fsid) &&
                        id_equal(&other->fsid, &stream->fsid))
                        return false;
        return plan_wants_cluster(&sampler->plan, &stream->fsid);
}

static void stream_note_failure(struct stream *stream, int result)
{
        stream->failed_us = result < 0 ? sampler_now(stream->sampler).monotonic_us : 0;
}

/* A library may ignore its own time-outs: then the collector is to know it all the same. */
static void stream_watch(struct stream *stream)
{
        uint64_t deadline_us = stream->step.deadline_us;

        if (!stream->busy || sampler_now(stream->sampler).monotonic_us <= deadline_us ||
                stream->late)
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

static void stream_end_step(struct stream *stream)
{
        stream->pending = stream->step.result == SOURCE_PENDING;
        if (stream->pending)
                return;
        step_end(&stream->step);
        stream_finish(stream);
}

/* Of a source that has a thread, whether this step is for it: to open and to close always is. */
static bool step_will_wait(const struct step *step)
{
        return step->close || !step->source || !step->class->will_wait ||
               step->class->will_wait(step->source);
}

static void stream_step(struct stream *stream)
{
        if (stream->worker && step_will_wait(&stream->step)) {
                stream->busy = worker_start(stream->worker) == 0;
                return;
        }
        step_begin(&stream->step);
        stream_end_step(stream);
}

static void stream_proceed(struct stream *stream)
{
        struct step *step = &stream->step;

        if (sampler_now(stream->sampler).monotonic_us < step->sample.again_us)
                return;
        step->result = step->class->proceed(step->source, &step->sample);
        stream_end_step(stream);
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
        if (stream->busy || stream->pending) {
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
        struct moment at = sampler_now(stream->sampler);
        uint64_t missed, late_us;

        if (tick_look(&stream->tick, at, &missed, &late_us) != TICK_SAMPLE)
                return;
        counters->ticks++;
        counters->ticks_missed += missed;
        if (late_us > counters->lateness_max_us)
                counters->lateness_max_us = late_us;
        stream_sample(stream, at);
}

void stream_run(struct stream *stream)
{
        if (stream->busy && worker_take(stream->worker)) {
                stream->busy = false;
                stream->late = false;
                stream_finish(stream);
        }
        if (stream->pending)
                stream_proceed(stream);
        if (stream->wanted)
                stream_tick(stream);
        if (!stream->wanted && !stream->busy && stream->step.source) {
                stream->pending = false;
                stream->step.close = true;
                stream_step(stream);
        }
}

uint64_t stream_due(const struct stream *stream)
{
        uint64_t due_us = stream->wanted ? tick_due_monotonic(&stream->tick) : UINT64_MAX;

        if (stream->pending && stream->step.sample.again_us < due_us)
                due_us = stream->step.sample.again_us;
        return due_us;
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

void stream_apply(
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
                tick_start(&stream->tick, plan->interval_us, plan->start_us, sampler_now(sampler));
}

void stream_init(struct sampler *sampler, uint32_t at)
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

void stream_end(struct stream *stream, uint64_t timeout_us)
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
