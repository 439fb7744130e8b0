#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "agentd/rows.h"
#include "sample-fixture.h"

static const struct plan_source all_metrics = {.enabled = true, .interval_us = 1000000};
static const struct block_header header = {
        .host = {.bytes = {1}}, .boot = {.bytes = {2}}, .sequence = 77, .interval_us = 1000000};

static struct rows *begin(const char *folder, struct fixture *fixture, uint32_t capacity)
{
        struct rows *rows = NULL;

        fixture_init(fixture);
        assert_int_equal(rows_new(folder, SOURCE_DISKSTATS, &rows), 0);
        assert_int_equal(rows_begin(rows, &header, &fixture->sample, &all_metrics, capacity), 0);
        return rows;
}

static void append(struct rows *rows, struct fixture *fixture, uint64_t n)
{
        for (uint64_t row = rows_get_count(rows); n > 0; n--, row++) {
                fixture_set(fixture, row);
                assert_true(rows_can_append(rows, fixture->sample.time_us));
                rows_append(rows, &fixture->sample);
        }
}

static void check_rows(const struct rows *rows, uint32_t count)
{
        struct block_rows block;

        rows_get_block(rows, &block);
        assert_int_equal(block.header.rows, count);
        assert_int_equal(block.header.sequence, 77);
        assert_int_equal(block.header.source, SOURCE_DISKSTATS);
        assert_int_equal(block.header.interval_us, 1000000);
        assert_true(id_equal(&block.header.host, &header.host));
        assert_true(id_equal(&block.header.boot, &header.boot));
        assert_int_equal(block.n_entities, FIXTURE_ENTITIES);
        assert_string_equal(block.entities[2].name, "dm-0");
        assert_int_equal(block.entities[2].instance, 7);
        for (uint32_t row = 0; row < count; row++) {
                assert_int_equal(block.times_us[row], ((int64_t)row + 1) * 1000000);
                assert_int_equal(block.present[row * FIXTURE_ENTITIES + 1], row % 5 != 0);
                for (uint32_t i = 0; i < FIXTURE_COLUMNS; i++)
                        assert_int_equal(
                                block.values[row * FIXTURE_COLUMNS + i], fixture_value(row, i));
        }
}

static void finds_every_committed_row_after_sigkill(void **state)
{
        unsigned seed = (unsigned)time(NULL);

        (void)state;
        print_message("# seed %u\n", seed);
        srandom(seed);
        for (int round = 0; round < 20; round++) {
                char *folder = fixture_folder();
                CLEANUP(rows) struct rows *rows = NULL;
                uint32_t told = 0, wait_for = 1 + (uint32_t)random() % 3000;
                struct fixture fixture;
                int pipes[2], status;
                pid_t child;

                assert_int_equal(pipe(pipes), 0);
                child = fork();
                if (child == 0) {
                        rows = begin(folder, &fixture, BLOCK_ROWS_MAX);
                        for (uint32_t row = 0; row < BLOCK_ROWS_MAX; row++) {
                                fixture_set(&fixture, row);
                                rows_append(rows, &fixture.sample);
                                row += 1;
                                if (write(pipes[1], &row, sizeof(row)) < 0)
                                        _exit(1);
                                row -= 1;
                        }
                        for (;;)
                                pause();
                }
                while (told < wait_for)
                        assert_int_equal(read(pipes[0], &told, sizeof(told)), sizeof(told));
                kill(child, SIGKILL);
                waitpid(child, &status, 0);
                close(pipes[1]);
                while (read(pipes[0], &told, sizeof(told)) == sizeof(told))
                        ;
                close(pipes[0]);
                assert_int_equal(rows_new(folder, SOURCE_DISKSTATS, &rows), 0);
                assert_int_equal(rows_recover(rows), 1);
                /* It may have been killed between storing a row and telling it. */
                assert_in_range(rows_get_count(rows), told, told + 1);
                check_rows(rows, rows_get_count(rows));
                fixture_remove(folder);
        }
}

static void recovers_nothing_when_nothing_was_left(void **state)
{
        char *folder = fixture_folder();
        CLEANUP(rows) struct rows *rows = NULL;
        struct fixture fixture;

        (void)state;
        assert_int_equal(rows_new(folder, SOURCE_DISKSTATS, &rows), 0);
        assert_int_equal(rows_recover(rows), 0);
        rows = rows_free(rows);
        rows = begin(folder, &fixture, 10);
        append(rows, &fixture, 4);
        rows_begin_again(rows, 78);
        rows = rows_free(rows);
        assert_int_equal(rows_new(folder, SOURCE_DISKSTATS, &rows), 0);
        assert_int_equal(rows_recover(rows), 0);
        fixture_remove(folder);
}

static void a_new_block_of_the_same_shape_has_its_own_sequence(void **state)
{
        char *folder = fixture_folder();
        CLEANUP(rows) struct rows *rows = NULL;
        struct block_rows block;
        struct fixture fixture;

        (void)state;
        rows = begin(folder, &fixture, 10);
        append(rows, &fixture, 10);
        assert_false(rows_can_append(rows, INT64_MAX));
        rows_begin_again(rows, 78);
        append(rows, &fixture, 3);
        rows = rows_free(rows);
        assert_int_equal(rows_new(folder, SOURCE_DISKSTATS, &rows), 0);
        assert_int_equal(rows_recover(rows), 1);
        rows_get_block(rows, &block);
        assert_int_equal(block.header.sequence, 78);
        assert_int_equal(block.header.rows, 3);
        fixture_remove(folder);
}

static void does_not_take_a_row_that_is_not_later(void **state)
{
        CLEANUP(rows) struct rows *rows = NULL;
        struct fixture fixture;

        (void)state;
        rows = begin(NULL, &fixture, 10);
        append(rows, &fixture, 2);
        assert_false(rows_can_append(rows, 2000000));
        assert_true(rows_can_append(rows, 2000001));
}

static void keeps_only_the_metrics_of_the_plan(void **state)
{
        static uint16_t wanted[] = {METRIC_DISK_WRITE_OPS};
        static uint16_t strange[] = {METRIC_OSD_OP_R};
        struct plan_source plan = {.metrics = wanted, .n_metrics = 1};
        CLEANUP(rows) struct rows *rows = NULL;
        struct block_rows block;
        struct fixture fixture;

        (void)state;
        fixture_init(&fixture);
        assert_int_equal(rows_new(NULL, SOURCE_DISKSTATS, &rows), 0);
        assert_int_equal(rows_begin(rows, &header, &fixture.sample, &plan, 5), 0);
        append(rows, &fixture, 2);
        rows_get_block(rows, &block);
        assert_int_equal(block.n_columns, 3);
        for (uint32_t i = 0; i < 3; i++) {
                assert_int_equal(block.columns[i].metric, METRIC_DISK_WRITE_OPS);
                assert_int_equal(block.columns[i].entity, i);
                assert_int_equal(block.values[3 + i], fixture_value(1, 2 * i + 1));
        }
        plan.metrics = strange;
        assert_int_equal(rows_begin(rows, &header, &fixture.sample, &plan, 5), -ENODATA);
}

static char *file_of(const char *folder)
{
        char *path = NULL;

        assert_true(asprintf(&path, "%s/rows-diskstats", folder) > 0);
        return path;
}

static void a_power_loss_costs_only_the_rows_from_the_torn_one_on(void **state)
{
        char *folder = fixture_folder();
        CLEANUP(str) char *path = file_of(folder);
        CLEANUP(rows) struct rows *rows = NULL;
        CLEANUP(mem) uint8_t *bytes = NULL;
        struct fixture fixture;
        struct block_rows block;
        struct stat status;
        uint32_t least = 12;
        int fd;

        (void)state;
        rows = begin(folder, &fixture, 12);
        append(rows, &fixture, 12);
        rows = rows_free(rows);
        fd = open(path, O_RDWR);
        assert_int_equal(fstat(fd, &status), 0);
        bytes = malloc((size_t)status.st_size);
        assert_int_equal(read(fd, bytes, (size_t)status.st_size), status.st_size);
        for (off_t i = 0; i < status.st_size; i++) {
                uint8_t wrong = bytes[i] ^ 0x40;

                assert_int_equal(pwrite(fd, &wrong, 1, i), 1);
                assert_int_equal(rows_new(folder, SOURCE_DISKSTATS, &rows), 0);
                if (rows_recover(rows) == 1) {
                        rows_get_block(rows, &block);
                        check_rows(rows, rows_get_count(rows));
                        if (rows_get_count(rows) < least)
                                least = rows_get_count(rows);
                }
                rows = rows_free(rows);
                assert_int_equal(pwrite(fd, bytes, (size_t)status.st_size, 0), status.st_size);
        }
        /* Some byte must have cut the rows short, or nothing was tested. */
        assert_in_range(least, 1, 11);
        close(fd);
        fixture_remove(folder);
}

static void a_file_cut_anywhere_gives_good_rows_or_none(void **state)
{
        char *folder = fixture_folder();
        CLEANUP(str) char *path = file_of(folder);
        CLEANUP(rows) struct rows *rows = NULL;
        struct fixture fixture;
        struct stat status;

        (void)state;
        rows = begin(folder, &fixture, 5);
        append(rows, &fixture, 5);
        rows = rows_free(rows);
        assert_int_equal(stat(path, &status), 0);
        for (off_t size = status.st_size; size >= 0; size--) {
                assert_int_equal(truncate(path, size), 0);
                assert_int_equal(rows_new(folder, SOURCE_DISKSTATS, &rows), 0);
                if (rows_recover(rows) == 1)
                        check_rows(rows, rows_get_count(rows));
                else
                        assert_true(size < status.st_size);
                rows = rows_free(rows);
        }
        fixture_remove(folder);
}

static void rows_live_in_memory_when_the_disk_is_full(void **state)
{
        struct rlimit before, small = {.rlim_cur = 64, .rlim_max = RLIM_INFINITY};
        char *folder = fixture_folder();
        CLEANUP(rows) struct rows *rows = NULL;
        struct fixture fixture;
        int error = 0;

        (void)state;
        signal(SIGXFSZ, SIG_IGN);
        getrlimit(RLIMIT_FSIZE, &before);
        small.rlim_max = before.rlim_max;
        setrlimit(RLIMIT_FSIZE, &small);
        rows = begin(folder, &fixture, 10);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_false(rows_is_durable(rows, &error));
        assert_true(error < 0);
        append(rows, &fixture, 10);
        check_rows(rows, 10);
        /* The next block finds the disk again. */
        assert_int_equal(rows_begin(rows, &header, &fixture.sample, &all_metrics, 10), 0);
        assert_true(rows_is_durable(rows, &error));
        fixture_remove(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(finds_every_committed_row_after_sigkill),
                cmocka_unit_test(recovers_nothing_when_nothing_was_left),
                cmocka_unit_test(a_new_block_of_the_same_shape_has_its_own_sequence),
                cmocka_unit_test(does_not_take_a_row_that_is_not_later),
                cmocka_unit_test(keeps_only_the_metrics_of_the_plan),
                cmocka_unit_test(a_power_loss_costs_only_the_rows_from_the_torn_one_on),
                cmocka_unit_test(a_file_cut_anywhere_gives_good_rows_or_none),
                cmocka_unit_test(rows_live_in_memory_when_the_disk_is_full),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
