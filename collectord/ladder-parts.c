#include "collectord/ladder-parts.h"

#include <assert.h>
#include <math.h>

static double known(double value)
{
        return isnan(value) ? 0 : value;
}

static void add_part(struct ladder_rung *rung, struct ladder_part part)
{
        assert(rung->n_parts < LADDER_PARTS_MAX);
        rung->parts[rung->n_parts++] = part;
}

/* What moved without a client: beside the rung, as far as Ceph counts it. */
static void add_noise(struct ladder_rung *rung, const struct ladder_input *input)
{
        if (input->direction == RATIO_READ && input->noise.pgs_scrubbing > 0)
                add_part(rung, (struct ladder_part){
                                       .name = "scrub",
                                       .kind = "operations",
                                       .help = "Placement groups were scrubbed; Ceph counts no "
                                               "bytes of it.",
                                       .bytes = NAN,
                                       .ops = NAN,
                               });
        if (input->noise.pgs_snaptrim > 0)
                add_part(rung, (struct ladder_part){
                                       .name = "snap_trim",
                                       .kind = "operations",
                                       .help = "Snapshots were trimmed; Ceph counts no bytes of "
                                               "it.",
                                       .bytes = NAN,
                                       .ops = NAN,
                               });
}

double ladder_recovery_bytes(const struct ladder_input *input)
{
        double received = input->osd[LADDER_PUSH], sent = input->osd[LADDER_RECOVERED];

        /* What some OSDs sent is not what they wrote. */
        if (input->of == LADDER_OF_CLUSTER && (isnan(received) || sent > received))
                return sent;
        return received;
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
        if (!write) {
                add_noise(rung, input);
                return;
        }
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
                               .bytes = ladder_recovery_bytes(input),
                               .ops = osd[LADDER_PUSH_OPS],
                       });
        add_noise(rung, input);
}

bool ladder_is_compressing(const struct ladder_input *input)
{
        return input->osd[LADDER_COMPRESSED_ORIGINAL] > 0;
}

double ladder_compaction_bytes(const struct ladder_input *input)
{
        return known(input->osd[LADDER_COMPACTIONS]) * input->store.compaction_bytes;
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
        add_part(rung, (struct ladder_part){.name = "big",
                               .kind = "bluestore",
                               .included_in = "data",
                               .help = "Writes of whole allocation units.",
                               .bytes = osd[LADDER_BIG],
                               .ops = osd[LADDER_BIG_OPS]});
        add_part(rung, (struct ladder_part){.name = "small",
                               .kind = "bluestore",
                               .included_in = "data",
                               .help = "Writes of less than an allocation unit.",
                               .bytes = osd[LADDER_SMALL],
                               .ops = osd[LADDER_SMALL_OPS]});
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
        add_part(rung, (struct ladder_part){.name = "log_compaction",
                               .kind = "bluefs",
                               .help = "Compactions of that journal: counted, at two allocation "
                                       "units of BlueFS and a block each.",
                               .counted = true,
                               .bytes = ladder_compaction_bytes(input),
                               .ops = osd[LADDER_COMPACTIONS]});
        add_part(rung,
                (struct ladder_part){.name = "padding",
                        .kind = "bluestore",
                        .help = "What small writes cost beyond their bytes: a device block each.",
                        .counted = true,
                        .bytes = unknown ? NAN : ladder_padding(osd),
                        .ops = osd[LADDER_SMALL_OPS]});
        rung->bytes = ladder_written_bytes(osd) + ladder_compaction_bytes(input);
        rung->ops = ops;
        if (ladder_is_compressing(input))
                rung->note = "BlueStore compresses, and counts bytes before it does: what it saved "
                             "is known from the devices only.";
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
                        .role = members[i].role,
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

void ladder_fill_rung(struct ladder_rung *rung, const struct ladder_input *input)
{
        if (input->of == LADDER_OF_OSDS && rung->layer == LAYER_FILESYSTEM) {
                rung->bytes = rung->ops = NAN;
                rung->note = "Pools are spread over all OSDs: what clients asked of them is known "
                             "for the whole cluster only.";
                return;
        }
        if (input->of == LADDER_OF_POOL && rung->layer != LAYER_FILESYSTEM) {
                rung->bytes = rung->ops = NAN;
                rung->note = "OSDs and devices serve all pools: their bytes cannot be told apart "
                             "by pool.";
                return;
        }
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

bool ladder_erasure_took_writes(const struct ladder_input *input)
{
        for (size_t i = 0; i < input->n_pools; i++)
                if (input->pools[i].erasure && input->pools[i].bytes > 0)
                        return input->direction == RATIO_WRITE;
        return false;
}
