#include "agentd/perf-histogram.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "agentd/perf-private.h"

#define BUCKETS 32u /* of an axis; the first holds what is below 0, and is empty */

struct scan {
        const char *p, *end;
};

static const char *const names[METRIC_CELL_HISTOGRAMS] = {
        "\"op_r_latency_out_bytes_histogram\":{",
        "\"op_w_latency_in_bytes_histogram\":{",
        "\"op_rw_latency_in_bytes_histogram\":{",
        "\"op_rw_latency_out_bytes_histogram\":{",
};

static bool literal_skip(struct scan *scan, const char *text)
{
        size_t length = strlen(text);

        if ((size_t)(scan->end - scan->p) < length || memcmp(scan->p, text, length) != 0)
                return false;
        scan->p += length;
        return true;
}

/* To what follows the next @text. */
static bool text_reach(struct scan *scan, const char *text)
{
        size_t length = strlen(text);
        const char *found = memmem(scan->p, (size_t)(scan->end - scan->p), text, length);

        if (found)
                scan->p = found + length;
        return found != NULL;
}

static bool number_read(struct scan *scan, uint64_t *ret)
{
        const char *begin = scan->p;

        return perf_digits_read(&scan->p, scan->end, ret) == 0 && scan->p > begin;
}

/* "min":0,"quant_size":100000,"buckets":32,"scale_type":"log2","ranges":[...]} */
static int axis_check(struct scan *scan, uint64_t unit)
{
        uint64_t min, quant, buckets;
        bool log2;

        if (!text_reach(scan, "\"min\":") || !number_read(scan, &min) ||
                !literal_skip(scan, ",\"quant_size\":") || !number_read(scan, &quant) ||
                !literal_skip(scan, ",\"buckets\":") || !number_read(scan, &buckets) ||
                !literal_skip(scan, ",\"scale_type\":\""))
                return -EBADMSG;
        log2 = literal_skip(scan, "log2\",");
        if (!log2 && !text_reach(scan, "\","))
                return -EBADMSG;
        if (min != 0 || quant != unit || buckets != BUCKETS || !log2)
                return -EPROTONOSUPPORT;
        return text_reach(scan, "]}") ? 0 : -EBADMSG;
}

/* Ceph's number of a bucket to ours, from 0. */
static uint32_t bucket_fold(uint32_t bucket, uint32_t count)
{
        if (bucket <= 1)
                return 0;
        return bucket < count ? bucket - 1 : count - 1;
}

static int values_read(struct scan *scan, uint64_t *cells)
{
        for (uint32_t latency = 0; latency < BUCKETS; latency++) {
                uint64_t *row =
                        cells + bucket_fold(latency, METRIC_CELL_LATENCIES) * METRIC_CELL_SIZES;

                if (!literal_skip(scan, latency == 0 ? "[[" : ",["))
                        return -EBADMSG;
                for (uint32_t size = 0; size < BUCKETS; size++) {
                        uint64_t value;

                        if ((size > 0 && !literal_skip(scan, ",")) || !number_read(scan, &value))
                                return -EBADMSG;
                        row[bucket_fold(size, METRIC_CELL_SIZES)] += value;
                }
                if (!literal_skip(scan, "]"))
                        return -EBADMSG;
        }
        return literal_skip(scan, "]") ? 0 : -EBADMSG;
}

static int histogram_read(struct scan *scan, uint64_t *cells)
{
        int r;

        if (!literal_skip(scan, "\"axes\":[{"))
                return -EBADMSG;
        r = axis_check(scan, METRIC_CELL_LATENCY_UNIT_NS);
        if (r == 0)
                r = axis_check(scan, METRIC_CELL_SIZE_UNIT_BYTES);
        if (r < 0)
                return r;
        if (!literal_skip(scan, "],\"values\":"))
                return -EBADMSG;
        return values_read(scan, cells);
}

int perf_histogram_parse(const char *text, size_t size, uint64_t ret_cells[METRIC_CELL_COUNT])
{
        struct scan logger = {text, text + size};
        unsigned found = 0;

        memset(ret_cells, 0, METRIC_CELL_COUNT * sizeof(*ret_cells));
        if (!text_reach(&logger, "\"osd\":{"))
                return -EBADMSG;
        for (size_t i = 0; i < METRIC_CELL_HISTOGRAMS; i++) {
                struct scan scan = logger;
                int r;

                if (!text_reach(&scan, names[i]))
                        continue;
                r = histogram_read(
                        &scan, ret_cells + i * METRIC_CELL_LATENCIES * METRIC_CELL_SIZES);
                if (r < 0)
                        return r;
                found++;
        }
        return found > 0 ? 0 : -EBADMSG;
}
