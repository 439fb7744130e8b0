#pragma once
/*
 * The row of the ceph source: one entity a pool and one for the cluster. Pure: no librados here.
 */

#include <stddef.h>
#include <stdint.h>

#include "agentd/ceph-stats.h"
#include "lib/block.h"

struct ceph_row {
        struct ceph_status status;
        struct ceph_pool *pools; /* ascending by id */
        uint32_t *resets;        /* of each pool: times that its totals went down */
        size_t n_pools;
        char (*identities)[24];
        struct block_entity *entities;
        struct block_column *columns;
        uint64_t *values;
        uint32_t n_entities, n_columns;
        uint64_t generation;  /* of entities and columns */
        uint64_t mgr_seen_us; /* when the manager was last seen active */
};

/*
 * Makes the next row of @status and @pools, which becomes the row's. @now_us is of any clock that
 * goes on evenly. -ENOMEM.
 */
int ceph_row_make(struct ceph_row *row, const struct ceph_status *status, struct ceph_pool *pools,
        size_t n_pools, uint64_t now_us);
void ceph_row_done(struct ceph_row *row);
