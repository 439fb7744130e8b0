/* From the counters of one window to the ladders of it. */
#include "collectord/api-ladder.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/expected.h"

#define DEVICES_SHOWN 64u /* the largest; the others are one part */

void ladder_sums_done(struct ladder_sums *sums)
{
        query_result_free(sums->osd);
        query_result_free(sums->devices);
        query_result_free(sums->pools);
        layers_close(sums->layers);
}
void ladder_members_done(struct ladder_members *members)
{
        for (size_t i = 0; i < members->n_names; i++)
                free(members->names[i]);
        free(members->names);
        free(members->pools);
        free(members->devices);
}
enum { POOL_READ, POOL_READ_OPS, POOL_WRITE, POOL_WRITE_OPS };
static const struct rung_term pool_terms[] = {
        {.metric = METRIC_POOL_READ_BYTES, .slot = POOL_READ, .scale = 1},
        {.metric = METRIC_POOL_READ_OPS, .slot = POOL_READ_OPS, .scale = 1},
        {.metric = METRIC_POOL_WRITE_BYTES, .slot = POOL_WRITE, .scale = 1},
        {.metric = METRIC_POOL_WRITE_OPS, .slot = POOL_WRITE_OPS, .scale = 1},
};

static int run(struct ladder_sums *sums, enum source_id source, enum query_by by,
        const struct rung_term *terms, uint32_t n_terms, struct query_result **ret)
{
        struct query_spec spec = {
                .cluster = sums->cluster,
                .source = source,
                .windows = sums->window,
                .by = by,
                .terms = terms,
                .n_terms = n_terms,
        };

        return query_run(sums->query, &spec, ret);
}

int ladder_sums_read(struct ladder_sums *sums)
{
        struct layers_spec spec = {
                .cluster = sums->cluster,
                .windows = sums->window,
                .by = sums->by,
                .layers = LAYERS_BIT(LAYER_FILESYSTEM),
                .directions = 1u << RATIO_WRITE | 1u << RATIO_READ,
                .measures = 1u << RATIO_BYTES,
        };
        int r;

        if (sums->by != QUERY_BY_POOL)
                spec.layers |= LAYERS_BIT(LAYER_OSD) | LAYERS_BIT(LAYER_OBJECTSTORE) |
                               LAYERS_BIT(LAYER_STORAGE);
        r = layers_open(sums->query, &spec, &sums->layers);
        if (r < 0)
                return r;
        r = run(sums, SOURCE_OSD, sums->by == QUERY_BY_POOL ? QUERY_BY_CLUSTER : sums->by,
                ladder_terms, ladder_n_terms, &sums->osd);
        if (r < 0)
                return r;
        r = run(sums, SOURCE_DISKSTATS, QUERY_BY_DEVICE, ladder_device_terms, ladder_n_device_terms,
                &sums->devices);
        if (r < 0)
                return r;
        return run(sums, SOURCE_CEPH, QUERY_BY_POOL, pool_terms,
                sizeof(pool_terms) / sizeof(pool_terms[0]), &sums->pools);
}

/* ---- from sums to the ladder's input ---- */

static size_t fill_pools(const struct ladder_sums *sums, const struct layers_target *of,
        enum ratio_direction direction, struct ladder_member *ret)
{
        uint32_t bytes = direction == RATIO_WRITE ? POOL_WRITE : POOL_READ;
        size_t n = 0;

        for (uint32_t i = 0; i < sums->pools->table->n_targets; i++) {
                const struct facts_pool *pool = topology_find_pool(sums->query->topology,
                        sums->cluster, sums->pools->targets[i].pool, sums->window.from_us);
                double sum = rung_sum(sums->pools->table, i, bytes, 0);

                /* A pool that is gone since and said nothing in this window is no part of it. */
                if (!pool && isnan(sum))
                        continue;
                if (sums->by == QUERY_BY_POOL && strcmp(sums->pools->targets[i].key, of->key) != 0)
                        continue;
                ret[n++] = (struct ladder_member){
                        .name = sums->pools->targets[i].key,
                        .bytes = sum,
                        .ops = rung_sum(sums->pools->table, i, bytes + 1, 0),
                        .factor = expected_factor(pool),
                        .erasure = pool && pool->erasure,
                        .facts = pool,
                };
        }
        return n;
}

static int compare_members(const void *a, const void *b)
{
        const struct ladder_member *x = a, *y = b;
        double left = isnan(x->bytes) ? -1 : x->bytes, right = isnan(y->bytes) ? -1 : y->bytes;

        if (left != right)
                return left < right ? 1 : -1;
        return strcmp(x->name, y->name);
}

static size_t fold_devices(struct ladder_members *members, size_t n)
{
        struct ladder_member *others = &members->devices[DEVICES_SHOWN];

        qsort(members->devices, n, sizeof(*members->devices), compare_members);
        if (n <= DEVICES_SHOWN + 1)
                return n;
        for (size_t i = DEVICES_SHOWN + 1; i < n; i++) {
                if (isnan(members->devices[i].bytes))
                        continue;
                others->bytes += members->devices[i].bytes;
                others->ops += members->devices[i].ops;
        }
        snprintf(members->others, sizeof(members->others), "%zu others", n - DEVICES_SHOWN);
        others->name = members->others;
        return DEVICES_SHOWN + 1;
}

/* Whether the OSD belongs to what the ladder is of. */
static bool is_osd_of(const struct ladder_sums *sums, const struct topology_osd *osd,
        const struct layers_target *of)
{
        const struct topology *topology = sums->query->topology;
        char name[32];

        switch (sums->by) {
        case QUERY_BY_HOST:
                return strcmp(osd->host == TOPOLOGY_NONE
                                       ? osd->facts->host
                                       : topology->hosts[osd->host].facts->hostname,
                               of->key) == 0;
        case QUERY_BY_CLASS:
                return strcmp(osd->facts->device_class, of->key) == 0;
        case QUERY_BY_OSD:
                snprintf(name, sizeof(name), "osd.%" PRIu32, osd->id);
                return strcmp(name, of->key) == 0;
        default:
                return sums->by == QUERY_BY_CLUSTER;
        }
}

static const struct topology_device *find_device(
        const struct ladder_sums *sums, const struct query_target *target)
{
        const struct topology *topology = sums->query->topology;
        uint32_t device;

        for (size_t i = 0; i < topology->n_hosts; i++)
                if (target->host == topology->hosts[i].facts->hostname &&
                        topology_find_name(topology, i, target->key, &device) == 0)
                        return &topology->devices[device];
        return NULL;
}

/* All OSDs of the cluster behind the device are: one that is split belongs to none of them. */
static bool is_device_of(const struct ladder_sums *sums, const struct topology_device *device,
        const struct layers_target *of)
{
        const struct topology *topology = sums->query->topology;

        if (sums->by == QUERY_BY_CLUSTER)
                return true;
        for (uint32_t i = 0; device && i < device->n_osds; i++) {
                const struct topology_osd *osd =
                        &topology->osds[topology->osd_of[device->first_osd + i]];

                if (sums->by == QUERY_BY_HOST)
                        return is_osd_of(sums, osd, of);
                if (osd->cluster == sums->cluster && !is_osd_of(sums, osd, of))
                        return false;
        }
        return device && sums->by != QUERY_BY_POOL;
}

static int fill_devices(const struct ladder_sums *sums, const struct layers_target *of,
        enum ratio_direction direction, struct ladder_members *members, size_t *ret)
{
        uint32_t bytes = direction == RATIO_WRITE ? LADDER_DEVICE_WRITE : LADDER_DEVICE_READ;
        size_t n = 0;

        for (uint32_t i = 0; i < sums->devices->table->n_targets; i++) {
                const struct query_target *target = &sums->devices->targets[i];
                const struct topology_device *device = find_device(sums, target);

                if (!is_device_of(sums, device, of))
                        continue;
                if (asprintf(&members->names[n], "%s/%s", target->host ? target->host : "",
                            target->key) < 0) {
                        members->names[n] = NULL;
                        return -ENOMEM;
                }
                members->devices[n] = (struct ladder_member){
                        .name = members->names[n],
                        .bytes = rung_sum(sums->devices->table, i, bytes, 0),
                        .ops = rung_sum(sums->devices->table, i, bytes + 1, 0),
                        .factor = NAN,
                        .role = device ? topology_role_name(device->role) : NULL,
                };
                n++;
        }
        *ret = fold_devices(members, n);
        return 0;
}

static void fill_store(
        const struct ladder_sums *sums, const struct layers_target *of, struct ladder_store *ret)
{
        const struct topology *topology = sums->query->topology;
        const struct topology_cluster *cluster = &topology->clusters[sums->cluster];
        uint32_t n = 0;

        *ret = (struct ladder_store){.rotational = NAN};
        for (uint32_t i = 0; i < cluster->n_osds; i++) {
                const struct topology_osd *osd = &topology->osds[cluster->first_osd + i];

                if (is_osd_of(sums, osd, of))
                        ladder_store_add(ret, osd->facts, ++n);
        }
}

static void fill_osd(const struct ladder_sums *sums, const struct layers_target *of, double *ret)
{
        const struct rung_table *table = sums->osd->table;

        for (uint32_t k = 0; k < LADDER_SLOTS_MAX_; k++)
                ret[k] = NAN;
        for (uint32_t i = 0; i < table->n_targets && sums->by != QUERY_BY_POOL; i++)
                if (strcmp(sums->osd->targets[i].key, of->key) == 0)
                        for (uint32_t k = 0; k < LADDER_SLOTS_MAX_; k++)
                                ret[k] = rung_sum(table, i, k, 0);
}

int ladder_sums_compute(const struct ladder_sums *sums, const struct layers_target *of,
        enum ratio_direction direction, struct ladder_members *members, struct ladder **ret)
{
        double osd[LADDER_SLOTS_MAX_];
        size_t n_names = sums->devices->table->n_targets;
        struct ladder_input input = {
                .direction = direction,
                .seconds = (double)sums->window.step_us / 1e6,
                .of = sums->by == QUERY_BY_CLUSTER ? LADDER_OF_CLUSTER
                      : sums->by == QUERY_BY_POOL  ? LADDER_OF_POOL
                                                   : LADDER_OF_OSDS,
                .osd = osd,
        };
        int r;

        members->pools = calloc(sums->pools->table->n_targets + 1, sizeof(*members->pools));
        members->devices = calloc(n_names + 1, sizeof(*members->devices));
        members->names = calloc(n_names + 1, sizeof(*members->names));
        if (!members->pools || !members->devices || !members->names)
                return -ENOMEM;
        members->n_names = n_names;
        fill_osd(sums, of, osd);
        fill_store(sums, of, &input.store);
        input.n_pools = fill_pools(sums, of, direction, members->pools);
        r = fill_devices(sums, of, direction, members, &input.n_devices);
        if (r < 0)
                return r;
        input.pools = members->pools;
        input.devices = members->devices;
        for (size_t i = 0; i < LADDER_RUNGS; i++)
                if (sums->by != QUERY_BY_POOL || i == 0)
                        layers_rung(sums->layers, of, LAYER_FILESYSTEM + i, direction, RATIO_BYTES,
                                0, &input.rungs[i]);
        layers_noise(sums->layers, of, 0, &input.noise);
        return ladder_compute(&input, ret);
}
