#include "collectord/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/query-blocks.h"
#include "collectord/query-cache.h"
#include "collectord/query-members.h"
#include "collectord/total.h"
#include "lib/clock.h"

#define LIVE_INTERVALS 4u
#define SPANS_MAX 16u /* of windows that totals are not right for */

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

int query_open(
        struct store_reader *reader, int64_t now_us, uint64_t deadline_us, struct query **ret)
{
        CLEANUP(query) struct query *query = calloc(1, sizeof(*query));
        int r;

        if (!query)
                return -ENOMEM;
        query->reader = reader;
        query->now_us = now_us;
        query->deadline_us = deadline_us;
        if (deadline_us > 0)
                store_reader_set_deadline(reader, deadline_us);
        r = query_cache_get(reader, &query->cache);
        if (r < 0)
                return r;
        r = query_cache_streams(query->cache, query, &query->held);
        if (r < 0)
                return r;
        query->streams = query->held->list;
        query->n_streams = query->held->n;
        r = query_cache_facts(query->cache, query, &query->facts);
        if (r < 0)
                return r;
        query->topology = query->facts->topology;
        *ret = STEAL(query);
        return 0;
}

struct query *query_close(struct query *query)
{
        if (!query)
                return NULL;
        query_facts_unref(query->facts);
        query_streams_unref(query->held);
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

/* All windows from the blocks. */
static int run_exact(struct query_members *members, struct query_result *result)
{
        int r;

        r = query_read(members);
        for (uint32_t i = 0; i < members->n && r == 0; i++)
                if (members->list[i].cursor)
                        rung_finish(
                                members->list[i].cursor, result->table, members->list[i].target);
        return r;
}

static bool find_key(const struct query_result *result, const char *key, uint32_t *ret)
{
        for (uint32_t i = 0; i < result->table->n_targets; i++)
                if (strcmp(result->targets[i].key, key) == 0) {
                        *ret = i;
                        return true;
                }
        return false;
}

/* Some windows from the blocks. */
static int run_span(const struct query *query, const struct query_spec *spec, uint32_t first,
        uint32_t n, struct query_result *result)
{
        CLEANUP(query_result) struct query_result *part = NULL;
        struct query_spec narrow = *spec;
        uint32_t index;
        int r;

        narrow.no_totals = true;
        narrow.windows.from_us += (int64_t)(first * spec->windows.step_us);
        narrow.windows.n = n;
        r = query_run(query, &narrow, &part);
        for (uint32_t i = 0; r == 0 && i < part->table->n_targets; i++) {
                const struct rung_target *from = &part->table->targets[i];
                struct rung_target *to;

                if (!find_key(result, part->targets[i].key, &index))
                        continue;
                to = &result->table->targets[index];
                memcpy(to->seen + first, from->seen, n * sizeof(*to->seen));
                memcpy(to->reset + first, from->reset, n * sizeof(*to->reset));
                for (uint32_t slot = 0; slot < result->table->n_slots; slot++)
                        memcpy(to->sums + (size_t)slot * spec->windows.n + first,
                                from->sums + (size_t)slot * n, n * sizeof(*to->sums));
        }
        return r;
}

/* From totals what they are right for, the rest from the blocks. 1: nothing was. */
static int run_totals(
        const struct query *query, const struct query_spec *spec, struct query_result *result)
{
        uint32_t n = spec->windows.n, spans = 0, count = 0;
        CLEANUP(mem) bool *open = malloc(n);
        int r;

        if (!open)
                return -ENOMEM;
        memset(open, true, n);
        r = total_fill(query, spec, result, open);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < n; i++) {
                spans += open[i] && (i == 0 || !open[i - 1]);
                count += open[i];
        }
        if (count == n)
                return 1;
        /* Many spans cost more than all at once. */
        if (spans > SPANS_MAX)
                return run_span(query, spec, 0, n, result);
        for (uint32_t i = 0, end; i < n && r == 0; i = end + 1) {
                while (i < n && !open[i])
                        i++;
                for (end = i; end < n && open[end];)
                        end++;
                if (end > i)
                        r = run_span(query, spec, i, end - i, result);
        }
        return r;
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
        result->table->detailed = spec->detailed;
        result->table->extremes = spec->extremes;
        r = query_members_init(members, query, spec, result);
        if (r < 0)
                return r;
        r = spec->exact || spec->no_totals || spec->extremes ? 1 : run_totals(query, spec, result);
        if (r > 0)
                r = run_exact(members, result);
        if (r < 0)
                return r;
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
