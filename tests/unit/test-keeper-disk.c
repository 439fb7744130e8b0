/*
 * The store on real disks that fill up or stop taking writes: a tmpfs of a few megabytes, and an
 * ext4 that the kernel sets to read-only because of an error. In a mount namespace of its own, so
 * that nothing of it outlives the test; where that is not allowed the tests are skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

#include "collectord/store-check.h"
#include "collectord/store.h"
#include "lib/metric.h"
#include "tests/unit/folder-fixture.h"
#include "tests/unit/mount-fixture.h"

#define SECOND INT64_C(1000000)
#define START (INT64_C(1796083200) * SECOND)
#define INTERVAL (10 * SECOND)
#define BLOCK_ROWS 36u
#define ENTITIES 16u
#define BLOCKS 80u /* eight hours: a raw file and a slot of minutes */

static const struct store_ages ages = {0};
static const struct id host = {.bytes = {7, 1}};

struct world {
        char folder[64];
        struct store *store;
        struct store_keeper *keeper;
        struct block_encoder *encoder;
        uint32_t blocks; /* acknowledged */
};

/* ---- disks ---- */

/* A shell's command with the folder in it. */
#define RUN(world, format)                                                                         \
        ({                                                                                         \
                char command[512];                                                                 \
                snprintf(command, sizeof(command), format, (world)->folder);                       \
                system(command) == 0;                                                              \
        })

/* Takes all that is left, but for @spare bytes. */
static void fill(const struct world *world, size_t spare)
{
        char path[96];
        uint8_t page[4096] = {0};
        off_t size = 0;
        int fd;

        snprintf(path, sizeof(path), "%s/other", world->folder);
        fd = open(path, O_WRONLY | O_CREAT, 0600);
        assert_true(fd >= 0);
        while (write(fd, page, sizeof(page)) == sizeof(page))
                size += (off_t)sizeof(page);
        assert_int_equal(errno, ENOSPC);
        assert_int_equal(ftruncate(fd, size > (off_t)spare ? size - (off_t)spare : 0), 0);
        close(fd);
}

static void make_room(const struct world *world)
{
        char path[96];

        snprintf(path, sizeof(path), "%s/other", world->folder);
        assert_int_equal(unlink(path), 0);
}

/* ---- the store ---- */

static void open_store(struct world *world)
{
        CLEANUP(str) char *message = NULL;

        if (store_open(world->folder, &world->store, &message) < 0)
                fail_msg("%s", message);
        assert_int_equal(store_keeper_open(world->folder, &ages, &world->keeper), 0);
}

static void close_store(struct world *world)
{
        world->keeper = store_keeper_close(world->keeper);
        world->store = store_close(world->store);
}

/* The next block, as an upload: 0 is acknowledged. Its numbers are noise, so that it takes room. */
static int put(struct world *world)
{
        static uint64_t values[BLOCK_ROWS][ENTITIES];
        int64_t times[BLOCK_ROWS];
        struct block_entity entities[ENTITIES];
        struct block_column columns[ENTITIES];
        char names[ENTITIES][8];
        struct block_rows rows = {.header = {.host = host,
                                          .boot.bytes = {1},
                                          .source = SOURCE_DISKSTATS,
                                          .sequence = world->blocks + 1,
                                          .interval_us = INTERVAL,
                                          .rows = BLOCK_ROWS},
                .entities = entities,
                .n_entities = ENTITIES,
                .columns = columns,
                .n_columns = ENTITIES,
                .times_us = times,
                .values = &values[0][0]};
        struct block_header header;
        const uint8_t *bytes;
        uint64_t noise = world->blocks * 2654435761u + 1;
        size_t size;
        int r;

        for (uint32_t e = 0; e < ENTITIES; e++) {
                snprintf(names[e], sizeof(names[e]), "sd%c", (char)('a' + e));
                entities[e] = (struct block_entity){.name = names[e], .identity = ""};
                columns[e] = (struct block_column){e, METRIC_DISK_WRITE_SECTORS};
        }
        for (uint32_t i = 0; i < BLOCK_ROWS; i++) {
                times[i] = START + (int64_t)(world->blocks * BLOCK_ROWS + i) * INTERVAL;
                for (uint32_t e = 0; e < ENTITIES; e++) {
                        noise = noise * 6364136223846793005u + 1442695040888963407u;
                        values[i][e] = noise >> 16;
                }
        }
        assert_int_equal(block_encode(world->encoder, &rows, &bytes, &size), 0);
        assert_int_equal(block_peek(bytes, size, &header, &size), 0);
        r = store_begin(world->store);
        if (r == 0)
                r = store_put_block(world->store, &header, bytes, size, header.last_us);
        if (r == 0)
                r = store_commit(world->store);
        if (r < 0)
                (void)store_rollback(world->store);
        else
                world->blocks++;
        return r;
}

/* Upkeep until nothing is to do, or it fails. */
static int keep(struct world *world)
{
        int r = 1;

        while (r > 0) {
                CLEANUP(store_step) struct store_step *step = NULL;

                r = store_keeper_step(world->keeper, START + 100 * 86400 * SECOND, &step);
                if (r <= 0)
                        return r;
                do
                        r = store_follow(world->store, step, STORE_SLICE_US);
                while (r > 0);
                r = r == 0 ? 1 : r;
        }
        return r;
}

struct seen {
        struct block_decoder *decoder;
        int64_t last_us;
        uint32_t rows, blocks;
};

static int see(void *userdata, const struct store_block *stored)
{
        struct seen *seen = userdata;
        const struct block *block;

        assert_int_equal(block_decode(seen->decoder, stored->bytes, stored->size, &block), 0);
        for (uint32_t i = 0; i < block_get_header(block)->rows; i++) {
                int64_t time_us = block_get_times(block)[i];

                /* What is in the hot log and in a sealed file is passed over by who reads. */
                if (time_us <= seen->last_us)
                        continue;
                seen->last_us = time_us;
                seen->rows++;
        }
        seen->blocks++;
        return 0;
}

/* All that was acknowledged is there. *Its blocks. */
static uint32_t expect_all(const struct world *world)
{
        CLEANUP(store_reader) struct store_reader *reader = NULL;
        struct seen seen = {0};

        assert_int_equal(block_decoder_new(&seen.decoder), 0);
        assert_int_equal(store_reader_open(world->folder, &reader), 0);
        assert_int_equal(store_read_blocks(reader, SOURCE_DISKSTATS, NULL, START,
                                 START + 86400 * SECOND, 0, see, &seen),
                0);
        block_decoder_free(seen.decoder);
        assert_int_equal(store_reader_take_rotten(reader), 0);
        assert_int_equal(seen.rows, world->blocks * BLOCK_ROWS);
        return seen.blocks;
}

static void on_damage(void *userdata, const struct store_damage *damage)
{
        (void)userdata;
        fail_msg("%s: %s", damage->file, damage->what);
}

static void on_unreadable(void *userdata, const char *file, const char *what)
{
        (void)userdata;
        fail_msg("%s: %s", file, what);
}

static void on_progress(void *userdata, const char *file, const struct store_check_counts *counts)
{
        (void)userdata, (void)file, (void)counts;
}

static void expect_whole(const struct world *world)
{
        static const struct store_check_sink sink = {NULL, on_damage, on_unreadable, on_progress};
        struct store_check_counts counts;

        assert_int_equal(store_check(world->folder, &sink, &counts), 0);
}

static int begin(void **state)
{
        struct world *world = calloc(1, sizeof(*world));

        strcpy(world->folder, "/tmp/strata-keeper-XXXXXX");
        assert_non_null(mkdtemp(world->folder));
        assert_int_equal(block_encoder_new(&world->encoder), 0);
        *state = world;
        return 0;
}

static int end(void **state)
{
        struct world *world = *state;
        char image[96];

        close_store(world);
        (void)umount2(world->folder, MNT_DETACH);
        folder_remove(world->folder);
        snprintf(image, sizeof(image), "%s.img", world->folder);
        (void)unlink(image);
        block_encoder_free(world->encoder);
        free(world);
        return 0;
}

/* ---- tests ---- */

/* Whatever of a sealed file there is room for when the disk is full. */
static void a_full_disk_stops_upkeep_and_costs_no_row(void **state)
{
        struct world *world = *state;
        uint32_t failed = 0;

        if (!mount_own_namespace())
                skip();
        assert_int_equal(mount("none", world->folder, "tmpfs", 0, "size=8m"), 0);
        open_store(world);
        while (world->blocks < BLOCKS)
                assert_int_equal(put(world), 0);
        for (size_t spare = 0; spare <= 512 << 10; spare += 48 << 10) {
                int r;

                fill(world, spare);
                r = keep(world);
                assert_true(r == 0 || r == -ENOSPC);
                failed += r < 0;
                expect_all(world);
                make_room(world);
                expect_whole(world);
        }
        assert_true(failed > 0);
        assert_int_equal(keep(world), 0);
        assert_true(expect_all(world) < BLOCKS);
        expect_whole(world);
}

static void a_full_disk_refuses_uploads_and_takes_them_again(void **state)
{
        struct world *world = *state;
        uint32_t before;
        int r;

        if (!mount_own_namespace())
                skip();
        assert_int_equal(mount("none", world->folder, "tmpfs", 0, "size=8m"), 0);
        open_store(world);
        while (world->blocks < BLOCKS / 2)
                assert_int_equal(put(world), 0);
        assert_int_equal(keep(world), 0);
        fill(world, 0);
        while ((r = put(world)) == 0)
                ;
        assert_int_equal(r, -ENOSPC);
        before = world->blocks;
        assert_int_equal(put(world), -ENOSPC);
        expect_all(world);
        make_room(world);
        assert_int_equal(put(world), 0);
        assert_int_equal(world->blocks, before + 1);
        assert_int_equal(keep(world), 0);
        expect_all(world);
        expect_whole(world);
}

static void a_disk_that_turns_read_only_still_answers(void **state)
{
        struct world *world = *state;
        uint32_t before;
        int r;

        if (!mount_own_namespace() ||
                !RUN(world,
                        "truncate -s 16M '%1$s.img' && mke2fs -q -t ext4 -e remount-ro '%1$s.img' "
                        "2>/dev/null && mount -o loop '%1$s.img' '%1$s' 2>/dev/null"))
                skip();
        open_store(world);
        while (world->blocks < BLOCKS / 2)
                assert_int_equal(put(world), 0);
        assert_int_equal(keep(world), 0);
        while (world->blocks < BLOCKS)
                assert_int_equal(put(world), 0);
        assert_true(RUN(world, "echo broken > /sys/fs/ext4/$(basename $(findmnt -no SOURCE "
                               "'%s'))/trigger_fs_error"));
        before = world->blocks;
        r = put(world);
        assert_true(r == -EROFS || r == -EIO);
        assert_true(keep(world) < 0);
        assert_int_equal(world->blocks, before);
        expect_all(world);
        /* Mended, all is there and goes on. */
        close_store(world);
        assert_true(RUN(world, "umount '%1$s' && mount -o loop '%1$s.img' '%1$s'"));
        open_store(world);
        expect_all(world);
        assert_int_equal(put(world), 0);
        assert_int_equal(keep(world), 0);
        expect_all(world);
        expect_whole(world);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
                TEST(a_full_disk_stops_upkeep_and_costs_no_row),
                TEST(a_full_disk_refuses_uploads_and_takes_them_again),
                TEST(a_disk_that_turns_read_only_still_answers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
