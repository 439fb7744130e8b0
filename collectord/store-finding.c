/* Findings and the newest verdict of each cluster, in tables of their own. They change every few
 * seconds at most, so that nothing is kept prepared. */
#include "collectord/store-private.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#define KEY "cluster = ?1 AND rule = ?2 AND kind = ?3 AND entity = ?4 AND begin_us = ?5"

struct statement {
        sqlite3_stmt *statement;
};

static void statement_done(struct statement *statement)
{
        sqlite3_finalize(statement->statement);
}
DEFINE_CLEANUP(statement, struct statement *, statement_done)

static int prepare(sqlite3 *db, const char *sql, struct statement *ret)
{
        return store_errno(db, sqlite3_prepare_v2(db, sql, -1, &ret->statement, NULL));
}

static void bind_text(struct statement *statement, int index, const char *text)
{
        sqlite3_bind_text(statement->statement, index, text, -1, SQLITE_STATIC);
}

static int step(struct store *store, struct statement *statement)
{
        int code = sqlite3_step(statement->statement);

        return code == SQLITE_DONE ? 0 : store_errno(store->db, code);
}

int store_put_finding(struct store *store, const struct store_finding *finding)
{
        struct statement storage = {0};
        CLEANUP(statement) struct statement *statement = &storage;
        int r;

        assert(store->in_transaction);
        r = prepare(store->db,
                "INSERT INTO finding(cluster, rule, kind, entity, begin_us, last_us, end_us, layer,"
                " bottleneck, share, sentence, advice, curves)"
                " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
                " ON CONFLICT(cluster, rule, kind, entity, begin_us) DO UPDATE SET"
                " last_us = ?6, end_us = ?7, bottleneck = ?9, share = ?10, sentence = ?11,"
                " advice = ?12, curves = CASE WHEN ?13 = '[]' THEN curves ELSE ?13 END",
                statement);
        if (r < 0)
                return r;
        store_bind_id(statement->statement, 1, &finding->cluster);
        bind_text(statement, 2, finding->rule);
        bind_text(statement, 3, finding->kind);
        bind_text(statement, 4, finding->entity);
        sqlite3_bind_int64(statement->statement, 5, finding->begin_us);
        sqlite3_bind_int64(statement->statement, 6, finding->last_us);
        if (finding->end_us != 0)
                sqlite3_bind_int64(statement->statement, 7, finding->end_us);
        bind_text(statement, 8, finding->layer);
        sqlite3_bind_int(statement->statement, 9, finding->bottleneck);
        sqlite3_bind_double(statement->statement, 10, finding->share);
        bind_text(statement, 11, finding->sentence);
        bind_text(statement, 12, finding->advice);
        bind_text(statement, 13, finding->curves);
        return step(store, statement);
}

int store_put_verdict(
        struct store *store, const struct id *cluster, int64_t time_us, const char *json)
{
        struct statement storage = {0};
        CLEANUP(statement) struct statement *statement = &storage;
        int r;

        assert(store->in_transaction);
        r = prepare(store->db,
                "INSERT OR REPLACE INTO verdict(cluster, time_us, json) VALUES (?1, ?2, ?3)",
                statement);
        if (r < 0)
                return r;
        store_bind_id(statement->statement, 1, cluster);
        sqlite3_bind_int64(statement->statement, 2, time_us);
        bind_text(statement, 3, json);
        return step(store, statement);
}

int store_retain_findings(struct store *store, int64_t before_us, uint32_t keep, uint32_t limit)
{
        struct statement storage = {0};
        CLEANUP(statement) struct statement *statement = &storage;
        int r;

        assert(store->in_transaction);
        r = prepare(store->db,
                "DELETE FROM finding WHERE id IN (SELECT id FROM finding WHERE end_us IS NOT NULL"
                " AND (end_us < ?1 OR id <= (SELECT max(id) FROM finding) - ?2)"
                " ORDER BY id LIMIT ?3)",
                statement);
        if (r < 0)
                return r;
        sqlite3_bind_int64(statement->statement, 1, before_us);
        sqlite3_bind_int64(statement->statement, 2, keep);
        sqlite3_bind_int64(statement->statement, 3, limit);
        return step(store, statement);
}

/* Texts in the store were written by us, but the file may be damaged. */
static const char *column_text(struct statement *statement, int column)
{
        const char *text = (const char *)sqlite3_column_text(statement->statement, column);

        return text ? text : "";
}

static int column_id(struct statement *statement, int column, struct id *ret)
{
        if (sqlite3_column_bytes(statement->statement, column) != sizeof(ret->bytes))
                return -EBADMSG;
        memcpy(ret->bytes, sqlite3_column_blob(statement->statement, column), sizeof(ret->bytes));
        return 0;
}

static int read_finding(struct statement *statement, struct store_finding *ret)
{
        *ret = (struct store_finding){
                .id = sqlite3_column_int64(statement->statement, 0),
                .rule = column_text(statement, 2),
                .kind = column_text(statement, 3),
                .entity = column_text(statement, 4),
                .begin_us = sqlite3_column_int64(statement->statement, 5),
                .last_us = sqlite3_column_int64(statement->statement, 6),
                .end_us = sqlite3_column_int64(statement->statement, 7),
                .layer = column_text(statement, 8),
                .bottleneck = sqlite3_column_int(statement->statement, 9),
                .share = sqlite3_column_double(statement->statement, 10),
                .sentence = column_text(statement, 11),
                .advice = column_text(statement, 12),
                .curves = column_text(statement, 13),
        };
        return column_id(statement, 1, &ret->cluster);
}

int store_read_findings(struct store_reader *reader, const struct store_finding_filter *filter,
        store_finding_function function, void *userdata)
{
        sqlite3 *db = reader->db;
        struct statement storage = {0};
        CLEANUP(statement) struct statement *statement = &storage;
        int code, r;

        r = prepare(db,
                "SELECT id, cluster, rule, kind, entity, begin_us, last_us, end_us, layer,"
                " bottleneck, share, sentence, advice, curves FROM finding"
                " WHERE (?1 IS NULL OR cluster = ?1) AND begin_us <= ?3"
                " AND (end_us IS NULL OR (end_us >= ?2 AND NOT ?4)) AND id < ?5"
                " ORDER BY id DESC LIMIT ?6",
                statement);
        if (r < 0)
                return r;
        if (filter->cluster)
                store_bind_id(statement->statement, 1, filter->cluster);
        sqlite3_bind_int64(statement->statement, 2, filter->from_us);
        sqlite3_bind_int64(statement->statement, 3, filter->to_us);
        sqlite3_bind_int(statement->statement, 4, filter->open);
        sqlite3_bind_int64(
                statement->statement, 5, filter->before_id ? filter->before_id : INT64_MAX);
        sqlite3_bind_int64(statement->statement, 6, filter->limit);
        while ((code = sqlite3_step(statement->statement)) == SQLITE_ROW) {
                struct store_finding finding;

                r = read_finding(statement, &finding);
                if (r == 0)
                        r = function(userdata, &finding);
                if (r < 0)
                        return r;
        }
        return code == SQLITE_DONE ? 0 : store_errno(db, code);
}

int store_read_verdicts(
        struct store_reader *reader, store_verdict_function function, void *userdata)
{
        sqlite3 *db = reader->db;
        struct statement storage = {0};
        CLEANUP(statement) struct statement *statement = &storage;
        int code, r;

        r = prepare(db, "SELECT cluster, time_us, json FROM verdict ORDER BY cluster", statement);
        if (r < 0)
                return r;
        while ((code = sqlite3_step(statement->statement)) == SQLITE_ROW) {
                struct id cluster;

                r = column_id(statement, 0, &cluster);
                if (r == 0)
                        r = function(userdata, &cluster,
                                sqlite3_column_int64(statement->statement, 1),
                                column_text(statement, 2));
                if (r < 0)
                        return r;
        }
        return code == SQLITE_DONE ? 0 : store_errno(db, code);
}
