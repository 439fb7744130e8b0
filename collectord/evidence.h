#pragma once
/*
 * What a verdict may look at: the sums of one window over each OSD, device, host and pool of one
 * cluster, with both ladders. Numbers that nobody told are NaN, so that a comparison with them
 * fails and their rule stays silent. Pure data; evidence_gather fills it from a query, and a test
 * by hand.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "collectord/ladder.h"
#include "collectord/query.h"

#define EVIDENCE_NONE UINT32_MAX
#define EVIDENCE_NAME_MAX 128u /* "host/device" */
#define EVIDENCE_DOUBTS_MAX 8u /* sentences; more are counted */
#define EVIDENCE_DOUBT_MAX 200u

/* Sums over the window; times in seconds. Waits are of all operations together: a time divided by
 * the window's length is the mean number of operations that wait (Little's law). */
enum evidence_osd_value {
        EVIDENCE_WRITES,
        EVIDENCE_WRITE_TIME, /* with queue and replicas */
        EVIDENCE_WRITE_PROCESS_TIME,
        EVIDENCE_READS,
        EVIDENCE_READ_TIME,
        EVIDENCE_REPLICAS,
        EVIDENCE_REPLICA_TIME,
        EVIDENCE_RECEIVE_TIME, /* of all messages, first byte to queue */
        EVIDENCE_COMMITS,      /* of RocksDB */
        EVIDENCE_COMMIT_TIME,
        EVIDENCE_FLUSH_TIME, /* before those commits */
        EVIDENCE_TRANSACTIONS,
        EVIDENCE_TRANSACTION_TIME,
        EVIDENCE_DATA_WAIT_TIME,
        EVIDENCE_THROTTLE_TIME,
        EVIDENCE_STORE_READS,
        EVIDENCE_STORE_READ_TIME,
        EVIDENCE_RUN_TIME,       /* of its threads: on a CPU, ... */
        EVIDENCE_WAIT_TIME,      /* ... and ready without one */
        EVIDENCE_OSD_LATENCIES_, /* those above are read in one query, those below in another */
        EVIDENCE_CLIENT_READ_BYTES = EVIDENCE_OSD_LATENCIES_,
        EVIDENCE_HIT_BYTES,
        EVIDENCE_MISS_BYTES,
        EVIDENCE_ONODE_HITS,
        EVIDENCE_ONODE_MISSES,
        EVIDENCE_WAL_BYTES,
        EVIDENCE_SST_BYTES,
        EVIDENCE_SLOW_BYTES,
        EVIDENCE_SLOW_USED, /* mean */
        EVIDENCE_BLUEFS_READ_BYTES,
        EVIDENCE_PREFETCH_BYTES,
        EVIDENCE_PUSHED_BYTES,
        EVIDENCE_RECOVERY_OPS,
        EVIDENCE_OSD_MAX_,
};

struct evidence_osd {
        uint32_t id;
        char name[16];          /* "osd.3" */
        const char *host;       /* "" unknown */
        const char *class;      /* "hdd" */
        uint32_t data, journal; /* devices: of the objects, and of the RocksDB WAL */
        bool silent;            /* its numbers cannot be trusted in this window */
        double values[EVIDENCE_OSD_MAX_];
};

enum evidence_device_value {
        EVIDENCE_DISK_READS,
        EVIDENCE_DISK_READ_TIME,
        EVIDENCE_DISK_READ_BYTES,
        EVIDENCE_DISK_WRITES,
        EVIDENCE_DISK_WRITE_TIME,
        EVIDENCE_DISK_WRITE_BYTES,
        EVIDENCE_DISK_BUSY,
        EVIDENCE_DISK_WEIGHTED,
        EVIDENCE_DISK_DISCARDS,
        EVIDENCE_DISK_DISCARD_TIME,
        EVIDENCE_DISK_DISCARD_BYTES,
        EVIDENCE_DISK_FLUSHES,
        EVIDENCE_DISK_FLUSH_TIME,
        EVIDENCE_DEVICE_MAX_,
};

struct evidence_device {
        char name[EVIDENCE_NAME_MAX]; /* "node1/sda" */
        char disk[EVIDENCE_NAME_MAX]; /* of a partition or volume: the disk that it lies on, else
                                         the name again */
        const char *host, *kernel_name;
        const char *class; /* of its first OSD */
        const char *role;  /* block, db, wal: of its first OSD */
        uint32_t n_osds;   /* of this cluster */
        uint32_t osd;      /* the first one */
        bool silent;
        double values[EVIDENCE_DEVICE_MAX_];
};

struct evidence_host {
        const char *name;
        double cpus, busy, steal;   /* shares of its CPUs: 0..1 */
        double osd_run;             /* share that its OSDs took */
        double pressure_cpu;        /* share of the time in which some task waited for a CPU */
        char nic[32];               /* the busiest */
        double nic_rate, nic_speed; /* bytes/s of its busier direction; speed NaN unknown */
};

struct evidence_pool {
        const char *name;
        const struct facts_pool *facts; /* as in the window, or NULL */
        bool erasure;
        uint32_t k, stripe_unit;
        double factor; /* expected amplification, NaN unknown */
        double reads, read_bytes, writes, write_bytes;
        double stored_bytes; /* mean */
};

struct evidence {
        int64_t from_us, to_us;
        double seconds;
        struct evidence_osd *osds;
        struct evidence_device *devices;
        struct evidence_host *hosts;
        struct evidence_pool *pools;
        size_t n_osds, n_devices, n_hosts, n_pools;
        struct ladder *ladders[2]; /* by enum ratio_direction; NULL when there is none */
        struct ratio_noise noise;
        /* What is missing or cannot be trusted, one sentence each. */
        char doubts[EVIDENCE_DOUBTS_MAX][EVIDENCE_DOUBT_MAX];
        uint32_t n_doubts;                                  /* may be more than there is room for */
        struct query_result *devices_result, *pools_result; /* private: hold names */
};

int evidence_new(struct evidence **ret);
struct evidence *evidence_free(struct evidence *evidence);
DEFINE_CLEANUP(evidence, struct evidence *, evidence_free)
__attribute__((format(printf, 2, 3))) void evidence_doubt(
        struct evidence *evidence, const char *format, ...);

/* All numbers, at the level debug. */
void evidence_log(const struct evidence *evidence);

/* The @window_us before where the live sources have delivered. Names belong to @query, which must
 * outlive the evidence. Errors as query_run. */
int evidence_gather(
        const struct query *query, uint32_t cluster, uint64_t window_us, struct evidence **ret);
