#include "collectord/expected.h"

#include <math.h>

double expected_factor(const struct facts_pool *pool)
{
        if (!pool)
                return NAN;
        if (pool->erasure)
                return pool->k > 0 ? (double)(pool->k + pool->m) / pool->k : NAN;
        return pool->size > 0 ? (double)pool->size : NAN;
}

/* Idle pools: one answer only when it cannot be another. */
static double common_factor(const struct expected_pool *pools, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (isnan(pools[i].factor) || pools[i].factor != pools[0].factor)
                        return NAN;
        return n > 0 ? pools[0].factor : NAN;
}

double expected_write(const struct expected_pool *pools, size_t n, const char **ret_unknown)
{
        double bytes = 0, weighted = 0;

        if (ret_unknown)
                *ret_unknown = NULL;
        for (size_t i = 0; i < n; i++) {
                if (isnan(pools[i].bytes) || pools[i].bytes <= 0)
                        continue;
                if (isnan(pools[i].factor)) {
                        if (ret_unknown)
                                *ret_unknown = pools[i].name;
                        return NAN;
                }
                bytes += pools[i].bytes;
                weighted += pools[i].bytes * pools[i].factor;
        }
        return bytes > 0 ? weighted / bytes : common_factor(pools, n);
}

double expected_between(
        enum layer upper, enum ratio_direction direction, enum ratio_measure measure, double write)
{
        if (measure == RATIO_OPS)
                return NAN;
        if (direction == RATIO_READ || upper != LAYER_FILESYSTEM)
                return 1;
        return write;
}
