/* Rules about how much more than the clients' bytes is moved, and by whom: from the ladders. */
#include "collectord/verdict-private.h"

#include <math.h>
#include <string.h>

#define EXCESS_EC 2.0 /* read, change, write of a stripe at least doubles it */
#define EXCESS_SMALL 1.5
#define SMALL_BLOCK (8.0 * 1024) /* bytes: two of BlueStore's blocks */
#define DEFERRED_PART 0.3        /* of the expected amplification */
#define METADATA_PART 0.5        /* of the expected amplification */
#define PART_SHARE 0.2           /* of the devices' bytes */
#define COMPACTION_SHARE 0.25
#define SPILLED_BYTES (64.0 * 1024 * 1024) /* less is a table on its way */
#define PREFETCH_SHARE 0.3                 /* of what devices read */
#define PREFETCH_RATE 1e6                  /* bytes/s */
#define AGAIN 2.0                          /* times the stored bytes are read in one window */
#define READ_RATE 1e6                      /* bytes/s; who reads less does not wait for a cache */
#define MISS_SHARE 0.5
#define ONODE_MISSES 100.0 /* per second */
#define ONODE_MISS_SHARE 0.2

static const struct ladder *ladder_of(const struct verdict_bench *bench, enum ratio_direction way)
{
        const struct ladder *ladder = bench->evidence->ladders[way];

        return ladder && isfinite(ladder->point.amplification) ? ladder : NULL;
}

/* The amplification of a part of the object store's rung; 0 when there is none. */
static double part(const struct ladder *ladder, const char *name)
{
        for (size_t i = 0; i < LADDER_RUNGS; i++) {
                const struct ladder_rung *rung = &ladder->rungs[i];

                for (size_t k = 0; rung->layer == LAYER_OBJECTSTORE && k < rung->n_parts; k++)
                        if (strcmp(rung->parts[k].name, name) == 0 &&
                                isfinite(rung->parts[k].amplification))
                                return rung->parts[k].amplification;
        }
        return 0;
}

/* The ladder, when more is written than the redundancy explains. */
static const struct ladder *multiplied(const struct verdict_bench *bench)
{
        const struct ladder *ladder = ladder_of(bench, RATIO_WRITE);

        return ladder && ladder->point.excess >= LADDER_REASON_EXCESS ? ladder : NULL;
}

static double metadata(const struct ladder *ladder)
{
        return part(ladder, "wal") - part(ladder, "deferred") + part(ladder, "log") +
               part(ladder, "sst") + part(ladder, "padding");
}

static void add_ratio(struct verdict_finding *finding)
{
        verdict_curve(
                finding, "/ratio?upper=filesystem&lower=storage&direction=write&measure=bytes");
}

/* Most of the writes go to this pool. */
static bool is_main(const struct verdict_bench *bench, const struct evidence_pool *pool)
{
        double all = 0;

        for (size_t i = 0; i < bench->evidence->n_pools; i++)
                if (bench->evidence->pools[i].writes > 0)
                        all += bench->evidence->pools[i].writes;
        return pool->writes >= 0.5 * all && all > 0;
}

void verdict_small_writes_ec(struct verdict_bench *bench)
{
        const struct ladder *ladder = multiplied(bench);

        for (size_t i = 0; ladder && i < bench->evidence->n_pools; i++) {
                const struct evidence_pool *pool = &bench->evidence->pools[i];
                double size = pool->write_bytes / pool->writes;
                double stripe = (double)pool->k * pool->stripe_unit;
                struct verdict_finding *finding;

                if (!pool->erasure || !(stripe > 0) || !(size < stripe) || !is_main(bench, pool) ||
                        !(ladder->point.excess >= EXCESS_EC))
                        continue;
                finding = verdict_add(bench, VERDICT_POOL, pool->name, 1 - 1 / ladder->point.excess,
                        "Writes to the erasure-coded pool %s have %.1f KiB, less than its stripe "
                        "of "
                        "%.0f KiB, so that each reads, changes and writes a whole one: %.1f bytes "
                        "reach the devices for each byte, where %.2f are expected.",
                        pool->name, size / 1024, stripe / 1024, ladder->point.amplification,
                        ladder->point.expected);
                add_ratio(finding);
                verdict_curve(finding, "/series?layer=filesystem&metric=write_size&by=pool");
                verdict_curve(finding, "/series?layer=storage&metric=read_bytes,write_bytes");
        }
}

void verdict_small_blocks(struct verdict_bench *bench)
{
        const struct ladder *ladder = multiplied(bench);

        for (size_t i = 0; ladder && i < bench->evidence->n_pools; i++) {
                const struct evidence_pool *pool = &bench->evidence->pools[i];
                double size = pool->write_bytes / pool->writes;
                struct verdict_finding *finding;

                if (!(size <= SMALL_BLOCK) || !is_main(bench, pool) ||
                        !(ladder->point.excess >= EXCESS_SMALL) ||
                        !(metadata(ladder) >= METADATA_PART * ladder->point.expected) ||
                        verdict_has_rule(bench, "small_writes_ec"))
                        continue;
                finding = verdict_add(bench, VERDICT_POOL, pool->name,
                        metadata(ladder) / ladder->point.amplification,
                        "Writes to the pool %s have only %.1f KiB: metadata that comes with each "
                        "write is %.1f of the %.1f bytes that reach the devices for each byte, "
                        "where "
                        "%.1f are expected.",
                        pool->name, size / 1024, metadata(ladder), ladder->point.amplification,
                        ladder->point.expected);
                add_ratio(finding);
                verdict_curve(
                        finding, "/series?layer=filesystem&metric=write_size,write_ops&by=pool");
        }
}

void verdict_deferred_writes(struct verdict_bench *bench)
{
        const struct ladder *ladder = multiplied(bench);
        double deferred = ladder ? part(ladder, "deferred") : 0;
        struct verdict_finding *finding;

        if (!ladder || !(deferred >= DEFERRED_PART * ladder->point.expected))
                return;
        finding = verdict_add(bench, VERDICT_CLUSTER, "cluster",
                deferred / ladder->point.amplification,
                "BlueStore defers writes: %.1f of the %.1f bytes that reach the devices for each "
                "byte are copies in the RocksDB WAL, written again to their place later; %.1f are "
                "expected.",
                deferred, ladder->point.amplification, ladder->point.expected);
        add_ratio(finding);
        verdict_curve(
                finding, "/series?layer=objectstore&metric=deferred_write_bytes,bluefs_wal_bytes");
        verdict_curve(finding, "/series?layer=filesystem&metric=write_size&by=pool");
}

void verdict_padding(struct verdict_bench *bench)
{
        const struct ladder *ladder = multiplied(bench);
        double padding = ladder ? part(ladder, "padding") : 0;
        struct verdict_finding *finding;

        if (!ladder || !(padding >= PART_SHARE * ladder->point.amplification))
                return;
        finding = verdict_add(bench, VERDICT_CLUSTER, "cluster",
                padding / ladder->point.amplification,
                "Writes are padded to whole blocks: %.1f of the %.1f bytes that reach the devices "
                "for each byte are padding.",
                padding, ladder->point.amplification);
        add_ratio(finding);
        verdict_curve(finding, "/series?layer=objectstore&metric=write_pad_bytes,write_small");
}

void verdict_compaction(struct verdict_bench *bench)
{
        const struct ladder *ladder = multiplied(bench);
        double tables = ladder ? part(ladder, "sst") : 0;
        struct verdict_finding *finding;

        if (!ladder || !(tables >= COMPACTION_SHARE * ladder->point.amplification))
                return;
        finding = verdict_add(bench, VERDICT_CLUSTER, "cluster",
                tables / ladder->point.amplification,
                "RocksDB writes its tables anew: %.1f of the %.1f bytes that reach the devices for "
                "each byte are flushed and compacted tables.",
                tables, ladder->point.amplification);
        add_ratio(finding);
        verdict_curve(finding, "/series?layer=objectstore&metric=bluefs_sst_bytes&by=osd&top=12");
}

void verdict_spillover(struct verdict_bench *bench)
{
        const struct evidence *evidence = bench->evidence;

        for (size_t i = 0; i < evidence->n_osds; i++) {
                const struct evidence_osd *osd = &evidence->osds[i];
                double used = osd->values[EVIDENCE_SLOW_USED];
                struct verdict_finding *finding;

                if (osd->journal == osd->data || !(used >= SPILLED_BYTES))
                        continue;
                finding = verdict_add(bench, VERDICT_ONE_OSD, osd->name, 0,
                        "The DB of %s has spilled over: %.1f GiB of it lie on its slow device.",
                        osd->name, used / (1 << 30));
                verdict_curve(finding,
                        "/series?layer=objectstore&metric=bluefs_slow_used_bytes,"
                        "bluefs_slow_bytes&entity=%s",
                        osd->name);
        }
}

/* ---- reads ---- */

static double device_reads(const struct verdict_bench *bench)
{
        double sum = 0;

        for (size_t i = 0; i < bench->evidence->n_devices; i++)
                if (!isnan(bench->evidence->devices[i].values[EVIDENCE_DISK_READ_BYTES]))
                        sum += bench->evidence->devices[i].values[EVIDENCE_DISK_READ_BYTES];
        return sum;
}

void verdict_prefetch(struct verdict_bench *bench)
{
        double prefetched = verdict_sum(bench, EVIDENCE_PREFETCH_BYTES);
        double read = device_reads(bench), seconds = bench->evidence->seconds;
        struct verdict_finding *finding;

        if (!(prefetched >= PREFETCH_SHARE * read) || !(prefetched >= PREFETCH_RATE * seconds))
                return;
        finding = verdict_add(bench, VERDICT_CLUSTER, "cluster", prefetched / read,
                "RocksDB reads ahead: %.1f MB/s of prefetch, %.0f %% of all that the devices read, "
                "while clients read %.1f MB/s.",
                prefetched / seconds / 1e6, prefetched / read * 100,
                verdict_sum(bench, EVIDENCE_CLIENT_READ_BYTES) / seconds / 1e6);
        verdict_curve(finding,
                "/series?layer=objectstore&metric=bluefs_read_prefetch_bytes&by=osd&top=12");
        verdict_curve(
                finding, "/ratio?upper=filesystem&lower=storage&direction=read&measure=bytes");
}

/* By counting: who reads more than is stored reads something again. */
static bool reads_again(const struct verdict_bench *bench, double *ret_times)
{
        double read = 0, stored = 0;

        for (size_t i = 0; i < bench->evidence->n_pools; i++) {
                const struct evidence_pool *pool = &bench->evidence->pools[i];

                if (!(pool->read_bytes > 0) || !(pool->stored_bytes > 0))
                        continue;
                read += pool->read_bytes;
                stored += pool->stored_bytes;
        }
        *ret_times = stored > 0 ? read / stored : 0;
        return *ret_times >= AGAIN;
}

void verdict_small_cache(struct verdict_bench *bench)
{
        double client = verdict_sum(bench, EVIDENCE_CLIENT_READ_BYTES);
        double misses = verdict_sum(bench, EVIDENCE_ONODE_MISSES);
        double hits = verdict_sum(bench, EVIDENCE_ONODE_HITS);
        double times, read = device_reads(bench), seconds = bench->evidence->seconds;
        struct verdict_finding *finding = NULL;

        /* Scrubs and recovery read, too, and keep nothing. */
        if (verdict_has(bench, VERDICT_RANK_BACKGROUND) || !(client >= READ_RATE * seconds))
                return;
        if (reads_again(bench, &times) && read >= MISS_SHARE * client)
                finding = verdict_add(bench, VERDICT_CLUSTER, "cluster", fmin(1, read / client),
                        "Clients read %.1f times all that is stored in %.0f s, and yet %.0f %% of "
                        "it comes from the devices: the OSDs' caches are too small for it.",
                        times, seconds, fmin(1, read / client) * 100);
        else if (misses >= ONODE_MISSES * seconds && misses >= ONODE_MISS_SHARE * (hits + misses))
                finding = verdict_add(bench, VERDICT_CLUSTER, "cluster", misses / (hits + misses),
                        "%.0f %% of the look-ups of object metadata (%.0f/s) miss the OSDs' caches "
                        "and read the DB.",
                        misses / (hits + misses) * 100, misses / seconds);
        verdict_curve(
                finding, "/series?layer=objectstore&metric=buffer_hit_bytes,buffer_miss_bytes");
        verdict_curve(finding, "/series?layer=objectstore&metric=onode_hits,onode_misses");
        verdict_curve(
                finding, "/ratio?upper=filesystem&lower=storage&direction=read&measure=bytes");
}
