#pragma once
/* What a reader keeps from one query to the next; part of query.c. */

#include <stdatomic.h>
#include <stdint.h>

#include "lib/block.h"
#include "lib/cleanup.h"
#include "collectord/query-map.h"
#include "collectord/store.h"
#include "collectord/topology.h"

struct query;

/* The streams at one state of the store. */
struct query_streams {
        unsigned refs;
        uint64_t version;       /* store_read_version */
        uint64_t facts_version; /* of the facts at that state */
        uint64_t rank;          /* which host's "ceph" source is fresher than which */
        struct store_stream *list;
        size_t n, allocated;
};
struct query_streams *query_streams_unref(struct query_streams *streams);
DEFINE_CLEANUP(query_streams, struct query_streams *, query_streams_unref)

/* A topology, and which state of the facts it was made of. */
struct query_facts {
        atomic_uint refs;
        uint64_t version, rank;
        struct topology *topology;
        struct query_name {
                uint64_t hash;
                uint32_t device;
        } * names; /* of all devices and their aliases, with their host and without; ascending by
                      hash, then device */
        size_t n_names;
};
/* The devices whose name, alias, host/name or host/alias has the hash of @name. */
const struct query_name *query_facts_find_name(
        const struct query_facts *facts, const char *name, size_t *ret_count);
struct query_facts *query_facts_unref(struct query_facts *facts);
DEFINE_CLEANUP(query_facts, struct query_facts *, query_facts_unref)

struct query_cache {
        struct query_streams *streams;
        struct query_share *share; /* of the topology */
        struct block_decoder *decoder;
        /* One entity's rows. */
        uint64_t *values;          /* [schema columns][rows] */
        uint8_t *present, *torn;   /* [rows] */
        uint64_t *ranges;          /* [2][schema columns][rows] of a tier, made when asked for */
        uint32_t ranges_allocated; /* rows */
        uint32_t rows_allocated;
};

/* The reader's, made when there is none. */
int query_cache_get(struct store_reader *reader, struct query_cache **ret);
/* As they are now. The caller unrefs them. Errors as query_open. */
int query_cache_streams(struct query_cache *cache, struct query *query, struct query_streams **ret);
/* The topology of the facts as they are now, for which @query's streams are known. The caller
 * unrefs it. Errors as query_open. */
int query_cache_facts(struct query_cache *cache, struct query *query, struct query_facts **ret);
