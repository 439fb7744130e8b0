#include "lib/facts.h"

#include <errno.h>
#include <string.h>

#include "lib/shape.h"

/* Each struct of lib/facts.h, described once for lib/shape.c. */

#define F(object, json, type_, member)                                                             \
        {                                                                                          \
#json, FIELD_##type_, false, offsetof(struct object, member)                       \
        }
#define REQUIRED(object, json, type_, member)                                                      \
        {                                                                                          \
#json, FIELD_##type_, true, offsetof(struct object, member)                        \
        }
#define LIST(object, member, type_, max_, shape_)                                                  \
        {                                                                                          \
#member, FIELD_##type_, false, offsetof(struct object, member),                    \
                        offsetof(struct object, n_##member), max_, shape_                          \
        }

static const struct field device_fields[] = {
        REQUIRED(facts_device, name, TEXT, name),
        F(facts_device, alias, TEXT, alias),
        F(facts_device, identity, TEXT, identity),
        F(facts_device, model, TEXT, model),
        F(facts_device, serial, TEXT, serial),
        F(facts_device, wwn, TEXT, wwn),
        REQUIRED(facts_device, kind, KIND, kind),
        F(facts_device, type, TEXT, type),
        F(facts_device, scheduler, TEXT, scheduler),
        F(facts_device, write_cache, TEXT, write_cache),
        F(facts_device, major, U32, major),
        F(facts_device, minor, U32, minor),
        F(facts_device, rotational, BOOL, rotational),
        F(facts_device, uncounted, BOOL, uncounted),
        F(facts_device, size_bytes, U64, size_bytes),
        LIST(facts_device, parents, TEXTS, FACTS_PARENTS_MAX, NULL),
        LIST(facts_device, caches, TEXTS, FACTS_PARENTS_MAX, NULL),
        {0},
};
static const struct shape device_shape = {sizeof(struct facts_device), device_fields};

static const struct field osd_fields[] = {
        REQUIRED(facts_osd, id, U32, id),
        F(facts_osd, host, TEXT, host),
        F(facts_osd, device_class, TEXT, device_class),
        F(facts_osd, up, BOOL, up),
        F(facts_osd, in, BOOL, in),
        F(facts_osd, rotational, BOOL, rotational),
        F(facts_osd, min_alloc_size, U64, min_alloc_size),
        F(facts_osd, release, TEXT, release),
        LIST(facts_osd, block, TEXTS, FACTS_PARENTS_MAX, NULL),
        LIST(facts_osd, db, TEXTS, FACTS_PARENTS_MAX, NULL),
        LIST(facts_osd, wal, TEXTS, FACTS_PARENTS_MAX, NULL),
        {0},
};
static const struct shape osd_shape = {sizeof(struct facts_osd), osd_fields};

static const struct field pool_fields[] = {
        REQUIRED(facts_pool, id, U32, id),
        REQUIRED(facts_pool, name, TEXT, name),
        REQUIRED(facts_pool, type, ERASURE, erasure),
        REQUIRED(facts_pool, size, U32, size),
        F(facts_pool, k, U32, k),
        F(facts_pool, m, U32, m),
        F(facts_pool, stripe_unit, U32, stripe_unit),
        F(facts_pool, until_us, U64, until_us),
        {0},
};
static const struct shape pool_shape = {sizeof(struct facts_pool), pool_fields};

static const struct field cluster_fields[] = {
        REQUIRED(facts_cluster, fsid, ID, fsid),
        F(facts_cluster, name, TEXT, name),
        F(facts_cluster, health, TEXT, health),
        F(facts_cluster, release, TEXT, release),
        F(facts_cluster, kept, BOOL, kept),
        REQUIRED(facts_cluster, mgr_stats_period, SECONDS, mgr_stats_period_us),
        LIST(facts_cluster, osds, LIST, FACTS_OSDS_MAX, &osd_shape),
        LIST(facts_cluster, pools, LIST, FACTS_POOLS_MAX, &pool_shape),
        LIST(facts_cluster, past_pools, LIST, FACTS_PAST_POOLS_MAX, &pool_shape),
        {0},
};
static const struct shape cluster_shape = {sizeof(struct facts_cluster), cluster_fields};

static const struct field facts_fields[] = {
        REQUIRED(facts, host_id, ID, host_id),
        REQUIRED(facts, hostname, TEXT, hostname),
        F(facts, kernel, TEXT, kernel),
        F(facts, agent_version, TEXT, agent_version),
        LIST(facts, devices, LIST, FACTS_DEVICES_MAX, &device_shape),
        LIST(facts, clusters, LIST, FACTS_CLUSTERS_MAX, &cluster_shape),
        {0},
};
static const struct shape facts_shape = {sizeof(struct facts), facts_fields};

static const char *const kind_names[] = {
        [DEVICE_DISK] = "disk",
        [DEVICE_PARTITION] = "partition",
        [DEVICE_DM] = "dm",
        [DEVICE_MD] = "md",
        [DEVICE_LOOP] = "loop",
        [DEVICE_NVME_PATH] = "nvme_path",
        [DEVICE_ZRAM] = "zram",
        [DEVICE_BCACHE] = "bcache",
        [DEVICE_OTHER] = "other",
};

const char *device_kind_name(enum device_kind kind)
{
        return (size_t)kind <= DEVICE_OTHER ? kind_names[kind] : kind_names[DEVICE_OTHER];
}

int device_kind_parse(const char *name, enum device_kind *ret)
{
        for (int i = 0; i <= DEVICE_OTHER; i++)
                if (strcmp(kind_names[i], name) == 0) {
                        *ret = (enum device_kind)i;
                        return 0;
                }
        return -EINVAL;
}

int facts_new(struct facts **ret)
{
        CLEANUP(facts) struct facts *facts = calloc(1, sizeof(*facts));
        int r;

        if (!facts)
                return -ENOMEM;
        r = shape_fill_texts(&facts_shape, facts);
        if (r < 0)
                return r;
        *ret = STEAL(facts);
        return 0;
}

struct facts *facts_free(struct facts *facts)
{
        if (facts)
                shape_done(&facts_shape, facts);
        free(facts);
        return NULL;
}

int facts_from_json(const json_t *json, struct facts **ret, char **ret_message)
{
        CLEANUP(facts) struct facts *facts = calloc(1, sizeof(*facts));
        int r;

        *ret_message = NULL;
        if (!facts)
                return -ENOMEM;
        r = shape_read(&facts_shape, json, "", facts, ret_message);
        if (r < 0)
                return r;
        *ret = STEAL(facts);
        return 0;
}

int facts_to_json(const struct facts *facts, json_t **ret)
{
        json_t *json = shape_write(&facts_shape, facts);

        if (!json)
                return -ENOMEM;
        *ret = json;
        return 0;
}

/* FNV-1a over the bytes as they are made; the whole text never stands in memory. */
static int hash_bytes(const char *bytes, size_t size, void *userdata)
{
        uint64_t *hash = userdata;

        for (size_t i = 0; i < size; i++)
                *hash = (*hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
        return 0;
}

int facts_hash(const struct facts *facts, uint64_t *ret)
{
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        json_t *json = shape_write(&facts_shape, facts);
        int r;

        if (!json)
                return -ENOMEM;
        r = json_dump_callback(json, hash_bytes, &hash, JSON_SORT_KEYS | JSON_COMPACT);
        json_decref(json);
        if (r < 0)
                return -ENOMEM;
        *ret = hash;
        return 0;
}

int facts_find_device(const struct facts *facts, const char *name, size_t *ret)
{
        for (size_t i = 0; i < facts->n_devices; i++)
                if (strcmp(facts->devices[i].name, name) == 0) {
                        *ret = i;
                        return 0;
                }
        return -ENOENT;
}
