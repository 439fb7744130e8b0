#include "lib/block-format.h"

#include <xxhash.h>

#include "lib/metric.h"

/* Offsets in the fixed header. */
enum {
        AT_MAGIC = 0,
        AT_VERSION = 4,
        AT_FLAGS = 6,
        AT_SIZE = 8,
        AT_BYTES_SIZE = 12,
        AT_CLUSTER = 16,
        AT_HOST = 32,
        AT_BOOT = 48,
        AT_SOURCE = 64,
        AT_RESERVED = 66,
        AT_ROWS = 68,
        AT_SCHEMA_HASH = 72,
        AT_SEQUENCE = 80,
        AT_INTERVAL = 88,
        AT_FIRST = 96,
        AT_LAST = 104,
        AT_ENTITIES = 112,
        AT_COLUMNS = 116,
        AT_CHECKSUM = 120,
};
_Static_assert(
        AT_CHECKSUM + sizeof(uint64_t) == BLOCK_HEADER_BYTES, "the checksum ends the header");

const uint16_t block_weighted_parts[BLOCK_PARTS_MAX] = {METRIC_DISK_READ_TIME,
        METRIC_DISK_WRITE_TIME, METRIC_DISK_DISCARD_TIME, METRIC_DISK_FLUSH_TIME};

static void put_u16(uint8_t *at, uint16_t value)
{
        value = htole16(value);
        memcpy(at, &value, sizeof(value));
}

static void put_u32(uint8_t *at, uint32_t value)
{
        value = htole32(value);
        memcpy(at, &value, sizeof(value));
}

static void put_u64(uint8_t *at, uint64_t value)
{
        value = htole64(value);
        memcpy(at, &value, sizeof(value));
}

static uint16_t get_u16(const uint8_t *at)
{
        uint16_t value;

        memcpy(&value, at, sizeof(value));
        return le16toh(value);
}

static uint32_t get_u32(const uint8_t *at)
{
        uint32_t value;

        memcpy(&value, at, sizeof(value));
        return le32toh(value);
}

static uint64_t get_u64(const uint8_t *at)
{
        uint64_t value;

        memcpy(&value, at, sizeof(value));
        return le64toh(value);
}

/* Over the header without the checksum, and over the frame. */
static uint64_t block_checksum(const uint8_t *bytes, size_t size)
{
        return XXH3_64bits_withSeed(bytes + BLOCK_HEADER_BYTES, size - BLOCK_HEADER_BYTES,
                XXH3_64bits(bytes, AT_CHECKSUM));
}

void block_seal(uint8_t *bytes, size_t size)
{
        put_u64(bytes + AT_CHECKSUM, block_checksum(bytes, size));
}

bool block_frame_fits(const struct block_frame *frame)
{
        const struct block_header *header = &frame->header;

        if (header->flags & ~BLOCK_FLAGS_KNOWN || header->first_us > header->last_us)
                return false;
        if (header->flags & BLOCK_FLAG_GAP)
                return frame->n_entities == 0 && frame->n_columns == 0 && frame->bytes_size == 0;
        return header->rows > 0 && header->rows <= BLOCK_ROWS_MAX &&
               frame->n_entities <= BLOCK_ENTITIES_MAX && frame->n_columns <= BLOCK_COLUMNS_MAX &&
               (uint64_t)header->rows * frame->n_columns <= BLOCK_VALUES_MAX &&
               frame->bytes_size <= BLOCK_BODY_MAX;
}

void block_frame_write(const struct block_frame *frame, uint8_t *bytes)
{
        const struct block_header *header = &frame->header;

        memcpy(bytes + AT_MAGIC, block_magic, BLOCK_MAGIC_BYTES);
        put_u16(bytes + AT_VERSION, BLOCK_VERSION);
        put_u16(bytes + AT_FLAGS, header->flags);
        put_u32(bytes + AT_SIZE, frame->size);
        put_u32(bytes + AT_BYTES_SIZE, frame->bytes_size);
        memcpy(bytes + AT_CLUSTER, header->cluster.bytes, sizeof(header->cluster.bytes));
        memcpy(bytes + AT_HOST, header->host.bytes, sizeof(header->host.bytes));
        memcpy(bytes + AT_BOOT, header->boot.bytes, sizeof(header->boot.bytes));
        put_u16(bytes + AT_SOURCE, header->source);
        put_u16(bytes + AT_RESERVED, 0);
        put_u32(bytes + AT_ROWS, header->rows);
        put_u64(bytes + AT_SCHEMA_HASH, header->schema_hash);
        put_u64(bytes + AT_SEQUENCE, header->sequence);
        put_u64(bytes + AT_INTERVAL, header->interval_us);
        put_u64(bytes + AT_FIRST, (uint64_t)header->first_us);
        put_u64(bytes + AT_LAST, (uint64_t)header->last_us);
        put_u32(bytes + AT_ENTITIES, frame->n_entities);
        put_u32(bytes + AT_COLUMNS, frame->n_columns);
        block_seal(bytes, frame->size);
}

static void frame_get(const uint8_t *bytes, struct block_frame *ret)
{
        struct block_header *header = &ret->header;

        ret->size = get_u32(bytes + AT_SIZE);
        ret->bytes_size = get_u32(bytes + AT_BYTES_SIZE);
        ret->n_entities = get_u32(bytes + AT_ENTITIES);
        ret->n_columns = get_u32(bytes + AT_COLUMNS);
        header->flags = get_u16(bytes + AT_FLAGS);
        memcpy(header->cluster.bytes, bytes + AT_CLUSTER, sizeof(header->cluster.bytes));
        memcpy(header->host.bytes, bytes + AT_HOST, sizeof(header->host.bytes));
        memcpy(header->boot.bytes, bytes + AT_BOOT, sizeof(header->boot.bytes));
        header->source = get_u16(bytes + AT_SOURCE);
        header->rows = get_u32(bytes + AT_ROWS);
        header->schema_hash = get_u64(bytes + AT_SCHEMA_HASH);
        header->sequence = get_u64(bytes + AT_SEQUENCE);
        header->interval_us = get_u64(bytes + AT_INTERVAL);
        header->first_us = (int64_t)get_u64(bytes + AT_FIRST);
        header->last_us = (int64_t)get_u64(bytes + AT_LAST);
}

int block_frame_read(const uint8_t *bytes, size_t size, struct block_frame *ret)
{
        struct block_frame frame = {};
        size_t known = size < BLOCK_MAGIC_BYTES ? size : BLOCK_MAGIC_BYTES;
        uint32_t length;

        if (size == 0 || memcmp(bytes, block_magic, known) != 0)
                return -EBADMSG;
        if (size >= AT_FLAGS && get_u16(bytes + AT_VERSION) != BLOCK_VERSION)
                return -EPROTONOSUPPORT;
        if (size < BLOCK_HEADER_BYTES)
                return -EMSGSIZE;
        length = get_u32(bytes + AT_SIZE);
        if (length > size || length > BLOCK_BYTES_MAX)
                return -EMSGSIZE;
        if (length < BLOCK_HEADER_BYTES ||
                get_u64(bytes + AT_CHECKSUM) != block_checksum(bytes, length))
                return -EBADMSG;
        frame_get(bytes, &frame);
        if (!block_frame_fits(&frame) || get_u16(bytes + AT_RESERVED) != 0)
                return -EBADMSG;
        *ret = frame;
        return 0;
}

int block_peek(const uint8_t *bytes, size_t size, struct block_header *ret_header, size_t *ret_size)
{
        struct block_frame frame;
        int r;

        r = block_frame_read(bytes, size, &frame);
        if (r < 0)
                return r;
        *ret_header = frame.header;
        *ret_size = frame.size;
        return 0;
}

static uint64_t hash_u64(uint64_t value, uint64_t hash)
{
        value = htole64(value);
        return XXH3_64bits_withSeed(&value, sizeof(value), hash);
}

/* The NUL is part of what is hashed: "ab", "c" is not "a", "bc". */
static uint64_t hash_text(const char *text, uint64_t hash)
{
        return XXH3_64bits_withSeed(text, strlen(text) + 1, hash);
}

uint64_t block_schema_hash(const struct block_entity *entities, uint32_t n_entities,
        const struct block_column *columns, uint32_t n_columns)
{
        uint64_t hash = hash_u64((uint64_t)n_columns << 32 | n_entities, 0);

        for (uint32_t i = 0; i < n_entities; i++) {
                hash = hash_text(entities[i].name, hash);
                hash = hash_text(entities[i].identity, hash);
                hash = XXH3_64bits_withSeed(
                        entities[i].cluster.bytes, sizeof(entities[i].cluster.bytes), hash);
                hash = hash_u64(entities[i].instance, hash);
        }
        for (uint32_t i = 0; i < n_columns; i++)
                hash = hash_u64((uint64_t)columns[i].entity << 16 | columns[i].metric, hash);
        return hash;
}
