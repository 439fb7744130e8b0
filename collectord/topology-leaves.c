#include "collectord/topology-leaves.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 16u /* crypt on LVM on RAID on multipath is four */

/* A use of a device by an OSD. */
struct use {
        uint32_t device, osd;
        enum topology_role role;
};

struct uses {
        struct use *list;
        size_t n;
};

static inline void uses_cleanup(struct uses *uses)
{
        free(uses->list);
}

/* A partition of an uncounted head is counted with its disk. */
static uint32_t find_head(const struct topology *topology, uint32_t device)
{
        const struct topology_device *d = &topology->devices[device];
        uint32_t parent;

        if (d->facts->kind == DEVICE_PARTITION && d->facts->uncounted && d->facts->n_parents == 1 &&
                topology_find_name(topology, d->host, d->facts->parents[0], &parent) == 0)
                return parent;
        return device;
}

static void add_uses(struct uses *uses, const struct topology *topology, uint32_t osd,
        char *const *names, size_t n_names, enum topology_role role)
{
        for (size_t i = 0; i < n_names; i++) {
                uint32_t device;

                if (topology_find_name(topology, topology->osds[osd].host, names[i], &device) < 0)
                        continue;
                if (topology->devices[device].facts->kind == DEVICE_NVME_PATH)
                        continue;
                uses->list[uses->n++] = (struct use){
                        .device = find_head(topology, device), .osd = osd, .role = role};
        }
}

static int collect_uses(const struct topology *topology, struct uses *uses)
{
        size_t n = 0;

        for (size_t i = 0; i < topology->n_osds; i++) {
                const struct facts_osd *osd = topology->osds[i].facts;

                n += osd->n_block + osd->n_db + osd->n_wal;
        }
        uses->list = calloc(n + 1, sizeof(*uses->list));
        if (!uses->list)
                return -ENOMEM;
        for (size_t i = 0; i < topology->n_osds; i++) {
                const struct facts_osd *osd = topology->osds[i].facts;

                if (topology->osds[i].host == TOPOLOGY_NONE)
                        continue;
                add_uses(uses, topology, i, osd->block, osd->n_block, TOPOLOGY_ROLE_BLOCK);
                add_uses(uses, topology, i, osd->db, osd->n_db, TOPOLOGY_ROLE_DB);
                add_uses(uses, topology, i, osd->wal, osd->n_wal, TOPOLOGY_ROLE_WAL);
        }
        return 0;
}

/* Which device counts the bytes of each; every device is looked at once, whatever the facts say. */
struct counter {
        const struct topology *topology;
        bool *used, *visited;
        uint32_t *counted;
};

/* The lowest device at or below @device that an OSD names: there the bytes are counted. */
static uint32_t find_counted(struct counter *counter, uint32_t device, unsigned depth)
{
        const struct topology_device *d = &counter->topology->devices[device];
        uint32_t parent, found = TOPOLOGY_NONE;

        if (counter->visited[device])
                return counter->counted[device];
        counter->visited[device] = true;
        counter->counted[device] = TOPOLOGY_NONE; /* a circle ends here */
        for (size_t i = 0; i < d->facts->n_parents && found == TOPOLOGY_NONE; i++)
                if (depth < DEPTH_MAX && topology_find_name(counter->topology, d->host,
                                                 d->facts->parents[i], &parent) == 0)
                        found = find_counted(counter, parent, depth + 1);
        if (found == TOPOLOGY_NONE && counter->used[device])
                found = device;
        counter->counted[device] = found;
        return found;
}

/* Calls @take for @device, or for each of its parents when the kernel counts there. */
static void each_counting(const struct topology *topology, uint32_t device,
        void (*take)(void *userdata, uint32_t device), void *userdata)
{
        const struct topology_device *d = &topology->devices[device];
        uint32_t parent;
        size_t n = 0;

        for (size_t i = 0; d->facts->uncounted && i < d->facts->n_parents; i++)
                if (topology_find_name(topology, d->host, d->facts->parents[i], &parent) == 0) {
                        take(userdata, parent);
                        n++;
                }
        if (n == 0)
                take(userdata, device);
}

static void count_one(void *userdata, uint32_t device)
{
        (void)device;
        (*(size_t *)userdata)++;
}

static void append_use(void *userdata, uint32_t device)
{
        struct uses *uses = userdata;

        /* The one behind the last is the use that is being spread. */
        uses->list[uses->n].device = device;
        uses->list[uses->n + 1] = uses->list[uses->n];
        uses->n++;
}

/* The use of a head that is not counted becomes one of each of its paths. */
static int spread_uses(const struct topology *topology, struct uses *uses)
{
        struct uses spread = {0};
        size_t n = 0;

        for (size_t i = 0; i < uses->n; i++)
                each_counting(topology, uses->list[i].device, count_one, &n);
        spread.list = calloc(n + 1, sizeof(*spread.list));
        if (!spread.list)
                return -ENOMEM;
        for (size_t i = 0; i < uses->n; i++) {
                spread.list[spread.n] = uses->list[i];
                each_counting(topology, uses->list[i].device, append_use, &spread);
        }
        free(uses->list);
        *uses = spread;
        return 0;
}

static int compare_uses(const void *a, const void *b)
{
        const struct use *x = a, *y = b;

        if (x->device != y->device)
                return x->device < y->device ? -1 : 1;
        if (x->osd != y->osd)
                return x->osd < y->osd ? -1 : 1;
        return (int)x->role - (int)y->role;
}

/* Hands the sorted uses to devices and OSDs. */
static void assign_uses(struct topology *topology, const struct uses *uses)
{
        for (size_t i = 0; i < uses->n; i++) {
                const struct use *use = &uses->list[i];
                struct topology_device *device = &topology->devices[use->device];

                if (device->n_osds == 0) {
                        device->leaf = true;
                        device->role = use->role;
                        device->first_osd = topology->n_osd_of;
                } else if (topology->osd_of[topology->n_osd_of - 1] == use->osd)
                        continue;
                device->n_osds++;
                topology->osd_of[topology->n_osd_of++] = use->osd;
                topology->osds[use->osd].n_leaves++;
        }
        for (size_t i = 0; i < topology->n_devices; i++) {
                const struct topology_device *device = &topology->devices[i];

                for (uint32_t k = 0; k < device->n_osds && device->n_osds > 1; k++)
                        topology->osds[topology->osd_of[device->first_osd + k]].shared = true;
        }
}

int topology_build_leaves(struct topology *topology)
{
        size_t n = topology->n_devices + 1;
        CLEANUP(mem) bool *used = calloc(n, 2 * sizeof(*used));
        CLEANUP(mem) uint32_t *counted = calloc(n, sizeof(*counted));
        CLEANUP(uses) struct uses uses = {0};
        struct counter counter = {topology, used, used + n, counted};
        int r;

        if (!used || !counted)
                return -ENOMEM;
        r = collect_uses(topology, &uses);
        if (r < 0)
                return r;
        for (size_t i = 0; i < uses.n; i++)
                used[uses.list[i].device] = true;
        for (size_t i = 0; i < uses.n; i++) {
                uint32_t device = find_counted(&counter, uses.list[i].device, 0);

                /* Only a circle of parents leaves nothing. */
                if (device != TOPOLOGY_NONE)
                        uses.list[i].device = device;
        }
        r = spread_uses(topology, &uses);
        if (r < 0)
                return r;
        topology->osd_of = calloc(uses.n + 1, sizeof(*topology->osd_of));
        if (!topology->osd_of)
                return -ENOMEM;
        qsort(uses.list, uses.n, sizeof(*uses.list), compare_uses);
        assign_uses(topology, &uses);
        return 0;
}

static void mark_leaf(void *userdata, uint32_t device)
{
        struct topology *topology = userdata;

        topology->devices[device].leaf = true;
}

/* A disk stands on nothing, the head of an NVMe multipath on its paths only. */
static bool is_whole_disk(const struct facts_device *facts)
{
        return facts->kind == DEVICE_DISK &&
               (facts->n_parents == 0 || strcmp(facts->type, "nvme_head") == 0);
}

/* Hosts without OSDs: whole disks, so that a RAID array or a volume is not added to its members. */
void topology_build_none(struct topology *topology)
{
        uint32_t n = 0;

        for (size_t i = 0; i < topology->n_hosts; i++)
                n += !topology->hosts[i].has_osds;
        if (n == 0)
                return;
        topology->clusters[topology->n_clusters++] =
                (struct topology_cluster){.first_osd = topology->n_osds, .n_hosts = n};
        for (size_t i = 0; i < topology->n_devices; i++) {
                const struct topology_device *device = &topology->devices[i];

                if (!topology->hosts[device->host].has_osds && is_whole_disk(device->facts))
                        each_counting(topology, (uint32_t)i, mark_leaf, topology);
        }
}
