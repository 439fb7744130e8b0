/*
 * samples(time, cluster, host, layer, entity, metric, value): every value as it was read. A scan
 * goes stream by stream and hour by hour, so that it holds the blocks of one host's hour and no
 * more; a block is decoded only as far as its columns are asked for.
 */
#include "collectord/store-sql.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

#define SLICE_US (INT64_C(3600) * 1000000)
#define ROWS_A_SLICE 512
#define RESOLUTION_MAX_US (INT64_C(86400) * 1000000)
#define SCHEMA                                                                                     \
        "CREATE TABLE samples(time REAL, cluster TEXT, host TEXT, layer TEXT, entity TEXT, "       \
        "metric TEXT, value NUMERIC, folder TEXT HIDDEN, resolution REAL HIDDEN)"

enum column {
        COLUMN_TIME,
        COLUMN_CLUSTER,
        COLUMN_HOST,
        COLUMN_LAYER,
        COLUMN_ENTITY,
        COLUMN_METRIC,
        COLUMN_VALUE,
        COLUMN_FOLDER,
        COLUMN_RESOLUTION,
};

enum wish {
        WISH_FOLDER,
        WISH_RESOLUTION,
        WISH_TIME,
        WISH_GE,
        WISH_GT,
        WISH_LE,
        WISH_LT,
        WISH_HOST,
        WISH_LAYER,
        WISH_ENTITY,
        WISH_METRIC,
        N_WISHES
};

static const struct store_sql_wish wishes[N_WISHES] = {
        [WISH_FOLDER] = {COLUMN_FOLDER, SQLITE_INDEX_CONSTRAINT_EQ, true},
        [WISH_RESOLUTION] = {COLUMN_RESOLUTION, SQLITE_INDEX_CONSTRAINT_EQ, true},
        [WISH_TIME] = {COLUMN_TIME, SQLITE_INDEX_CONSTRAINT_EQ, false},
        [WISH_GE] = {COLUMN_TIME, SQLITE_INDEX_CONSTRAINT_GE, false},
        [WISH_GT] = {COLUMN_TIME, SQLITE_INDEX_CONSTRAINT_GT, false},
        [WISH_LE] = {COLUMN_TIME, SQLITE_INDEX_CONSTRAINT_LE, false},
        [WISH_LT] = {COLUMN_TIME, SQLITE_INDEX_CONSTRAINT_LT, false},
        [WISH_HOST] = {COLUMN_HOST, SQLITE_INDEX_CONSTRAINT_EQ, false},
        [WISH_LAYER] = {COLUMN_LAYER, SQLITE_INDEX_CONSTRAINT_EQ, false},
        [WISH_ENTITY] = {COLUMN_ENTITY, SQLITE_INDEX_CONSTRAINT_EQ, false},
        [WISH_METRIC] = {COLUMN_METRIC, SQLITE_INDEX_CONSTRAINT_EQ, false},
};

struct piece {
        uint8_t *bytes;
        size_t size;
};

struct cursor {
        sqlite3_vtab_cursor base; /* first, for store_sql_open_cursor */
        struct store_sql sql;
        char *folder;
        /* what is asked for; NULL: any */
        char *host, *layer, *entity, *metric;
        int64_t from_us, to_us; /* both ends included */
        uint64_t resolution_us;
        /* where it stands */
        size_t stream;
        int64_t slice_us; /* begin of the slice */
        struct piece *pieces;
        size_t n_pieces, n_room, piece;
        struct block *block;
        uint64_t *values; /* of the column */
        size_t values_room;
        uint32_t row, column;
        int64_t emitted_us; /* newest row of the stream before this piece: rows may come twice */
        int64_t newest_us;  /* and of this one */
        bool end;
        char host_id[ID_TEXT_MAX];
        const char *host_name;
        uint32_t host_index;
};

static void drop_pieces(struct cursor *cursor)
{
        cursor->block = block_close(cursor->block);
        for (size_t i = 0; i < cursor->n_pieces; i++)
                free(cursor->pieces[i].bytes);
        cursor->n_pieces = cursor->piece = 0;
}

static void reset(struct cursor *cursor)
{
        sqlite3_vtab *table = cursor->base.pVtab;

        drop_pieces(cursor);
        store_sql_close(&cursor->sql);
        free(cursor->pieces);
        free(cursor->values);
        free(cursor->folder);
        free(cursor->host);
        free(cursor->layer);
        free(cursor->entity);
        free(cursor->metric);
        *cursor = (struct cursor){.base.pVtab = table};
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
        reset((struct cursor *)base);
        free(base);
        return SQLITE_OK;
}

/* ---- what is asked for ---- */

static int take_text(sqlite3_value *value, char **ret)
{
        const char *text = (const char *)sqlite3_value_text(value);

        /* Nothing equals NULL. */
        *ret = strdup(text ? text : "");
        return *ret ? 0 : -ENOMEM;
}

/* Seconds to microseconds, inside what a time can be: the comparison itself is SQLite's again, so
 * a microsecond of slack on both sides is for its rounding. */
static int64_t take_time(sqlite3_value *value, int64_t slack_us)
{
        double seconds = sqlite3_value_double(value);

        if (!(seconds > 0))
                return 0;
        if (seconds > 9e9)
                return INT64_C(9000000000) * 1000000;
        return (int64_t)(seconds * 1e6) + slack_us;
}

static int take_wish(struct cursor *cursor, enum wish wish, sqlite3_value *value)
{
        int64_t time_us;

        switch (wish) {
        case WISH_FOLDER:
                return take_text(value, &cursor->folder);
        case WISH_RESOLUTION:
                cursor->resolution_us = (uint64_t)take_time(value, 0);
                if (cursor->resolution_us > RESOLUTION_MAX_US)
                        cursor->resolution_us = RESOLUTION_MAX_US;
                return 0;
        case WISH_TIME:
                cursor->from_us = take_time(value, -1);
                cursor->to_us = take_time(value, 1);
                return 0;
        case WISH_GE:
        case WISH_GT:
                time_us = take_time(value, -1);
                if (time_us > cursor->from_us)
                        cursor->from_us = time_us;
                return 0;
        case WISH_LE:
        case WISH_LT:
                time_us = take_time(value, 1);
                if (time_us < cursor->to_us)
                        cursor->to_us = time_us;
                return 0;
        case WISH_HOST:
                return take_text(value, &cursor->host);
        case WISH_LAYER:
                return take_text(value, &cursor->layer);
        case WISH_ENTITY:
                return take_text(value, &cursor->entity);
        default:
                return take_text(value, &cursor->metric);
        }
}

static const char *layer_of(const struct metric *metric)
{
        return metric->layer == LAYER_NONE ? source_name(metric->source)
                                           : layer_name(metric->layer);
}

static bool wants_metric(const struct cursor *cursor, const struct metric *metric)
{
        /* A tier's lowest and highest rates are no metrics of their own. */
        return metric && (!cursor->metric || strcmp(cursor->metric, metric->name) == 0) &&
               (!cursor->layer || strcmp(cursor->layer, layer_of(metric)) == 0);
}

static bool wants_source(const struct cursor *cursor, enum source_id source)
{
        const struct metric *all;
        size_t n;

        all = metric_all(&n);
        for (size_t i = 0; i < n; i++)
                if (all[i].source == source && wants_metric(cursor, &all[i]))
                        return true;
        return false;
}

/* ---- the scan ---- */

static int keep_piece(void *userdata, const struct store_block *block)
{
        struct cursor *cursor = userdata;
        struct piece *pieces;

        /* The nearest one before is of no use here. */
        if (block->last_us < cursor->slice_us)
                return 0;
        if (cursor->n_pieces == cursor->n_room) {
                size_t n = cursor->n_room ? cursor->n_room * 2 : 16;

                pieces = reallocarray(cursor->pieces, n, sizeof(*pieces));
                if (!pieces)
                        return -ENOMEM;
                cursor->pieces = pieces;
                cursor->n_room = n;
        }
        cursor->pieces[cursor->n_pieces].bytes = malloc(block->size);
        if (!cursor->pieces[cursor->n_pieces].bytes)
                return -ENOMEM;
        memcpy(cursor->pieces[cursor->n_pieces].bytes, block->bytes, block->size);
        cursor->pieces[cursor->n_pieces++].size = block->size;
        return 0;
}

static const struct store_stream *stream_of(const struct cursor *cursor)
{
        return &cursor->sql.query->streams[cursor->stream];
}

/* Its name where the facts know it. */
static void name_host(struct cursor *cursor)
{
        const struct topology *topology = cursor->sql.query->topology;

        id_format(&stream_of(cursor)->host, cursor->host_id);
        cursor->host_name = cursor->host_id;
        if (topology_find_host(topology, &stream_of(cursor)->host, &cursor->host_index) < 0)
                cursor->host_index = TOPOLOGY_NONE;
        else if (topology->hosts[cursor->host_index].facts->hostname)
                cursor->host_name = topology->hosts[cursor->host_index].facts->hostname;
}

static bool wants_stream(struct cursor *cursor)
{
        if (!wants_source(cursor, stream_of(cursor)->source) || stream_of(cursor)->last_us == 0)
                return false;
        name_host(cursor);
        return !cursor->host || strcmp(cursor->host, cursor->host_name) == 0;
}

/* The next stream that is asked for, from cursor->stream on; its first slice. */
static void begin_stream(struct cursor *cursor)
{
        while (cursor->stream < cursor->sql.query->n_streams && !wants_stream(cursor))
                cursor->stream++;
        cursor->emitted_us = cursor->newest_us = INT64_MIN;
        if (cursor->stream == cursor->sql.query->n_streams) {
                cursor->end = true;
                return;
        }
        cursor->slice_us = stream_of(cursor)->first_us;
        if (cursor->slice_us < cursor->from_us)
                cursor->slice_us = cursor->from_us;
}

/* Of coarse rows more, or a block of a tier would be decoded once an hour of it. */
static int64_t slice_length(const struct cursor *cursor)
{
        int64_t length_us = (int64_t)cursor->resolution_us * ROWS_A_SLICE;

        return length_us > SLICE_US ? length_us : SLICE_US;
}

static int64_t slice_end(const struct cursor *cursor)
{
        int64_t end_us = cursor->slice_us + slice_length(cursor);

        return end_us > cursor->to_us ? cursor->to_us + 1 : end_us;
}

/* 1: there are pieces. 0: the slice was empty, or the scan is over. */
static int read_slice(struct cursor *cursor)
{
        const struct store_stream *stream = stream_of(cursor);
        int r;

        drop_pieces(cursor);
        if (cursor->slice_us > cursor->to_us || cursor->slice_us > stream->last_us) {
                cursor->stream++;
                begin_stream(cursor);
                return 0;
        }
        r = store_read_blocks(cursor->sql.reader, stream->source, &stream->host, cursor->slice_us,
                slice_end(cursor) - 1, cursor->resolution_us, keep_piece, cursor);
        if (r < 0)
                return r;
        if (cursor->n_pieces > 0)
                return 1;
        cursor->slice_us += slice_length(cursor);
        return 0;
}

static bool wants_column(const struct cursor *cursor, uint32_t column)
{
        const struct block_column *c = &block_get_columns(cursor->block)[column];
        const char *entity = block_get_entity(cursor->block, c->entity)->name;

        return wants_metric(cursor, metric_get(c->metric)) &&
               (!cursor->entity || strcmp(cursor->entity, entity) == 0);
}

/* 1: the column is decoded; 0: the block has no other that is asked for. */
static int find_column(struct cursor *cursor)
{
        uint32_t rows = block_get_header(cursor->block)->rows;
        int r;

        while (cursor->column < block_get_n_columns(cursor->block) &&
                !wants_column(cursor, cursor->column))
                cursor->column++;
        if (cursor->column == block_get_n_columns(cursor->block))
                return 0;
        if (rows > cursor->values_room) {
                free(cursor->values);
                cursor->values = calloc(rows, sizeof(*cursor->values));
                cursor->values_room = cursor->values ? rows : 0;
                if (!cursor->values)
                        return -ENOMEM;
        }
        r = block_read_column(cursor->block, cursor->column, cursor->values);
        return r < 0 ? r : 1;
}

static bool wants_row(const struct cursor *cursor)
{
        int64_t time_us = block_get_times(cursor->block)[cursor->row];

        return time_us >= cursor->slice_us && time_us < slice_end(cursor) &&
               time_us > cursor->emitted_us &&
               block_is_present(cursor->block,
                       block_get_columns(cursor->block)[cursor->column].entity, cursor->row);
}

/* The first row from cursor->row on, of this column or a later one. 1: there is none in the block.
 */
static int find_row(struct cursor *cursor)
{
        for (;;) {
                uint32_t rows = block_get_header(cursor->block)->rows;
                int r;

                for (; cursor->row < rows; cursor->row++)
                        if (wants_row(cursor))
                                return 0;
                cursor->row = 0;
                cursor->column++;
                r = find_column(cursor);
                if (r <= 0)
                        return r < 0 ? r : 1;
        }
}

/* 1: the piece has nothing. */
static int open_piece(struct cursor *cursor)
{
        const struct piece *piece = &cursor->pieces[cursor->piece];
        const struct block_header *header;
        int r;

        cursor->block = block_close(cursor->block);
        r = block_open(piece->bytes, piece->size, &cursor->block);
        if (r == -ENOMEM)
                return r;
        /* What is damaged is left out, as everywhere. */
        if (r < 0)
                return 1;
        header = block_get_header(cursor->block);
        if (header->flags & BLOCK_FLAG_GAP)
                return 1;
        cursor->emitted_us = cursor->newest_us;
        if (header->last_us > cursor->newest_us)
                cursor->newest_us = header->last_us < slice_end(cursor) ? header->last_us
                                                                        : slice_end(cursor) - 1;
        cursor->row = cursor->column = 0;
        r = find_column(cursor);
        if (r <= 0)
                return r < 0 ? r : 1;
        return find_row(cursor);
}

/* Goes on until there is a row or the end. @r: of the last step; 1 when the piece is used up. */
static int advance(struct cursor *cursor, int r)
{
        while (r == 1 && !cursor->end) {
                if (cursor->n_pieces > 0 && ++cursor->piece < cursor->n_pieces) {
                        r = open_piece(cursor);
                        continue;
                }
                if (cursor->n_pieces > 0)
                        cursor->slice_us += slice_length(cursor);
                r = read_slice(cursor);
                if (r == 1)
                        r = open_piece(cursor);
                else if (r == 0)
                        r = 1;
        }
        return r < 0 ? r : 0;
}

static int filter(
        sqlite3_vtab_cursor *base, int number, const char *text, int argc, sqlite3_value **argv)
{
        struct cursor *cursor = (struct cursor *)base;
        int r = 0;

        (void)text;
        reset(cursor);
        cursor->to_us = INT64_MAX / 4;
        for (int wish = 0, i = 0; wish < N_WISHES && i < argc && r == 0; wish++)
                if (number & 1 << wish)
                        r = take_wish(cursor, wish, argv[i++]);
        if (r == 0)
                r = store_sql_open(&cursor->sql, cursor->folder);
        if (r == 0) {
                begin_stream(cursor);
                r = advance(cursor, 1);
        }
        return r < 0 ? store_sql_fail(base->pVtab, cursor->folder, r) : SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
        struct cursor *cursor = (struct cursor *)base;
        int r;

        cursor->row++;
        r = advance(cursor, find_row(cursor));
        return r < 0 ? store_sql_fail(base->pVtab, cursor->folder, r) : SQLITE_OK;
}

static int is_end(sqlite3_vtab_cursor *base)
{
        return ((struct cursor *)base)->end;
}

/* ---- a row ---- */

static void result_text(sqlite3_context *context, const char *text)
{
        if (text)
                sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
        else
                sqlite3_result_null(context);
}

/* A device is its cluster's whose OSD it backs. */
static void result_cluster(sqlite3_context *context, const struct cursor *cursor)
{
        const struct block_column *column = &block_get_columns(cursor->block)[cursor->column];
        const struct block_entity *entity = block_get_entity(cursor->block, column->entity);
        const struct topology *topology = cursor->sql.query->topology;
        struct id fsid = entity->cluster;
        char text[ID_TEXT_MAX];
        uint32_t device;

        if (id_is_zero(&fsid) && block_get_header(cursor->block)->source == SOURCE_DISKSTATS &&
                cursor->host_index != TOPOLOGY_NONE &&
                topology_find_device(
                        topology, cursor->host_index, entity->name, entity->identity, &device) == 0)
                for (uint32_t i = 0; i < topology->n_clusters && id_is_zero(&fsid); i++)
                        if (topology_is_leaf_of(topology, device, i))
                                fsid = topology->clusters[i].fsid;
        result_text(context, id_is_zero(&fsid) ? NULL : id_format(&fsid, text));
}

static int result_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
        const struct cursor *cursor = (const struct cursor *)base;
        const struct block_column *column = &block_get_columns(cursor->block)[cursor->column];
        const struct metric *metric = metric_get(column->metric);
        uint64_t value = cursor->values[cursor->row];

        switch (number) {
        case COLUMN_TIME:
                sqlite3_result_double(
                        context, (double)block_get_times(cursor->block)[cursor->row] / 1e6);
                break;
        case COLUMN_CLUSTER:
                result_cluster(context, cursor);
                break;
        case COLUMN_HOST:
                result_text(context, cursor->host_name);
                break;
        case COLUMN_LAYER:
                result_text(context, layer_of(metric));
                break;
        case COLUMN_ENTITY:
                result_text(context, block_get_entity(cursor->block, column->entity)->name);
                break;
        case COLUMN_METRIC:
                result_text(context, metric->name);
                break;
        case COLUMN_VALUE:
                /* SQLite has no integer that is larger. */
                if (value > INT64_MAX)
                        sqlite3_result_double(context, (double)value);
                else
                        sqlite3_result_int64(context, (sqlite3_int64)value);
                break;
        case COLUMN_FOLDER:
                result_text(context, cursor->folder);
                break;
        default:
                sqlite3_result_double(context, (double)cursor->resolution_us / 1e6);
        }
        return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
        const struct cursor *cursor = (const struct cursor *)base;

        *ret = (sqlite3_int64)cursor->column << 32 | cursor->row;
        return SQLITE_OK;
}

const struct store_sql_table store_sql_samples = {
        .module =
                {
                        .xConnect = store_sql_connect,
                        .xBestIndex = store_sql_best_index,
                        .xDisconnect = store_sql_disconnect,
                        .xOpen = store_sql_open_cursor,
                        .xClose = close_cursor,
                        .xFilter = filter,
                        .xNext = next,
                        .xEof = is_end,
                        .xColumn = result_column,
                        .xRowid = row_id,
                },
        .schema = SCHEMA,
        .wishes = wishes,
        .n_wishes = N_WISHES,
        .cursor_size = sizeof(struct cursor),
};
