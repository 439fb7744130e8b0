/*
 * What stays between the queries of one reader: the topology while the facts stay, and the memory
 * and contexts for decoding. Facts of a thousand hosts take longer to parse than a curve to read.
 */
#include "collectord/query-cache.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "collectord/query.h"

struct loader {
        struct query *query;
        struct topology_input *inputs;
        size_t n, allocated;
};

static void loader_done(struct loader *loader)
{
        for (size_t i = 0; i < loader->n; i++)
                facts_free(loader->inputs[i].facts);
        free(loader->inputs);
}
DEFINE_CLEANUP(loader, struct loader *, loader_done)

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
        if (loader->n == loader->allocated) {
                size_t n = loader->allocated ? loader->allocated * 2 : 64;
                struct topology_input *inputs = reallocarray(loader->inputs, n, sizeof(*inputs));

                if (!inputs) {
                        facts_free(facts);
                        return -ENOMEM;
                }
                loader->inputs = inputs;
                loader->allocated = n;
        }
        facts->host_id = stored->host;
        loader->inputs[loader->n++] = (struct topology_input){
                .facts = facts,
                .updated_us = stored->updated_us,
        };
        return 0;
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

static int compare_freshness(const void *a, const void *b)
{
        const struct store_stream *x = *(const struct store_stream *const *)a,
                                  *y = *(const struct store_stream *const *)b;

        if (x->last_us != y->last_us)
                return x->last_us > y->last_us ? -1 : 1;
        return memcmp(x->host.bytes, y->host.bytes, sizeof(x->host.bytes));
}

/* The topology hangs on which host's "ceph" source is fresher than which, not on the times. */
static int rank_hosts(const struct query_streams *streams, uint64_t *ret)
{
        CLEANUP(mem)
        const struct store_stream **list = calloc(streams->n + 1, sizeof(struct store_stream *));
        char text[ID_TEXT_MAX];
        uint64_t rank = 0;
        size_t n = 0;

        if (!list)
                return -ENOMEM;
        for (size_t i = 0; i < streams->n; i++)
                if (streams->list[i].source == SOURCE_CEPH)
                        list[n++] = &streams->list[i];
        qsort(list, n, sizeof(struct store_stream *), compare_freshness);
        for (size_t i = 0; i < n; i++)
                rank = rank * 31 + query_hash(id_format(&list[i]->host, text)) +
                       (i > 0 && list[i]->last_us == list[i - 1]->last_us);
        *ret = rank;
        return 0;
}

struct query_streams *query_streams_unref(struct query_streams *streams)
{
        if (!streams || --streams->refs > 0)
                return NULL;
        free(streams->list);
        free(streams);
        return NULL;
}

static int add_stream(void *userdata, const struct store_stream *stream)
{
        struct query_streams *streams = userdata;

        if (streams->n == streams->allocated) {
                size_t n = streams->allocated ? streams->allocated * 2 : 64;
                struct store_stream *list = reallocarray(streams->list, n, sizeof(*list));

                if (!list)
                        return -ENOMEM;
                streams->list = list;
                streams->allocated = n;
        }
        streams->list[streams->n++] = *stream;
        return 0;
}

int query_cache_streams(struct query_cache *cache, struct query *query, struct query_streams **ret)
{
        CLEANUP(query_streams) struct query_streams *streams = NULL;
        uint64_t version = 0;
        int r;

        r = store_read_version(query->reader, &version);
        if (r < 0)
                return r;
        if (!cache->streams || cache->streams->version != version) {
                streams = calloc(1, sizeof(*streams));
                if (!streams)
                        return -ENOMEM;
                *streams = (struct query_streams){.refs = 1, .version = version};
                /* Ordered by host. */
                r = store_read_streams(query->reader, add_stream, streams);
                if (r == 0)
                        r = store_read_facts_version(query->reader, &streams->facts_version);
                if (r == 0)
                        r = rank_hosts(streams, &streams->rank);
                if (r < 0)
                        return r;
                query_streams_unref(cache->streams);
                cache->streams = STEAL(streams);
        }
        cache->streams->refs++;
        *ret = cache->streams;
        return 0;
}

struct query_share {
        atomic_uint refs;
        pthread_mutex_t mutex; /* whoever needs what another one is loading waits for it */
        struct query_facts *facts;
};

struct query_facts *query_facts_unref(struct query_facts *facts)
{
        if (!facts || atomic_fetch_sub(&facts->refs, 1) > 1)
                return NULL;
        topology_free(facts->topology);
        free(facts->names);
        free(facts);
        return NULL;
}

static int compare_names(const void *a, const void *b)
{
        const struct query_name *x = a, *y = b;

        if (x->hash != y->hash)
                return x->hash < y->hash ? -1 : 1;
        return (x->device > y->device) - (x->device < y->device);
}

static void add_name(struct query_facts *facts, const char *host, const char *name, uint32_t device)
{
        uint64_t hash = query_hash_more(query_hash_more(query_hash(host), "/"), name);

        facts->names[facts->n_names++] = (struct query_name){query_hash(name), device};
        facts->names[facts->n_names++] = (struct query_name){hash, device};
}

static int index_names(struct query_facts *facts)
{
        const struct topology *topology = facts->topology;

        facts->names = calloc(4 * topology->n_devices + 1, sizeof(*facts->names));
        if (!facts->names)
                return -ENOMEM;
        for (uint32_t i = 0; i < topology->n_devices; i++) {
                const struct topology_device *device = &topology->devices[i];
                const char *host = topology->hosts[device->host].facts->hostname;

                add_name(facts, host, device->facts->name, i);
                if (*device->facts->alias && strcmp(device->facts->alias, device->facts->name) != 0)
                        add_name(facts, host, device->facts->alias, i);
        }
        qsort(facts->names, facts->n_names, sizeof(*facts->names), compare_names);
        return 0;
}

const struct query_name *query_facts_find_name(
        const struct query_facts *facts, const char *name, size_t *ret_count)
{
        uint64_t hash = query_hash(name);
        size_t first = 0, end = facts->n_names, n = 0;

        while (first < end) {
                size_t middle = first + (end - first) / 2;

                if (facts->names[middle].hash < hash)
                        first = middle + 1;
                else
                        end = middle;
        }
        while (first + n < facts->n_names && facts->names[first + n].hash == hash)
                n++;
        *ret_count = n;
        return facts->names + first;
}

static int load_facts(
        struct query *query, uint64_t version, uint64_t rank, struct query_facts **ret)
{
        struct loader list = {.query = query};
        CLEANUP(loader) struct loader *loader = &list;
        CLEANUP(query_facts) struct query_facts *facts = calloc(1, sizeof(*facts));
        size_t n;
        int r;

        if (!facts)
                return -ENOMEM;
        atomic_init(&facts->refs, 1);
        facts->version = version;
        facts->rank = rank;
        r = store_read_facts(query->reader, add_facts, loader);
        if (r < 0)
                return r;
        add_freshness(loader);
        n = loader->n;
        loader->n = 0; /* the topology takes the facts over */
        r = topology_new(loader->inputs, n, &facts->topology);
        if (r == 0)
                r = index_names(facts);
        if (r < 0)
                return r;
        *ret = STEAL(facts);
        return 0;
}

static int share_facts(struct query_share *share, struct query *query, uint64_t version,
        uint64_t rank, struct query_facts **ret)
{
        if (!share->facts || share->facts->version != version || share->facts->rank != rank) {
                struct query_facts *facts = NULL;
                int r;

                r = load_facts(query, version, rank, &facts);
                if (r < 0)
                        return r;
                query_facts_unref(share->facts);
                share->facts = facts;
        }
        share->facts->refs++;
        *ret = share->facts;
        return 0;
}

int query_cache_facts(struct query_cache *cache, struct query *query, struct query_facts **ret)
{
        const struct query_streams *streams = query->held;
        int r;

        pthread_mutex_lock(&cache->share->mutex);
        r = share_facts(cache->share, query, streams->facts_version, streams->rank, ret);
        pthread_mutex_unlock(&cache->share->mutex);
        return r;
}

int query_share_new(struct query_share **ret)
{
        struct query_share *share = calloc(1, sizeof(*share));

        if (!share)
                return -ENOMEM;
        atomic_init(&share->refs, 1);
        pthread_mutex_init(&share->mutex, NULL);
        *ret = share;
        return 0;
}

struct query_share *query_share_unref(struct query_share *share)
{
        if (!share || atomic_fetch_sub(&share->refs, 1) > 1)
                return NULL;
        query_facts_unref(share->facts);
        pthread_mutex_destroy(&share->mutex);
        free(share);
        return NULL;
}

static struct query_cache *cache_free(struct query_cache *cache)
{
        if (!cache)
                return NULL;
        query_streams_unref(cache->streams);
        query_share_unref(cache->share);
        block_decoder_free(cache->decoder);
        free(cache->values);
        free(cache->present);
        free(cache->torn);
        free(cache->ranges);
        free(cache);
        return NULL;
}
DEFINE_CLEANUP(cache, struct query_cache *, cache_free)

static void drop_cache(void *cache)
{
        cache_free(cache);
}

int query_share_join(struct query_share *share, struct store_reader *reader)
{
        CLEANUP(cache) struct query_cache *cache = calloc(1, sizeof(*cache));
        int r;

        assert(!store_reader_get_cache(reader));
        if (!cache)
                return -ENOMEM;
        r = block_decoder_new(&cache->decoder);
        if (r < 0)
                return r;
        share->refs++;
        cache->share = share;
        store_reader_set_cache(reader, STEAL(cache), drop_cache);
        return 0;
}

int query_cache_get(struct store_reader *reader, struct query_cache **ret)
{
        CLEANUP(query_share) struct query_share *share = NULL;
        int r;

        if (!store_reader_get_cache(reader)) {
                r = query_share_new(&share);
                if (r == 0)
                        r = query_share_join(share, reader);
                if (r < 0)
                        return r;
        }
        *ret = store_reader_get_cache(reader);
        return 0;
}
