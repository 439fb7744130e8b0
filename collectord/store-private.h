#pragma once
/* What the store's files share. Only collectord/store*.c include this. */

#include <sqlite3.h>

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
        N_WRITE_STATEMENTS,
};

struct store {
        sqlite3 *db;
        int lock_fd;
        bool in_transaction;
        sqlite3_stmt *statements[N_WRITE_STATEMENTS];
};

/* -errno for a result code of @db. */
int store_errno(sqlite3 *db, int code);
/* Opens @folder's database and sets what every connection needs. @write makes it when missing. */
int store_open_database(const char *folder, bool write, sqlite3 **ret);
/* Brings the schema up to this program's version. */
int store_migrate(sqlite3 *db, const char *path, char **ret_message);
/* Prepares @sql[i] into @statements[i]; a failure leaves the rest NULL. */
int store_prepare(sqlite3 *db, const char *const *sql, size_t n, sqlite3_stmt **statements);
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

/* Steps a statement that gives no row. */
int store_run(struct store *store, sqlite3_stmt *statement);
/* A whole statement without parameters. */
int store_run_plain(struct store *store, enum write_statement which);
