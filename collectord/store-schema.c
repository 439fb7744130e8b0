/*
 * The hot log's file: opening it, its schema and what SQLite's codes mean. 4 KiB pages (small
 * commits write small frames), WAL and synchronous=FULL (a commit survives a power cut). The
 * schema's version is SQLite's user_version; each row of migrations leads to the next.
 */
#include "collectord/store-private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define APPLICATION_ID 0x53747261 /* "Stra" */
#define BUSY_TIMEOUT_MS 1000      /* a reader meets the writer only in recovery and checkpoints */
/*
 * The WAL is folded back by store-fold.c, and not every 1,000 pages as by SQLite itself: a page
 * that was changed often in between is written once. A WAL that readers made grow is cut back to 80
 * MiB.
 */
#define WRITER_PRAGMAS                                                                             \
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"           \
        "PRAGMA journal_size_limit=83886080; PRAGMA cache_size=-65536"
/* What a reader maps counts in the program's resident memory, once for each of the seven that it
 * has. Other pages are copied from the kernel's cache. */
#define READER_PRAGMAS "PRAGMA query_only=1; PRAGMA cache_size=-8192; PRAGMA mmap_size=8388608"

/* clang-format off */
static const char *const migrations[] = {
        /* 1. Times are Unix microseconds; ids are 16 bytes. A run is one boot of one stream: its
         * sequence numbers are unique. total_* count what ever came, blocks and rows what is kept.
         * span_us is the longest block's, so that a range need not look further back. */
        "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
        "INSERT INTO meta VALUES ('plan_revision', 0), ('facts_version', 0);"
        "CREATE TABLE stream(id INTEGER PRIMARY KEY, host BLOB NOT NULL, source INTEGER NOT NULL,"
        "  first_us INTEGER, last_us INTEGER, interval_us INTEGER NOT NULL DEFAULT 0,"
        "  span_us INTEGER NOT NULL DEFAULT 0, blocks INTEGER NOT NULL DEFAULT 0,"
        "  rows INTEGER NOT NULL DEFAULT 0, total_blocks INTEGER NOT NULL DEFAULT 0,"
        "  total_rows INTEGER NOT NULL DEFAULT 0, dropped_rows INTEGER NOT NULL DEFAULT 0,"
        "  UNIQUE(host, source));"
        "CREATE INDEX stream_source ON stream(source, host);"
        "CREATE TABLE run(id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, boot BLOB NOT NULL,"
        "  UNIQUE(stream, boot));"
        "CREATE TABLE block(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, sequence INTEGER NOT NULL,"
        "  stream INTEGER NOT NULL, first_us INTEGER NOT NULL, last_us INTEGER NOT NULL,"
        "  rows INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE(run, sequence));"
        "CREATE INDEX block_time ON block(stream, first_us, last_us);"
        "CREATE INDEX block_age ON block(last_us);"
        "CREATE TABLE gap(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, sequence INTEGER NOT NULL,"
        "  stream INTEGER NOT NULL, first_us INTEGER NOT NULL, last_us INTEGER NOT NULL,"
        "  rows INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE(run, sequence));"
        "CREATE INDEX gap_age ON gap(last_us);"
        "CREATE TABLE agent(host BLOB PRIMARY KEY, first_seen_us INTEGER NOT NULL,"
        "  last_seen_us INTEGER NOT NULL, clock_offset_us INTEGER, plan_revision INTEGER NOT NULL,"
        "  backlog_rows INTEGER NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE facts(host BLOB PRIMARY KEY, updated_us INTEGER NOT NULL, json TEXT NOT NULL);"
        "CREATE TABLE plan(host BLOB PRIMARY KEY, revision INTEGER NOT NULL, json TEXT NOT NULL);",
        /* 2. What was here is the hot log from now on; blocks are moved into sealed files. sealed_us
         * is the newest row that was moved: what is older may be there already. span_us reaches from
         * a slot's begin to its last row. dirty: slots of a tier that have to be made (anew). */
        "ALTER TABLE stream ADD COLUMN sealed_us INTEGER;"
        "INSERT INTO meta VALUES ('dirty_version', 0);"
        "CREATE TABLE dirty(tier INTEGER NOT NULL, slot INTEGER NOT NULL, stream INTEGER NOT NULL,"
        "  version INTEGER NOT NULL, PRIMARY KEY(tier, slot, stream)) WITHOUT ROWID;"
        "CREATE TABLE expired(tier INTEGER NOT NULL, period INTEGER NOT NULL,"
        "  PRIMARY KEY(tier, period)) WITHOUT ROWID;",
        /* 3. Totals: blocks up to totals_id have marked the slots that they touch. */
        "INSERT INTO meta VALUES ('totals_id', 0);",
        /* 4. Findings, and the newest verdict of each cluster. end_us is null while one goes on. */
        "CREATE TABLE finding(id INTEGER PRIMARY KEY AUTOINCREMENT, cluster BLOB NOT NULL,"
        "  rule TEXT NOT NULL, kind TEXT NOT NULL, entity TEXT NOT NULL, begin_us INTEGER NOT NULL,"
        "  last_us INTEGER NOT NULL, end_us INTEGER, layer TEXT NOT NULL,"
        "  bottleneck INTEGER NOT NULL, share REAL NOT NULL, sentence TEXT NOT NULL,"
        "  advice TEXT NOT NULL, curves TEXT NOT NULL,"
        "  UNIQUE(cluster, rule, kind, entity, begin_us));"
        "CREATE INDEX finding_end ON finding(end_us);"
        "CREATE TABLE verdict(cluster BLOB PRIMARY KEY, time_us INTEGER NOT NULL,"
        "  json TEXT NOT NULL) WITHOUT ROWID;",
        /* 5. What expires is taken off the counts of streams up to counted; the largest number: of
         * all of them, and the file may go. */
        "ALTER TABLE expired ADD COLUMN counted INTEGER NOT NULL DEFAULT 9223372036854775807;",
};
/* clang-format on */
#define SCHEMA_VERSION ((int)(sizeof(migrations) / sizeof(migrations[0])))

void store_limit_memory(uint64_t bytes)
{
        sqlite3_soft_heap_limit64((sqlite3_int64)bytes);
}

static int medium_errno(sqlite3 *db)
{
        int error = sqlite3_system_errno(db);

        switch (error) {
        case EFBIG: /* RLIMIT_FSIZE, or a file system that cannot hold larger files */
        case EDQUOT:
        case ENOSPC:
                return -ENOSPC;
        case EROFS:
        case EACCES:
        case ENOENT:
                return -error;
        case EPERM:
                return -EACCES;
        default:
                return -EIO;
        }
}

int store_errno(sqlite3 *db, int code)
{
        switch (code & 0xff) {
        case SQLITE_OK:
        case SQLITE_ROW:
        case SQLITE_DONE:
                return 0;
        case SQLITE_NOMEM:
                return -ENOMEM;
        case SQLITE_FULL:
                return -ENOSPC;
        case SQLITE_READONLY:
                return -EROFS;
        case SQLITE_PERM:
                return -EACCES;
        case SQLITE_CANTOPEN:
        case SQLITE_IOERR:
                return medium_errno(db);
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
                return -EBADMSG;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return -EBUSY;
        case SQLITE_INTERRUPT:
                return -ETIME;
        default:
                return -EIO;
        }
}

int store_execute(sqlite3 *db, const char *sql)
{
        return store_errno(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

int store_prepare(sqlite3 *db, const char *const *sql, size_t n, sqlite3_stmt **statements)
{
        for (size_t i = 0; i < n; i++) {
                int code = sqlite3_prepare_v3(
                        db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &statements[i], NULL);

                if (code != SQLITE_OK)
                        return store_errno(db, code);
        }
        return 0;
}

int store_open_database(const char *folder, bool write, sqlite3 **ret)
{
        CLEANUP(str) char *path = NULL;
        sqlite3 *db = NULL;
        int r;

        if (asprintf(&path, "%s/" STORE_FILE, folder) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        /* Made here, so that its mode does not hang on the umask alone: SQLite's own would be 0644.
         */
        if (write) {
                CLEANUP(fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);

                if (fd < 0)
                        return -errno;
        }
        r = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
        if (r == SQLITE_OK) {
                sqlite3_extended_result_codes(db, 1);
                sqlite3_busy_timeout(db, BUSY_TIMEOUT_MS);
                r = sqlite3_exec(db, write ? WRITER_PRAGMAS : READER_PRAGMAS, NULL, NULL, NULL);
        }
        if (r != SQLITE_OK) {
                r = db ? store_errno(db, r) : -ENOMEM;
                sqlite3_close(db);
                return r;
        }
        *ret = db;
        return 0;
}

int store_read_pragma(sqlite3 *db, const char *sql, int *ret)
{
        sqlite3_stmt *statement = NULL;
        int code, r;

        code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code != SQLITE_ROW) {
                r = store_errno(db, code);
                sqlite3_finalize(statement);
                return r < 0 ? r : -EIO;
        }
        *ret = sqlite3_column_int(statement, 0);
        sqlite3_finalize(statement);
        return 0;
}

static int apply(sqlite3 *db, int version)
{
        char sql[96];
        int r;

        snprintf(sql, sizeof(sql), "PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT",
                APPLICATION_ID, version);
        r = store_execute(db, "BEGIN IMMEDIATE");
        if (r < 0)
                return r;
        r = store_execute(db, migrations[version - 1]);
        if (r == 0)
                r = store_execute(db, sql);
        if (r < 0)
                (void)store_execute(db, "ROLLBACK");
        return r;
}

int store_check_version(sqlite3 *db, const char *path, int *ret_version, char **ret_message)
{
        int version, application, tables, r;

        r = store_read_pragma(db, "PRAGMA user_version", &version);
        if (r < 0)
                return r;
        r = store_read_pragma(db, "PRAGMA application_id", &application);
        if (r < 0)
                return r;
        r = store_read_pragma(db, "SELECT count(*) FROM sqlite_schema", &tables);
        if (r < 0)
                return r;
        if (application != APPLICATION_ID && (tables > 0 || version > 0)) {
                if (asprintf(ret_message, "%s: is a database of another program", path) < 0)
                        *ret_message = NULL;
                return -EBADMSG;
        }
        if (version > SCHEMA_VERSION) {
                if (asprintf(ret_message,
                            "%s: was written by a newer strata-collectord (schema %d, this one "
                            "knows %d)",
                            path, version, SCHEMA_VERSION) < 0)
                        *ret_message = NULL;
                return -EPROTONOSUPPORT;
        }
        *ret_version = version;
        return 0;
}

int store_migrate(sqlite3 *db, const char *path, char **ret_message)
{
        int version = 0, r;

        r = store_check_version(db, path, &version, ret_message);
        if (r < 0)
                return r;
        for (; version < SCHEMA_VERSION; version++) {
                r = apply(db, version + 1);
                if (r < 0)
                        return r;
        }
        return 0;
}
