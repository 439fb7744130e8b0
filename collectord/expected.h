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
