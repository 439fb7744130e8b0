/* The devices of a query: leaves of the cluster, or those with the wanted name. */
#include "collectord/query-cache.h"
#include "collectord/query-members.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct topology_osd *osd_of(
        const struct query_members *members, const struct topology_device *device, uint32_t index)
{
        const struct topology *topology = members->query->topology;
        const struct topology_osd *osd =
                &topology->osds[topology->osd_of[device->first_osd + index]];

        return osd->cluster == members->spec->cluster ? osd : NULL;
}

/* By OSD or class: the one target of all OSDs behind the device, or -ENOENT when it is split. */
static int split_device(
        struct query_members *members, const struct topology_device *device, uint32_t *ret)
{
        uint32_t first = TOPOLOGY_NONE;
        bool split = false;
        int r;

        for (uint32_t i = 0; i < device->n_osds; i++) {
                const struct topology_osd *osd = osd_of(members, device, i);
                uint32_t target;

                if (!osd)
                        continue;
                r = query_osd_target(members, osd, &target);
                if (r < 0)
                        return r;
                if (first == TOPOLOGY_NONE)
                        first = target;
                split |= target != first;
        }
        *ret = first;
        if (first != TOPOLOGY_NONE && !split)
                return 0;
        for (uint32_t i = 0; i < device->n_osds; i++) {
                const struct topology_osd *osd = osd_of(members, device, i);
                uint32_t target;

                if (osd && query_osd_target(members, osd, &target) == 0)
                        members->result->targets[target].shared = true;
        }
        return -ENOENT;
}

static int device_target(
        struct query_members *members, const struct topology_device *device, uint32_t *ret)
{
        const char *host = members->query->topology->hosts[device->host].facts->hostname;
        int r;

        switch (members->spec->by) {
        case QUERY_BY_CLUSTER:
                return query_target_get(members, "cluster", NULL, ret);
        case QUERY_BY_HOST:
                return query_target_get(members, host, NULL, ret);
        case QUERY_BY_CLASS:
        case QUERY_BY_OSD:
                return split_device(members, device, ret);
        default:
                r = query_target_get(members, device->facts->name, host, ret);
                if (r == 0)
                        members->result->targets[*ret].device =
                                (uint32_t)(device - members->query->topology->devices);
                return r;
        }
}

static bool device_wanted(const struct query_members *members, uint32_t index)
{
        const struct topology *topology = members->query->topology;
        const struct topology_device *device = &topology->devices[index];
        const struct topology_host *host = &topology->hosts[device->host];

        if (!members->host_in[device->host])
                return false;
        if (!members->spec->entity)
                return topology_is_leaf_of(topology, index, members->spec->cluster);
        return query_entity_wanted(members, host->facts->hostname, device->facts->name) ||
               (*device->facts->alias &&
                       query_entity_wanted(members, host->facts->hostname, device->facts->alias));
}

/* The same as long as it is the same device: indices move when devices come and go. */
static uint64_t device_key(const struct topology *topology, const struct topology_device *device)
{
        char host[ID_TEXT_MAX];

        id_format(&topology->hosts[device->host].id, host);
        return query_spread(query_hash(host) ^ query_spread(query_hash(device->facts->name)) ^
                            query_hash(device->facts->identity));
}

static int add_device(struct query_members *members, uint32_t index, bool *host_in)
{
        const struct topology *topology = members->query->topology;
        const struct topology_device *device = &topology->devices[index];
        uint32_t target, member;
        int r;

        if (!device_wanted(members, index))
                return 0;
        r = device_target(members, device, &target);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = query_member_add(members, index, target, &member);
        if (r < 0)
                return r;
        if (members->spec->detailed)
                members->list[member].mark = device_key(topology, device);
        members->result->targets[target].expected++;
        host_in[device->host] = true;
        return 0;
}

static int add_named_devices(struct query_members *members, bool *host_in)
{
        const struct query_name *list;
        size_t n;
        int r = 0;

        list = query_facts_find_name(members->query->facts, members->spec->entity, &n);
        for (size_t i = 0; i < n && r == 0; i++)
                /* Its alias may be "host/name", too. */
                if (i == 0 || list[i].device != list[i - 1].device)
                        r = add_device(members, list[i].device, host_in);
        return r;
}

static int add_devices(struct query_members *members)
{
        const struct topology *topology = members->query->topology;
        CLEANUP(mem) bool *host_in = calloc(topology->n_hosts + 1, sizeof(*host_in));
        int r = 0;

        if (!host_in)
                return -ENOMEM;
        if (members->spec->entity)
                r = add_named_devices(members, host_in);
        for (uint32_t i = 0; !members->spec->entity && i < topology->n_devices && r == 0; i++)
                r = add_device(members, i, host_in);
        if (r < 0)
                return r;
        /* Only hosts that have one of them are read. */
        free(members->host_in);
        members->host_in = STEAL(host_in);
        return 0;
}

/* OSDs whose devices are unknown (no agent there, or other names) are missing from the devices. */
static int add_unknown_devices(struct query_members *members)
{
        const struct topology *topology = members->query->topology;
        const struct topology_cluster *cluster = &topology->clusters[members->spec->cluster];
        uint32_t target;
        int r;

        if (members->spec->entity || members->spec->by == QUERY_BY_DEVICE ||
                members->spec->by == QUERY_BY_ENTITY)
                return 0;
        for (uint32_t i = 0; i < cluster->n_osds; i++) {
                const struct topology_osd *osd = &topology->osds[cluster->first_osd + i];

                if (osd->n_leaves > 0 || !osd->facts->up || !query_osd_wanted(members, osd))
                        continue;
                r = query_osd_target(members, osd, &target);
                if (r < 0)
                        return r;
                members->result->targets[target].expected++;
        }
        return 0;
}

int query_add_devices(struct query_members *members)
{
        int r = add_devices(members);

        return r < 0 ? r : add_unknown_devices(members);
}
