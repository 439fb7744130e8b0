/* Putting blocks, agents, facts and plans into the open transaction. */
#include "collectord/store-private.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

struct run_key {
        int64_t run, stream, span_us;
        int64_t sealed_us; /* rows up to here may be sealed; INT64_MIN: none is */
};

static void bind_run(sqlite3_stmt *statement, const struct block_header *header)
{
        store_bind_id(statement, 1, &header->host);
        sqlite3_bind_int(statement, 2, header->source);
        if (sqlite3_bind_parameter_count(statement) >= 3)
                store_bind_id(statement, 3, &header->boot);
}

/* 1 found, 0 not there. */
static int find_run(struct store *store, const struct block_header *header, struct run_key *ret)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = store->statements[WRITE_FIND_RUN];
        int code;

        bind_run(statement, header);
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return store_errno(store->db, code);
        ret->run = sqlite3_column_int64(statement, 0);
        ret->stream = sqlite3_column_int64(statement, 1);
        ret->sealed_us = store_column_sealed(statement, 2);
        ret->span_us = sqlite3_column_int64(statement, 3);
        return 1;
}

static int get_run(struct store *store, const struct block_header *header, struct run_key *ret)
{
        int r;

        r = find_run(store, header, ret);
        if (r != 0)
                return r < 0 ? r : 0;
        for (enum write_statement which = WRITE_ADD_STREAM; which <= WRITE_ADD_RUN; which++) {
                CLEANUP(store_reset) sqlite3_stmt *statement = store->statements[which];

                bind_run(statement, header);
                r = store_run(store, statement);
                if (r < 0)
                        return r;
        }
        r = find_run(store, header, ret);
        return r == 0 ? -EBADMSG : r < 0 ? r : 0;
}

/* A row of this name is there: is it the same? */
static int compare_block(struct store *store, enum write_statement which, int64_t run_id,
        uint64_t sequence, const uint8_t *bytes, size_t size)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = store->statements[which];
        int code;

        sqlite3_bind_int64(statement, 1, run_id);
        sqlite3_bind_int64(statement, 2, (int64_t)sequence);
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return code == SQLITE_DONE ? -EBADMSG : store_errno(store->db, code);
        if ((size_t)sqlite3_column_bytes(statement, 0) == size &&
                memcmp(sqlite3_column_blob(statement, 0), bytes, size) == 0)
                return STORE_DUPLICATE;
        return -EEXIST;
}

static int add_block(struct store *store, enum write_statement which, const struct run_key *key,
        const struct block_header *header, const uint8_t *bytes, size_t size)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = store->statements[which];

        sqlite3_bind_int64(statement, 1, key->run);
        sqlite3_bind_int64(statement, 2, (int64_t)header->sequence);
        sqlite3_bind_int64(statement, 3, key->stream);
        sqlite3_bind_int64(statement, 4, header->first_us);
        sqlite3_bind_int64(statement, 5, header->last_us);
        sqlite3_bind_int64(statement, 6, header->rows);
        sqlite3_bind_blob64(statement, 7, bytes, size, SQLITE_STATIC);
        return store_run(store, statement);
}

static int count_block(struct store *store, const struct run_key *key,
        const struct block_header *header, bool gap, int64_t now_us)
{
        CLEANUP(store_reset)
        sqlite3_stmt *statement = store->statements[gap ? WRITE_COUNT_GAP : WRITE_COUNT_BLOCK];

        sqlite3_bind_int64(statement, 1, key->stream);
        if (gap) {
                sqlite3_bind_int64(statement, 2, header->rows);
        } else {
                sqlite3_bind_int64(statement, 2, header->first_us);
                sqlite3_bind_int64(statement, 3, header->last_us);
                sqlite3_bind_int64(statement, 4, header->rows);
                sqlite3_bind_int64(statement, 5, (int64_t)header->interval_us);
                sqlite3_bind_int64(statement, 6, now_us + STORE_AHEAD_MAX_US);
        }
        return store_run(store, statement);
}

int store_put_block(struct store *store, const struct block_header *header, const uint8_t *bytes,
        size_t size, int64_t now_us)
{
        bool gap = header->flags & BLOCK_FLAG_GAP;
        struct run_key key = {0};
        int r;

        assert(store->in_transaction);
        r = get_run(store, header, &key);
        if (r < 0)
                return r;
        if (!gap && header->first_us <= key.sealed_us) {
                r = late_find(
                        store->late, &store->sealed, key.stream, key.span_us, header, bytes, size);
                if (r != 0)
                        return r;
        }
        r = add_block(store, gap ? WRITE_ADD_GAP : WRITE_ADD_BLOCK, &key, header, bytes, size);
        if (r < 0)
                return r;
        if (sqlite3_changes(store->db) == 0)
                return compare_block(store, gap ? WRITE_FIND_GAP : WRITE_FIND_BLOCK, key.run,
                        header->sequence, bytes, size);
        return count_block(store, &key, header, gap, now_us);
}

int store_put_agent(struct store *store, const struct store_agent_update *update)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = store->statements[WRITE_PUT_AGENT];

        assert(store->in_transaction);
        store_bind_id(statement, 1, &update->host);
        sqlite3_bind_int64(statement, 2, update->now_us);
        if (update->clock_offset_us != INT64_MIN)
                sqlite3_bind_int64(statement, 3, update->clock_offset_us);
        sqlite3_bind_int64(statement, 4, (int64_t)update->plan_revision);
        sqlite3_bind_int64(statement, 5, (int64_t)update->backlog_rows);
        return store_run(store, statement);
}

int store_put_facts(struct store *store, const struct id *host, const char *json, int64_t now_us)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = store->statements[WRITE_PUT_FACTS];
        int r;

        assert(store->in_transaction);
        store_bind_id(statement, 1, host);
        sqlite3_bind_int64(statement, 2, now_us);
        sqlite3_bind_text(statement, 3, json, -1, SQLITE_STATIC);
        r = store_run(store, statement);
        if (r < 0 || sqlite3_changes(store->db) == 0)
                return r;
        return store_run_plain(store, WRITE_COUNT_FACTS);
}

static int next_revision(struct store *store, uint64_t *ret)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = store->statements[WRITE_NEXT_REVISION];
        int code = sqlite3_step(statement);

        if (code != SQLITE_ROW)
                return code == SQLITE_DONE ? -EBADMSG : store_errno(store->db, code);
        *ret = (uint64_t)sqlite3_column_int64(statement, 0);
        return store_errno(store->db, sqlite3_step(statement));
}

int store_put_plan(
        struct store *store, const struct id *host, const char *json, uint64_t *ret_revision)
{
        CLEANUP(store_reset)
        sqlite3_stmt *statement = store->statements[json ? WRITE_PUT_PLAN : WRITE_REMOVE_PLAN];
        static const struct id everybody; /* all zero: "*" */
        uint64_t revision = 0;
        int r;

        assert(store->in_transaction);
        r = next_revision(store, &revision);
        if (r < 0)
                return r;
        store_bind_id(statement, 1, host ? host : &everybody);
        if (json) {
                sqlite3_bind_int64(statement, 2, (int64_t)revision);
                sqlite3_bind_text(statement, 3, json, -1, SQLITE_STATIC);
        }
        r = store_run(store, statement);
        if (r < 0)
                return r;
        if (sqlite3_changes(store->db) == 0)
                return -ENOENT;
        *ret_revision = revision;
        return 0;
}
