/*
 * Operations of each OSD by request size and latency, on request of the plan: "perf histogram
 * dump". A column is a cell that ever was not 0 in the life of the OSD's process; another one that
 * is no longer 0 is another column, and so another generation. A cell's first operations are
 * therefore not part of a rate: how many they are is the first value of its column.
 */
#include "agentd/osd-node.h"

#include <errno.h>

#include "agentd/perf-histogram.h"

struct shared {
        uint16_t metrics[METRIC_CELL_COUNT];
};

static int reader_open(void **ret_shared, const uint16_t **ret_metrics, size_t *ret_n_metrics)
{
        struct shared *shared = calloc(1, sizeof(*shared));

        if (!shared)
                return -ENOMEM;
        for (size_t i = 0; i < METRIC_CELL_COUNT; i++)
                shared->metrics[i] = (uint16_t)(METRIC_CELL_FIRST + i);
        *ret_metrics = shared->metrics;
        *ret_n_metrics = METRIC_CELL_COUNT;
        *ret_shared = shared;
        return 0;
}

/* After a "perf reset" the columns stay as they are: a cell that is 0 again says so. */
static int reader_read(const struct osd_context *context, struct osd *osd, const char *text,
        size_t size, uint64_t *ret_values, bool *ret_present)
{
        int r;

        r = perf_histogram_parse(text, size, ret_values);
        if (r < 0)
                return r;
        for (size_t i = 0; i < context->n_metrics; i++)
                ret_present[i] = osd->present[i] || ret_values[i] > 0;
        return 0;
}

static bool reader_only_grows(uint16_t metric)
{
        (void)metric;
        return true;
}

static const struct osd_reader reader = {
        .question = "{\"prefix\":\"perf histogram dump\",\"format\":\"json\"}",
        .open = reader_open,
        .close = free,
        .read = reader_read,
        .only_grows = reader_only_grows,
};

static int histogram_open(const struct source_options *options, const struct source_report *report,
        struct source **ret)
{
        return osd_node_open(options, report, &reader, ret);
}

const struct source_class source_osd_histogram = {
        .id = SOURCE_OSD_HISTOGRAM,
        .may_wait = true,
        .asks = true,
        .in_interval = true,
        .deadline_us = OSD_NODE_DEADLINE_US,
        .open = histogram_open,
        .collect = osd_node_collect,
        .proceed = osd_node_proceed,
        .close = osd_node_close,
};
