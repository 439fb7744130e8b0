#include "agentd/ceph-row.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/metric.h"

#define CLUSTER_METRICS 6u
#define TOTALS 4u       /* the metrics of a pool that only grow: its first */
#define RESETS_SHIFT 40 /* in the instance of a pool, above its id */

static const uint16_t cluster_metrics[CLUSTER_METRICS] = {METRIC_POOL_DEGRADED_OBJECTS,
        METRIC_POOL_PGS_SCRUBBING, METRIC_POOL_PGS_RECOVERING, METRIC_POOL_PGS_SNAPTRIM,
        METRIC_CLUSTER_HEALTH, METRIC_CLUSTER_STATS_AGE};

static int layout_allocate(struct ceph_row *row, size_t n)
{
        free(row->identities);
        free(row->entities);
        free(row->columns);
        free(row->values);
        row->n_entities = row->n_columns = 0;
        row->identities = calloc(n + 1, sizeof(*row->identities));
        row->entities = calloc(n + 1, sizeof(*row->entities));
        row->columns = calloc(n * CEPH_POOL_METRICS + CLUSTER_METRICS, sizeof(*row->columns));
        row->values = calloc(n * CEPH_POOL_METRICS + CLUSTER_METRICS, sizeof(*row->values));
        if (!row->identities || !row->entities || !row->columns || !row->values)
                return -ENOMEM;
        return 0;
}

static void column_add(struct ceph_row *row, uint16_t metric)
{
        row->columns[row->n_columns++] =
                (struct block_column){.entity = row->n_entities, .metric = metric};
}

static int layout_build(struct ceph_row *row)
{
        int r = layout_allocate(row, row->n_pools);

        if (r < 0)
                return r;
        for (size_t i = 0; i < row->n_pools; i++) {
                const struct ceph_pool *pool = &row->pools[i];

                snprintf(row->identities[i], sizeof(row->identities[i]), "%" PRIu64, pool->id);
                for (uint16_t j = 0; j < CEPH_POOL_METRICS; j++)
                        column_add(row, METRIC_POOL_READ_OPS + j);
                /* Ids of pools are not used again, but totals may restart. */
                row->entities[row->n_entities++] = (struct block_entity){.name = pool->name,
                        .identity = row->identities[i],
                        .cluster = row->status.fsid,
                        .instance = pool->id | (uint64_t)row->resets[i] << RESETS_SHIFT};
        }
        for (size_t i = 0; i < CLUSTER_METRICS; i++)
                column_add(row, cluster_metrics[i]);
        row->entities[row->n_entities++] = (struct block_entity){
                .name = "cluster", .identity = "cluster", .cluster = row->status.fsid};
        row->generation++;
        return 0;
}

static bool totals_went_down(const struct ceph_pool *before, const struct ceph_pool *now)
{
        for (size_t i = 0; i < TOTALS; i++)
                if (now->values[i] < before->values[i])
                        return true;
        return false;
}

/* Fills @resets; true when a pool came, went, restarted or got another name. */
static bool pools_compare(
        const struct ceph_row *row, const struct ceph_pool *pools, size_t n, uint32_t *resets)
{
        bool changed = n != row->n_pools || !row->entities;
        size_t j = 0;

        for (size_t i = 0; i < n; i++) {
                const struct ceph_pool *before;

                while (j < row->n_pools && row->pools[j].id < pools[i].id)
                        j++;
                if (j == row->n_pools || row->pools[j].id != pools[i].id) {
                        changed = true;
                        continue;
                }
                before = &row->pools[j];
                resets[i] = row->resets[j] + totals_went_down(before, &pools[i]);
                changed |= resets[i] != row->resets[j] || strcmp(before->name, pools[i].name) != 0;
        }
        return changed;
}

/* The names lie with the pools, which are others in each row. */
static void values_make(struct ceph_row *row, uint64_t now_us)
{
        const struct ceph_status *status = &row->status;
        uint64_t *value = row->values;

        for (size_t i = 0; i < row->n_pools; i++) {
                row->entities[i].name = row->pools[i].name;
                for (size_t j = 0; j < CEPH_POOL_METRICS; j++)
                        *value++ = row->pools[i].values[j];
        }
        *value++ = status->degraded_objects;
        *value++ = status->pgs_scrubbing;
        *value++ = status->pgs_recovering;
        *value++ = status->pgs_snaptrim;
        *value++ = status->health_level;
        *value = (now_us - row->mgr_seen_us) / 1000;
}

int ceph_row_make(struct ceph_row *row, const struct ceph_status *status, struct ceph_pool *pools,
        size_t n_pools, uint64_t now_us)
{
        uint32_t *resets = calloc(n_pools + 1, sizeof(*resets));
        bool changed;
        int r;

        if (!resets) {
                free(pools);
                return -ENOMEM;
        }
        changed = pools_compare(row, pools, n_pools, resets) ||
                  !id_equal(&status->fsid, &row->status.fsid);
        free(row->pools);
        free(row->resets);
        row->pools = pools;
        row->resets = resets;
        row->n_pools = n_pools;
        row->status = *status;
        if (status->mgr_available || row->mgr_seen_us == 0)
                row->mgr_seen_us = now_us;
        if (changed) {
                r = layout_build(row);
                if (r < 0)
                        return r;
        }
        values_make(row, now_us);
        return 0;
}

void ceph_row_done(struct ceph_row *row)
{
        free(row->pools);
        free(row->resets);
        free(row->identities);
        free(row->entities);
        free(row->columns);
        free(row->values);
        *row = (struct ceph_row){0};
}
