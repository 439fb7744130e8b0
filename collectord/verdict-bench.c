/* The numbers that the rules compare, made of the evidence once: where the time of an operation
 * goes. */
#include "collectord/verdict-private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double or_zero(double value)
{
        return isnan(value) ? 0 : value;
}

static double quotient(double a, double b)
{
        return b > 0 ? a / b : NAN;
}

double verdict_sum(const struct verdict_bench *bench, enum evidence_osd_value value)
{
        double sum = NAN;

        for (size_t i = 0; i < bench->evidence->n_osds; i++) {
                double one = bench->evidence->osds[i].values[value];

                if (!isnan(one))
                        sum = or_zero(sum) + one;
        }
        return sum;
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

double verdict_median(double *values, size_t n)
{
        if (n == 0)
                return NAN;
        qsort(values, n, sizeof(*values), compare);
        return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

bool verdict_are_peers(const struct evidence_device *a, const struct evidence_device *b)
{
        return strcmp(a->class, b->class) == 0 && strcmp(a->role, b->role) == 0;
}

static void measure_device(struct verdict_bench *bench, size_t i)
{
        const double *v = bench->evidence->devices[i].values;
        double seconds = bench->evidence->seconds;

        bench->devices[i] = (struct verdict_device){
                .operations = (v[EVIDENCE_DISK_READS] + v[EVIDENCE_DISK_WRITES]) / seconds,
                .await = quotient(v[EVIDENCE_DISK_READ_TIME] + v[EVIDENCE_DISK_WRITE_TIME],
                        v[EVIDENCE_DISK_READS] + v[EVIDENCE_DISK_WRITES]),
                .queue = v[EVIDENCE_DISK_WEIGHTED] / seconds,
                .busy = v[EVIDENCE_DISK_BUSY] / seconds,
                .flush_await = quotient(v[EVIDENCE_DISK_FLUSH_TIME], v[EVIDENCE_DISK_FLUSHES]),
                .flush_busy = v[EVIDENCE_DISK_FLUSH_TIME] / seconds,
        };
}

/*
 * Of a disk for journals alone all writes but those of tables are a commit's, one after the other:
 * four for each, as measured. Where several OSDs are behind one counter, or data lies beside the
 * journal, a commit is taken to wait for one write.
 */
static double journal_time(const struct verdict_bench *bench, const struct evidence_osd *osd)
{
        const struct evidence_device *device = &bench->evidence->devices[osd->journal];
        const double *v = device->values;
        double wal = osd->values[EVIDENCE_WAL_BYTES], sst = or_zero(osd->values[EVIDENCE_SST_BYTES]);

        if (osd->journal == osd->data || device->n_osds > 1)
                return quotient(v[EVIDENCE_DISK_WRITE_TIME], v[EVIDENCE_DISK_WRITES]);
        return quotient(fmin(v[EVIDENCE_DISK_WRITE_TIME], v[EVIDENCE_DISK_BUSY]) *
                                (wal > 0 ? wal / (wal + sst) : 1),
                osd->values[EVIDENCE_COMMITS]);
}

/* What a commit of RocksDB waits for on the device: writes of the WAL and a flush. */
static double journal_share(const struct verdict_bench *bench, const struct evidence_osd *osd)
{
        double sync = quotient(or_zero(osd->values[EVIDENCE_COMMIT_TIME]) +
                                       or_zero(osd->values[EVIDENCE_FLUSH_TIME]),
                osd->values[EVIDENCE_COMMITS]);

        if (osd->journal == EVIDENCE_NONE)
                return NAN;
        return fmin(1, (journal_time(bench, osd) +
                               or_zero(bench->devices[osd->journal].flush_await)) /
                               sync);
}

/* Seconds of all transactions together that the devices explain. */
static double device_time_of_writes(
        const struct verdict_bench *bench, const struct evidence_osd *osd)
{
        double transactions = osd->values[EVIDENCE_TRANSACTIONS];
        double data = or_zero(osd->values[EVIDENCE_DATA_WAIT_TIME]);
        double rest = osd->values[EVIDENCE_TRANSACTION_TIME] - data;
        double await = NAN;

        if (osd->data != EVIDENCE_NONE) {
                const double *v = bench->evidence->devices[osd->data].values;

                await = quotient(v[EVIDENCE_DISK_WRITE_TIME], v[EVIDENCE_DISK_WRITES]);
        }
        return fmin(data, or_zero(await * transactions)) +
               or_zero(rest * journal_share(bench, osd));
}

static double device_time_of_reads(
        const struct verdict_bench *bench, const struct evidence_osd *osd)
{
        double time = or_zero(osd->values[EVIDENCE_STORE_READ_TIME]);

        if (osd->data == EVIDENCE_NONE)
                return 0;
        return fmin(
                time, or_zero(bench->evidence->devices[osd->data].values[EVIDENCE_DISK_READ_TIME]));
}

static void measure_osd(struct verdict_bench *bench, size_t i)
{
        const struct evidence_osd *osd = &bench->evidence->osds[i];
        const double *v = osd->values;
        double seconds = bench->evidence->seconds;
        double writes = or_zero(v[EVIDENCE_TRANSACTION_TIME]);
        double reads = or_zero(v[EVIDENCE_STORE_READ_TIME]);

        bench->osds[i] = (struct verdict_osd){
                .in_flight = (or_zero(v[EVIDENCE_WRITE_TIME]) + or_zero(v[EVIDENCE_READ_TIME]) +
                                     or_zero(v[EVIDENCE_REPLICA_TIME])) /
                             seconds,
                .store_latency = quotient(writes + reads,
                        or_zero(v[EVIDENCE_TRANSACTIONS]) + or_zero(v[EVIDENCE_STORE_READS])),
                .device_share = quotient(
                        device_time_of_writes(bench, osd) + device_time_of_reads(bench, osd),
                        writes + reads),
                .wait_ratio = quotient(v[EVIDENCE_WAIT_TIME], v[EVIDENCE_RUN_TIME]),
                .waiting = v[EVIDENCE_WAIT_TIME] / seconds,
        };
}

static void share_devices(struct verdict_bench *bench)
{
        for (size_t i = 0; i < bench->evidence->n_devices; i++)
                bench->devices[i].share = NAN;
        for (size_t i = 0; i < bench->evidence->n_osds; i++) {
                const uint32_t under[] = {
                        bench->evidence->osds[i].data, bench->evidence->osds[i].journal};

                /* fmax prefers a number to NaN. */
                for (size_t k = 0; k < 2; k++)
                        if (under[k] != EVIDENCE_NONE)
                                bench->devices[under[k]].share =
                                        fmax(bench->devices[under[k]].share,
                                                bench->osds[i].device_share);
        }
}

const char *verdict_disk_name(const struct verdict_bench *bench, size_t device)
{
        const struct evidence_device *evidence = &bench->evidence->devices[device];

        return bench->disks[bench->devices[device].disk].n > 1 ? evidence->disk : evidence->name;
}

static bool is_part_of(const struct verdict_bench *bench, size_t device, size_t disk)
{
        const struct evidence_device *a = &bench->evidence->devices[device];
        const struct evidence_device *b = &bench->evidence->devices[bench->disks[disk].first];

        return *a->disk && strcmp(a->disk, b->disk) == 0 && verdict_are_peers(a, b);
}

static void add_to_disk(struct verdict_bench *bench, size_t i)
{
        const struct verdict_device *device = &bench->devices[i];
        struct verdict_disk *disk = &bench->disks[device->disk];
        double operations = or_zero(disk->operations) + or_zero(device->operations);

        disk->n++;
        disk->n_osds += bench->evidence->devices[i].n_osds;
        disk->queue += or_zero(device->queue);
        disk->busy = fmax(disk->busy, device->busy);
        disk->share = fmax(disk->share, device->share);
        disk->await = quotient(disk->operations * or_zero(disk->await) +
                                       or_zero(device->operations) * or_zero(device->await),
                operations);
        disk->operations = operations;
}

/* Devices that are parts of one disk stand in no order. */
static void find_disks(struct verdict_bench *bench)
{
        const struct evidence *evidence = bench->evidence;

        for (size_t i = 0; i < evidence->n_devices; i++) {
                size_t k = 0;

                while (k < bench->n_disks && !is_part_of(bench, i, k))
                        k++;
                if (k == bench->n_disks)
                        bench->disks[bench->n_disks++] = (struct verdict_disk){
                                .first = i, .busy = NAN, .share = NAN};
                bench->devices[i].disk = k;
                add_to_disk(bench, i);
        }
        for (size_t i = 0; i < evidence->n_osds; i++) {
                const struct evidence_osd *osd = &evidence->osds[i];
                double transactions =
                        or_zero(osd->values[EVIDENCE_TRANSACTION_TIME]) / evidence->seconds;

                if (osd->data != EVIDENCE_NONE)
                        bench->disks[bench->devices[osd->data].disk].transactions += transactions;
                if (osd->journal != EVIDENCE_NONE && osd->journal != osd->data)
                        bench->disks[bench->devices[osd->journal].disk].transactions +=
                                transactions;
        }
}

int verdict_bench_init(struct verdict_bench *bench, const struct evidence *evidence)
{
        size_t n = evidence->n_osds > evidence->n_devices ? evidence->n_osds : evidence->n_devices;
        double seconds = evidence->seconds;

        *bench = (struct verdict_bench){
                .evidence = evidence,
                .osds = calloc(evidence->n_osds + 1, sizeof(*bench->osds)),
                .devices = calloc(evidence->n_devices + 1, sizeof(*bench->devices)),
                .disks = calloc(evidence->n_devices + 1, sizeof(*bench->disks)),
                .scratch = calloc(n + 1, sizeof(*bench->scratch)),
        };
        if (!bench->osds || !bench->devices || !bench->disks || !bench->scratch) {
                verdict_bench_done(bench);
                return -ENOMEM;
        }
        for (size_t i = 0; i < evidence->n_devices; i++)
                measure_device(bench, i);
        for (size_t i = 0; i < evidence->n_osds; i++)
                measure_osd(bench, i);
        share_devices(bench);
        find_disks(bench);
        bench->writes = verdict_sum(bench, EVIDENCE_WRITES) / seconds;
        bench->reads = verdict_sum(bench, EVIDENCE_READS) / seconds;
        bench->write_latency = quotient(
                verdict_sum(bench, EVIDENCE_WRITE_TIME), verdict_sum(bench, EVIDENCE_WRITES));
        bench->read_latency = quotient(
                verdict_sum(bench, EVIDENCE_READ_TIME), verdict_sum(bench, EVIDENCE_READS));
        bench->in_flight = (or_zero(verdict_sum(bench, EVIDENCE_WRITE_TIME)) +
                                   or_zero(verdict_sum(bench, EVIDENCE_READ_TIME))) /
                           seconds;
        return 0;
}

void verdict_bench_done(struct verdict_bench *bench)
{
        free(bench->osds);
        free(bench->devices);
        free(bench->disks);
        free(bench->scratch);
        *bench = (struct verdict_bench){0};
}
