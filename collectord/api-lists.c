/* GET /clusters, /osds, /devices, /pools: who is there, as the facts tell it. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/api-query.h"
#include "collectord/expected.h"

#define KEY_MAX 640u /* fsid, host id, a device's name */

/* One row before it is one: its sort key says whether it is on the page. */
struct row {
        char *key;
        uint32_t a, b; /* what the list's describe function makes of it */
};

struct list {
        const struct query *query;
        struct api_page page;
        uint32_t cluster; /* index, or TOPOLOGY_NONE: all */
        struct row *rows;
        size_t n, allocated;
};

static void list_done(struct list *list)
{
        for (size_t i = 0; i < list->n; i++)
                free(list->rows[i].key);
        free(list->rows);
}
DEFINE_CLEANUP(list, struct list *, list_done)

__attribute__((format(printf, 4, 5))) static int add_row(
        struct list *list, uint32_t a, uint32_t b, const char *format, ...)
{
        char key[KEY_MAX];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(key, sizeof(key), format, arguments);
        va_end(arguments);
        if (strcmp(key, list->page.after) <= 0)
                return 0;
        if (list->n == list->allocated) {
                size_t n = list->allocated ? list->allocated * 2 : 128;
                struct row *rows = reallocarray(list->rows, n, sizeof(*rows));

                if (!rows)
                        return -ENOMEM;
                list->rows = rows;
                list->allocated = n;
        }
        list->rows[list->n] = (struct row){strdup(key), a, b};
        if (!list->rows[list->n].key)
                return -ENOMEM;
        list->n++;
        return 0;
}

static int compare_rows(const void *a, const void *b)
{
        return strcmp(((const struct row *)a)->key, ((const struct row *)b)->key);
}

static double seconds(int64_t time_us)
{
        return (double)time_us / 1e6;
}

/* null when there never was a sample */
static json_t *sample_time(int64_t last_us)
{
        return last_us > 0 ? json_real(seconds(last_us)) : json_null();
}

static json_t *fsid_json(const struct query *query, uint32_t cluster)
{
        char text[ID_TEXT_MAX];

        return json_string(api_query_fsid(query, cluster, text));
}

static json_t *names_json(char *const *names, size_t n)
{
        json_t *array = json_array();

        for (size_t i = 0; i < n; i++)
                json_array_append_new(array, json_string(names[i]));
        return array;
}

/* Newest sample of the pools, whichever host delivered it. */
static int64_t last_pool_sample(const struct query *query, uint32_t cluster)
{
        const struct topology *topology = query->topology;
        int64_t last_us = 0;

        for (size_t i = 0; i < topology->n_hosts; i++) {
                const struct facts *facts = topology->hosts[i].facts;

                for (size_t k = 0; k < facts->n_clusters; k++) {
                        int64_t sample_us;

                        if (!id_equal(&facts->clusters[k].fsid, &topology->clusters[cluster].fsid))
                                continue;
                        sample_us = query_last_sample(query, &topology->hosts[i].id, SOURCE_CEPH);
                        if (sample_us > last_us)
                                last_us = sample_us;
                }
        }
        return last_us;
}

static json_t *describe_cluster(const struct query *query, const struct row *row)
{
        const struct topology_cluster *cluster = &query->topology->clusters[row->a];
        const struct facts_cluster *facts = cluster->facts;
        int64_t last_us = last_pool_sample(query, row->a);
        uint32_t up = 0;

        for (uint32_t i = 0; i < cluster->n_osds; i++)
                up += query->topology->osds[cluster->first_osd + i].facts->up;
        return json_pack("{s:o, s:s, s:s?, s:s?, s:i, s:i, s:i, s:i, s:o, s:o, s:o}", "fsid",
                fsid_json(query, row->a), "name", facts ? facts->name : "(no cluster)", "health",
                facts ? facts->health : NULL, "release", facts ? facts->release : NULL, "hosts",
                (int)cluster->n_hosts, "osds", (int)cluster->n_osds, "osds_up", (int)up, "pools",
                facts ? (int)facts->n_pools : 0, "mgr_stats_period",
                facts ? json_real((double)facts->mgr_stats_period_us / 1e6) : json_null(),
                "last_sample", sample_time(last_us), "age",
                last_us > 0 ? json_real(seconds(query->now_us - last_us)) : json_null());
}

static json_t *describe_osd(const struct query *query, const struct row *row)
{
        const struct topology *topology = query->topology;
        const struct topology_osd *osd = &topology->osds[row->a];
        const struct facts_osd *facts = osd->facts;
        json_t *shared = json_array();
        int64_t last_us = 0;

        if (osd->host != TOPOLOGY_NONE)
                last_us = query_last_sample(query, &topology->hosts[osd->host].id, SOURCE_OSD);
        for (size_t i = 0; osd->shared && i < topology->n_devices; i++) {
                const struct topology_device *device = &topology->devices[i];
                const uint32_t *of = topology->osd_of + device->first_osd;
                bool mine = false;

                for (uint32_t k = 0; k < device->n_osds; k++)
                        mine |= of[k] == row->a;
                for (uint32_t k = 0; mine && k < device->n_osds; k++)
                        if (of[k] != row->a)
                                json_array_append_new(
                                        shared, json_integer(topology->osds[of[k]].id));
        }
        return json_pack("{s:o, s:I, s:s, s:s, s:b, s:b, s:s, s:I, s:b, s:o, s:o, s:o, s:o, s:o}",
                "cluster", fsid_json(query, osd->cluster), "id", (json_int_t)osd->id, "host",
                facts->host, "device_class", facts->device_class, "up", facts->up, "in", facts->in,
                "release", facts->release, "min_alloc_size", (json_int_t)facts->min_alloc_size,
                "rotational", facts->rotational, "block", names_json(facts->block, facts->n_block),
                "db", names_json(facts->db, facts->n_db), "wal",
                names_json(facts->wal, facts->n_wal), "shared", shared, "last_sample",
                sample_time(last_us));
}

/* The names of the devices of the host that stand on @device. */
static json_t *children_json(const struct topology *topology, const struct topology_device *device)
{
        const struct topology_host *host = &topology->hosts[device->host];
        const struct topology_device *other = &topology->devices[host->first_device];
        json_t *children = json_array();

        for (uint32_t i = 0; i < host->n_devices; i++, other++)
                for (size_t k = 0; k < other->facts->n_parents; k++)
                        if (strcmp(other->facts->parents[k], device->facts->name) == 0) {
                                json_array_append_new(children, json_string(other->facts->name));
                                break;
                        }
        return children;
}

static json_t *describe_device(const struct query *query, const struct row *row)
{
        const struct topology *topology = query->topology;
        const struct topology_device *device = &topology->devices[row->a];
        const struct topology_host *host = &topology->hosts[device->host];
        const struct facts_device *facts = device->facts;
        json_t *osds = json_array();
        char host_id[ID_TEXT_MAX];

        for (uint32_t i = 0; i < device->n_osds; i++)
                json_array_append_new(osds,
                        json_integer(topology->osds[topology->osd_of[device->first_osd + i]].id));
        return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:s, s:I, "
                         "s:o, s:o, s:o, s:o, s:o, s:s?, s:b, s:b, s:o}",
                "host_id", id_format(&host->id, host_id), "hostname", host->facts->hostname, "name",
                facts->name, "alias", facts->alias, "identity", facts->identity, "kind",
                device_kind_name(facts->kind), "type", facts->type, "model", facts->model, "serial",
                facts->serial, "wwn", facts->wwn, "rotational", facts->rotational, "scheduler",
                facts->scheduler, "write_cache", facts->write_cache, "size",
                (json_int_t)facts->size_bytes, "parents",
                names_json(facts->parents, facts->n_parents), "children",
                children_json(topology, device), "caches",
                names_json(facts->caches, facts->n_caches), "cluster",
                row->b == TOPOLOGY_NONE ? json_null() : fsid_json(query, row->b), "osds", osds,
                "role", topology_role_name(device->role), "leaf", device->leaf, "shared",
                device->n_osds > 1, "last_sample",
                sample_time(query_last_sample(query, &host->id, SOURCE_DISKSTATS)));
}

static json_t *describe_pool(const struct query *query, const struct row *row)
{
        const struct facts_pool *pool = &query->topology->clusters[row->a].facts->pools[row->b];
        double expected = expected_factor(pool);

        return json_pack("{s:o, s:I, s:s, s:s, s:I, s:I, s:I, s:o, s:o}", "cluster",
                fsid_json(query, row->a), "id", (json_int_t)pool->id, "name", pool->name, "type",
                pool->erasure ? "erasure" : "replicated", "size", (json_int_t)pool->size, "k",
                (json_int_t)pool->k, "m", (json_int_t)pool->m, "expected",
                isnan(expected) ? json_null() : json_real(expected), "last_sample",
                sample_time(last_pool_sample(query, row->a)));
}

/* ---- rows ---- */

static bool cluster_wanted(const struct list *list, uint32_t cluster)
{
        return list->cluster == TOPOLOGY_NONE || list->cluster == cluster;
}

static int list_clusters(struct list *list)
{
        const struct topology *topology = list->query->topology;
        char fsid[ID_TEXT_MAX];
        int r;

        for (uint32_t i = 0; i < topology->n_clusters; i++) {
                r = add_row(list, i, 0, "%s", api_query_fsid(list->query, i, fsid));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int list_osds(struct list *list)
{
        const struct topology *topology = list->query->topology;
        char fsid[ID_TEXT_MAX];
        int r;

        for (uint32_t i = 0; i < topology->n_osds; i++) {
                const struct topology_osd *osd = &topology->osds[i];

                if (!cluster_wanted(list, osd->cluster))
                        continue;
                r = add_row(list, i, 0, "%s/%010" PRIu32,
                        api_query_fsid(list->query, osd->cluster, fsid), osd->id);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int list_pools(struct list *list)
{
        const struct topology *topology = list->query->topology;
        char fsid[ID_TEXT_MAX];
        int r;

        for (uint32_t i = 0; i < topology->n_clusters; i++) {
                const struct facts_cluster *facts = topology->clusters[i].facts;

                for (size_t k = 0; facts && cluster_wanted(list, i) && k < facts->n_pools; k++) {
                        r = add_row(list, i, k, "%s/%010" PRIu32,
                                api_query_fsid(list->query, i, fsid), facts->pools[k].id);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

/* The cluster whose OSD the device backs; the host's only one for the others; none of several. */
static uint32_t cluster_of_device(const struct list *list, uint32_t index, const uint32_t *of_host)
{
        const struct topology *topology = list->query->topology;
        const struct topology_device *device = &topology->devices[index];

        if (list->cluster != TOPOLOGY_NONE && topology_is_leaf_of(topology, index, list->cluster))
                return list->cluster;
        if (device->n_osds > 0)
                return topology->osds[topology->osd_of[device->first_osd]].cluster;
        return of_host[device->host];
}

/* [hosts]: the only cluster on each; "none" without OSDs; TOPOLOGY_NONE with several. */
static uint32_t *clusters_of_hosts(const struct topology *topology)
{
        uint32_t *of_host = malloc((topology->n_hosts + 1) * sizeof(*of_host));
        const uint32_t several = TOPOLOGY_NONE - 1;

        if (!of_host)
                return NULL;
        for (size_t i = 0; i < topology->n_hosts; i++)
                of_host[i] = topology->hosts[i].has_osds ? TOPOLOGY_NONE : topology->n_clusters - 1;
        for (size_t i = 0; i < topology->n_osds; i++) {
                const struct topology_osd *osd = &topology->osds[i];

                if (osd->host == TOPOLOGY_NONE)
                        continue;
                if (of_host[osd->host] == TOPOLOGY_NONE)
                        of_host[osd->host] = osd->cluster;
                else if (of_host[osd->host] != osd->cluster)
                        of_host[osd->host] = several;
        }
        for (size_t i = 0; i < topology->n_hosts; i++)
                if (of_host[i] == several)
                        of_host[i] = TOPOLOGY_NONE;
        return of_host;
}

static int list_devices(struct list *list)
{
        const struct topology *topology = list->query->topology;
        CLEANUP(mem) uint32_t *of_host = clusters_of_hosts(topology);
        char host[ID_TEXT_MAX];
        int r;

        if (!of_host)
                return -ENOMEM;
        for (uint32_t i = 0; i < topology->n_devices; i++) {
                const struct topology_device *device = &topology->devices[i];
                uint32_t cluster = cluster_of_device(list, i, of_host);

                if (!cluster_wanted(list, cluster))
                        continue;
                r = add_row(list, i, cluster, "%s/%s",
                        id_format(&topology->hosts[device->host].id, host), device->facts->name);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- the page ---- */

static json_t *make_page(struct list *list, const char *name,
        json_t *(*describe)(const struct query *query, const struct row *row))
{
        json_t *array = json_array();
        const char *cursor = NULL;
        size_t n = list->n;

        if (n > 0)
                qsort(list->rows, n, sizeof(*list->rows), compare_rows);
        if (n > list->page.limit) {
                n = list->page.limit;
                cursor = list->rows[n - 1].key;
        }
        for (size_t i = 0; i < n; i++)
                if (json_array_append_new(array, describe(list->query, &list->rows[i])) < 0) {
                        json_decref(array);
                        return NULL;
                }
        return json_pack("{s:o, s:s?}", name, array, "cursor", cursor);
}

static int answer(struct store_reader *reader, const struct api_request *request,
        struct api_response *response, const char *name, int (*collect)(struct list *list),
        json_t *(*describe)(const struct query *query, const struct row *row))
{
        CLEANUP(query) struct query *query = NULL;
        struct list storage = {.cluster = TOPOLOGY_NONE};
        CLEANUP(list) struct list *list = &storage;
        int r;

        r = api_parse_page(request, response, &list->page);
        if (r != 0)
                return r < 0 ? r : 0;
        r = query_open(reader, request->now_us, request->deadline_us, &query);
        if (r < 0)
                return api_query_problem(request, response, r);
        list->query = query;
        if (api_parameter(request, "cluster")) {
                r = api_query_cluster(query, request, response, &list->cluster);
                if (r != 0)
                        return r < 0 ? r : 0;
        }
        r = collect(list);
        if (r < 0)
                return api_query_problem(request, response, r);
        return api_json(response, 200, make_page(list, name, describe));
}

int api_clusters(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        return answer(reader, request, response, "clusters", list_clusters, describe_cluster);
}

int api_osds(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        return answer(reader, request, response, "osds", list_osds, describe_osd);
}

int api_devices(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        return answer(reader, request, response, "devices", list_devices, describe_device);
}

int api_pools(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        return answer(reader, request, response, "pools", list_pools, describe_pool);
}
