/* Rules about what OSDs do beside the clients' work, and about their CPU. */
#include "collectord/verdict-private.h"

#include <math.h>
#include <string.h>

#define BACKGROUND_SHARE 0.3 /* of the bytes that devices move */
#define BACKGROUND_BUSY 0.1  /* mean share of the time that devices are busy */
#define SCRUB_ALONE 0.8      /* of the devices' reads are of objects that nobody asked for */
#define BACKGROUND_PGS 0.5   /* mean over the window */
#define WAIT_RATIO 10.0      /* threads wait ten times as long as they run */
#define WAIT_SHARE 0.2       /* waiting threads for each operation in flight */
#define IN_FLIGHT_MIN 0.5    /* below, waits of a few threads say nothing about operations */
#define HOST_BUSY 0.95
#define HOST_OSD_SHARE 0.5    /* of its CPUs */
#define CPU_DEVICE_SHARE 0.25 /* of the object store's time; above, devices have their part in it  \
                               */
#define UNEVEN 1.5            /* times the median */

/* ---- background ---- */

static double device_sum(const struct verdict_bench *bench, enum evidence_device_value value)
{
        double sum = 0;

        for (size_t i = 0; i < bench->evidence->n_devices; i++)
                if (!isnan(bench->evidence->devices[i].values[value]))
                        sum += bench->evidence->devices[i].values[value];
        return sum;
}

static double mean_busy(const struct verdict_bench *bench)
{
        size_t n = bench->evidence->n_devices;

        return n ? device_sum(bench, EVIDENCE_DISK_BUSY) / (double)n / bench->evidence->seconds
                 : NAN;
}

static double moved_bytes(const struct verdict_bench *bench)
{
        return device_sum(bench, EVIDENCE_DISK_READ_BYTES) +
               device_sum(bench, EVIDENCE_DISK_WRITE_BYTES);
}

/* Each recovered byte is read once and written once. */
void verdict_recovery(struct verdict_bench *bench)
{
        const struct evidence *evidence = bench->evidence;
        double pushed = verdict_sum(bench, EVIDENCE_PUSHED_BYTES);
        double recovered = fmax(evidence->noise.recovered_bytes, pushed);
        double share = fmin(1, 2 * recovered / moved_bytes(bench));
        struct verdict_finding *finding;

        if (!(evidence->noise.pgs_recovering >= BACKGROUND_PGS) || !(share >= BACKGROUND_SHARE) ||
                !(mean_busy(bench) >= BACKGROUND_BUSY))
                return;
        finding = verdict_add(bench, VERDICT_CLUSTER, "cluster", share,
                "Recovery moves %.1f MB/s in %.1f placement groups, about %.0f %% of all that the "
                "devices read and write; they are busy %.0f %% of the time.",
                recovered / evidence->seconds / 1e6, evidence->noise.pgs_recovering, share * 100,
                mean_busy(bench) * 100);
        verdict_curve(finding, "/series?layer=osd&metric=subop_push_in_bytes,recovery_ops");
        verdict_curve(finding, "/series?layer=storage&metric=utilisation&by=device&top=12");
        verdict_curve(finding, "/series?layer=osd&metric=write_await");
}

/* Objects that are read for neither clients nor recovery; NaN where writes read, too (erasure-coded
 * pools change stripes that they read first). */
static double unasked_reads(const struct verdict_bench *bench)
{
        double pushed = verdict_sum(bench, EVIDENCE_PUSHED_BYTES);

        for (size_t i = 0; i < bench->evidence->n_pools; i++)
                if (bench->evidence->pools[i].erasure && bench->evidence->pools[i].writes > 0)
                        return NAN;
        return verdict_sum(bench, EVIDENCE_MISS_BYTES) -
               verdict_sum(bench, EVIDENCE_CLIENT_READ_BYTES) - (isnan(pushed) ? 0 : pushed);
}

/*
 * The placement groups' state comes every five seconds, and the scrub of a small one is over
 * before: reads that nobody asked for tell, too.
 */
void verdict_scrub(struct verdict_bench *bench)
{
        const struct evidence *evidence = bench->evidence;
        double read = device_sum(bench, EVIDENCE_DISK_READ_BYTES);
        double unasked = unasked_reads(bench);
        double share = unasked / moved_bytes(bench);
        struct verdict_finding *finding;

        if (!(evidence->noise.pgs_scrubbing > 0) && !(unasked >= SCRUB_ALONE * read))
                return;
        if (evidence->noise.pgs_recovering >= BACKGROUND_PGS || !(share >= BACKGROUND_SHARE) ||
                !(mean_busy(bench) >= BACKGROUND_BUSY))
                return;
        finding = verdict_add(bench, VERDICT_CLUSTER, "cluster", share,
                "A scrub (seen in %.1f placement groups) reads %.1f MB/s that no client asked for, "
                "%.0f %% of all that the devices read and write; they are busy %.0f %% of the "
                "time.",
                evidence->noise.pgs_scrubbing, unasked / evidence->seconds / 1e6, share * 100,
                mean_busy(bench) * 100);
        verdict_curve(finding, "/series?layer=storage&metric=read_bytes,write_bytes");
        verdict_curve(finding, "/series?layer=storage&metric=utilisation&by=device&top=12");
        verdict_curve(finding, "/series?layer=osd&metric=write_await,read_await");
}

/* ---- CPU ---- */

static bool is_starved(const struct verdict_bench *bench, size_t index)
{
        const struct verdict_osd *osd = &bench->osds[index];

        return osd->wait_ratio >= WAIT_RATIO && osd->in_flight >= IN_FLIGHT_MIN &&
               osd->waiting >= WAIT_SHARE * osd->in_flight &&
               !(osd->device_share >= CPU_DEVICE_SHARE);
}

static double used(const struct verdict_bench *bench, size_t index)
{
        return bench->evidence->osds[index].values[EVIDENCE_RUN_TIME] / bench->evidence->seconds;
}

static void add_starved_osd(struct verdict_bench *bench, size_t i)
{
        const struct evidence_osd *osd = &bench->evidence->osds[i];
        const struct verdict_osd *numbers = &bench->osds[i];
        struct verdict_finding *finding = verdict_add(bench, VERDICT_ONE_OSD, osd->name,
                numbers->waiting / numbers->in_flight,
                "%s is short of CPU: its threads run %.2f s each second and wait %.2f s for a CPU, "
                "%.0f times as long, with %.1f operations in flight; its device explains %.0f %% "
                "of the object store's time.",
                osd->name, used(bench, i), numbers->waiting, numbers->wait_ratio,
                numbers->in_flight, numbers->device_share * 100);

        verdict_curve(finding,
                "/series?layer=osd&metric=process_wait_time,process_run_time&entity=%s", osd->name);
        verdict_curve(
                finding, "/series?layer=osd&metric=write_await,read_await&entity=%s", osd->name);
        verdict_curve(finding, "/series?layer=objectstore&metric=write_await&entity=%s", osd->name);
}

static void add_starved_host(struct verdict_bench *bench, const char *host, size_t n, size_t worst)
{
        const struct evidence_osd *osd = &bench->evidence->osds[worst];
        const struct verdict_osd *numbers = &bench->osds[worst];
        struct verdict_finding *finding = verdict_add(bench, VERDICT_HOST, host,
                numbers->waiting / numbers->in_flight,
                "%zu OSDs on %s are short of CPU: the threads of %s run %.2f s each second and "
                "wait %.2f s for a CPU, %.0f times as long, with %.1f operations in flight; its "
                "device explains %.0f %% of the object store's time.",
                n, host, osd->name, used(bench, worst), numbers->waiting, numbers->wait_ratio,
                numbers->in_flight, numbers->device_share * 100);

        verdict_curve(finding,
                "/series?layer=osd&metric=process_wait_time,process_run_time&by=host&host=%s",
                host);
        verdict_curve(finding,
                "/series?layer=host&metric=cpu_idle,pressure_cpu_some&entity=host&host=%s", host);
        verdict_curve(finding, "/series?layer=objectstore&metric=write_await&by=host");
}

/* From the first starved OSD of a host: one finding for most of them, or one for each. */
static void look_at_starved(struct verdict_bench *bench, size_t first)
{
        const struct evidence *evidence = bench->evidence;
        const char *host = evidence->osds[first].host;
        size_t n = 0, starved = 0, worst = first;

        for (size_t i = 0; i < evidence->n_osds; i++) {
                if (strcmp(evidence->osds[i].host, host) != 0 || evidence->osds[i].silent)
                        continue;
                if (i < first && is_starved(bench, i))
                        return;
                n++;
                if (!is_starved(bench, i))
                        continue;
                starved++;
                if (bench->osds[i].waiting > bench->osds[worst].waiting)
                        worst = i;
        }
        if (starved > 1 && 2 * starved >= n) {
                add_starved_host(bench, host, starved, worst);
                return;
        }
        for (size_t i = first; i < evidence->n_osds; i++)
                if (strcmp(evidence->osds[i].host, host) == 0 && is_starved(bench, i))
                        add_starved_osd(bench, i);
}

void verdict_osd_cpu(struct verdict_bench *bench)
{
        for (size_t i = 0; i < bench->evidence->n_osds; i++)
                if (is_starved(bench, i))
                        look_at_starved(bench, i);
}

/* The largest share that a device has in the time of the host's OSDs. */
static double host_device_share(const struct verdict_bench *bench, const char *host)
{
        double share = NAN;

        for (size_t i = 0; i < bench->evidence->n_osds; i++)
                if (strcmp(bench->evidence->osds[i].host, host) == 0)
                        share = fmax(share, bench->osds[i].device_share);
        return share;
}

void verdict_host_cpu(struct verdict_bench *bench)
{
        if (verdict_has(bench, VERDICT_RANK_SATURATED))
                return;
        for (size_t i = 0; i < bench->evidence->n_hosts; i++) {
                const struct evidence_host *host = &bench->evidence->hosts[i];
                struct verdict_finding *finding;

                if (!(host->busy + (isnan(host->steal) ? 0 : host->steal) >= HOST_BUSY) ||
                        !(host->osd_run >= HOST_OSD_SHARE) ||
                        !(host_device_share(bench, host->name) < CPU_DEVICE_SHARE))
                        continue;
                finding = verdict_add(bench, VERDICT_HOST, host->name, host->osd_run,
                        "The %.0f CPUs of %s are busy %.0f %% of the time, its OSDs take %.0f %% "
                        "of "
                        "them, and devices explain only %.0f %% of the object store's time.",
                        host->cpus, host->name, host->busy * 100, host->osd_run * 100,
                        host_device_share(bench, host->name) * 100);
                verdict_curve(finding,
                        "/series?layer=host&metric=cpu_idle,pressure_cpu_some&entity=host&host=%s",
                        host->name);
                verdict_curve(finding, "/series?layer=osd&metric=write_ops,read_ops&by=host");
        }
}

/* ---- uneven load ---- */

static double peer_operations(const struct verdict_bench *bench, size_t index, size_t *ret_n)
{
        const struct evidence_device *devices = bench->evidence->devices;
        size_t n = 0;

        for (size_t i = 0; i < bench->evidence->n_devices; i++)
                if (i != index && verdict_are_peers(&devices[i], &devices[index]) &&
                        !isnan(bench->devices[i].operations))
                        bench->scratch[n++] = bench->devices[i].operations;
        *ret_n = n;
        return verdict_median(bench->scratch, n);
}

static void look_at_uneven(struct verdict_bench *bench, size_t i)
{
        const struct evidence_device *device = &bench->evidence->devices[i];
        const struct verdict_device *numbers = &bench->devices[i];
        struct verdict_finding *finding;
        const char *osd;
        size_t n;
        double median = peer_operations(bench, i, &n);

        if (n + 1 < VERDICT_PEERS_MIN || device->osd == EVIDENCE_NONE || device->n_osds != 1 ||
                !(numbers->operations >= UNEVEN * median) || !(numbers->busy >= VERDICT_BUSY) ||
                !(numbers->queue >= VERDICT_QUEUE))
                return;
        osd = bench->evidence->osds[device->osd].name;
        finding = verdict_add(bench, VERDICT_ONE_OSD, osd, 1 - median / numbers->operations,
                "%s has %.1f times the load of its peers: %.0f operations/s on %s where the median "
                "of %zu others is %.0f; it is busy %.0f %% of the time with %.1f requests in "
                "flight.",
                osd, numbers->operations / median, numbers->operations, device->name, n, median,
                numbers->busy * 100, numbers->queue);
        verdict_curve(finding, "/series?layer=osd&metric=write_ops,read_ops,numpg&by=osd&top=12");
        verdict_curve(finding, "/series?layer=storage&metric=utilisation&by=device&top=12");
}

void verdict_uneven_load(struct verdict_bench *bench)
{
        for (size_t i = 0; i < bench->evidence->n_devices; i++)
                look_at_uneven(bench, i);
}
