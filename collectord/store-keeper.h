#pragma once
/* What store-keeper.c (from the hot log into raw files) and store-tier.c (coarser tiers, and what
 * is too old) share. */

#include "collectord/merge.h"
#include "collectord/store-private.h"
#include "collectord/tier.h"

enum keeper_statement {
        KEEPER_STREAMS,
        KEEPER_NEWEST,
        KEEPER_CHUNK_NEWEST,
        KEEPER_CHUNK,
        KEEPER_DIRTY,
        KEEPER_HOT,
        KEEPER_DIRTY_BELOW,
        KEEPER_EXPIRED,
        KEEPER_SCANNED,
        KEEPER_FRESH,
        KEEPER_MARKS,
        N_KEEPER_STATEMENTS,
};

#define KEEPER_FULL_MAX 64u

struct store_keeper {
        sqlite3 *db; /* the hot log, read only */
        sqlite3_stmt *statements[N_KEEPER_STATEMENTS];
        struct sealed sealed;
        struct store_ages ages;
        struct late *late;
        struct merge *merge;
        /* Blocks up to settled_id were there when newest_id was looked up the time before. */
        int64_t looked_us, newest_id, settled_id;
        int64_t scanned_us, scanned_id; /* when, and up to where totals know of blocks */
        /* Where pieces go. */
        struct sealed_file *file;
        int64_t slot, stream, piece_last_us;
        uint32_t pieces;
        /* Chunks that have no room for another part: they stay in the hot log. */
        struct {
                int64_t stream, begin_us;
        } full[KEEPER_FULL_MAX];
        size_t n_full;
};

/* Makes room for one member more than @n. */
int keeper_grow(void *array, size_t *allocated, size_t n, size_t size);
int keeper_add_dirty(struct store_step *step, enum sealed_tier tier, int64_t slot, int64_t stream);
/* Blocks that came since the last time: which totals they touch. As store_keeper_step. */
int keeper_scan(struct store_keeper *keeper, int64_t now_us, struct store_step *step);
/* "raw-20261130.db" and nothing else. */
bool keeper_parse_name(const char *name, enum sealed_tier *ret_tier, int64_t *ret_period);
/* The stream number of the totals of a cluster, source and grouping. */
int64_t keeper_total_stream(const struct store_total *total);
int keeper_expire(struct store_keeper *keeper, int64_t now_us, struct store_step *step);
int keeper_make_tiers(struct store_keeper *keeper, int64_t now_us, struct store_step *step);
