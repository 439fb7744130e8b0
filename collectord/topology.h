#pragma once
/*
 * The join of facts: which leaf device backs which OSD of which cluster, what each pool's
 * redundancy is, on which host everything stands. Built once per query from the facts of all hosts;
 * pure, and immutable afterwards.
 *
 * Each byte is counted once. A device is a leaf of a cluster when one of its OSDs names it and no
 * device below it (its disk, the members of its array) is named by an OSD too. The paths of an
 * NVMe namespace count with their head, and for it only where the kernel does not count the head
 * itself (before Linux 6.4). A host without any known OSD belongs to the pseudo-cluster "none",
 * whose leaves are whole disks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "lib/facts.h"
#include "lib/id.h"

#define TOPOLOGY_NONE UINT32_MAX

enum topology_role { TOPOLOGY_ROLE_NONE, TOPOLOGY_ROLE_BLOCK, TOPOLOGY_ROLE_DB, TOPOLOGY_ROLE_WAL };

/* Facts of one host; the topology takes ownership of @facts. */
struct topology_input {
        struct facts *facts;
        int64_t updated_us;
        int64_t ceph_last_us; /* newest sample of the host's ceph source, 0 when it has none: the
                                 freshest host is believed about the cluster */
};

struct topology_host {
        struct id id;
        const struct facts *facts;
        bool has_osds;
        uint32_t first_device, n_devices;
};

struct topology_osd {
        uint32_t cluster; /* index */
        uint32_t id;
        const struct facts_osd *facts;
        uint32_t host;     /* index, or TOPOLOGY_NONE: no agent on its host */
        uint32_t n_leaves; /* of its devices found on the host */
        bool shared;       /* another OSD uses one of its devices */
};

struct topology_device {
        uint32_t host;
        const struct facts_device *facts;
        enum topology_role role;    /* of its first OSD */
        bool leaf;                  /* counted in the storage rung of its clusters, or of "none" */
        uint32_t first_osd, n_osds; /* in topology_osd_of: OSDs whose bytes reach it */
};

struct topology_cluster {
        struct id fsid;                    /* zero for "none" */
        const struct facts_cluster *facts; /* NULL for "none" */
        uint32_t first_osd, n_osds;        /* in osds, ascending by id */
        uint32_t n_hosts;                  /* with an agent */
};

struct topology {
        struct topology_input *inputs;
        struct topology_host *hosts; /* ascending by id */
        size_t n_hosts;
        struct topology_device *devices; /* grouped by host, ascending by name */
        size_t n_devices;
        struct topology_osd *osds; /* grouped by cluster */
        size_t n_osds;
        struct topology_cluster *clusters; /* ascending by fsid; "none", when there, is the last */
        size_t n_clusters;
        uint32_t *osd_of; /* OSD indices that devices refer to */
        size_t n_osd_of;
        uint32_t *by_identity; /* device indices, grouped by host, ascending by identity */
};

/* Takes over the facts in @inputs[n] (also on failure); @inputs itself stays the caller's. -ENOMEM.
 */
int topology_new(const struct topology_input *inputs, size_t n, struct topology **ret);
struct topology *topology_free(struct topology *topology);
DEFINE_CLEANUP(topology, struct topology *, topology_free)

/* Indices, or -ENOENT. @fsid zero is "none". */
int topology_find_cluster(const struct topology *topology, const struct id *fsid, uint32_t *ret);
int topology_find_host(const struct topology *topology, const struct id *id, uint32_t *ret);
int topology_find_osd(
        const struct topology *topology, uint32_t cluster, uint32_t id, uint32_t *ret);
int topology_find_name(
        const struct topology *topology, uint32_t host, const char *name, uint32_t *ret);
/*
 * The device that a sample of @host means. Names move, identities stay: a known identity decides
 * unless the facts say that the name with this identity is a device of its own (an NVMe path and
 * its head); without an identity the name decides. -ENOENT: the facts do not know it (yet, or any
 * more).
 */
int topology_find_device(const struct topology *topology, uint32_t host, const char *name,
        const char *identity, uint32_t *ret);

/* A pool as it was at a time: gone or changed since, maybe. NULL: nobody told about it. */
const struct facts_pool *topology_find_pool(
        const struct topology *topology, uint32_t cluster, uint32_t id, int64_t at_us);

/* Whether @device is a leaf of @cluster. */
bool topology_is_leaf_of(const struct topology *topology, uint32_t device, uint32_t cluster);
/* Whether the host carries an OSD of @cluster (or none, for "none"). */
bool topology_host_in(const struct topology *topology, uint32_t host, uint32_t cluster);
/* The name by which OSDs of the facts call a host: equal, or equal up to the first dot. */
bool topology_same_host(const char *a, const char *b);
const char *topology_role_name(enum topology_role role); /* NULL for none */
