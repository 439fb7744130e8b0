#include "collectord/query-members.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 512u

static int append_target(
        struct query_members *members, const char *key, const char *host, uint32_t *ret)
{
        struct query_result *result = members->result;
        struct query_target *targets;
        char *copy;
        int r;

        if (result->table->n_targets >= QUERY_TARGETS_MAX)
                return -E2BIG;
        if (result->table->n_targets == members->targets_allocated) {
                size_t n = members->targets_allocated ? members->targets_allocated * 2u : 16u;

                targets = reallocarray(result->targets, n, sizeof(*targets));
                if (!targets)
                        return -ENOMEM;
                result->targets = targets;
                members->targets_allocated = n;
        }
        copy = strdup(key);
        if (!copy)
                return -ENOMEM;
        r = rung_table_add_target(result->table, ret);
        if (r < 0) {
                free(copy);
                return r;
        }
        result->targets[*ret] = (struct query_target){
                .key = copy, .host = host, .pool = TOPOLOGY_NONE, .device = TOPOLOGY_NONE};
        return 0;
}

int query_target_get(
        struct query_members *members, const char *key, const char *host, uint32_t *ret)
{
        struct query_recent *recent = &members->recent;
        uint64_t hash;
        int r;

        /* @host is the topology's, and the same name is the same pointer. */
        if (recent->key && recent->host == host && strcmp(recent->key, key) == 0) {
                *ret = recent->target;
                return 0;
        }
        hash = query_hash(key) ^ (host ? query_spread(query_hash(host)) : 0);
        r = query_map_find(&members->target_by_key, hash, ret);
        if (r == -ENOENT) {
                r = append_target(members, key, host, ret);
                if (r == 0)
                        r = query_map_add(&members->target_by_key, hash, *ret);
        }
        if (r == 0)
                *recent = (struct query_recent){host, members->result->targets[*ret].key, *ret};
        return r;
}

int query_member_add(struct query_members *members, uint64_t key, uint32_t target, uint32_t *ret)
{
        struct query_member *list;

        if (members->n >= QUERY_MEMBERS_MAX)
                return -E2BIG;
        if (members->n == members->allocated) {
                size_t n = members->allocated ? members->allocated * 2u : 64u;

                list = reallocarray(members->list, n, sizeof(*list));
                if (!list)
                        return -ENOMEM;
                members->list = list;
                members->allocated = n;
        }
        members->list[members->n] =
                (struct query_member){.key = key, .mark = query_spread(key), .target = target};
        *ret = members->n++;
        return 0;
}

int query_member_find(struct query_members *members, uint64_t key, uint32_t *ret)
{
        for (; members->n_keyed < members->n; members->n_keyed++) {
                int r = query_map_add(
                        &members->by_key, members->list[members->n_keyed].key, members->n_keyed);

                if (r < 0)
                        return r;
        }
        return query_map_find(&members->by_key, key, ret);
}

int query_member_cursor(struct query_members *members, uint32_t index, struct rung_cursor **ret)
{
        struct query_member *member = &members->list[index];
        int r;

        if (!member->cursor) {
                r = rung_cursor_new(&members->result->schema, &member->cursor);
                if (r < 0)
                        return r;
                rung_cursor_set_key(member->cursor, member->mark);
        }
        *ret = member->cursor;
        return 0;
}

bool query_host_wanted(const struct query_members *members, const char *name, const struct id *id)
{
        const char *wanted = members->spec->host;
        char text[ID_TEXT_MAX];

        if (!wanted)
                return true;
        if (id && strcmp(id_format(id, text), wanted) == 0)
                return true;
        return name && topology_same_host(name, wanted);
}

bool query_entity_wanted(const struct query_members *members, const char *host, const char *name)
{
        const char *wanted = members->spec->entity;
        size_t n = host ? strlen(host) : 0;

        if (!wanted || strcmp(wanted, name) == 0)
                return true;
        return n > 0 && strncmp(wanted, host, n) == 0 && wanted[n] == '/' &&
               strcmp(wanted + n + 1, name) == 0;
}

static int find_host_entity(struct query_members *members, uint32_t host, const struct id *host_id,
        const struct block_entity *entity, uint32_t *ret)
{
        const char *hostname;
        char text[KEY_MAX];
        uint32_t target;
        uint64_t key;
        int r;

        if (host == TOPOLOGY_NONE)
                return -ENOENT;
        hostname = members->query->topology->hosts[host].facts->hostname;
        snprintf(text, sizeof(text), "%" PRIu32 "/%s", host, entity->name);
        key = query_hash(text);
        r = query_member_find(members, key, ret);
        if (r != -ENOENT)
                return r;
        if (!query_host_wanted(members, hostname, host_id) ||
                !query_entity_wanted(members, hostname, entity->name))
                return -ENOENT;
        if (members->spec->by == QUERY_BY_CLUSTER)
                r = query_target_get(members, "cluster", NULL, &target);
        else if (members->spec->by == QUERY_BY_HOST)
                r = query_target_get(members, hostname, NULL, &target);
        else
                r = query_target_get(members, entity->name, hostname, &target);
        return r < 0 ? r : query_member_add(members, key, target, ret);
}

int query_members_find(struct query_members *members, uint32_t host, const struct id *host_id,
        const struct block_entity *entity, uint32_t *ret)
{
        const struct query_spec *spec = members->spec;
        const struct id *fsid = &members->query->topology->clusters[spec->cluster].fsid;
        uint32_t device;
        int r;

        switch (spec->source) {
        case SOURCE_DISKSTATS:
                if (host == TOPOLOGY_NONE)
                        return -ENOENT;
                r = topology_find_device(
                        members->query->topology, host, entity->name, entity->identity, &device);
                return r < 0 ? r : query_member_find(members, device, ret);
        case SOURCE_OSD:
        case SOURCE_OSD_HISTOGRAM:
                return id_equal(&entity->cluster, fsid) ? query_find_osd(members, entity, ret)
                                                        : -ENOENT;
        case SOURCE_CEPH:
                return id_equal(&entity->cluster, fsid) ? query_find_pool(members, entity, ret)
                                                        : -ENOENT;
        default:
                return find_host_entity(members, host, host_id, entity, ret);
        }
}

static int mark_hosts(struct query_members *members)
{
        const struct topology *topology = members->query->topology;
        const struct topology_cluster *cluster = &topology->clusters[members->spec->cluster];

        members->host_in = calloc(topology->n_hosts + 1, sizeof(*members->host_in));
        if (!members->host_in)
                return -ENOMEM;
        for (size_t i = 0; i < topology->n_hosts && id_is_zero(&cluster->fsid); i++)
                members->host_in[i] = !topology->hosts[i].has_osds;
        for (uint32_t i = 0; i < cluster->n_osds; i++) {
                uint32_t host = topology->osds[cluster->first_osd + i].host;

                if (host != TOPOLOGY_NONE)
                        members->host_in[host] = true;
        }
        for (size_t i = 0; i < topology->n_hosts && members->spec->host; i++)
                members->host_in[i] &= query_host_wanted(
                        members, topology->hosts[i].facts->hostname, &topology->hosts[i].id);
        return 0;
}

int query_members_init(struct query_members *members, const struct query *query,
        const struct query_spec *spec, struct query_result *result)
{
        uint32_t target;
        int r;

        *members = (struct query_members){.query = query, .spec = spec, .result = result};
        r = mark_hosts(members);
        if (r < 0)
                return r;
        /* A cluster has its series even when nobody answers. */
        if (spec->by == QUERY_BY_CLUSTER) {
                r = query_target_get(members, "cluster", NULL, &target);
                if (r < 0)
                        return r;
        }
        switch (spec->source) {
        case SOURCE_DISKSTATS:
                return query_add_devices(members);
        case SOURCE_OSD:
        case SOURCE_OSD_HISTOGRAM:
                return query_add_osds(members);
        case SOURCE_CEPH:
                return query_add_pools(members);
        default:
                return 0;
        }
}

void query_members_done(struct query_members *members)
{
        for (uint32_t i = 0; i < members->n; i++)
                rung_cursor_free(members->list[i].cursor);
        free(members->list);
        query_map_done(&members->by_key);
        query_map_done(&members->target_by_key);
        free(members->host_in);
        *members = (struct query_members){0};
}
