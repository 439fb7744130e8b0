#include "collectord/store-sealed.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "collectord/store-private.h"

#define SEALED_APPLICATION_ID 0x53747362 /* "Stsb" */
#define SEALED_VERSION 1
#define SECOND INT64_C(1000000)
#define DAY (86400 * SECOND)
#define PART_BITS 12
#define STREAM_BITS 26
#define BUSY_TIMEOUT_MS 1000

_Static_assert(SEALED_PARTS_MAX == 1u << PART_BITS, "parts fill their bits");
_Static_assert(SEALED_STREAMS_MAX == 1u << STREAM_BITS, "streams fill their bits");

const struct sealed_layout sealed_layouts[SEALED_KINDS] = {
        [SEALED_RAW] = {"raw", 0, 300 * SECOND, DAY},
        [SEALED_MINUTE] = {"minute", 60 * SECOND, 6 * 3600 * SECOND, 5 * DAY},
        [SEALED_HOUR] = {"hour", 3600 * SECOND, 15 * DAY, 90 * DAY},
        [SEALED_TOTAL] = {"total", 0, STORE_TOTAL_SLOT_US, DAY},
        [SEALED_TOTAL_MINUTE] = {"total-minute", 60 * SECOND, 6 * 3600 * SECOND, 5 * DAY},
        [SEALED_TOTAL_HOUR] = {"total-hour", 3600 * SECOND, 15 * DAY, 90 * DAY},
};

/* clang-format off */
static const char schema[] =
        "PRAGMA page_size=65536;"
        "BEGIN IMMEDIATE;"
        "CREATE TABLE IF NOT EXISTS part(id INTEGER PRIMARY KEY, first_us INTEGER NOT NULL,"
        "  last_us INTEGER NOT NULL, blocks INTEGER NOT NULL, rows INTEGER NOT NULL, data BLOB NOT NULL);"
        "CREATE TABLE IF NOT EXISTS kept(stream INTEGER PRIMARY KEY, blocks INTEGER NOT NULL, rows INTEGER NOT NULL);"
        "PRAGMA application_id=1400140642; PRAGMA user_version=1;"
        "COMMIT;"
        /* Last: until here all is in the one file, and a failure is told. */
        "PRAGMA journal_mode=WAL";
_Static_assert(SEALED_APPLICATION_ID == 1400140642 && SEALED_VERSION == 1, "as the schema says");

static const char *const sealed_sql[SEALED_STATEMENTS] = {
        [SEALED_FIND] = "SELECT id, first_us, last_us FROM part WHERE id BETWEEN ?1 AND ?2",
        [SEALED_DATA] = "SELECT data FROM part WHERE id = ?1",
        [SEALED_LAST] = "SELECT max(id) FROM part WHERE id BETWEEN ?1 AND ?2",
        [SEALED_ADD] = "INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        [SEALED_REMOVE] = "DELETE FROM part WHERE id BETWEEN ?1 AND ?2",
        [SEALED_COUNT] = "INSERT INTO kept VALUES (?1, ?2, ?3) ON CONFLICT(stream) DO UPDATE SET "
                         "blocks = blocks + ?2, rows = rows + ?3",
        [SEALED_KEPT] = "SELECT stream, blocks, rows FROM kept ORDER BY stream",
        [SEALED_HAS] = "SELECT 1 FROM kept WHERE stream = ?1",
};
/* clang-format on */

int64_t sealed_chunk_us(uint64_t interval_us)
{
        static const int64_t chunks[] = {
                300, 600, 900, 1200, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400};
        int64_t best = chunks[0];

        for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++)
                if (chunks[i] * SECOND <= 512 * (int64_t)interval_us)
                        best = chunks[i];
        return best * SECOND;
}

static int64_t part_id(int64_t slot, int64_t stream, int64_t number)
{
        return slot << (STREAM_BITS + PART_BITS) | stream << PART_BITS | number;
}

static int64_t period_of(enum sealed_tier tier, int64_t slot)
{
        return slot / (sealed_layouts[tier].period_us / sealed_layouts[tier].slot_us);
}

int64_t sealed_key_stream(int64_t id)
{
        return id >> PART_BITS & (SEALED_STREAMS_MAX - 1);
}

int64_t sealed_key_period(enum sealed_tier tier, int64_t id)
{
        return period_of(tier, id >> (STREAM_BITS + PART_BITS));
}

int sealed_init(struct sealed *sealed, const char *folder, bool write)
{
        *sealed = (struct sealed){.write = write, .folder = strdup(folder)};
        return sealed->folder ? 0 : -ENOMEM;
}

static struct sealed_file *close_file(struct sealed_file *file)
{
        if (!file)
                return NULL;
        for (size_t i = 0; i < SEALED_STATEMENTS; i++)
                sqlite3_finalize(file->statements[i]);
        sqlite3_close(file->db);
        free(file);
        return NULL;
}
DEFINE_CLEANUP(file_object, struct sealed_file *, close_file)

void sealed_done(struct sealed *sealed)
{
        for (size_t i = 0; i < sealed->n; i++)
                close_file(sealed->files[i]);
        free(sealed->folder);
        *sealed = (struct sealed){0};
}

static void close_at(struct sealed *sealed, size_t index)
{
        close_file(sealed->files[index]);
        sealed->files[index] = sealed->files[--sealed->n];
}

void sealed_close_file(struct sealed *sealed, enum sealed_tier tier, int64_t period)
{
        for (size_t i = 0; i < sealed->n; i++)
                if (sealed->files[i]->tier == tier && sealed->files[i]->period == period) {
                        close_at(sealed, i);
                        return;
                }
}

char *sealed_path(const char *folder, enum sealed_tier tier, int64_t period)
{
        time_t begin = (time_t)(period * (sealed_layouts[tier].period_us / SECOND));
        struct tm tm;
        char *path;

        gmtime_r(&begin, &tm);
        if (asprintf(&path, "%s/%s-%04d%02d%02d.db", folder, sealed_layouts[tier].name,
                    tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday) < 0)
                return NULL;
        return path;
}

void sealed_refresh(struct sealed *sealed)
{
        for (size_t i = sealed->n; i-- > 0;) {
                CLEANUP(str)
                char *path = sealed_path(
                        sealed->folder, sealed->files[i]->tier, sealed->files[i]->period);

                if (path && access(path, F_OK) < 0 && errno == ENOENT)
                        close_at(sealed, i);
        }
}

int sealed_check_version(sqlite3 *db, bool write)
{
        int application, version, r;

        r = store_read_pragma(db, "PRAGMA application_id", &application);
        if (r == 0)
                r = store_read_pragma(db, "PRAGMA user_version", &version);
        if (r < 0)
                return r;
        if (application == 0 && version == 0 && write)
                return store_execute(db, schema);
        if (application != SEALED_APPLICATION_ID)
                return -EBADMSG;
        return version == SEALED_VERSION ? 0 : -EPROTONOSUPPORT;
}

static void unlink_fresh(const char *fresh)
{
        static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};

        for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
                CLEANUP(str) char *path = NULL;

                if (asprintf(&path, "%s%s", fresh, suffixes[i]) >= 0)
                        (void)unlink(path);
                else
                        path = NULL;
        }
}

static int make_fresh(const char *fresh)
{
        CLEANUP(fd) int fd = open(fresh, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
        sqlite3 *db = NULL;
        int code, r;

        if (fd < 0)
                return -errno;
        code = sqlite3_open_v2(fresh, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
        r = code == SQLITE_OK ? store_execute(db, schema) : db ? store_errno(db, code) : -ENOMEM;
        sqlite3_close(db);
        return r < 0 ? r : fsync(fd) < 0 ? -errno : 0;
}

/* Under another name first: a file of ours is whole from its beginning, whatever happens on the
 * way, and one that holds nothing is damaged. */
static int make_file(const char *folder, const char *path)
{
        CLEANUP(str) char *fresh = NULL;
        CLEANUP(fd) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r;

        if (fd < 0)
                return -errno;
        if (asprintf(&fresh, "%s.new", path) < 0) {
                fresh = NULL;
                return -ENOMEM;
        }
        unlink_fresh(fresh);
        r = make_fresh(fresh);
        if (r == 0 && rename(fresh, path) < 0)
                r = -errno;
        if (r < 0)
                unlink_fresh(fresh);
        else if (fsync(fd) < 0)
                r = -errno;
        return r;
}

static int open_file(const struct sealed *sealed, const char *path, struct sealed_file *file)
{
        int code, r;

        if (access(path, F_OK) < 0) {
                if (errno != ENOENT || !sealed->write)
                        return -errno;
                r = make_file(sealed->folder, path);
                if (r < 0)
                        return r;
        }
        code = sqlite3_open_v2(path, &file->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
        if (code != SQLITE_OK)
                return file->db ? store_errno(file->db, code) : -ENOMEM;
        sqlite3_extended_result_codes(file->db, 1);
        sqlite3_busy_timeout(file->db, BUSY_TIMEOUT_MS);
        r = sealed_check_version(file->db, sealed->write);
        if (r == 0)
                r = store_execute(file->db,
                        sealed->write ? "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                                        "PRAGMA wal_autocheckpoint=32;"
                                        "PRAGMA journal_size_limit=0; PRAGMA cache_size=-8192"
                                      : "PRAGMA query_only=1; PRAGMA cache_size=-2048");
        if (r < 0)
                return r;
        return store_prepare(file->db, sealed_sql, SEALED_STATEMENTS, file->statements);
}

int sealed_get(
        struct sealed *sealed, enum sealed_tier tier, int64_t period, struct sealed_file **ret)
{
        CLEANUP(file_object) struct sealed_file *file = NULL;
        CLEANUP(str) char *path = NULL;
        size_t oldest = 0;
        int r;

        for (size_t i = 0; i < sealed->n; i++) {
                if (sealed->files[i]->tier == tier && sealed->files[i]->period == period) {
                        sealed->files[i]->used = ++sealed->uses;
                        *ret = sealed->files[i];
                        return 0;
                }
                if (sealed->files[i]->used < sealed->files[oldest]->used)
                        oldest = i;
        }
        path = sealed_path(sealed->folder, tier, period);
        file = calloc(1, sizeof(*file));
        if (!path || !file)
                return -ENOMEM;
        file->tier = tier;
        file->period = period;
        r = open_file(sealed, path, file);
        if (r < 0)
                return r;
        if (sealed->n == SEALED_FILES_MAX)
                close_at(sealed, oldest);
        file->used = ++sealed->uses;
        *ret = sealed->files[sealed->n++] = STEAL(file);
        return 0;
}

void sealed_parts_done(struct sealed_parts *parts)
{
        free(parts->list);
        *parts = (struct sealed_parts){0};
}

static int add_part(struct sealed_parts *parts, const struct sealed_part *part)
{
        if (parts->n == parts->allocated) {
                size_t n = parts->allocated ? parts->allocated * 2 : 64;
                struct sealed_part *list = reallocarray(parts->list, n, sizeof(*list));

                if (!list)
                        return -ENOMEM;
                parts->list = list;
                parts->allocated = n;
        }
        parts->list[parts->n++] = *part;
        return 0;
}

static int find_in_slot(
        struct sealed_file *file, int64_t stream, int64_t slot, struct sealed_parts *parts)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = file->statements[SEALED_FIND];
        int code, r;

        sqlite3_bind_int64(statement, 1, part_id(slot, stream, 0));
        sqlite3_bind_int64(statement, 2, part_id(slot, stream, SEALED_PARTS_MAX - 1));
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                struct sealed_part part = {.tier = file->tier,
                        .id = sqlite3_column_int64(statement, 0),
                        .first_us = sqlite3_column_int64(statement, 1),
                        .last_us = sqlite3_column_int64(statement, 2)};

                r = add_part(parts, &part);
                if (r < 0)
                        return r;
        }
        return store_errno(file->db, code);
}

/* 1: it has parts of the stream. The statement stays open until sealed_release and holds the file's
 * state, else each of the many look-ups that follow would lock the file for itself. */
static int has_stream(struct sealed_file *file, int64_t stream)
{
        sqlite3_stmt *statement = file->statements[SEALED_HAS];
        int code;

        sqlite3_reset(statement);
        sqlite3_bind_int64(statement, 1, stream);
        code = sqlite3_step(statement);
        return code == SQLITE_ROW ? 1 : store_errno(file->db, code);
}

static bool is_broken(int r)
{
        return r == -EBADMSG || r == -EIO || r == -EACCES || r == -EPROTONOSUPPORT;
}

int sealed_find(struct sealed *sealed, enum sealed_tier tier, int64_t stream, int64_t first,
        int64_t last, struct sealed_parts *parts, uint64_t *ret_broken)
{
        int64_t slots = sealed_layouts[tier].period_us / sealed_layouts[tier].slot_us;

        for (int64_t slot = first; slot <= last;) {
                int64_t period = slot / slots, end = (period + 1) * slots;
                struct sealed_file *file = NULL;
                int r;

                r = sealed_get(sealed, tier, period, &file);
                if (r == 0)
                        r = has_stream(file, stream);
                for (; r > 0 && slot <= last && slot < end; slot++) {
                        int found = find_in_slot(file, stream, slot, parts);

                        if (found < 0)
                                r = found;
                }
                slot = end;
                if (is_broken(r))
                        *ret_broken += 1;
                else if (r < 0 && r != -ENOENT)
                        return r;
        }
        return 0;
}

int sealed_load(struct sealed *sealed, const struct sealed_part *part, const uint8_t **ret_bytes,
        size_t *ret_size)
{
        int64_t slot = part->id >> (STREAM_BITS + PART_BITS);
        struct sealed_file *file = NULL;
        sqlite3_stmt *statement;
        int code, r;

        r = sealed_get(sealed, part->tier, period_of(part->tier, slot), &file);
        if (r < 0)
                return r;
        statement = file->statements[SEALED_DATA];
        sqlite3_reset(statement);
        sqlite3_bind_int64(statement, 1, part->id);
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return code == SQLITE_DONE ? -ENOENT : store_errno(file->db, code);
        *ret_bytes = sqlite3_column_blob(statement, 0);
        *ret_size = (size_t)sqlite3_column_bytes(statement, 0);
        return 0;
}

void sealed_release(struct sealed *sealed)
{
        for (size_t i = 0; i < sealed->n; i++) {
                sqlite3_reset(sealed->files[i]->statements[SEALED_DATA]);
                sqlite3_reset(sealed->files[i]->statements[SEALED_HAS]);
        }
}

int sealed_begin(struct sealed_file *file)
{
        return store_execute(file->db, "BEGIN IMMEDIATE");
}

int sealed_commit(struct sealed_file *file)
{
        return store_execute(file->db, "COMMIT");
}

void sealed_rollback(struct sealed_file *file)
{
        if (!sqlite3_get_autocommit(file->db))
                (void)store_execute(file->db, "ROLLBACK");
}

static int next_id(struct sealed_file *file, int64_t slot, int64_t stream, int64_t *ret)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = file->statements[SEALED_LAST];
        int64_t last = part_id(slot, stream, SEALED_PARTS_MAX - 1);
        int code;

        sqlite3_bind_int64(statement, 1, part_id(slot, stream, 0));
        sqlite3_bind_int64(statement, 2, last);
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return code == SQLITE_DONE ? -EBADMSG : store_errno(file->db, code);
        *ret = sqlite3_column_type(statement, 0) == SQLITE_NULL
                       ? part_id(slot, stream, 0)
                       : sqlite3_column_int64(statement, 0) + 1;
        return *ret > last ? -EFBIG : 0;
}

static int step_once(struct sealed_file *file, sqlite3_stmt *statement)
{
        return store_errno(file->db, sqlite3_step(statement));
}

int sealed_add(struct sealed_file *file, int64_t slot, int64_t stream, const struct sealed_row *row)
{
        CLEANUP(store_reset) sqlite3_stmt *add = file->statements[SEALED_ADD];
        CLEANUP(store_reset) sqlite3_stmt *count = file->statements[SEALED_COUNT];
        int64_t id = 0;
        int r;

        assert(stream > 0 && stream < SEALED_STREAMS_MAX);
        r = next_id(file, slot, stream, &id);
        if (r < 0)
                return r;
        sqlite3_bind_int64(add, 1, id);
        sqlite3_bind_int64(add, 2, row->first_us);
        sqlite3_bind_int64(add, 3, row->last_us);
        sqlite3_bind_int64(add, 4, row->blocks);
        sqlite3_bind_int64(add, 5, row->rows);
        sqlite3_bind_blob64(add, 6, row->bytes, row->size, SQLITE_STATIC);
        r = step_once(file, add);
        if (r < 0)
                return r;
        sqlite3_bind_int64(count, 1, stream);
        sqlite3_bind_int64(count, 2, row->blocks);
        sqlite3_bind_int64(count, 3, row->rows);
        return step_once(file, count);
}

int sealed_remove(struct sealed_file *file, int64_t slot, int64_t stream)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = file->statements[SEALED_REMOVE];

        sqlite3_bind_int64(statement, 1, part_id(slot, stream, 0));
        sqlite3_bind_int64(statement, 2, part_id(slot, stream, SEALED_PARTS_MAX - 1));
        return step_once(file, statement);
}

int sealed_read_kept(struct sealed_file *file, sealed_kept_function function, void *userdata)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = file->statements[SEALED_KEPT];
        int code, r;

        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                struct sealed_kept kept = {sqlite3_column_int64(statement, 0),
                        sqlite3_column_int64(statement, 1), sqlite3_column_int64(statement, 2)};

                r = function(userdata, &kept);
                if (r < 0)
                        return r;
        }
        return store_errno(file->db, code);
}
