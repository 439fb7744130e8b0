/* The OSDs and the devices under them. */
#include "collectord/evidence-private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NANO 1e-9
#define MILLI 1e-3
#define SECTOR 512.0
#define TERM(metric_, slot_, scale_)                                                               \
        {                                                                                          \
                .metric = METRIC_##metric_, .slot = (slot_), .scale = (scale_),                    \
                .need = RUNG_NEED_SLOT                                                             \
        }
#define STORE(metric, value) TERM(metric, (value)-EVIDENCE_OSD_LATENCIES_, 1)
#define N(array) (sizeof(array) / sizeof((array)[0]))

static const struct rung_term latency_terms[] = {
        TERM(OSD_OP_W_LATENCY_COUNT, EVIDENCE_WRITES, 1),
        TERM(OSD_OP_W_LATENCY_TIME, EVIDENCE_WRITE_TIME, NANO),
        TERM(OSD_OP_W_PROCESS_LATENCY_TIME, EVIDENCE_WRITE_PROCESS_TIME, NANO),
        TERM(OSD_OP_R_LATENCY_COUNT, EVIDENCE_READS, 1),
        TERM(OSD_OP_R_LATENCY_TIME, EVIDENCE_READ_TIME, NANO),
        TERM(OSD_SUBOP_W_LATENCY_COUNT, EVIDENCE_REPLICAS, 1),
        TERM(OSD_SUBOP_W_LATENCY_TIME, EVIDENCE_REPLICA_TIME, NANO),
        TERM(OSD_RECEIVE_LATENCY_TIME, EVIDENCE_RECEIVE_TIME, NANO),
        TERM(BLUESTORE_KV_COMMIT_COUNT, EVIDENCE_COMMITS, 1),
        TERM(BLUESTORE_KV_COMMIT_TIME, EVIDENCE_COMMIT_TIME, NANO),
        TERM(BLUESTORE_KV_FLUSH_TIME, EVIDENCE_FLUSH_TIME, NANO),
        TERM(BLUESTORE_COMMIT_COUNT, EVIDENCE_TRANSACTIONS, 1),
        TERM(BLUESTORE_COMMIT_TIME, EVIDENCE_TRANSACTION_TIME, NANO),
        TERM(BLUESTORE_AIO_WAIT_TIME, EVIDENCE_DATA_WAIT_TIME, NANO),
        TERM(BLUESTORE_THROTTLE_TIME, EVIDENCE_THROTTLE_TIME, NANO),
        TERM(BLUESTORE_READ_COUNT, EVIDENCE_STORE_READS, 1),
        TERM(BLUESTORE_READ_TIME, EVIDENCE_STORE_READ_TIME, NANO),
        TERM(OSD_RUN_TIME, EVIDENCE_RUN_TIME, NANO),
        TERM(OSD_WAIT_TIME, EVIDENCE_WAIT_TIME, NANO),
};

static const struct rung_term store_terms[] = {
        STORE(OSD_OP_R_OUT_BYTES, EVIDENCE_CLIENT_READ_BYTES),
        STORE(BLUESTORE_BUFFER_HIT_BYTES, EVIDENCE_HIT_BYTES),
        STORE(BLUESTORE_BUFFER_MISS_BYTES, EVIDENCE_MISS_BYTES),
        STORE(BLUESTORE_ONODE_HITS, EVIDENCE_ONODE_HITS),
        STORE(BLUESTORE_ONODE_MISSES, EVIDENCE_ONODE_MISSES),
        STORE(BLUEFS_WAL_BYTES, EVIDENCE_WAL_BYTES),
        STORE(BLUEFS_SST_BYTES, EVIDENCE_SST_BYTES),
        STORE(BLUEFS_SLOW_BYTES, EVIDENCE_SLOW_BYTES),
        STORE(BLUEFS_SLOW_USED_BYTES, EVIDENCE_SLOW_USED),
        STORE(BLUEFS_READ_BYTES, EVIDENCE_BLUEFS_READ_BYTES),
        STORE(BLUEFS_READ_PREFETCH_BYTES, EVIDENCE_PREFETCH_BYTES),
        STORE(OSD_SUBOP_PUSH_IN_BYTES, EVIDENCE_PUSHED_BYTES),
        STORE(OSD_RECOVERY_OPS, EVIDENCE_RECOVERY_OPS),
};

static const struct rung_term device_terms[] = {
        TERM(DISK_READ_OPS, EVIDENCE_DISK_READS, 1),
        TERM(DISK_READ_TIME, EVIDENCE_DISK_READ_TIME, MILLI),
        TERM(DISK_READ_SECTORS, EVIDENCE_DISK_READ_BYTES, SECTOR),
        TERM(DISK_WRITE_OPS, EVIDENCE_DISK_WRITES, 1),
        TERM(DISK_WRITE_TIME, EVIDENCE_DISK_WRITE_TIME, MILLI),
        TERM(DISK_WRITE_SECTORS, EVIDENCE_DISK_WRITE_BYTES, SECTOR),
        TERM(DISK_BUSY_TIME, EVIDENCE_DISK_BUSY, MILLI),
        TERM(DISK_WEIGHTED_TIME, EVIDENCE_DISK_WEIGHTED, MILLI),
        TERM(DISK_DISCARD_OPS, EVIDENCE_DISK_DISCARDS, 1),
        TERM(DISK_DISCARD_TIME, EVIDENCE_DISK_DISCARD_TIME, MILLI),
        TERM(DISK_DISCARD_SECTORS, EVIDENCE_DISK_DISCARD_BYTES, SECTOR),
        TERM(DISK_FLUSH_OPS, EVIDENCE_DISK_FLUSHES, 1),
        TERM(DISK_FLUSH_TIME, EVIDENCE_DISK_FLUSH_TIME, MILLI),
};

/* ---- devices ---- */

#define DEPTH_MAX 16u /* a volume on crypt on a partition is three */

/* What a partition or a volume lies on, as long as that is one device. */
static const struct topology_device *find_disk(
        const struct topology *topology, const struct topology_device *device)
{
        uint32_t parent;

        for (unsigned depth = 0; depth < DEPTH_MAX && device->facts->n_parents == 1; depth++) {
                if (topology_find_name(
                            topology, device->host, device->facts->parents[0], &parent) < 0)
                        break;
                device = &topology->devices[parent];
        }
        return device;
}

static void fill_device(struct evidence_job *job, const struct topology_device *device,
        uint32_t target, struct evidence_device *ret)
{
        const struct query_result *result = job->evidence->devices_result;
        const struct topology *topology = job->query->topology;
        const char *role = topology_role_name(device->role);

        *ret = (struct evidence_device){
                .host = topology->hosts[device->host].facts->hostname,
                .kernel_name = device->facts->name,
                .class = "",
                .role = role ? role : "",
                .osd = EVIDENCE_NONE,
        };
        snprintf(ret->name, sizeof(ret->name), "%s/%s", ret->host, ret->kernel_name);
        snprintf(ret->disk, sizeof(ret->disk), "%s/%s", ret->host,
                find_disk(topology, device)->facts->name);
        for (uint32_t i = 0; i < device->n_osds; i++) {
                uint32_t index = topology->osd_of[device->first_osd + i];

                if (topology->osds[index].cluster != job->cluster)
                        continue;
                if (ret->n_osds++ == 0) {
                        ret->osd = index - job->topology->first_osd;
                        ret->class = topology->osds[index].facts->device_class;
                }
        }
        ret->silent = job->host_silent[device->host] || target == UINT32_MAX ||
                      result->table->targets[target].seen[0] == 0 ||
                      result->table->targets[target].reset[0] > 0;
        for (uint32_t i = 0; i < EVIDENCE_DEVICE_MAX_; i++)
                ret->values[i] = ret->silent ? NAN : rung_sum(result->table, target, i, 0);
        if (device->role == TOPOLOGY_ROLE_BLOCK && ret->n_osds > 1)
                evidence_doubt(job->evidence,
                        "%u OSDs claim %s: what each of them does to it cannot be told apart.",
                        ret->n_osds, ret->name);
}

int evidence_add_devices(struct evidence_job *job)
{
        const struct topology *topology = job->query->topology;
        struct evidence *evidence = job->evidence;
        uint32_t hint = 0, silent = 0;
        int r;

        r = evidence_query(job, SOURCE_DISKSTATS, QUERY_BY_DEVICE, &job->window, device_terms,
                N(device_terms), &evidence->devices_result);
        if (r < 0)
                return r;
        evidence->devices = calloc(topology->n_devices + 1, sizeof(*evidence->devices));
        if (!evidence->devices)
                return -ENOMEM;
        for (uint32_t i = 0; i < topology->n_devices; i++) {
                const struct topology_device *device = &topology->devices[i];
                const char *host = topology->hosts[device->host].facts->hostname;

                if (!topology_is_leaf_of(topology, i, job->cluster))
                        continue;
                fill_device(job, device,
                        evidence_target(evidence->devices_result, device->facts->name, host, &hint),
                        &evidence->devices[evidence->n_devices]);
                silent += evidence->devices[evidence->n_devices++].silent;
        }
        if (silent > 0)
                evidence_doubt(evidence, "%u of %zu devices have no samples of the whole window.",
                        silent, evidence->n_devices);
        return 0;
}

/* ---- OSDs ---- */

/* The WAL lies where the fastest role is. */
static unsigned journal_preference(const char *role)
{
        return strcmp(role, "wal") == 0 ? 3 : strcmp(role, "db") == 0 ? 2 : 1;
}

static void join_devices(struct evidence_job *job)
{
        const struct topology *topology = job->query->topology;
        struct evidence *evidence = job->evidence;
        uint32_t n = 0;

        for (uint32_t i = 0; i < topology->n_devices; i++) {
                const struct topology_device *device = &topology->devices[i];
                const struct evidence_device *known = &evidence->devices[n];

                if (!topology_is_leaf_of(topology, i, job->cluster))
                        continue;
                for (uint32_t k = 0; k < device->n_osds; k++) {
                        uint32_t index = topology->osd_of[device->first_osd + k];
                        struct evidence_osd *osd;

                        if (topology->osds[index].cluster != job->cluster)
                                continue;
                        osd = &evidence->osds[index - job->topology->first_osd];
                        if (journal_preference(known->role) == 1)
                                osd->data = n;
                        if (osd->journal == EVIDENCE_NONE ||
                                journal_preference(known->role) >
                                        journal_preference(evidence->devices[osd->journal].role))
                                osd->journal = n;
                }
                n++;
        }
}

static void fill_osd(struct evidence_job *job, const struct topology_osd *osd,
        const struct query_result *latencies, const struct query_result *store, uint32_t target,
        struct evidence_osd *ret)
{
        const struct topology *topology = job->query->topology;
        bool has_host = osd->host != TOPOLOGY_NONE;

        *ret = (struct evidence_osd){
                .id = osd->id,
                .host = has_host ? topology->hosts[osd->host].facts->hostname : "",
                .class = osd->facts->device_class,
                .data = EVIDENCE_NONE,
                .journal = EVIDENCE_NONE,
        };
        snprintf(ret->name, sizeof(ret->name), "osd.%" PRIu32, osd->id);
        ret->silent = !osd->facts->up || target == UINT32_MAX ||
                      latencies->table->targets[target].seen[0] == 0 ||
                      latencies->table->targets[target].reset[0] > 0 ||
                      (has_host && job->host_silent[osd->host]);
        for (uint32_t i = 0; i < EVIDENCE_OSD_MAX_; i++) {
                ret->values[i] = NAN;
                if (ret->silent)
                        continue;
                ret->values[i] =
                        i < EVIDENCE_OSD_LATENCIES_
                                ? rung_sum(latencies->table, target, i, 0)
                                : rung_sum(store->table, target, i - EVIDENCE_OSD_LATENCIES_, 0);
        }
        /* A gauge comes as its integral over the window. */
        ret->values[EVIDENCE_SLOW_USED] /= job->evidence->seconds;
        if (ret->silent && osd->facts->up)
                evidence_doubt(job->evidence,
                        target != UINT32_MAX && latencies->table->targets[target].reset[0] > 0
                                ? "%s started again in this window and is left out."
                                : "%s has no samples of the whole window.",
                        ret->name);
}

int evidence_add_osds(struct evidence_job *job)
{
        CLEANUP(query_result) struct query_result *latencies = NULL;
        CLEANUP(query_result) struct query_result *store = NULL;
        const struct topology_cluster *cluster = job->topology;
        struct evidence *evidence = job->evidence;
        uint32_t hint = 0;
        int r;

        r = evidence_query(job, SOURCE_OSD, QUERY_BY_OSD, &job->window, latency_terms,
                N(latency_terms), &latencies);
        if (r < 0)
                return r;
        r = evidence_query(
                job, SOURCE_OSD, QUERY_BY_OSD, &job->window, store_terms, N(store_terms), &store);
        if (r < 0)
                return r;
        evidence->osds = calloc(cluster->n_osds + 1, sizeof(*evidence->osds));
        if (!evidence->osds)
                return -ENOMEM;
        for (uint32_t i = 0; i < cluster->n_osds; i++) {
                const struct topology_osd *osd =
                        &job->query->topology->osds[cluster->first_osd + i];
                char name[16];

                snprintf(name, sizeof(name), "osd.%" PRIu32, osd->id);
                fill_osd(job, osd, latencies, store, evidence_target(latencies, name, NULL, &hint),
                        &evidence->osds[i]);
        }
        evidence->n_osds = cluster->n_osds;
        join_devices(job);
        return 0;
}
