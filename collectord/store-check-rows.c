/*
 * The rows of a file's tables: each block is decoded as a whole, and compared with what its row
 * says of it. They are read in batches, so that beside a living collector no old state is held.
 */
#include "collectord/store-check-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collectord/query.h"

#define BATCH_ROWS 100 /* a few MiB of usual blocks */

struct check_row {
        const char *table;
        int64_t key, first_us, last_us, rows, stream;
        const uint8_t *bytes;
        size_t size;
        bool hot;
        uint64_t sequence;
        struct id boot;
        struct block_header header;
};

static int tell_row(struct check *check, const struct check_row *row, const char *what)
{
        const struct known_stream *stream = check_find_stream(check, row->stream);
        bool total = check->file->kind >= SEALED_TOTAL && check->file->kind < SEALED_KINDS;
        struct store_damage damage = {.file = check->file->name,
                .table = row->table,
                .key = row->key,
                .first_us = row->first_us,
                .last_us = row->last_us,
                .cluster = row->header.cluster,
                .host = row->header.host,
                .source = row->header.source,
                .what = what};

        /* The row of the stream is believed rather than a block that is damaged. */
        if (stream && !total) {
                damage.host = stream->host;
                damage.source = stream->source;
        }
        return check_tell(check, &damage);
}

/* ---- a block ---- */

static const char *compare_total(const struct check_row *row)
{
        static const enum query_by groups[] = {QUERY_BY_CLUSTER, QUERY_BY_CLASS, QUERY_BY_HOST};

        for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
                struct store_total total = {.cluster = row->header.cluster,
                        .source = row->header.source,
                        .by = groups[i]};

                if (keeper_total_stream(&total) == row->stream)
                        return NULL;
        }
        return "it is of another cluster or source than its key says";
}

static const char *compare_stream(struct check *check, const struct check_row *row)
{
        const struct known_stream *stream = check_find_stream(check, row->stream);

        if (!check->streams_known)
                return NULL;
        if (!stream)
                return "its stream is not known";
        if (!id_equal(&stream->host, &row->header.host))
                return "it is of another host than its stream";
        if (stream->source != row->header.source)
                return "it is of another source than its stream";
        return NULL;
}

/* What the row says of the block beside what the block says. */
static const char *compare_header(struct check *check, const struct check_row *row)
{
        const struct block_header *header = &row->header;
        bool total = check->file->kind >= SEALED_TOTAL && !row->hot;

        if (row->first_us != header->first_us || row->last_us != header->last_us)
                return "its times are others than its row says";
        /* Of totals no rows are counted. */
        if (!total && row->rows != header->rows)
                return "it has another number of rows than its row says";
        if (row->hot && (row->sequence != header->sequence || !id_equal(&row->boot, &header->boot)))
                return "it is of another boot or sequence than its row says";
        if ((strcmp(row->table, "gap") == 0) != ((header->flags & BLOCK_FLAG_GAP) != 0))
                return "it is a gap among blocks, or a block among gaps";
        if (!row->hot && sealed_key_period(check->file->kind, row->key) != check->file->period)
                return "its key is of another file";
        return total ? compare_total(row) : compare_stream(check, row);
}

static int read_columns(struct check *check, const struct block *block)
{
        int r = 0;

        for (uint32_t i = 0; i < block_get_n_columns(block) && r == 0; i++)
                r = block_read_column(block, i, check->column);
        return r;
}

/* *ret_what NULL: it is whole. -ENOMEM. */
static int check_block(struct check *check, struct check_row *row, const char **ret_what)
{
        const struct block *block = NULL;
        size_t size = 0;
        int r;

        *ret_what = NULL;
        r = block_peek(row->bytes, row->size, &row->header, &size);
        if (r < 0 || size != row->size) {
                row->header = (struct block_header){0};
                *ret_what = r == -EPROTONOSUPPORT ? "it is of a version that is not known"
                            : r < 0 ? "it is no block, or its checksum or length does not fit"
                                    : "something follows the block";
                return 0;
        }
        r = block_decode(check->decoder, row->bytes, row->size, &block);
        if (r == 0)
                r = read_columns(check, block);
        if (r == -ENOMEM)
                return r;
        *ret_what = r < 0 ? "it cannot be decoded, though its checksum fits"
                          : compare_header(check, row);
        return 0;
}

/* ---- a table ---- */

struct scan {
        const char *table;
        bool backwards;
        sqlite3_stmt *rows, *keys;
        int64_t low, high; /* between these nothing was read yet */
};

static void scan_done(struct scan *scan)
{
        sqlite3_finalize(scan->rows);
        sqlite3_finalize(scan->keys);
}
DEFINE_CLEANUP(scan, struct scan *, scan_done)

static int prepare(struct check *check, const struct scan *scan, const char *columns,
        const char *join, sqlite3_stmt **ret)
{
        char sql[512];

        snprintf(sql, sizeof(sql),
                "SELECT %s FROM %s t %s WHERE t.id > ?1 AND t.id < ?2 ORDER BY t.id %s LIMIT %d",
                columns, scan->table, join, scan->backwards ? "DESC" : "ASC", BATCH_ROWS);
        return store_errno(check->db, sqlite3_prepare_v2(check->db, sql, -1, ret, NULL));
}

static int scan_prepare(struct check *check, struct scan *scan)
{
        int r = check->file->kind == CHECK_HOT
                        ? prepare(check, scan,
                                  "t.id, first_us, last_us, rows, data, t.stream, sequence, boot",
                                  "LEFT JOIN run ON run.id = t.run", &scan->rows)
                        : prepare(check, scan, "t.id, first_us, last_us, rows, data", "",
                                  &scan->rows);

        return r < 0 ? r : prepare(check, scan, "t.id", "", &scan->keys);
}

static int scan_step(struct check *check, struct scan *scan, sqlite3_stmt *statement)
{
        int code;

        if (!sqlite3_stmt_busy(statement)) {
                sqlite3_bind_int64(statement, 1, scan->low);
                sqlite3_bind_int64(statement, 2, scan->high);
        }
        code = sqlite3_step(statement);
        return code == SQLITE_ROW ? 1 : store_errno(check->db, code);
}

static void scan_pass(struct scan *scan, int64_t key)
{
        if (scan->backwards)
                scan->high = key;
        else
                scan->low = key;
}

static struct check_row take_row(
        struct check *check, const struct scan *scan, sqlite3_stmt *statement)
{
        struct check_row row = {.table = scan->table,
                .key = sqlite3_column_int64(statement, 0),
                .first_us = sqlite3_column_int64(statement, 1),
                .last_us = sqlite3_column_int64(statement, 2),
                .rows = sqlite3_column_int64(statement, 3),
                .bytes = sqlite3_column_blob(statement, 4),
                .size = (size_t)sqlite3_column_bytes(statement, 4),
                .hot = check->file->kind == CHECK_HOT};

        row.stream = row.hot ? sqlite3_column_int64(statement, 5) : sealed_key_stream(row.key);
        row.sequence = row.hot ? (uint64_t)sqlite3_column_int64(statement, 6) : 0;
        /* Without its run the boot stays zero, and does not fit the block's. */
        if (row.hot && store_column_id(statement, 7, &row.boot) < 0)
                row.boot = (struct id){0};
        return row;
}

static bool is_damage(int r)
{
        return r == -EBADMSG || r == -EIO;
}

/* The row at which the batch stopped. 1: it is told and passed; 0: not even its key can be read. */
static int pass_unreadable(struct check *check, struct scan *scan)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = scan->keys;
        struct check_row row = {.table = scan->table};
        int r = scan_step(check, scan, statement);

        if (r <= 0)
                return is_damage(r) ? 0 : r;
        row.key = sqlite3_column_int64(statement, 0);
        row.stream = check->file->kind == CHECK_HOT ? 0 : sealed_key_stream(row.key);
        scan_pass(scan, row.key);
        r = tell_row(check, &row, "its pages cannot be read");
        return r < 0 ? r : 1;
}

/* 1: another batch; 0: the end. -EBADMSG, -EIO: of the next row not even the key can be read. */
static int scan_batch(struct check *check, struct scan *scan)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = scan->rows;
        int n = 0, r;

        while ((r = scan_step(check, scan, statement)) > 0) {
                struct check_row row = take_row(check, scan, statement);
                const char *what;

                n++;
                r = check_block(check, &row, &what);
                if (r == 0 && what)
                        r = tell_row(check, &row, what);
                if (r < 0)
                        return r;
                check->counts.blocks++;
                check->counts.rows += row.header.rows;
                check->counts.bytes += row.size;
                scan_pass(scan, row.key);
        }
        check->sink->progress(check->sink->userdata, check->file->name, &check->counts);
        if (is_damage(r)) {
                int error = r;

                sqlite3_reset(statement);
                r = pass_unreadable(check, scan);
                return r == 0 ? error : r;
        }
        return r < 0 ? r : n > 0;
}

static int scan_once(struct check *check, struct scan *scan)
{
        int r;

        r = scan_prepare(check, scan);
        while (r == 0 && (r = scan_batch(check, scan)) > 0)
                r = 0;
        return r;
}

/* Forwards, and where that meets a page that cannot be read, backwards from the end. */
int check_table(struct check *check, const char *table)
{
        struct scan forwards = {.table = table, .low = INT64_MIN, .high = INT64_MAX};
        CLEANUP(scan) struct scan *scan = &forwards;
        struct scan backwards = {.table = table, .backwards = true, .high = INT64_MAX};
        CLEANUP(scan) struct scan *back = &backwards;
        struct check_row row = {.table = table};
        int r;

        r = scan_once(check, scan);
        if (!is_damage(r))
                return r;
        row.key = scan->low == INT64_MIN ? 0 : scan->low;
        r = tell_row(check, &row, "what follows this key cannot be read");
        if (r < 0)
                return r;
        back->low = scan->low;
        r = scan_once(check, back);
        return is_damage(r) ? 0 : r;
}
