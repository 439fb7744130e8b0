/* The blocks of a query: which to read, and their rows into the cursors of the members. */
#include "collectord/query-blocks.h"
#include "collectord/query-cache.h"
#include "collectord/tier.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_COLUMN UINT32_MAX
#define HOLE_INTERVALS 3 /* as in rung.c: beyond, no row helps an edge */
#define HOLE_SLACK_US 1000000
#define GAUGE_ROWS 10u /* of a tier in a window: fewer are no mean */

struct feeder {
        struct query_members *members;
        /* Entities and columns of the block before, kept while host and schema stay the same. */
        bool mapped;
        struct id host;
        uint64_t schema_hash;
        uint32_t host_index;
        uint32_t *member_of; /* [entities], TOPOLOGY_NONE: not of this query */
        uint32_t *columns;   /* [entities][schema columns], NO_COLUMN */
        uint32_t entities_allocated;
        bool any;               /* of them is of this query */
        struct query_map empty; /* host and schema of blocks that have none */
};

static void feeder_done(struct feeder *feeder)
{
        free(feeder->member_of);
        free(feeder->columns);
        query_map_done(&feeder->empty);
}
DEFINE_CLEANUP(feeder, struct feeder *, feeder_done)

static int grow_entities(struct feeder *feeder, uint32_t n)
{
        size_t n_columns = feeder->members->result->schema.n_columns;
        uint32_t *member_of, *columns;

        if (n <= feeder->entities_allocated)
                return 0;
        member_of = reallocarray(feeder->member_of, n, sizeof(*member_of));
        if (!member_of)
                return -ENOMEM;
        feeder->member_of = member_of;
        columns = reallocarray(feeder->columns, n_columns * n, sizeof(*columns));
        if (!columns)
                return -ENOMEM;
        feeder->columns = columns;
        feeder->entities_allocated = n;
        return 0;
}

/* For all columns that a schema may have, so that the next query finds it large enough. */
static int grow_rows(struct query_cache *cache, uint32_t n)
{
        uint64_t *values;
        uint8_t *present;

        if (n <= cache->rows_allocated)
                return 0;
        values = reallocarray(cache->values, (size_t)RUNG_COLUMNS_MAX * n, sizeof(*values));
        if (!values)
                return -ENOMEM;
        cache->values = values;
        present = realloc(cache->present, n);
        if (!present)
                return -ENOMEM;
        cache->present = present;
        present = realloc(cache->torn, n);
        if (!present)
                return -ENOMEM;
        cache->torn = present;
        cache->rows_allocated = n;
        return 0;
}

static int map_entity(struct feeder *feeder, const struct block *block, uint32_t entity)
{
        const struct rung_schema *schema = &feeder->members->result->schema;
        uint32_t *columns = feeder->columns + (size_t)entity * schema->n_columns;
        bool any = false;
        int r;

        for (uint32_t i = 0; i < schema->n_columns; i++) {
                if (block_find_column(block, entity, schema->metrics[i], &columns[i]) < 0)
                        columns[i] = NO_COLUMN;
                any |= columns[i] != NO_COLUMN;
        }
        /* A network card has no CPU time: it is none of those that are asked about. */
        feeder->member_of[entity] = TOPOLOGY_NONE;
        if (!any)
                return 0;
        r = query_members_find(feeder->members, feeder->host_index, &feeder->host,
                block_get_entity(block, entity), &feeder->member_of[entity]);
        if (r < 0)
                feeder->member_of[entity] = TOPOLOGY_NONE;
        return r == -ENOENT ? 0 : r;
}

static uint64_t schema_key(const struct block_header *header)
{
        uint64_t key;

        memcpy(&key, header->host.bytes, sizeof(key));
        return key * 0x9e3779b97f4a7c15ull ^ header->schema_hash;
}

static int map_block(struct feeder *feeder, const struct block *block)
{
        const struct block_header *header = block_get_header(block);
        uint32_t n = block_get_n_entities(block);
        int r;

        if (feeder->mapped && feeder->schema_hash == header->schema_hash &&
                id_equal(&feeder->host, &header->host))
                return 0;
        feeder->mapped = feeder->any = false;
        feeder->host = header->host;
        feeder->schema_hash = header->schema_hash;
        if (topology_find_host(
                    feeder->members->query->topology, &header->host, &feeder->host_index) < 0)
                feeder->host_index = TOPOLOGY_NONE;
        r = grow_entities(feeder, n);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < n; i++) {
                r = map_entity(feeder, block, i);
                if (r < 0)
                        return r;
                feeder->any |= feeder->member_of[i] != TOPOLOGY_NONE;
        }
        feeder->mapped = true;
        return feeder->any ? 0 : query_map_add(&feeder->empty, schema_key(header), 0);
}

/*
 * 1: the block is of a tier, whose rows are as far from each other as a hole is wide: a row knows
 * no rates where something is missing before it. The first row of a block never knows them.
 */
static int find_tears(struct query_cache *cache, const struct block *block, uint32_t entity,
        uint16_t metric, uint32_t n)
{
        uint64_t low[BLOCK_ROWS_MAX], high[BLOCK_ROWS_MAX];
        uint32_t column;
        int r;

        if (block_find_column(block, entity, metric | TIER_LOWEST, &column) < 0)
                return 0;
        r = block_read_column_rows(block, column, n, low);
        if (r == 0)
                r = block_find_column(block, entity, metric | TIER_HIGHEST, &column);
        if (r == 0)
                r = block_read_column_rows(block, column, n, high);
        for (uint32_t i = 0; i < n && r == 0; i++)
                cache->torn[i] = i > 0 && low[i] > high[i];
        return r < 0 ? r : 1;
}

/* The lowest and highest of the tier's columns; NULL where the block has none. */
static int read_ranges(struct query_cache *cache, const struct block *block, uint32_t entity,
        const struct rung_schema *schema, uint32_t n, const uint64_t **low, const uint64_t **high)
{
        int r = 0;

        if (n > cache->ranges_allocated) {
                uint64_t *ranges = reallocarray(
                        cache->ranges, (size_t)2 * RUNG_COLUMNS_MAX * n, sizeof(*ranges));

                if (!ranges)
                        return -ENOMEM;
                cache->ranges = ranges;
                cache->ranges_allocated = n;
        }
        for (uint32_t i = 0; i < 2 * schema->n_columns && r == 0; i++) {
                const uint64_t **place = i % 2 == 0 ? &low[i / 2] : &high[i / 2];
                uint64_t *column = cache->ranges + (size_t)i * n;
                uint32_t index;

                *place = NULL;
                if (block_find_column(block, entity,
                            schema->metrics[i / 2] | (i % 2 == 0 ? TIER_LOWEST : TIER_HIGHEST),
                            &index) < 0)
                        continue;
                r = block_read_column_rows(block, index, n, column);
                *place = column;
        }
        return r;
}

static int feed_entity(
        struct feeder *feeder, const struct block *block, uint32_t entity, uint32_t n)
{
        const struct block_header *header = block_get_header(block);
        const struct block_entity *e = block_get_entity(block, entity);
        const struct rung_schema *schema = &feeder->members->result->schema;
        const uint32_t *columns = feeder->columns + (size_t)entity * schema->n_columns;
        uint32_t member = feeder->member_of[entity];
        struct rung_cursor *cursor = NULL;
        struct query_cache *cache = feeder->members->query->cache;
        const uint64_t *values[RUNG_COLUMNS_MAX], *low[RUNG_COLUMNS_MAX], *high[RUNG_COLUMNS_MAX];
        struct rung_rows rows = {
                .life = {.instance = e->instance, .identity = query_hash(e->identity)},
                .interval_us = header->interval_us,
                .n = n,
                .times_us = block_get_times(block),
                .present = cache->present,
                .values = values,
        };
        int r;

        /* Pools do not care which host asks about them, nor when it booted. */
        if (header->source != SOURCE_CEPH)
                rows.life.boot = header->boot;
        for (uint32_t row = 0; row < n; row++)
                cache->present[row] = block_is_present(block, entity, row);
        for (uint32_t i = 0; i < schema->n_columns; i++) {
                uint64_t *column = cache->values + (size_t)i * n;

                values[i] = NULL;
                if (columns[i] == NO_COLUMN)
                        continue;
                r = block_read_column_rows(block, columns[i], n, column);
                if (r < 0)
                        return r;
                values[i] = column;
        }
        r = find_tears(cache, block, entity, schema->metrics[0], n);
        if (r < 0)
                return r;
        if (r > 0)
                rows.torn = cache->torn;
        if (feeder->members->spec->extremes) {
                r = read_ranges(cache, block, entity, schema, n, low, high);
                if (r < 0)
                        return r;
                rows.low = low;
                rows.high = high;
        }
        r = query_member_cursor(feeder->members, member, &cursor);
        if (r < 0)
                return r;
        rung_feed(cursor, feeder->members->result->table, feeder->members->list[member].target,
                &rows);
        return 0;
}

/* Another host's or cluster's block needs no decompression. */
static bool block_wanted(const struct feeder *feeder, const struct block_header *header)
{
        const struct query_members *members = feeder->members;
        const struct id *fsid = &members->query->topology->clusters[members->spec->cluster].fsid;
        uint32_t host;

        if (header->rows == 0 || (header->flags & BLOCK_FLAG_GAP))
                return false;
        if (source_is_of_osds(members->spec->source) || members->spec->source == SOURCE_CEPH)
                return id_is_zero(&header->cluster) || id_equal(&header->cluster, fsid);
        return topology_find_host(members->query->topology, &header->host, &host) == 0 &&
               members->host_in[host];
}

/*
 * A block that rotted on the disk is a gap of its host, and no reason to refuse everybody's curves.
 * Blocks were whole when they came, so these are the errors of bytes that changed since.
 */
static int skip_rotten(const struct query_members *members, int r)
{
        if (r != -EBADMSG && r != -EMSGSIZE && r != -EPROTONOSUPPORT)
                return r;
        store_reader_count_rotten(members->query->reader);
        return 0;
}

static bool all_present(const struct block *block, uint32_t row)
{
        for (uint32_t i = 0; i < block_get_n_entities(block); i++)
                if (!block_is_present(block, i, row))
                        return false;
        return true;
}

/* Up to the first row that is behind all windows: what comes after it changes none. An entity that
 * is absent there has its edge in a later one. */
static uint32_t rows_of(const struct feeder *feeder, const struct block *block)
{
        const struct rung_windows *windows = &feeder->members->spec->windows;
        int64_t end_us = windows->from_us + (int64_t)(windows->n * windows->step_us);
        const int64_t *times = block_get_times(block);
        uint32_t n = 0, rows = block_get_header(block)->rows;

        while (n < rows && times[n] < end_us)
                n++;
        while (n < rows && !all_present(block, n))
                n++;
        return n < rows ? n + 1 : rows;
}

static int feed_block(void *userdata, const struct store_block *stored)
{
        struct feeder *feeder = userdata;
        struct query_cache *cache = feeder->members->query->cache;
        const struct block *block = NULL;
        struct block_header header;
        uint32_t nobody, n;
        size_t size;
        int r;

        r = query_check_deadline(feeder->members->query);
        if (r < 0)
                return r;
        r = block_peek(stored->bytes, stored->size, &header, &size);
        if (r < 0)
                return skip_rotten(feeder->members, r);
        if (!block_wanted(feeder, &header) ||
                query_map_find(&feeder->empty, schema_key(&header), &nobody) == 0)
                return 0;
        r = block_decode(cache->decoder, stored->bytes, stored->size, &block);
        if (r < 0)
                return skip_rotten(feeder->members, r);
        r = map_block(feeder, block);
        if (r < 0)
                return r;
        if (!feeder->any)
                return 0;
        r = grow_rows(cache, header.rows);
        if (r < 0)
                return r;
        n = rows_of(feeder, block);
        for (uint32_t i = 0; i < block_get_n_entities(block); i++) {
                if (feeder->member_of[i] == TOPOLOGY_NONE)
                        continue;
                r = feed_entity(feeder, block, i, n);
                if (r < 0)
                        return r;
        }
        return 0;
}

/*
 * How far apart rows may be: windows whose edges are whole minutes, or hours, are as right from
 * rows at those edges. A gauge's mean needs many rows in a window.
 */
static uint64_t resolution_of(const struct query_members *members)
{
        static const uint64_t steps_us[] = {3600000000u, 60000000u};
        const struct rung_windows *windows = &members->spec->windows;
        const struct rung_schema *schema = &members->result->schema;
        uint64_t rows = 1;

        if (members->spec->exact)
                return 0;
        for (uint32_t i = 0; i < schema->n_columns; i++)
                if (schema->kinds[i] == RUNG_GAUGE)
                        rows = GAUGE_ROWS;
        for (size_t i = 0; i < sizeof(steps_us) / sizeof(steps_us[0]); i++)
                if (windows->step_us % steps_us[i] == 0 &&
                        windows->from_us % (int64_t)steps_us[i] == 0 &&
                        windows->step_us / steps_us[i] >= rows)
                        return steps_us[i];
        return 0;
}

/* ---- one host at a time ---- */

/*
 * Several hosts may have delivered the pools of one cluster (an election, two agents with the same
 * configuration). Their counters are the same ones, so each moment is taken from one host, and
 * going on with another one is no reset.
 */
struct run {
        struct id host;
        int64_t first_us, last_us, reach_us; /* reach: within it the next row is no hole */
};

struct runs {
        const struct query_members *members;
        struct run *list;
        size_t n, allocated;
};

static void runs_done(struct runs *runs)
{
        free(runs->list);
}
DEFINE_CLEANUP(runs, struct runs *, runs_done)

static int add_run(void *userdata, const struct store_block *stored)
{
        struct runs *runs = userdata;
        struct feeder feeder = {.members = (struct query_members *)runs->members};
        struct run *last = runs->n ? &runs->list[runs->n - 1] : NULL;
        struct block_header header;
        int64_t reach_us;
        size_t size;
        int r;

        r = block_peek(stored->bytes, stored->size, &header, &size);
        if (r < 0)
                return skip_rotten(runs->members, r);
        if (!block_wanted(&feeder, &header))
                return 0;
        reach_us = header.last_us + HOLE_INTERVALS * (int64_t)header.interval_us + HOLE_SLACK_US;
        if (last && id_equal(&last->host, &header.host) && header.first_us <= last->reach_us) {
                if (header.last_us > last->last_us)
                        last->last_us = header.last_us;
                if (reach_us > last->reach_us)
                        last->reach_us = reach_us;
                return 0;
        }
        if (runs->n == runs->allocated) {
                size_t n = runs->allocated ? runs->allocated * 2 : 16;
                struct run *list = reallocarray(runs->list, n, sizeof(*list));

                if (!list)
                        return -ENOMEM;
                runs->list = list;
                runs->allocated = n;
        }
        assert(runs->list);
        runs->list[runs->n++] = (struct run){.host = header.host,
                .first_us = header.first_us,
                .last_us = header.last_us,
                .reach_us = reach_us};
        return 0;
}

static int compare_runs(const void *a, const void *b)
{
        const struct run *x = a, *y = b;

        return (x->first_us > y->first_us) - (x->first_us < y->first_us);
}

/* Of the runs (ascending by begin) the next to take: the longest that continues @end_us without a
 * hole, else the first after it. */
static size_t next_run(const struct runs *runs, size_t from, int64_t end_us, int64_t reach_us)
{
        size_t best = runs->n;

        for (size_t i = from; i < runs->n; i++) {
                const struct run *run = &runs->list[i];

                if (best != runs->n && run->first_us > reach_us)
                        break;
                if (run->last_us <= end_us)
                        continue;
                if (best == runs->n || run->last_us > runs->list[best].last_us)
                        best = i;
        }
        return best;
}

static int read_runs(struct feeder *feeder, const struct runs *runs, int64_t from_us, int64_t to_us)
{
        const struct query *query = feeder->members->query;
        int64_t end_us = INT64_MIN, reach_us = INT64_MIN;
        size_t i = 0;
        int r;

        while (end_us < to_us) {
                const struct run *run;
                size_t best = next_run(runs, i, end_us, reach_us);
                int64_t begin_us;

                if (best == runs->n)
                        return 0;
                run = &runs->list[best];
                begin_us = end_us > from_us ? end_us : from_us;
                r = store_read_blocks(query->reader, SOURCE_CEPH, &run->host, begin_us,
                        run->last_us < to_us ? run->last_us : to_us, resolution_of(feeder->members),
                        feed_block, feeder);
                if (r < 0)
                        return r;
                end_us = run->last_us;
                reach_us = run->reach_us;
                while (i < runs->n && runs->list[i].last_us <= end_us)
                        i++;
        }
        return 0;
}

static int read_ceph(struct feeder *feeder, int64_t from_us, int64_t to_us)
{
        struct runs list = {.members = feeder->members};
        CLEANUP(runs) struct runs *runs = &list;
        bool several = false;
        int r;

        r = store_read_blocks(feeder->members->query->reader, SOURCE_CEPH, NULL, from_us, to_us,
                resolution_of(feeder->members), add_run, runs);
        if (r < 0)
                return r;
        if (runs->n == 0)
                return 0;
        for (size_t i = 1; i < runs->n; i++)
                several |= !id_equal(&runs->list[i].host, &runs->list[0].host);
        if (!several)
                return store_read_blocks(feeder->members->query->reader, SOURCE_CEPH,
                        &runs->list[0].host, from_us, to_us, resolution_of(feeder->members),
                        feed_block, feeder);
        qsort(runs->list, runs->n, sizeof(*runs->list), compare_runs);
        return read_runs(feeder, runs, from_us, to_us);
}

/* Far enough to the right that a row beyond the last edge is found. */
static int64_t reach_of(const struct query *query, enum source_id source)
{
        uint64_t interval_us = 0;

        for (size_t i = 0; i < query->n_streams; i++)
                if (query->streams[i].source == source &&
                        query->streams[i].interval_us > interval_us)
                        interval_us = query->streams[i].interval_us;
        return HOLE_INTERVALS * (int64_t)interval_us + HOLE_SLACK_US;
}

/* Of devices and host entities it is known where they are: other hosts' blocks are not read. */
static int read_hosts(struct feeder *feeder, int64_t from_us, int64_t to_us)
{
        const struct query_members *members = feeder->members;
        const struct topology *topology = members->query->topology;

        for (uint32_t i = 0; i < topology->n_hosts; i++) {
                const struct topology_host *host = &topology->hosts[i];
                int r;

                if (!members->host_in[i])
                        continue;
                r = store_read_blocks(members->query->reader, members->spec->source, &host->id,
                        from_us, to_us, resolution_of(members), feed_block, feeder);
                if (r < 0)
                        return r;
        }
        return 0;
}

int query_read(struct query_members *members)
{
        const struct query_spec *spec = members->spec;
        struct feeder storage = {.members = members};
        CLEANUP(feeder) struct feeder *feeder = &storage;
        int64_t from_us = spec->windows.from_us;
        int64_t to_us = from_us + (int64_t)(spec->windows.n * spec->windows.step_us) +
                        reach_of(members->query, spec->source);

        if (spec->source == SOURCE_CEPH)
                return read_ceph(feeder, from_us, to_us);
        if (source_is_of_osds(spec->source))
                return store_read_blocks(members->query->reader, spec->source, NULL, from_us, to_us,
                        resolution_of(members), feed_block, feeder);
        return read_hosts(feeder, from_us, to_us);
}
