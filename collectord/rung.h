#pragma once
/*
 * One layer's counters over windows of time, summed over entities. Pure: rows go in, sums come out;
 * no clock, no database, no JSON.
 *
 * A counter's increase between two rows next to each other is spread evenly over the time between
 * them, so a window's sum is the increase between its two edges, each interpolated between the rows
 * around it. An entity counts in a window only when rows cover the whole of it:
 *
 * - rows further apart than 3 intervals (and a second) leave a hole. A window that contains the
 * hole keeps the exact increase, because the counters counted on; a window with an edge inside the
 * hole has no number for this entity.
 * - a new life (another boot, process or device, or a 64-bit counter that went down) makes the
 *   increase across unknown: it is left out, never guessed, and the window says `reset`. A 32-bit
 *   counter wraps within a life.
 * - a gauge is integrated over time and gives its mean.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "lib/id.h"
#include "lib/metric.h"

#define RUNG_COLUMNS_MAX 96u /* all metrics of a source, for totals */
#define RUNG_SLOTS_MAX 96u
#define RUNG_VALUES_MAX (32u << 20) /* targets x slots x windows of a table: 256 MiB */

/* Ascending by severity: the worst wins. Names in docs/api.md, "Windows". */
enum rung_state {
        RUNG_OK,
        RUNG_SHORT,
        RUNG_CONTAMINATED,
        RUNG_PARTIAL,
        RUNG_RESET,
        RUNG_IDLE,
        RUNG_GAP,
};
const char *rung_state_name(enum rung_state state);

/* Window i is [from + i*step, from + (i+1)*step). */
struct rung_windows {
        int64_t from_us;
        uint64_t step_us;
        uint32_t n;
};

enum rung_need {
        RUNG_NEED_SLOT,     /* without it the entity adds nothing to the slot */
        RUNG_NEED_OPTIONAL, /* without it the slot is the sum of the others */
        RUNG_NEED_ENTITY,   /* without it the entity did not answer */
};

/* A metric times @scale adds to a slot. The terms of a slot are all counters or all gauges. */
struct rung_term {
        double scale;
        uint16_t metric; /* enum metric_id */
        uint16_t slot;
        enum rung_need need;
};

/* Sums per target (an OSD, a host, a cluster, ...), slot and window. */
struct rung_table {
        struct rung_windows windows;
        uint32_t n_slots;
        bool detailed; /* set before targets are added */
        bool extremes; /* this, too */
        uint32_t n_targets, targets_allocated;
        struct rung_target {
                double *sums;    /* [slot][window]; NaN when no entity gave the slot a number */
                uint32_t *seen;  /* [window] entities that cover it */
                uint32_t *reset; /* [window] of those, entities that began a new life in it */
                /* Of a detailed table: the sum of the keys of those entities, so that equal sums
                 * mean the same ones; and how many of them gave the slot a number. There, reset
                 * counts also what covers only a part of the window: a longer one may hold all of
                 * it. */
                uint64_t *marks; /* [window] */
                uint32_t *given; /* [slot][window] */
                /* With extremes, of slots of one term: the lowest and the highest rate from row to
                 * row (of a gauge: value) of any of the entities; NaN unknown. */
                double *low, *high; /* [slot][window] */
        } * targets;
};

int rung_table_new(const struct rung_windows *windows, uint32_t n_slots, struct rung_table **ret);
struct rung_table *rung_table_free(struct rung_table *table);
DEFINE_CLEANUP(rung_table, struct rung_table *, rung_table_free)
/* -E2BIG: RUNG_VALUES_MAX. -ENOMEM. */
int rung_table_add_target(struct rung_table *table, uint32_t *ret);
double rung_sum(const struct rung_table *table, uint32_t target, uint32_t slot, uint32_t window);

/* What the rows of all entities of one source have in common: the columns that the terms name. */
struct rung_schema {
        const struct rung_term *terms;
        uint32_t n_terms, n_slots, n_columns;
        uint16_t metrics[RUNG_COLUMNS_MAX]; /* [n_columns], each once, in the order of the terms */
        enum rung_kind {
                RUNG_WIDE,   /* a 64-bit counter: going down means a new life */
                RUNG_NARROW, /* a 32-bit counter: wraps */
                RUNG_GAUGE,
        } kinds[RUNG_COLUMNS_MAX];
        uint16_t term_column[RUNG_COLUMNS_MAX];
        uint16_t slot_terms[RUNG_SLOTS_MAX];
        bool slot_gauge[RUNG_SLOTS_MAX];
};
/* @terms stays the caller's and must outlive @ret. -EINVAL: too many, or not a metric. */
int rung_schema_init(const struct rung_term *terms, uint32_t n_terms, struct rung_schema *ret);

/* Counters of two lives have nothing to do with each other. */
struct rung_life {
        struct id boot;    /* zero where a reboot of the sampling host means nothing (pools) */
        uint64_t instance; /* process start, device sequence */
        uint64_t identity; /* a hash */
};

struct rung_rows {
        struct rung_life life;
        uint64_t interval_us;
        uint32_t n;
        const int64_t *times_us; /* [n] */
        const uint8_t *present;  /* [n], or NULL: all */
        const uint8_t *torn;     /* [n], or NULL: between the row and the one before is a hole,
                                    however near they are */
        const uint64_t *const
                *values; /* [schema columns][n]; NULL for a column that is not there */
        /* Of a tier, as in tier.h: the lowest and highest since the row before; or NULL. */
        const uint64_t *const *low, *const *high; /* [schema columns][n] */
};

/* How far one entity has come. */
struct rung_cursor;
int rung_cursor_new(const struct rung_schema *schema, struct rung_cursor **ret);
struct rung_cursor *rung_cursor_free(struct rung_cursor *cursor);
DEFINE_CLEANUP(rung_cursor, struct rung_cursor *, rung_cursor_free)
/* What a detailed table adds up for the entity; spread well over 64 bits. */
void rung_cursor_set_key(struct rung_cursor *cursor, uint64_t key);
/* Rows of one entity, later than those before; rows that are not are left out. */
void rung_feed(struct rung_cursor *cursor, struct rung_table *table, uint32_t target,
        const struct rung_rows *rows);
/* After the last row: closes the window under way. */
void rung_finish(struct rung_cursor *cursor, struct rung_table *table, uint32_t target);
