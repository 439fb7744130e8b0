#pragma once
/* What the rules share. Each looks at the bench and adds its findings. */

#include "collectord/verdict.h"

/*
 * A device is full when requests wait for it all the time. None of these alone says so: since Linux
 * 5.0 busy time is sampled, and a parallel device is busy long before it is full
 * (docs/verdicts.md).
 */
#define VERDICT_BUSY 0.8         /* share of the time with a request in flight */
#define VERDICT_QUEUE 2.0        /* one is served, one waits */
#define VERDICT_DEVICE_SHARE 0.4 /* of the object store's time that its device explains */

#define VERDICT_MULTIPLE 3.0 /* beyond the median of the peers: an outlier */
#define VERDICT_PEERS_MIN 3u /* two cannot tell which of them is the odd one */

struct verdict_osd {
        double in_flight;     /* operations in it: clients' and replicas', mean */
        double store_latency; /* of a transaction, or of a read when it only reads; seconds */
        double device_share;  /* of that: 0..1 */
        double wait_ratio;    /* its threads: waited for a CPU / ran on one */
        double waiting;       /* threads that wait for a CPU, mean */
};

/* A disk with all its partitions or volumes that OSDs use in one role: together they are full. */
struct verdict_disk {
        size_t first, n; /* its parts: the first device, and how many */
        size_t n_osds;   /* on all parts */
        double operations, queue, await; /* of all parts, as a device's */
        double busy, share;              /* the largest */
        double transactions;             /* in flight in the object stores of its OSDs, mean */
};

struct verdict_device {
        double operations; /* per second */
        double await;      /* of reads and writes, seconds */
        double queue, busy;
        double flush_await, flush_busy;
        double share; /* device_share of its OSDs, the largest */
        size_t disk;  /* of the disks */
};

struct verdict_bench {
        const struct evidence *evidence;
        struct verdict *verdict;
        const struct verdict_rule *rule; /* under way */
        struct verdict_osd *osds;
        struct verdict_device *devices;
        struct verdict_disk *disks; /* no more than there are devices */
        size_t n_disks;
        double *scratch; /* as many as there are OSDs or devices */
        /* Of the clients: */
        double writes, reads; /* per second */
        double write_latency, read_latency;
        double in_flight;
};

/* -ENOMEM. Everything but verdict and rule is filled in. */
int verdict_bench_init(struct verdict_bench *bench, const struct evidence *evidence);
void verdict_bench_done(struct verdict_bench *bench);

/* Sum over all OSDs that can be trusted; NaN when nobody told. */
double verdict_sum(const struct verdict_bench *bench, enum evidence_osd_value value);
/* Sorts @values; NaN for none. */
double verdict_median(double *values, size_t n);
/* Same class and role. */
bool verdict_are_peers(const struct evidence_device *a, const struct evidence_device *b);
/* The device, or the disk that it is one of several parts of. */
const char *verdict_disk_name(const struct verdict_bench *bench, size_t device);
/* Whether a finding of @rank or a lower one is there already. */
bool verdict_has(const struct verdict_bench *bench, enum verdict_rank rank);
bool verdict_has_rule(const struct verdict_bench *bench, const char *rule);

/* A finding of the rule under way; NULL when there is no room. The sentence ends with a period. */
__attribute__((format(printf, 5, 6))) struct verdict_finding *verdict_add(
        struct verdict_bench *bench, enum verdict_kind kind, const char *entity, double share,
        const char *format, ...);
/* @finding may be NULL. */
__attribute__((format(printf, 2, 3))) void verdict_curve(
        struct verdict_finding *finding, const char *format, ...);

/* verdict-storage.c */
void verdict_slow_disk(struct verdict_bench *bench);
void verdict_saturated_disk(struct verdict_bench *bench);
void verdict_flush_storm(struct verdict_bench *bench);
void verdict_discards(struct verdict_bench *bench);
/* verdict-osd.c */
void verdict_recovery(struct verdict_bench *bench);
void verdict_scrub(struct verdict_bench *bench);
void verdict_osd_cpu(struct verdict_bench *bench);
void verdict_host_cpu(struct verdict_bench *bench);
void verdict_uneven_load(struct verdict_bench *bench);
/* verdict-network.c */
void verdict_network_interface(struct verdict_bench *bench);
void verdict_network_clients(struct verdict_bench *bench);
void verdict_network_replicas(struct verdict_bench *bench);
void verdict_low_concurrency(struct verdict_bench *bench);
/* verdict-store.c */
void verdict_small_writes_ec(struct verdict_bench *bench);
void verdict_small_blocks(struct verdict_bench *bench);
void verdict_deferred_writes(struct verdict_bench *bench);
void verdict_padding(struct verdict_bench *bench);
void verdict_compaction(struct verdict_bench *bench);
void verdict_spillover(struct verdict_bench *bench);
void verdict_prefetch(struct verdict_bench *bench);
void verdict_small_cache(struct verdict_bench *bench);
