#pragma once
/*
 * Facts: slow-changing truth. The agent gathers them, sends them as JSON (docs/api.md, "Facts")
 * when their hash changes, and the collector joins them: which device stands on which, which OSD
 * uses it, what each pool's redundancy is. Pure data; every string is owned by the struct and never
 * NULL.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "lib/cleanup.h"
#include "lib/id.h"

#define FACTS_DEVICES_MAX 16384u
#define FACTS_CLUSTERS_MAX 64u
#define FACTS_OSDS_MAX 65536u
#define FACTS_POOLS_MAX 4096u
#define FACTS_PAST_POOLS_MAX 1024u /* the oldest are forgotten first */
#define FACTS_PARENTS_MAX 256u     /* an md array's members */

enum device_kind {
        DEVICE_DISK,
        DEVICE_PARTITION,
        DEVICE_DM,
        DEVICE_MD,
        DEVICE_LOOP,
        DEVICE_NVME_PATH, /* one path of a native multipath namespace; its head is a disk */
        DEVICE_ZRAM,
        DEVICE_BCACHE,
        DEVICE_OTHER,
};

struct facts_device {
        char *name;     /* kernel name: "sda", "dm-3" */
        char *alias;    /* LVM or crypt name, or "" */
        char *identity; /* WWN, else serial, else "MAJOR:MINOR:DISKSEQ"; what samples carry */
        char *model, *serial, *wwn;
        char *type; /* what of its kind: dm "lvm", "crypt", "mpath"; md "raid1"; disk "nvme",
                       "nvme_head"; or "" */
        char *scheduler, *write_cache; /* "mq-deadline", "write back"; "" where there is no queue */
        enum device_kind kind;
        uint32_t major, minor;
        bool rotational;
        bool uncounted; /* the kernel counts no I/O here, but on what it stands on: an NVMe head
                           before Linux 6.4 */
        uint64_t size_bytes;
        char **parents; /* names of the devices that it stands on: its disk, the dm slaves, the md
                           members, backing and cache of a bcache, the paths of an NVMe head */
        size_t n_parents;
        char **caches; /* those of the parents that are a bcache's cache */
        size_t n_caches;
};

struct facts_osd {
        uint32_t id;
        char *host;         /* hostname as Ceph reports it */
        char *device_class; /* "hdd", "ssd", "nvme" */
        bool up, in;
        bool rotational;
        uint64_t min_alloc_size;
        char *release;             /* "16.2.15" */
        char **block, **db, **wal; /* kernel names of the devices behind each role; db, wal empty
                                      when shared with block */
        size_t n_block, n_db, n_wal;
};

struct facts_pool {
        uint32_t id;
        char *name;
        bool erasure;
        uint32_t size;        /* copies, or k + m */
        uint32_t k, m;        /* EC only; 0 when the profile could not be read */
        uint32_t stripe_unit; /* bytes, EC only */
        uint64_t until_us;    /* the collector's: of a past pool, when it was told no longer so */
};

struct facts_cluster {
        struct id fsid;
        char *name;   /* "ceph" */
        char *health; /* HEALTH_OK ... */
        char *release;
        uint64_t mgr_stats_period_us; /* 5 s unless configured */
        struct facts_osd *osds;
        size_t n_osds;
        struct facts_pool *pools;
        size_t n_pools;
        /* The collector's: pools that are gone since, or were redundant in another way; ascending
         * by until_us. */
        struct facts_pool *past_pools;
        size_t n_past_pools;
        bool kept; /* the collector's: the agent told it once, and no longer does */
};

struct facts {
        struct id host_id;
        char *hostname;
        char *kernel; /* uname -r */
        char *agent_version;
        struct facts_device *devices;
        size_t n_devices;
        struct facts_cluster *clusters; /* only from an agent with the ceph source */
        size_t n_clusters;
};

/* All fields empty, strings "". -ENOMEM. */
int facts_new(struct facts **ret);
struct facts *facts_free(struct facts *facts);
DEFINE_CLEANUP(facts, struct facts *, facts_free)

/* -EINVAL: *ret_message (the caller frees) is one sentence that names the field. -ENOMEM. */
int facts_from_json(const json_t *json, struct facts **ret, char **ret_message);
int facts_to_json(const struct facts *facts, json_t **ret);
/* Stable over runs: of the canonical (sorted, compact) JSON. */
int facts_hash(const struct facts *facts, uint64_t *ret);

const char *device_kind_name(enum device_kind kind);
int device_kind_parse(const char *name, enum device_kind *ret);
/* Index of the device, or -ENOENT. */
int facts_find_device(const struct facts *facts, const char *name, size_t *ret);
