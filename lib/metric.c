#include "lib/metric.h"

#include <errno.h>
#include <string.h>

static const struct metric metrics[] = {
#define METRIC(number, symbol, source, layer, name, kind, unit, width, help)                       \
        {number, SOURCE_##source, LAYER_##layer, name, METRIC_##kind, UNIT_##unit, width, help},
#include "lib/metric-list.h"
#undef METRIC
};

static const char *const source_names[SOURCE_MAX_] = {
        [SOURCE_DISKSTATS] = "diskstats",
        [SOURCE_OSD] = "osd",
        [SOURCE_CEPH] = "ceph",
        [SOURCE_HOST] = "host",
        [SOURCE_AGENT] = "agent",
        [SOURCE_OSD_HISTOGRAM] = "osd_histogram",
};

static const char *const layer_names[LAYER_MAX_] = {
        [LAYER_FILESYSTEM] = "filesystem",
        [LAYER_OSD] = "osd",
        [LAYER_OBJECTSTORE] = "objectstore",
        [LAYER_STORAGE] = "storage",
};

static const char *const unit_names[] = {
        [UNIT_OPERATIONS] = "operations",
        [UNIT_BYTES] = "bytes",
        [UNIT_SECTORS] = "sectors",
        [UNIT_KIBIBYTES] = "kibibytes",
        [UNIT_MILLISECONDS] = "milliseconds",
        [UNIT_MICROSECONDS] = "microseconds",
        [UNIT_NANOSECONDS] = "nanoseconds",
        [UNIT_TICKS] = "ticks",
        [UNIT_COUNT] = "count",
        [UNIT_HUNDREDTHS_PERCENT] = "hundredths_percent",
        [UNIT_FLAG] = "flag",
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

const struct metric *metric_all(size_t *ret_count)
{
        *ret_count = COUNT_OF(metrics);
        return metrics;
}

const struct metric *metric_get(uint16_t id)
{
        size_t low = 0, high = COUNT_OF(metrics);

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (metrics[middle].id == id)
                        return &metrics[middle];
                if (metrics[middle].id < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

const struct metric *metric_find(enum source_id source, const char *name)
{
        for (size_t i = 0; i < COUNT_OF(metrics); i++)
                if (metrics[i].source == source && strcmp(metrics[i].name, name) == 0)
                        return &metrics[i];
        return NULL;
}

const char *metric_unit_name(enum metric_unit unit)
{
        return (size_t)unit < COUNT_OF(unit_names) ? unit_names[unit] : NULL;
}

static int name_parse(const char *const *names, int count, const char *name)
{
        for (int i = 0; i < count; i++)
                if (names[i] && strcmp(names[i], name) == 0)
                        return i;
        return -ENOENT;
}

const char *source_name(enum source_id source)
{
        return (size_t)source < SOURCE_MAX_ ? source_names[source] : NULL;
}

int source_parse(const char *name, enum source_id *ret)
{
        int r = name_parse(source_names, SOURCE_MAX_, name);

        if (r < 0)
                return r;
        *ret = (enum source_id)r;
        return 0;
}

const char *layer_name(enum layer layer)
{
        return (size_t)layer < LAYER_MAX_ ? layer_names[layer] : NULL;
}

int layer_parse(const char *name, enum layer *ret)
{
        int r = name_parse(layer_names, LAYER_MAX_, name);

        if (r < 0)
                return r;
        *ret = (enum layer)r;
        return 0;
}

/* Where Ceph's bucket of this number begins; the first one at 0. */
static uint64_t bucket_begin(uint32_t bucket, uint32_t last, uint64_t unit)
{
        if (bucket > last)
                return UINT64_MAX;
        return bucket == 1 ? 0 : unit << (bucket - 2);
}

int metric_cell_get(uint16_t id, struct metric_cell *ret)
{
        uint32_t cell = id - METRIC_CELL_FIRST, size, latency;

        if (id < METRIC_CELL_FIRST || cell >= METRIC_CELL_COUNT)
                return -ENOENT;
        size = cell % METRIC_CELL_SIZES + 1;
        latency = cell / METRIC_CELL_SIZES % METRIC_CELL_LATENCIES + 1;
        *ret = (struct metric_cell){
                .histogram = cell / METRIC_CELL_SIZES / METRIC_CELL_LATENCIES,
                .size_from_bytes =
                        bucket_begin(size, METRIC_CELL_SIZES, METRIC_CELL_SIZE_UNIT_BYTES),
                .size_to_bytes =
                        bucket_begin(size + 1, METRIC_CELL_SIZES, METRIC_CELL_SIZE_UNIT_BYTES),
                .latency_from_ns =
                        bucket_begin(latency, METRIC_CELL_LATENCIES, METRIC_CELL_LATENCY_UNIT_NS),
                .latency_to_ns = bucket_begin(
                        latency + 1, METRIC_CELL_LATENCIES, METRIC_CELL_LATENCY_UNIT_NS),
        };
        return 0;
}
