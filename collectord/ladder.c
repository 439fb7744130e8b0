#include "collectord/ladder.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/expected.h"
#include "collectord/ladder-reason.h"

#define SECTOR 512.0
#define PARTS_MAX 8u /* of the fixed ones: a rung's own kinds of bytes */

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

static void add_part(struct ladder_rung *rung, struct ladder_part part)
{
        assert(rung->n_parts < PARTS_MAX);
        rung->parts[rung->n_parts++] = part;
}

static void fill_osd(struct ladder_rung *rung, const struct ladder_input *input)
{
        const double *osd = input->osd;
        bool write = input->direction == RATIO_WRITE;

        add_part(rung, (struct ladder_part){
                               .name = "client",
                               .kind = "operations",
                               .help = write ? "Client writes, as they reach the primary OSD."
                                             : "Client reads, as the primary OSD answers them.",
                               .counted = true,
                               .bytes = osd[write ? LADDER_CLIENT_WRITE : LADDER_CLIENT_READ],
                               .ops = osd[write ? LADDER_CLIENT_WRITE_OPS : LADDER_CLIENT_READ_OPS],
                       });
        if (!write)
                return;
        add_part(rung, (struct ladder_part){
                               .name = "replica",
                               .kind = "operations",
                               .help = "Writes that a primary sent to the other copies, with 0.6 "
                                       "to 0.9 KB of "
                                       "message overhead each.",
                               .counted = true,
                               .bytes = osd[LADDER_REPLICA],
                               .ops = osd[LADDER_REPLICA_OPS],
                       });
        add_part(rung, (struct ladder_part){
                               .name = "recovery",
                               .kind = "operations",
                               .help = "Recovery and backfill pushes received; beside the rung, no "
                                       "client asked "
                                       "for them.",
                               .bytes = osd[LADDER_PUSH],
                               .ops = osd[LADDER_PUSH_OPS],
                       });
}

static void fill_objectstore_write(struct ladder_rung *rung, const struct ladder_input *input)
{
        const double *osd = input->osd;
        double ops = osd[LADDER_BIG_OPS] + osd[LADDER_SMALL_OPS];
        bool unknown = isnan(osd[LADDER_BIG]);

        add_part(rung,
                (struct ladder_part){.name = "data",
                        .kind = "bluestore",
                        .help = "Object data at its place on the device, deferred writes included.",
                        .counted = true,
                        .bytes = unknown ? NAN : ladder_data(osd),
                        .ops = ops});
        add_part(rung, (struct ladder_part){.name = "deferred",
                               .kind = "bluestore",
                               .included_in = "wal",
                               .help = "The copies of deferred writes in the RocksDB WAL.",
                               .bytes = osd[LADDER_SUBMITTED],
                               .ops = osd[LADDER_SUBMITTED_OPS]});
        add_part(rung, (struct ladder_part){.name = "wal",
                               .kind = "bluefs",
                               .help = "RocksDB's write-ahead log: metadata and deferred data.",
                               .counted = true,
                               .bytes = osd[LADDER_WAL],
                               .ops = NAN});
        add_part(rung, (struct ladder_part){.name = "sst",
                               .kind = "bluefs",
                               .help = "RocksDB's tables: flushes and compactions.",
                               .counted = true,
                               .bytes = osd[LADDER_SST],
                               .ops = NAN});
        add_part(rung, (struct ladder_part){.name = "log",
                               .kind = "bluefs",
                               .help = "BlueFS's own journal.",
                               .counted = true,
                               .bytes = osd[LADDER_LOG],
                               .ops = NAN});
        add_part(rung,
                (struct ladder_part){.name = "padding",
                        .kind = "bluestore",
                        .help = "What small writes cost beyond their bytes: a device block each.",
                        .counted = true,
                        .bytes = unknown ? NAN : ladder_padding(osd),
                        .ops = osd[LADDER_SMALL_OPS]});
        rung->bytes = ladder_written_bytes(osd);
        rung->ops = ops;
}

static void fill_objectstore_read(struct ladder_rung *rung, const struct ladder_input *input)
{
        const double *osd = input->osd;

        add_part(rung, (struct ladder_part){.name = "cache_hit",
                               .kind = "bluestore",
                               .help = "Object data that BlueStore's cache had; the device saw "
                                       "nothing of it.",
                               .bytes = osd[LADDER_HIT],
                               .ops = NAN});
        add_part(rung, (struct ladder_part){.name = "cache_miss",
                               .kind = "bluestore",
                               .help = "Object data read from the device.",
                               .counted = true,
                               .bytes = osd[LADDER_MISS],
                               .ops = osd[LADDER_STORE_READ_OPS]});
        add_part(rung, (struct ladder_part){.name = "bluefs",
                               .kind = "bluefs",
                               .help = "RocksDB's reads past its own cache; the kernel is not "
                                       "asked for all.",
                               .counted = true,
                               .bytes = osd[LADDER_BLUEFS_READ],
                               .ops = osd[LADDER_BLUEFS_READ_OPS]});
        rung->bytes = osd[LADDER_MISS] + known(osd[LADDER_BLUEFS_READ]);
        rung->ops = osd[LADDER_STORE_READ_OPS];
}

static void fill_members(struct ladder_rung *rung, const struct ladder_member *members, size_t n,
        const char *kind, const char *help)
{
        rung->bytes = rung->ops = NAN;
        for (size_t i = 0; i < n; i++) {
                rung->parts[rung->n_parts++] = (struct ladder_part){
                        .name = members[i].name,
                        .kind = kind,
                        .help = help,
                        .counted = true,
                        .bytes = members[i].bytes,
                        .ops = members[i].ops,
                };
                if (isnan(members[i].bytes))
                        continue;
                rung->bytes = known(rung->bytes) + members[i].bytes;
                rung->ops = known(rung->ops) + known(members[i].ops);
        }
}

static void fill_rung(struct ladder_rung *rung, const struct ladder_input *input)
{
        switch (rung->layer) {
        case LAYER_FILESYSTEM:
                fill_members(rung, input->pools, input->n_pools, "pool",
                        "What clients asked of the pool.");
                return;
        case LAYER_STORAGE:
                fill_members(rung, input->devices, input->n_devices, "device",
                        "What the block device did.");
                return;
        case LAYER_OBJECTSTORE:
                if (input->direction == RATIO_WRITE)
                        fill_objectstore_write(rung, input);
                else
                        fill_objectstore_read(rung, input);
                return;
        default:
                fill_osd(rung, input);
        }
        rung->bytes = rung->ops = NAN;
        for (size_t i = 0; i < rung->n_parts; i++)
                if (rung->parts[i].counted && !isnan(rung->parts[i].bytes)) {
                        rung->bytes = known(rung->bytes) + rung->parts[i].bytes;
                        rung->ops = known(rung->ops) + known(rung->parts[i].ops);
                }
}

static bool erasure_took_writes(const struct ladder_input *input)
{
        for (size_t i = 0; i < input->n_pools; i++)
                if (input->pools[i].erasure && input->pools[i].bytes > 0)
                        return input->direction == RATIO_WRITE;
        return false;
}

static void judge_rung(struct ladder_rung *rung, const struct ladder_input *input)
{
        struct ratio_rung judged = input->rungs[rung->layer - LAYER_FILESYSTEM];

        judged.layer = rung->layer;
        judged.sum = rung->bytes;
        if (rung->layer == LAYER_OSD && erasure_took_writes(input)) {
                judged.erasure = true;
                rung->note =
                        "Ceph counts no sub-operations for erasure-coded pools: their shards are "
                        "missing in this rung.";
        }
        rung->state = ratio_rung_state(&judged);
        ratio_rung_detail(&judged, rung->detail, sizeof(rung->detail));
}

static void set_amplifications(struct ladder *ladder)
{
        double filesystem = ladder->rungs[0].bytes;

        if (ladder->point.state == RUNG_GAP || ladder->point.state == RUNG_IDLE)
                filesystem = NAN;
        for (size_t i = 0; i < LADDER_RUNGS; i++) {
                struct ladder_rung *rung = &ladder->rungs[i];

                rung->amplification = rung->bytes / filesystem;
                for (size_t k = 0; k < rung->n_parts; k++)
                        rung->parts[k].amplification = rung->parts[k].bytes / filesystem;
        }
}

static double expected_of(const struct ladder_input *input)
{
        CLEANUP(mem) struct expected_pool *pools = calloc(input->n_pools + 1, sizeof(*pools));

        if (input->direction == RATIO_READ)
                return 1;
        if (!pools)
                return NAN;
        for (size_t i = 0; i < input->n_pools; i++)
                pools[i] = (struct expected_pool){.name = input->pools[i].name,
                        .bytes = input->pools[i].bytes,
                        .factor = input->pools[i].factor};
        return expected_write(pools, input->n_pools, NULL);
}

static void compare_ends(struct ladder *ladder, const struct ladder_input *input)
{
        const struct ladder_rung *store = &ladder->rungs[2], *storage = &ladder->rungs[3];
        struct ratio_input ends = {
                .upper = input->rungs[0],
                .lower = input->rungs[3],
                .direction = input->direction,
                .measure = RATIO_BYTES,
                .seconds = input->seconds,
                .expected = expected_of(input),
                .noise = input->noise,
        };

        ends.upper.layer = LAYER_FILESYSTEM;
        ends.upper.sum = ladder->rungs[0].bytes;
        ends.lower.layer = LAYER_STORAGE;
        ends.lower.sum = storage->bytes;
        ratio_compute(&ends, &ladder->point);
        ratio_detail(&ends, ladder->point.state, ladder->detail, sizeof(ladder->detail));
        ladder->unattributed_bytes = ladder->unattributed_share = NAN;
        if (store->state == RUNG_GAP || storage->state == RUNG_GAP)
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
        for (size_t i = 0; i < LADDER_RUNGS; i++) {
                struct ladder_rung *rung = &ladder->rungs[i];

                rung->layer = LAYER_FILESYSTEM + i;
                rung->parts =
                        calloc(PARTS_MAX + input->n_pools + input->n_devices, sizeof(*rung->parts));
                if (!rung->parts)
                        return -ENOMEM;
                fill_rung(rung, input);
                judge_rung(rung, input);
        }
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
