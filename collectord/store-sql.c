/* What the tables share, and the extension's entry. */
#include "collectord/store-sql.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"

SQLITE_EXTENSION_INIT1

#define COST_ALL 1e12
#define COST_SHARE 0.05 /* of what is left when one more column is fixed */

/* The name is SQLite's, made of the file's. */
int sqlite3_stratasqlite_init(
        sqlite3 *db, char **ret_message, const struct sqlite3_api_routines *api);

static const char *default_folder(void)
{
        const char *folder = getenv(STORE_SQL_VARIABLE);

        return folder && *folder ? folder : STORE_SQL_FOLDER;
}

int store_sql_open(struct store_sql *sql, const char *folder)
{
        int r;

        *sql = (struct store_sql){.first_us = INT64_MAX};
        r = store_reader_open(folder ? folder : default_folder(), &sql->reader);
        if (r == 0)
                r = store_reader_begin(sql->reader);
        if (r == 0)
                r = query_open(sql->reader, clock_realtime_us(), 0, &sql->query);
        if (r < 0) {
                store_sql_close(sql);
                return r;
        }
        for (size_t i = 0; i < sql->query->n_streams; i++) {
                const struct store_stream *stream = &sql->query->streams[i];

                if (stream->last_us == 0)
                        continue;
                if (stream->first_us < sql->first_us)
                        sql->first_us = stream->first_us;
                if (stream->last_us > sql->last_us)
                        sql->last_us = stream->last_us;
        }
        return 0;
}

void store_sql_close(struct store_sql *sql)
{
        query_close(sql->query);
        if (sql->reader)
                store_reader_end(sql->reader);
        store_reader_close(sql->reader);
        *sql = (struct store_sql){0};
}

int store_sql_fail(sqlite3_vtab *table, const char *folder, int error)
{
        if (error == -ENOMEM)
                return SQLITE_NOMEM;
        sqlite3_free(table->zErrMsg);
        table->zErrMsg = sqlite3_mprintf(
                "the store in %s: %s", folder ? folder : default_folder(), strerror(-error));
        return SQLITE_ERROR;
}

struct connected {
        sqlite3_vtab base;
        const struct store_sql_table *table;
};

int store_sql_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret,
        char **ret_message)
{
        const struct store_sql_table *table = aux;
        struct connected *connected;
        int r;

        (void)argc, (void)argv, (void)ret_message;
        r = sqlite3_declare_vtab(db, table->schema);
        if (r != SQLITE_OK)
                return r;
        sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
        connected = sqlite3_malloc(sizeof(*connected));
        if (!connected)
                return SQLITE_NOMEM;
        *connected = (struct connected){.table = table};
        *ret = &connected->base;
        return SQLITE_OK;
}

int store_sql_disconnect(sqlite3_vtab *table)
{
        sqlite3_free(table);
        return SQLITE_OK;
}

int store_sql_open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
        *ret = calloc(1, ((const struct connected *)table)->table->cursor_size);
        return *ret ? SQLITE_OK : SQLITE_NOMEM;
}

int store_sql_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
        const struct store_sql_table *table = ((const struct connected *)base)->table;
        const struct store_sql_wish *wishes = table->wishes;
        double cost = COST_ALL;
        int argument = 0;

        info->idxNum = 0;
        for (unsigned i = 0; i < table->n_wishes; i++)
                for (int k = 0; k < info->nConstraint; k++) {
                        if (!info->aConstraint[k].usable ||
                                info->aConstraint[k].iColumn != wishes[i].column ||
                                info->aConstraint[k].op != wishes[i].operator||
                                                           info->idxNum & 1 << i)
                                continue;
                        info->idxNum |= 1 << i;
                        info->aConstraintUsage[k].argvIndex = ++argument;
                        info->aConstraintUsage[k].omit = wishes[i].hidden;
                        cost *= COST_SHARE;
                }
        info->estimatedCost = cost;
        info->estimatedRows = (sqlite3_int64)(cost / 10) + 1;
        return SQLITE_OK;
}

int sqlite3_stratasqlite_init(
        sqlite3 *db, char **ret_message, const struct sqlite3_api_routines *api)
{
        int r;

        SQLITE_EXTENSION_INIT2(api);
        (void)ret_message;
        r = sqlite3_create_module(
                db, "samples", &store_sql_samples.module, (void *)&store_sql_samples);
        if (r == SQLITE_OK)
                r = sqlite3_create_module(
                        db, "ratio", &store_sql_ratio.module, (void *)&store_sql_ratio);
        return r;
}
