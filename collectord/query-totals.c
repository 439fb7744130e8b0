/* A query's windows from totals, where they are what the blocks would give. */
#include "collectord/total.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fill {
        const struct query *query;
        struct total_table *table;
        const bool *done; /* [window] */
};

static int see_total(void *userdata, const struct store_total *total)
{
        struct fill *fill = userdata;
        bool broken = false;
        int r;

        r = query_check_deadline(fill->query);
        if (r == 0)
                r = total_table_add(fill->table, total, fill->done, &broken);
        if (broken)
                store_reader_count_rotten(fill->query->reader);
        return r;
}

static uint32_t column_of(const struct total_table *table, uint16_t metric)
{
        uint32_t i = 0;

        while (i < table->n_metrics && table->metrics[i] != metric)
                i++;
        return i;
}

/*
 * The slots of one target in one window. False when some of the entities did not tell a metric and
 * others did: which of them lack what, only the blocks know.
 */
static bool sum_terms(const struct query_spec *spec, const struct total_table *table,
        const struct total_target *target, uint32_t window, double *sums, uint32_t n_slots)
{
        bool missing[RUNG_SLOTS_MAX] = {0};
        uint32_t seen = target->seen[window];

        for (uint32_t i = 0; i < n_slots; i++)
                sums[i] = NAN;
        for (uint32_t i = 0; i < spec->n_terms && seen > 0; i++) {
                const struct rung_term *term = &spec->terms[i];
                size_t at = (size_t)column_of(table, term->metric) * table->windows.n + window;
                double value = (double)target->sums[at] / TOTAL_SCALE * term->scale;

                if (target->given[at] == seen)
                        sums[term->slot] =
                                isnan(sums[term->slot]) ? value : sums[term->slot] + value;
                else if (target->given[at] > 0 || term->need == RUNG_NEED_ENTITY)
                        return false;
                else if (term->need == RUNG_NEED_SLOT)
                        missing[term->slot] = true;
        }
        for (uint32_t i = 0; i < n_slots; i++)
                if (missing[i])
                        sums[i] = NAN;
        return true;
}

static bool is_usable(const struct query_spec *spec, const struct total_table *table,
        uint32_t window, uint32_t n_slots)
{
        double sums[RUNG_SLOTS_MAX];

        if (!total_table_is_whole(table, window))
                return false;
        for (uint32_t i = 0; i < table->n; i++)
                if (!total_target_is_exact(table, &table->targets[i], window) ||
                        !sum_terms(spec, table, &table->targets[i], window, sums, n_slots))
                        return false;
        return true;
}

/* A target that was, and that the facts do not know any more, has no place in the result: the
 * blocks would not give it either. */
static bool find_target(const struct query_result *result, const char *name, uint32_t *ret)
{
        for (uint32_t i = 0; i < result->table->n_targets; i++)
                if (strcmp(result->targets[i].key, name) == 0) {
                        *ret = i;
                        return true;
                }
        return false;
}

static void take_windows(const struct query_spec *spec, const struct total_table *table,
        struct query_result *result, bool *usable, bool *open)
{
        uint32_t n = table->windows.n, n_slots = result->schema.n_slots;
        double sums[RUNG_SLOTS_MAX];

        for (uint32_t window = 0; window < n; window++)
                usable[window] = open[window] && is_usable(spec, table, window, n_slots);
        for (uint32_t i = 0; i < table->n; i++) {
                struct rung_target *target;
                uint32_t index;

                if (!find_target(result, table->targets[i].name, &index))
                        continue;
                target = &result->table->targets[index];
                for (uint32_t window = 0; window < n; window++) {
                        if (!usable[window] || table->targets[i].steps[window] == 0)
                                continue;
                        sum_terms(spec, table, &table->targets[i], window, sums, n_slots);
                        target->seen[window] = table->targets[i].seen[window];
                        for (uint32_t slot = 0; slot < n_slots; slot++)
                                target->sums[(size_t)slot * n + window] = sums[slot];
                }
        }
        for (uint32_t window = 0; window < n; window++)
                if (usable[window])
                        open[window] = false;
}

/* The span of windows that are open; false when none is. */
static bool open_span(
        const struct rung_windows *windows, const bool *open, int64_t *from_us, int64_t *to_us)
{
        uint32_t first = 0, last = windows->n;

        while (first < windows->n && !open[first])
                first++;
        while (last > first && !open[last - 1])
                last--;
        *from_us = windows->from_us + (int64_t)(first * windows->step_us);
        *to_us = windows->from_us + (int64_t)(last * windows->step_us);
        return first < last;
}

static int fill_tier(const struct query *query, const struct query_spec *spec, unsigned tier,
        const uint16_t *metrics, uint32_t n_metrics, struct query_result *result, bool *open)
{
        struct store_total which = {.cluster = query->topology->clusters[spec->cluster].fsid,
                .source = spec->source,
                .by = spec->by};
        struct total_table storage = {0};
        CLEANUP(total_table) struct total_table *table = &storage;
        CLEANUP(mem) bool *flags = calloc(spec->windows.n, 2 * sizeof(*flags));
        bool *done = flags, *usable = flags + spec->windows.n;
        struct fill fill = {query, table, done};
        int64_t from_us, to_us;
        int r;

        if (!flags)
                return -ENOMEM;
        if (!open_span(&spec->windows, open, &from_us, &to_us))
                return 0;
        for (uint32_t i = 0; i < spec->windows.n; i++)
                done[i] = !open[i];
        r = total_table_init(table, &spec->windows, metrics, n_metrics);
        if (r == 0)
                r = store_read_totals(
                        query->reader, &which, tier, from_us, to_us, see_total, &fill);
        if (r == 0 && table->n > 0)
                take_windows(spec, table, result, usable, open);
        return r;
}

int total_fill(const struct query *query, const struct query_spec *spec,
        struct query_result *result, bool *open)
{
        static const uint64_t steps_us[STORE_TOTAL_TIERS] = {1000000, 60000000, 3600000000u};
        const struct rung_schema *schema = &result->schema;
        int r = 0;

        if (!total_is_kept(spec->source, spec->by) || spec->entity || spec->host)
                return 0;
        for (uint32_t i = 0; i < schema->n_columns; i++)
                if (schema->kinds[i] == RUNG_GAUGE)
                        return 0;
        for (unsigned tier = STORE_TOTAL_TIERS; tier-- > 0 && r == 0;)
                if (spec->windows.step_us % steps_us[tier] == 0 &&
                        spec->windows.from_us % (int64_t)steps_us[tier] == 0)
                        r = fill_tier(query, spec, tier, schema->metrics, schema->n_columns, result,
                                open);
        return r == -E2BIG ? 0 : r;
}
