/* The agent's own cost and health, one entity "agent". */
#include "agentd/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "agentd/counters.h"
#include "agentd/text-file.h"
#include "lib/clock.h"

enum {
        COLUMN_CPU_TIME,
        COLUMN_RSS,
        COLUMN_TICKS,
        COLUMN_TICKS_MISSED,
        COLUMN_SKIPS,
        COLUMN_FAILURES,
        COLUMN_LATENESS,
        COLUMN_SAMPLE_TIME,
        COLUMN_SPOOL_BYTES,
        COLUMN_SPOOL_BLOCKS,
        COLUMN_DROPPED_ROWS,
        COLUMN_UPLOADS,
        COLUMN_UPLOAD_FAILURES,
        COLUMN_REJECTED_BLOCKS,
        COLUMN_SOCKET_TIME,
        COLUMN_FAILED_PARTS,
        COLUMN_SPOOL_ROWS,
        COLUMN_MAX_,
};

static const struct block_column columns[COLUMN_MAX_] = {
        [COLUMN_CPU_TIME] = {0, METRIC_AGENT_CPU_TIME},
        [COLUMN_RSS] = {0, METRIC_AGENT_RSS},
        [COLUMN_TICKS] = {0, METRIC_AGENT_TICKS},
        [COLUMN_TICKS_MISSED] = {0, METRIC_AGENT_TICKS_MISSED},
        [COLUMN_SKIPS] = {0, METRIC_AGENT_SKIPS},
        [COLUMN_FAILURES] = {0, METRIC_AGENT_FAILURES},
        [COLUMN_LATENESS] = {0, METRIC_AGENT_LATENESS},
        [COLUMN_SAMPLE_TIME] = {0, METRIC_AGENT_SAMPLE_TIME},
        [COLUMN_SPOOL_BYTES] = {0, METRIC_AGENT_SPOOL_BYTES},
        [COLUMN_SPOOL_BLOCKS] = {0, METRIC_AGENT_SPOOL_BLOCKS},
        [COLUMN_DROPPED_ROWS] = {0, METRIC_AGENT_DROPPED_ROWS},
        [COLUMN_UPLOADS] = {0, METRIC_AGENT_UPLOADS},
        [COLUMN_UPLOAD_FAILURES] = {0, METRIC_AGENT_UPLOAD_FAILURES},
        [COLUMN_REJECTED_BLOCKS] = {0, METRIC_AGENT_REJECTED_BLOCKS},
        [COLUMN_SOCKET_TIME] = {0, METRIC_AGENT_SOCKET_TIME},
        [COLUMN_FAILED_PARTS] = {0, METRIC_AGENT_FAILED_PARTS},
        [COLUMN_SPOOL_ROWS] = {0, METRIC_AGENT_SPOOL_ROWS},
};

struct source {
        int statm_fd;
        uint64_t page_kibibytes;
        const struct agent_counters *counters;
        struct block_entity entity;
        uint64_t values[COLUMN_MAX_];
};

static void agent_close(struct source *source)
{
        if (!source)
                return;
        if (source->statm_fd >= 0)
                close(source->statm_fd);
        free(source);
}
DEFINE_CLEANUP(source, struct source *, agent_close)

static int agent_open(const struct source_options *options, const struct source_report *report,
        struct source **ret)
{
        CLEANUP(source) struct source *source = calloc(1, sizeof(*source));

        (void)report;
        if (!source)
                return -ENOMEM;
        /* Always this process, whatever options->root replays. */
        source->statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        if (source->statm_fd < 0)
                return -errno;
        source->page_kibibytes = (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
        source->counters = options->agent;
        source->entity = (struct block_entity){
                .name = "agent",
                .identity = "",
                .instance = clock_boot_us(),
        };
        *ret = STEAL(source);
        return 0;
}

static int read_rss(const struct source *source, uint64_t *ret_kibibytes)
{
        char text[128];
        uint64_t pages;
        ssize_t n = text_file_read_again(source->statm_fd, text, sizeof(text));

        if (n < 0)
                return (int)n;
        /* "1163 391 328 13 0 144 0": size, resident, ... in pages. */
        if (sscanf(text, "%*u %" SCNu64, &pages) != 1)
                return -EBADMSG;
        *ret_kibibytes = pages * source->page_kibibytes;
        return 0;
}

static void copy_counters(const struct agent_counters *counters, uint64_t *values)
{
        values[COLUMN_TICKS] = counters->ticks;
        values[COLUMN_TICKS_MISSED] = counters->ticks_missed;
        values[COLUMN_SKIPS] = counters->skips;
        values[COLUMN_FAILURES] = counters->failures;
        values[COLUMN_LATENESS] = counters->lateness_max_us;
        values[COLUMN_SAMPLE_TIME] = counters->sample_time_us;
        values[COLUMN_SPOOL_BYTES] = counters->spool_bytes;
        values[COLUMN_SPOOL_BLOCKS] = counters->spool_blocks;
        values[COLUMN_DROPPED_ROWS] = counters->dropped_rows;
        values[COLUMN_UPLOADS] = counters->uploads;
        values[COLUMN_UPLOAD_FAILURES] = counters->upload_failures;
        values[COLUMN_REJECTED_BLOCKS] = counters->rejected_blocks;
        values[COLUMN_SOCKET_TIME] = counters->socket_time_us;
        values[COLUMN_FAILED_PARTS] = counters->failed_parts;
        values[COLUMN_SPOOL_ROWS] = counters->spool_rows;
}

static int agent_collect(struct source *source, uint64_t deadline_us, struct sample *ret)
{
        struct rusage usage;
        int r;

        (void)deadline_us;
        r = read_rss(source, &source->values[COLUMN_RSS]);
        if (r < 0)
                return r;
        if (getrusage(RUSAGE_SELF, &usage) < 0)
                return -errno;
        source->values[COLUMN_CPU_TIME] =
                (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
        if (source->counters)
                copy_counters(source->counters, source->values);
        *ret = (struct sample){
                .generation = 1,
                .entities = &source->entity,
                .n_entities = 1,
                .columns = columns,
                .n_columns = COLUMN_MAX_,
                .values = source->values,
                .time_us = clock_realtime_us(),
        };
        return 0;
}

const struct source_class source_agent = {
        .id = SOURCE_AGENT,
        .open = agent_open,
        .collect = agent_collect,
        .close = agent_close,
};
