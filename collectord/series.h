#pragma once
/*
 * What can be drawn of a layer: the derived metrics (throughput, IOPS, mean request size, latency,
 * utilisation, queue) as terms over raw counters, and every raw metric by its own name. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collectord/rung.h"
#include "lib/metric.h"

#define SERIES_TERMS_MAX 12u
#define SERIES_SLOTS_MAX 10u

enum series_kind {
        SERIES_RATE,        /* slot 0 per second; a gauge's mean */
        SERIES_QUOTIENT,    /* slot 0 / slot 1: per request */
        SERIES_FRACTION,    /* slot 0 per second and entity: a share of the time */
        SERIES_OBJECTSTORE, /* enum ladder_written slots and compactions of the BlueFS journal:
                               bytes that BlueStore gave to the device */
};

struct series_definition {
        enum source_id source;
        enum layer layer; /* LAYER_NONE: of the host */
        const char *name, *unit;
        enum series_kind kind;
        uint32_t n_terms, n_slots;
        struct rung_term terms[SERIES_TERMS_MAX];
};

/* A derived metric, or a raw one, of @layer; LAYER_NONE: of the sources "host" and "agent".
 * -ENOENT. */
int series_find(enum layer layer, const char *name, struct series_definition *ret);
/* From the sums of one window; NaN when there is no number. @seen: entities. @compaction_bytes:
 * that one compaction of the BlueFS journal writes. */
double series_value(const struct series_definition *definition, const double *sums, double seconds,
        uint32_t seen, double compaction_bytes);
/* The sum over the window that a rate stands for (bytes, operations). */
double series_total(
        const struct series_definition *definition, const double *sums, double compaction_bytes);
