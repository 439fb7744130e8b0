/* Writing: the one connection of the loop thread, with every statement prepared once. */
#include "collectord/store-private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

static const char *const write_sql[N_WRITE_STATEMENTS] = {
        [WRITE_BEGIN] = "BEGIN IMMEDIATE",
        [WRITE_COMMIT] = "COMMIT",
        [WRITE_ROLLBACK] = "ROLLBACK",
        [WRITE_SAVEPOINT] = "SAVEPOINT request",
        [WRITE_SAVEPOINT_RELEASE] = "RELEASE request",
        [WRITE_SAVEPOINT_ROLLBACK] = "ROLLBACK TO request",
        [WRITE_FIND_RUN] = "SELECT run.id, stream.id, sealed_us, span_us FROM stream JOIN run ON "
                           "run.stream = stream.id "
                           "WHERE host = ?1 AND source = ?2 AND boot = ?3",
        [WRITE_ADD_STREAM] = "INSERT INTO stream(host, source) VALUES (?1, ?2) "
                             "ON CONFLICT(host, source) DO NOTHING",
        [WRITE_ADD_RUN] = "INSERT INTO run(stream, boot) SELECT id, ?3 FROM stream "
                          "WHERE host = ?1 AND source = ?2",
        /* Ids ascend for ever: SQLite would give those of moved blocks again, and the keeper
         * knows by them what is new. */
        [WRITE_ADD_BLOCK] =
                "INSERT INTO block(run, sequence, stream, first_us, last_us, rows, data, id) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1 + max(ifnull((SELECT max(id) FROM block), "
                "0), (SELECT value FROM meta WHERE key = 'totals_id'))) "
                "ON CONFLICT(run, sequence) DO NOTHING",
        [WRITE_ADD_GAP] =
                "INSERT INTO gap(run, sequence, stream, first_us, last_us, rows, data) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(run, sequence) DO NOTHING",
        [WRITE_FIND_BLOCK] = "SELECT data FROM block WHERE run = ?1 AND sequence = ?2",
        [WRITE_FIND_GAP] = "SELECT data FROM gap WHERE run = ?1 AND sequence = ?2",
        [WRITE_COUNT_BLOCK] =
                "UPDATE stream SET interval_us = iif(last_us IS NULL OR ?3 >= last_us, ?5, "
                "interval_us), first_us = iif(blocks = 0 OR ?2 < first_us, ?2, first_us), "
                "last_us = max(ifnull(last_us, 0), min(?3, ?6)), span_us = max(span_us, ?3 - ?2), "
                "blocks = blocks + 1, rows = rows + ?4, total_blocks = total_blocks + 1, "
                "total_rows = total_rows + ?4 WHERE id = ?1",
        [WRITE_COUNT_GAP] = "UPDATE stream SET dropped_rows = dropped_rows + ?2 WHERE id = ?1",
        [WRITE_PUT_AGENT] = "INSERT INTO agent VALUES (?1, ?2, ?2, ?3, ?4, ?5) ON CONFLICT(host) "
                            "DO UPDATE SET last_seen_us = ?2, clock_offset_us = "
                            "ifnull(?3, clock_offset_us), plan_revision = ?4, backlog_rows = ?5",
        [WRITE_PUT_FACTS] = "INSERT INTO facts VALUES (?1, ?2, ?3) ON CONFLICT(host) DO UPDATE SET "
                            "updated_us = ?2, json = ?3 WHERE json <> ?3",
        [WRITE_COUNT_FACTS] = "UPDATE meta SET value = value + 1 WHERE key = 'facts_version'",
        [WRITE_NEXT_REVISION] = "UPDATE meta SET value = value + 1 WHERE key = 'plan_revision' "
                                "RETURNING value",
        [WRITE_PUT_PLAN] = "INSERT INTO plan VALUES (?1, ?2, ?3) ON CONFLICT(host) DO UPDATE SET "
                           "revision = ?2, json = ?3",
        [WRITE_REMOVE_PLAN] = "DELETE FROM plan WHERE host = ?1",
        [WRITE_RETAIN_BLOCKS] = "DELETE FROM block WHERE id IN (SELECT id FROM block INDEXED BY "
                                "block_age WHERE last_us < ?1 LIMIT ?2) RETURNING stream, rows",
        [WRITE_RETAIN_GAPS] = "DELETE FROM gap WHERE id IN (SELECT id FROM gap WHERE last_us < ?1 "
                              "LIMIT ?2)",
        [WRITE_DISCOUNT_STREAM] =
                "UPDATE stream SET blocks = blocks - ?2, rows = rows - ?3, first_us = iif("
                "sealed_us IS NULL, ifnull((SELECT min(first_us) FROM block WHERE stream = ?1), "
                "last_us), first_us) WHERE id = ?1",
        [WRITE_REMOVE_BLOCK] = "DELETE FROM block WHERE id = ?1",
        [WRITE_MOVE_STREAM] = "UPDATE stream SET sealed_us = max(ifnull(sealed_us, ?2), ?2), "
                              "span_us = max(span_us, ?3) WHERE id = ?1",
        [WRITE_NEXT_DIRTY] = "UPDATE meta SET value = value + 1 WHERE key = 'dirty_version'",
        [WRITE_ADD_DIRTY] = "INSERT INTO dirty SELECT ?1, ?2, ?3, value FROM meta WHERE key = "
                            "'dirty_version' ON CONFLICT DO UPDATE SET version = excluded.version",
        [WRITE_CLEAR_DIRTY] = "DELETE FROM dirty WHERE tier = ?1 AND slot = ?2 AND stream = ?3 AND "
                              "version = ?4",
        [WRITE_EXPIRE] = "INSERT INTO expired VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET "
                         "counted = ?3",
        [WRITE_EXPIRE_STREAM] = "UPDATE stream SET blocks = max(blocks - ?2, 0), "
                                "rows = max(rows - ?3, 0) WHERE id = ?1",
        [WRITE_SCANNED] = "UPDATE meta SET value = max(value, ?1) WHERE key = 'totals_id'",
        [WRITE_FORGET_STREAMS] = "UPDATE stream SET first_us = min(?1, last_us) WHERE id IN "
                                 "(SELECT id FROM stream WHERE first_us < min(?1, last_us) LIMIT "
                                 "?2)",
};

static char *make_message(const char *path, const char *reason)
{
        char *text;

        return asprintf(&text, "%s: %s", path, reason) < 0 ? NULL : text;
}

/* On the folder itself: no file of its own, and the kernel lets go of it with the process, however
 * that ends. */
static int take_lock(const char *folder, int *ret_fd, char **ret_message)
{
        CLEANUP(fd) int fd = -1;
        int r = 0;

        if (mkdir(folder, 0750) < 0 && errno != EEXIST)
                r = -errno;
        if (r == 0)
                fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (r == 0 && fd < 0)
                r = -errno;
        if (r < 0) {
                *ret_message = make_message(folder, strerror(-r));
                return r;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                *ret_message = make_message(folder, "another strata-collectord uses this store");
                return -EBUSY;
        }
        *ret_fd = STEAL_LEAVING(fd, -1);
        return 0;
}

static const char *reason_of(int r)
{
        switch (r) {
        case -EBADMSG:
                return "is damaged, or not a store of strata";
        case -ENOSPC:
                return "no space left on the device";
        case -EROFS:
                return "cannot be written: read-only";
        case -EACCES:
                return "cannot be opened: permission denied";
        case -EBUSY:
                return "is locked by another process";
        default:
                return strerror(-r);
        }
}

static int open_store(const char *folder, const char *path, struct store *store, char **ret_message)
{
        int r;

        r = take_lock(folder, &store->lock_fd, ret_message);
        if (r < 0)
                return r;
        r = store_open_database(folder, true, &store->db);
        if (r < 0)
                return r;
        sqlite3_wal_hook(store->db, store_on_commit, store);
        r = store_migrate(store->db, path, ret_message);
        if (r < 0)
                return r;
        r = store_prepare(store->db, write_sql, N_WRITE_STATEMENTS, store->statements);
        if (r < 0)
                return r;
        r = sealed_init(&store->sealed, folder, false);
        if (r < 0)
                return r;
        r = late_new(&store->late);
        if (r < 0)
                return r;
        store->folder = strdup(folder);
        if (!store->folder)
                return -ENOMEM;
        /* A medium that cannot be written shows here, not at the first upload. */
        return store_execute(store->db, "BEGIN IMMEDIATE; UPDATE meta SET value = value "
                                        "WHERE key = 'facts_version'; COMMIT");
}

int store_open(const char *folder, struct store **ret, char **ret_message)
{
        CLEANUP(store) struct store *store = calloc(1, sizeof(*store));
        CLEANUP(str) char *path = NULL;
        int r;

        *ret_message = NULL;
        if (!store)
                return -ENOMEM;
        store->lock_fd = -1;
        if (asprintf(&path, "%s/" STORE_FILE, folder) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = open_store(folder, path, store, ret_message);
        if (r < 0) {
                if (!*ret_message)
                        *ret_message = make_message(path, reason_of(r));
                return r;
        }
        *ret = STEAL(store);
        return 0;
}

struct store *store_close(struct store *store)
{
        if (!store)
                return NULL;
        for (size_t i = 0; i < N_WRITE_STATEMENTS; i++)
                sqlite3_finalize(store->statements[i]);
        sqlite3_close(store->db);
        sealed_done(&store->sealed);
        late_free(store->late);
        free(store->folder);
        if (store->lock_fd >= 0)
                close(store->lock_fd);
        free(store);
        return NULL;
}

int store_set_limit(struct store *store, uint64_t bytes)
{
        uint64_t sealed = bytes ? store_files_size(store->folder, true) : 0;
        uint64_t pages = bytes ? (bytes > sealed ? bytes - sealed : 0) / 4096
                               : 4294967294u; /* SQLite's own largest */
        char sql[64];

        store->limit = bytes;

        if (pages > 4294967294u)
                pages = 4294967294u;
        snprintf(sql, sizeof(sql), "PRAGMA max_page_count=%" PRIu64, pages ? pages : 1);
        return store_execute(store->db, sql);
}

/* Runs a statement that gives no row; 0 or -errno. */
int store_run(struct store *store, sqlite3_stmt *statement)
{
        return store_errno(store->db, sqlite3_step(statement));
}

int store_run_plain(struct store *store, enum write_statement which)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = store->statements[which];

        return store_run(store, statement);
}

int store_begin(struct store *store)
{
        int r;

        if (store->in_transaction)
                return 0;
        r = store_run_plain(store, WRITE_BEGIN);
        if (r == 0)
                store->in_transaction = true;
        return r;
}

int store_commit(struct store *store)
{
        int r;

        if (!store->in_transaction)
                return 0;
        r = store_run_plain(store, WRITE_COMMIT);
        if (r == 0)
                store->in_transaction = false;
        return r;
}

int store_rollback(struct store *store)
{
        if (!store->in_transaction)
                return 0;
        store->in_transaction = false;
        /* After some errors SQLite has rolled back by itself. */
        return sqlite3_get_autocommit(store->db) ? 0 : store_run_plain(store, WRITE_ROLLBACK);
}

int store_savepoint(struct store *store)
{
        return store_run_plain(store, WRITE_SAVEPOINT);
}

int store_savepoint_release(struct store *store)
{
        return store_run_plain(store, WRITE_SAVEPOINT_RELEASE);
}

int store_savepoint_rollback(struct store *store)
{
        int r = store_run_plain(store, WRITE_SAVEPOINT_ROLLBACK);

        return r < 0 ? r : store_run_plain(store, WRITE_SAVEPOINT_RELEASE);
}
