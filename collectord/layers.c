#include "collectord/layers.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/expected.h"
#include "collectord/query-map.h"

#define DIRECTIONS 2
#define MEASURES 2
#define PERIOD_DEFAULT_US 5000000u /* mgr_stats_period */

/* Slots of the noise pass over the entity "cluster". */
enum { GAUGE_RECOVERING, GAUGE_SCRUBBING, GAUGE_SNAPTRIM };
static const struct rung_term gauge_terms[] = {
        {.metric = METRIC_POOL_PGS_RECOVERING, .slot = GAUGE_RECOVERING, .scale = 1},
        {.metric = METRIC_POOL_PGS_SCRUBBING, .slot = GAUGE_SCRUBBING, .scale = 1},
        {.metric = METRIC_POOL_PGS_SNAPTRIM, .slot = GAUGE_SNAPTRIM, .scale = 1},
};

/* The terms of one source, put together from definitions. */
struct pass {
        struct rung_term terms[RUNG_COLUMNS_MAX];
        uint32_t n_terms, n_slots;
        struct query_result *result;
};

struct layers {
        const struct query *query;
        struct layers_spec spec;
        struct series_definition definitions[LAYER_MAX_][DIRECTIONS][MEASURES];
        uint32_t slot[LAYER_MAX_][DIRECTIONS][MEASURES]; /* first slot in its pass */
        uint32_t pool_write_slot, recovered_slot;
        struct pass osd, devices, pools, gauges;
        struct layers_target *targets;
        size_t n_targets;
        uint32_t *osds;            /* by device: targets of the OSDs' pass, see layers_target */
        struct expected_pool *mix; /* [pools], scratch */
};

static struct pass *pass_of(struct layers *layers, enum layer layer)
{
        if (layer == LAYER_FILESYSTEM)
                return &layers->pools;
        return layer == LAYER_STORAGE ? &layers->devices : &layers->osd;
}

static uint32_t add_terms(struct pass *pass, const struct rung_term *terms, uint32_t n)
{
        uint32_t first = pass->n_slots;

        for (uint32_t i = 0; i < n; i++) {
                assert(pass->n_terms < RUNG_COLUMNS_MAX);
                pass->terms[pass->n_terms] = terms[i];
                pass->terms[pass->n_terms].slot += first;
                if (pass->terms[pass->n_terms].slot >= pass->n_slots)
                        pass->n_slots = pass->terms[pass->n_terms].slot + 1u;
                pass->n_terms++;
        }
        return first;
}

static void add_layer(struct layers *layers, enum layer layer)
{
        static const char *const names[DIRECTIONS][MEASURES] = {
                [RATIO_WRITE] = {"write_bytes", "write_ops"},
                [RATIO_READ] = {"read_bytes", "read_ops"},
        };
        struct pass *pass = pass_of(layers, layer);

        for (unsigned direction = 0; direction < DIRECTIONS; direction++)
                for (unsigned measure = 0; measure < MEASURES; measure++) {
                        struct series_definition *d =
                                &layers->definitions[layer][direction][measure];
                        int r;

                        if (!(layers->spec.directions & 1u << direction) ||
                                !(layers->spec.measures & 1u << measure))
                                continue;
                        r = series_find(layer, names[direction][measure], d);
                        assert(r == 0);
                        layers->slot[layer][direction][measure] =
                                add_terms(pass, d->terms, d->n_terms);
                }
}

static int run_pass(struct layers *layers, struct pass *pass, enum source_id source,
        enum query_by by, const char *entity)
{
        struct query_spec spec = {
                .cluster = layers->spec.cluster,
                .source = source,
                .windows = layers->spec.windows,
                .by = by,
                .terms = pass->terms,
                .n_terms = pass->n_terms,
                .entity = entity,
        };

        if (pass->n_terms == 0)
                return 0;
        return query_run(layers->query, &spec, &pass->result);
}

static int read_passes(struct layers *layers)
{
        static const struct rung_term write_term = {.metric = METRIC_POOL_WRITE_BYTES, .scale = 1};
        /* The larger of what primaries pushed and what others received tells how much moved. */
        static const struct rung_term recovered_terms[] = {
                {.metric = METRIC_OSD_RECOVERY_BYTES,
                        .slot = 0,
                        .scale = 1,
                        .need = RUNG_NEED_OPTIONAL},
                {.metric = METRIC_OSD_SUBOP_PUSH_IN_BYTES,
                        .slot = 1,
                        .scale = 1,
                        .need = RUNG_NEED_OPTIONAL},
        };
        unsigned asked = layers->spec.layers;
        bool mixed = asked & (LAYERS_BIT(LAYER_OBJECTSTORE) | LAYERS_BIT(LAYER_STORAGE));
        int r;

        for (enum layer layer = LAYER_FILESYSTEM; layer < LAYER_MAX_; layer++)
                if (asked & LAYERS_BIT(layer))
                        add_layer(layers, layer);
        layers->pool_write_slot = add_terms(&layers->pools, &write_term, 1);
        if (mixed && layers->spec.by != QUERY_BY_POOL) {
                layers->recovered_slot = add_terms(&layers->osd, recovered_terms, 2);
                add_terms(&layers->gauges, gauge_terms, 3);
        }
        r = run_pass(layers, &layers->osd, SOURCE_OSD,
                layers->spec.by == QUERY_BY_DEVICE ? QUERY_BY_OSD : layers->spec.by, NULL);
        if (r < 0)
                return r;
        r = run_pass(layers, &layers->devices, SOURCE_DISKSTATS, layers->spec.by, NULL);
        if (r < 0)
                return r;
        r = run_pass(layers, &layers->pools, SOURCE_CEPH, QUERY_BY_POOL, NULL);
        if (r < 0)
                return r;
        return run_pass(
                layers, &layers->gauges, SOURCE_CEPH, QUERY_BY_CLUSTER, QUERY_CLUSTER_ENTITY);
}

/* ---- targets ---- */

static struct layers_target *get_target(
        struct layers *layers, struct query_map *map, const char *key)
{
        uint64_t hash = query_hash(key);
        uint32_t index;

        if (query_map_find(map, hash, &index) == 0)
                return &layers->targets[index];
        index = layers->n_targets;
        if (query_map_add(map, hash, index) < 0)
                return NULL;
        layers->targets[layers->n_targets++] = (struct layers_target){
                .key = key, .osd = TOPOLOGY_NONE, .devices = TOPOLOGY_NONE, .pool = TOPOLOGY_NONE};
        return &layers->targets[index];
}

static uint32_t count_targets(const struct pass *pass)
{
        return pass->result ? pass->result->table->n_targets : 0;
}

static int join_targets(struct layers *layers, struct query_map *map)
{
        struct layers_target *target;

        for (uint32_t i = 0; i < count_targets(&layers->osd); i++) {
                target = get_target(layers, map, layers->osd.result->targets[i].key);
                if (!target)
                        return -ENOMEM;
                target->osd = i;
        }
        for (uint32_t i = 0; i < count_targets(&layers->devices); i++) {
                target = get_target(layers, map, layers->devices.result->targets[i].key);
                if (!target)
                        return -ENOMEM;
                target->devices = i;
        }
        for (uint32_t i = 0; layers->spec.by == QUERY_BY_POOL && i < count_targets(&layers->pools);
                i++) {
                target = get_target(layers, map, layers->pools.result->targets[i].key);
                if (!target)
                        return -ENOMEM;
                target->pool = i;
        }
        /* The clients' side of a whole cluster belongs to no OSD. */
        if (layers->spec.by == QUERY_BY_CLUSTER && !get_target(layers, map, "cluster"))
                return -ENOMEM;
        return 0;
}

/* The OSDs that stand on a device, as targets of their pass. */
static void join_device(struct layers *layers, struct query_map *map, uint32_t index, size_t *n)
{
        const struct topology *topology = layers->query->topology;
        const struct query_target *of = &layers->devices.result->targets[index];
        const struct topology_device *device = &topology->devices[of->device];
        struct layers_target *target = &layers->targets[layers->n_targets++];

        *target = (struct layers_target){.key = of->key,
                .host = of->host,
                .osd = TOPOLOGY_NONE,
                .devices = index,
                .pool = TOPOLOGY_NONE,
                .first_osd = (uint32_t)*n};
        for (uint32_t i = 0; i < device->n_osds; i++) {
                const struct topology_osd *osd =
                        &topology->osds[topology->osd_of[device->first_osd + i]];
                char key[32];

                snprintf(key, sizeof(key), "osd.%" PRIu32, osd->id);
                if (osd->cluster != layers->spec.cluster ||
                        query_map_find(map, query_hash(key), &layers->osds[*n]) < 0)
                        continue;
                target->split |= osd->n_leaves > 1;
                target->n_osds++;
                ++*n;
        }
}

static int join_devices(struct layers *layers, struct query_map *map)
{
        size_t n = 0;
        int r = 0;

        layers->osds = calloc(layers->query->topology->n_osd_of + 1, sizeof(*layers->osds));
        if (!layers->osds)
                return -ENOMEM;
        for (uint32_t i = 0; i < count_targets(&layers->osd) && r == 0; i++)
                r = query_map_add(map, query_hash(layers->osd.result->targets[i].key), i);
        for (uint32_t i = 0; i < count_targets(&layers->devices) && r == 0; i++)
                if (layers->devices.result->targets[i].device != TOPOLOGY_NONE)
                        join_device(layers, map, i, &n);
        return r;
}

int layers_open(const struct query *query, const struct layers_spec *spec, struct layers **ret)
{
        CLEANUP(layers) struct layers *layers = calloc(1, sizeof(*layers));
        struct query_map map = {0};
        size_t n;
        int r;

        if (!layers)
                return -ENOMEM;
        layers->query = query;
        layers->spec = *spec;
        r = read_passes(layers);
        if (r < 0)
                return r;
        n = count_targets(&layers->osd) + count_targets(&layers->devices) +
            count_targets(&layers->pools) + 1;
        layers->targets = calloc(n, sizeof(*layers->targets));
        layers->mix = calloc(count_targets(&layers->pools) + 1, sizeof(*layers->mix));
        if (!layers->targets || !layers->mix)
                return -ENOMEM;
        r = spec->by == QUERY_BY_DEVICE ? join_devices(layers, &map) : join_targets(layers, &map);
        query_map_done(&map);
        if (r < 0)
                return r;
        *ret = STEAL(layers);
        return 0;
}

struct layers *layers_close(struct layers *layers)
{
        if (!layers)
                return NULL;
        query_result_free(layers->osd.result);
        query_result_free(layers->devices.result);
        query_result_free(layers->pools.result);
        query_result_free(layers->gauges.result);
        free(layers->targets);
        free(layers->osds);
        free(layers->mix);
        free(layers);
        return NULL;
}

const struct layers_target *layers_get_targets(const struct layers *layers, size_t *ret_count)
{
        *ret_count = layers->n_targets;
        return layers->targets;
}

/* ---- rungs ---- */

static void read_sums(const struct query_result *result, uint32_t target, uint32_t first_slot,
        uint32_t n, uint32_t window, double *ret)
{
        for (uint32_t i = 0; i < n; i++)
                ret[i] = rung_sum(result->table, target, first_slot + i, window);
}

static void read_rung(const struct query_result *result, uint32_t target,
        const struct series_definition *definition, uint32_t slot, uint32_t window,
        struct ratio_rung *ret)
{
        double sums[SERIES_SLOTS_MAX];

        read_sums(result, target, slot, definition->n_slots, window, sums);
        ret->sum = series_total(definition, sums, result->targets[target].compaction_bytes);
        ret->seen = result->table->targets[target].seen[window];
        ret->reset = result->table->targets[target].reset[window];
        ret->expected = result->targets[target].expected;
        ret->shared = result->targets[target].shared;
}

/* All OSDs on a device. */
static void read_osds(const struct layers *layers, const struct layers_target *target,
        const struct series_definition *definition, uint32_t slot, uint32_t window,
        struct ratio_rung *ret)
{
        for (uint32_t i = 0; i < target->n_osds; i++) {
                struct ratio_rung osd = {0};

                read_rung(layers->osd.result, layers->osds[target->first_osd + i], definition, slot,
                        window, &osd);
                ret->seen += osd.seen;
                ret->reset += osd.reset;
                ret->expected += osd.expected;
                if (!isnan(osd.sum))
                        ret->sum = isnan(ret->sum) ? osd.sum : ret->sum + osd.sum;
        }
}

static const struct facts_cluster *facts_of(const struct layers *layers)
{
        return layers->query->topology->clusters[layers->spec.cluster].facts;
}

static const struct facts_pool *find_pool(const struct layers *layers, uint32_t id, uint32_t window)
{
        const struct rung_windows *windows = &layers->spec.windows;

        return topology_find_pool(layers->query->topology, layers->spec.cluster, id,
                windows->from_us + (int64_t)(window * windows->step_us));
}

/* One host told about all pools, so the sum is whole as soon as one of them is there. */
static void add_pools(const struct layers *layers, const struct series_definition *definition,
        uint32_t slot, uint32_t window, struct ratio_rung *ret)
{
        ret->expected = 1;
        for (uint32_t i = 0; i < count_targets(&layers->pools); i++) {
                struct ratio_rung pool = {0};

                read_rung(layers->pools.result, i, definition, slot, window, &pool);
                if (pool.seen == 0 || isnan(pool.sum))
                        continue;
                ret->sum = ret->seen ? ret->sum + pool.sum : pool.sum;
                ret->seen = 1;
                ret->reset |= pool.reset > 0;
        }
}

static bool erasure_took_writes(const struct layers *layers, uint32_t window)
{
        for (uint32_t i = 0; i < count_targets(&layers->pools); i++) {
                const struct facts_pool *pool =
                        find_pool(layers, layers->pools.result->targets[i].pool, window);

                if (pool && pool->erasure &&
                        rung_sum(layers->pools.result->table, i, layers->pool_write_slot, window) >
                                0)
                        return true;
        }
        return false;
}

static bool is_lagging(const struct layers *layers)
{
        const struct facts_cluster *facts = facts_of(layers);
        uint64_t period_us = facts && facts->mgr_stats_period_us ? facts->mgr_stats_period_us
                                                                 : PERIOD_DEFAULT_US;

        return layers->spec.windows.step_us < 2 * period_us;
}

void layers_rung(const struct layers *layers, const struct layers_target *target, enum layer layer,
        enum ratio_direction direction, enum ratio_measure measure, uint32_t window,
        struct ratio_rung *ret)
{
        const struct series_definition *definition =
                &layers->definitions[layer][direction][measure];
        uint32_t slot = layers->slot[layer][direction][measure];
        uint32_t index = layer == LAYER_STORAGE ? target->devices : target->osd;

        *ret = (struct ratio_rung){.layer = layer, .sum = NAN};
        if (layer == LAYER_FILESYSTEM) {
                ret->lagging = is_lagging(layers);
                if (target->pool != TOPOLOGY_NONE)
                        read_rung(
                                layers->pools.result, target->pool, definition, slot, window, ret);
                else
                        add_pools(layers, definition, slot, window, ret);
                return;
        }
        if (index != TOPOLOGY_NONE)
                read_rung(layer == LAYER_STORAGE ? layers->devices.result : layers->osd.result,
                        index, definition, slot, window, ret);
        if (layer != LAYER_STORAGE)
                read_osds(layers, target, definition, slot, window, ret);
        if (layer == LAYER_OSD && direction == RATIO_WRITE)
                ret->erasure = erasure_took_writes(layers, window);
}

static double larger(const double moved[2])
{
        return isnan(moved[0]) || moved[1] > moved[0] ? moved[1] : moved[0];
}

void layers_noise(const struct layers *layers, const struct layers_target *target, uint32_t window,
        struct ratio_noise *ret)
{
        double seconds = (double)layers->spec.windows.step_us / 1e6;

        *ret = (struct ratio_noise){NAN, NAN, NAN, NAN};
        if (layers->osd.result && layers->gauges.n_terms > 0 && target->osd != TOPOLOGY_NONE) {
                double moved[2];

                read_sums(
                        layers->osd.result, target->osd, layers->recovered_slot, 2, window, moved);
                ret->recovered_bytes = larger(moved);
        }
        for (uint32_t i = 0; i < target->n_osds && layers->gauges.n_terms > 0; i++) {
                double moved[2];

                read_sums(layers->osd.result, layers->osds[target->first_osd + i],
                        layers->recovered_slot, 2, window, moved);
                if (!isnan(larger(moved)))
                        ret->recovered_bytes =
                                larger(moved) +
                                (isnan(ret->recovered_bytes) ? 0 : ret->recovered_bytes);
        }
        if (count_targets(&layers->gauges) > 0) {
                double gauges[3];

                read_sums(layers->gauges.result, 0, 0, 3, window, gauges);
                ret->pgs_recovering = gauges[GAUGE_RECOVERING] / seconds;
                ret->pgs_scrubbing = gauges[GAUGE_SCRUBBING] / seconds;
                ret->pgs_snaptrim = gauges[GAUGE_SNAPTRIM] / seconds;
        }
}

double layers_expected_write(const struct layers *layers, const struct layers_target *target,
        uint32_t window, const char **ret_unknown)
{
        size_t n = 0;

        for (uint32_t i = 0; i < count_targets(&layers->pools); i++) {
                const struct query_target *pool = &layers->pools.result->targets[i];

                if (target->pool != TOPOLOGY_NONE && target->pool != i)
                        continue;
                layers->mix[n++] = (struct expected_pool){
                        .name = pool->key,
                        .bytes = rung_sum(
                                layers->pools.result->table, i, layers->pool_write_slot, window),
                        .factor = expected_factor(find_pool(layers, pool->pool, window)),
                };
        }
        return expected_write(layers->mix, n, ret_unknown);
}

void layers_ratio(const struct layers *layers, const struct layers_target *target, enum layer upper,
        enum layer lower, enum ratio_direction direction, enum ratio_measure measure,
        uint32_t window, struct ratio_input *ret)
{
        *ret = (struct ratio_input){
                .direction = direction,
                .measure = measure,
                .seconds = (double)layers->spec.windows.step_us / 1e6,
        };
        layers_rung(layers, target, upper, direction, measure, window, &ret->upper);
        layers_rung(layers, target, lower, direction, measure, window, &ret->lower);
        layers_noise(layers, target, window, &ret->noise);
        ret->expected = expected_between(upper, direction, measure,
                layers_expected_write(layers, target, window, &ret->unknown_pool));
        /* Which share of an OSD's bytes goes to which of its devices is not configured. */
        if (target->split)
                ret->expected = NAN;
}

unsigned layers_sources(unsigned layers)
{
        unsigned sources = 0;

        if (layers & LAYERS_BIT(LAYER_FILESYSTEM))
                sources |= 1u << SOURCE_CEPH;
        if (layers & (LAYERS_BIT(LAYER_OSD) | LAYERS_BIT(LAYER_OBJECTSTORE)))
                sources |= 1u << SOURCE_OSD;
        if (layers & LAYERS_BIT(LAYER_STORAGE))
                sources |= 1u << SOURCE_DISKSTATS;
        return sources;
}
