/*
 * The fuzzer of the block decoder. A checksum and a schema hash would stop nearly every random
 * input at the door, so they are made right here, and what lies behind them is what is tested.
 *
 * The first byte of an input chooses how the rest is used:
 *   0  a whole block, whose magic, version, length and checksum are set: block_open.
 *   1  a small header and a body: block_parse; what it accepts must be the same after being encoded
 *      and opened again.
 *   2  as 1, but the body is put into a zstd frame, and block_open must say what block_parse says.
 */

#include <stdlib.h>

#include "lib/block-format.h"

#define ROWS_MAX 512u
#define VALUES_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
        if (!condition)
                abort();
}

/* Everything that a block hands out, made into rows again. */
struct copy {
        struct block_rows rows;
        struct block_entity *entities;
        uint64_t *values;
        uint8_t *present;
};

static void copy_cleanup(struct copy *copy)
{
        free(copy->entities);
        free(copy->values);
        free(copy->present);
}

static void copy_columns(const struct block *block, struct copy *copy)
{
        uint32_t n_rows = copy->rows.header.rows, n_columns = copy->rows.n_columns;
        uint64_t *column = calloc(n_rows, sizeof(*column));

        check(column);
        for (uint32_t k = 0; k < n_columns; k++) {
                uint32_t found, entity = copy->rows.columns[k].entity;

                check(block_read_column(block, k, column) == 0);
                check(block_find_column(block, entity, copy->rows.columns[k].metric, &found) == 0);
                check(found <= k);
                for (uint32_t row = 0; row < n_rows; row++)
                        copy->values[(size_t)row * n_columns + k] = column[row];
        }
        free(column);
}

static void copy_block(const struct block *block, struct copy *ret)
{
        uint32_t n_rows, n_entities, n_columns;

        ret->rows.header = *block_get_header(block);
        n_rows = ret->rows.header.flags & BLOCK_FLAG_GAP ? 0 : ret->rows.header.rows;
        n_entities = ret->rows.n_entities = block_get_n_entities(block);
        n_columns = ret->rows.n_columns = block_get_n_columns(block);
        ret->entities = calloc(n_entities + 1, sizeof(*ret->entities));
        ret->values = calloc((size_t)n_rows * n_columns + 1, sizeof(*ret->values));
        ret->present = calloc((size_t)n_rows * n_entities + 1, 1);
        check(ret->entities && ret->values && ret->present);
        ret->rows.entities = ret->entities;
        ret->rows.columns = block_get_columns(block);
        ret->rows.times_us = block_get_times(block);
        ret->rows.values = ret->values;
        ret->rows.present = ret->present;
        for (uint32_t i = 0; i < n_entities; i++) {
                ret->entities[i] = *block_get_entity(block, i);
                check(strlen(ret->entities[i].name) <= BLOCK_NAME_MAX);
                check(strlen(ret->entities[i].identity) <= BLOCK_NAME_MAX);
                for (uint32_t row = 0; row < n_rows; row++)
                        ret->present[(size_t)row * n_entities + i] =
                                block_is_present(block, i, row);
        }
        if (n_rows > 0)
                copy_columns(block, ret);
}

/* An absent value may be any; the encoder makes it repeat. */
static void check_equal(const struct block_rows *a, const struct block_rows *b)
{
        check(a->n_entities == b->n_entities && a->n_columns == b->n_columns);
        check(a->header.rows == b->header.rows && a->header.last_us == b->header.last_us);
        check(block_schema_hash(a->entities, a->n_entities, a->columns, a->n_columns) ==
                b->header.schema_hash);
        for (uint32_t row = 0; row < a->header.rows; row++) {
                check(a->times_us[row] == b->times_us[row]);
                for (uint32_t k = 0; k < a->n_columns; k++) {
                        size_t at = (size_t)row * a->n_columns + k;
                        size_t flag = (size_t)row * a->n_entities + a->columns[k].entity;

                        check(a->present[flag] == b->present[flag]);
                        check(!a->present[flag] || a->values[at] == b->values[at]);
                }
        }
}

static void check_again(const struct block *block)
{
        struct copy first __attribute__((cleanup(copy_cleanup))) = {};
        struct copy second __attribute__((cleanup(copy_cleanup))) = {};
        CLEANUP(block) struct block *again = NULL;
        static struct block_encoder *encoder;
        const uint8_t *bytes;
        size_t size;

        copy_block(block, &first);
        if (first.rows.header.flags & BLOCK_FLAG_GAP)
                return;
        if (!encoder)
                check(block_encoder_new(&encoder) == 0);
        check(block_encode(encoder, &first.rows, &bytes, &size) == 0);
        check(block_open(bytes, size, &again) == 0);
        copy_block(again, &second);
        check_equal(&first.rows, &second.rows);
}

static bool is_small(const struct block_frame *frame)
{
        return frame->header.flags & BLOCK_FLAG_GAP ||
               (frame->header.rows <= ROWS_MAX &&
                       (uint64_t)frame->header.rows * frame->n_columns <= VALUES_MAX &&
                       (uint64_t)frame->header.rows * frame->n_entities <= VALUES_MAX);
}

static void try_block(const uint8_t *data, size_t size)
{
        CLEANUP(block) struct block *block = NULL;
        CLEANUP(mem) uint8_t *bytes = malloc(size + 1);
        struct block_frame frame;

        check(bytes);
        memcpy(bytes, data, size);
        if (size >= BLOCK_HEADER_BYTES) {
                uint32_t length = htole32((uint32_t)size);

                memcpy(bytes, block_magic, BLOCK_MAGIC_BYTES);
                memcpy(bytes + BLOCK_MAGIC_BYTES, "\1\0", 2);
                memcpy(bytes + 8, &length, sizeof(length));
                block_seal(bytes, size);
        }
        if (block_frame_read(bytes, size, &frame) < 0 || !is_small(&frame))
                return;
        if (block_open(bytes, size, &block) == 0)
                check_again(block);
}

/* "\x28\xb5\x2f\xfd", a descriptor (one segment, 4 bytes of size), the size, one raw zstd block. */
static size_t wrap(const uint8_t *body, uint32_t size, uint8_t *ret)
{
        uint32_t content = htole32(size), block = htole32(size << 3 | 1);

        memcpy(ret, "\x28\xb5\x2f\xfd\xa0", 5);
        memcpy(ret + 5, &content, 4);
        memcpy(ret + 9, &block, 3);
        memcpy(ret + 12, body, size);
        return 12 + size;
}

static void try_wrapped(struct block_frame *frame, const uint8_t *body, size_t size, bool good,
        const struct block *parsed)
{
        CLEANUP(block) struct block *block = NULL;
        CLEANUP(mem) uint8_t *bytes = malloc(BLOCK_HEADER_BYTES + 12 + size);

        check(bytes);
        if (parsed)
                frame->header.schema_hash = block_schema_hash(
                        block_get_n_entities(parsed) ? block_get_entity(parsed, 0) : NULL,
                        block_get_n_entities(parsed), block_get_columns(parsed),
                        block_get_n_columns(parsed));
        frame->size = (uint32_t)(BLOCK_HEADER_BYTES +
                                 wrap(body, (uint32_t)size, bytes + BLOCK_HEADER_BYTES));
        block_frame_write(frame, bytes);
        check((block_open(bytes, frame->size, &block) == 0) == good);
}

/* The small header: rows, entities, columns, bytes_size (2 each), interval (4), last (8). */
#define SMALL_HEADER_BYTES 20u

static void try_body(const uint8_t *data, size_t size, bool wrapped)
{
        CLEANUP(block) struct block *block = NULL;
        struct block_frame frame = {};
        uint16_t counts[4];
        uint32_t interval;
        uint8_t *body;
        bool good;

        if (size < SMALL_HEADER_BYTES || size > 65536)
                return;
        memcpy(counts, data, sizeof(counts));
        memcpy(&interval, data + 8, sizeof(interval));
        memcpy(&frame.header.last_us, data + 12, sizeof(frame.header.last_us));
        data += SMALL_HEADER_BYTES;
        size -= SMALL_HEADER_BYTES;
        frame.header.rows = counts[0];
        frame.n_entities = counts[1];
        frame.n_columns = counts[2];
        frame.bytes_size = counts[3];
        frame.header.interval_us = interval;
        memset(frame.header.cluster.bytes, 7, sizeof(frame.header.cluster.bytes));
        if (!is_small(&frame))
                return;
        body = calloc(1, size + BLOCK_BODY_SLACK);
        check(body);
        memcpy(body, data, size);
        good = block_parse(&frame, body, size, &block) == 0;
        if (wrapped)
                try_wrapped(&frame, data, size, good, block);
        else if (good)
                check_again(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size == 0)
                return 0;
        switch (data[0] % 3) {
        case 0:
                try_block(data + 1, size - 1);
                break;
        case 1:
                try_body(data + 1, size - 1, false);
                break;
        default:
                try_body(data + 1, size - 1, true);
        }
        return 0;
}
