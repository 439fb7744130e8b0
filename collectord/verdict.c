#include "collectord/verdict-private.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
        struct verdict_rule rule;
        void (*look)(struct verdict_bench *bench);
} rules[] = {
        {{"recovery", VERDICT_OSD, VERDICT_RANK_BACKGROUND,
                 "Let it finish, or slow it down: osd_max_backfills, osd_recovery_sleep, or the "
                 "mclock profile high_client_ops."},
                verdict_recovery},
        {{"scrub", VERDICT_OSD, VERDICT_RANK_BACKGROUND,
                 "Move scrubs to quiet hours (osd_scrub_begin_hour, osd_scrub_end_hour) or slow "
                 "them down (osd_scrub_sleep, osd_max_scrubs)."},
                verdict_scrub},
        {{"slow_disk", VERDICT_STORAGE, VERDICT_RANK_SATURATED,
                 "Look at its SMART data, cable, controller and write cache; take its OSD out "
                 "(ceph osd out) and replace it if the peers stay fast."},
                verdict_slow_disk},
        {{"uneven_load", VERDICT_OSD, VERDICT_RANK_SATURATED,
                 "Even out the placement groups: the balancer (ceph balancer on, mode upmap), more "
                 "placement groups for the busy pool, and look for a hot object or image."},
                verdict_uneven_load},
        {{"flush_storm", VERDICT_STORAGE, VERDICT_RANK_SATURATED,
                 "Put the DB and WAL on devices with power-loss protection, where a flush costs "
                 "nothing, or switch off the volatile write cache (hdparm -W0)."},
                verdict_flush_storm},
        {{"discards", VERDICT_STORAGE, VERDICT_RANK_SATURATED,
                 "Set bdev_enable_discard = false, or bdev_async_discard = true with a limit, and "
                 "discard in quiet hours."},
                verdict_discards},
        {{"saturated_disk", VERDICT_STORAGE, VERDICT_RANK_SATURATED,
                 "More or faster devices; or fewer bytes for them: look at the amplification in "
                 "the ladder and at what else uses them."},
                verdict_saturated_disk},
        {{"osd_cpu", VERDICT_OSD, VERDICT_RANK_SATURATED,
                 "Give the OSD processes CPU: raise their quota (CPUQuota, a container's limit), "
                 "move other work off the host, or use fewer OSDs for each host."},
                verdict_osd_cpu},
        {{"host_cpu", VERDICT_OSD, VERDICT_RANK_SATURATED,
                 "The host's CPUs are full of OSD work: more or faster CPUs, larger requests, or "
                 "fewer OSDs for each host."},
                verdict_host_cpu},
        {{"network_interface", VERDICT_NETWORK, VERDICT_RANK_SATURATED,
                 "A faster link, a bond, or a network of its own for replication "
                 "(cluster_network)."},
                verdict_network_interface},
        {{"network_clients", VERDICT_NETWORK, VERDICT_RANK_SATURATED,
                 "Look at the way from the clients to the OSDs: link speed, shaping, drops and "
                 "retransmits (nstat, ethtool -S), MTU."},
                verdict_network_clients},
        {{"network_replicas", VERDICT_NETWORK, VERDICT_RANK_SATURATED,
                 "Look at the network between the OSDs (cluster_network): link speed, shaping, "
                 "drops and retransmits (nstat, ethtool -S), MTU."},
                verdict_network_replicas},
        {{"low_concurrency", VERDICT_CLIENT, VERDICT_RANK_CLIENT,
                 "Ask for more at once: a larger queue depth, more threads or clients, larger "
                 "requests. If each request must wait for the one before, only a lower latency "
                 "helps."},
                verdict_low_concurrency},
        {{"small_writes_ec", VERDICT_FILESYSTEM, VERDICT_RANK_MULTIPLIED,
                 "Keep small writes in a replicated pool, or write whole stripes (k x stripe_unit) "
                 "of the erasure-coded one."},
                verdict_small_writes_ec},
        {{"small_blocks", VERDICT_FILESYSTEM, VERDICT_RANK_MULTIPLIED,
                 "Use a larger block or record size, or merge writes at the client (RBD cache, "
                 "larger filesystem blocks, group commit)."},
                verdict_small_blocks},
        {{"deferred_writes", VERDICT_OBJECTSTORE, VERDICT_RANK_MULTIPLIED,
                 "Writes below bluestore_prefer_deferred_size are written twice. Put the WAL on a "
                 "fast device, use larger writes, or lower bluestore_prefer_deferred_size_hdd "
                 "where the devices do not rotate."},
                verdict_deferred_writes},
        {{"padding", VERDICT_OBJECTSTORE, VERDICT_RANK_MULTIPLIED,
                 "Align writes to 4 KiB and to min_alloc_size; OSDs made with a large "
                 "bluestore_min_alloc_size keep it until they are made anew."},
                verdict_padding},
        {{"compaction", VERDICT_OBJECTSTORE, VERDICT_RANK_MULTIPLIED,
                 "RocksDB rewrites its tables: a faster DB device, fewer small objects and omap "
                 "writes; compact in quiet hours (ceph tell osd.N compact)."},
                verdict_compaction},
        {{"prefetch", VERDICT_OBJECTSTORE, VERDICT_RANK_MULTIPLIED,
                 "RocksDB's iterators read ahead: look for long omap listings and large "
                 "deletions; bluefs_max_prefetch, compaction of the OSD."},
                verdict_prefetch},
        {{"small_cache", VERDICT_OBJECTSTORE, VERDICT_RANK_MULTIPLIED,
                 "The same data is read again from the devices: raise osd_memory_target, or cache "
                 "at the client."},
                verdict_small_cache},
        {{"spillover", VERDICT_OBJECTSTORE, VERDICT_RANK_NOTE,
                 "Enlarge the DB device (ceph-bluestore-tool bluefs-bdev-expand) or compact the "
                 "OSD (ceph tell osd.N compact)."},
                verdict_spillover},
};
#define N_RULES (sizeof(rules) / sizeof(rules[0]))

static const char *const layer_names[] = {
        [VERDICT_NONE] = "none",
        [VERDICT_STORAGE] = "storage",
        [VERDICT_OBJECTSTORE] = "objectstore",
        [VERDICT_OSD] = "osd",
        [VERDICT_NETWORK] = "network",
        [VERDICT_FILESYSTEM] = "filesystem",
        [VERDICT_CLIENT] = "client",
};

const char *verdict_layer_name(enum verdict_layer layer)
{
        return layer_names[layer];
}

const char *verdict_kind_name(enum verdict_kind kind)
{
        static const char *const names[] = {
                [VERDICT_CLUSTER] = "cluster",
                [VERDICT_CLASS] = "class",
                [VERDICT_HOST] = "host",
                [VERDICT_DEVICE] = "device",
                [VERDICT_ONE_OSD] = "osd",
                [VERDICT_POOL] = "pool",
        };

        return names[kind];
}

const struct verdict_rule *verdict_rule_at(size_t index)
{
        return index < N_RULES ? &rules[index].rule : NULL;
}

bool verdict_has(const struct verdict_bench *bench, enum verdict_rank rank)
{
        for (uint32_t i = 0; i < bench->verdict->n; i++)
                if (bench->verdict->findings[i].rank <= rank)
                        return true;
        return false;
}

bool verdict_has_rule(const struct verdict_bench *bench, const char *rule)
{
        for (uint32_t i = 0; i < bench->verdict->n; i++)
                if (strcmp(bench->verdict->findings[i].rule, rule) == 0)
                        return true;
        return false;
}

struct verdict_finding *verdict_add(struct verdict_bench *bench, enum verdict_kind kind,
        const char *entity, double share, const char *format, ...)
{
        struct verdict *verdict = bench->verdict;
        struct verdict_finding *finding;
        va_list arguments;

        if (verdict->n == VERDICT_FINDINGS_MAX) {
                verdict->left_out++;
                return NULL;
        }
        finding = &verdict->findings[verdict->n++];
        *finding = (struct verdict_finding){
                .rule = bench->rule->name,
                .advice = bench->rule->advice,
                .layer = bench->rule->layer,
                .rank = bench->rule->rank,
                .kind = kind,
                .share = isnan(share) ? 0 : fmin(1, fmax(0, share)),
        };
        snprintf(finding->entity, sizeof(finding->entity), "%s", entity);
        va_start(arguments, format);
        vsnprintf(finding->sentence, sizeof(finding->sentence), format, arguments);
        va_end(arguments);
        return finding;
}

void verdict_curve(struct verdict_finding *finding, const char *format, ...)
{
        va_list arguments;

        if (!finding || finding->n_curves == VERDICT_CURVES_MAX)
                return;
        va_start(arguments, format);
        vsnprintf(finding->curves[finding->n_curves++], VERDICT_CURVE_MAX, format, arguments);
        va_end(arguments);
}

static int compare_findings(const void *a, const void *b)
{
        const struct verdict_finding *x = a, *y = b;

        if (x->rank != y->rank)
                return x->rank < y->rank ? -1 : 1;
        if (x->share != y->share)
                return x->share < y->share ? 1 : -1;
        return strcmp(x->entity, y->entity);
}

/* Why there is no bottleneck. */
static void explain_none(const struct verdict_bench *bench)
{
        struct verdict *verdict = bench->verdict;
        double busiest = 0;

        if (!(bench->writes + bench->reads > 0)) {
                snprintf(verdict->sentence, sizeof(verdict->sentence),
                        isnan(bench->writes) ? "No OSD has told enough to judge."
                                             : "Clients ask for nothing.");
                return;
        }
        for (size_t i = 0; i < bench->evidence->n_devices; i++)
                busiest = fmax(busiest, bench->devices[i].busy);
        snprintf(verdict->sentence, sizeof(verdict->sentence),
                "No layer stands out: %.1f operations in flight (%.0f writes/s and %.0f reads/s), "
                "the busiest device is busy %.0f %% of the time.",
                bench->in_flight, bench->writes, bench->reads, busiest * 100);
}

int verdict_judge(const struct evidence *evidence, struct verdict **ret)
{
        CLEANUP(verdict) struct verdict *verdict = calloc(1, sizeof(*verdict));
        struct verdict_bench bench;
        int r;

        if (!verdict)
                return -ENOMEM;
        r = verdict_bench_init(&bench, evidence);
        if (r < 0)
                return r;
        bench.verdict = verdict;
        for (size_t i = 0; i < N_RULES; i++) {
                bench.rule = &rules[i].rule;
                rules[i].look(&bench);
        }
        qsort(verdict->findings, verdict->n, sizeof(verdict->findings[0]), compare_findings);
        verdict->bottleneck = verdict->n > 0 && verdict->findings[0].rank < VERDICT_RANK_NOTE;
        if (!verdict->bottleneck)
                explain_none(&bench);
        verdict_bench_done(&bench);
        *ret = STEAL(verdict);
        return 0;
}

struct verdict *verdict_free(struct verdict *verdict)
{
        free(verdict);
        return NULL;
}
