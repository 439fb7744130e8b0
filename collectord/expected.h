#pragma once
/*
 * The amplification that redundancy alone explains: the number of copies of a replicated pool,
 * (k + m) / k of an erasure-coded one, and for several pools the mean weighted by the bytes
 * written to each in the window. Reads take one copy: 1.
 */

#include <stddef.h>

#include "lib/facts.h"
#include "lib/metric.h"
#include "collectord/ratio.h"

/* Defaults of Ceph: the agents do not read the OSDs' configuration. */
#define EXPECTED_BLOCK_BYTES 4096.0               /* bdev_block_size */
#define EXPECTED_DEFERRED_BELOW_HDD (64 * 1024.0) /* bluestore_prefer_deferred_size_hdd */

/* One write of the mean size as the configuration answers it. */
struct expected_request {
        double bytes;                  /* of the client's write, aligned to what it touches */
        const struct facts_pool *pool; /* NULL unknown */
        double rotational;             /* share of the OSDs on rotational devices, NaN unknown */
        uint64_t min_alloc_size;       /* 0 unknown */
};

/* Amplifications that add up; NaN unknown. */
struct expected_items {
        double copies;   /* redundancy alone */
        double stripe;   /* erasure coding: whole stripes are written */
        double padding;  /* whole blocks are written */
        double deferred; /* written to the RocksDB WAL first */
        double piece;    /* bytes that one OSD is given of it, rounded up to blocks */
};
/*
 * What one write costs by configuration: below the deferred threshold of rotational devices (and,
 * elsewhere, below the allocation unit) every byte is written twice. Metadata has no such number.
 */
void expected_itemise(const struct expected_request *request, struct expected_items *ret);

struct expected_pool {
        const char *name;
        double bytes;  /* written in the window; NaN counts as none */
        double factor; /* NaN unknown */
};

/* @pool NULL (deleted, or not known yet) and an unreadable profile give NaN. */
double expected_factor(const struct facts_pool *pool);
/*
 * NaN when a pool with unknown factor took writes; *ret_unknown (may be NULL) is then its name,
 * else NULL. Without any writes: the factor that all pools have in common, or NaN.
 */
double expected_write(const struct expected_pool *pools, size_t n, const char **ret_unknown);
/* From @upper to any layer below. @write: of the mix of pools. Operations have none: NaN. */
double expected_between(
        enum layer upper, enum ratio_direction direction, enum ratio_measure measure, double write);
