/*
 * The encoder. Rows come row-major; an entity at a time is turned into columns, each column is
 * written in the cheapest of a few ways, and the whole body becomes one zstd frame. Memory is kept
 * from one block to the next.
 */

#include "lib/block-encode.h"

#define ZSTD_LEVEL 3
#define ZSTD_TABLE_LOG 10 /* small tables: between two blocks the cache forgets large ones */

/* From so many bytes of data on it is worth a zstd block, and so a code, of its own. */
#define DATA_APART 1024u

/* The headers of the zstd blocks that the flushes end. */
#define PARTS_ROOM 64u

int block_buffer_reserve(struct buffer *buffer, size_t extra)
{
        size_t capacity = buffer->capacity ? buffer->capacity : 4096;
        uint8_t *data;

        if (buffer->capacity - buffer->size >= extra)
                return 0;
        while (capacity - buffer->size < extra)
                capacity *= 2;
        data = realloc(buffer->data, capacity);
        if (!data)
                return -ENOMEM;
        buffer->data = data;
        buffer->capacity = capacity;
        return 0;
}

static void stream_clear(struct stream *stream)
{
        stream->bytes.size = 0;
        stream->bits.size = 0;
        stream->rest = 0;
        stream->n_rest = 0;
}

/* Ends the bits on a whole byte. */
static void stream_finish(struct stream *stream)
{
        put_word(&stream->bits, stream->rest);
        stream->bits.size += (stream->n_rest + 7) / 8;
}

int block_encoder_new(struct block_encoder **ret)
{
        CLEANUP(block_encoder) struct block_encoder *encoder = calloc(1, sizeof(*encoder));

        if (!encoder)
                return -ENOMEM;
        encoder->zstd = ZSTD_createCCtx();
        if (!encoder->zstd)
                return -ENOMEM;
        if (ZSTD_isError(
                    ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) ||
                ZSTD_isError(
                        ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_hashLog, ZSTD_TABLE_LOG)) ||
                ZSTD_isError(
                        ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_chainLog, ZSTD_TABLE_LOG)))
                return -ENOMEM;
        *ret = STEAL(encoder);
        return 0;
}

struct block_encoder *block_encoder_free(struct block_encoder *encoder)
{
        if (!encoder)
                return NULL;
        ZSTD_freeCCtx(encoder->zstd);
        free(encoder->table.bytes.data);
        free(encoder->table.bits.data);
        free(encoder->data.bytes.data);
        free(encoder->data.bits.data);
        free(encoder->output.data);
        free(encoder->columns);
        free(encoder);
        return NULL;
}

static bool entities_fit(const struct block_rows *rows)
{
        for (uint32_t i = 0; i < rows->n_entities; i++) {
                const struct block_entity *entity = &rows->entities[i];

                if (strnlen(entity->name, BLOCK_NAME_MAX + 1) > BLOCK_NAME_MAX ||
                        strnlen(entity->identity, BLOCK_NAME_MAX + 1) > BLOCK_NAME_MAX)
                        return false;
        }
        return true;
}

static bool columns_fit(const struct block_rows *rows)
{
        uint32_t least = 0;

        for (uint32_t i = 0; i < rows->n_columns; i++) {
                if (rows->columns[i].entity < least || rows->columns[i].entity >= rows->n_entities)
                        return false;
                least = rows->columns[i].entity;
        }
        return true;
}

static bool times_fit(const struct block_rows *rows)
{
        for (uint32_t i = 1; i < rows->header.rows; i++)
                if (rows->times_us[i] <= rows->times_us[i - 1])
                        return false;
        return true;
}

static int write_text(struct stream *table, const char *text)
{
        size_t size = strlen(text) + 1;
        int r;

        r = stream_reserve(table, size, 0);
        if (r < 0)
                return r;
        stream_bytes(table, text, size);
        return 0;
}

static int write_entities(struct stream *table, const struct block_rows *rows)
{
        static const struct id none;
        int r;

        for (uint32_t i = 0; i < rows->n_entities; i++) {
                r = write_text(table, rows->entities[i].name);
                if (r < 0)
                        return r;
        }
        for (uint32_t i = 0; i < rows->n_entities; i++) {
                r = write_text(table, rows->entities[i].identity);
                if (r < 0)
                        return r;
        }
        r = stream_reserve(
                table, (size_t)rows->n_entities * sizeof(struct id), (size_t)rows->n_entities * 2);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < rows->n_entities; i++) {
                const struct id *cluster = &rows->entities[i].cluster;

                if (memcmp(cluster, &none, sizeof(none)) == 0) {
                        stream_number(table, BLOCK_CLUSTER_NONE);
                } else if (memcmp(cluster, &rows->header.cluster, sizeof(*cluster)) == 0) {
                        stream_number(table, BLOCK_CLUSTER_HEADER);
                } else {
                        stream_number(table, BLOCK_CLUSTER_OWN);
                        stream_bytes(table, cluster->bytes, sizeof(cluster->bytes));
                }
        }
        for (uint32_t i = 0; i < rows->n_entities; i++)
                stream_number(table, rows->entities[i].instance);
        return 0;
}

/* How many columns from @begin on belong to @entity. */
static uint32_t columns_of(const struct block_rows *rows, uint32_t begin, uint32_t entity)
{
        uint32_t end = begin;

        while (end < rows->n_columns && rows->columns[end].entity == entity)
                end++;
        return end - begin;
}

static bool lists_equal(
        const struct block_column *a, uint32_t n_a, const struct block_column *b, uint32_t n_b)
{
        if (n_a != n_b)
                return false;
        for (uint32_t i = 0; i < n_a; i++)
                if (a[i].metric != b[i].metric)
                        return false;
        return true;
}

/* Metrics mostly ascend by 1. */
static void write_new_list(struct stream *table, const struct block_column *list, uint32_t count)
{
        uint16_t previous = 0;

        stream_number(table, count);
        for (uint32_t i = 0; i < count; i++) {
                stream_number(table, zigzag((uint64_t)list[i].metric - previous));
                previous = list[i].metric;
        }
}

/* An entity's metric list is written, or is how many entities back the same one stands. */
static int write_lists(struct stream *table, const struct block_rows *rows)
{
        uint32_t begins[BLOCK_LIST_WINDOW], counts[BLOCK_LIST_WINDOW];
        uint32_t begin = 0;
        int r;

        for (uint32_t i = 0; i < rows->n_entities; i++) {
                uint32_t count = columns_of(rows, begin, i), back = 1;
                uint32_t reach = i < BLOCK_LIST_WINDOW ? i : BLOCK_LIST_WINDOW;

                while (back <= reach &&
                        !lists_equal(rows->columns + begin, count,
                                rows->columns + begins[(i - back) % BLOCK_LIST_WINDOW],
                                counts[(i - back) % BLOCK_LIST_WINDOW]))
                        back++;
                begins[i % BLOCK_LIST_WINDOW] = begin;
                counts[i % BLOCK_LIST_WINDOW] = count;
                r = stream_reserve(table, 0, (size_t)count + 2);
                if (r < 0)
                        return r;
                stream_number(table, back <= reach ? back : 0);
                if (back > reach)
                        write_new_list(table, rows->columns + begin, count);
                begin += count;
        }
        return 0;
}

static int write_times(struct block_encoder *encoder, const struct block_rows *rows)
{
        uint32_t count = rows->header.rows;
        uint64_t *trial = encoder->differences[0], *best = encoder->differences[1];
        uint64_t best_bits = UINT64_MAX;
        unsigned best_order = 0;
        int r;

        for (uint32_t i = 0; i < count; i++)
                trial[i] = (uint64_t)rows->times_us[i] - (uint64_t)rows->times_us[0] -
                           i * rows->header.interval_us;
        for (unsigned order = 0; order <= BLOCK_TIME_ORDER_MAX; order++) {
                uint64_t bits = bits_of(trial, count, 0);

                if (bits < best_bits) {
                        best_bits = bits;
                        best_order = order;
                        memcpy(best, trial, count * sizeof(*best));
                }
                for (uint32_t i = count - 1; i > 0; i--)
                        trial[i] -= trial[i - 1];
        }
        r = stream_reserve(&encoder->table, 0, count);
        if (r < 0)
                return r;
        stream_number(&encoder->table, best_order);
        for (uint32_t i = 1; i < count; i++)
                stream_number(&encoder->table, zigzag(best[i]));
        return 0;
}

/* How many entities have a bitmap; for each its distance to the one before, and a bit a row. */
static int write_presence(struct stream *table, const struct block_rows *rows)
{
        uint32_t count = 0, previous = 0;
        size_t bitmap_size = (rows->header.rows + 7) / 8;
        int r;

        for (uint32_t i = 0; rows->present && i < rows->n_entities; i++)
                count += !always_present(rows, i);
        r = stream_reserve(table, count * bitmap_size, (size_t)count + 1);
        if (r < 0)
                return r;
        stream_number(table, count);
        for (uint32_t i = 0; count > 0 && i < rows->n_entities; i++) {
                uint8_t *bitmap;

                if (always_present(rows, i))
                        continue;
                stream_number(table, i - previous);
                previous = i;
                bitmap = table->bytes.data + table->bytes.size;
                memset(bitmap, 0, bitmap_size);
                for (uint32_t row = 0; row < rows->header.rows; row++)
                        bitmap[row / 8] |= (uint8_t)(is_present(rows, i, row) << row % 8);
                table->bytes.size += bitmap_size;
        }
        return 0;
}

static int write_body(struct block_encoder *encoder, const struct block_rows *rows)
{
        uint32_t begin = 0;
        int r;

        stream_clear(&encoder->table);
        stream_clear(&encoder->data);
        r = write_entities(&encoder->table, rows);
        if (r < 0)
                return r;
        r = write_lists(&encoder->table, rows);
        if (r < 0)
                return r;
        r = write_times(encoder, rows);
        if (r < 0)
                return r;
        r = write_presence(&encoder->table, rows);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < rows->n_entities; i++) {
                uint32_t count = columns_of(rows, begin, i);

                r = block_write_entity(encoder, rows, i, begin, count);
                if (r < 0)
                        return r;
                begin += count;
        }
        r = stream_reserve(&encoder->data, 0, 1);
        if (r < 0)
                return r;
        stream_finish(&encoder->table);
        stream_finish(&encoder->data);
        return body_size(encoder) > BLOCK_BODY_MAX ? -EINVAL : 0;
}

/* Compresses a part of the body; the output has room for whatever zstd makes of it. */
static int compress_part(
        struct block_encoder *encoder, const struct buffer *part, ZSTD_EndDirective directive)
{
        struct buffer *output = &encoder->output;
        ZSTD_inBuffer in = {part->data, part->size, 0};
        ZSTD_outBuffer out = {output->data, output->capacity, output->size};
        size_t left;

        do {
                left = ZSTD_compressStream2(encoder->zstd, &out, &in, directive);
                if (ZSTD_isError(left))
                        return -ENOMEM; /* the only failure: room, size and level are right */
        } while (directive == ZSTD_e_continue ? in.pos < in.size : left > 0);
        output->size = out.pos;
        return 0;
}

/*
 * zstd takes memory for the size it is told. It is first told of the next power of two, so that it
 * does not allocate for each block that is the largest so far.
 */
static int zstd_reserve(struct block_encoder *encoder, size_t size)
{
        ZSTD_outBuffer out = {encoder->output.data, encoder->output.capacity, 0};
        ZSTD_inBuffer in = {};
        size_t reserved = 4096;

        if (size <= encoder->zstd_size)
                return 0;
        while (reserved < size)
                reserved *= 2;
        if (ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(encoder->zstd, reserved)) ||
                ZSTD_isError(ZSTD_compressStream2(encoder->zstd, &out, &in, ZSTD_e_flush)))
                return -ENOMEM;
        encoder->zstd_size = reserved;
        return 0;
}

/*
 * Compresses the body behind the room for the header. A flush ends a zstd block, so that what
 * follows has a code of its own.
 */
static int compress_body(struct block_encoder *encoder)
{
        struct stream *table = &encoder->table, *data = &encoder->data;
        size_t size = body_size(encoder);
        int r;

        r = block_buffer_reserve(&encoder->output, ZSTD_compressBound(size) + PARTS_ROOM);
        if (r < 0)
                return r;
        r = zstd_reserve(encoder, size);
        if (r < 0)
                return r;
        /* Also ends what an encoding that failed may have left open. */
        if (ZSTD_isError(ZSTD_CCtx_reset(encoder->zstd, ZSTD_reset_session_only)) ||
                ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(encoder->zstd, size)))
                return -ENOMEM;
        r = compress_part(encoder, &table->bytes,
                data->bytes.size < DATA_APART ? ZSTD_e_continue : ZSTD_e_flush);
        if (r < 0)
                return r;
        r = compress_part(encoder, &data->bytes, ZSTD_e_flush);
        if (r < 0)
                return r;
        r = compress_part(encoder, &table->bits, ZSTD_e_continue);
        if (r < 0)
                return r;
        r = compress_part(encoder, &data->bits, ZSTD_e_end);
        if (r < 0)
                return r;
        return encoder->output.size > BLOCK_BYTES_MAX ? -EINVAL : 0;
}

int block_encode(struct block_encoder *encoder, const struct block_rows *rows,
        const uint8_t **ret_bytes, size_t *ret_size)
{
        struct block_frame frame = {.header = rows->header};
        bool is_gap = rows->header.flags & BLOCK_FLAG_GAP;
        int r;

        encoder->output.size = 0;
        r = block_buffer_reserve(&encoder->output, BLOCK_HEADER_BYTES);
        if (r < 0)
                return r;
        if (!is_gap) {
                frame.n_entities = rows->n_entities;
                frame.n_columns = rows->n_columns;
        }
        if (!is_gap && rows->header.rows > 0) {
                frame.header.first_us = rows->times_us[0];
                frame.header.last_us = rows->times_us[rows->header.rows - 1];
        }
        if (!block_frame_fits(&frame))
                return -EINVAL;
        encoder->output.size = BLOCK_HEADER_BYTES;
        if (!is_gap) {
                if (!times_fit(rows) || !entities_fit(rows) || !columns_fit(rows))
                        return -EINVAL;
                r = write_body(encoder, rows);
                if (r < 0)
                        return r;
                r = compress_body(encoder);
                if (r < 0)
                        return r;
                frame.bytes_size = (uint32_t)(encoder->table.bytes.size + encoder->data.bytes.size);
        }
        frame.header.schema_hash =
                block_schema_hash(rows->entities, frame.n_entities, rows->columns, frame.n_columns);
        frame.size = (uint32_t)encoder->output.size;
        block_frame_write(&frame, encoder->output.data);
        *ret_bytes = encoder->output.data;
        *ret_size = encoder->output.size;
        return 0;
}
