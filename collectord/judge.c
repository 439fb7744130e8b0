#include "collectord/judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/finding.h"
#include "lib/clock.h"
#include "lib/log.h"

#define TIMER_ACCURACY_US 100000ull

struct judge {
        struct judge_options options;
        sd_event_source *timer;
        struct findings *findings;
        struct job job;
        bool busy;
        int error; /* of the last evaluation or commit: logged when it changes */
        /* Of the evaluation under way; the worker's until it is done. */
        struct finding_evaluation evaluations[FINDING_CLUSTERS_MAX];
        uint32_t n;
        bool complete; /* all clusters were judged */
        int result;
};

static int judge_cluster(
        struct judge *judge, const struct query *query, uint32_t cluster, int64_t now_us)
{
        struct finding_evaluation *evaluation = &judge->evaluations[judge->n];
        CLEANUP(evidence) struct evidence *evidence = NULL;
        int r;

        r = evidence_gather(query, cluster, judge->options.window_us, &evidence);
        if (r < 0)
                return r;
        *evaluation = (struct finding_evaluation){
                .cluster = query->topology->clusters[cluster].fsid,
                .now_us = now_us,
                .from_us = evidence->from_us,
                .to_us = evidence->to_us,
                .doubts = calloc(EVIDENCE_DOUBTS_MAX, EVIDENCE_DOUBT_MAX),
        };
        judge->n++;
        if (log_get_level() >= LOG_LEVEL_DEBUG)
                evidence_log(evidence);
        if (!evaluation->doubts)
                return -ENOMEM;
        evaluation->n_doubts =
                evidence->n_doubts < EVIDENCE_DOUBTS_MAX ? evidence->n_doubts : EVIDENCE_DOUBTS_MAX;
        memcpy(evaluation->doubts, evidence->doubts, sizeof(evidence->doubts));
        return verdict_judge(evidence, &evaluation->verdict);
}

static int judge_all(struct judge *judge, struct store_reader *reader)
{
        int64_t now_us = clock_realtime_us();
        CLEANUP(query) struct query *query = NULL;
        int r;

        r = query_open(reader, now_us, clock_monotonic_us() + judge->options.timeout_us, &query);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < query->topology->n_clusters; i++) {
                /* Disks without a cluster have no layers to blame. */
                if (id_is_zero(&query->topology->clusters[i].fsid))
                        continue;
                if (judge->n == FINDING_CLUSTERS_MAX)
                        return 0;
                r = judge_cluster(judge, query, i, now_us);
                if (r < 0)
                        return r;
        }
        judge->complete = true;
        return 0;
}

static void run(struct job *job, void *state, bool hurry)
{
        struct judge *judge = (struct judge *)((char *)job - offsetof(struct judge, job));

        judge->n = 0;
        judge->complete = false;
        if (hurry) {
                judge->result = -ECANCELED;
                return;
        }
        judge->result = store_reader_begin(state);
        if (judge->result == 0)
                judge->result = judge_all(judge, state);
        store_reader_end(state);
}

static int store(struct judge *judge)
{
        int r;

        r = store_begin(judge->options.store);
        if (r < 0)
                return r;
        r = findings_put(judge->findings, judge->options.store, clock_realtime_us());
        if (r == 0)
                r = store_commit(judge->options.store);
        if (r < 0) {
                store_rollback(judge->options.store);
                return r;
        }
        findings_stored(judge->findings);
        return 0;
}

static int take(struct judge *judge)
{
        const struct id *clusters[FINDING_CLUSTERS_MAX];
        size_t n = 0;

        for (uint32_t i = 0; i < judge->n; i++) {
                const struct finding_evaluation *evaluation = &judge->evaluations[i];
                const char *news;
                int r;

                if (!evaluation->verdict)
                        continue;
                r = findings_update(judge->findings, evaluation);
                if (r < 0 && r != -ENOSPC)
                        return r;
                clusters[n++] = &evaluation->cluster;
                news = findings_get_news(judge->findings, &evaluation->cluster);
                if (news)
                        log_notice("%s", news);
        }
        if (judge->complete)
                findings_forget(judge->findings, clusters, n);
        return store(judge);
}

static void done(struct job *job)
{
        struct judge *judge = (struct judge *)((char *)job - offsetof(struct judge, job));
        int r = judge->result, taken;

        judge->busy = false;
        if (r == -ECANCELED)
                return;
        taken = take(judge);
        for (uint32_t i = 0; i < judge->n; i++)
                finding_evaluation_done(&judge->evaluations[i]);
        if (r == 0)
                r = taken;
        metrics_add(judge->options.metrics, evaluations, 1);
        if (r < 0)
                metrics_add(judge->options.metrics, evaluation_failures, 1);
        if (r < 0 && r != judge->error)
                log_error("cannot judge the clusters: %s", strerror(-r));
        judge->error = r;
}

static int on_timer(sd_event_source *source, uint64_t time_us, void *userdata)
{
        struct judge *judge = userdata;

        (void)time_us;
        if (judge->busy || workers_add(judge->options.workers, &judge->job) < 0)
                metrics_add(judge->options.metrics, evaluations_skipped, 1);
        else
                judge->busy = true;
        sd_event_source_set_time_relative(source, judge->options.interval_us);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int judge_new(const struct judge_options *options, struct judge **ret)
{
        CLEANUP(judge) struct judge *judge = calloc(1, sizeof(*judge));
        int r;

        if (!judge)
                return -ENOMEM;
        judge->options = *options;
        judge->job = (struct job){.run = run, .done = done};
        r = findings_new(&judge->findings);
        if (r < 0)
                return r;
        r = findings_load(judge->findings, options->reader);
        if (r < 0)
                return r;
        judge->options.reader = NULL;
        if (options->interval_us > 0) {
                r = sd_event_add_time_relative(options->event, &judge->timer, CLOCK_MONOTONIC,
                        options->interval_us, TIMER_ACCURACY_US, on_timer, judge);
                if (r < 0)
                        return r;
        }
        *ret = STEAL(judge);
        return 0;
}

struct judge *judge_free(struct judge *judge)
{
        if (!judge)
                return NULL;
        sd_event_source_disable_unref(judge->timer);
        for (uint32_t i = 0; i < judge->n; i++)
                finding_evaluation_done(&judge->evaluations[i]);
        findings_free(judge->findings);
        free(judge);
        return NULL;
}
