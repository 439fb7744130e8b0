#pragma once
/*
 * A store as tables of SQL: a loadable extension for the stock sqlite3 shell, docs/sql.md. Each
 * table is a module that can only be read; the first argument, or the column `folder`, names the
 * store. Every file here takes SQLite from the program that loads it.
 */

#include <sqlite3ext.h>

#include "collectord/query.h"

/* The store that is meant when none is named: the environment, or the place of the package. */
#define STORE_SQL_VARIABLE "STRATA_STORE"
#define STORE_SQL_FOLDER "/var/lib/strata-collectord"

/* A store that is open for one scan. */
struct store_sql {
        struct store_reader *reader;
        struct query *query;
        int64_t first_us, last_us; /* of its samples; 0 when there are none */
};

/* @folder NULL: as above. Begins to read: one state of the store until it is closed. */
int store_sql_open(struct store_sql *sql, const char *folder);
void store_sql_close(struct store_sql *sql);
/* What to return from a module's function for -errno, with a sentence in @table->zErrMsg. */
int store_sql_fail(sqlite3_vtab *table, const char *folder, int error);

/* A constraint on a column that a table pushes down. */
struct store_sql_wish {
        int column;
        unsigned char operator; /* SQLITE_INDEX_CONSTRAINT_EQ, ... */
        bool hidden;            /* an argument: SQLite need not check it again */
};

/* A table: its module's own functions, and what those below need. */
struct store_sql_table {
        sqlite3_module module;
        const char *schema;
        const struct store_sql_wish *wishes;
        unsigned n_wishes;
        size_t cursor_size; /* begins with a sqlite3_vtab_cursor; zeroed */
};
extern const struct store_sql_table store_sql_samples, store_sql_ratio;

/* The functions of a module that are the same for all; @aux is the struct store_sql_table. */
int store_sql_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret,
        char **ret_message);
int store_sql_disconnect(sqlite3_vtab *table);
int store_sql_open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **ret);
/* Gives the usable ones of the wishes to xFilter, in their order; bit i of idxNum says that wish i
 * is among them. */
int store_sql_best_index(sqlite3_vtab *table, sqlite3_index_info *info);
