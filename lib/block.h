#pragma once
/*
 * The block: samples of one source over some time, encoded once at the agent; the same bytes are
 * spooled, sent and stored. Columnar, self-describing, bounded, versioned, checked; little-endian.
 * docs/block.md has the byte layout. block_encode and block_open are pure: no clock, no file.
 *
 * A block has entities (block devices, OSDs, pools, NICs) and columns; a column is one metric of
 * one entity. Values are unsigned 64-bit; counters are raw totals. An entity may be absent in a row
 * (its socket did not answer): a missing sample is missing, never 0. Whatever changes the meaning
 * of a column (an entity comes or goes, or gets another identity or instance) starts a new block.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "lib/id.h"

#define BLOCK_VERSION 1u
#define BLOCK_ENTITIES_MAX 16384u   /* above the 10,000 devices of the largest known host */
#define BLOCK_COLUMNS_MAX 262144u   /* 16,384 entities x 16 metrics */
#define BLOCK_ROWS_MAX 4096u        /* density gains end at 512 rows */
#define BLOCK_VALUES_MAX (8u << 20) /* rows x columns: 64 MiB decoded */
#define BLOCK_NAME_MAX 255u         /* bytes of an entity's name or identity, without NUL */
#define BLOCK_BYTES_MAX (16u << 20) /* one encoded block */
#define BLOCK_HEADER_BYTES 128u     /* fixed part, readable without decompression */

enum block_flags {
        /*
         * No rows: the agent dropped header.rows rows (any number) between first_us and last_us,
         * which the caller gives. A gap has neither entities nor columns; those given are not
         * encoded.
         */
        BLOCK_FLAG_GAP = 1 << 0,
};

struct block_header {
        struct id cluster;    /* fsid when all entities are of one cluster, else zero */
        struct id host;       /* application-specific machine id or as configured */
        struct id boot;       /* of the sampled kernel */
        uint16_t source;      /* enum source_id, lib/metric.h */
        uint16_t flags;       /* enum block_flags */
        uint64_t schema_hash; /* over entities and columns; equal hash = same columns in same order
                               */
        uint64_t sequence;    /* unique and growing within (host, boot, source) */
        uint64_t interval_us; /* planned distance of rows */
        uint32_t rows;
        int64_t first_us; /* Unix time, microseconds, UTC, of the first and last row's read */
        int64_t last_us;
};

struct block_entity {
        const char *name;     /* "sda", "osd.3", "rbd" */
        const char *identity; /* what stays when the name moves: serial or WWN, osd uuid, pool id;
                                 may be "" */
        struct id cluster;    /* zero for what belongs to the node */
        uint64_t instance; /* changes when counters restart: process start time, device sequence; 0
                              if none */
};

struct block_column {
        uint32_t entity; /* index */
        uint16_t metric; /* enum metric_id */
};

/* Rows to encode. All arrays are the caller's and are only read. */
struct block_rows {
        struct block_header header; /* schema_hash, first_us, last_us are filled by block_encode */
        const struct block_entity *entities;
        uint32_t n_entities;
        const struct block_column *columns; /* grouped by entity, entities ascending */
        uint32_t n_columns;
        const int64_t *times_us; /* [header.rows], ascending */
        const uint64_t *values;  /* [header.rows][n_columns], row-major */
        const uint8_t *present;  /* [header.rows][n_entities], 0 or 1; NULL when all are present */
};

/* Reusable scratch memory and zstd contexts; one thread at a time. */
struct block_encoder;
int block_encoder_new(struct block_encoder **ret);
struct block_encoder *block_encoder_free(struct block_encoder *encoder);
DEFINE_CLEANUP(block_encoder, struct block_encoder *, block_encoder_free)

/*
 * Encodes @rows; *ret_bytes belongs to @encoder and is valid until its next use.
 * -EINVAL: a limit above is exceeded, times do not ascend, or a column is out of order. -ENOMEM.
 */
int block_encode(struct block_encoder *encoder, const struct block_rows *rows,
        const uint8_t **ret_bytes, size_t *ret_size);

/*
 * Reads the fixed header and the checksum of the block that begins at @bytes, without
 * decompression. *ret_size is the size of this block within @size. Several blocks may follow each
 * other. -EBADMSG: no magic, or a length or checksum that does not fit. -EPROTONOSUPPORT: another
 * version. -EMSGSIZE: the block says it is longer than @size or BLOCK_BYTES_MAX.
 */
int block_peek(
        const uint8_t *bytes, size_t size, struct block_header *ret_header, size_t *ret_size);

/* A decoded block; opaque, owns everything it hands out. */
struct block;

/* Checks everything and decompresses. @bytes is exactly one block. Errors as block_peek; -ENOMEM.
 */
int block_open(const uint8_t *bytes, size_t size, struct block **ret);
struct block *block_close(struct block *block);
DEFINE_CLEANUP(block, struct block *, block_close)

/*
 * For many blocks, one after the other: memory and zstd context stay, so that after the largest
 * block nothing is allocated any more. One thread at a time.
 */
struct block_decoder;
int block_decoder_new(struct block_decoder **ret);
struct block_decoder *block_decoder_free(struct block_decoder *decoder);
DEFINE_CLEANUP(block_decoder, struct block_decoder *, block_decoder_free)
/* As block_open; *ret belongs to @decoder and is valid until its next use, also a failing one. */
int block_decode(
        struct block_decoder *decoder, const uint8_t *bytes, size_t size, const struct block **ret);

const struct block_header *block_get_header(const struct block *block);
uint32_t block_get_n_entities(const struct block *block);
const struct block_entity *block_get_entity(const struct block *block, uint32_t index);
uint32_t block_get_n_columns(const struct block *block);
const struct block_column *block_get_columns(const struct block *block);
/* [header.rows]; NULL for a gap. */
const int64_t *block_get_times(const struct block *block);
/* The column of @metric of @entity; -ENOENT when the block has none. */
int block_find_column(
        const struct block *block, uint32_t entity, uint16_t metric, uint32_t *ret_column);
bool block_is_present(const struct block *block, uint32_t entity, uint32_t row);
/*
 * Decodes one column alone into @ret[header.rows]; also on failure @ret may have been written to.
 * Where the entity is absent the value before is repeated, or the first one that is present.
 * -EBADMSG when its bytes are damaged, -ENOENT when there is no such column.
 */
int block_read_column(const struct block *block, uint32_t column, uint64_t *ret);
/* Its first @rows alone, of header.rows at most. */
int block_read_column_rows(
        const struct block *block, uint32_t column, uint32_t rows, uint64_t *ret);

/* The hash over entities and columns that stands in the header. */
uint64_t block_schema_hash(const struct block_entity *entities, uint32_t n_entities,
        const struct block_column *columns, uint32_t n_columns);
