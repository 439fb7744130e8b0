#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "tests/unit/block-fixture.h"

#define FIXTURE struct fixture __attribute__((cleanup(fixture_cleanup)))

static uint64_t seed_of_run(void)
{
        const char *text = getenv("STRATA_SEED");
        uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);

        print_message("# STRATA_SEED=%llu\n", (unsigned long long)seed);
        return seed;
}

static int make_encoder(void **state)
{
        return block_encoder_new((struct block_encoder **)state);
}

static int free_encoder(void **state)
{
        block_encoder_free(*state);
        return 0;
}

static void assert_same_schema(const struct block *block, const struct block_rows *rows)
{
        uint32_t found;

        assert_int_equal(block_get_n_entities(block), rows->n_entities);
        assert_int_equal(block_get_n_columns(block), rows->n_columns);
        for (uint32_t i = 0; i < rows->n_entities; i++) {
                const struct block_entity *entity = block_get_entity(block, i);

                assert_string_equal(entity->name, rows->entities[i].name);
                assert_string_equal(entity->identity, rows->entities[i].identity);
                assert_memory_equal(
                        &entity->cluster, &rows->entities[i].cluster, sizeof(struct id));
                assert_true(entity->instance == rows->entities[i].instance);
        }
        for (uint32_t k = 0; k < rows->n_columns; k++) {
                const struct block_column *column = &rows->columns[k];

                assert_int_equal(block_get_columns(block)[k].entity, column->entity);
                assert_int_equal(block_get_columns(block)[k].metric, column->metric);
                if (k % 64 != 0)
                        continue;
                assert_int_equal(
                        block_find_column(block, column->entity, column->metric, &found), 0);
                assert_int_equal(rows->columns[found].entity, column->entity);
                assert_int_equal(rows->columns[found].metric, column->metric);
        }
}

static bool was_present(const struct block_rows *rows, uint32_t entity, uint32_t row)
{
        return !rows->present || rows->present[(size_t)row * rows->n_entities + entity];
}

static void assert_same_values(const struct block *block, const struct block_rows *rows)
{
        static uint64_t column[BLOCK_ROWS_MAX];

        for (uint32_t k = 0; k < rows->n_columns; k++) {
                uint32_t entity = rows->columns[k].entity;

                assert_int_equal(block_read_column(block, k, column), 0);
                for (uint32_t row = 0; row < rows->header.rows; row++) {
                        uint64_t value = rows->values[(size_t)row * rows->n_columns + k];
                        bool present = was_present(rows, entity, row);

                        if (block_is_present(block, entity, row) != present)
                                fail_msg("entity %u row %u: presence", entity, row);
                        if (present && column[row] != value)
                                fail_msg("column %u row %u: value", k, row);
                        if (!present && row > 0 && column[row] != column[row - 1])
                                fail_msg(
                                        "column %u row %u: absent, but not the one before", k, row);
                }
        }
}

static void assert_decodes(const uint8_t *bytes, size_t size, const struct block_rows *rows)
{
        CLEANUP(block) struct block *block = NULL;
        struct block_header expected = rows->header, peeked;
        size_t peeked_size;

        expected.first_us = rows->times_us[0];
        expected.last_us = rows->times_us[rows->header.rows - 1];
        expected.schema_hash =
                block_schema_hash(rows->entities, rows->n_entities, rows->columns, rows->n_columns);
        assert_int_equal(block_peek(bytes, size, &peeked, &peeked_size), 0);
        assert_int_equal(peeked_size, size);
        assert_memory_equal(&peeked, &expected, sizeof(expected));
        assert_int_equal(block_open(bytes, size, &block), 0);
        assert_memory_equal(block_get_header(block), &expected, sizeof(expected));
        assert_memory_equal(
                block_get_times(block), rows->times_us, rows->header.rows * sizeof(int64_t));
        assert_same_schema(block, rows);
        assert_same_values(block, rows);
}

/* Encodes, checks that it decodes to the same, and gives the size. */
static size_t round_trip(struct block_encoder *encoder, const struct block_rows *rows)
{
        const uint8_t *bytes;
        size_t size;

        assert_int_equal(block_encode(encoder, rows, &bytes, &size), 0);
        assert_decodes(bytes, size, rows);
        return size;
}

static void decodes_to_what_was_encoded_for_random_rows(void **state)
{
        uint64_t seed = seed_of_run();

        for (int i = 0; i < 600; i++) {
                FIXTURE fixture = {};
                uint32_t n_entities = (uint32_t)below(&seed, 40);
                uint32_t n_columns = n_entities ? (uint32_t)below(&seed, n_entities * 20) : 0;
                uint32_t n_rows = 1 + (uint32_t)below(&seed, i % 8 ? 20 : 600);

                random_fixture(&fixture, &seed, n_rows, n_entities, n_columns);
                round_trip(*state, &fixture.rows);
        }
}

/* Also after a block that is broken, and after a gap. */
static void a_decoder_gives_of_block_after_block_what_block_open_gives(void **state)
{
        CLEANUP(block_decoder) struct block_decoder *decoder = NULL;
        uint64_t seed = seed_of_run();

        assert_int_equal(block_decoder_new(&decoder), 0);
        for (int i = 0; i < 300; i++) {
                FIXTURE fixture = {};
                const struct block *block = NULL;
                uint32_t n_entities = (uint32_t)below(&seed, 40);
                uint32_t n_columns = n_entities ? (uint32_t)below(&seed, n_entities * 20) : 0;
                struct block_rows gap = {.header = {.flags = BLOCK_FLAG_GAP, .rows = 1}};
                const uint8_t *bytes;
                size_t size;

                random_fixture(
                        &fixture, &seed, 1 + (uint32_t)below(&seed, 90), n_entities, n_columns);
                assert_int_equal(block_encode(*state, &fixture.rows, &bytes, &size), 0);
                assert_int_equal(block_decode(decoder, bytes, size, &block), 0);
                assert_same_schema(block, &fixture.rows);
                assert_same_values(block, &fixture.rows);
                if (i % 3 == 0) {
                        ((uint8_t *)bytes)[below(&seed, size)] ^= 1;
                        assert_true(block_decode(decoder, bytes, size, &block) < 0);
                }
                if (i % 5 == 0) {
                        assert_int_equal(block_encode(*state, &gap, &bytes, &size), 0);
                        assert_int_equal(block_decode(decoder, bytes, size, &block), 0);
                        assert_null(block_get_times(block));
                        assert_int_equal(block_get_n_columns(block), 0);
                }
        }
}

static void decodes_blocks_as_large_as_the_limits(void **state)
{
        static const uint32_t sizes[][3] = {
                {1, 0, 0},
                {BLOCK_ROWS_MAX, 2, 30},
                {2, BLOCK_ENTITIES_MAX, BLOCK_ENTITIES_MAX},
                {1, 100, BLOCK_COLUMNS_MAX},
                {BLOCK_ROWS_MAX, 10, BLOCK_VALUES_MAX / BLOCK_ROWS_MAX / 4},
        };
        uint64_t seed = seed_of_run();

        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                FIXTURE fixture = {};

                random_fixture(&fixture, &seed, sizes[i][0], sizes[i][1], sizes[i][2]);
                /* Random values are denser than a block may be: narrow them. */
                for (size_t k = 0; k < (size_t)sizes[i][0] * sizes[i][2]; k++)
                        fixture.values[k] &= 0xff;
                round_trip(*state, &fixture.rows);
        }
}

/* One entity, one column of @metric, a row a second. */
static void make_column(
        struct fixture *fixture, const uint64_t *values, uint32_t n_rows, uint16_t metric)
{
        fixture_allocate(fixture, n_rows, 1, 1);
        fixture->rows.header.interval_us = 1000000;
        fixture->entities[0].name = "sda";
        fixture->entities[0].identity = "wwn:1";
        fixture->columns[0].metric = metric;
        for (uint32_t row = 0; row < n_rows; row++) {
                fixture->times[row] = 1796027570000000 + row * 1000000ll;
                fixture->values[row] = values[row];
        }
}

static void keeps_counters_that_wrap_and_reset(void **state)
{
        static const uint64_t columns[][6] = {
                {UINT32_MAX - 9, UINT32_MAX - 1, UINT32_MAX, 3, 10, 20},
                {UINT64_MAX - 9, UINT64_MAX - 1, UINT64_MAX, 3, 10, 20},
                {8000, 16000, 24000, 0, 8, 16},
                {0, UINT64_MAX, 0, UINT64_MAX, 0, UINT64_MAX},
                {0, 1ull << 63, 0, 1ull << 63, 0, 1ull << 63},
                {1ull << 63, (1ull << 63) - 1, 1ull << 63, 0, 5, 1},
        };

        for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
                FIXTURE fixture = {};

                make_column(&fixture, columns[i], 6, METRIC_DISK_READ_OPS);
                round_trip(*state, &fixture.rows);
        }
}

static void finds_the_common_divisor_of_a_column(void **state)
{
        uint64_t small[400], large[400], seed = 5;
        FIXTURE plain = {};
        FIXTURE multiplied = {};

        for (uint32_t i = 0; i < 400; i++) {
                small[i] = (i ? small[i - 1] : 0) + below(&seed, 1000);
                large[i] = small[i] * 8 * 4095;
        }
        make_column(&plain, small, 400, METRIC_DISK_READ_SECTORS);
        make_column(&multiplied, large, 400, METRIC_DISK_READ_SECTORS);
        assert_in_range(
                round_trip(*state, &multiplied.rows), 1, round_trip(*state, &plain.rows) + 8);
}

static void stores_weighted_time_as_what_the_times_leave(void **state)
{
        enum { ROWS = 300, COLUMNS = 5 };
        uint64_t seed = 3, last[4] = {UINT32_MAX - 5, 0, 70000, UINT32_MAX - 90000};
        FIXTURE fixture = {};
        size_t other, weighted;

        fixture_allocate(&fixture, ROWS, 1, COLUMNS);
        fixture.entities[0].name = "sda";
        fixture.entities[0].identity = "";
        for (uint32_t k = 0; k < 4; k++)
                fixture.columns[k].metric = block_weighted_parts[k];
        for (uint32_t row = 0; row < ROWS; row++) {
                uint64_t *values = fixture.values + (size_t)row * COLUMNS, sum = 0;

                fixture.times[row] = row * 1000000ll;
                for (uint32_t k = 0; k < 4; k++) {
                        last[k] = (uint32_t)(last[k] + below(&seed, 900));
                        values[k] = last[k];
                        sum += values[k];
                }
                values[4] = (uint32_t)(sum + below(&seed, 2));
        }
        fixture.columns[4].metric = METRIC_DISK_BUSY_TIME;
        other = round_trip(*state, &fixture.rows);
        fixture.columns[4].metric = METRIC_DISK_WEIGHTED_TIME;
        weighted = round_trip(*state, &fixture.rows);
        assert_in_range(weighted, 1, other - ROWS);
        /* Wider than 32 bits it is not the kernel's, and is kept as it is. */
        fixture.values[4] += 1ull << 40;
        round_trip(*state, &fixture.rows);
}

static void absent_values_cost_nothing(void **state)
{
        uint64_t constant[100], garbage[100], seed = 9;
        FIXTURE quiet = {};
        FIXTURE noisy = {};
        size_t quiet_size, noisy_size;
        const uint8_t *bytes;

        for (uint32_t row = 0; row < 100; row++) {
                constant[row] = 42;
                garbage[row] = row % 3 ? 42 : next(&seed);
        }
        make_column(&quiet, constant, 100, METRIC_DISK_READ_OPS);
        make_column(&noisy, garbage, 100, METRIC_DISK_READ_OPS);
        for (uint32_t row = 0; row < 100; row++)
                quiet.present[row] = noisy.present[row] = row % 3 != 0;
        quiet.rows.present = quiet.present;
        noisy.rows.present = noisy.present;
        assert_int_equal(block_encode(*state, &quiet.rows, &bytes, &quiet_size), 0);
        noisy_size = round_trip(*state, &noisy.rows);
        assert_int_equal(noisy_size, quiet_size);
}

static void equal_rows_give_equal_bytes(void **state)
{
        uint64_t seed = seed_of_run();

        for (int i = 0; i < 50; i++) {
                CLEANUP(block_encoder) struct block_encoder *fresh = NULL;
                FIXTURE fixture = {};
                const uint8_t *used_bytes, *fresh_bytes;
                size_t used_size, fresh_size;

                random_fixture(&fixture, &seed, 1 + (uint32_t)below(&seed, 300), 6, 90);
                assert_int_equal(block_encoder_new(&fresh), 0);
                assert_int_equal(block_encode(fresh, &fixture.rows, &fresh_bytes, &fresh_size), 0);
                assert_int_equal(block_encode(*state, &fixture.rows, &used_bytes, &used_size), 0);
                assert_int_equal(used_size, fresh_size);
                assert_memory_equal(used_bytes, fresh_bytes, fresh_size);
        }
}

static void a_gap_has_a_header_only(void **state)
{
        CLEANUP(block) struct block *block = NULL;
        struct block_rows rows = {.header = {.flags = BLOCK_FLAG_GAP,
                                          .source = SOURCE_OSD,
                                          .rows = 1000000,
                                          .first_us = 5000000,
                                          .last_us = 1000005000000}};
        const uint8_t *bytes;
        uint32_t column;
        uint64_t value;
        size_t size;

        assert_int_equal(block_encode(*state, &rows, &bytes, &size), 0);
        assert_int_equal(size, BLOCK_HEADER_BYTES);
        assert_int_equal(block_open(bytes, size, &block), 0);
        assert_int_equal(block_get_header(block)->rows, 1000000);
        assert_true(block_get_header(block)->first_us == 5000000);
        assert_true(block_get_header(block)->last_us == 1000005000000);
        assert_int_equal(block_get_n_entities(block), 0);
        assert_int_equal(block_get_n_columns(block), 0);
        assert_null(block_get_times(block));
        assert_false(block_is_present(block, 0, 0));
        assert_int_equal(block_find_column(block, 0, METRIC_OSD_OP_R, &column), -ENOENT);
        assert_int_equal(block_read_column(block, 0, &value), -ENOENT);
}

/* Reads the block device @name of the fixture as rows; see tests/fixtures. */
static uint32_t read_trace(const char *name, uint64_t (*ret)[17], uint32_t limit)
{
        char line[512], device[64], command[512];
        FILE *file;
        uint32_t n = 0;
        int used;

        assert_non_null(getenv("STRATA_FIXTURES"));
        snprintf(command, sizeof(command), "gzip -dc '%s/diskstats-1s.txt.gz'",
                getenv("STRATA_FIXTURES"));
        file = popen(command, "re");
        assert_non_null(file);
        while (n < limit && fgets(line, sizeof(line), file)) {
                char *at = line;

                if (sscanf(line, "%*u %*u %63s%n", device, &used) != 1 || strcmp(device, name) != 0)
                        continue;
                at += used;
                for (int k = 0; k < 17; k++)
                        ret[n][k] = strtoull(at, &at, 10);
                n++;
        }
        pclose(file);
        return n;
}

static void stores_a_recorded_busy_disk_in_0_45_bytes_a_value(void **state)
{
        static uint64_t values[300][17];
        FIXTURE fixture = {};
        size_t size;

        assert_int_equal(read_trace("vda", values, 300), 300);
        fixture_allocate(&fixture, 300, 1, 17);
        fixture.rows.header.interval_us = 1000000;
        fixture.entities[0].name = "vda";
        fixture.entities[0].identity = "";
        memcpy(fixture.values, values, sizeof(values));
        for (uint16_t k = 0; k < 17; k++)
                fixture.columns[k].metric = METRIC_DISK_READ_OPS + k;
        for (uint32_t row = 0; row < 300; row++)
                fixture.times[row] = row * 1000000ll;
        size = round_trip(*state, &fixture.rows);
        print_message("# %.3f bytes a value\n", (double)size / (300 * 17));
        assert_in_range(size, 1, (size_t)(300 * 17 * 0.45));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(decodes_to_what_was_encoded_for_random_rows),
                cmocka_unit_test(a_decoder_gives_of_block_after_block_what_block_open_gives),
                cmocka_unit_test(decodes_blocks_as_large_as_the_limits),
                cmocka_unit_test(keeps_counters_that_wrap_and_reset),
                cmocka_unit_test(finds_the_common_divisor_of_a_column),
                cmocka_unit_test(stores_weighted_time_as_what_the_times_leave),
                cmocka_unit_test(absent_values_cost_nothing),
                cmocka_unit_test(equal_rows_give_equal_bytes),
                cmocka_unit_test(a_gap_has_a_header_only),
                cmocka_unit_test(stores_a_recorded_busy_disk_in_0_45_bytes_a_value),
        };

        return cmocka_run_group_tests(tests, make_encoder, free_encoder);
}
