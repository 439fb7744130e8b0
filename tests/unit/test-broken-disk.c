/*
 * The spool on real disks that fill up or stop taking writes: a tmpfs of a few pages, and an ext4
 * that the kernel sets to read-only because of an error. In a mount namespace of its own, so that
 * nothing of it outlives the test; where that is not allowed the tests are skipped.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>

#include <cmocka.h>

#include "agentd/rows.h"
#include "mount-fixture.h"
#include "spool-fixture.h"

static int set_up(void **state)
{
        *state = bench_new();
        return 0;
}

static int tear_down(void **state)
{
        struct spool_bench *bench = *state;

        bench->spool = spool_close(bench->spool);
        (void)umount2(bench->folder, MNT_DETACH);
        bench_free(bench);
        return 0;
}

static void mount_small(const struct spool_bench *bench, const char *options)
{
        if (!mount_own_namespace())
                skip();
        assert_int_equal(mount("none", bench->folder, "tmpfs", 0, options), 0);
}

/* Takes all that is left, but for @spare bytes. */
static void fill(const struct spool_bench *bench, size_t spare)
{
        CLEANUP(str) char *path = NULL;
        CLEANUP(fd) int fd = -1;
        uint8_t page[4096] = {0};
        off_t size = 0;

        assert_true(asprintf(&path, "%s/other", bench->folder) > 0);
        fd = open(path, O_WRONLY | O_CREAT, 0600);
        while (write(fd, page, sizeof(page)) == sizeof(page))
                size += (off_t)sizeof(page);
        assert_int_equal(errno, ENOSPC);
        assert_int_equal(ftruncate(fd, size > (off_t)spare ? size - (off_t)spare : 0), 0);
}

static void make_room(const struct spool_bench *bench)
{
        CLEANUP(str) char *path = NULL;

        assert_true(asprintf(&path, "%s/other", bench->folder) > 0);
        assert_int_equal(unlink(path), 0);
}

static void a_full_disk_costs_no_block(void **state)
{
        struct spool_bench *bench = *state;
        uint64_t in_memory = 0;
        int error;

        mount_small(bench, "size=2m");
        open_spool(bench, MEBIBYTE);
        for (uint64_t i = 1; i <= 100; i++) {
                if (i == 5)
                        fill(bench, 8192);
                assert_int_equal(append(bench, i, 20), 0);
                in_memory += !spool_is_durable(bench->spool, &error);
                if (i == 10) /* What the segment had allocated is there, also on a full disk. */
                        assert_int_equal(in_memory, 0);
        }
        assert_in_range(in_memory, 50, 90);
        assert_int_equal(error, -ENOSPC);
        assert_int_equal(bench->counters.spool_blocks, 100);
        make_room(bench);
        assert_int_equal(append(bench, 101, 20), 0);
        assert_true(spool_is_durable(bench->spool, &error));
        reopen(bench, MEBIBYTE);
        assert_int_equal(drain(bench, 50000).blocks, 101);
}

static void a_disk_that_is_full_at_start_gives_its_backlog_and_takes_blocks_when_it_can(
        void **state)
{
        struct spool_bench *bench = *state;
        struct found found;
        int error;

        mount_small(bench, "size=2m");
        open_spool(bench, MEBIBYTE);
        for (uint64_t i = 1; i <= 30; i++)
                append(bench, i, 20);
        bench->spool = spool_close(bench->spool);
        fill(bench, 0);
        open_spool(bench, MEBIBYTE);
        for (uint64_t i = 31; i <= 60; i++)
                assert_int_equal(append(bench, i, 20), 0);
        found = drain(bench, 50000);
        assert_int_equal(found.blocks, 60);
        append(bench, 61, 20);
        make_room(bench);
        append(bench, 62, 20);
        assert_true(spool_is_durable(bench->spool, &error));
        reopen(bench, MEBIBYTE);
        assert_int_equal(drain(bench, 50000).blocks, 2);
}

static void open_rows_go_on_in_memory_on_a_full_disk(void **state)
{
        static const struct plan_source plan = {.enabled = true, .interval_us = 1000000};
        static const struct block_header header = {.sequence = 77, .interval_us = 1000000};
        struct spool_bench *bench = *state;
        CLEANUP(rows) struct rows *rows = NULL;
        struct fixture fixture;
        int error = 0;

        mount_small(bench, "size=1m");
        fill(bench, 8192);
        fixture_init(&fixture);
        assert_int_equal(rows_new(bench->folder, SOURCE_DISKSTATS, &rows), 0);
        /* More than there is: an error now, never a SIGBUS at some row. */
        assert_int_equal(rows_begin(rows, &header, &fixture.sample, &plan, 4000), 0);
        assert_false(rows_is_durable(rows, &error));
        assert_int_equal(error, -ENOSPC);
        for (uint64_t row = 0; row < 4000; row++) {
                fixture_set(&fixture, row);
                rows_append(rows, &fixture.sample);
        }
        assert_int_equal(rows_get_count(rows), 4000);
}

/* A new ext4 in a file; the loop device goes with the mount. */
static bool mount_ext4(const struct spool_bench *bench)
{
        char command[512];

        if (!mount_own_namespace())
                return false;
        snprintf(command, sizeof(command),
                "truncate -s 8M '%s.img' && mke2fs -q -t ext4 -e remount-ro '%s.img' 2>/dev/null "
                "&& "
                "mount -o loop '%s.img' '%s' 2>/dev/null",
                bench->folder, bench->folder, bench->folder, bench->folder);
        return system(command) == 0;
}

static void remove_image(const struct spool_bench *bench)
{
        CLEANUP(str) char *path = NULL;

        assert_true(asprintf(&path, "%s.img", bench->folder) > 0);
        (void)unlink(path);
}

/* The kernel finds an error: with "errors=remount-ro" no write succeeds any more, though files are
 * open for it. */
static void break_ext4(const struct spool_bench *bench)
{
        char command[512];

        snprintf(command, sizeof(command),
                "echo broken > /sys/fs/ext4/$(basename $(findmnt -no SOURCE "
                "'%s'))/trigger_fs_error",
                bench->folder);
        assert_int_equal(system(command), 0);
}

static void a_disk_that_turns_read_only_costs_no_block(void **state)
{
        struct spool_bench *bench = *state;
        struct spool_batch batch;
        struct found found = {0};
        int error;

        if (!mount_ext4(bench)) {
                remove_image(bench);
                skip();
        }
        open_spool(bench, MEBIBYTE);
        for (uint64_t i = 1; i <= 100; i++)
                append(bench, i, 20);
        assert_true(spool_is_durable(bench->spool, &error));
        break_ext4(bench);
        for (uint64_t i = 101; i <= 120; i++)
                assert_int_equal(append(bench, i, 20), 0);
        assert_false(spool_is_durable(bench->spool, &error));
        assert_int_equal(error, -EROFS);
        /* Each once as long as this process lives. */
        for (unsigned i = 0; i < 5; i++) {
                assert_int_equal(spool_read(bench->spool, 10000, &batch), 1);
                look_at_batch(&batch, &found);
                spool_acknowledge(bench->spool);
        }
        /* Those in memory end with it; the disk still gives what it has, also what was sent. */
        bench->spool = spool_close(bench->spool);
        open_spool(bench, MEBIBYTE);
        assert_int_equal(append(bench, 121, 20), 0);
        found = drain(bench, 50000);
        assert_int_equal(found.blocks, 101);
        assert_int_equal(found.first, 1);
        remove_image(bench);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_full_disk_costs_no_block),
                TEST(a_disk_that_is_full_at_start_gives_its_backlog_and_takes_blocks_when_it_can),
                TEST(open_rows_go_on_in_memory_on_a_full_disk),
                TEST(a_disk_that_turns_read_only_costs_no_block),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
