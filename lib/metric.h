#pragma once
/*
 * The metric table: a metric is a descriptor before it is a number. Each row stands once, in
 * lib/metric-list.h; numbers there are the wire format and never change or get reused.
 */

#include <stddef.h>
#include <stdint.h>

enum source_id {
        SOURCE_NONE = 0,
        SOURCE_DISKSTATS = 1,
        SOURCE_OSD = 2,
        SOURCE_CEPH = 3,
        SOURCE_HOST = 4,
        SOURCE_AGENT = 5, /* the agent's own cost and health */
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
/* "diskstats", "osd", "ceph", "host", "agent"; NULL, or -ENOENT when unknown. */
const char *source_name(enum source_id source);
int source_parse(const char *name, enum source_id *ret);
/* "filesystem", "osd", "objectstore", "storage"; NULL, or -ENOENT when unknown. */
const char *layer_name(enum layer layer);
int layer_parse(const char *name, enum layer *ret);
