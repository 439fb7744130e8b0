/*
 * The counters of the OSDs of this node. One "perf dump" in full costs the OSD less than one for
 * each logger that is wanted (0.5 against 0.8 ms): most of it is the connection.
 */
#include "agentd/osd-node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/perf-faults.h"
#include "agentd/perf.h"
#include "agentd/host-sched.h"
#include "lib/clock.h"
#include "lib/log.h"

/* What the kernel tells of the process stands behind what the OSD tells of itself. */
static const uint16_t process_metrics[] = {METRIC_OSD_RUN_TIME, METRIC_OSD_WAIT_TIME};
#define PROCESS_METRICS (sizeof(process_metrics) / sizeof(process_metrics[0]))

struct shared {
        struct perf *perf;
        size_t n_perf;
        uint32_t files_left; /* of threads */
        uint16_t metrics[PERF_METRICS_MAX + PROCESS_METRICS];
};

struct memory {
        struct host_sched sched;
        struct perf_places places;
        bool left_out[PERF_METRICS_MAX + PROCESS_METRICS]; /* its release counts these wrongly */
};

static int reader_open(void **ret_shared, const uint16_t **ret_metrics, size_t *ret_n_metrics)
{
        struct shared *shared = calloc(1, sizeof(*shared));
        const uint16_t *metrics;
        int r;

        if (!shared)
                return -ENOMEM;
        r = perf_new(&shared->perf);
        if (r < 0) {
                free(shared);
                return r;
        }
        shared->files_left = HOST_SCHED_FILES_MAX;
        metrics = perf_get_metrics(shared->perf, &shared->n_perf);
        memcpy(shared->metrics, metrics, shared->n_perf * sizeof(*metrics));
        memcpy(shared->metrics + shared->n_perf, process_metrics, sizeof(process_metrics));
        *ret_metrics = shared->metrics;
        *ret_n_metrics = shared->n_perf + PROCESS_METRICS;
        *ret_shared = shared;
        return 0;
}

static void reader_close(void *userdata)
{
        struct shared *shared = userdata;

        if (!shared)
                return;
        perf_free(shared->perf);
        free(shared);
}

/* Nothing where the process is not to be seen: another PID namespace. */
static void process_read(const struct osd_context *context, const struct osd *osd,
        uint64_t *ret_values, bool *ret_present)
{
        struct memory *memory = osd->memory;
        struct shared *shared = context->shared;

        if (osd->pid > 0)
                host_sched_read(context->root, (uint32_t)osd->pid, clock_monotonic_us(),
                        &shared->files_left, &memory->sched);
        ret_values[0] = memory->sched.run_ns;
        ret_values[1] = memory->sched.wait_ns;
        for (size_t i = 0; i < PROCESS_METRICS; i++)
                ret_present[i] = memory->sched.run_ns > 0;
}

static int reader_read(const struct osd_context *context, struct osd *osd, const char *text,
        size_t size, uint64_t *ret_values, bool *ret_present)
{
        const struct shared *shared = context->shared;
        struct memory *memory = osd->memory;
        struct perf_values values;
        int r;

        r = perf_parse_again(shared->perf, text, size, &memory->places, &values);
        if (r < 0)
                return r;
        for (size_t i = 0; i < shared->n_perf; i++) {
                ret_values[i] = values.value[i];
                ret_present[i] = values.present[i] && !memory->left_out[i];
        }
        process_read(context, osd, ret_values + shared->n_perf, ret_present + shared->n_perf);
        return 0;
}

static bool reader_only_grows(uint16_t metric)
{
        switch (metric) {
        case METRIC_OSD_OP_R:
        case METRIC_OSD_OP_W:
        case METRIC_OSD_SUBOP_W:
        case METRIC_BLUESTORE_KV_COMMIT_COUNT:
        case METRIC_BLUEFS_LOG_BYTES:
                return true;
        default:
                return false;
        }
}

/* What this release counts wrongly is not sampled, and said once. */
static void faults_note(const struct osd_context *context, struct osd *osd)
{
        uint32_t release = perf_release_parse(osd->release);
        struct memory *memory = osd->memory;
        size_t n;
        const struct perf_fault *faults = perf_faults_get(&n);

        for (size_t i = 0; i < n; i++) {
                if (!faults[i].left_out || !perf_fault_applies(&faults[i], release))
                        continue;
                for (size_t j = 0; j < context->n_metrics; j++)
                        memory->left_out[j] |= context->metrics[j] == faults[i].metric;
                source_report(&context->report, LOG_LEVEL_INFO,
                        "%s: %s is left out: in Ceph %s it %s (%s)", osd->name,
                        metric_get(faults[i].metric)->name, osd->release, faults[i].reason,
                        faults[i].origin);
        }
}

static void absence_report(const struct osd_context *context, const struct osd *osd)
{
        const struct shared *shared = context->shared;
        const struct memory *memory = osd->memory;
        size_t length = 0;
        char text[400];

        for (size_t i = 0; i < shared->n_perf; i++) {
                const char *name = metric_get(context->metrics[i])->name;

                if (!osd->present[i] && !memory->left_out[i] &&
                        length + strlen(name) + 3 < sizeof(text))
                        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
                                length ? ", " : "", name);
        }
        if (length > 0)
                source_report(&context->report, LOG_LEVEL_INFO, "%s: Ceph %s has no counter for %s",
                        osd->name, osd->release, text);
}

static void reader_leave(const struct osd_context *context, struct osd *osd)
{
        struct memory *memory = osd->memory;
        struct shared *shared = context->shared;

        host_sched_done(&memory->sched, &shared->files_left);
}

static const struct osd_reader reader = {
        .question = "{\"prefix\":\"perf dump\",\"format\":\"json\"}",
        .memory = sizeof(struct memory),
        .open = reader_open,
        .close = reader_close,
        .read = reader_read,
        .only_grows = reader_only_grows,
        .greet = faults_note,
        .first = absence_report,
        .leave = reader_leave,
};

static int osd_open(const struct source_options *options, const struct source_report *report,
        struct source **ret)
{
        return osd_node_open(options, report, &reader, ret);
}

const struct source_class source_osd = {
        .id = SOURCE_OSD,
        .asks = true,
        .in_interval = true,
        .deadline_us = OSD_NODE_DEADLINE_US,
        .open = osd_open,
        .collect = osd_node_collect,
        .proceed = osd_node_proceed,
        .close = osd_node_close,
};
