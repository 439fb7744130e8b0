/* The OSDs and pools of a query. */
#include "collectord/ladder.h"
#include "collectord/query-members.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int query_osd_target(struct query_members *members, const struct topology_osd *osd, uint32_t *ret)
{
        const struct topology *topology = members->query->topology;
        char name[32];

        switch (members->spec->by) {
        case QUERY_BY_CLUSTER:
                return query_target_get(members, "cluster", NULL, ret);
        case QUERY_BY_HOST:
                return query_target_get(members,
                        osd->host == TOPOLOGY_NONE ? osd->facts->host
                                                   : topology->hosts[osd->host].facts->hostname,
                        NULL, ret);
        case QUERY_BY_CLASS:
                return query_target_get(members, osd->facts->device_class, NULL, ret);
        default:
                snprintf(name, sizeof(name), "osd.%" PRIu32, osd->id);
                return query_target_get(members, name, NULL, ret);
        }
}

bool query_osd_wanted(const struct query_members *members, const struct topology_osd *osd)
{
        const struct topology *topology = members->query->topology;
        const struct topology_host *host =
                osd->host == TOPOLOGY_NONE ? NULL : &topology->hosts[osd->host];
        char name[32];

        snprintf(name, sizeof(name), "osd.%" PRIu32, osd->id);
        return query_host_wanted(members, osd->facts->host, host ? &host->id : NULL) &&
               query_entity_wanted(members, host ? host->facts->hostname : osd->facts->host, name);
}

static void add_compaction(struct query_target *target, const struct topology_osd *osd)
{
        double bytes = ladder_compaction_of(osd->facts);

        target->compaction_bytes += (bytes - target->compaction_bytes) / ++target->n_osds;
}

int query_add_osds(struct query_members *members)
{
        const struct topology *topology = members->query->topology;
        const struct topology_cluster *cluster = &topology->clusters[members->spec->cluster];
        uint32_t target, member;
        int r;

        for (uint32_t i = 0; i < cluster->n_osds; i++) {
                const struct topology_osd *osd = &topology->osds[cluster->first_osd + i];

                if (!query_osd_wanted(members, osd))
                        continue;
                r = query_osd_target(members, osd, &target);
                if (r < 0)
                        return r;
                r = query_member_add(members, osd->id, target, &member);
                if (r < 0)
                        return r;
                members->result->targets[target].expected += osd->facts->up;
                add_compaction(&members->result->targets[target], osd);
        }
        return 0;
}

static int add_pool(struct query_members *members, uint32_t pool, const char *name, uint32_t *ret)
{
        bool by_cluster = members->spec->by == QUERY_BY_CLUSTER;
        uint32_t target;
        int r;

        if (!query_entity_wanted(members, NULL, name))
                return -ENOENT;
        /* Beside the pools the source has an entity of its own for the cluster. */
        if (pool == TOPOLOGY_NONE && !by_cluster && !members->spec->entity)
                return -ENOENT;
        r = query_target_get(members, by_cluster ? "cluster" : name, NULL, &target);
        if (r < 0)
                return r;
        if (!by_cluster)
                members->result->targets[target].pool = pool;
        /* One host answers for all pools, or does not. */
        members->result->targets[target].expected = 1;
        return query_member_add(members, pool, target, ret);
}

int query_add_pools(struct query_members *members)
{
        const struct facts_cluster *facts =
                members->query->topology->clusters[members->spec->cluster].facts;
        uint32_t member;
        int r;

        for (size_t i = 0; facts && i < facts->n_pools; i++) {
                r = add_pool(members, facts->pools[i].id, facts->pools[i].name, &member);
                if (r < 0 && r != -ENOENT)
                        return r;
        }
        return 0;
}

static int parse_number(const char *text, uint32_t *ret)
{
        unsigned long long number;
        char *end;

        if (*text < '0' || *text > '9')
                return -EINVAL;
        errno = 0;
        number = strtoull(text, &end, 10);
        if (errno || *end || number >= UINT32_MAX)
                return -EINVAL;
        *ret = number;
        return 0;
}

int query_find_pool(struct query_members *members, const struct block_entity *entity, uint32_t *ret)
{
        uint32_t pool = TOPOLOGY_NONE;
        int r;

        if (strcmp(entity->name, QUERY_CLUSTER_ENTITY) != 0 || *entity->identity) {
                r = parse_number(entity->identity, &pool);
                if (r < 0 && strcmp(entity->name, QUERY_CLUSTER_ENTITY) != 0)
                        return -ENOENT;
        }
        r = query_member_find(members, pool, ret);
        return r == -ENOENT ? add_pool(members, pool, entity->name, ret) : r;
}

int query_find_osd(struct query_members *members, const struct block_entity *entity, uint32_t *ret)
{
        uint32_t id, target;
        int r;

        if (strncmp(entity->name, "osd.", 4) != 0 || parse_number(entity->name + 4, &id) < 0)
                return -ENOENT;
        r = query_member_find(members, id, ret);
        if (r != -ENOENT)
                return r;
        /* Removed since, or added a moment ago: its class and host are not known. */
        if (members->spec->host || !query_entity_wanted(members, NULL, entity->name) ||
                members->spec->by == QUERY_BY_HOST || members->spec->by == QUERY_BY_CLASS)
                return -ENOENT;
        if (topology_find_osd(members->query->topology, members->spec->cluster, id, &target) == 0)
                return -ENOENT; /* known, and filtered out */
        r = query_target_get(members,
                members->spec->by == QUERY_BY_CLUSTER ? "cluster" : entity->name, NULL, &target);
        return r < 0 ? r : query_member_add(members, id, target, ret);
}
