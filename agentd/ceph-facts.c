#include "agentd/ceph-facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POOL_TYPE_ERASURE 3

static void json_cleanup(json_t **json)
{
        json_decref(*json);
}

static const char *text_get(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

/* A number, or a text of digits: metadata and profiles are texts throughout. */
static json_int_t number_get(const json_t *object, const char *key)
{
        const json_t *value = json_object_get(object, key);

        if (json_is_string(value))
                return strtoll(json_string_value(value), NULL, 10);
        return (json_int_t)json_number_value(value);
}

/* The elements of @list by the number at @key: an object whose names are these numbers. */
static json_t *index_make(const json_t *list, const char *key)
{
        json_t *index = json_object();

        for (size_t i = 0; i < json_array_size(list); i++) {
                json_t *element = json_array_get(list, i);
                char name[24];

                snprintf(name, sizeof(name), "%" JSON_INTEGER_FORMAT, number_get(element, key));
                json_object_set(index, name, element);
        }
        return index;
}

static const json_t *index_find(const json_t *index, json_int_t number)
{
        char name[24];

        snprintf(name, sizeof(name), "%" JSON_INTEGER_FORMAT, number);
        return json_object_get(index, name);
}

/*
 * The kernel's name of a device: "sda2", "dm-3". The partition path is the nearest to the truth
 * ("/dev/sda2", where the node is "/dev/sda"), but for dm it is "/dev/mapper/NAME" while the node
 * has the kernel's name.
 */
static const char *device_name(const json_t *metadata, const char *prefix)
{
        static const char *const keys[] = {"partition_path", "dev_node"};

        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
                char key[64];
                const char *path;

                snprintf(key, sizeof(key), "%s_%s", prefix, keys[i]);
                path = text_get(metadata, key);
                if (strncmp(path, "/dev/", 5) == 0 && path[5] &&
                        strncmp(path, "/dev/mapper/", 12) != 0)
                        return path + 5;
        }
        return NULL;
}

/* One name, or the disks below ("sdb,sdc") when the device itself has no name. */
static json_t *devices_make(const json_t *metadata, const char *prefix)
{
        json_t *list = json_array();
        const char *name = device_name(metadata, prefix);
        char key[64], *copy, *rest;

        if (name) {
                json_array_append_new(list, json_string(name));
                return list;
        }
        snprintf(key, sizeof(key), "%s_devices", prefix);
        copy = rest = strdup(text_get(metadata, key));
        while (rest && (name = strsep(&rest, ",")))
                if (name[0])
                        json_array_append_new(list, json_string(name));
        free(copy);
        return list;
}

static json_t *dedicated_make(const json_t *metadata, const char *flag, const char *prefix)
{
        return number_get(metadata, flag) == 1 ? devices_make(metadata, prefix) : json_array();
}

static json_t *osd_make(const json_t *osd, const json_t *metadata, const json_t *node)
{
        return json_pack("{s:I, s:s, s:s, s:b, s:b, s:b, s:I, s:s, s:o, s:o, s:o}", "id",
                number_get(osd, "osd"), "host", text_get(metadata, "hostname"), "device_class",
                text_get(node, "device_class"), "up", number_get(osd, "up") == 1, "in",
                number_get(osd, "in") == 1, "rotational",
                number_get(metadata, "bluestore_bdev_rotational") == 1, "min_alloc_size",
                number_get(metadata, "bluestore_min_alloc_size"), "release",
                text_get(metadata, "ceph_version_short"), "block",
                devices_make(metadata, "bluestore_bdev"), "db",
                dedicated_make(metadata, "bluefs_dedicated_db", "bluefs_db"), "wal",
                dedicated_make(metadata, "bluefs_dedicated_wal", "bluefs_wal"));
}

static json_t *osds_make(const struct ceph_documents *documents)
{
        const json_t *osds = json_object_get(documents->osd_dump, "osds");
        CLEANUP(json) json_t *metadata = index_make(documents->osd_metadata, "id");
        CLEANUP(json)
        json_t *nodes = index_make(json_object_get(documents->osd_tree, "nodes"), "id");
        json_t *list = json_array();

        for (size_t i = 0; i < json_array_size(osds) && i < FACTS_OSDS_MAX; i++) {
                const json_t *osd = json_array_get(osds, i);
                json_int_t id = number_get(osd, "osd");

                json_array_append_new(
                        list, osd_make(osd, index_find(metadata, id), index_find(nodes, id)));
        }
        return list;
}

static json_t *pool_make(const json_t *pool, const json_t *profiles)
{
        bool erasure = number_get(pool, "type") == POOL_TYPE_ERASURE;
        const json_t *profile =
                erasure ? json_object_get(profiles, text_get(pool, "erasure_code_profile")) : NULL;
        json_int_t k = number_get(profile, "k"), m = number_get(profile, "m");

        /* A stripe is k units wide. */
        return json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:I}", "id", number_get(pool, "pool"),
                "name", text_get(pool, "pool_name"), "type", erasure ? "erasure" : "replicated",
                "size", number_get(pool, "size"), "k", k, "m", m, "stripe_unit",
                k > 0 ? number_get(pool, "stripe_width") / k : 0);
}

static json_t *pools_make(const struct ceph_documents *documents)
{
        const json_t *pools = json_object_get(documents->osd_dump, "pools");
        json_t *list = json_array();

        for (size_t i = 0; i < json_array_size(pools) && i < FACTS_POOLS_MAX; i++)
                json_array_append_new(
                        list, pool_make(json_array_get(pools, i), documents->profiles));
        return list;
}

int ceph_facts_make(const struct ceph_documents *documents, json_t **ret)
{
        char fsid[ID_TEXT_MAX];

        if (!json_is_array(json_object_get(documents->osd_dump, "osds")) ||
                !json_is_array(json_object_get(documents->osd_dump, "pools")))
                return -EBADMSG;
        *ret = json_pack("{s:s, s:s, s:s, s:s, s:f, s:o, s:o}", "fsid",
                id_format(&documents->status->fsid, fsid), "name", documents->name, "health",
                documents->status->health, "release", documents->release, "mgr_stats_period",
                documents->mgr_stats_period, "osds", osds_make(documents), "pools",
                pools_make(documents));
        return *ret ? 0 : -ENOMEM;
}

/* By way of the reader of lib/facts.h, which checks everything. */
int ceph_facts_add(const json_t *cluster, struct facts *facts)
{
        CLEANUP(json) json_t *json = NULL;
        CLEANUP(facts) struct facts *read = NULL;
        CLEANUP(str) char *message = NULL;
        struct facts_cluster *clusters;
        int r;

        json = json_pack("{s:s, s:s, s:[], s:[O]}", "host_id",
                "00000000-0000-0000-0000-000000000001", "hostname", "-", "devices", "clusters",
                cluster);
        if (!json)
                return -ENOMEM;
        r = facts_from_json(json, &read, &message);
        if (r < 0)
                return r;
        clusters = reallocarray(facts->clusters, facts->n_clusters + 1, sizeof(*clusters));
        if (!clusters)
                return -ENOMEM;
        facts->clusters = clusters;
        clusters[facts->n_clusters++] = read->clusters[0];
        read->n_clusters = 0;
        return 0;
}
