#pragma once
/*
 * The byte layout of a block, private to lib/block*.c and its fuzzer; docs/block.md describes it.
 * A block is a fixed header and one zstd frame. The frame holds the body: the bytes of the table
 * (entities, metric lists, times, presence, a descriptor a column), the bytes of the data (the
 * columns' values), the bits of the table, the bits of the data.
 *
 * Every number is a byte, its token, and perhaps some bits. Tokens are few and unevenly spread, so
 * that zstd codes them well; the bits are noise and are kept away from them.
 */

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/block.h"

/* The first byte is not text, so that a file of the wrong kind is told at once. */
#define BLOCK_MAGIC_BYTES 4u
static const uint8_t block_magic[BLOCK_MAGIC_BYTES] = {0xd5, 'S', 'T', 'B'};

/* The decompressed body: 4 bytes for each of BLOCK_VALUES_MAX values, twice what busy counters
 * need. It bounds what a decompression bomb can ask for. */
#define BLOCK_BODY_MAX (32u << 20)

#define BLOCK_FLAGS_KNOWN ((uint16_t)BLOCK_FLAG_GAP)

/* How far back an entity may point for its metric list: the encoder's search, not the format. */
#define BLOCK_LIST_WINDOW 64u

/* Least bytes of an entity (two NUL, cluster, instance, list) and of a column (kind, first). */
#define BLOCK_ENTITY_MIN 5u
#define BLOCK_COLUMN_MIN 2u

enum block_cluster {
        BLOCK_CLUSTER_NONE = 0,
        BLOCK_CLUSTER_HEADER = 1, /* the header's */
        BLOCK_CLUSTER_OWN = 2,    /* 16 bytes follow */
};

/* Times are stored as differences of this order of their deviation from first + row x interval. */
#define BLOCK_TIME_ORDER_MAX 2u

enum block_kind {
        BLOCK_KIND_CONSTANT = 1 << 0, /* just the first value */
        BLOCK_KIND_SIGNED = 1 << 1,   /* zig-zag; else no difference is negative */
        BLOCK_KIND_DIVISOR = 1 << 2,  /* differences were divided by a common divisor */
        BLOCK_KIND_DIRECT = 1 << 3,   /* differences to the first value, not to the previous */
        BLOCK_KIND_RESIDUAL = 1 << 4, /* of the weighted time, modulo 2^32 */
        BLOCK_KIND_ALL = (1 << 5) - 1,
};

/* What diskstats' weighted time is the sum of, but for rounding. */
#define BLOCK_PARTS_MAX 4u
extern const uint16_t block_weighted_parts[BLOCK_PARTS_MAX];

/* The fixed header with the members that a reader of blocks does not need. */
struct block_frame {
        struct block_header header;
        uint32_t size;       /* of the block, header included */
        uint32_t bytes_size; /* of the body's bytes; its bits follow */
        uint32_t n_entities;
        uint32_t n_columns;
};

/* Writes header and checksum in front of the frame that stands at @bytes + BLOCK_HEADER_BYTES. */
void block_frame_write(const struct block_frame *frame, uint8_t *bytes);
/* As block_peek. */
int block_frame_read(const uint8_t *bytes, size_t size, struct block_frame *ret);
/* Writes the checksum of the block of @size bytes at @bytes anew. */
void block_seal(uint8_t *bytes, size_t size);
/* Whether counts and flags are within the limits that encoder and decoder share. */
bool block_frame_fits(const struct block_frame *frame);

/*
 * The body of a block that block_frame_read found good: one zstd frame that says its size and keeps
 * to it. For block_parse.
 */
int block_unpack(const uint8_t *bytes, size_t size, uint8_t **ret_body, size_t *ret_size);

/*
 * Takes @body (from malloc), also on failure. It has @body_size bytes, and BLOCK_BODY_SLACK zeros
 * behind them that numbers are read into. Does not look at schema_hash.
 */
#define BLOCK_BODY_SLACK 16u
int block_parse(
        const struct block_frame *frame, uint8_t *body, size_t body_size, struct block **ret);

static inline uint64_t zigzag(uint64_t value)
{
        return (value << 1) ^ (uint64_t)((int64_t)value >> 63);
}

static inline uint64_t unzigzag(uint64_t value)
{
        return (value >> 1) ^ -(value & 1);
}

/*
 * A number below TOKEN_LITERALS is its own token. Another one of n bits has the token
 * TOKEN_LITERALS
 * - TOKEN_LITERAL_BITS - 1 + n, and its n - 1 bits below the highest one are stored as bits.
 */
#define TOKEN_LITERAL_BITS 5u
#define TOKEN_LITERALS (1u << TOKEN_LITERAL_BITS)
#define TOKEN_MAX (TOKEN_LITERALS + 63u - TOKEN_LITERAL_BITS)

/* How many bits belong to a token, at most 63. */
static inline unsigned token_bits(uint8_t token)
{
        return token < TOKEN_LITERALS ? 0 : token - TOKEN_LITERALS + TOKEN_LITERAL_BITS;
}

/* @count bits from bit @position on, lowest first; up to 15 bytes behind are read, not used. */
static inline uint64_t bits_read(const uint8_t *bits, uint64_t position, unsigned count)
{
        const uint8_t *at = bits + position / 8;
        unsigned skip = position % 8;
        uint64_t value;

        memcpy(&value, at, sizeof(value));
        value = le64toh(value) >> skip;
        if (skip + count > 64)
                value |= (uint64_t)at[8] << (64 - skip);
        return value & ((1ull << count) - 1);
}

/* The number of @token, whose bits are at *@position, which moves on. */
static inline uint64_t token_read(uint8_t token, const uint8_t *bits, uint64_t *position)
{
        unsigned count = token_bits(token);
        uint64_t value = count ? 1ull << count : token;

        value |= bits_read(bits, *position, count);
        *position += count;
        return value;
}

/* A column's data is a token for each row but the first; bits are found by a bit's position. */
struct block_layout {
        uint64_t first;
        uint64_t divisor;
        uint64_t position;
        const uint8_t *tokens;
        uint8_t kind;
};

/* Members that there is memory for: a decoder's block is used again and again. */
struct block_capacity {
        size_t body, entities, bitmaps, begins, columns, layouts, times;
};

struct block {
        struct block_capacity capacity;
        struct block_header header;
        uint32_t n_entities;
        uint32_t n_columns;
        uint8_t *body;       /* names, identities, bitmaps and tokens point into it */
        const uint8_t *bits; /* in it, too */
        struct block_entity *entities;
        const uint8_t **bitmaps; /* of an entity's presence; NULL when always present */
        uint32_t *begins;        /* [n_entities + 1], first column of each */
        struct block_column *columns;
        struct block_layout *layouts; /* [n_columns] */
        int64_t *times;
};
