#include "agentd/sampler-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

/* A cluster that gave no answer is tried by another agent; after this, this one may try again. */
#define FAILING_FORGET_US 300000000ull

/* On a busy machine a thread that is woken takes the CPU of who comes behind it. So what the loop
 * reads itself comes first, and what others have to answer is asked for last. */
enum turn { TURN_LOOP, TURN_THREAD, TURN_ASKS, TURN_MAX_ };

static enum turn stream_turn(const struct stream *stream)
{
        if (stream->step.class->asks)
                return TURN_ASKS;
        return stream->step.class->may_wait ? TURN_THREAD : TURN_LOOP;
}

void sampler_run(struct sampler *sampler, uint64_t *ret_next_us)
{
        uint64_t next_us = UINT64_MAX;
        eventfd_t ignored;

        /* Always: a thread may end, and be taken, just behind this. */
        (void)eventfd_read(sampler->done_fd, &ignored);
        for (enum turn turn = 0; turn < TURN_MAX_; turn++) {
                for (uint32_t i = 0; i < sampler->n_streams; i++) {
                        struct stream *stream = &sampler->streams[i];
                        uint64_t due_us;

                        if (!stream->step.class || stream_turn(stream) != turn)
                                continue;
                        stream_run(stream);
                        due_us = stream_due(stream);
                        if (due_us < next_us)
                                next_us = due_us;
                }
        }
        *ret_next_us = next_us;
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
        /* What was found out of a cluster is told once it is elected for it. */
        if (before.n_clusters != copy.n_clusters ||
                memcmp(before.clusters, copy.clusters, sizeof(copy.clusters)) != 0)
                sampler->facts_revision++;
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
        uint64_t now_us = sampler_now(sampler).monotonic_us;
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

struct sampler *sampler_free(struct sampler *sampler, uint64_t timeout_us)
{
        uint64_t end_us, at_us;
        bool stuck = false;

        if (!sampler)
                return NULL;
        end_us = sampler_now(sampler).monotonic_us + timeout_us;
        for (uint32_t i = 0; i < sampler->n_streams; i++) {
                at_us = sampler_now(sampler).monotonic_us;
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
