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

/* Whether what stands at @index comes before @key. */
typedef bool (*before_function)(const struct topology *topology, uint32_t index, const void *key);

/* The first of [low, high), which is ascending, that does not come before @key; else @high. */
static uint32_t lower_bound(const struct topology *topology, uint32_t low, uint32_t high,
        before_function before, const void *key)
{
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (before(topology, middle, key))
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool host_before(const struct topology *topology, uint32_t index, const void *key)
{
        return compare_id(&topology->hosts[index].id, key) < 0;
}

int topology_find_host(const struct topology *topology, const struct id *id, uint32_t *ret)
{
        uint32_t end = (uint32_t)topology->n_hosts;
        uint32_t at = lower_bound(topology, 0, end, host_before, id);

        if (at == end || !id_equal(&topology->hosts[at].id, id))
                return -ENOENT;
        *ret = at;
        return 0;
}

static bool osd_before(const struct topology *topology, uint32_t index, const void *key)
{
        return topology->osds[index].id < *(const uint32_t *)key;
}

int topology_find_osd(const struct topology *topology, uint32_t cluster, uint32_t id, uint32_t *ret)
{
        const struct topology_cluster *c = &topology->clusters[cluster];
        uint32_t end = c->first_osd + c->n_osds;
        uint32_t at = lower_bound(topology, c->first_osd, end, osd_before, &id);

        if (at == end || topology->osds[at].id != id)
                return -ENOENT;
        *ret = at;
        return 0;
}

static bool name_before(const struct topology *topology, uint32_t index, const void *key)
{
        return strcmp(topology->devices[index].facts->name, key) < 0;
}

int topology_find_name(
        const struct topology *topology, uint32_t host, const char *name, uint32_t *ret)
{
        const struct topology_host *h = &topology->hosts[host];
        uint32_t end = h->first_device + h->n_devices;
        uint32_t at = lower_bound(topology, h->first_device, end, name_before, name);

        if (at == end || strcmp(topology->devices[at].facts->name, name) != 0)
                return -ENOENT;
        *ret = at;
        return 0;
}

static int compare_identity(
        const struct topology *topology, uint32_t position, const char *identity)
{
        const struct topology_device *device = &topology->devices[topology->by_identity[position]];

        return strcmp(device->facts->identity, identity);
}

static bool identity_before(const struct topology *topology, uint32_t index, const void *key)
{
        return compare_identity(topology, index, key) < 0;
}

static int find_identity(
        const struct topology *topology, uint32_t host, const char *identity, uint32_t *ret)
{
        const struct topology_host *h = &topology->hosts[host];
        uint32_t end = h->first_device + h->n_devices;
        uint32_t at = lower_bound(topology, h->first_device, end, identity_before, identity);

        /* Several devices of one identity (the paths of a disk): the name alone could tell. */
        if (at == end || compare_identity(topology, at, identity) != 0 ||
                (at + 1 < end && compare_identity(topology, at + 1, identity) == 0))
                return -ENOENT;
        *ret = topology->by_identity[at];
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

static const struct facts_pool *find_pool_in(
        const struct facts_cluster *facts, uint32_t id, int64_t at_us)
{
        for (size_t i = 0; i < facts->n_past_pools; i++)
                if (facts->past_pools[i].id == id && (int64_t)facts->past_pools[i].until_us > at_us)
                        return &facts->past_pools[i];
        for (size_t i = 0; i < facts->n_pools; i++)
                if (facts->pools[i].id == id)
                        return &facts->pools[i];
        return NULL;
}

const struct facts_pool *topology_find_pool(
        const struct topology *topology, uint32_t cluster, uint32_t id, int64_t at_us)
{
        const struct topology_cluster *c = &topology->clusters[cluster];
        const struct facts_pool *pool = c->facts ? find_pool_in(c->facts, id, at_us) : NULL;

        /* Those who told the cluster earlier may remember what was gone before the one who does. */
        for (size_t i = 0; i < topology->n_hosts && !pool; i++) {
                const struct facts *facts = topology->hosts[i].facts;

                for (size_t k = 0; k < facts->n_clusters && !pool; k++)
                        if (id_equal(&facts->clusters[k].fsid, &c->fsid))
                                pool = find_pool_in(&facts->clusters[k], id, at_us);
        }
        return pool;
}
