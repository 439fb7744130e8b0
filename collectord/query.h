#pragma once
/*
 * One request's view of the store: the topology of now, and the counters of one source over windows
 * of time, grouped. It reads blocks through the store's reader, decodes only the columns that are
 * asked for, and feeds the pure functions of rung.h; one pass over the rows for all counters.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "lib/metric.h"
#include "collectord/rung.h"
#include "collectord/store.h"
#include "collectord/topology.h"

/* A source that sent nothing for so long (or for 4 intervals) does not hold back the live edge. */
#define QUERY_LIVE_US 30000000u
#define QUERY_CLUSTER_ENTITY "cluster" /* the "ceph" source's entity beside the pools */

struct query {
        struct store_reader *reader;
        int64_t now_us;
        uint64_t deadline_us; /* CLOCK_MONOTONIC, 0 is none */
        const struct topology *topology;
        const struct store_stream *streams; /* ascending by host */
        size_t n_streams;
        /* private */
        struct query_cache *cache;
        struct query_facts *facts;
        struct query_streams *held;
};

/*
 * Readers of one store whose queries share the topology, which is the largest of what stays between
 * queries: 10,000 hosts are tens of megabytes. Each may be on a thread of its own. Joined before
 * the first query; a reader that joins none keeps a topology of its own.
 */
struct query_share;
int query_share_new(struct query_share **ret);
struct query_share *query_share_unref(struct query_share *share);
DEFINE_CLEANUP(query_share, struct query_share *, query_share_unref)
int query_share_join(struct query_share *share, struct store_reader *reader);

/* Errors as in store.h; -EINVAL when stored facts cannot be read. */
int query_open(
        struct store_reader *reader, int64_t now_us, uint64_t deadline_us, struct query **ret);
struct query *query_close(struct query *query);
DEFINE_CLEANUP(query, struct query *, query_close)

/* The newest time up to which every live source in @sources (bits 1 << source_id) of the cluster
 * has delivered: later windows are not complete yet. At most now. */
int64_t query_frontier(const struct query *query, uint32_t cluster, unsigned sources);
/* Newest sample of @source of @host, 0 when there is none. */
int64_t query_last_sample(const struct query *query, const struct id *host, enum source_id source);
/* -ETIME past the deadline. */
int query_check_deadline(const struct query *query);

enum query_by {
        QUERY_BY_CLUSTER,
        QUERY_BY_HOST,
        QUERY_BY_CLASS,
        QUERY_BY_OSD,
        QUERY_BY_POOL,
        QUERY_BY_DEVICE,
        QUERY_BY_ENTITY, /* what the source has many of */
};

struct query_spec {
        uint32_t cluster; /* index in the topology */
        enum source_id source;
        struct rung_windows windows;
        enum query_by by;
        const struct rung_term *terms; /* outlive the result */
        uint32_t n_terms;
        const char
                *entity; /* only "name" or "host/name", or NULL: the layer's (of devices: leaves) */
        const char *host; /* only this host (name or id), or NULL */
        bool no_totals;   /* from blocks alone */
        bool exact;       /* from blocks as they came: neither totals nor tiers */
        bool detailed;    /* with a detailed table; of blocks only */
        bool extremes;    /* with a table of extremes; of blocks only */
};

struct query_target {
        char *key;
        const char *host;  /* its name, or NULL */
        uint32_t expected; /* entities that should answer */
        bool shared;       /* a device of several OSDs was left out, it cannot be split */
        uint32_t pool;     /* by pool: the id, else TOPOLOGY_NONE */
        uint32_t device;   /* by device: the index in the topology, else TOPOLOGY_NONE */
        uint32_t n_osds;
        double compaction_bytes; /* that a compaction of the BlueFS journal writes, a mean of its
                                    OSDs; 0 unknown */
};

struct query_result {
        struct rung_schema schema;
        struct rung_table *table;
        struct query_target *targets; /* [table->n_targets] */
};

/* -E2BIG: more numbers than RUNG_VALUES_MAX. -ETIME. Errors of the store. */
int query_run(const struct query *query, const struct query_spec *spec, struct query_result **ret);
struct query_result *query_result_free(struct query_result *result);
DEFINE_CLEANUP(query_result, struct query_result *, query_result_free)
