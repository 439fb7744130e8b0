/* Making totals: of each slot that was marked, as soon as all that is expected has come. */
#include "collectord/total.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/gather.h"

#define SLOTS_MAX 64u                 /* that are looked at in a step */
#define PATIENCE_US INT64_C(30000000) /* for agents that have not delivered */
#define RUN_MAX 16u                   /* slots that are made of one reading of the blocks */
#define LISTS_MAX 4096u               /* blocks of one slot */

struct total_maker {
        struct store_keeper *keeper;
        struct store_reader *reader;
        struct store_ages ages;
        struct block_encoder *encoder;
        struct store_total *list;
        uint32_t n;
        uint64_t *values;
        size_t values_allocated;
};

int total_maker_new(struct store_keeper *keeper, const char *folder, const struct store_ages *ages,
        struct total_maker **ret)
{
        CLEANUP(total_maker) struct total_maker *maker = calloc(1, sizeof(*maker));
        int r;

        if (!maker)
                return -ENOMEM;
        maker->keeper = keeper;
        maker->ages = *ages;
        maker->list = calloc(LISTS_MAX, sizeof(*maker->list));
        if (!maker->list)
                return -ENOMEM;
        r = store_reader_open(folder, &maker->reader);
        if (r == 0)
                r = block_encoder_new(&maker->encoder);
        if (r < 0)
                return r;
        *ret = STEAL(maker);
        return 0;
}

int total_maker_share(struct total_maker *maker, struct query_share *share)
{
        return query_share_join(share, maker->reader);
}

static void drop_list(struct total_maker *maker)
{
        for (uint32_t i = 0; i < maker->n; i++)
                free((void *)maker->list[i].bytes);
        maker->n = 0;
}

struct total_maker *total_maker_free(struct total_maker *maker)
{
        if (!maker)
                return NULL;
        drop_list(maker);
        free(maker->list);
        store_reader_close(maker->reader);
        block_encoder_free(maker->encoder);
        free(maker->values);
        free(maker);
        return NULL;
}

/* ---- a block of totals ---- */

struct shape {
        const struct store_total *which;
        const struct rung_windows *windows;
        const uint16_t *metrics;
        uint32_t n_metrics, n_targets;
};

static int fill_schema(const struct shape *shape, struct block_column *columns)
{
        static const uint16_t others[] = {TOTAL_SEEN, TOTAL_RESET, TOTAL_MARK};
        uint32_t n = 0;

        for (uint32_t target = 0; target < shape->n_targets; target++) {
                for (uint32_t i = 0; i < shape->n_metrics; i++)
                        columns[n++] = (struct block_column){target, shape->metrics[i]};
                for (uint32_t i = 0; i < shape->n_metrics; i++)
                        columns[n++] = (struct block_column){
                                target, (uint16_t)(shape->metrics[i] | TOTAL_GIVEN)};
                for (uint32_t i = 0; i < 3; i++)
                        columns[n++] = (struct block_column){target, others[i]};
        }
        return (int)n;
}

static int reserve_values(struct total_maker *maker, size_t n)
{
        uint64_t *values;

        if (n <= maker->values_allocated)
                return 0;
        values = reallocarray(NULL, n, sizeof(*values));
        if (!values)
                return -ENOMEM;
        free(maker->values);
        maker->values = values;
        maker->values_allocated = n;
        return 0;
}

static int add_encoded(
        struct total_maker *maker, const struct store_total *which, const struct block_rows *rows)
{
        struct store_total total = *which;
        const uint8_t *bytes;
        uint8_t *copy;
        int r;

        if (maker->n == LISTS_MAX)
                return -E2BIG;
        r = block_encode(maker->encoder, rows, &bytes, &total.size);
        if (r < 0)
                return r;
        copy = malloc(total.size);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, bytes, total.size);
        total.bytes = copy;
        total.first_us = rows->times_us[0];
        total.last_us = rows->times_us[rows->header.rows - 1];
        maker->list[maker->n++] = total;
        return 0;
}

/* maker->values has the rows of @kept windows, whose begins are @times. */
static int add_block(struct total_maker *maker, const struct shape *shape, const char *const *names,
        const int64_t *times, uint32_t kept)
{
        uint32_t width = 2 * shape->n_metrics + 3;
        CLEANUP(mem)
        struct block_entity *entities = calloc(shape->n_targets + 1, sizeof(*entities));
        CLEANUP(mem)
        struct block_column *columns =
                calloc((size_t)shape->n_targets * width + 1, sizeof(*columns));
        struct block_rows rows = {
                .header = {.cluster = shape->which->cluster,
                        .source = (uint16_t)shape->which->source,
                        .sequence = (uint64_t)times[0],
                        .interval_us = shape->windows->step_us,
                        .rows = kept},
                .entities = entities,
                .n_entities = shape->n_targets,
                .columns = columns,
                .times_us = times,
                .values = maker->values,
        };

        if (!entities || !columns)
                return -ENOMEM;
        for (uint32_t i = 0; i < shape->n_targets; i++)
                entities[i] = (struct block_entity){.name = names[i], .identity = ""};
        rows.n_columns = (uint32_t)fill_schema(shape, columns);
        return add_encoded(maker, shape->which, &rows);
}

/* ---- of the blocks ---- */

#define N_GROUPS 3u
static const enum query_by groups[N_GROUPS] = {QUERY_BY_CLUSTER, QUERY_BY_CLASS, QUERY_BY_HOST};

/* Sixteenths, rounded so that sums over steps stay within one. */
static uint64_t next_sixteenths(double *sum, double value)
{
        double before = round(*sum * TOTAL_SCALE);

        *sum += value;
        return (uint64_t)(round(*sum * TOTAL_SCALE) - before);
}

/* Windows @first to @last - 1. */
static void fill_values(const struct rung_table *table, uint32_t first, uint32_t last,
        uint32_t n_metrics, uint64_t *values)
{
        uint32_t width = 2 * n_metrics + 3, n = table->windows.n;
        size_t row = (size_t)width * table->n_targets;

        for (uint32_t t = 0; t < table->n_targets; t++) {
                const struct rung_target *target = &table->targets[t];
                uint64_t *to = values + (size_t)t * width;

                for (uint32_t i = 0; i < n_metrics; i++) {
                        double sum = 0;

                        for (uint32_t w = first; w < last; w++) {
                                double value = target->sums[(size_t)i * n + w];

                                to[(w - first) * row + i] =
                                        isnan(value) ? 0 : next_sixteenths(&sum, value);
                                to[(w - first) * row + n_metrics + i] =
                                        target->given[(size_t)i * n + w];
                        }
                }
                for (uint32_t w = first; w < last; w++) {
                        uint64_t *others = to + (w - first) * row + 2 * (size_t)n_metrics;

                        others[0] = target->seen[w];
                        others[1] = target->reset[w];
                        others[2] = target->marks[w];
                }
        }
}

/* The windows of one slot. */
static int make_block(struct total_maker *maker, const struct query_result *result,
        const struct store_total *which, uint32_t first, uint32_t n)
{
        const struct rung_table *table = result->table;
        uint32_t n_metrics = result->schema.n_columns;
        CLEANUP(mem) const char **names = calloc(table->n_targets + 1, sizeof(*names));
        int64_t times[60];
        struct shape shape = {
                which, &table->windows, result->schema.metrics, n_metrics, table->n_targets};
        int r;

        if (!names)
                return -ENOMEM;
        r = reserve_values(maker, (size_t)(2 * n_metrics + 3) * table->n_targets * n + 1);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < table->n_targets; i++)
                names[i] = result->targets[i].key;
        for (uint32_t w = 0; w < n; w++)
                times[w] = table->windows.from_us + (int64_t)((first + w) * table->windows.step_us);
        fill_values(table, first, first + n, n_metrics, maker->values);
        return add_block(maker, &shape, names, times, n);
}

/* The longest interval of the cluster's streams, as a part of a minute. */
static uint64_t step_of(const struct query *query, uint32_t cluster, enum source_id source)
{
        static const uint64_t steps[] = {1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60};
        uint64_t interval_us = 0;
        uint32_t host;

        for (size_t i = 0; i < query->n_streams; i++)
                if (query->streams[i].source == source &&
                        query->streams[i].interval_us > interval_us &&
                        topology_find_host(query->topology, &query->streams[i].host, &host) == 0 &&
                        topology_host_in(query->topology, host, cluster))
                        interval_us = query->streams[i].interval_us;
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
                if (steps[i] * 1000000 >= interval_us)
                        return steps[i] * 1000000;
        return 60000000;
}

/* @slots[n], one after the other without a hole. */
static int make_cluster(struct total_maker *maker, const struct query *query, uint32_t cluster,
        const struct store_total_slot *slots, size_t n)
{
        struct query_result *results[N_GROUPS] = {0};
        struct rung_term terms[RUNG_COLUMNS_MAX];
        struct query_spec spec = {.cluster = cluster,
                .source = slots[0].source,
                .terms = terms,
                .n_terms = total_terms(slots[0].source, terms),
                .exact = true,
                .detailed = true};
        uint32_t steps;
        int r = 0;

        spec.windows.from_us = slots[0].from_us;
        spec.windows.step_us = step_of(query, cluster, slots[0].source);
        steps = (uint32_t)((uint64_t)STORE_TOTAL_SLOT_US / spec.windows.step_us);
        spec.windows.n = (uint32_t)n * steps;
        for (size_t i = 0; i < N_GROUPS && r == 0; i++) {
                spec.by = groups[i];
                r = query_run(query, &spec, &results[i]);
        }
        for (size_t k = 0; k < n && r == 0; k++)
                for (size_t i = 0; i < N_GROUPS && r == 0; i++) {
                        struct store_total which = {
                                .cluster = query->topology->clusters[cluster].fsid,
                                .source = slots[0].source,
                                .by = groups[i]};

                        if (results[i]->table->n_targets > 0)
                                r = make_block(
                                        maker, results[i], &which, (uint32_t)k * steps, steps);
                }
        for (size_t i = 0; i < N_GROUPS; i++)
                query_result_free(results[i]);
        return r;
}

static int compare_totals(const void *a, const void *b)
{
        const struct store_total *x = a, *y = b;
        int order = memcmp(x->cluster.bytes, y->cluster.bytes, sizeof(x->cluster.bytes));

        if (x->first_us != y->first_us)
                return x->first_us < y->first_us ? -1 : 1;
        return order ? order : (x->by > y->by) - (x->by < y->by);
}

/* 1: made; 0: something has yet to come. */
static int make_slots(
        struct total_maker *maker, int64_t now_us, const struct store_total_slot *slots, size_t n)
{
        CLEANUP(query) struct query *query = NULL;
        int64_t to_us = slots[n - 1].to_us;
        int r;

        r = query_open(maker->reader, now_us, 0, &query);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < query->topology->n_clusters; i++)
                if (query_frontier(query, i, 1u << slots[0].source) < to_us &&
                        now_us < to_us + PATIENCE_US)
                        return 0;
        for (uint32_t i = 0; i < query->topology->n_clusters; i++) {
                r = make_cluster(maker, query, i, slots, n);
                if (r < 0)
                        return r;
        }
        if (maker->n > 0)
                qsort(maker->list, maker->n, sizeof(*maker->list), compare_totals);
        return 1;
}

/* ---- of the totals one tier below ---- */

static int see_total(void *userdata, const struct store_total *total)
{
        bool broken = false;

        return total_table_add(userdata, total, NULL, &broken);
}

/* Rows of whole windows; a window that is not one sum says so, and is answered from the blocks. */
static uint32_t fill_sums(const struct total_table *table, uint64_t *values, int64_t *times)
{
        uint32_t n = table->windows.n, m = table->n_metrics, kept = 0;
        uint64_t *to = values;

        for (uint32_t w = 0; w < n; w++) {
                if (!total_table_is_whole(table, w))
                        continue;
                times[kept++] = table->windows.from_us + (int64_t)(w * table->windows.step_us);
                for (uint32_t t = 0; t < table->n; t++, to += 2 * (size_t)m + 3) {
                        const struct total_target *target = &table->targets[t];

                        for (uint32_t i = 0; i < m; i++) {
                                to[i] = target->sums[(size_t)i * n + w];
                                to[m + i] = target->given[(size_t)i * n + w];
                        }
                        to[2 * (size_t)m] = target->seen[w];
                        to[2 * (size_t)m + 1] =
                                total_target_is_exact(table, target, w) ? 0 : TOTAL_TORN;
                        to[2 * (size_t)m + 2] = target->marks[w];
                }
        }
        return kept;
}

static int compose_group(struct total_maker *maker, const struct store_total *which,
        const struct store_total_slot *slot, uint64_t step_us)
{
        struct rung_windows windows = {slot->from_us, step_us,
                (uint32_t)((slot->to_us - slot->from_us) / (int64_t)step_us)};
        struct total_table storage = {0};
        CLEANUP(total_table) struct total_table *table = &storage;
        CLEANUP(mem) int64_t *times = calloc(windows.n, sizeof(*times));
        CLEANUP(mem) const char **names = NULL;
        struct rung_term terms[RUNG_COLUMNS_MAX];
        uint16_t metrics[RUNG_COLUMNS_MAX];
        uint32_t n = total_terms(which->source, terms), kept;
        struct shape shape = {which, &windows, metrics, n, 0};
        int r;

        for (uint32_t i = 0; i < n; i++)
                metrics[i] = terms[i].metric;
        r = times ? total_table_init(table, &windows, metrics, n) : -ENOMEM;
        if (r == 0)
                r = store_read_totals(maker->reader, which, slot->tier - 1, slot->from_us,
                        slot->to_us, see_total, table);
        if (r < 0 || table->n == 0)
                return r;
        shape.n_targets = table->n;
        names = calloc(table->n, sizeof(*names));
        r = names ? reserve_values(maker, (size_t)(2 * n + 3) * table->n * windows.n) : -ENOMEM;
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < table->n; i++)
                names[i] = table->targets[i].name;
        kept = fill_sums(table, maker->values, times);
        return kept > 0 ? add_block(maker, &shape, names, times, kept) : 0;
}

static int compose_slot(
        struct total_maker *maker, int64_t now_us, const struct store_total_slot *slot)
{
        static const uint64_t steps_us[] = {0, 60000000, 3600000000u};
        CLEANUP(query) struct query *query = NULL;
        int r;

        r = query_open(maker->reader, now_us, 0, &query);
        for (uint32_t i = 0; r == 0 && i < query->topology->n_clusters; i++)
                for (size_t k = 0; k < N_GROUPS && r == 0; k++) {
                        struct store_total which = {.cluster = query->topology->clusters[i].fsid,
                                .source = slot->source,
                                .by = groups[k]};

                        r = compose_group(maker, &which, slot, steps_us[slot->tier]);
                }
        return r < 0 ? r : 1;
}

/* ---- a step ---- */

static int64_t age_of(const struct total_maker *maker, unsigned tier)
{
        return tier <= 1 ? maker->ages.raw_us : maker->ages.minute_us;
}

/* 1: the slots were made, or are too old to be; what is in those then stays as it is. */
static int try_slots(
        struct total_maker *maker, int64_t now_us, const struct store_total_slot *slots, size_t n)
{
        int64_t age_us = age_of(maker, slots[0].tier);
        int r;

        if (age_us > 0 && slots[0].from_us < now_us - age_us)
                return 1;
        if (slots[n - 1].to_us + (slots[0].tier > 0 ? PATIENCE_US : 0) > now_us)
                return 0;
        r = store_reader_begin(maker->reader);
        if (r < 0)
                return r;
        r = slots[0].tier == 0 ? make_slots(maker, now_us, slots, n)
                               : compose_slot(maker, now_us, slots);
        store_reader_end(maker->reader);
        return r;
}

/* @slots[n] descend: those that follow the last of them from @from on, ascending in @ret. */
static size_t take_run(const struct store_total_slot *slots, size_t n, size_t from,
        struct store_total_slot ret[RUN_MAX])
{
        size_t count = 1, max = slots[from].tier == 0 ? RUN_MAX : 1;
        struct store_total_slot run[RUN_MAX] = {slots[from]};

        for (size_t i = from + 1; i < n && count < max; i++)
                if (slots[i].source == slots[from].source &&
                        slots[i].to_us == run[count - 1].from_us)
                        run[count++] = slots[i];
        for (size_t i = 0; i < count; i++)
                ret[i] = run[count - 1 - i];
        return count;
}

static int make_tier(
        struct total_maker *maker, unsigned tier, int64_t now_us, struct store_step **ret)
{
        struct store_total_slot slots[SLOTS_MAX], run[RUN_MAX];
        size_t n = 0;
        int r;

        r = store_keeper_total_slots(maker->keeper, tier, SLOTS_MAX, slots, &n);
        for (size_t i = 0; i < n && r == 0; i++) {
                size_t count = take_run(slots, n, i, run);

                r = try_slots(maker, now_us, run, count);
                if (r > 0) {
                        r = store_keeper_put_totals(
                                maker->keeper, run, count, maker->list, maker->n, ret);
                        drop_list(maker);
                        return r < 0 ? r : 1;
                }
                drop_list(maker);
        }
        return r;
}

int total_maker_step(struct total_maker *maker, int64_t now_us, struct store_step **ret)
{
        int r = 0;

        for (unsigned tier = 0; tier < STORE_TOTAL_TIERS && r == 0; tier++)
                r = make_tier(maker, tier, now_us, ret);
        return r;
}
