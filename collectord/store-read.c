/* Reading: each connection belongs to one thread and gives up at its deadline. */
#include "collectord/store-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/clock.h"

#define PROGRESS_STEPS                                                                             \
        2000 /* SQLite's instructions between two looks at the clock: about 0.1 ms                 \
              */

static const char *const read_sql[N_STATEMENTS] = {
        [BEGIN] = "BEGIN",
        [END] = "ROLLBACK",
        [FIND_STREAMS] = "SELECT id, host, span_us, interval_us, sealed_us, first_us FROM stream "
                         "WHERE source = ?1 AND (blocks > 0 OR sealed_us IS NOT NULL) "
                         "ORDER BY host",
        [FIND_STREAM] = "SELECT id, host, span_us, interval_us, sealed_us, first_us FROM stream "
                        "WHERE source = ?1 AND host = ?2 AND (blocks > 0 OR sealed_us IS NOT NULL)",
        [FIND_BEFORE] = "SELECT id, first_us FROM block WHERE stream = ?1 AND first_us < ?2 AND "
                        "last_us < ?2 ORDER BY first_us DESC LIMIT 1",
        [FIND_BLOCKS] = "SELECT first_us, last_us, data FROM block WHERE stream = ?1 AND "
                        "first_us BETWEEN ?2 AND ?4 AND (last_us >= ?3 OR id = ?5) "
                        "ORDER BY first_us",
        [FIND_DIRTY] = "SELECT 1 FROM dirty WHERE tier = ?1 AND slot BETWEEN ?2 AND ?3 AND "
                       "stream = ?4 LIMIT 1",
        [FIND_HOT] = "SELECT 1 FROM block WHERE stream = ?1 AND first_us >= ?2 AND first_us < ?3 "
                     "LIMIT 1",
        [FIND_FRESH] = STORE_FRESH_SQL,
        [FIND_MARKS] = "SELECT slot FROM dirty WHERE tier = ?1 AND slot BETWEEN ?2 AND ?3 AND "
                       "stream = ?4",
        [ALL_FACTS] = "SELECT host, updated_us, json FROM facts ORDER BY host",
        [HOST_FACTS] = "SELECT json FROM facts WHERE host = ?1",
        [FACTS_VERSION] = "SELECT value FROM meta WHERE key = 'facts_version'",
        [DATA_VERSION] = "PRAGMA data_version",
        [ALL_AGENTS] = "SELECT agent.host, first_seen_us, last_seen_us, clock_offset_us, "
                       "plan_revision, backlog_rows, ifnull(sum(total_blocks), 0), "
                       "ifnull(sum(total_rows), 0), ifnull(sum(dropped_rows), 0) FROM agent "
                       "LEFT JOIN stream ON stream.host = agent.host GROUP BY agent.host "
                       "ORDER BY agent.host",
        [ALL_STREAMS] = "SELECT host, source, first_us, last_us, interval_us, blocks, rows "
                        "FROM stream WHERE last_us IS NOT NULL ORDER BY host, source",
        [FIND_GAPS] =
                "SELECT host, source, gap.first_us, gap.last_us, gap.rows FROM gap JOIN stream "
                "ON stream.id = gap.stream WHERE gap.last_us >= ?1 AND gap.first_us <= ?2 "
                "ORDER BY host, gap.first_us",
        [FIND_PLAN] = "SELECT json, revision FROM plan WHERE host = ?1",
        [ALL_PLANS] = "SELECT host, json, revision FROM plan ORDER BY host",
};

static bool is_late(const struct store_reader *reader)
{
        return reader->deadline_us != 0 && clock_monotonic_us() > reader->deadline_us;
}

static int progress(void *userdata)
{
        return is_late(userdata);
}

int store_reader_open(const char *folder, struct store_reader **ret)
{
        CLEANUP(store_reader) struct store_reader *reader = calloc(1, sizeof(*reader));
        int r;

        if (!reader)
                return -ENOMEM;
        reader->folder = strdup(folder);
        if (!reader->folder)
                return -ENOMEM;
        r = sealed_init(&reader->sealed, folder, false);
        if (r < 0)
                return r;
        r = store_open_database(folder, false, &reader->db);
        if (r < 0)
                return r;
        r = store_prepare(reader->db, read_sql, N_STATEMENTS, reader->statements);
        if (r < 0)
                return r;
        sqlite3_progress_handler(reader->db, PROGRESS_STEPS, progress, reader);
        *ret = STEAL(reader);
        return 0;
}

struct store_reader *store_reader_close(struct store_reader *reader)
{
        if (!reader)
                return NULL;
        if (reader->cache)
                reader->drop_cache(reader->cache);
        for (size_t i = 0; i < N_STATEMENTS; i++)
                sqlite3_finalize(reader->statements[i]);
        sqlite3_close(reader->db);
        sealed_done(&reader->sealed);
        sealed_parts_done(&reader->parts);
        free(reader->folder);
        free(reader);
        return NULL;
}

void store_reader_set_deadline(struct store_reader *reader, uint64_t deadline_us)
{
        reader->deadline_us = deadline_us;
}

void *store_reader_get_cache(struct store_reader *reader)
{
        return reader->cache;
}

void store_reader_set_cache(struct store_reader *reader, void *cache, void (*drop)(void *cache))
{
        reader->cache = cache;
        reader->drop_cache = drop;
}

void store_reader_count_rotten(struct store_reader *reader)
{
        reader->rotten++;
}

uint64_t store_reader_take_rotten(struct store_reader *reader)
{
        uint64_t rotten = reader->rotten;

        reader->rotten = 0;
        return rotten;
}

int store_reader_begin(struct store_reader *reader)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[BEGIN];

        sealed_refresh(&reader->sealed);
        return store_errno(reader->db, sqlite3_step(statement));
}

void store_reader_end(struct store_reader *reader)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[END];

        reader->deadline_us = 0;
        if (!sqlite3_get_autocommit(reader->db))
                sqlite3_step(statement);
}

int store_column_id(sqlite3_stmt *statement, int column, struct id *ret)
{
        if (sqlite3_column_bytes(statement, column) != sizeof(ret->bytes))
                return -EBADMSG;
        memcpy(ret->bytes, sqlite3_column_blob(statement, column), sizeof(ret->bytes));
        return 0;
}

int64_t store_column_sealed(sqlite3_stmt *statement, int column)
{
        return sqlite3_column_type(statement, column) == SQLITE_NULL
                       ? INT64_MIN
                       : sqlite3_column_int64(statement, column);
}

int store_next_row(struct store_reader *reader, sqlite3_stmt *statement)
{
        int code;

        if (is_late(reader))
                return -ETIME;
        code = sqlite3_step(statement);
        return code == SQLITE_ROW ? 1 : store_errno(reader->db, code);
}

int store_read_facts(struct store_reader *reader, store_facts_function function, void *userdata)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[ALL_FACTS];
        int r;

        while ((r = store_next_row(reader, statement)) > 0) {
                struct store_facts facts;

                r = store_column_id(statement, 0, &facts.host);
                if (r < 0)
                        return r;
                facts.updated_us = sqlite3_column_int64(statement, 1);
                facts.json = (const char *)sqlite3_column_text(statement, 2);
                if (!facts.json)
                        return -ENOMEM;
                r = function(userdata, &facts);
                if (r < 0)
                        return r;
        }
        return r;
}

int store_read_host_facts(struct store_reader *reader, const struct id *host, char **ret_json)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[HOST_FACTS];
        const char *text;
        int r;

        store_bind_id(statement, 1, host);
        r = store_next_row(reader, statement);
        if (r <= 0)
                return r == 0 ? -ENOENT : r;
        text = (const char *)sqlite3_column_text(statement, 0);
        *ret_json = text ? strdup(text) : NULL;
        return *ret_json ? 0 : -ENOMEM;
}

int store_read_facts_version(struct store_reader *reader, uint64_t *ret)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[FACTS_VERSION];
        int r;

        r = store_next_row(reader, statement);
        if (r <= 0)
                return r == 0 ? -EBADMSG : r;
        *ret = (uint64_t)sqlite3_column_int64(statement, 0);
        return 0;
}

int store_read_version(struct store_reader *reader, uint64_t *ret)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[DATA_VERSION];
        int r;

        r = store_next_row(reader, statement);
        if (r <= 0)
                return r == 0 ? -EBADMSG : r;
        *ret = (uint64_t)sqlite3_column_int64(statement, 0);
        return 0;
}

int store_read_agents(struct store_reader *reader, store_agent_function function, void *userdata)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[ALL_AGENTS];
        int r;

        while ((r = store_next_row(reader, statement)) > 0) {
                struct store_agent agent = {
                        .first_seen_us = sqlite3_column_int64(statement, 1),
                        .last_seen_us = sqlite3_column_int64(statement, 2),
                        .clock_offset_us = INT64_MIN,
                        .plan_revision = (uint64_t)sqlite3_column_int64(statement, 4),
                        .backlog_rows = (uint64_t)sqlite3_column_int64(statement, 5),
                        .blocks = (uint64_t)sqlite3_column_int64(statement, 6),
                        .rows = (uint64_t)sqlite3_column_int64(statement, 7),
                        .dropped_rows = (uint64_t)sqlite3_column_int64(statement, 8),
                };

                if (sqlite3_column_type(statement, 3) != SQLITE_NULL)
                        agent.clock_offset_us = sqlite3_column_int64(statement, 3);
                r = store_column_id(statement, 0, &agent.host);
                if (r < 0)
                        return r;
                r = function(userdata, &agent);
                if (r < 0)
                        return r;
        }
        return r;
}

int store_read_streams(struct store_reader *reader, store_stream_function function, void *userdata)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[ALL_STREAMS];
        int r;

        while ((r = store_next_row(reader, statement)) > 0) {
                struct store_stream stream = {
                        .source = (enum source_id)sqlite3_column_int(statement, 1),
                        .first_us = sqlite3_column_int64(statement, 2),
                        .last_us = sqlite3_column_int64(statement, 3),
                        .interval_us = (uint64_t)sqlite3_column_int64(statement, 4),
                        .blocks = (uint64_t)sqlite3_column_int64(statement, 5),
                        .rows = (uint64_t)sqlite3_column_int64(statement, 6),
                };

                r = store_column_id(statement, 0, &stream.host);
                if (r < 0)
                        return r;
                r = function(userdata, &stream);
                if (r < 0)
                        return r;
        }
        return r;
}

int store_read_gaps(struct store_reader *reader, int64_t from_us, int64_t to_us,
        store_gap_function function, void *userdata)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[FIND_GAPS];
        int r;

        sqlite3_bind_int64(statement, 1, from_us);
        sqlite3_bind_int64(statement, 2, to_us);
        while ((r = store_next_row(reader, statement)) > 0) {
                struct store_gap gap = {
                        .source = (enum source_id)sqlite3_column_int(statement, 1),
                        .first_us = sqlite3_column_int64(statement, 2),
                        .last_us = sqlite3_column_int64(statement, 3),
                        .rows = (uint64_t)sqlite3_column_int64(statement, 4),
                };

                r = store_column_id(statement, 0, &gap.host);
                if (r < 0)
                        return r;
                r = function(userdata, &gap);
                if (r < 0)
                        return r;
        }
        return r;
}

int store_read_plan(
        struct store_reader *reader, const struct id *host, char **ret_json, uint64_t *ret_revision)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[FIND_PLAN];
        static const struct id everybody;
        const char *text;
        char *json;
        int r;

        store_bind_id(statement, 1, host ? host : &everybody);
        r = store_next_row(reader, statement);
        if (r <= 0)
                return r == 0 ? -ENOENT : r;
        text = (const char *)sqlite3_column_text(statement, 0);
        json = text ? strdup(text) : NULL;
        if (!json)
                return -ENOMEM;
        *ret_json = json;
        *ret_revision = (uint64_t)sqlite3_column_int64(statement, 1);
        return 0;
}

int store_read_plans(struct store_reader *reader, store_plan_function function, void *userdata)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[ALL_PLANS];
        int r;

        while ((r = store_next_row(reader, statement)) > 0) {
                const char *json = (const char *)sqlite3_column_text(statement, 1);
                struct id host;

                r = store_column_id(statement, 0, &host);
                if (r < 0)
                        return r;
                if (!json)
                        return -ENOMEM;
                r = function(userdata, id_is_zero(&host) ? NULL : &host, json,
                        (uint64_t)sqlite3_column_int64(statement, 2));
                if (r < 0)
                        return r;
        }
        return r;
}

int store_read_size(struct store_reader *reader, uint64_t *ret_bytes)
{
        *ret_bytes = store_files_size(reader->folder, false);
        return 0;
}
