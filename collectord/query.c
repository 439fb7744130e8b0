#include "collectord/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "collectord/query-blocks.h"
#include "collectord/query-members.h"
#include "lib/clock.h"

#define LIVE_INTERVALS 4u

int query_check_deadline(const struct query *query)
{
        if (query->deadline_us == 0)
                return 0;
        return clock_monotonic_us() > query->deadline_us ? -ETIME : 0;
}

int64_t query_last_sample(const struct query *query, const struct id *host, enum source_id source)
{
        int64_t last_us = 0;

        for (size_t i = 0; i < query->n_streams; i++)
                if (query->streams[i].source == source && id_equal(&query->streams[i].host, host) &&
                        query->streams[i].last_us > last_us)
                        last_us = query->streams[i].last_us;
        return last_us;
}

struct loader {
        struct query *query;
        struct topology_input *inputs;
        size_t n, inputs_allocated, streams_allocated;
};

static void loader_done(struct loader *loader)
{
        for (size_t i = 0; i < loader->n; i++)
                facts_free(loader->inputs[i].facts);
        free(loader->inputs);
}
DEFINE_CLEANUP(loader, struct loader *, loader_done)

static int add_stream(void *userdata, const struct store_stream *stream)
{
        struct loader *loader = userdata;
        struct query *query = loader->query;

        if (query->n_streams == loader->streams_allocated) {
                size_t n = loader->streams_allocated ? loader->streams_allocated * 2 : 64;
                struct store_stream *streams = reallocarray(query->streams, n, sizeof(*streams));

                if (!streams)
                        return -ENOMEM;
                query->streams = streams;
                loader->streams_allocated = n;
        }
        query->streams[query->n_streams++] = *stream;
        return 0;
}

static int add_facts(void *userdata, const struct store_facts *stored)
{
        struct loader *loader = userdata;
        CLEANUP(str) char *message = NULL;
        struct facts *facts;
        json_t *json;
        int r;

        r = query_check_deadline(loader->query);
        if (r < 0)
                return r;
        json = json_loads(stored->json, 0, NULL);
        if (!json)
                return -EINVAL;
        r = facts_from_json(json, &facts, &message);
        json_decref(json);
        if (r < 0)
                return r;
        if (loader->n == loader->inputs_allocated) {
                size_t n = loader->inputs_allocated ? loader->inputs_allocated * 2 : 64;
                struct topology_input *inputs = reallocarray(loader->inputs, n, sizeof(*inputs));

                if (!inputs) {
                        facts_free(facts);
                        return -ENOMEM;
                }
                loader->inputs = inputs;
                loader->inputs_allocated = n;
        }
        facts->host_id = stored->host;
        loader->inputs[loader->n++] = (struct topology_input){
                .facts = facts,
                .updated_us = stored->updated_us,
        };
        return 0;
}

static int compare_streams(const void *a, const void *b)
{
        const struct store_stream *x = a, *y = b;

        return memcmp(x->host.bytes, y->host.bytes, sizeof(x->host.bytes));
}

/* The freshness of each host's "ceph" source: only those few streams are looked at for each. */
static void add_freshness(struct loader *loader)
{
        const struct query *query = loader->query;

        for (size_t i = 0; i < query->n_streams; i++) {
                if (query->streams[i].source != SOURCE_CEPH)
                        continue;
                for (size_t k = 0; k < loader->n; k++)
                        if (id_equal(&loader->inputs[k].facts->host_id, &query->streams[i].host) &&
                                query->streams[i].last_us > loader->inputs[k].ceph_last_us)
                                loader->inputs[k].ceph_last_us = query->streams[i].last_us;
        }
}

int query_open(
        struct store_reader *reader, int64_t now_us, uint64_t deadline_us, struct query **ret)
{
        CLEANUP(query) struct query *query = calloc(1, sizeof(*query));
        struct loader list = {.query = query};
        CLEANUP(loader) struct loader *loader = &list;
        size_t n;
        int r;

        if (!query)
                return -ENOMEM;
        query->reader = reader;
        query->now_us = now_us;
        query->deadline_us = deadline_us;
        if (deadline_us > 0)
                store_reader_set_deadline(reader, deadline_us);
        r = store_read_streams(reader, add_stream, loader);
        if (r < 0)
                return r;
        if (query->n_streams > 0)
                qsort(query->streams, query->n_streams, sizeof(*query->streams), compare_streams);
        r = store_read_facts(reader, add_facts, loader);
        if (r < 0)
                return r;
        add_freshness(loader);
        n = loader->n;
        loader->n = 0; /* the topology takes the facts over */
        r = topology_new(loader->inputs, n, &query->topology);
        if (r < 0)
                return r;
        *ret = STEAL(query);
        return 0;
}

struct query *query_close(struct query *query)
{
        if (!query)
                return NULL;
        topology_free(query->topology);
        free(query->streams);
        free(query);
        return NULL;
}

static bool is_live(const struct query *query, const struct store_stream *stream)
{
        uint64_t patience_us = LIVE_INTERVALS * stream->interval_us;

        if (patience_us < QUERY_LIVE_US)
                patience_us = QUERY_LIVE_US;
        return stream->last_us + (int64_t)patience_us >= query->now_us;
}

static bool tells_about(
        const struct query *query, const struct store_stream *stream, uint32_t cluster)
{
        const struct topology *topology = query->topology;
        const struct facts *facts;
        uint32_t host;

        if (topology_find_host(topology, &stream->host, &host) < 0)
                return false;
        facts = topology->hosts[host].facts;
        for (size_t i = 0; i < facts->n_clusters; i++)
                if (id_equal(&facts->clusters[i].fsid, &topology->clusters[cluster].fsid))
                        return true;
        return false;
}

int64_t query_frontier(const struct query *query, uint32_t cluster, unsigned sources)
{
        int64_t frontier_us = query->now_us, pools_us = 0;
        const struct store_stream *last = NULL;
        bool in_cluster = false;

        for (size_t i = 0; i < query->n_streams; i++) {
                const struct store_stream *stream = &query->streams[i];
                uint32_t host;

                if (!(sources & 1u << stream->source) || !is_live(query, stream))
                        continue;
                /* Any one host speaks for the pools. */
                if (stream->source == SOURCE_CEPH) {
                        if (stream->last_us > pools_us && tells_about(query, stream, cluster))
                                pools_us = stream->last_us;
                        continue;
                }
                if (!last || !id_equal(&last->host, &stream->host))
                        in_cluster =
                                topology_find_host(query->topology, &stream->host, &host) == 0 &&
                                topology_host_in(query->topology, host, cluster);
                last = stream;
                if (in_cluster && stream->last_us < frontier_us)
                        frontier_us = stream->last_us;
        }
        return pools_us > 0 && pools_us < frontier_us ? pools_us : frontier_us;
}

int query_run(const struct query *query, const struct query_spec *spec, struct query_result **ret)
{
        CLEANUP(query_result) struct query_result *result = calloc(1, sizeof(*result));
        struct query_members list = {0};
        CLEANUP(query_members_object) struct query_members *members = &list;
        int r;

        if (!result)
                return -ENOMEM;
        r = rung_schema_init(spec->terms, spec->n_terms, &result->schema);
        if (r < 0)
                return r;
        r = rung_table_new(&spec->windows, result->schema.n_slots, &result->table);
        if (r < 0)
                return r;
        r = query_members_init(members, query, spec, result);
        if (r < 0)
                return r;
        r = query_read(members);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < members->n; i++)
                rung_finish(members->list[i].cursor, result->table, members->list[i].target);
        *ret = STEAL(result);
        return 0;
}

struct query_result *query_result_free(struct query_result *result)
{
        if (!result)
                return NULL;
        for (uint32_t i = 0; result->table && i < result->table->n_targets; i++)
                free(result->targets[i].key);
        free(result->targets);
        rung_table_free(result->table);
        free(result);
        return NULL;
}
