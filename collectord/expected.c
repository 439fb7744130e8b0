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

static double round_up(double bytes, double unit)
{
        return ceil(bytes / unit) * unit;
}

void expected_itemise(const struct expected_request *request, struct expected_items *ret)
{
        const struct facts_pool *pool = request->pool;
        double piece = request->bytes, copies = expected_factor(pool);
        struct expected_items items = {copies, 0, NAN, NAN, NAN};

        if (pool && pool->erasure) {
                double width = (double)pool->k * pool->stripe_unit;
                double whole = width > 0 ? round_up(request->bytes, width) : NAN;

                items.stripe = copies * (whole / request->bytes - 1);
                piece = whole / pool->k;
        }
        if (request->bytes > 0) {
                double written = copies + items.stripe, twice = 0;

                items.piece = round_up(piece, EXPECTED_BLOCK_BYTES);
                items.padding = written * (items.piece / piece - 1);
                if (items.piece < EXPECTED_DEFERRED_BELOW_HDD)
                        twice += request->rotational;
                if (items.piece < (double)request->min_alloc_size)
                        twice += 1 - request->rotational;
                items.deferred = twice * (written + items.padding);
        }
        *ret = items;
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
