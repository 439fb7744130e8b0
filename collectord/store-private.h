#pragma once
/* What the store's files share. Only collectord/store*.c include this. */

#include <sqlite3.h>

#include "collectord/store-late.h"
#include "collectord/store-sealed.h"
#include "collectord/store.h"

#define STORE_FILE "strata.db"

enum write_statement {
        WRITE_BEGIN,
        WRITE_COMMIT,
        WRITE_ROLLBACK,
        WRITE_SAVEPOINT,
        WRITE_SAVEPOINT_RELEASE,
        WRITE_SAVEPOINT_ROLLBACK,
        WRITE_FIND_RUN,
        WRITE_ADD_STREAM,
        WRITE_ADD_RUN,
        WRITE_ADD_BLOCK,
        WRITE_ADD_GAP,
        WRITE_FIND_BLOCK,
        WRITE_FIND_GAP,
        WRITE_COUNT_BLOCK,
        WRITE_COUNT_GAP,
        WRITE_PUT_AGENT,
        WRITE_PUT_FACTS,
        WRITE_COUNT_FACTS,
        WRITE_NEXT_REVISION,
        WRITE_PUT_PLAN,
        WRITE_REMOVE_PLAN,
        WRITE_RETAIN_BLOCKS,
        WRITE_RETAIN_GAPS,
        WRITE_DISCOUNT_STREAM,
        WRITE_REMOVE_BLOCK,
        WRITE_MOVE_STREAM,
        WRITE_NEXT_DIRTY,
        WRITE_ADD_DIRTY,
        WRITE_CLEAR_DIRTY,
        WRITE_EXPIRE,
        WRITE_EXPIRE_STREAM,
        WRITE_FORGET_STREAMS,
        WRITE_SCANNED,
        N_WRITE_STATEMENTS,
};

struct store {
        sqlite3 *db;
        char *folder;
        int lock_fd;
        bool in_transaction;
        int wal_pages; /* of the hot log's WAL, since it was begun anew */
        uint64_t limit;
        struct sealed sealed; /* to find what comes again after it was moved */
        struct late *late;
        sqlite3_stmt *statements[N_WRITE_STATEMENTS];
};

/* -errno for a result code of @db. */
int store_errno(sqlite3 *db, int code);
/* Opens @folder's database and sets what every connection needs. @write makes it when missing. */
int store_open_database(const char *folder, bool write, sqlite3 **ret);
int store_read_pragma(sqlite3 *db, const char *sql, int *ret);
/* Bytes of all files of the store; @sealed: without the hot log. */
uint64_t store_files_size(const char *folder, bool sealed);
/* *ret_version: 0 is an empty database. -EBADMSG: another program's; -EPROTONOSUPPORT: a newer one.
 */
int store_check_version(sqlite3 *db, const char *path, int *ret_version, char **ret_message);
/* Brings the schema up to this program's version. */
int store_migrate(sqlite3 *db, const char *path, char **ret_message);
/* Prepares @sql[i] into @statements[i]; a failure leaves the rest NULL. */
int store_prepare(sqlite3 *db, const char *const *sql, size_t n, sqlite3_stmt **statements);
/* Counts the WAL's pages; @userdata is the store. See sqlite3_wal_hook. */
int store_on_commit(void *userdata, sqlite3 *db, const char *name, int pages);
/* Runs @sql, which has no parameters and whose rows do not matter. */
int store_execute(sqlite3 *db, const char *sql);

/* A statement that runs once: binds, steps, resets. */
static inline int store_bind_id(sqlite3_stmt *statement, int index, const struct id *id)
{
        return sqlite3_bind_blob(statement, index, id->bytes, sizeof(id->bytes), SQLITE_STATIC);
}

/* The statement goes back to its start and lets go of what it was bound to. */
static inline void store_reset_cleanup(sqlite3_stmt **statement)
{
        if (*statement) {
                sqlite3_reset(*statement);
                sqlite3_clear_bindings(*statement);
        }
}

enum read_statement {
        BEGIN,
        END,
        FIND_STREAMS,
        FIND_STREAM,
        FIND_BEFORE,
        FIND_BLOCKS,
        FIND_DIRTY,
        FIND_HOT,
        FIND_FRESH,
        FIND_MARKS,
        ALL_FACTS,
        HOST_FACTS,
        FACTS_VERSION,
        DATA_VERSION,
        ALL_AGENTS,
        ALL_STREAMS,
        FIND_GAPS,
        FIND_PLAN,
        ALL_PLANS,
        N_STATEMENTS,
};

struct store_reader {
        sqlite3 *db;
        char *folder;
        uint64_t deadline_us;
        uint64_t rotten;
        struct sealed sealed;
        struct sealed_parts parts;
        void *cache;
        void (*drop_cache)(void *cache);
        sqlite3_stmt *statements[N_STATEMENTS];
};

/* 1: a row; 0: the end. -ETIME past the reader's deadline. */
int store_next_row(struct store_reader *reader, sqlite3_stmt *statement);
/* Ids in the store were written by us, but the file may be damaged: -EBADMSG. */
int store_column_id(sqlite3_stmt *statement, int column, struct id *ret);
/* A stream's sealed_us; INT64_MIN where nothing is sealed yet. */
int64_t store_column_sealed(sqlite3_stmt *statement, int column);

/* Blocks whose totals are not marked yet. Up to three intervals away a row changes a step. */
#define STORE_FRESH_SQL                                                                            \
        "SELECT block.id, source, block.first_us - 3 * interval_us - 1000000, block.last_us + "    \
        "3 * interval_us + 1000000 FROM block JOIN stream ON stream.id = block.stream WHERE "      \
        "block.id > (SELECT value FROM meta WHERE key = 'totals_id') ORDER BY block.id LIMIT ?1"
#define STORE_FRESH_MAX 20000

/* What a keeper did, and the loop thread has to follow: store-keeper.c makes it, store-move.c takes
 * it. */
struct store_step {
        int64_t *blocks; /* of the hot log: they are sealed now */
        size_t n_blocks, blocks_allocated;
        struct store_moved {
                int64_t stream, last_us, span_us;
        } * moved;
        size_t n_moved, moved_allocated;
        struct store_dirty {
                enum sealed_tier tier;
                int64_t slot, stream, version;
        } * dirty, *clean; /* to be made, was made */
        size_t n_dirty, dirty_allocated, n_clean, clean_allocated;
        bool expire; /* the file below is too old */
        enum sealed_tier tier;
        int64_t period;
        struct sealed_kept *kept;
        size_t n_kept, kept_allocated;
        int64_t scanned_id; /* blocks up to it have marked the totals that they touch */
        size_t done;        /* changes that the loop has made */
};

/* Steps a statement that gives no row. */
int store_run(struct store *store, sqlite3_stmt *statement);
/* A whole statement without parameters. */
int store_run_plain(struct store *store, enum write_statement which);
