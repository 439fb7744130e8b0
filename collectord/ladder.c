#include "collectord/ladder.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/expected.h"
#include "collectord/ladder-parts.h"
#include "collectord/ladder-reason.h"

#define SECTOR 512.0

#define NEEDED(metric_, slot_)                                                                     \
        {                                                                                          \
                .metric = METRIC_##metric_, .slot = LADDER_##slot_, .scale = 1,                    \
                .need = RUNG_NEED_ENTITY                                                           \
        }
#define OPTIONAL(metric_, slot_)                                                                   \
        {                                                                                          \
                .metric = METRIC_##metric_, .slot = LADDER_##slot_, .scale = 1,                    \
                .need = RUNG_NEED_OPTIONAL                                                         \
        }
#define SECTORS(metric_, slot_, scale_)                                                            \
        {                                                                                          \
                .metric = METRIC_##metric_, .slot = LADDER_DEVICE_##slot_, .scale = (scale_),      \
                .need = RUNG_NEED_ENTITY                                                           \
        }

const struct rung_term ladder_terms[] = {
        NEEDED(BLUESTORE_WRITE_BIG_BYTES, BIG),
        NEEDED(BLUESTORE_WRITE_SMALL_BYTES, SMALL),
        OPTIONAL(BLUESTORE_WRITE_SMALL, SMALL_OPS),
        OPTIONAL(BLUESTORE_PAD_BYTES, PAD),
        OPTIONAL(BLUESTORE_DEFERRED_BYTES, ISSUED),
        OPTIONAL(BLUESTORE_DEFERRED_SUBMITTED_BYTES, SUBMITTED),
        OPTIONAL(BLUEFS_WAL_BYTES, WAL),
        OPTIONAL(BLUEFS_SST_BYTES, SST),
        OPTIONAL(BLUEFS_LOG_BYTES, LOG),
        NEEDED(OSD_OP_W_IN_BYTES, CLIENT_WRITE),
        OPTIONAL(OSD_OP_RW_IN_BYTES, CLIENT_WRITE),
        OPTIONAL(OSD_OP_W, CLIENT_WRITE_OPS),
        OPTIONAL(OSD_OP_RW, CLIENT_WRITE_OPS),
        OPTIONAL(OSD_SUBOP_W_IN_BYTES, REPLICA),
        OPTIONAL(OSD_SUBOP_W, REPLICA_OPS),
        OPTIONAL(OSD_SUBOP_PUSH_IN_BYTES, PUSH),
        OPTIONAL(OSD_SUBOP_PUSH, PUSH_OPS),
        OPTIONAL(OSD_RECOVERY_BYTES, RECOVERED),
        NEEDED(OSD_OP_R_OUT_BYTES, CLIENT_READ),
        OPTIONAL(OSD_OP_RW_OUT_BYTES, CLIENT_READ),
        OPTIONAL(OSD_OP_R, CLIENT_READ_OPS),
        OPTIONAL(BLUESTORE_WRITE_BIG, BIG_OPS),
        OPTIONAL(BLUESTORE_DEFERRED_SUBMITTED, SUBMITTED_OPS),
        OPTIONAL(BLUESTORE_BUFFER_HIT_BYTES, HIT),
        OPTIONAL(BLUESTORE_BUFFER_MISS_BYTES, MISS),
        OPTIONAL(BLUESTORE_READ_COUNT, STORE_READ_OPS),
        OPTIONAL(BLUEFS_READ_RANDOM_DISK_BYTES, BLUEFS_READ),
        OPTIONAL(BLUEFS_READ_BYTES, BLUEFS_READ),
        OPTIONAL(BLUEFS_READ_RANDOM_DISK_COUNT, BLUEFS_READ_OPS),
        OPTIONAL(BLUEFS_READ_COUNT, BLUEFS_READ_OPS),
        OPTIONAL(BLUEFS_LOG_COMPACTIONS, COMPACTIONS),
        OPTIONAL(BLUESTORE_COMPRESSED_ORIGINAL, COMPRESSED_ORIGINAL),
        OPTIONAL(BLUESTORE_COMPRESSED_ALLOCATED, COMPRESSED_ALLOCATED),
};
const uint32_t ladder_n_terms = sizeof(ladder_terms) / sizeof(ladder_terms[0]);

const struct rung_term ladder_device_terms[] = {
        SECTORS(DISK_READ_SECTORS, READ, SECTOR),
        SECTORS(DISK_READ_OPS, READ_OPS, 1),
        SECTORS(DISK_WRITE_SECTORS, WRITE, SECTOR),
        SECTORS(DISK_WRITE_OPS, WRITE_OPS, 1),
};
const uint32_t ladder_n_device_terms = sizeof(ladder_device_terms) / sizeof(ladder_device_terms[0]);

static double known(double value)
{
        return isnan(value) ? 0 : value;
}

static double larger(double a, double b)
{
        return a > b ? a : b;
}

double ladder_compaction_of(const struct facts_osd *osd)
{
        return osd->n_db + osd->n_wal > 0 ? LADDER_COMPACTION_DEDICATED : LADDER_COMPACTION_SHARED;
}

void ladder_store_add(struct ladder_store *store, const struct facts_osd *osd, uint32_t n)
{
        double compaction = ladder_compaction_of(osd);

        if (n == 1)
                store->rotational = 0;
        store->rotational += ((double)osd->rotational - store->rotational) / n;
        store->compaction_bytes += (compaction - store->compaction_bytes) / n;
        if (osd->min_alloc_size > store->min_alloc_size)
                store->min_alloc_size = osd->min_alloc_size;
}

double ladder_padding(const double *written)
{
        double small = known(written[LADDER_SMALL]);
        double padding = known(written[LADDER_PAD]);

        padding = larger(padding, LADDER_BLOCK_BYTES * known(written[LADDER_SMALL_OPS]) - small);
        return larger(
                padding, known(written[LADDER_SUBMITTED]) - known(written[LADDER_BIG]) - small);
}

double ladder_data(const double *written)
{
        double data = known(written[LADDER_BIG]) + known(written[LADDER_SMALL]);

        /* Only with both counters can one be moved to the other. */
        if (!isnan(written[LADDER_ISSUED]) && !isnan(written[LADDER_SUBMITTED]))
                data += written[LADDER_ISSUED] - written[LADDER_SUBMITTED];
        return data;
}

double ladder_written_bytes(const double *written)
{
        if (isnan(written[LADDER_BIG]) && isnan(written[LADDER_WAL]))
                return NAN;
        return ladder_data(written) + ladder_padding(written) + known(written[LADDER_WAL]) +
               known(written[LADDER_SST]) + known(written[LADDER_LOG]);
}

/* ---- rungs ---- */

static void judge_rung(struct ladder_rung *rung, const struct ladder_input *input)
{
        struct ratio_rung judged = input->rungs[rung->layer - LAYER_FILESYSTEM];

        judged.layer = rung->layer;
        judged.sum = rung->bytes;
        if (rung->layer == LAYER_OSD && ladder_erasure_took_writes(input)) {
                judged.erasure = true;
                rung->note =
                        "Ceph counts no sub-operations for erasure-coded pools: their shards are "
                        "missing in this rung.";
        }
        rung->state = ratio_rung_state(&judged);
        /* What cannot be is not missing: the note says it. */
        if (!isnan(rung->bytes) || !rung->note)
                ratio_rung_detail(&judged, rung->detail, sizeof(rung->detail));
}

static void set_amplifications(struct ladder *ladder)
{
        double base = ladder->rungs[ladder->base - LAYER_FILESYSTEM].bytes;

        if (ladder->point.state == RUNG_GAP || ladder->point.state == RUNG_IDLE)
                base = NAN;
        for (size_t i = 0; i < LADDER_RUNGS; i++) {
                struct ladder_rung *rung = &ladder->rungs[i];

                rung->amplification = rung->bytes / base;
                for (size_t k = 0; k < rung->n_parts; k++)
                        rung->parts[k].amplification = rung->parts[k].bytes / base;
        }
}

static double expected_of(const struct ladder_input *input, const char **ret_unknown)
{
        CLEANUP(mem) struct expected_pool *pools = calloc(input->n_pools + 1, sizeof(*pools));

        if (input->direction == RATIO_READ || input->of == LADDER_OF_OSDS)
                return 1;
        if (!pools)
                return NAN;
        for (size_t i = 0; i < input->n_pools; i++)
                pools[i] = (struct expected_pool){.name = input->pools[i].name,
                        .bytes = input->pools[i].bytes,
                        .factor = input->pools[i].factor};
        return expected_write(pools, input->n_pools, ret_unknown);
}

static void compare(const struct ladder *ladder, const struct ladder_input *input, enum layer upper,
        enum layer lower, enum ratio_measure measure, struct ratio_input *ret)
{
        const struct ladder_rung *above = &ladder->rungs[upper - LAYER_FILESYSTEM];
        const struct ladder_rung *below = &ladder->rungs[lower - LAYER_FILESYSTEM];

        *ret = (struct ratio_input){
                .upper = input->rungs[upper - LAYER_FILESYSTEM],
                .lower = input->rungs[lower - LAYER_FILESYSTEM],
                .direction = input->direction,
                .measure = measure,
                .seconds = input->seconds,
                .noise = input->noise,
        };
        ret->expected = expected_between(
                upper, input->direction, measure, expected_of(input, &ret->unknown_pool));
        ret->upper.layer = upper;
        ret->upper.sum = measure == RATIO_BYTES ? above->bytes : above->ops;
        ret->lower.layer = lower;
        ret->lower.sum = measure == RATIO_BYTES ? below->bytes : below->ops;
        ret->lower.erasure = lower == LAYER_OSD && ladder_erasure_took_writes(input);
        ret->upper.erasure = upper == LAYER_OSD && ladder_erasure_took_writes(input);
}

static void compare_neighbours(struct ladder *ladder, const struct ladder_input *input)
{
        struct ratio_input pair;

        ladder->rungs[0].bytes_step = ladder->rungs[0].ops_step =
                (struct ratio_point){NAN, NAN, NAN, NAN, NAN, NAN, RUNG_GAP};
        for (enum layer layer = LAYER_OSD; layer < LAYER_MAX_; layer++) {
                struct ladder_rung *rung = &ladder->rungs[layer - LAYER_FILESYSTEM];

                compare(ladder, input, layer - 1, layer, RATIO_BYTES, &pair);
                ratio_compute(&pair, &rung->bytes_step);
                compare(ladder, input, layer - 1, layer, RATIO_OPS, &pair);
                ratio_compute(&pair, &rung->ops_step);
        }
}

static void compare_ends(struct ladder *ladder, const struct ladder_input *input)
{
        const struct ladder_rung *store = &ladder->rungs[2], *storage = &ladder->rungs[3];
        struct ratio_input ends;

        compare(ladder, input, ladder->base, LAYER_STORAGE, RATIO_OPS, &ends);
        ratio_compute(&ends, &ladder->ops);
        compare(ladder, input, ladder->base, LAYER_STORAGE, RATIO_BYTES, &ends);
        ratio_compute(&ends, &ladder->point);
        ratio_detail(&ends, ladder->point.state, ladder->detail, sizeof(ladder->detail));
        ladder->unattributed_bytes = ladder->unattributed_share = NAN;
        if (store->state == RUNG_GAP || storage->state == RUNG_GAP)
                return;
        /* What compression saved and what nobody explains cannot be told apart. */
        if (input->direction == RATIO_WRITE && ladder_is_compressing(input) &&
                storage->bytes < store->bytes)
                return;
        ladder->unattributed_bytes = storage->bytes - store->bytes;
        if (storage->bytes > 0)
                ladder->unattributed_share = ladder->unattributed_bytes / storage->bytes;
}

int ladder_compute(const struct ladder_input *input, struct ladder **ret)
{
        CLEANUP(ladder) struct ladder *ladder = calloc(1, sizeof(*ladder));

        if (!ladder)
                return -ENOMEM;
        ladder->direction = input->direction;
        ladder->seconds = input->seconds;
        ladder->base = input->of == LADDER_OF_OSDS ? LAYER_OSD : LAYER_FILESYSTEM;
        for (size_t i = 0; i < LADDER_RUNGS; i++) {
                struct ladder_rung *rung = &ladder->rungs[i];

                rung->layer = LAYER_FILESYSTEM + i;
                rung->parts = calloc(
                        LADDER_PARTS_MAX + input->n_pools + input->n_devices, sizeof(*rung->parts));
                if (!rung->parts)
                        return -ENOMEM;
                ladder_fill_rung(rung, input);
                judge_rung(rung, input);
        }
        compare_neighbours(ladder, input);
        compare_ends(ladder, input);
        set_amplifications(ladder);
        ladder_explain(ladder, input);
        *ret = STEAL(ladder);
        return 0;
}

struct ladder *ladder_free(struct ladder *ladder)
{
        if (!ladder)
                return NULL;
        for (size_t i = 0; i < LADDER_RUNGS; i++)
                free(ladder->rungs[i].parts);
        free(ladder);
        return NULL;
}
