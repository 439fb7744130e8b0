#pragma once
/*
 * The encoder's inside, private to lib/block-encode.c (the table, the frame) and
 * lib/block-column.c (how a column is written).
 */

#include <stdlib.h>
#include <zstd.h>

#include "lib/block-format.h"

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

struct block_encoder {
        ZSTD_CCtx *zstd;
        size_t zstd_size; /* the largest body that zstd has memory for */
        struct stream table;
        struct stream data;
        struct buffer output;
        uint64_t *columns; /* of one entity, column-major */
        size_t columns_capacity;
        uint64_t differences[2][BLOCK_ROWS_MAX];
        uint64_t residual[BLOCK_ROWS_MAX];
};

/* Makes room for @extra bytes behind @buffer->size. */
int block_buffer_reserve(struct buffer *buffer, size_t extra);

/* Reserves for so many other bytes and so many numbers. The writers below rely on it. */
static inline int stream_reserve(struct stream *stream, size_t bytes, size_t numbers)
{
        int r;

        r = block_buffer_reserve(&stream->bytes, bytes + numbers);
        if (r < 0)
                return r;
        return block_buffer_reserve(&stream->bits, (numbers + 1) * sizeof(uint64_t));
}

static inline void stream_bytes(struct stream *stream, const void *bytes, size_t size)
{
        memcpy(stream->bytes.data + stream->bytes.size, bytes, size);
        stream->bytes.size += size;
}

static inline void put_word(struct buffer *bits, uint64_t word)
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

static inline size_t body_size(const struct block_encoder *encoder)
{
        return encoder->table.bytes.size + encoder->table.bits.size + encoder->data.bytes.size +
               encoder->data.bits.size;
}

/* Bits that the values need, zig-zag: a measure of what they cost after compression. */
static inline uint64_t bits_of(const uint64_t *values, uint32_t count, unsigned shift)
{
        uint64_t bits = 0;

        for (uint32_t i = 0; i < count; i++)
                bits += 64 - (unsigned)__builtin_clzll(
                                     zigzag((uint64_t)((int64_t)values[i] >> shift)) | 1);
        return bits;
}

static inline bool is_present(const struct block_rows *rows, uint32_t entity, uint32_t row)
{
        return !rows->present || rows->present[(size_t)row * rows->n_entities + entity];
}

static inline bool always_present(const struct block_rows *rows, uint32_t entity)
{
        for (uint32_t row = 0; row < rows->header.rows; row++)
                if (!is_present(rows, entity, row))
                        return false;
        return true;
}

/* Writes the @count columns of @entity, which begin at @begin. */
int block_write_entity(struct block_encoder *encoder, const struct block_rows *rows,
        uint32_t entity, uint32_t begin, uint32_t count);
