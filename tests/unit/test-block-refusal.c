#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "tests/unit/block-fixture.h"

#define FIXTURE struct fixture __attribute__((cleanup(fixture_cleanup)))

/* Offsets in the header, by hand: the test is to notice when the format changes. */
#define AT_VERSION 4
#define AT_FLAGS 6
#define AT_SIZE 8
#define AT_BYTES_SIZE 12
#define AT_RESERVED 66
#define AT_ROWS 68
#define AT_SCHEMA_HASH 72
#define AT_LAST 104
#define AT_ENTITIES 112
#define AT_COLUMNS 116

/* A small block with everything in it: entities, lists, jitter, absence, all kinds of columns. */
struct sample {
        uint8_t *bytes;
        size_t size;
};

static int make_sample(void **state)
{
        CLEANUP(block_encoder) struct block_encoder *encoder = NULL;
        struct sample *sample = calloc(1, sizeof(*sample));
        FIXTURE fixture = {};
        uint64_t seed = 11;
        const uint8_t *bytes;

        random_fixture(&fixture, &seed, 33, 4, 20);
        fixture.rows.present = fixture.present;
        if (!sample || block_encoder_new(&encoder) < 0 ||
                block_encode(encoder, &fixture.rows, &bytes, &sample->size) < 0)
                return -1;
        sample->bytes = malloc(sample->size);
        if (!sample->bytes)
                return -1;
        memcpy(sample->bytes, bytes, sample->size);
        *state = sample;
        return 0;
}

static int free_sample(void **state)
{
        struct sample *sample = *state;

        free(sample->bytes);
        free(sample);
        return 0;
}

/* What block_open says of exactly these bytes; an overread is seen by the sanitizer. */
static int open_copy(const uint8_t *bytes, size_t size)
{
        CLEANUP(block) struct block *block = NULL;
        CLEANUP(mem) uint8_t *copy = malloc(size ? size : 1);

        assert_non_null(copy);
        memcpy(copy, bytes, size);
        return block_open(copy, size, &block);
}

static int peek_copy(const uint8_t *bytes, size_t size)
{
        CLEANUP(mem) uint8_t *copy = malloc(size ? size : 1);
        struct block_header header;
        size_t peeked;

        assert_non_null(copy);
        memcpy(copy, bytes, size);
        return block_peek(copy, size, &header, &peeked);
}

static void refuses_a_block_cut_at_any_byte(void **state)
{
        const struct sample *sample = *state;

        assert_int_equal(open_copy(sample->bytes, sample->size), 0);
        assert_int_equal(open_copy(sample->bytes, 0), -EBADMSG);
        for (size_t size = 1; size < sample->size; size++) {
                assert_int_equal(peek_copy(sample->bytes, size), -EMSGSIZE);
                assert_int_equal(open_copy(sample->bytes, size), -EMSGSIZE);
        }
}

static void refuses_a_block_with_any_bit_flipped(void **state)
{
        const struct sample *sample = *state;

        for (size_t at = 0; at < sample->size; at++) {
                for (int bit = 0; bit < 8; bit++) {
                        int r;

                        sample->bytes[at] ^= (uint8_t)(1 << bit);
                        r = open_copy(sample->bytes, sample->size);
                        assert_true(r == -EBADMSG || r == -EPROTONOSUPPORT || r == -EMSGSIZE);
                        r = peek_copy(sample->bytes, sample->size);
                        assert_true(r == -EBADMSG || r == -EPROTONOSUPPORT || r == -EMSGSIZE);
                        sample->bytes[at] ^= (uint8_t)(1 << bit);
                }
        }
}

static void refuses_bytes_behind_the_block(void **state)
{
        const struct sample *sample = *state;
        CLEANUP(mem) uint8_t *longer = calloc(1, sample->size + 1);

        assert_non_null(longer);
        memcpy(longer, sample->bytes, sample->size);
        assert_int_equal(open_copy(longer, sample->size + 1), -EBADMSG);
        assert_int_equal(peek_copy(longer, sample->size + 1), 0);
}

/* Changes @size bytes at @at, makes the checksum right and gives what block_open says. */
static int open_changed(const struct sample *sample, size_t at, const void *value, size_t size)
{
        uint8_t before[8];
        int r;

        memcpy(before, sample->bytes + at, size);
        memcpy(sample->bytes + at, value, size);
        block_seal(sample->bytes, sample->size);
        r = open_copy(sample->bytes, sample->size);
        memcpy(sample->bytes + at, before, size);
        block_seal(sample->bytes, sample->size);
        return r;
}

static int open_changed_u32(const struct sample *sample, size_t at, uint32_t value)
{
        value = htole32(value);
        return open_changed(sample, at, &value, sizeof(value));
}

static void refuses_another_version(void **state)
{
        assert_int_equal(open_changed(*state, AT_VERSION, "\2\0", 2), -EPROTONOSUPPORT);
        assert_int_equal(open_changed(*state, AT_VERSION, "\0\0", 2), -EPROTONOSUPPORT);
        assert_int_equal(open_changed(*state, AT_VERSION, "\1\1", 2), -EPROTONOSUPPORT);
}

static void refuses_a_block_that_says_it_is_too_long(void **state)
{
        static uint8_t bytes[BLOCK_BYTES_MAX + 1];
        const struct sample *sample = *state;
        uint32_t size = htole32(sizeof(bytes));

        assert_int_equal(open_changed_u32(sample, AT_SIZE, UINT32_MAX), -EMSGSIZE);
        assert_int_equal(open_changed_u32(sample, AT_SIZE, (uint32_t)sample->size + 1), -EMSGSIZE);
        memcpy(bytes, sample->bytes, BLOCK_HEADER_BYTES);
        memcpy(bytes + AT_SIZE, &size, sizeof(size));
        block_seal(bytes, sizeof(bytes));
        assert_int_equal(peek_copy(bytes, sizeof(bytes)), -EMSGSIZE);
        assert_int_equal(open_copy(bytes, sizeof(bytes)), -EMSGSIZE);
}

static void refuses_a_header_that_breaks_a_limit(void **state)
{
        static const struct {
                size_t at;
                uint32_t value;
        } changes[] = {
                {AT_SIZE, BLOCK_HEADER_BYTES - 1},
                {AT_SIZE, 0},
                {AT_BYTES_SIZE, BLOCK_BODY_MAX + 1},
                {AT_BYTES_SIZE, UINT32_MAX},
                {AT_BYTES_SIZE, 0},
                {AT_ROWS, 0},
                {AT_ROWS, BLOCK_ROWS_MAX + 1},
                {AT_ROWS, UINT32_MAX},
                {AT_ENTITIES, BLOCK_ENTITIES_MAX + 1},
                {AT_ENTITIES, UINT32_MAX},
                {AT_COLUMNS, BLOCK_COLUMNS_MAX + 1},
                {AT_COLUMNS, UINT32_MAX},
                /* Within the limits, but more than the bytes can hold. */
                {AT_ENTITIES, BLOCK_ENTITIES_MAX},
                {AT_COLUMNS, BLOCK_COLUMNS_MAX},
        };

        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
                assert_int_equal(
                        open_changed_u32(*state, changes[i].at, changes[i].value), -EBADMSG);
        assert_int_equal(open_changed(*state, AT_FLAGS, "\2\0", 2), -EBADMSG);
        assert_int_equal(open_changed(*state, AT_FLAGS, "\1\0", 2), -EBADMSG);
        assert_int_equal(open_changed(*state, AT_RESERVED, "\1\0", 2), -EBADMSG);
        assert_int_equal(open_changed(*state, AT_SCHEMA_HASH, "\0\0\0\0", 4), -EBADMSG);
        assert_int_equal(open_changed(*state, AT_LAST, "\0\0\0\0\0\0\0\0", 8), -EBADMSG);
        assert_int_equal(open_changed(*state, AT_LAST, "\0\0\0\0\0\0\0\x80", 8), -EBADMSG);
}

/* The header of the sample before a zstd frame made by hand. */
static int open_with_frame(const struct sample *sample, const char *frame, size_t size)
{
        uint8_t bytes[BLOCK_HEADER_BYTES + 64];
        uint32_t length = htole32((uint32_t)(BLOCK_HEADER_BYTES + size));

        memcpy(bytes, sample->bytes, BLOCK_HEADER_BYTES);
        memcpy(bytes + BLOCK_HEADER_BYTES, frame, size);
        memcpy(bytes + AT_SIZE, &length, sizeof(length));
        block_seal(bytes, BLOCK_HEADER_BYTES + size);
        return open_copy(bytes, BLOCK_HEADER_BYTES + size);
}

#define ZSTD_MAGIC "\x28\xb5\x2f\xfd"

static void refuses_a_decompression_bomb(void **state)
{
        /* One run of 2^21 - 1 bytes that says it is 16 TiB, 32 MiB + 1, or nothing of its size. */
        static const char huge[] = ZSTD_MAGIC "\xe0\0\0\0\0\0\x10\0\0\xfb\xff\xff\0";
        static const char over[] = ZSTD_MAGIC "\xa0\1\0\0\2\xfb\xff\xff\0";
        static const char silent[] = ZSTD_MAGIC "\0\x88\xfb\xff\xff\0";
        /* Says less than it holds: 4 bytes, but a run of 100,000. */
        static const char less[] = ZSTD_MAGIC "\x20\4\3\x35\x0c\0";
        static const char skippable[] = "\x50\x2a\x4d\x18\0\0\0\0";

        assert_int_equal(open_with_frame(*state, huge, sizeof(huge) - 1), -EBADMSG);
        assert_int_equal(open_with_frame(*state, over, sizeof(over) - 1), -EBADMSG);
        assert_int_equal(open_with_frame(*state, silent, sizeof(silent) - 1), -EBADMSG);
        assert_int_equal(open_with_frame(*state, less, sizeof(less) - 1), -EBADMSG);
        assert_int_equal(open_with_frame(*state, skippable, sizeof(skippable) - 1), -EBADMSG);
        assert_int_equal(open_with_frame(*state, "", 0), -EBADMSG);
}

/* A second frame, even one that zstd skips, is not of the block. */
static void refuses_a_second_frame(void **state)
{
        static const char skippable[] = "\x50\x2a\x4d\x18\0\0\0";
        const struct sample *sample = *state;
        size_t size = sample->size + sizeof(skippable);
        CLEANUP(mem) uint8_t *bytes = malloc(size);
        uint32_t length = htole32((uint32_t)size);

        assert_non_null(bytes);
        memcpy(bytes, sample->bytes, sample->size);
        memcpy(bytes + sample->size, skippable, sizeof(skippable));
        memcpy(bytes + AT_SIZE, &length, sizeof(length));
        block_seal(bytes, size);
        assert_int_equal(open_copy(bytes, size), -EBADMSG);
}

/* Behind checksum and compression, from here on. Bytes and bits may each be cut. */
static void refuses_a_body_cut_at_any_byte(void **state)
{
        const struct sample *sample = *state;
        CLEANUP(mem) uint8_t *body = NULL;
        struct block_frame frame;
        size_t size;

        assert_int_equal(block_frame_read(sample->bytes, sample->size, &frame), 0);
        assert_int_equal(block_unpack(sample->bytes, sample->size, &body, &size), 0);
        for (size_t cut = 0; cut < size; cut++) {
                CLEANUP(block) struct block *block = NULL;
                struct block_frame shorter = frame;
                uint8_t *copy = calloc(1, cut + BLOCK_BODY_SLACK);

                assert_non_null(copy);
                memcpy(copy, body, cut);
                if (shorter.bytes_size > cut)
                        shorter.bytes_size = (uint32_t)cut;
                assert_int_equal(block_parse(&shorter, copy, cut, &block), -EBADMSG);
        }
}

/* Every body, however damaged, is refused or can be read. */
static void survives_every_change_of_a_byte_of_the_body(void **state)
{
        const struct sample *sample = *state;
        CLEANUP(mem) uint8_t *body = NULL;
        struct block_frame frame;
        size_t size, accepted = 0, refused = 0;
        uint64_t column[33];

        assert_int_equal(block_frame_read(sample->bytes, sample->size, &frame), 0);
        assert_int_equal(block_unpack(sample->bytes, sample->size, &body, &size), 0);
        for (size_t at = 0; at < size; at++) {
                for (unsigned value = 0; value < 256; value += 5) {
                        CLEANUP(block) struct block *block = NULL;
                        uint8_t *copy = malloc(size + BLOCK_BODY_SLACK);

                        assert_non_null(copy);
                        memcpy(copy, body, size + BLOCK_BODY_SLACK);
                        copy[at] = (uint8_t)value;
                        if (block_parse(&frame, copy, size, &block) < 0) {
                                refused++;
                                continue;
                        }
                        accepted++;
                        for (uint32_t k = 0; k < block_get_n_columns(block); k++)
                                assert_int_equal(block_read_column(block, k, column), 0);
                }
        }
        assert_true(accepted > 0 && refused > 0);
}

static void peeks_without_decompression_at_blocks_that_follow_each_other(void **state)
{
        const struct sample *sample = *state;
        CLEANUP(mem) uint8_t *bytes = malloc(3 * sample->size);
        struct block_header header;
        size_t size, at = 0;

        assert_non_null(bytes);
        for (size_t i = 0; i < 3; i++) {
                uint8_t *block = bytes + i * sample->size;

                memcpy(block, sample->bytes, sample->size);
                memset(block + BLOCK_HEADER_BYTES, 0xff, sample->size - BLOCK_HEADER_BYTES);
                block[80] = (uint8_t)i; /* sequence */
                block_seal(block, sample->size);
        }
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(block_peek(bytes + at, 3 * sample->size - at, &header, &size), 0);
                assert_int_equal(header.sequence & 0xff, i);
                assert_int_equal(size, sample->size);
                assert_int_equal(open_copy(bytes + at, size), -EBADMSG);
                at += size;
        }
        assert_int_equal(at, 3 * sample->size);
}

static int encode(struct block_encoder *encoder, const struct fixture *fixture)
{
        const uint8_t *bytes;
        size_t size;

        return block_encode(encoder, &fixture->rows, &bytes, &size);
}

static void does_not_encode_what_breaks_a_limit(void **state)
{
        CLEANUP(block_encoder) struct block_encoder *encoder = NULL;
        char name[BLOCK_NAME_MAX + 2];
        FIXTURE fixture = {};
        uint64_t seed = 4;

        (void)state;
        memset(name, 'x', sizeof(name));
        name[BLOCK_NAME_MAX + 1] = '\0';
        assert_int_equal(block_encoder_new(&encoder), 0);
        random_fixture(&fixture, &seed, 10, 3, 30);
        assert_int_equal(encode(encoder, &fixture), 0);

        fixture.rows.header.rows = 0;
        assert_int_equal(encode(encoder, &fixture), -EINVAL);
        fixture.rows.header.rows = BLOCK_ROWS_MAX + 1;
        fixture.rows.times_us = calloc(BLOCK_ROWS_MAX + 1, sizeof(int64_t));
        assert_int_equal(encode(encoder, &fixture), -EINVAL);
        free((void *)fixture.rows.times_us);
        fixture.rows.times_us = fixture.times;
        fixture.rows.header.rows = 10;

        fixture.rows.n_entities = BLOCK_ENTITIES_MAX + 1;
        assert_int_equal(encode(encoder, &fixture), -EINVAL);
        fixture.rows.n_entities = 3;
        fixture.rows.n_columns = BLOCK_COLUMNS_MAX + 1;
        assert_int_equal(encode(encoder, &fixture), -EINVAL);
        fixture.rows.n_columns = 30;

        fixture.entities[1].name = name;
        assert_int_equal(encode(encoder, &fixture), -EINVAL);
        fixture.entities[1].name = "";
        fixture.entities[1].identity = name;
        assert_int_equal(encode(encoder, &fixture), -EINVAL);
        name[BLOCK_NAME_MAX] = '\0';
        assert_int_equal(encode(encoder, &fixture), 0);

        fixture.rows.header.flags = 2;
        assert_int_equal(encode(encoder, &fixture), -EINVAL);
}

static void does_not_encode_times_or_columns_out_of_order(void **state)
{
        CLEANUP(block_encoder) struct block_encoder *encoder = NULL;
        FIXTURE fixture = {};
        uint64_t seed = 4;
        int64_t time;

        (void)state;
        assert_int_equal(block_encoder_new(&encoder), 0);
        random_fixture(&fixture, &seed, 10, 3, 30);
        time = fixture.times[5];
        fixture.times[5] = fixture.times[4];
        assert_int_equal(encode(encoder, &fixture), -EINVAL);
        fixture.times[5] = fixture.times[4] - 1;
        assert_int_equal(encode(encoder, &fixture), -EINVAL);
        fixture.times[5] = time;
        assert_int_equal(encode(encoder, &fixture), 0);

        for (uint32_t k = 0; k < 30; k++)
                fixture.columns[k].entity = k / 10;
        assert_int_equal(encode(encoder, &fixture), 0);
        fixture.columns[15].entity = 0;
        assert_int_equal(encode(encoder, &fixture), -EINVAL);
        fixture.columns[15].entity = 1;
        fixture.columns[29].entity = 3;
        assert_int_equal(encode(encoder, &fixture), -EINVAL);
}

static void does_not_encode_more_than_a_block_may_hold(void **state)
{
        CLEANUP(block_encoder) struct block_encoder *encoder = NULL;
        FIXTURE fixture = {};
        uint64_t seed = 4;

        (void)state;
        assert_int_equal(block_encoder_new(&encoder), 0);
        fixture_allocate(&fixture, 2048, 1, 2048);
        fixture.entities[0].name = fixture.entities[0].identity = "";
        for (int64_t row = 0; row < 2048; row++)
                fixture.times[row] = row;
        for (size_t i = 0; i < 2048 * 2048; i++)
                fixture.values[i] = next(&seed);
        assert_int_equal(encode(encoder, &fixture), -EINVAL);
        for (size_t i = 0; i < 2048 * 2048; i++)
                fixture.values[i] >>= 48;
        assert_int_equal(encode(encoder, &fixture), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(refuses_a_block_cut_at_any_byte),
                cmocka_unit_test(refuses_a_block_with_any_bit_flipped),
                cmocka_unit_test(refuses_bytes_behind_the_block),
                cmocka_unit_test(refuses_another_version),
                cmocka_unit_test(refuses_a_block_that_says_it_is_too_long),
                cmocka_unit_test(refuses_a_header_that_breaks_a_limit),
                cmocka_unit_test(refuses_a_decompression_bomb),
                cmocka_unit_test(refuses_a_second_frame),
                cmocka_unit_test(refuses_a_body_cut_at_any_byte),
                cmocka_unit_test(survives_every_change_of_a_byte_of_the_body),
                cmocka_unit_test(peeks_without_decompression_at_blocks_that_follow_each_other),
                cmocka_unit_test(does_not_encode_what_breaks_a_limit),
                cmocka_unit_test(does_not_encode_times_or_columns_out_of_order),
                cmocka_unit_test(does_not_encode_more_than_a_block_may_hold),
        };

        return cmocka_run_group_tests(tests, make_sample, free_sample);
}
