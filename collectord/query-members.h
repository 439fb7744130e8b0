#pragma once
/* Entities of a query and the target that each adds to; part of query.c. */

#include <stdbool.h>
#include <stdint.h>

#include "lib/block.h"
#include "collectord/query.h"
#include "collectord/query-map.h"

#define QUERY_TARGETS_MAX 65536u /* as many as a cluster may have OSDs */
#define QUERY_MEMBERS_MAX 262144u

struct query_member {
        uint64_t key, mark; /* mark: the cursor's key */
        uint32_t target;
        struct rung_cursor *cursor; /* NULL until it has rows: totals need none */
};

struct query_members {
        const struct query *query;
        const struct query_spec *spec;
        struct query_result *result;
        struct query_member *list;
        uint32_t n, allocated;
        uint32_t targets_allocated;
        uint32_t n_keyed;        /* of the list, in by_key */
        struct query_map by_key; /* made when a block is read */
        struct query_map target_by_key;
        struct query_recent {
                const char *host, *key;
                uint32_t target;
        } recent;      /* what was asked for last: neighbours share it mostly */
        bool *host_in; /* [topology hosts] carries the cluster, and is asked for */
};

/* Adds the members that should answer. */
int query_members_init(struct query_members *members, const struct query *query,
        const struct query_spec *spec, struct query_result *result);
void query_members_done(struct query_members *members);
DEFINE_CLEANUP(query_members_object, struct query_members *, query_members_done)

/* The member that a block's entity is; an entity of the cluster that the facts do not know (any
 * more) becomes one. -ENOENT: not of this query. @host: index, or TOPOLOGY_NONE. */
int query_members_find(struct query_members *members, uint32_t host, const struct id *host_id,
        const struct block_entity *entity, uint32_t *ret);

/* The member's, made with its first rows. -ENOMEM. */
int query_member_cursor(struct query_members *members, uint32_t member, struct rung_cursor **ret);

/* For query-devices.c and query-osds.c. -E2BIG, -ENOMEM. */
int query_target_get(
        struct query_members *members, const char *key, const char *host, uint32_t *ret);
int query_member_add(struct query_members *members, uint64_t key, uint32_t target, uint32_t *ret);
/* -ENOENT. */
int query_member_find(struct query_members *members, uint64_t key, uint32_t *ret);
bool query_host_wanted(const struct query_members *members, const char *name, const struct id *id);
bool query_entity_wanted(const struct query_members *members, const char *host, const char *name);
bool query_osd_wanted(const struct query_members *members, const struct topology_osd *osd);
int query_osd_target(struct query_members *members, const struct topology_osd *osd, uint32_t *ret);

int query_add_devices(struct query_members *members);
int query_add_osds(struct query_members *members);
int query_add_pools(struct query_members *members);
/* -ENOENT: not of this query. */
int query_find_osd(struct query_members *members, const struct block_entity *entity, uint32_t *ret);
int query_find_pool(
        struct query_members *members, const struct block_entity *entity, uint32_t *ret);
