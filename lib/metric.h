#pragma once
/*
 * The metric table: a metric is a descriptor before it is a number. Each row stands once, in
 * lib/metric-list.h; numbers there are the wire format and never change or get reused.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum source_id {
        SOURCE_NONE = 0,
        SOURCE_DISKSTATS = 1,
        SOURCE_OSD = 2,
        SOURCE_CEPH = 3,
        SOURCE_HOST = 4,
        SOURCE_AGENT = 5,         /* the agent's own cost and health */
        SOURCE_OSD_HISTOGRAM = 6, /* operations of an OSD by request size and latency */
        SOURCE_MAX_,
};

enum layer {
        LAYER_NONE = 0, /* not a rung: host, agent */
        LAYER_FILESYSTEM,
        LAYER_OSD,
        LAYER_OBJECTSTORE,
        LAYER_STORAGE,
        LAYER_MAX_,
};

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE };

enum metric_unit {
        UNIT_OPERATIONS,
        UNIT_BYTES,
        UNIT_SECTORS, /* 512 bytes, whatever the device's block size */
        UNIT_KIBIBYTES,
        UNIT_MILLISECONDS,
        UNIT_MICROSECONDS,
        UNIT_NANOSECONDS,
        UNIT_TICKS, /* USER_HZ, 1/100 s */
        UNIT_COUNT, /* of things: rows, in-flight requests, threads */
        UNIT_HUNDREDTHS_PERCENT,
        UNIT_FLAG,
};

enum metric_id {
#define METRIC(number, symbol, source, layer, name, kind, unit, width, help)                       \
        METRIC_##symbol = (number),
#include "lib/metric-list.h"
#undef METRIC
};

struct metric {
        uint16_t id;
        enum source_id source;
        enum layer layer;
        const char *name; /* unique within its source */
        enum metric_kind kind;
        enum metric_unit unit;
        uint8_t width; /* bits at which a counter wraps: 32 or 64 */
        const char *help;
};

/* NULL when there is no such metric. */
const struct metric *metric_get(uint16_t id);
const struct metric *metric_find(enum source_id source, const char *name);
/* All rows, ascending by id. */
const struct metric *metric_all(size_t *ret_count);

const char *metric_unit_name(enum metric_unit unit);
/* Entities of these are OSDs, each with its cluster. */
static inline bool source_is_of_osds(enum source_id source)
{
        return source == SOURCE_OSD || source == SOURCE_OSD_HISTOGRAM;
}
/* "diskstats", "osd", "ceph", "host", "agent", "osd_histogram"; NULL, or -ENOENT when unknown. */
const char *source_name(enum source_id source);
int source_parse(const char *name, enum source_id *ret);
/* "filesystem", "osd", "objectstore", "storage"; NULL, or -ENOENT when unknown. */
const char *layer_name(enum layer layer);
int layer_parse(const char *name, enum layer *ret);

/*
 * The cells of the OSDs' histograms (lib/metric-cell-list.h): METRIC_CELL_FIRST + (histogram *
 * LATENCIES + latency - 1) * SIZES + size - 1, where latency and size are Ceph's own numbers of a
 * bucket. Bucket 1 begins at 0, bucket n at unit * 2^(n - 2). The last of ours has all of Ceph's
 * that come after it.
 */
#define METRIC_CELL_FIRST 4096u
#define METRIC_CELL_HISTOGRAMS 4u
#define METRIC_CELL_LATENCIES 20u /* the last begins at 26.2 s; an operation is slow after 30 s */
#define METRIC_CELL_SIZES 16u     /* the last begins at 8 MiB */
#define METRIC_CELL_LATENCY_UNIT_NS 100000u
#define METRIC_CELL_SIZE_UNIT_BYTES 512u
#define METRIC_CELL_COUNT (METRIC_CELL_HISTOGRAMS * METRIC_CELL_LATENCIES * METRIC_CELL_SIZES)

struct metric_cell {
        uint32_t histogram; /* 0 op_r_out, 1 op_w_in, 2 op_rw_in, 3 op_rw_out */
        uint64_t size_from_bytes, size_to_bytes; /* up to, not including; UINT64_MAX: no end */
        uint64_t latency_from_ns, latency_to_ns;
};

/* -ENOENT: it is no cell. */
int metric_cell_get(uint16_t id, struct metric_cell *ret);
