/* Tables of totals: blocks of totals added up over windows. */
#include "collectord/total.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool total_is_kept(enum source_id source, enum query_by by)
{
        return (source == SOURCE_DISKSTATS || source == SOURCE_OSD) &&
               (by == QUERY_BY_CLUSTER || by == QUERY_BY_CLASS || by == QUERY_BY_HOST);
}

uint32_t total_terms(enum source_id source, struct rung_term terms[RUNG_COLUMNS_MAX])
{
        const struct metric *all;
        uint32_t n = 0;
        size_t count;

        all = metric_all(&count);
        for (size_t i = 0; i < count && n < RUNG_COLUMNS_MAX; i++)
                if (all[i].source == source && all[i].kind == METRIC_COUNTER) {
                        terms[n] = (struct rung_term){
                                .scale = 1, .metric = all[i].id, .slot = (uint16_t)n};
                        n++;
                }
        return n;
}

int total_table_init(struct total_table *table, const struct rung_windows *windows,
        const uint16_t *metrics, uint32_t n_metrics)
{
        *table = (struct total_table){.windows = *windows, .n_metrics = n_metrics};
        memcpy(table->metrics, metrics, n_metrics * sizeof(*metrics));
        table->covered_us = calloc(windows->n, sizeof(*table->covered_us));
        table->steps = calloc(windows->n, sizeof(*table->steps));
        table->column =
                calloc((size_t)(2 * n_metrics + 3) * BLOCK_ROWS_MAX, sizeof(*table->column));
        if (!table->covered_us || !table->steps || !table->column)
                return -ENOMEM;
        return block_decoder_new(&table->decoder);
}

void total_table_done(struct total_table *table)
{
        for (uint32_t i = 0; i < table->n; i++) {
                free(table->targets[i].name);
                free(table->targets[i].sums);
                free(table->targets[i].given);
                free(table->targets[i].seen);
                free(table->targets[i].reset);
                free(table->targets[i].marks);
                free(table->targets[i].steps);
        }
        free(table->targets);
        free(table->covered_us);
        free(table->steps);
        free(table->column);
        block_decoder_free(table->decoder);
}

static int add_target(struct total_table *table, const char *name, struct total_target **ret)
{
        size_t n = table->windows.n, values = n * table->n_metrics + 1;
        struct total_target *target;

        if (table->n == table->allocated) {
                uint32_t allocated = table->allocated ? table->allocated * 2 : 16;
                struct total_target *targets =
                        reallocarray(table->targets, allocated, sizeof(*targets));

                if (!targets)
                        return -ENOMEM;
                table->targets = targets;
                table->allocated = allocated;
        }
        if ((table->n + (size_t)1) * values > RUNG_VALUES_MAX)
                return -E2BIG;
        target = &table->targets[table->n++];
        *target = (struct total_target){
                .name = strdup(name),
                .sums = calloc(values, sizeof(*target->sums)),
                .given = calloc(values, sizeof(*target->given)),
                .seen = calloc(n, sizeof(*target->seen)),
                .reset = calloc(n, sizeof(*target->reset)),
                .marks = calloc(n, sizeof(*target->marks)),
                .steps = calloc(n, sizeof(*target->steps)),
        };
        *ret = target;
        return target->name && target->sums && target->given && target->seen && target->reset &&
                               target->marks && target->steps
                       ? 0
                       : -ENOMEM;
}

/* Blocks have the targets mostly in the same order: @guess. */
static int get_target(
        struct total_table *table, const char *name, uint32_t guess, struct total_target **ret)
{
        if (guess < table->n && strcmp(table->targets[guess].name, name) == 0) {
                *ret = &table->targets[guess];
                return 0;
        }
        for (uint32_t i = 0; i < table->n; i++)
                if (strcmp(table->targets[i].name, name) == 0) {
                        *ret = &table->targets[i];
                        return 0;
                }
        return add_target(table, name, ret);
}

/* Columns of one entity: sums, given, then seen, reset, mark. False: one is not there. */
static bool read_columns(struct total_table *table, const struct block *block, uint32_t entity)
{
        static const uint16_t others[] = {TOTAL_SEEN, TOTAL_RESET, TOTAL_MARK};
        uint32_t column, n = table->n_metrics;

        for (uint32_t i = 0; i < 2 * n + 3; i++) {
                uint16_t metric = i < n       ? table->metrics[i]
                                  : i < 2 * n ? table->metrics[i - n] | TOTAL_GIVEN
                                              : others[i - 2 * n];

                if (block_find_column(block, entity, metric, &column) < 0 ||
                        block_read_column(
                                block, column, table->column + (size_t)i * BLOCK_ROWS_MAX) < 0)
                        return false;
        }
        return true;
}

static void add_step(
        const struct total_table *table, struct total_target *target, uint32_t window, uint32_t row)
{
        const uint64_t *column = table->column + row;
        uint32_t n = table->n_metrics, windows = table->windows.n;
        const uint64_t *others = column + (size_t)2 * n * BLOCK_ROWS_MAX;
        uint32_t seen = (uint32_t)others[0], reset = (uint32_t)others[BLOCK_ROWS_MAX];
        uint64_t mark = others[(size_t)2 * BLOCK_ROWS_MAX];
        bool first = target->steps[window]++ == 0;

        if (first) {
                target->seen[window] = seen;
                target->marks[window] = mark;
        }
        if (reset > 0 || seen != target->seen[window] || mark != target->marks[window])
                target->reset[window] = TOTAL_TORN;
        for (uint32_t i = 0; i < n; i++) {
                size_t at = (size_t)i * windows + window;
                uint32_t given = (uint32_t)column[(size_t)(n + i) * BLOCK_ROWS_MAX];

                target->sums[at] += column[(size_t)i * BLOCK_ROWS_MAX];
                if (first)
                        target->given[at] = given;
                else if (given != target->given[at])
                        target->reset[window] = TOTAL_TORN;
        }
}

/* The window that the step belongs to, or -1. */
static int64_t window_of(const struct rung_windows *windows, int64_t begin_us, const bool *skip)
{
        int64_t window;

        if (begin_us < windows->from_us)
                return -1;
        window = (begin_us - windows->from_us) / (int64_t)windows->step_us;
        return window < (int64_t)windows->n && !(skip && skip[window]) ? window : -1;
}

static int add_block(struct total_table *table, const struct block *block, const bool *skip)
{
        const struct block_header *header = block_get_header(block);
        const int64_t *times = block_get_times(block);

        for (uint32_t entity = 0; entity < block_get_n_entities(block); entity++) {
                struct total_target *target = NULL;
                int r = get_target(table, block_get_entity(block, entity)->name, entity, &target);

                if (r < 0)
                        return r;
                if (!read_columns(table, block, entity)) {
                        table->lacking = true;
                        return 0;
                }
                for (uint32_t row = 0; row < header->rows; row++) {
                        int64_t window = window_of(&table->windows, times[row], skip);

                        if (window >= 0)
                                add_step(table, target, (uint32_t)window, row);
                }
        }
        for (uint32_t row = 0; row < header->rows; row++) {
                int64_t window = window_of(&table->windows, times[row], skip);

                if (window >= 0) {
                        table->covered_us[window] += header->interval_us;
                        table->steps[window]++;
                }
        }
        return 0;
}

int total_table_add(struct total_table *table, const struct store_total *total, const bool *skip,
        bool *ret_broken)
{
        const struct rung_windows *windows = &table->windows;
        const struct block *block = NULL;
        const struct block_header *header;
        int r;

        r = block_decode(table->decoder, total->bytes, total->size, &block);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                *ret_broken = true;
                return 0;
        }
        header = block_get_header(block);
        if (!id_equal(&header->cluster, &total->cluster) || header->source != total->source ||
                header->flags || header->interval_us == 0)
                return 0;
        if (windows->step_us % header->interval_us != 0 ||
                windows->from_us % (int64_t)header->interval_us != 0)
                return 0;
        return add_block(table, block, skip);
}

bool total_table_is_whole(const struct total_table *table, uint32_t window)
{
        return !table->lacking && table->covered_us[window] == table->windows.step_us;
}

bool total_target_is_exact(
        const struct total_table *table, const struct total_target *target, uint32_t window)
{
        return target->reset[window] == 0 &&
               (target->steps[window] == 0 || target->steps[window] == table->steps[window]);
}
