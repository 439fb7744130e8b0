#include <dirent.h>
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

#include <cmocka.h>

#include "agentd/spool.h"
#include "sample-fixture.h"

#define MEBIBYTE (1u << 20)

struct bench {
        char *folder;
        struct spool *spool;
        struct agent_counters counters;
        struct block_encoder *encoder;
};

static void open_spool(struct bench *bench, uint64_t bytes_max)
{
        uint64_t damaged;

        assert_int_equal(
                spool_open(bench->folder, bytes_max, &bench->counters, &bench->spool, &damaged), 0);
}

static void reopen(struct bench *bench, uint64_t bytes_max)
{
        spool_close(bench->spool);
        open_spool(bench, bytes_max);
}

static int set_up(void **state)
{
        struct bench *bench = calloc(1, sizeof(*bench));

        bench->folder = fixture_folder();
        assert_int_equal(block_encoder_new(&bench->encoder), 0);
        open_spool(bench, 64 * MEBIBYTE);
        *state = bench;
        return 0;
}

static int tear_down(void **state)
{
        struct bench *bench = *state;

        spool_close(bench->spool);
        block_encoder_free(bench->encoder);
        fixture_remove(bench->folder);
        free(bench);
        return 0;
}

/* A block of @rows rows that do not compress: about 48 bytes each. */
static int append(struct bench *bench, uint64_t sequence, uint32_t rows)
{
        int64_t times[512];
        uint64_t values[512 * FIXTURE_COLUMNS], random = sequence * 77 + 1;
        struct fixture fixture;
        struct block_rows block = {0};
        const uint8_t *bytes;
        size_t size;

        fixture_init(&fixture);
        for (uint32_t i = 0; i < rows; i++)
                times[i] = (int64_t)(sequence * 1000 + i);
        for (uint32_t i = 0; i < rows * FIXTURE_COLUMNS; i++) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                values[i] = random;
        }
        block.header = (struct block_header){
                .host = {.bytes = {1}},
                .boot = {.bytes = {2}},
                .source = SOURCE_DISKSTATS,
                .sequence = sequence,
                .interval_us = 1,
                .rows = rows,
        };
        block.entities = fixture.entities;
        block.n_entities = FIXTURE_ENTITIES;
        block.columns = fixture.columns;
        block.n_columns = FIXTURE_COLUMNS;
        block.times_us = times;
        block.values = values;
        assert_int_equal(block_encode(bench->encoder, &block, &bytes, &size), 0);
        return spool_append(bench->spool, bytes, size);
}

struct found {
        uint64_t blocks, rows, gap_rows, first, last; /* sequences of the blocks that are no gaps */
        struct block_header gap;
};

static void look_at_batch(const struct spool_batch *batch, struct found *found)
{
        struct block_header header;
        size_t at = 0, size;

        for (uint32_t i = 0; i < batch->blocks; i++) {
                assert_int_equal(
                        block_peek(batch->bytes + at, batch->size - at, &header, &size), 0);
                at += size;
                if (header.flags & BLOCK_FLAG_GAP) {
                        found->gap_rows += header.rows;
                        found->gap = header;
                        continue;
                }
                if (found->blocks++ == 0)
                        found->first = header.sequence;
                else
                        assert_true(header.sequence > found->last);
                found->last = header.sequence;
                found->rows += header.rows;
        }
        assert_int_equal(at, batch->size);
}

/* Reads and acknowledges everything. */
static struct found drain(struct bench *bench, size_t size_max)
{
        struct found found = {0};
        struct spool_batch batch;

        while (spool_read(bench->spool, size_max, &batch) == 1) {
                assert_true(batch.blocks == 1 || batch.size <= size_max);
                look_at_batch(&batch, &found);
                spool_acknowledge(bench->spool);
        }
        assert_int_equal(bench->counters.spool_blocks, 0);
        assert_int_equal(bench->counters.spool_rows, 0);
        assert_int_equal(bench->counters.spool_bytes, 0);
        return found;
}

static void gives_back_what_it_took_in_order_also_after_a_restart(void **state)
{
        struct bench *bench = *state;
        struct found found;

        for (uint64_t i = 1; i <= 50; i++)
                assert_int_equal(append(bench, i, 10), 0);
        assert_int_equal(bench->counters.spool_blocks, 50);
        assert_int_equal(bench->counters.spool_rows, 500);
        reopen(bench, 64 * MEBIBYTE);
        assert_int_equal(bench->counters.spool_blocks, 50);
        assert_int_equal(bench->counters.spool_rows, 500);
        found = drain(bench, 4000);
        assert_int_equal(found.blocks, 50);
        assert_int_equal(found.first, 1);
        assert_int_equal(found.last, 50);
        assert_int_equal(found.rows, 500);
}

static void does_not_give_again_what_is_acknowledged(void **state)
{
        struct bench *bench = *state;
        struct spool_batch batch;
        struct found found = {0};

        for (uint64_t i = 1; i <= 20; i++)
                append(bench, i, 10);
        assert_int_equal(spool_read(bench->spool, 4000, &batch), 1);
        look_at_batch(&batch, &found);
        assert_in_range(found.last, 2, 19);
        spool_acknowledge(bench->spool);
        /* This one is read, but never acknowledged. */
        assert_int_equal(spool_read(bench->spool, 4000, &batch), 1);
        reopen(bench, 64 * MEBIBYTE);
        assert_int_equal(drain(bench, 4000).first, found.last + 1);
        reopen(bench, 64 * MEBIBYTE);
        assert_int_equal(spool_read(bench->spool, 4000, &batch), 0);
}

static void an_empty_spool_takes_no_space(void **state)
{
        struct bench *bench = *state;
        CLEANUP(str) char *path = NULL;
        struct stat status;

        for (uint64_t i = 1; i <= 20; i++) {
                append(bench, i, 100);
                assert_int_equal(drain(bench, MEBIBYTE).blocks, 1);
        }
        assert_true(asprintf(&path, "%s/0000000000000001.spool", bench->folder) > 0);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_size, 32);
        /* Another block of the same size ends where the acknowledgement was: it is not meant. */
        append(bench, 20, 100);
        reopen(bench, 64 * MEBIBYTE);
        assert_int_equal(drain(bench, MEBIBYTE).blocks, 1);
}

static char *only_segment(const struct bench *bench)
{
        char *path = NULL;

        assert_true(asprintf(&path, "%s/0000000000000001.spool", bench->folder) > 0);
        return path;
}

static uint8_t *read_file(const char *path, size_t *ret_size)
{
        struct stat status;
        uint8_t *bytes;
        int fd = open(path, O_RDONLY);

        assert_int_equal(fstat(fd, &status), 0);
        bytes = malloc((size_t)status.st_size);
        assert_int_equal(read(fd, bytes, (size_t)status.st_size), status.st_size);
        close(fd);
        *ret_size = (size_t)status.st_size;
        return bytes;
}

static void write_file(const char *path, const uint8_t *bytes, size_t size)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        assert_int_equal(write(fd, bytes, size), size);
        close(fd);
}

static void a_file_cut_at_any_byte_gives_every_whole_block_and_goes_on(void **state)
{
        struct bench *bench = *state;
        CLEANUP(str) char *path = only_segment(bench);
        CLEANUP(mem) uint8_t *bytes = NULL;
        size_t size, ends[5];
        struct found found;

        for (uint64_t i = 0; i < 5; i++) {
                append(bench, i + 1, 2);
                free(read_file(path, &ends[i]));
        }
        bench->spool = spool_close(bench->spool);
        bytes = read_file(path, &size);
        for (size_t cut = 0; cut <= size; cut++) {
                uint64_t whole = 0;

                while (whole < 5 && ends[whole] <= cut)
                        whole++;
                write_file(path, bytes, cut);
                open_spool(bench, 64 * MEBIBYTE);
                assert_int_equal(append(bench, 9, 2), 0);
                found = drain(bench, MEBIBYTE);
                assert_int_equal(found.blocks, whole + 1);
                assert_int_equal(found.last, 9);
                assert_int_equal(found.first, whole > 0 ? 1 : 9);
                spool_close(bench->spool);
                unlink(path);
        }
        open_spool(bench, 64 * MEBIBYTE);
}

static void a_damaged_byte_costs_blocks_but_never_gives_a_wrong_one(void **state)
{
        struct bench *bench = *state;
        CLEANUP(str) char *path = only_segment(bench);
        CLEANUP(mem) uint8_t *bytes = NULL;
        uint64_t lost = 0;
        struct found found;
        size_t size;

        for (uint64_t i = 1; i <= 3; i++)
                append(bench, i, 2);
        bench->spool = spool_close(bench->spool);
        bytes = read_file(path, &size);
        for (size_t i = 0; i < size; i++) {
                bytes[i] ^= 0x10;
                write_file(path, bytes, size);
                bytes[i] ^= 0x10;
                open_spool(bench, 64 * MEBIBYTE);
                found = drain(bench, MEBIBYTE);
                assert_in_range(found.blocks, 0, 3);
                lost += found.blocks < 3;
                spool_close(bench->spool);
                unlink(path);
        }
        /* All but the acknowledged offset and reserved bytes matter. */
        assert_true(lost >= size - 32);
        open_spool(bench, 64 * MEBIBYTE);
}

static uint64_t folder_bytes(const char *folder)
{
        DIR *dir = opendir(folder);
        struct dirent *entry;
        struct stat status;
        uint64_t bytes = 0;

        while ((entry = readdir(dir)))
                if (fstatat(dirfd(dir), entry->d_name, &status, 0) == 0 && S_ISREG(status.st_mode))
                        bytes += (uint64_t)status.st_size;
        closedir(dir);
        return bytes;
}

static void a_full_spool_drops_the_oldest_and_leaves_a_gap(void **state)
{
        struct bench *bench = *state;
        struct found found;

        reopen(bench, MEBIBYTE);
        for (uint64_t i = 1; i <= 700; i++) {
                assert_int_equal(append(bench, i, 100), 0);
                assert_true(folder_bytes(bench->folder) <= MEBIBYTE + 4096);
        }
        assert_true(bench->counters.dropped_rows > 0);
        reopen(bench, MEBIBYTE);
        found = drain(bench, 100000);
        assert_int_equal(found.last, 700);
        /* Each row is either there or told as missing, and the gap ends where the blocks begin. */
        assert_int_equal(found.rows + found.gap_rows, 70000);
        assert_int_equal(bench->counters.dropped_rows, found.gap_rows);
        assert_int_equal(found.gap.source, SOURCE_DISKSTATS);
        assert_int_equal(found.gap.boot.bytes[0], 2);
        assert_int_equal(found.gap.last_us, (found.first - 1) * 1000 + 99);
        /* More than half of the bound is used. */
        assert_true(found.blocks * 4800 > MEBIBYTE / 2);
}

static void an_acknowledgement_of_dropped_blocks_does_no_harm(void **state)
{
        struct bench *bench = *state;
        struct spool_batch batch;
        struct found found;

        reopen(bench, MEBIBYTE);
        append(bench, 1, 100);
        assert_int_equal(spool_read(bench->spool, 100, &batch), 1);
        for (uint64_t i = 2; i <= 700; i++)
                append(bench, i, 100);
        spool_acknowledge(bench->spool);
        found = drain(bench, 100000);
        assert_int_equal(found.last, 700);
        assert_int_equal(found.rows + found.gap_rows, 70000);
}

static void a_refused_block_is_put_aside_and_the_others_go_on(void **state)
{
        struct bench *bench = *state;
        struct block_header header;
        struct spool_batch batch;
        CLEANUP(str) char *path = NULL;
        struct found found;

        for (uint64_t i = 1; i <= 5; i++)
                append(bench, i, 10);
        assert_int_equal(spool_read(bench->spool, MEBIBYTE, &batch), 1);
        assert_int_equal(batch.blocks, 5);
        assert_int_equal(spool_refuse(bench->spool, 5, true, &header), -EINVAL);
        assert_int_equal(spool_refuse(bench->spool, 2, true, &header), 0);
        assert_int_equal(spool_read(bench->spool, MEBIBYTE, &batch), 1);
        assert_int_equal(batch.blocks, 2);
        spool_acknowledge(bench->spool);
        assert_int_equal(spool_read(bench->spool, MEBIBYTE, &batch), 1);
        assert_int_equal(batch.blocks, 3);
        assert_int_equal(spool_refuse(bench->spool, 0, true, &header), 1);
        assert_int_equal(header.sequence, 3);
        assert_true(asprintf(&path, "%s/rejected/diskstats-3.block", bench->folder) > 0);
        assert_int_equal(access(path, R_OK), 0);
        assert_int_equal(bench->counters.rejected_blocks, 1);
        found = drain(bench, MEBIBYTE);
        assert_int_equal(found.blocks, 2);
        assert_int_equal(found.first, 4);
        assert_int_equal(found.gap_rows, 10);
        assert_int_equal(found.gap.sequence, 3);
}

static void the_folder_of_refused_blocks_is_bounded(void **state)
{
        struct bench *bench = *state;
        struct block_header header;
        struct spool_batch batch;
        CLEANUP(str) char *path = NULL;
        struct dirent *entry;
        unsigned files = 0;
        DIR *dir;

        for (uint64_t i = 1; i <= 100; i++) {
                append(bench, i, 1);
                assert_int_equal(spool_read(bench->spool, 1, &batch), 1);
                assert_int_equal(spool_refuse(bench->spool, 0, false, &header), 1);
        }
        assert_true(asprintf(&path, "%s/rejected", bench->folder) > 0);
        dir = opendir(path);
        while ((entry = readdir(dir)))
                files += entry->d_name[0] != '.';
        closedir(dir);
        assert_int_equal(files, 64);
        assert_int_equal(bench->counters.rejected_blocks, 100);
}

static void blocks_wait_in_memory_while_the_disk_is_full(void **state)
{
        struct rlimit before, small;
        struct bench *bench = *state;
        struct found found;
        int error = 0;

        signal(SIGXFSZ, SIG_IGN);
        getrlimit(RLIMIT_FSIZE, &before);
        small = before;
        small.rlim_cur = 20000;
        setrlimit(RLIMIT_FSIZE, &small);
        for (uint64_t i = 1; i <= 20; i++)
                assert_int_equal(append(bench, i, 100), 0);
        assert_false(spool_is_durable(bench->spool, &error));
        assert_int_equal(error, -ENOSPC);
        assert_int_equal(bench->counters.spool_blocks, 20);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(append(bench, 21, 100), 0);
        assert_true(spool_is_durable(bench->spool, &error));
        reopen(bench, 64 * MEBIBYTE);
        found = drain(bench, MEBIBYTE);
        assert_int_equal(found.blocks, 21);
        assert_int_equal(found.last, 21);
}

static void blocks_in_memory_are_bounded_and_leave_a_gap(void **state)
{
        struct bench *bench = *state;
        struct found found;
        uint64_t damaged;

        spool_close(bench->spool);
        assert_int_equal(spool_open(NULL, MEBIBYTE, &bench->counters, &bench->spool, &damaged), 0);
        for (uint64_t i = 1; i <= 700; i++)
                assert_int_equal(append(bench, i, 100), 0);
        assert_true(bench->counters.spool_bytes <= MEBIBYTE);
        found = drain(bench, 100000);
        assert_int_equal(found.last, 700);
        assert_int_equal(found.rows + found.gap_rows, 70000);
        assert_int_equal(found.gap.first_us, 1000);
}

static void blocks_survive_sigkill_at_any_moment(void **state)
{
        struct bench *bench = *state;

        bench->spool = spool_close(bench->spool);
        for (int round = 0; round < 15; round++) {
                uint64_t told = 0, wait_for = 1 + (uint64_t)random() % 300;
                struct spool_batch batch;
                struct found found;
                int pipes[2], status;
                pid_t child;

                assert_int_equal(pipe(pipes), 0);
                child = fork();
                if (child == 0) {
                        open_spool(bench, 4 * MEBIBYTE);
                        for (uint64_t i = 1; i < 100000; i++) {
                                append(bench, i, 3);
                                /* Now and then something is acknowledged. */
                                if (i % 7 == 0 && spool_read(bench->spool, 500, &batch) == 1)
                                        spool_acknowledge(bench->spool);
                                if (write(pipes[1], &i, sizeof(i)) < 0)
                                        _exit(1);
                        }
                        _exit(0);
                }
                while (told < wait_for)
                        assert_int_equal(read(pipes[0], &told, sizeof(told)), sizeof(told));
                kill(child, SIGKILL);
                waitpid(child, &status, 0);
                close(pipes[1]);
                while (read(pipes[0], &told, sizeof(told)) == sizeof(told))
                        ;
                close(pipes[0]);
                open_spool(bench, 4 * MEBIBYTE);
                found = drain(bench, MEBIBYTE);
                bench->spool = spool_close(bench->spool);
                assert_in_range(found.last, told, told + 1);
                assert_int_equal(found.last - found.first + 1, found.blocks);
        }
        open_spool(bench, MEBIBYTE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(gives_back_what_it_took_in_order_also_after_a_restart),
                TEST(does_not_give_again_what_is_acknowledged),
                TEST(an_empty_spool_takes_no_space),
                TEST(a_file_cut_at_any_byte_gives_every_whole_block_and_goes_on),
                TEST(a_damaged_byte_costs_blocks_but_never_gives_a_wrong_one),
                TEST(a_full_spool_drops_the_oldest_and_leaves_a_gap),
                TEST(an_acknowledgement_of_dropped_blocks_does_no_harm),
                TEST(a_refused_block_is_put_aside_and_the_others_go_on),
                TEST(the_folder_of_refused_blocks_is_bounded),
                TEST(blocks_wait_in_memory_while_the_disk_is_full),
                TEST(blocks_in_memory_are_bounded_and_leave_a_gap),
                TEST(blocks_survive_sigkill_at_any_moment),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
