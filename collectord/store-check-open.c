/* Opening a file only to read it, and the streams that the hot log knows. */
#include "collectord/store-check-private.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#define RELOADS_MAX 16u /* of the streams, when one is not known */
#define BUSY_TIMEOUT_MS 5000

/* Whoever writes holds the folder's lock. */
static bool is_alive(const char *folder)
{
        CLEANUP(fd) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

static bool has_log(const char *path)
{
        CLEANUP(str) char *log = NULL;
        struct stat status;

        if (asprintf(&log, "%s-wal", path) < 0) {
                log = NULL;
                return true;
        }
        return stat(log, &status) == 0 && status.st_size > 0;
}

bool check_is_still(const char *folder, const char *path)
{
        return !is_alive(folder) && !has_log(path);
}

/* SQLite's own way to write a path: everything but the plainest as %XX. NULL without memory. */
static char *make_uri(const char *path, bool immutable)
{
        CLEANUP(mem) char *escaped = malloc(3 * strlen(path) + 1);
        char *to = escaped, *uri;

        if (!escaped)
                return NULL;
        for (const char *from = path; *from; from++)
                if (isalnum((unsigned char)*from) || strchr("/._-", *from))
                        *to++ = *from;
                else
                        to += sprintf(to, "%%%02X", (unsigned char)*from);
        *to = '\0';
        if (asprintf(&uri, "file:%s?%s", escaped, immutable ? "immutable=1" : "mode=ro") < 0)
                return NULL;
        return uri;
}

int check_open_database(const char *path, bool immutable, sqlite3 **ret)
{
        CLEANUP(str) char *uri = make_uri(path, immutable);
        sqlite3 *db = NULL;
        int code, r;

        if (!uri)
                return -ENOMEM;
        code = sqlite3_open_v2(
                uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
        if (code == SQLITE_OK) {
                sqlite3_extended_result_codes(db, 1);
                sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
                code = sqlite3_exec(db,
                        "PRAGMA query_only=1; PRAGMA cache_size=-16384; SELECT 1 FROM "
                        "sqlite_schema",
                        NULL, NULL, NULL);
        }
        if (code != SQLITE_OK) {
                r = db ? store_errno(db, code) : -ENOMEM;
                sqlite3_close(db);
                return r;
        }
        *ret = db;
        return 0;
}

/* ---- the streams ---- */

static int add_stream(struct check *check, sqlite3_stmt *statement)
{
        struct known_stream stream = {.id = sqlite3_column_int64(statement, 0),
                .source = (enum source_id)sqlite3_column_int(statement, 2)};
        int r;

        r = store_column_id(statement, 1, &stream.host);
        if (r == 0)
                r = keeper_grow(&check->streams, &check->streams_allocated, check->n_streams,
                        sizeof(*check->streams));
        if (r == 0)
                check->streams[check->n_streams++] = stream;
        return r;
}

DEFINE_CLEANUP(database, sqlite3 *, sqlite3_close)

static int read_streams(struct check *check, sqlite3 *db)
{
        CLEANUP(check_statement) sqlite3_stmt *statement = NULL;
        int code, r;

        code = sqlite3_prepare_v2(
                db, "SELECT id, host, source FROM stream ORDER BY id", -1, &statement, NULL);
        if (code != SQLITE_OK)
                return store_errno(db, code);
        check->n_streams = 0;
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                r = add_stream(check, statement);
                if (r < 0)
                        return r;
        }
        return store_errno(db, code);
}

/* A connection of its own: beside a living collector streams come while files are read. */
int check_load_streams(struct check *check)
{
        CLEANUP(str) char *path = NULL;
        CLEANUP(database) sqlite3 *db = NULL;
        int r;

        if (asprintf(&path, "%s/" STORE_FILE, check->folder) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = check_open_database(path, check_is_still(check->folder, path), &db);
        if (r == 0)
                r = read_streams(check, db);
        check->streams_known = r == 0;
        return r;
}

static const struct known_stream *search_stream(const struct check *check, int64_t id)
{
        size_t low = 0, high = check->n_streams;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (check->streams[middle].id < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < check->n_streams && check->streams[low].id == id ? &check->streams[low] : NULL;
}

const struct known_stream *check_find_stream(struct check *check, int64_t id)
{
        const struct known_stream *stream = search_stream(check, id);

        if (stream || !check->streams_known || check->reloads == RELOADS_MAX)
                return stream;
        check->reloads++;
        return check_load_streams(check) < 0 ? NULL : search_stream(check, id);
}
