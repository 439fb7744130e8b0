#pragma once
/*
 * The byte layout of a block, private to lib/block*.c and its fuzzer; docs/block.md describes it.
 * A block is a fixed header and one zstd frame. The frame holds the body: entities, metric lists,
 * times, presence, a descriptor a column, and the columns' data, each a stream of varints.
 */

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/block.h"

/* The first byte is not text, so that a file of the wrong kind is told at once. */
#define BLOCK_MAGIC "\xd5STB"
#define BLOCK_MAGIC_BYTES 4u

/* The decompressed body: 4 bytes for each of BLOCK_VALUES_MAX values, which busy counters need
 * half of. It bounds what a decompression bomb can ask for. */
#define BLOCK_BODY_MAX (32u << 20)

#define BLOCK_FLAGS_KNOWN ((uint16_t)BLOCK_FLAG_GAP)

/* How far back an entity may point for its metric list: the encoder's search, not the format. */
#define BLOCK_LIST_WINDOW 64u

#define VARINT_MAX 10u /* bytes of a 64-bit value */

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
        uint32_t size;      /* of the block, header included */
        uint32_t body_size; /* decompressed */
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

/* Takes @body[frame->body_size] (from malloc), also on failure. Does not look at schema_hash. */
int block_parse(const struct block_frame *frame, uint8_t *body, struct block **ret);

static inline uint64_t zigzag(uint64_t value)
{
        return (value << 1) ^ (uint64_t)((int64_t)value >> 63);
}

static inline uint64_t unzigzag(uint64_t value)
{
        return (value >> 1) ^ -(value & 1);
}

static inline uint8_t *varint_write(uint8_t *at, uint64_t value)
{
        while (value >= 0x80) {
                *at++ = (uint8_t)value | 0x80;
                value >>= 7;
        }
        *at++ = (uint8_t)value;
        return at;
}

/* The bytes not yet read. */
struct cursor {
        const uint8_t *at;
        const uint8_t *end;
};

static inline size_t cursor_left(const struct cursor *cursor)
{
        return (size_t)(cursor->end - cursor->at);
}

/* -EBADMSG: cut, or more than 64 bits. */
static inline int cursor_varint(struct cursor *cursor, uint64_t *ret)
{
        uint64_t value = 0;

        for (unsigned shift = 0; shift < 64; shift += 7) {
                uint8_t byte;

                if (cursor->at == cursor->end)
                        return -EBADMSG;
                byte = *cursor->at++;
                if (shift == 63 && byte > 1)
                        return -EBADMSG;
                value |= (uint64_t)(byte & 0x7f) << shift;
                if (byte < 0x80) {
                        *ret = value;
                        return 0;
                }
        }
        return -EBADMSG;
}
