#include "collectord/topology.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

static int compare_id(const struct id *a, const struct id *b)
{
        return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

bool topology_same_host(const char *a, const char *b)
{
        size_t short_a = strcspn(a, "."), short_b = strcspn(b, ".");

        if (strcasecmp(a, b) == 0)
                return true;
        /* Two full names differ in their domains: two hosts. */
        if (a[short_a] && b[short_b])
                return false;
        return short_a == short_b && short_a > 0 && strncasecmp(a, b, short_a) == 0;
}

const char *topology_role_name(enum topology_role role)
{
        switch (role) {
        case TOPOLOGY_ROLE_BLOCK:
                return "block";
        case TOPOLOGY_ROLE_DB:
                return "db";
        case TOPOLOGY_ROLE_WAL:
                return "wal";
        case TOPOLOGY_ROLE_NONE:
                break;
        }
        return NULL;
}

int topology_find_cluster(const struct topology *topology, const struct id *fsid, uint32_t *ret)
{
        for (size_t i = 0; i < topology->n_clusters; i++)
                if (id_equal(&topology->clusters[i].fsid, fsid)) {
                        *ret = i;
                        return 0;
                }
        return -ENOENT;
}

int topology_find_host(const struct topology *topology, const struct id *id, uint32_t *ret)
{
        size_t low = 0, high = topology->n_hosts;

        while (low < high) {
                size_t middle = (low + high) / 2;
                int order = compare_id(&topology->hosts[middle].id, id);

                if (order == 0) {
                        *ret = middle;
                        return 0;
                }
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return -ENOENT;
}

int topology_find_osd(const struct topology *topology, uint32_t cluster, uint32_t id, uint32_t *ret)
{
        const struct topology_cluster *c = &topology->clusters[cluster];
        uint32_t low = c->first_osd, high = c->first_osd + c->n_osds;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (topology->osds[middle].id == id) {
                        *ret = middle;
                        return 0;
                }
                if (topology->osds[middle].id < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return -ENOENT;
}

int topology_find_name(
        const struct topology *topology, uint32_t host, const char *name, uint32_t *ret)
{
        const struct topology_host *h = &topology->hosts[host];
        uint32_t low = h->first_device, high = h->first_device + h->n_devices;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                int order = strcmp(topology->devices[middle].facts->name, name);

                if (order == 0) {
                        *ret = middle;
                        return 0;
                }
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return -ENOENT;
}

static bool has_identity(const struct topology *topology, uint32_t position, const char *identity)
{
        const struct topology_device *device = &topology->devices[topology->by_identity[position]];

        return strcmp(device->facts->identity, identity) == 0;
}

static int find_identity(
        const struct topology *topology, uint32_t host, const char *identity, uint32_t *ret)
{
        const struct topology_host *h = &topology->hosts[host];
        uint32_t low = h->first_device, end = h->first_device + h->n_devices, high = end;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                const struct topology_device *device =
                        &topology->devices[topology->by_identity[middle]];

                if (strcmp(device->facts->identity, identity) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        /* Several devices of one identity (the paths of a disk): the name alone could tell. */
        if (low == end || !has_identity(topology, low, identity) ||
                (low + 1 < end && has_identity(topology, low + 1, identity)))
                return -ENOENT;
        *ret = topology->by_identity[low];
        return 0;
}

int topology_find_device(const struct topology *topology, uint32_t host, const char *name,
        const char *identity, uint32_t *ret)
{
        uint32_t device;
        int r;

        r = topology_find_name(topology, host, name, &device);
        if (r == 0) {
                const char *known = topology->devices[device].facts->identity;

                if (!*identity || !*known || strcmp(identity, known) == 0) {
                        *ret = device;
                        return 0;
                }
        }
        if (!*identity)
                return -ENOENT;
        return find_identity(topology, host, identity, ret);
}

bool topology_is_leaf_of(const struct topology *topology, uint32_t device, uint32_t cluster)
{
        const struct topology_device *d = &topology->devices[device];

        if (!d->leaf)
                return false;
        if (d->n_osds == 0)
                return id_is_zero(&topology->clusters[cluster].fsid);
        for (uint32_t i = 0; i < d->n_osds; i++)
                if (topology->osds[topology->osd_of[d->first_osd + i]].cluster == cluster)
                        return true;
        return false;
}

bool topology_host_in(const struct topology *topology, uint32_t host, uint32_t cluster)
{
        const struct topology_cluster *c = &topology->clusters[cluster];

        if (id_is_zero(&c->fsid))
                return !topology->hosts[host].has_osds;
        for (uint32_t i = 0; i < c->n_osds; i++)
                if (topology->osds[c->first_osd + i].host == host)
                        return true;
        return false;
}
