#include "collectord/rung.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HOLE_INTERVALS 3u      /* one or two missed rows are no hole */
#define HOLE_SLACK_US 1000000u /* nor is a short interval's late row */
#define TIER_UNIT 1e-3         /* of a tier's lowest and highest rate, see tier.h */

enum pair_kind { PAIR_OK, PAIR_RESET, PAIR_UNKNOWN };

struct rung_cursor {
        const struct rung_schema *schema;
        bool started;
        uint64_t key;
        struct rung_life life;
        uint64_t interval_us;
        int64_t last_us;
        uint64_t last[RUNG_COLUMNS_MAX];
        bool have[RUNG_COLUMNS_MAX];

        /* The window under way, -1 before the first. */
        int64_t window;
        uint64_t covered_us; /* of it, by rows */
        uint64_t reset_us;   /* of that, across the begin of a new life */
        bool touched;        /* a hole begins or ends in it */
        bool broken;         /* an edge lies in a hole, or a needed column was not there */
        double pending[RUNG_SLOTS_MAX];
        bool given[RUNG_SLOTS_MAX], missing[RUNG_SLOTS_MAX];
};

/* What a pair of rows adds. */
struct pair {
        int64_t begin_us, end_us;
        enum pair_kind kind;
        bool hole;
        double slots[RUNG_SLOTS_MAX];
        bool given[RUNG_SLOTS_MAX], missing[RUNG_SLOTS_MAX];
};

const char *rung_state_name(enum rung_state state)
{
        static const char *const names[] = {
                [RUNG_OK] = "ok",
                [RUNG_SHORT] = "short",
                [RUNG_CONTAMINATED] = "contaminated",
                [RUNG_PARTIAL] = "partial",
                [RUNG_RESET] = "reset",
                [RUNG_IDLE] = "idle",
                [RUNG_GAP] = "gap",
        };

        assert((size_t)state < sizeof(names) / sizeof(names[0]));
        return names[state];
}

int rung_table_new(const struct rung_windows *windows, uint32_t n_slots, struct rung_table **ret)
{
        struct rung_table *table;

        assert(windows->n > 0 && windows->step_us > 0 && n_slots <= RUNG_SLOTS_MAX);
        table = calloc(1, sizeof(*table));
        if (!table)
                return -ENOMEM;
        table->windows = *windows;
        table->n_slots = n_slots;
        *ret = table;
        return 0;
}

struct rung_table *rung_table_free(struct rung_table *table)
{
        if (!table)
                return NULL;
        for (uint32_t i = 0; i < table->n_targets; i++) {
                free(table->targets[i].sums);
                free(table->targets[i].seen);
                free(table->targets[i].marks);
                free(table->targets[i].given);
                free(table->targets[i].low);
                free(table->targets[i].high);
        }
        free(table->targets);
        free(table);
        return NULL;
}

static int add_details(struct rung_table *table, uint32_t index)
{
        struct rung_target *target = &table->targets[index];

        target->marks = calloc(table->windows.n, sizeof(*target->marks));
        target->given =
                calloc((size_t)table->windows.n * table->n_slots + 1, sizeof(*target->given));
        return target->marks && target->given ? 0 : -ENOMEM;
}

static int add_extremes(struct rung_table *table, uint32_t index)
{
        struct rung_target *target = &table->targets[index];
        size_t n = (size_t)table->windows.n * table->n_slots;

        target->low = malloc((n + 1) * sizeof(*target->low));
        target->high = malloc((n + 1) * sizeof(*target->high));
        if (!target->low || !target->high)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                target->low[i] = target->high[i] = NAN;
        return 0;
}

int rung_table_add_target(struct rung_table *table, uint32_t *ret)
{
        size_t windows = table->windows.n, values = windows * table->n_slots;
        CLEANUP(mem) double *sums = NULL;
        struct rung_target *targets;
        uint32_t *seen;
        int r;

        if ((table->n_targets + (size_t)1) * values * (table->extremes ? 3u : 1u) > RUNG_VALUES_MAX)
                return -E2BIG;
        if (table->n_targets == table->targets_allocated) {
                size_t n = table->targets_allocated ? table->targets_allocated * 2 : 8;

                targets = reallocarray(table->targets, n, sizeof(*targets));
                if (!targets)
                        return -ENOMEM;
                table->targets = targets;
                table->targets_allocated = n;
        }
        sums = malloc(sizeof(*sums) * (values ? values : 1));
        seen = calloc(windows * 2, sizeof(*seen));
        if (!sums || !seen) {
                free(seen);
                return -ENOMEM;
        }
        for (size_t i = 0; i < values; i++)
                sums[i] = NAN;
        *ret = table->n_targets;
        table->targets[table->n_targets++] = (struct rung_target){
                .sums = STEAL(sums),
                .seen = seen,
                .reset = seen + windows,
        };
        r = table->detailed ? add_details(table, *ret) : 0;
        return r == 0 && table->extremes ? add_extremes(table, *ret) : r;
}

double rung_sum(const struct rung_table *table, uint32_t target, uint32_t slot, uint32_t window)
{
        return table->targets[target].sums[(size_t)slot * table->windows.n + window];
}

int rung_schema_init(const struct rung_term *terms, uint32_t n_terms, struct rung_schema *ret)
{
        struct rung_schema schema = {.terms = terms, .n_terms = n_terms};

        if (n_terms > RUNG_COLUMNS_MAX)
                return -EINVAL;
        for (uint32_t i = 0; i < n_terms; i++) {
                const struct metric *metric = metric_get(terms[i].metric);
                uint32_t column = 0;

                if (!metric || terms[i].slot >= RUNG_SLOTS_MAX)
                        return -EINVAL;
                while (column < schema.n_columns && schema.metrics[column] != terms[i].metric)
                        column++;
                if (column == schema.n_columns) {
                        schema.metrics[column] = terms[i].metric;
                        schema.kinds[column] = metric->kind == METRIC_GAUGE ? RUNG_GAUGE
                                               : metric->width == 32        ? RUNG_NARROW
                                                                            : RUNG_WIDE;
                        schema.n_columns++;
                }
                schema.term_column[i] = column;
                schema.slot_terms[terms[i].slot]++;
                schema.slot_gauge[terms[i].slot] = metric->kind == METRIC_GAUGE;
                if (terms[i].slot >= schema.n_slots)
                        schema.n_slots = terms[i].slot + 1u;
        }
        *ret = schema;
        return 0;
}

int rung_cursor_new(const struct rung_schema *schema, struct rung_cursor **ret)
{
        struct rung_cursor *cursor = calloc(1, sizeof(*cursor));

        if (!cursor)
                return -ENOMEM;
        cursor->schema = schema;
        cursor->window = -1;
        *ret = cursor;
        return 0;
}

void rung_cursor_set_key(struct rung_cursor *cursor, uint64_t key)
{
        cursor->key = key;
}

struct rung_cursor *rung_cursor_free(struct rung_cursor *cursor)
{
        free(cursor);
        return NULL;
}

static void add_slot(struct rung_cursor *cursor, struct rung_table *table,
        struct rung_target *target, uint32_t slot)
{
        double *sum = &target->sums[(size_t)slot * table->windows.n + (size_t)cursor->window];
        double value = cursor->pending[slot];

        if (!cursor->given[slot] || cursor->missing[slot])
                return;
        /* A gauge's mean over the time it is known for holds for the whole window. */
        if (cursor->schema->slot_gauge[slot])
                value *= (double)table->windows.step_us /
                         (double)(cursor->covered_us - cursor->reset_us);
        *sum = isnan(*sum) ? value : *sum + value;
        if (target->given)
                target->given[(size_t)slot * table->windows.n + (size_t)cursor->window]++;
}

void rung_finish(struct rung_cursor *cursor, struct rung_table *table, uint32_t target_index)
{
        struct rung_target *target = &table->targets[target_index];
        uint32_t n_slots = cursor->schema->n_slots;

        if (cursor->window >= 0 && !cursor->broken &&
                cursor->covered_us == table->windows.step_us) {
                target->seen[cursor->window]++;
                if (cursor->reset_us > 0)
                        target->reset[cursor->window]++;
                if (target->marks)
                        target->marks[cursor->window] += cursor->key;
                for (uint32_t slot = 0; slot < n_slots; slot++)
                        add_slot(cursor, table, target, slot);
        } else if (target->marks && cursor->window >= 0 &&
                   (cursor->covered_us > 0 || cursor->touched))
                target->reset[cursor->window]++;
        cursor->window = -1;
        cursor->covered_us = cursor->reset_us = 0;
        cursor->broken = cursor->touched = false;
        memset(cursor->pending, 0, sizeof(cursor->pending[0]) * n_slots);
        memset(cursor->given, 0, n_slots);
        memset(cursor->missing, 0, n_slots);
}

/* Marks what the pair means in the window under way, which it overlaps by @overlap_us. */
static void add_pair(struct rung_cursor *cursor, const struct pair *pair, uint64_t overlap_us)
{
        uint64_t length_us = (uint64_t)(pair->end_us - pair->begin_us);
        double share = (double)overlap_us / (double)length_us;

        if (pair->kind == PAIR_UNKNOWN || (pair->hole && overlap_us != length_us)) {
                cursor->broken = true;
                return;
        }
        cursor->covered_us += overlap_us;
        if (pair->kind == PAIR_RESET) {
                cursor->reset_us += overlap_us;
                return;
        }
        for (uint32_t slot = 0; slot < cursor->schema->n_slots; slot++) {
                cursor->pending[slot] += pair->slots[slot] * share;
                cursor->given[slot] |= pair->given[slot];
                cursor->missing[slot] |= pair->missing[slot];
        }
}

static void spread_pair(struct rung_cursor *cursor, struct rung_table *table, uint32_t target,
        const struct pair *pair)
{
        const struct rung_windows *windows = &table->windows;
        int64_t step_us = (int64_t)windows->step_us;
        int64_t first, last;

        if (pair->end_us <= windows->from_us)
                return;
        first = pair->begin_us <= windows->from_us ? 0
                                                   : (pair->begin_us - windows->from_us) / step_us;
        last = (pair->end_us - 1 - windows->from_us) / step_us;
        for (int64_t i = first; i <= last && i < (int64_t)windows->n; i++) {
                int64_t begin_us = windows->from_us + i * step_us, end_us = begin_us + step_us;

                if (i != cursor->window) {
                        rung_finish(cursor, table, target);
                        cursor->window = i;
                }
                cursor->touched |=
                        pair->hole && (pair->begin_us >= begin_us || pair->end_us <= end_us);
                if (begin_us < pair->begin_us)
                        begin_us = pair->begin_us;
                if (end_us > pair->end_us)
                        end_us = pair->end_us;
                add_pair(cursor, pair, (uint64_t)(end_us - begin_us));
        }
}

/*
 * A 32-bit counter wraps, so only an increase of more than half its range tells that it went down:
 * no time counter gains 24 days between two rows, but some kernels let one step back a little.
 */
static bool is_down(enum rung_kind kind, uint64_t before, uint64_t after)
{
        switch (kind) {
        case RUNG_WIDE:
                return after < before;
        case RUNG_NARROW:
                return (uint32_t)(after - before) > INT32_MAX;
        case RUNG_GAUGE:
                break;
        }
        return false;
}

static bool went_down(const struct rung_cursor *cursor, const struct rung_rows *rows, uint32_t row)
{
        const struct rung_schema *schema = cursor->schema;

        for (uint32_t i = 0; i < schema->n_columns; i++)
                if (rows->values[i] && cursor->have[i] &&
                        is_down(schema->kinds[i], cursor->last[i], rows->values[i][row]))
                        return true;
        return false;
}

static double increase(enum rung_kind kind, uint64_t before, uint64_t after, double seconds)
{
        switch (kind) {
        case RUNG_GAUGE:
                return ((double)before + (double)after) / 2 * seconds;
        case RUNG_NARROW:
                return (double)(uint32_t)(after - before);
        case RUNG_WIDE:
                break;
        }
        return (double)(after - before);
}

static void measure_pair(const struct rung_cursor *cursor, const struct rung_rows *rows,
        uint32_t row, struct pair *pair)
{
        const struct rung_schema *schema = cursor->schema;
        double seconds = (double)(pair->end_us - pair->begin_us) / 1e6;

        memset(pair->slots, 0, sizeof(pair->slots[0]) * schema->n_slots);
        memset(pair->given, 0, schema->n_slots);
        memset(pair->missing, 0, schema->n_slots);
        for (uint32_t i = 0; i < schema->n_terms; i++) {
                const struct rung_term *term = &schema->terms[i];
                uint32_t column = schema->term_column[i];

                if (rows->values[column] && cursor->have[column]) {
                        pair->slots[term->slot] +=
                                term->scale * increase(schema->kinds[column], cursor->last[column],
                                                      rows->values[column][row], seconds);
                        pair->given[term->slot] = true;
                } else if (term->need == RUNG_NEED_ENTITY)
                        pair->kind = PAIR_UNKNOWN;
                else if (term->need == RUNG_NEED_SLOT)
                        pair->missing[term->slot] = true;
        }
}

/* What is known of a column between the rows of the pair. A tier's row that does not know (the
 * first of a block) has its mean, which is between the two. */
static bool range_of(const struct rung_cursor *cursor, const struct rung_rows *rows, uint32_t row,
        uint32_t column, const struct pair *pair, double *ret_low, double *ret_high)
{
        enum rung_kind kind = cursor->schema->kinds[column];
        double seconds = (double)(pair->end_us - pair->begin_us) / 1e6;

        if (!rows->values[column])
                return false;
        if (rows->low && rows->low[column] && rows->high[column] &&
                rows->low[column][row] <= rows->high[column][row]) {
                double unit = kind == RUNG_GAUGE ? 1 : TIER_UNIT;

                *ret_low = (double)rows->low[column][row] * unit;
                *ret_high = (double)rows->high[column][row] * unit;
                return true;
        }
        if (pair->kind != PAIR_OK || pair->hole || !cursor->have[column])
                return false;
        *ret_low = *ret_high = kind == RUNG_GAUGE ? (double)rows->values[column][row]
                                                  : increase(kind, cursor->last[column],
                                                            rows->values[column][row], seconds) /
                                                            seconds;
        return true;
}

/* Rows at a window's edge are read a little after it: a pair is where most of it is. */
static void take_extremes(const struct rung_cursor *cursor, struct rung_table *table,
        struct rung_target *target, const struct rung_rows *rows, uint32_t row,
        const struct pair *pair)
{
        const struct rung_schema *schema = cursor->schema;
        const struct rung_windows *windows = &table->windows;
        int64_t middle_us = pair->begin_us + (pair->end_us - pair->begin_us) / 2;
        int64_t window = (middle_us - windows->from_us) / (int64_t)windows->step_us;

        if (middle_us < windows->from_us || window >= (int64_t)windows->n)
                return;
        for (uint32_t i = 0; i < schema->n_terms; i++) {
                const struct rung_term *term = &schema->terms[i];
                size_t at = (size_t)term->slot * windows->n + (size_t)window;
                double low, high;

                if (schema->slot_terms[term->slot] != 1 ||
                        !range_of(cursor, rows, row, schema->term_column[i], pair, &low, &high))
                        continue;
                target->low[at] = fmin(target->low[at], low * term->scale);
                target->high[at] = fmax(target->high[at], high * term->scale);
        }
}

static void take_row(struct rung_cursor *cursor, struct rung_table *table, uint32_t target,
        const struct rung_rows *rows, uint32_t row, bool new_life)
{
        uint64_t interval_us =
                rows->interval_us > cursor->interval_us ? rows->interval_us : cursor->interval_us;
        struct pair pair;

        pair.begin_us = cursor->last_us;
        pair.end_us = rows->times_us[row];
        pair.kind = PAIR_OK;
        pair.hole = (uint64_t)(pair.end_us - pair.begin_us) >
                            HOLE_INTERVALS * interval_us + HOLE_SLACK_US ||
                    (rows->torn && rows->torn[row]);
        if (new_life || went_down(cursor, rows, row))
                pair.kind = PAIR_RESET;
        else
                measure_pair(cursor, rows, row, &pair);
        spread_pair(cursor, table, target, &pair);
        if (table->extremes)
                take_extremes(cursor, table, &table->targets[target], rows, row, &pair);
}

static bool life_equal(const struct rung_life *a, const struct rung_life *b)
{
        return id_equal(&a->boot, &b->boot) && a->instance == b->instance &&
               a->identity == b->identity;
}

/* The last row before the windows: what is between two rows before them changes none. */
static uint32_t first_row(const struct rung_windows *windows, const struct rung_rows *rows)
{
        uint32_t first = 0, end = rows->n;

        while (first < end) {
                uint32_t middle = first + (end - first) / 2;

                if (rows->times_us[middle] > windows->from_us)
                        end = middle;
                else
                        first = middle + 1;
        }
        while (first > 0) {
                first--;
                if (!rows->present || rows->present[first])
                        break;
        }
        return first;
}

void rung_feed(struct rung_cursor *cursor, struct rung_table *table, uint32_t target,
        const struct rung_rows *rows)
{
        const struct rung_schema *schema = cursor->schema;
        bool new_life = cursor->started && !life_equal(&cursor->life, &rows->life);

        for (uint32_t row = first_row(&table->windows, rows); row < rows->n; row++) {
                if (rows->present && !rows->present[row])
                        continue;
                if (cursor->started && rows->times_us[row] <= cursor->last_us)
                        continue;
                if (cursor->started)
                        take_row(cursor, table, target, rows, row, new_life);
                new_life = false;
                cursor->started = true;
                cursor->life = rows->life;
                cursor->interval_us = rows->interval_us;
                cursor->last_us = rows->times_us[row];
                for (uint32_t i = 0; i < schema->n_columns; i++) {
                        cursor->have[i] = rows->values[i];
                        if (rows->values[i])
                                cursor->last[i] = rows->values[i][row];
                }
        }
}
