#pragma once
/*
 * The store: blocks, facts and plans. Blocks are kept as they came. `struct store` holds the only
 * write connection and belongs to the loop thread; any number of `struct store_reader` read a
 * consistent state from other threads, one thread each. Narrow on purpose, so that a second back
 * end is one file. This header names no SQLite.
 *
 * Common errors: -EIO the medium failed, -ENOSPC full, -EROFS read-only, -EACCES no permission,
 * -EBADMSG the file is damaged or not a store, -EPROTONOSUPPORT a newer schema, -EBUSY another
 * process has it, -ENOMEM, -ETIME over the time budget. After one of these from a store_put_* the
 * whole transaction is lost: store_rollback.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/block.h"
#include "lib/cleanup.h"
#include "lib/id.h"
#include "lib/metric.h"

struct store;
struct store_reader;

/* What all stores of the process keep of their files in memory: beyond it they reuse pages. */
void store_limit_memory(uint64_t bytes);

/* Makes the folder's store when there is none. *ret_message: one sentence naming the file, freed by
 * the caller. */
int store_open(const char *folder, struct store **ret, char **ret_message);
struct store *store_close(struct store *store);
DEFINE_CLEANUP(store, struct store *, store_close)

int store_reader_open(const char *folder, struct store_reader **ret);
struct store_reader *store_reader_close(struct store_reader *reader);
DEFINE_CLEANUP(store_reader, struct store_reader *, store_reader_close)
/* Queries on @reader fail with -ETIME after @deadline_us (CLOCK_MONOTONIC). 0 is no limit. */
void store_reader_set_deadline(struct store_reader *reader, uint64_t deadline_us);
/* Blocks that the reader's user found damaged and left out; taking the count sets it to 0. */
void store_reader_count_rotten(struct store_reader *reader);
uint64_t store_reader_take_rotten(struct store_reader *reader);

/* What the reader's user keeps with it, once; @drop frees it when the reader is closed. */
void *store_reader_get_cache(struct store_reader *reader);
void store_reader_set_cache(struct store_reader *reader, void *cache, void (*drop)(void *cache));

/* The calls between begin and end see one state of the store, whatever is committed meanwhile. */
int store_reader_begin(struct store_reader *reader);
void store_reader_end(struct store_reader *reader);

/* Bytes that the store may take; past it writing gives -ENOSPC. 0 is no limit. */
int store_set_limit(struct store *store, uint64_t bytes);

/* ---- writing: loop thread only ---- */

/* Opens a transaction unless one is open. All store_put_* need one. */
int store_begin(struct store *store);
/* Durable when it returns 0 (synchronous=FULL). */
int store_commit(struct store *store);
int store_rollback(struct store *store);
/* Undo of one request within the group's transaction. */
int store_savepoint(struct store *store);
int store_savepoint_release(struct store *store);
int store_savepoint_rollback(struct store *store);

#define STORE_DUPLICATE 1
/* A clock that is further ahead than this is wrong: its stream's last_us is not believed, else a
 * host that fell silent would look alive until that day comes. */
#define STORE_AHEAD_MAX_US INT64_C(600000000)
/*
 * @bytes is one checked block. 0 stored; STORE_DUPLICATE: the same block is there already, nothing
 * changed; -EEXIST: a block of this name (host, boot, source, sequence) with other content is
 * there.
 */
int store_put_block(struct store *store, const struct block_header *header, const uint8_t *bytes,
        size_t size, int64_t now_us);

struct store_agent_update {
        struct id host;
        int64_t now_us;
        int64_t clock_offset_us; /* agent minus collector; INT64_MIN unknown */
        uint64_t plan_revision;
        uint64_t backlog_rows;
};
int store_put_agent(struct store *store, const struct store_agent_update *update);

/* @json: text of lib/facts.h, opaque here. */
int store_put_facts(struct store *store, const struct id *host, const char *json, int64_t now_us);

/* @host NULL is "*". @json NULL removes; -ENOENT when there is none. *ret_revision: the new,
 * store-wide growing revision. */
int store_put_plan(
        struct store *store, const struct id *host, const char *json, uint64_t *ret_revision);

/* Removes at most @limit blocks, and gaps, that end before @before_us, in a transaction of its own.
 * *ret_removed > 0: call again. */
int store_retain(struct store *store, int64_t before_us, uint32_t limit, uint32_t *ret_removed);

/*
 * ---- upkeep ----
 *
 * A keeper moves what has settled from the hot log into sealed files, merged; makes the coarser
 * tiers of it, anew where something came late; and finds files that are too old. It belongs to one
 * thread. What it did is a step, which the loop thread then follows: only that removes blocks from
 * the hot log, so that at any moment everything is there at least once.
 */
#define STORE_SETTLE_US                                                                            \
        INT64_C(30000000) /* blocks that are younger may have company on the way                   \
                           */
struct store_ages {
        int64_t raw_us, minute_us, hour_us; /* how long the tiers are kept; 0: for ever */
        int64_t settle_us;
};
struct store_keeper;
int store_keeper_open(const char *folder, const struct store_ages *ages, struct store_keeper **ret);
struct store_keeper *store_keeper_close(struct store_keeper *keeper);
DEFINE_CLEANUP(store_keeper, struct store_keeper *, store_keeper_close)

struct store_step;
/* Does what is to do at @now_us, for about 50 ms at most. 1: *ret has to be followed before the
 * next call; 0: nothing is to do for now. Errors as above; what was begun is begun anew later. */
int store_keeper_step(struct store_keeper *keeper, int64_t now_us, struct store_step **ret);
struct store_step *store_step_free(struct store_step *step);
DEFINE_CLEANUP(store_step, struct store_step *, store_step_free)
/* Loop thread, in a transaction of its own that takes @slice_us and a commit, however much there is
 * to do; 0: one change. 1: call it again. */
#define STORE_SLICE_US 2000u
int store_follow(struct store *store, struct store_step *step, uint64_t slice_us);
/* Blocks that the step moves. */
size_t store_step_blocks(const struct store_step *step);

/*
 * The hot log's WAL is folded back into its file when it has STORE_FOLD_PAGES: by a thread of its
 * own with store_fold_run, and then, when it is done, by the loop thread with store_fold_finish,
 * which finds little left to do. Without that the loop's own commits fold at STORE_WAL_PAGES_MAX.
 */
#define STORE_FOLD_PAGES 16384 /* 64 MiB */
#define STORE_WAL_PAGES_MAX (4 * STORE_FOLD_PAGES)
struct store_fold;
int store_fold_open(const char *folder, struct store_fold **ret);
struct store_fold *store_fold_close(struct store_fold *fold);
DEFINE_CLEANUP(store_fold, struct store_fold *, store_fold_close)
int store_fold_run(struct store_fold *fold);
/* Between transactions. */
int store_fold_finish(struct store *store);
int store_wal_pages(const struct store *store);

/*
 * Totals: blocks of increases per step, summed over a cluster's entities of a source (total.h makes
 * and reads them), kept like the tiers: as they were made, by minute, by hour. They are made per
 * slot, and a slot that a block touched is marked, in the same transaction in which that block is
 * known to the keeper, until it is made anew.
 */
#define STORE_TOTAL_SLOT_US INT64_C(60000000)
#define STORE_TOTAL_TIERS 3u
struct store_total {
        struct id cluster;
        enum source_id source;
        unsigned by;
        int64_t first_us, last_us; /* of the rows */
        const uint8_t *bytes;      /* valid during the call */
        size_t size;
};
struct store_total_slot {
        unsigned tier;
        enum source_id source;
        int64_t from_us, to_us;
        int64_t version;
};
/* Marked slots, the newest first; *ret_n of at most @max. */
int store_keeper_total_slots(struct store_keeper *keeper, unsigned tier, size_t max,
        struct store_total_slot *ret, size_t *ret_n);
/* Puts @list[n] into those of @slots[n_slots], of one tier and source, in which they begin, and
 * removes what of the same cluster, source and by was there; ordered by slot, then by these. *ret:
 * a step to follow, that takes the marks away unless they were set anew since. */
int store_keeper_put_totals(struct store_keeper *keeper, const struct store_total_slot *slots,
        size_t n_slots, const struct store_total *list, size_t n, struct store_step **ret);

/* ---- reading ---- */

struct store_block {
        struct id host;
        enum source_id source;
        int64_t first_us, last_us;
        const uint8_t *bytes; /* valid during the call */
        size_t size;
};
/* < 0 ends the iteration and is returned. */
typedef int (*store_block_function)(void *userdata, const struct store_block *block);
/*
 * All blocks of @source (of @host unless NULL) that touch [from_us, to_us], plus for each (host,
 * source) the nearest block before @from_us, so that the window's edge can be interpolated. Ordered
 * by host, then first_us. Rows may be as far apart as @resolution_us where that is kept (0: as they
 * came), and are further apart where nothing finer is kept any more. A row may come twice, in two
 * blocks. What cannot be read is left out and counted as rotten.
 */
int store_read_blocks(struct store_reader *reader, enum source_id source, const struct id *host,
        int64_t from_us, int64_t to_us, uint64_t resolution_us, store_block_function function,
        void *userdata);

typedef int (*store_total_function)(void *userdata, const struct store_total *total);
/* The totals of @which (cluster, source, by) in the slots of a tier that touch [from_us, to_us)
 * and are not marked, ascending. */
int store_read_totals(struct store_reader *reader, const struct store_total *which, unsigned tier,
        int64_t from_us, int64_t to_us, store_total_function function, void *userdata);

struct store_facts {
        struct id host;
        int64_t updated_us;
        const char *json;
};
typedef int (*store_facts_function)(void *userdata, const struct store_facts *facts);
int store_read_facts(struct store_reader *reader, store_facts_function function, void *userdata);
/* Of one host: *ret_json (freed by the caller) or -ENOENT. */
int store_read_host_facts(struct store_reader *reader, const struct id *host, char **ret_json);
/* Grows with every store_put_facts that changed something: a reader's key for its caches. */
int store_read_facts_version(struct store_reader *reader, uint64_t *ret);

/* Another one after every commit in the hot log that the reader sees. Of one reader only. */
int store_read_version(struct store_reader *reader, uint64_t *ret);

struct store_agent {
        struct id host;
        int64_t first_seen_us, last_seen_us;
        int64_t clock_offset_us;
        uint64_t plan_revision, backlog_rows, blocks, rows, dropped_rows;
};
typedef int (*store_agent_function)(void *userdata, const struct store_agent *agent);
int store_read_agents(struct store_reader *reader, store_agent_function function, void *userdata);

struct store_stream {
        struct id host;
        enum source_id source;
        int64_t first_us, last_us; /* of what is kept of it, in whatever tier */
        uint64_t interval_us;      /* of the newest block */
        uint64_t blocks, rows;
};
typedef int (*store_stream_function)(void *userdata, const struct store_stream *stream);
int store_read_streams(struct store_reader *reader, store_stream_function function, void *userdata);

/* Gaps that agents reported (rows dropped), touching [from_us, to_us]. */
struct store_gap {
        struct id host;
        enum source_id source;
        int64_t first_us, last_us;
        uint64_t rows;
};
typedef int (*store_gap_function)(void *userdata, const struct store_gap *gap);
int store_read_gaps(struct store_reader *reader, int64_t from_us, int64_t to_us,
        store_gap_function function, void *userdata);

/* @host NULL is "*". *ret_json (freed by the caller) or -ENOENT. */
int store_read_plan(struct store_reader *reader, const struct id *host, char **ret_json,
        uint64_t *ret_revision);
typedef int (*store_plan_function)(
        void *userdata, const struct id *host_or_null, const char *json, uint64_t revision);
int store_read_plans(struct store_reader *reader, store_plan_function function, void *userdata);

/* Bytes of all files of the store. */
int store_read_size(struct store_reader *reader, uint64_t *ret_bytes);

/* ---- findings: collectord/store-finding.c ---- */

/* Named by cluster, rule, kind, entity and begin. Texts are never NULL. */
struct store_finding {
        int64_t id; /* grows with the begin; reading only */
        struct id cluster;
        const char *rule, *layer, *kind, *entity;
        const char *sentence, *advice;
        const char *curves;                /* a JSON array of paths */
        int64_t begin_us, last_us, end_us; /* end 0: it goes on */
        bool bottleneck;                   /* it was the verdict at some time */
        double share;
};
/* Adds it, or overwrites the one of this name. */
int store_put_finding(struct store *store, const struct store_finding *finding);
/* The newest verdict of a cluster takes the place of the one before. */
int store_put_verdict(
        struct store *store, const struct id *cluster, int64_t time_us, const char *json);
/* Removes at most @limit findings that ended before @before_us, or beyond the newest @keep. */
int store_retain_findings(struct store *store, int64_t before_us, uint32_t keep, uint32_t limit);

struct store_finding_filter {
        const struct id *cluster; /* NULL: all */
        int64_t from_us, to_us;   /* findings that were there at some time between them */
        bool open;                /* only those that go on */
        int64_t before_id;        /* the page after this id; 0: the first */
        uint32_t limit;
};
/* The newest first; texts are valid during the call. */
typedef int (*store_finding_function)(void *userdata, const struct store_finding *finding);
int store_read_findings(struct store_reader *reader, const struct store_finding_filter *filter,
        store_finding_function function, void *userdata);
typedef int (*store_verdict_function)(
        void *userdata, const struct id *cluster, int64_t time_us, const char *json);
int store_read_verdicts(
        struct store_reader *reader, store_verdict_function function, void *userdata);
