#pragma once
/* What a reader keeps from one query to the next; part of query.c. */

#include <stdint.h>

#include "lib/block.h"
#include "lib/cleanup.h"
#include "collectord/query-map.h"
#include "collectord/store.h"
#include "collectord/topology.h"

struct query;

/* A topology, and which state of the facts it was made of. */
struct query_facts {
        unsigned refs;
        uint64_t version, rank;
        struct topology *topology;
};
struct query_facts *query_facts_unref(struct query_facts *facts);
DEFINE_CLEANUP(query_facts, struct query_facts *, query_facts_unref)

struct query_cache {
        struct query_facts *facts;
        struct block_decoder *decoder;
        /* One entity's rows. */
        uint64_t *values;        /* [schema columns][rows] */
        uint8_t *present, *torn; /* [rows] */
        uint32_t rows_allocated;
};

/* The reader's, made when there is none. */
int query_cache_get(struct store_reader *reader, struct query_cache **ret);
/* The topology of the facts as they are now, for which @query's streams are known. The caller
 * unrefs it. Errors as query_open. */
int query_cache_facts(struct query_cache *cache, struct query *query, struct query_facts **ret);
