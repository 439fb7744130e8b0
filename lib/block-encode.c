/*
 * The encoder. Rows come row-major; an entity at a time is turned into columns, each column is
 * written in the cheapest of a few ways, and the whole body becomes one zstd frame. Memory is kept
 * from one block to the next.
 */

#include "lib/block-format.h"

#include <stdlib.h>
#include <zstd.h>

#include "lib/metric.h"

#define ZSTD_LEVEL 3

/* Columns moved together: one cache line of a row. */
#define TILE 8u

/* From so many bytes of data on it is worth a zstd block, and so a code, of its own. */
#define DATA_APART 1024u

/* The headers of the zstd blocks that the flushes end. */
#define PARTS_ROOM 64u

struct buffer {
        uint8_t *data;
        size_t size;
        size_t capacity;
};

/* Numbers: their tokens, among other bytes, and their bits. */
struct stream {
        struct buffer bytes;
        struct buffer bits;
        uint64_t rest; /* bits that do not yet fill a word */
        unsigned n_rest;
};

/* One way to write a column: differences, their divisor 2^shift x odd, and the kind. */
struct candidate {
        uint64_t *differences; /* [rows - 1] */
        uint64_t first;
        unsigned shift;
        uint64_t odd;
        uint8_t kind;
};

struct block_encoder {
        ZSTD_CCtx *zstd;
        struct stream table;
        struct stream data;
        struct buffer output;
        uint64_t *columns; /* of one entity, column-major */
        size_t columns_capacity;
        uint64_t differences[2][BLOCK_ROWS_MAX];
        uint64_t residual[BLOCK_ROWS_MAX];
};

static int buffer_reserve(struct buffer *buffer, size_t extra)
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

/* Reserves for so many other bytes and so many numbers. The writers below rely on it. */
static int stream_reserve(struct stream *stream, size_t bytes, size_t numbers)
{
        int r;

        r = buffer_reserve(&stream->bytes, bytes + numbers);
        if (r < 0)
                return r;
        return buffer_reserve(&stream->bits, (numbers + 1) * sizeof(uint64_t));
}

static void stream_clear(struct stream *stream)
{
        stream->bytes.size = 0;
        stream->bits.size = 0;
        stream->rest = 0;
        stream->n_rest = 0;
}

static void stream_bytes(struct stream *stream, const void *bytes, size_t size)
{
        memcpy(stream->bytes.data + stream->bytes.size, bytes, size);
        stream->bytes.size += size;
}

static void put_word(struct buffer *bits, uint64_t word)
{
        word = htole64(word);
        memcpy(bits->data + bits->size, &word, sizeof(word));
}

static inline void stream_number(struct stream *stream, uint64_t value)
{
        unsigned count = 63 - (unsigned)__builtin_clzll(value | 1), used = stream->n_rest;

        if (value < TOKEN_LITERALS) {
                stream->bytes.data[stream->bytes.size++] = (uint8_t)value;
                return;
        }
        stream->bytes.data[stream->bytes.size++] =
                (uint8_t)(TOKEN_LITERALS - TOKEN_LITERAL_BITS + count);
        value ^= 1ull << count;
        stream->rest |= value << used;
        stream->n_rest += count;
        if (stream->n_rest < 64)
                return;
        put_word(&stream->bits, stream->rest);
        stream->bits.size += sizeof(uint64_t);
        stream->n_rest -= 64;
        stream->rest = value >> (64 - used); /* not 0 used: 63 bits do not fill a word */
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
                    ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)))
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

static int write_entities(struct stream *table, const struct block_rows *rows)
{
        int r;

        for (uint32_t i = 0; i < rows->n_entities; i++) {
                size_t size = strlen(rows->entities[i].name) + 1;

                r = stream_reserve(table, size, 0);
                if (r < 0)
                        return r;
                stream_bytes(table, rows->entities[i].name, size);
        }
        for (uint32_t i = 0; i < rows->n_entities; i++) {
                size_t size = strlen(rows->entities[i].identity) + 1;

                r = stream_reserve(table, size, 0);
                if (r < 0)
                        return r;
                stream_bytes(table, rows->entities[i].identity, size);
        }
        r = stream_reserve(
                table, (size_t)rows->n_entities * sizeof(struct id), (size_t)rows->n_entities * 2);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < rows->n_entities; i++) {
                const struct id *cluster = &rows->entities[i].cluster;
                static const struct id none;

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

/* An entity's metric list is written, or is how many entities back the same one stands. */
static int write_lists(struct stream *table, const struct block_rows *rows)
{
        uint32_t begins[BLOCK_LIST_WINDOW], counts[BLOCK_LIST_WINDOW];
        uint32_t begin = 0;
        int r;

        for (uint32_t i = 0; i < rows->n_entities; i++) {
                uint32_t count = columns_of(rows, begin, i), back = 1;
                uint32_t reach = i < BLOCK_LIST_WINDOW ? i : BLOCK_LIST_WINDOW;
                uint16_t previous = 0;

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
                if (back > reach) {
                        stream_number(table, count);
                        for (uint32_t k = begin; k < begin + count; k++) {
                                uint16_t metric = rows->columns[k].metric;

                                stream_number(table, zigzag((uint64_t)metric - previous));
                                previous = metric;
                        }
                }
                begin += count;
        }
        return 0;
}

/* Bits that the values need, zig-zag: a measure of what they cost after compression. */
static uint64_t bits_of(const uint64_t *values, uint32_t count, unsigned shift)
{
        uint64_t bits = 0;

        for (uint32_t i = 0; i < count; i++)
                bits += 64 - (unsigned)__builtin_clzll(
                                     zigzag((uint64_t)((int64_t)values[i] >> shift)) | 1);
        return bits;
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

static bool is_present(const struct block_rows *rows, uint32_t entity, uint32_t row)
{
        return !rows->present || rows->present[(size_t)row * rows->n_entities + entity];
}

static bool always_present(const struct block_rows *rows, uint32_t entity)
{
        for (uint32_t row = 0; row < rows->header.rows; row++)
                if (!is_present(rows, entity, row))
                        return false;
        return true;
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

/* Copies an entity's values into encoder->columns, column after column. */
static int gather(struct block_encoder *encoder, const struct block_rows *rows, uint32_t begin,
        uint32_t count)
{
        uint32_t n_rows = rows->header.rows;
        size_t needed = (size_t)count * n_rows;

        if (needed > encoder->columns_capacity) {
                uint64_t *columns = realloc(encoder->columns, needed * sizeof(*columns));

                if (!columns)
                        return -ENOMEM;
                encoder->columns = columns;
                encoder->columns_capacity = needed;
        }
        for (uint32_t tile = 0; tile < count; tile += TILE) {
                uint32_t width = count - tile < TILE ? count - tile : TILE;
                const uint64_t *from = rows->values + begin + tile;
                uint64_t *to = encoder->columns + (size_t)tile * n_rows;

                for (uint32_t row = 0; row < n_rows; row++, from += rows->n_columns)
                        for (uint32_t k = 0; k < width; k++)
                                to[(size_t)k * n_rows + row] = from[k];
        }
        return 0;
}

/* What is absent repeats the value before, or else the first one after: it then costs nothing. */
static void fill_absent(struct block_encoder *encoder, const struct block_rows *rows,
        uint32_t entity, uint32_t count)
{
        uint32_t n_rows = rows->header.rows, first = 0;

        if (!rows->present || always_present(rows, entity))
                return;
        while (first < n_rows && !is_present(rows, entity, first))
                first++;
        for (uint32_t k = 0; k < count; k++) {
                uint64_t *column = encoder->columns + (size_t)k * n_rows;
                uint64_t value = first < n_rows ? column[first] : 0;

                for (uint32_t row = 0; row < n_rows; row++) {
                        if (is_present(rows, entity, row))
                                value = column[row];
                        else
                                column[row] = value;
                }
        }
}

static uint64_t magnitude(uint64_t difference)
{
        return (int64_t)difference < 0 ? -difference : difference;
}

/* The greatest odd divisor of all. Mostly it is found to be 1 after a few values. */
static uint64_t odd_divisor(const uint64_t *differences, uint32_t count)
{
        uint64_t divisor = 0;

        for (uint32_t i = 0; i < count && divisor != 1; i++) {
                uint64_t a = magnitude(differences[i]), b = divisor;

                if (a == 0)
                        continue;
                a >>= __builtin_ctzll(a);
                while (b != 0) {
                        uint64_t rest = a % b;

                        a = b;
                        b = rest;
                }
                divisor = a;
        }
        return divisor ? divisor : 1;
}

static void candidate_make(
        struct candidate *candidate, const uint64_t *values, uint32_t n_rows, uint8_t kind)
{
        uint64_t *differences = candidate->differences, bits = 0;
        uint32_t count = n_rows - 1;

        for (uint32_t i = 0; i < count; i++) {
                differences[i] = values[i + 1] - values[kind & BLOCK_KIND_DIRECT ? 0 : i];
                bits |= differences[i];
        }
        candidate->first = values[0];
        candidate->kind = kind;
        candidate->shift = 0;
        candidate->odd = 1;
        if (bits == 0) {
                candidate->kind = (kind & ~BLOCK_KIND_DIRECT) | BLOCK_KIND_CONSTANT;
                return;
        }
        if (bits >> 63)
                candidate->kind |= BLOCK_KIND_SIGNED;
        candidate->shift = (unsigned)__builtin_ctzll(bits);
        candidate->odd = odd_divisor(differences, count);
        if (candidate->shift > 0 || candidate->odd > 1)
                candidate->kind |= BLOCK_KIND_DIVISOR;
}

static bool candidate_is_better(
        const struct candidate *a, const struct candidate *b, uint32_t n_rows)
{
        if (b->kind & BLOCK_KIND_CONSTANT)
                return false;
        if (a->kind & BLOCK_KIND_CONSTANT)
                return true;
        return bits_of(a->differences, n_rows - 1, a->shift) <
               bits_of(b->differences, n_rows - 1, b->shift);
}

/* Puts the better of @best and the column @values written as @kind into @best. */
static void candidate_try(struct candidate *best, struct candidate *spare, const uint64_t *values,
        uint32_t n_rows, uint8_t kind)
{
        struct candidate other;

        candidate_make(spare, values, n_rows, kind);
        if (!candidate_is_better(spare, best, n_rows))
                return;
        other = *best;
        *best = *spare;
        *spare = other;
}

/*
 * The kernel's weighted time is the sum of the times of reads, writes, discards and flushes, but
 * for rounding. False when the column is not of 32 bits, so that the sum would lose something.
 */
static bool make_residual(struct block_encoder *encoder, const struct block_column *list,
        uint32_t count, uint32_t weighted, uint32_t n_rows)
{
        const uint64_t *values = encoder->columns + (size_t)weighted * n_rows;
        uint64_t *residual = encoder->residual;
        uint64_t bits = 0;

        for (uint32_t row = 0; row < n_rows; row++) {
                residual[row] = values[row];
                bits |= values[row];
        }
        if (bits > UINT32_MAX)
                return false;
        for (uint32_t part = 0; part < BLOCK_PARTS_MAX; part++) {
                uint32_t k = 0;

                while (k < count && list[k].metric != block_weighted_parts[part])
                        k++;
                for (uint32_t row = 0; k < count && row < n_rows; row++)
                        residual[row] -= encoder->columns[(size_t)k * n_rows + row];
        }
        for (uint32_t row = 0; row < n_rows; row++)
                residual[row] = (uint64_t)(int32_t)(uint32_t)residual[row];
        return true;
}

/* The inverse of an odd number modulo 2^64, by Newton's method: five steps from 3 bits on. */
static uint64_t inverse(uint64_t odd)
{
        uint64_t x = odd;

        for (int i = 0; i < 5; i++)
                x *= 2 - odd * x;
        return x;
}

/* The divisor divides exactly, so that its odd part is a multiplication with the inverse. */
static void write_differences(struct stream *data, const struct candidate *best, uint32_t count)
{
        uint64_t factor = inverse(best->odd);
        bool is_signed = best->kind & BLOCK_KIND_SIGNED;

        for (uint32_t i = 0; i < count; i++) {
                uint64_t value = (uint64_t)((int64_t)best->differences[i] >> best->shift) * factor;

                stream_number(data, is_signed ? zigzag(value) : value);
        }
}

static int write_column(
        struct block_encoder *encoder, const struct candidate *best, uint32_t n_rows)
{
        struct stream *table = &encoder->table;
        uint64_t first = best->first;
        int r;

        r = stream_reserve(table, 0, 3);
        if (r < 0)
                return r;
        stream_number(table, best->kind);
        stream_number(table, best->kind & BLOCK_KIND_RESIDUAL ? zigzag(first) : first);
        if (best->kind & BLOCK_KIND_CONSTANT)
                return 0;
        if (best->kind & BLOCK_KIND_DIVISOR)
                stream_number(table, best->odd << best->shift);
        r = stream_reserve(&encoder->data, 0, n_rows);
        if (r < 0)
                return r;
        write_differences(&encoder->data, best, n_rows - 1);
        return 0;
}

static size_t body_size(const struct block_encoder *encoder)
{
        return encoder->table.bytes.size + encoder->table.bits.size + encoder->data.bytes.size +
               encoder->data.bits.size;
}

static int write_entity(struct block_encoder *encoder, const struct block_rows *rows,
        uint32_t entity, uint32_t begin, uint32_t count)
{
        const struct block_column *list = rows->columns + begin;
        uint32_t n_rows = rows->header.rows;
        int r;

        r = gather(encoder, rows, begin, count);
        if (r < 0)
                return r;
        fill_absent(encoder, rows, entity, count);
        for (uint32_t k = 0; k < count; k++) {
                const uint64_t *values = encoder->columns + (size_t)k * n_rows;
                struct candidate best = {.differences = encoder->differences[0]};
                struct candidate spare = {.differences = encoder->differences[1]};

                candidate_make(&best, values, n_rows, 0);
                if (best.kind & BLOCK_KIND_SIGNED)
                        candidate_try(&best, &spare, values, n_rows, BLOCK_KIND_DIRECT);
                if (list[k].metric == METRIC_DISK_WEIGHTED_TIME &&
                        make_residual(encoder, list, count, k, n_rows)) {
                        candidate_try(
                                &best, &spare, encoder->residual, n_rows, BLOCK_KIND_RESIDUAL);
                        candidate_try(&best, &spare, encoder->residual, n_rows,
                                BLOCK_KIND_RESIDUAL | BLOCK_KIND_DIRECT);
                }
                r = write_column(encoder, &best, n_rows);
                if (r < 0)
                        return r;
                if (body_size(encoder) > BLOCK_BODY_MAX)
                        return -EINVAL;
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

                r = write_entity(encoder, rows, i, begin, count);
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
 * Compresses the body behind the room for the header. A flush ends a zstd block, so that what
 * follows has a code of its own.
 */
static int compress_body(struct block_encoder *encoder)
{
        struct stream *table = &encoder->table, *data = &encoder->data;
        size_t size = body_size(encoder);
        int r;

        r = buffer_reserve(&encoder->output, ZSTD_compressBound(size) + PARTS_ROOM);
        if (r < 0)
                return r;
        if (ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(encoder->zstd, size)))
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
        r = buffer_reserve(&encoder->output, BLOCK_HEADER_BYTES);
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
