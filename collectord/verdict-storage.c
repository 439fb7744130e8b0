/* Rules about the devices. */
#include "collectord/verdict-private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SLOW_DIFFERENCE 0.002 /* seconds; below, a client does not notice whose disk it was */
#define FLUSH_BUSY 0.3        /* share of the time in which a flush is under way */
#define FLUSH_OVER_WRITE 2.0  /* with power-loss protection a flush costs less than a write */
#define FLUSH_AWAIT 0.002     /* seconds */
#define DISCARD_SHARE 0.3     /* of the requests in flight */
#define CLASS_MIN 2u          /* of one device nothing is said about a class */

static void add_curves(struct verdict_finding *finding, const char *device)
{
        verdict_curve(finding, "/series?layer=storage&metric=queue&entity=%s", device);
        verdict_curve(finding,
                "/series?layer=storage&metric=utilisation,write_await,read_await&entity=%s",
                device);
}

static void add_class_curves(struct verdict_finding *finding)
{
        verdict_curve(finding, "/series?layer=storage&metric=queue&by=device&top=12");
        verdict_curve(
                finding, "/series?layer=storage&metric=write_await,read_await&by=device&top=12");
        verdict_curve(finding, "/series?layer=objectstore&metric=write_await&by=class");
}

/* Its disk is in a finding already. */
static bool is_named(const struct verdict_bench *bench, size_t index)
{
        for (uint32_t i = 0; i < bench->verdict->n; i++)
                if (bench->verdict->findings[i].kind == VERDICT_DEVICE &&
                        strcmp(bench->verdict->findings[i].entity,
                                verdict_disk_name(bench, index)) == 0)
                        return true;
        return false;
}

/* ---- one slow disk among its peers ---- */

/* The median of a number over the peers of @index; *ret_n: how many there are with one. */
static double peers(const struct verdict_bench *bench, size_t index,
        double (*get)(const struct verdict_bench *bench, size_t index), size_t *ret_n)
{
        const struct evidence_device *devices = bench->evidence->devices;
        size_t n = 0;

        for (size_t i = 0; i < bench->evidence->n_devices; i++) {
                double value = get(bench, i);

                if (i != index && verdict_are_peers(&devices[i], &devices[index]) && !isnan(value))
                        bench->scratch[n++] = value;
        }
        *ret_n = n;
        return verdict_median(bench->scratch, n);
}

static double get_await(const struct verdict_bench *bench, size_t index)
{
        return bench->devices[index].await;
}

static double get_operations(const struct verdict_bench *bench, size_t index)
{
        return bench->devices[index].operations;
}

static double get_store_latency(const struct verdict_bench *bench, size_t index)
{
        uint32_t osd = bench->evidence->devices[index].osd;

        return osd == EVIDENCE_NONE ? NAN : bench->osds[osd].store_latency;
}

static void look_at_slow(struct verdict_bench *bench, size_t i)
{
        const struct evidence_device *device = &bench->evidence->devices[i];
        const struct verdict_device *numbers = &bench->devices[i];
        size_t n;
        double median = peers(bench, i, get_await, &n), store, load;

        if (n + 1 < VERDICT_PEERS_MIN || !(numbers->await >= VERDICT_MULTIPLE * median) ||
                !(numbers->await - median >= SLOW_DIFFERENCE))
                return;
        /* More work than the others have is another cause. */
        load = peers(bench, i, get_operations, &n);
        if (numbers->operations > VERDICT_MULTIPLE / 2 * load)
                return;
        /* It matters only when the OSD on it waits, too. */
        store = peers(bench, i, get_store_latency, &n);
        if (!(get_store_latency(bench, i) >= VERDICT_MULTIPLE / 2 * store))
                return;
        /* Its other partitions are the same disk. */
        if (is_named(bench, i))
                return;
        add_curves(verdict_add(bench, VERDICT_DEVICE, verdict_disk_name(bench, i),
                           1 - median / numbers->await,
                           "%s answers after %.1f ms where the median of its %zu peers is %.2f ms, "
                           "with %.0f operations/s against their %.0f; %s on it takes %.0f ms for "
                           "what takes the others %.1f ms.",
                           device->name, numbers->await * 1e3, n, median * 1e3, numbers->operations,
                           load,
                           device->osd == EVIDENCE_NONE ? "the OSD"
                                                        : bench->evidence->osds[device->osd].name,
                           get_store_latency(bench, i) * 1e3, store * 1e3),
                verdict_disk_name(bench, i));
}

void verdict_slow_disk(struct verdict_bench *bench)
{
        for (size_t i = 0; i < bench->evidence->n_devices; i++)
                look_at_slow(bench, i);
}

/* ---- what holds for one device, or for most of a class ---- */

struct group {
        size_t n, hit, near; /* members; of those, that are it; that are nearly it, too */
        size_t worst;        /* the one with the longest queue */
        double share;        /* the largest */
};

typedef bool (*device_predicate)(const struct verdict_bench *bench, size_t index);

/* Only devices that are @counted: where parts of a disk are taken together, the first of them. */
static struct group count_group(const struct verdict_bench *bench, size_t first,
        device_predicate counted, device_predicate predicate, device_predicate nearly)
{
        const struct evidence_device *devices = bench->evidence->devices;
        struct group group = {.worst = first};

        for (size_t i = 0; i < bench->evidence->n_devices; i++) {
                if (devices[i].silent || !verdict_are_peers(&devices[i], &devices[first]) ||
                        !counted(bench, i))
                        continue;
                group.n++;
                group.near += nearly(bench, i);
                if (!predicate(bench, i))
                        continue;
                if (group.hit++ == 0 || bench->devices[i].queue > bench->devices[group.worst].queue)
                        group.worst = i;
                group.share = fmax(group.share, bench->devices[i].share);
        }
        return group;
}

/* A group is looked at from its first member. */
static bool is_first(const struct verdict_bench *bench, size_t index)
{
        for (size_t i = 0; i < index; i++)
                if (verdict_are_peers(
                            &bench->evidence->devices[i], &bench->evidence->devices[index]))
                        return false;
        return true;
}

static bool is_any(const struct verdict_bench *bench, size_t index)
{
        (void)bench, (void)index;
        return true;
}

/* Where one is it and most are nearly it, they have it in common: the class is named. */
static void look_at_groups(struct verdict_bench *bench, device_predicate counted,
        device_predicate predicate, device_predicate nearly,
        void (*add)(struct verdict_bench *bench, const struct group *group, size_t index))
{
        for (size_t i = 0; i < bench->evidence->n_devices; i++) {
                struct group group;

                if (!is_first(bench, i))
                        continue;
                group = count_group(bench, i, counted, predicate, nearly);
                if (group.hit > 0 && group.near >= CLASS_MIN && 2 * group.near >= group.n) {
                        add(bench, &group, group.worst);
                        continue;
                }
                for (size_t k = i; k < bench->evidence->n_devices && group.hit > 0; k++) {
                        if (!verdict_are_peers(
                                    &bench->evidence->devices[k], &bench->evidence->devices[i]) ||
                                !predicate(bench, k))
                                continue;
                        add(bench, NULL, k);
                        group.hit--;
                }
        }
}

static const char *class_of(const struct evidence_device *device)
{
        return *device->class ? device->class : "cluster";
}

/* ---- a full disk ---- */

static const struct verdict_disk *disk_of(const struct verdict_bench *bench, size_t index)
{
        return &bench->disks[bench->devices[index].disk];
}

static bool is_first_part(const struct verdict_bench *bench, size_t index)
{
        return disk_of(bench, index)->first == index;
}

static bool is_busy_for_its_osds(const struct verdict_bench *bench, size_t index)
{
        const struct verdict_disk *disk = disk_of(bench, index);

        return is_first_part(bench, index) && disk->busy >= VERDICT_BUSY &&
               disk->share >= VERDICT_DEVICE_SHARE && !is_named(bench, index);
}

/* An OSD has one commit under way at a time, and what waits for it waits in the OSD: on a disk for
 * journals alone no queue is longer. */
static bool waits_in_osds(const struct verdict_bench *bench, size_t index)
{
        const struct verdict_disk *disk = disk_of(bench, index);

        return strcmp(bench->evidence->devices[index].role, "block") != 0 &&
               disk->queue >= VERDICT_BUSY && disk->transactions >= VERDICT_QUEUE;
}

static bool is_saturated(const struct verdict_bench *bench, size_t index)
{
        return is_busy_for_its_osds(bench, index) &&
               (disk_of(bench, index)->queue >= VERDICT_QUEUE || waits_in_osds(bench, index));
}

/* Reads go to the primaries, which are never spread evenly. */
static bool is_nearly_saturated(const struct verdict_bench *bench, size_t index)
{
        return is_busy_for_its_osds(bench, index) &&
               (disk_of(bench, index)->queue >= 1 || waits_in_osds(bench, index));
}

static void add_saturated(struct verdict_bench *bench, const struct group *group, size_t index)
{
        const struct evidence_device *device = &bench->evidence->devices[index];
        const struct verdict_disk *numbers = disk_of(bench, index);
        const char *name = verdict_disk_name(bench, index);
        struct verdict_finding *finding;

        if (group) {
                finding = verdict_add(bench, VERDICT_CLASS, class_of(device), group->share,
                        "%zu of %zu %s devices are full: %s has %.1f requests in flight, each "
                        "takes "
                        "%.1f ms, %.0f %% of the time it is busy; waiting for it is %.0f %% of the "
                        "object store's time.",
                        group->near, group->n, class_of(device), name, numbers->queue,
                        numbers->await * 1e3, numbers->busy * 100, group->share * 100);
                add_class_curves(finding);
                return;
        }
        finding = verdict_add(bench, VERDICT_DEVICE, name, numbers->share,
                "%s%s%s is full: %.1f requests in flight, each takes %.1f ms, busy %.0f %% of the "
                "time; waiting for it is %.0f %% of the object store's time of %s%s.",
                name, *device->role && strcmp(device->role, "block") != 0 ? ", " : "",
                strcmp(device->role, "block") != 0 ? device->role : "", numbers->queue,
                numbers->await * 1e3, numbers->busy * 100, numbers->share * 100,
                device->osd == EVIDENCE_NONE ? "its OSD" : bench->evidence->osds[device->osd].name,
                numbers->n_osds > 1 ? " and others that share it" : "");
        add_curves(finding, name);
}

void verdict_saturated_disk(struct verdict_bench *bench)
{
        look_at_groups(bench, is_first_part, is_saturated, is_nearly_saturated, add_saturated);
}

/* ---- flushes ---- */

static double write_await(const struct verdict_bench *bench, size_t index)
{
        const double *v = bench->evidence->devices[index].values;

        return v[EVIDENCE_DISK_WRITE_TIME] / v[EVIDENCE_DISK_WRITES];
}

/* Of the time that a commit takes, on the OSD whose journal lies here. */
static double flush_share(const struct verdict_bench *bench, size_t index)
{
        uint32_t osd = bench->evidence->devices[index].osd;
        const double *v;

        if (osd == EVIDENCE_NONE)
                return NAN;
        v = bench->evidence->osds[osd].values;
        return fmin(1, bench->devices[index].flush_await * v[EVIDENCE_COMMITS] /
                               (v[EVIDENCE_COMMIT_TIME] + v[EVIDENCE_FLUSH_TIME]));
}

static bool is_flushing(const struct verdict_bench *bench, size_t index)
{
        const struct verdict_device *device = &bench->devices[index];

        return device->flush_busy >= FLUSH_BUSY && device->flush_await >= FLUSH_AWAIT &&
               device->flush_await >= FLUSH_OVER_WRITE * write_await(bench, index) &&
               flush_share(bench, index) >= VERDICT_DEVICE_SHARE && !is_named(bench, index);
}

static void add_flush(struct verdict_bench *bench, const struct group *group, size_t index)
{
        const struct evidence_device *device = &bench->evidence->devices[index];
        const struct verdict_device *numbers = &bench->devices[index];
        struct verdict_finding *finding;
        char who[64];

        if (group)
                snprintf(who, sizeof(who), "%zu of %zu %.20s devices flush", group->hit, group->n,
                        class_of(device));
        finding = verdict_add(bench, group ? VERDICT_CLASS : VERDICT_DEVICE,
                group ? class_of(device) : device->name, flush_share(bench, index),
                "%s slowly: a flush of %s takes %.1f ms and a write %.1f ms; there are %.0f "
                "flushes/s, one is under way %.0f %% of the time, and they are %.0f %% of a "
                "commit's time.",
                group ? who : "This device flushes", device->name, numbers->flush_await * 1e3,
                write_await(bench, index) * 1e3, numbers->flush_busy / numbers->flush_await,
                numbers->flush_busy * 100, flush_share(bench, index) * 100);
        verdict_curve(finding, "/series?layer=storage&metric=flush_await,flush_ops&entity=%s",
                device->name);
        verdict_curve(finding, "/series?layer=storage&metric=write_await&entity=%s", device->name);
}

void verdict_flush_storm(struct verdict_bench *bench)
{
        look_at_groups(bench, is_any, is_flushing, is_flushing, add_flush);
}

/* ---- discards ---- */

static double discard_share(const struct verdict_bench *bench, size_t index)
{
        const double *v = bench->evidence->devices[index].values;

        return v[EVIDENCE_DISK_DISCARD_TIME] / v[EVIDENCE_DISK_WEIGHTED];
}

static bool is_discarding(const struct verdict_bench *bench, size_t index)
{
        return discard_share(bench, index) >= DISCARD_SHARE && bench->devices[index].queue >= 1;
}

static void add_discard(struct verdict_bench *bench, const struct group *group, size_t index)
{
        const struct evidence_device *device = &bench->evidence->devices[index];
        const double *v = device->values;
        struct verdict_finding *finding = verdict_add(bench, group ? VERDICT_CLASS : VERDICT_DEVICE,
                group ? class_of(device) : device->name, discard_share(bench, index),
                "Discards are %.0f %% of what %s works on: %.0f/s of %.1f ms each, %.0f MB/s.",
                discard_share(bench, index) * 100, device->name,
                v[EVIDENCE_DISK_DISCARDS] / bench->evidence->seconds,
                v[EVIDENCE_DISK_DISCARD_TIME] / v[EVIDENCE_DISK_DISCARDS] * 1e3,
                v[EVIDENCE_DISK_DISCARD_BYTES] / bench->evidence->seconds / 1e6);

        verdict_curve(finding,
                "/series?layer=storage&metric=discard_ops,discard_bytes,queue&entity=%s",
                device->name);
}

void verdict_discards(struct verdict_bench *bench)
{
        look_at_groups(bench, is_any, is_discarding, is_discarding, add_discard);
}
