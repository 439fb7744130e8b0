#include "collectord/tier.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/gather.h"
#include "lib/metric.h"

#define HOLE_INTERVALS 3u /* as in rung.c */
#define HOLE_SLACK_US 1000000u
#define LATE_MAX_US 5000000u /* of a row behind its tick: more is a hole */

enum column_kind { COLUMN_WIDE, COLUMN_NARROW, COLUMN_GAUGE, COLUMN_UNKNOWN };

/* A column of the blocks below, and where its lowest and highest come from and go to. */
struct source_column {
        enum column_kind kind;
        uint32_t entity;
        uint32_t low, high; /* columns below, NO_COLUMN: it is raw */
};
#define NO_COLUMN UINT32_MAX

struct tier {
        uint64_t interval_us;
        merge_function function;
        void *userdata;
        struct block_decoder *decoder;
        struct gather gather;
        struct block_header header; /* of the blocks below */
        struct source_column *list; /* [n]: columns that are no lowest or highest themselves */
        uint32_t *from;             /* [n] their columns below */
        uint32_t n, n_below;
        /* The row before, which is kept when the next one is in another window. */
        bool pending, kept;
        int64_t last_us;
        uint64_t *last, *low, *high; /* [n] */
        uint8_t *last_present;
        uint32_t blocks;
        /* The block at hand. */
        uint64_t *values; /* [rows][n_below] */
        size_t values_allocated;
        uint64_t column[BLOCK_ROWS_MAX];
};

int tier_new(uint64_t interval_us, merge_function function, void *userdata, struct tier **ret)
{
        CLEANUP(tier) struct tier *tier = calloc(1, sizeof(*tier));
        int r;

        if (!tier)
                return -ENOMEM;
        tier->interval_us = interval_us;
        tier->function = function;
        tier->userdata = userdata;
        r = gather_init(&tier->gather);
        if (r < 0)
                return r;
        r = block_decoder_new(&tier->decoder);
        if (r < 0)
                return r;
        *ret = STEAL(tier);
        return 0;
}

static void drop_schema(struct tier *tier)
{
        free(tier->list);
        free(tier->from);
        free(tier->last);
        free(tier->low);
        free(tier->high);
        free(tier->last_present);
        tier->list = NULL;
        tier->from = NULL;
        tier->last = tier->low = tier->high = NULL;
        tier->last_present = NULL;
}

struct tier *tier_free(struct tier *tier)
{
        if (!tier)
                return NULL;
        gather_done(&tier->gather);
        block_decoder_free(tier->decoder);
        drop_schema(tier);
        free(tier->values);
        free(tier);
        return NULL;
}

/* ---- what goes out ---- */

static int flush(struct tier *tier)
{
        struct gather *gather = &tier->gather;
        struct merge_piece piece = {.rows = gather->rows, .blocks = 1};
        int r;

        if (gather->rows == 0)
                return 0;
        piece.first_us = gather->times_us[0];
        piece.last_us = gather->times_us[gather->rows - 1];
        r = gather_encode(gather, &piece.bytes, &piece.size);
        gather->rows = 0;
        gather->absent = false;
        return r < 0 ? r : tier->function(tier->userdata, &piece);
}

static void forget_range(struct tier *tier)
{
        for (uint32_t i = 0; i < tier->n; i++) {
                tier->low[i] = UINT64_MAX;
                tier->high[i] = 0;
        }
}

/* Columns of an entity: its metrics, their lowest, their highest. */
static void put_values(struct tier *tier, uint64_t *to)
{
        for (uint32_t begin = 0, end; begin < tier->n; begin = end) {
                uint32_t count;

                for (end = begin; end < tier->n; end++)
                        if (tier->list[end].entity != tier->list[begin].entity)
                                break;
                count = end - begin;
                for (uint32_t i = begin; i < end; i++) {
                        bool known = tier->low[i] <= tier->high[i];

                        to[i - begin] = tier->last[i];
                        to[i - begin + count] = known ? tier->low[i] : 1;
                        to[i - begin + 2 * (size_t)count] = known ? tier->high[i] : 0;
                }
                to += 3 * (size_t)count;
        }
}

/* The row before becomes one of the tier's. */
static int keep_last(struct tier *tier)
{
        struct gather *gather = &tier->gather;
        int r;

        if (!tier->pending || tier->kept)
                return 0;
        if (gather->rows == gather_rows_max(gather->n_columns, MERGE_ROWS_MAX)) {
                r = flush(tier);
                if (r < 0)
                        return r;
        }
        r = gather_reserve(gather, 1);
        if (r < 0)
                return r;
        gather->times_us[gather->rows] = tier->last_us;
        put_values(tier, gather->values + (size_t)gather->rows * gather->n_columns);
        for (uint32_t i = 0; i < gather->n_entities; i++) {
                gather->present[(size_t)gather->rows * gather->n_entities + i] =
                        tier->last_present[i];
                gather->absent |= !tier->last_present[i];
        }
        gather->rows++;
        tier->kept = true;
        forget_range(tier);
        return 0;
}

int tier_finish(struct tier *tier)
{
        int r;

        r = keep_last(tier);
        if (r < 0)
                return r;
        tier->pending = false;
        tier->n_below = 0;
        tier->header = (struct block_header){0};
        return flush(tier);
}

/* ---- the schema ---- */

static enum column_kind kind_of(uint16_t id)
{
        const struct metric *metric = metric_get(id);

        if (!metric)
                return COLUMN_UNKNOWN;
        if (metric->kind == METRIC_GAUGE)
                return COLUMN_GAUGE;
        return metric->width == 32 ? COLUMN_NARROW : COLUMN_WIDE;
}

static int allocate_schema(struct tier *tier, uint32_t n_columns, uint32_t n_entities)
{
        drop_schema(tier);
        tier->list = calloc(n_columns + 1, sizeof(*tier->list));
        tier->from = calloc(n_columns + 1, sizeof(*tier->from));
        tier->last = calloc(n_columns + 1, sizeof(*tier->last));
        tier->low = calloc(n_columns + 1, sizeof(*tier->low));
        tier->high = calloc(n_columns + 1, sizeof(*tier->high));
        tier->last_present = calloc(n_entities + 1, 1);
        return tier->list && tier->from && tier->last && tier->low && tier->high &&
                               tier->last_present
                       ? 0
                       : -ENOMEM;
}

static void read_schema(struct tier *tier, const struct block *block)
{
        const struct block_column *columns = block_get_columns(block);

        tier->n = 0;
        for (uint32_t i = 0; i < block_get_n_columns(block); i++) {
                struct source_column *column = &tier->list[tier->n];

                if (columns[i].metric & TIER_FLAGS)
                        continue;
                *column = (struct source_column){.kind = kind_of(columns[i].metric),
                        .entity = columns[i].entity,
                        .low = NO_COLUMN,
                        .high = NO_COLUMN};
                if (block_find_column(block, columns[i].entity, columns[i].metric | TIER_LOWEST,
                            &column->low) < 0 ||
                        block_find_column(block, columns[i].entity,
                                columns[i].metric | TIER_HIGHEST, &column->high) < 0)
                        column->low = column->high = NO_COLUMN;
                tier->from[tier->n++] = i;
        }
}

static int begin_schema(struct tier *tier, const struct block *block)
{
        const struct block_column *columns = block_get_columns(block);
        CLEANUP(mem) struct block_column *list = NULL;
        uint32_t n = 0;
        int r;

        r = allocate_schema(tier, block_get_n_columns(block), block_get_n_entities(block));
        if (r < 0)
                return r;
        read_schema(tier, block);
        list = calloc((size_t)tier->n * 3 + 1, sizeof(*list));
        if (!list)
                return -ENOMEM;
        for (uint32_t begin = 0, end; begin < tier->n; begin = end) {
                static const uint16_t flags[] = {0, TIER_LOWEST, TIER_HIGHEST};

                for (end = begin; end < tier->n; end++)
                        if (tier->list[end].entity != tier->list[begin].entity)
                                break;
                for (uint32_t k = 0; k < 3; k++)
                        for (uint32_t i = begin; i < end; i++)
                                list[n++] = (struct block_column){tier->list[i].entity,
                                        columns[tier->from[i]].metric | flags[k]};
        }
        r = gather_begin(&tier->gather, block, list, n);
        if (r < 0)
                return r;
        tier->header = *block_get_header(block);
        /* Rows that came less often than the windows are stay as far apart as they were. */
        tier->gather.header.interval_us = tier->header.interval_us > tier->interval_us
                                                  ? tier->header.interval_us
                                                  : tier->interval_us;
        tier->n_below = block_get_n_columns(block);
        forget_range(tier);
        return 0;
}

/* ---- what comes in ---- */

static bool same_schema(const struct tier *tier, const struct block_header *header)
{
        return tier->pending && id_equal(&tier->header.boot, &header->boot) &&
               id_equal(&tier->header.cluster, &header->cluster) &&
               tier->header.schema_hash == header->schema_hash &&
               tier->header.interval_us == header->interval_us;
}

static bool went_down(const struct tier *tier, const uint64_t *row)
{
        for (uint32_t i = 0; i < tier->n; i++) {
                uint64_t before = tier->last[i], after = row[tier->from[i]];

                if (tier->list[i].kind == COLUMN_WIDE && after < before)
                        return true;
                if (tier->list[i].kind == COLUMN_NARROW && (uint32_t)(after - before) > INT32_MAX)
                        return true;
        }
        return false;
}

/* The pair of the row before and this one, in the ranges. */
static void add_pair(
        struct tier *tier, const struct block *block, uint32_t at, const uint64_t *row, int64_t us)
{
        double factor = 1e9 / (double)us;

        for (uint32_t i = 0; i < tier->n; i++) {
                const struct source_column *column = &tier->list[i];
                uint64_t low, high, before = tier->last[i], after = row[tier->from[i]];

                if (!tier->last_present[column->entity] ||
                        !block_is_present(block, column->entity, at))
                        continue;
                if (column->low != NO_COLUMN) {
                        low = row[column->low];
                        high = row[column->high];
                        if (low > high)
                                continue;
                } else if (column->kind == COLUMN_GAUGE || column->kind == COLUMN_UNKNOWN) {
                        low = high = after;
                } else {
                        uint64_t increase = column->kind == COLUMN_NARROW
                                                    ? (uint32_t)(after - before)
                                                    : after - before;

                        low = high = (uint64_t)fmin(round((double)increase * factor), 9e18);
                }
                if (low < tier->low[i])
                        tier->low[i] = low;
                if (high > tier->high[i])
                        tier->high[i] = high;
        }
}

/* A little behind its end: the row read at the very edge, and late for that, is its last. */
static int64_t window_of(const struct tier *tier, int64_t time_us)
{
        uint64_t late_us = tier->header.interval_us / 2;

        if (late_us > LATE_MAX_US)
                late_us = LATE_MAX_US;
        return (time_us - (int64_t)late_us) / (int64_t)tier->interval_us;
}

static int add_row(struct tier *tier, const struct block *block, uint32_t at, const uint64_t *row)
{
        int64_t time_us = block_get_times(block)[at], distance_us = time_us - tier->last_us;
        bool torn;
        int r;

        if (tier->pending && distance_us <= 0)
                return 0;
        torn = !tier->pending ||
               (uint64_t)distance_us > HOLE_INTERVALS * tier->header.interval_us + HOLE_SLACK_US ||
               went_down(tier, row);
        if (torn || window_of(tier, tier->last_us) != window_of(tier, time_us)) {
                r = keep_last(tier);
                if (r < 0)
                        return r;
        }
        if (!torn)
                add_pair(tier, block, at, row, distance_us);
        for (uint32_t i = 0; i < tier->n; i++)
                tier->last[i] = row[tier->from[i]];
        for (uint32_t i = 0; i < tier->gather.n_entities; i++)
                tier->last_present[i] = block_is_present(block, i, at);
        tier->last_us = time_us;
        tier->pending = true;
        tier->kept = false;
        return torn ? keep_last(tier) : 0;
}

static int read_values(struct tier *tier, const struct block *block)
{
        uint32_t rows = block_get_header(block)->rows, n = block_get_n_columns(block);
        size_t needed = (size_t)rows * n;
        int r;

        if (needed > tier->values_allocated) {
                uint64_t *values = reallocarray(NULL, needed, sizeof(*values));

                if (!values)
                        return -ENOMEM;
                free(tier->values);
                tier->values = values;
                tier->values_allocated = needed;
        }
        for (uint32_t i = 0; i < n; i++) {
                r = block_read_column(block, i, tier->column);
                if (r < 0)
                        return r;
                for (uint32_t row = 0; row < rows; row++)
                        tier->values[(size_t)row * n + i] = tier->column[row];
        }
        return 0;
}

int tier_add(struct tier *tier, const uint8_t *bytes, size_t size)
{
        const struct block *block = NULL;
        const struct block_header *header;
        int r;

        r = block_decode(tier->decoder, bytes, size, &block);
        if (r < 0)
                return r;
        header = block_get_header(block);
        if (header->flags & BLOCK_FLAG_GAP)
                return -EBADMSG;
        if (!same_schema(tier, header)) {
                r = tier_finish(tier);
                if (r == 0)
                        r = begin_schema(tier, block);
                if (r < 0)
                        return r;
        }
        r = read_values(tier, block);
        for (uint32_t row = 0; row < header->rows && r == 0; row++)
                r = add_row(
                        tier, block, row, tier->values + (size_t)row * block_get_n_columns(block));
        return r;
}
