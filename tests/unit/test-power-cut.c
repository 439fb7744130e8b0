/*
 * What a power cut may leave of the agent's files: cut at every byte, or with nothing but zeros
 * from every 512th byte on. Never a wrong block or row, and none lost that stands before the cut.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "agentd/rows-layout.h"
#include "spool-fixture.h"

#define SECTOR 512u
#define BLOCKS 8u
#define ROWS 12u

/* A segment's file, and where each of its blocks ends. */
struct scene {
        struct spool_bench *bench;
        char *path;
        uint8_t *bytes;
        size_t size;
        uint64_t ends[BLOCKS + 1]; /* by sequence; 0: acknowledged */
};

static void spoil(const struct scene *scene, size_t at, bool zero)
{
        write_file(scene->path, scene->bytes, at);
        if (zero)
                assert_int_equal(truncate(scene->path, (off_t)scene->size), 0);
}

/* Reads everything; each block has the very bytes that were appended (its checksum says so). */
static unsigned collect(struct spool_bench *bench, bool *found)
{
        struct block_header header;
        struct spool_batch batch;
        unsigned blocks = 0;
        size_t at, size;

        while (spool_read(bench->spool, 1000, &batch) == 1) {
                for (at = 0; at < batch.size; at += size, blocks++) {
                        assert_int_equal(
                                block_peek(batch.bytes + at, batch.size - at, &header, &size), 0);
                        assert_in_range(header.sequence, 1, BLOCKS + 1);
                        assert_false(found[header.sequence]);
                        found[header.sequence] = true;
                }
                spool_acknowledge(bench->spool);
        }
        return blocks;
}

static void check_cut(const struct scene *scene, size_t at, bool zero)
{
        bool found[BLOCKS + 2] = {0};

        spoil(scene, at, zero);
        open_spool(scene->bench, MEBIBYTE);
        assert_int_equal(append(scene->bench, BLOCKS + 1, 2), 0);
        collect(scene->bench, found);
        for (unsigned i = 1; i <= BLOCKS; i++)
                if (scene->ends[i] > 0 && scene->ends[i] <= at)
                        assert_true(found[i]);
        /* What comes after it is kept as ever. */
        assert_true(found[BLOCKS + 1]);
        scene->bench->spool = spool_close(scene->bench->spool);
        unlink(scene->path);
}

static void check_all_cuts(struct scene *scene)
{
        for (size_t at = 0; at <= scene->size; at++)
                check_cut(scene, at, false);
        for (size_t at = 0; at <= scene->size; at += SECTOR)
                check_cut(scene, at, true);
}

static void load(struct scene *scene)
{
        scene->bench->spool = spool_close(scene->bench->spool);
        scene->bytes = read_file(scene->path, &scene->size);
}

static int set_up(void **state)
{
        struct scene *scene = calloc(1, sizeof(*scene));

        scene->bench = bench_new();
        open_spool(scene->bench, MEBIBYTE);
        scene->path = segment_path(scene->bench, 1);
        *state = scene;
        return 0;
}

static int tear_down(void **state)
{
        struct scene *scene = *state;

        bench_free(scene->bench);
        free(scene->path);
        free(scene->bytes);
        free(scene);
        return 0;
}

/* Where the block appended last ends; eight bytes behind it end the chain. */
static uint64_t end_of(const struct scene *scene)
{
        size_t size;

        free(read_file(scene->path, &size));
        return size - sizeof(uint64_t);
}

static void a_segment_gives_every_block_before_the_cut(void **state)
{
        struct scene *scene = *state;

        for (unsigned i = 1; i <= BLOCKS; i++) {
                append(scene->bench, i, i % 4 == 0 ? 40 : 2);
                scene->ends[i] = end_of(scene);
        }
        load(scene);
        check_all_cuts(scene);
}

static void blocks_behind_acknowledged_ones_are_not_lost(void **state)
{
        struct scene *scene = *state;
        struct spool_batch batch;

        for (unsigned i = 1; i <= BLOCKS; i++) {
                append(scene->bench, i, 2);
                scene->ends[i] = end_of(scene);
                if (i == 4)
                        assert_int_equal(spool_read(scene->bench->spool, 1, &batch), 1);
        }
        spool_acknowledge(scene->bench->spool);
        scene->ends[4] = 0;
        load(scene);
        check_all_cuts(scene);
}

static void what_an_older_use_left_behind_the_end_is_no_block(void **state)
{
        struct scene *scene = *state;
        bool found[BLOCKS + 2];
        uint64_t first_end = 0;

        for (unsigned i = 1; i <= BLOCKS; i++) {
                append(scene->bench, i, 2);
                if (i == 1)
                        first_end = end_of(scene);
        }
        drain(scene->bench, MEBIBYTE);
        /* It takes the place of the first; what follows still stands in the file. */
        append(scene->bench, 1, 2);
        load(scene);
        for (size_t at = 0; at <= scene->size; at++) {
                memset(found, 0, sizeof(found));
                spoil(scene, at, false);
                open_spool(scene->bench, MEBIBYTE);
                assert_in_range(collect(scene->bench, found), 0, 1);
                assert_true(at < first_end || found[1]);
                scene->bench->spool = spool_close(scene->bench->spool);
                unlink(scene->path);
        }
}

static void another_segment_is_not_concerned(void **state)
{
        struct scene *scene = *state;
        bool found[BLOCKS + 2];
        uint8_t *first;
        size_t size;
        char *path;

        for (unsigned i = 1; i <= BLOCKS; i++) {
                if (i == 4)
                        spool_go_live(scene->bench->spool);
                append(scene->bench, i, 2);
        }
        assert_int_equal(folder_files(scene->bench->folder), 2);
        path = scene->path;
        first = read_file(path, &size);
        scene->path = segment_path(scene->bench, 2);
        load(scene);
        for (size_t at = 0; at <= scene->size; at += 7) {
                memset(found, 0, sizeof(found));
                write_file(path, first, size);
                spoil(scene, at, at % 2 == 0);
                open_spool(scene->bench, MEBIBYTE);
                collect(scene->bench, found);
                assert_true(found[1] && found[2] && found[3]);
                scene->bench->spool = spool_close(scene->bench->spool);
                unlink(scene->path);
        }
        free(first);
        free(path);
}

static void check_rows(const struct rows *rows, uint32_t count)
{
        struct block_rows block;

        rows_get_block(rows, &block);
        assert_int_equal(block.header.rows, count);
        for (uint32_t row = 0; row < count; row++) {
                assert_int_equal(block.times_us[row], ((int64_t)row + 1) * 1000000);
                for (uint32_t i = 0; i < FIXTURE_COLUMNS; i++)
                        assert_int_equal(
                                block.values[row * FIXTURE_COLUMNS + i], fixture_value(row, i));
        }
}

/* Rows whose values end before the cut: all else of them stands before the values. */
static uint32_t rows_before(const struct layout *layout, size_t at)
{
        uint64_t row_bytes = (uint64_t)layout->n_columns * 8;

        if (at < layout->values_at)
                return 0;
        return (uint32_t)((at - layout->values_at) / row_bytes < ROWS
                                  ? (at - layout->values_at) / row_bytes
                                  : ROWS);
}

static void check_rows_cut(const char *folder, const struct scene *scene, size_t at, bool zero)
{
        CLEANUP(rows) struct rows *rows = NULL;
        const struct layout *layout = (const struct layout *)scene->bytes;
        uint32_t expected = rows_before(layout, at);

        spoil(scene, at, zero);
        assert_int_equal(rows_new(folder, SOURCE_DISKSTATS, &rows), 0);
        if (rows_recover(rows) == 0) {
                assert_int_equal(expected, 0);
                return;
        }
        /* Where only zeros were cut off, nothing was. */
        assert_in_range(rows_get_count(rows), expected, expected + 1);
        check_rows(rows, rows_get_count(rows));
}

static void the_open_rows_lose_none_before_the_cut(void **state)
{
        static const struct plan_source plan = {.enabled = true, .interval_us = 1000000};
        static const struct block_header header = {.sequence = 77, .interval_us = 1000000};
        struct scene *scene = *state;
        struct fixture fixture;
        struct rows *rows = NULL;

        fixture_init(&fixture);
        assert_int_equal(rows_new(scene->bench->folder, SOURCE_DISKSTATS, &rows), 0);
        assert_int_equal(rows_begin(rows, &header, &fixture.sample, &plan, ROWS), 0);
        for (uint64_t row = 0; row < ROWS; row++) {
                fixture_set(&fixture, row);
                rows_append(rows, &fixture.sample);
        }
        rows_free(rows);
        free(scene->path);
        assert_true(asprintf(&scene->path, "%s/rows-diskstats", scene->bench->folder) > 0);
        load(scene);
        for (size_t at = 0; at <= scene->size; at++)
                check_rows_cut(scene->bench->folder, scene, at, false);
        for (size_t at = 0; at <= scene->size; at += SECTOR)
                check_rows_cut(scene->bench->folder, scene, at, true);
        open_spool(scene->bench, MEBIBYTE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_segment_gives_every_block_before_the_cut),
                TEST(blocks_behind_acknowledged_ones_are_not_lost),
                TEST(what_an_older_use_left_behind_the_end_is_no_block),
                TEST(another_segment_is_not_concerned),
                TEST(the_open_rows_lose_none_before_the_cut),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
