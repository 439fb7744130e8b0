#pragma once
/*
 * What the monitor says of a cluster at each sample, read from the JSON of its commands "df" and
 * "status". Pure: no librados here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "lib/block.h"
#include "lib/id.h"

#define CEPH_POOL_METRICS 6u /* METRIC_POOL_READ_OPS and the five after it, in their order */
#define CEPH_POOLS_MAX 4096u

struct ceph_pool {
        char name[BLOCK_NAME_MAX + 1];
        uint64_t id;
        uint64_t values[CEPH_POOL_METRICS];
};

struct ceph_status {
        struct id fsid;
        char health[16]; /* HEALTH_OK */
        uint64_t health_level;
        uint64_t osdmap_epoch;
        uint64_t pgs_scrubbing, pgs_recovering, pgs_snaptrim;
        uint64_t degraded_objects;
        bool mgr_available;
};

/*
 * Numbers of 2^63 and above, which jansson refuses as integers, are read as reals: to 53 bits.
 * NULL: it is no JSON.
 */
json_t *ceph_json_load(const char *text, size_t size);

/* "df" with detail "detail". *ret (the caller frees) is ascending by id. -EBADMSG, -ENOMEM. */
int ceph_pools_parse(const json_t *df, struct ceph_pool **ret, size_t *ret_count);

/* -EBADMSG. */
int ceph_status_parse(const json_t *status, struct ceph_status *ret);
