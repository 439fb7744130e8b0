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

#include "spool-fixture.h"

static int set_up(void **state)
{
        struct spool_bench *bench = bench_new();

        open_spool(bench, 64 * MEBIBYTE);
        *state = bench;
        return 0;
}

static int tear_down(void **state)
{
        bench_free(*state);
        return 0;
}

static void gives_back_what_it_took_newest_first_also_after_a_restart(void **state)
{
        struct spool_bench *bench = *state;
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
        struct spool_bench *bench = *state;
        struct spool_batch batch;
        struct found found = {0};

        for (uint64_t i = 1; i <= 20; i++)
                append(bench, i, 10);
        assert_int_equal(spool_read(bench->spool, 4000, &batch), 1);
        look_at_batch(&batch, &found);
        assert_int_equal(found.last, 20);
        assert_in_range(found.first, 2, 20);
        spool_acknowledge(bench->spool);
        /* This one is read, but never acknowledged. */
        assert_int_equal(spool_read(bench->spool, 4000, &batch), 1);
        reopen(bench, 64 * MEBIBYTE);
        assert_int_equal(drain(bench, 4000).last, found.first - 1);
        reopen(bench, 64 * MEBIBYTE);
        assert_int_equal(spool_read(bench->spool, 4000, &batch), 0);
}

static void blocks_appended_before_the_answer_come_next_and_none_twice(void **state)
{
        struct spool_bench *bench = *state;
        struct spool_batch batch;
        struct found found = {0};

        for (uint64_t i = 1; i <= 20; i++)
                append(bench, i, 10);
        assert_int_equal(spool_read(bench->spool, 4000, &batch), 1);
        look_at_batch(&batch, &found);
        append(bench, 21, 10);
        append(bench, 22, 10);
        spool_acknowledge(bench->spool);
        assert_int_equal(bench->counters.spool_blocks, 22 - found.blocks);
        /* Also for one who knows only the file. */
        reopen(bench, 64 * MEBIBYTE);
        assert_int_equal(bench->counters.spool_blocks, 22 - found.blocks);
        assert_int_equal(bench->counters.spool_rows, 220 - found.rows);
        assert_int_equal(spool_read(bench->spool, 1500, &batch), 1);
        look_at_batch(&batch, &found);
        assert_int_equal(found.batch_first, 21);
        assert_int_equal(found.batch_last, 22);
        spool_acknowledge(bench->spool);
        while (spool_read(bench->spool, 4000, &batch) == 1) {
                look_at_batch(&batch, &found);
                spool_acknowledge(bench->spool);
        }
        assert_int_equal(found.rows, 220);
        assert_int_equal(folder_files(bench->folder), 1);
}

static void what_is_sealed_since_the_collector_answers_goes_before_the_backlog(void **state)
{
        struct spool_bench *bench = *state;
        struct spool_batch batch;
        struct found found = {0};

        for (uint64_t i = 1; i <= 50; i++)
                append(bench, i, 10);
        assert_int_equal(spool_look(bench->spool), SPOOL_BACKLOG);
        assert_int_equal(spool_read(bench->spool, 4000, &batch), 1);
        spool_acknowledge(bench->spool);
        spool_go_live(bench->spool);
        assert_int_equal(spool_look(bench->spool), SPOOL_BACKLOG);
        for (uint64_t i = 51; i <= 70; i++) {
                append(bench, i, 10);
                assert_int_equal(spool_look(bench->spool), SPOOL_LIVE);
                assert_int_equal(spool_read(bench->spool, MEBIBYTE, &batch), 1);
                look_at_batch(&batch, &found);
                assert_int_equal(batch.blocks, 1);
                assert_int_equal(found.batch_last, i);
                spool_acknowledge(bench->spool);
                assert_int_equal(spool_look(bench->spool), SPOOL_BACKLOG);
        }
        /* An answer to each batch costs no file. */
        assert_int_equal(folder_files(bench->folder), 2);
        assert_true(drain(bench, 4000).last < 50);
        assert_int_equal(spool_look(bench->spool), SPOOL_EMPTY);
        append(bench, 71, 10);
        assert_int_equal(spool_look(bench->spool), SPOOL_LIVE);
}

static void an_acknowledged_backlog_gives_its_space_back(void **state)
{
        struct spool_bench *bench = *state;
        struct spool_batch batch;
        uint64_t bytes;

        reopen(bench, MEBIBYTE);
        for (uint64_t i = 1; i <= 150; i++)
                append(bench, i, 100);
        spool_go_live(bench->spool);
        append(bench, 151, 1);
        bytes = folder_bytes(bench->folder, true);
        while (spool_read(bench->spool, 20000, &batch) == 1) {
                spool_acknowledge(bench->spool);
                assert_true(folder_bytes(bench->folder, true) <= bytes);
                bytes = folder_bytes(bench->folder, true);
        }
        /* What is allocated to append to stays. */
        assert_int_equal(bytes, MEBIBYTE / 64);
        assert_int_equal(folder_files(bench->folder), 1);
}

static void good_times_take_the_same_place_again_and_again(void **state)
{
        struct spool_bench *bench = *state;
        uint64_t size = 0;

        append(bench, 1, 100);
        drain(bench, MEBIBYTE);
        size = folder_bytes(bench->folder, false);
        assert_int_equal(folder_bytes(bench->folder, true), MEBIBYTE);
        for (uint64_t i = 2; i <= 20; i++) {
                append(bench, i, 100);
                assert_int_equal(drain(bench, MEBIBYTE).blocks, 1);
                assert_in_range(folder_bytes(bench->folder, false), size - 100, size + 100);
                assert_int_equal(folder_bytes(bench->folder, true), MEBIBYTE);
        }
        /* What is left of them behind the end is not meant. */
        reopen(bench, 64 * MEBIBYTE);
        assert_int_equal(bench->counters.spool_blocks, 0);
        append(bench, 20, 100);
        reopen(bench, 64 * MEBIBYTE);
        assert_int_equal(drain(bench, MEBIBYTE).blocks, 1);
}

static void restarts_without_an_end_take_no_file_each(void **state)
{
        struct spool_bench *bench = *state;

        for (uint64_t i = 1; i <= 600; i++) {
                append(bench, i, 1);
                reopen(bench, 64 * MEBIBYTE);
        }
        assert_int_equal(folder_files(bench->folder), 1);
        assert_int_equal(drain(bench, MEBIBYTE).blocks, 600);
}

static void a_collector_that_comes_and_goes_costs_no_block(void **state)
{
        struct spool_bench *bench = *state;
        struct spool_batch batch;
        uint64_t blocks = 0;

        for (uint64_t i = 1; i <= 2000; i++) {
                append(bench, 3 * i, 1);
                append(bench, 3 * i + 1, 1);
                spool_go_live(bench->spool);
                append(bench, 3 * i + 2, 1);
                assert_int_equal(spool_read(bench->spool, 1, &batch), 1);
                blocks += batch.blocks;
                spool_acknowledge(bench->spool);
        }
        assert_true(folder_files(bench->folder) <= 256);
        assert_int_equal(bench->counters.dropped_rows, 0);
        assert_int_equal(bench->counters.spool_blocks + blocks, 6000);
        reopen(bench, 64 * MEBIBYTE);
        assert_int_equal(drain(bench, MEBIBYTE).blocks + blocks, 6000);
}

static void a_damaged_byte_costs_blocks_but_never_gives_a_wrong_one(void **state)
{
        struct spool_bench *bench = *state;
        CLEANUP(str) char *path = segment_path(bench, 1);
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
        /* All but the head's and the marks of what is done matter. */
        assert_true(lost >= size - 64 - 8 - 3 * 8);
        open_spool(bench, 64 * MEBIBYTE);
}

static void a_full_spool_drops_the_oldest_and_leaves_a_gap(void **state)
{
        struct spool_bench *bench = *state;
        struct found found;

        reopen(bench, MEBIBYTE);
        for (uint64_t i = 1; i <= 700; i++) {
                assert_int_equal(append(bench, i, 100), 0);
                assert_true(folder_bytes(bench->folder, false) <= MEBIBYTE);
                /* Each file's last page counts whole. */
                assert_true(folder_bytes(bench->folder, true) <= MEBIBYTE + 65 * 4096);
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

static void what_is_on_its_way_is_not_dropped(void **state)
{
        struct spool_bench *bench = *state;
        struct spool_batch batch;
        struct found found = {0};

        reopen(bench, MEBIBYTE);
        append(bench, 1, 100);
        assert_int_equal(spool_read(bench->spool, 100, &batch), 1);
        for (uint64_t i = 2; i <= 700; i++)
                append(bench, i, 100);
        spool_acknowledge(bench->spool);
        /* And what has arrived is not told as missing when its segment is dropped. */
        for (uint64_t i = 701; i <= 1400; i++)
                append(bench, i, 100);
        while (spool_read(bench->spool, 100000, &batch) == 1) {
                look_at_batch(&batch, &found);
                spool_acknowledge(bench->spool);
        }
        assert_int_equal(found.last, 1400);
        assert_int_equal(100 + found.rows + found.gap_rows, 140000);
}

static void a_refused_block_is_put_aside_and_the_others_go_on(void **state)
{
        struct spool_bench *bench = *state;
        struct block_header header;
        struct spool_batch batch;
        CLEANUP(str) char *path = NULL;
        struct found found = {0};

        for (uint64_t i = 1; i <= 5; i++)
                append(bench, i, 10);
        assert_int_equal(spool_read(bench->spool, MEBIBYTE, &batch), 1);
        assert_int_equal(batch.blocks, 5);
        assert_int_equal(spool_refuse(bench->spool, 5, true, &header), -EINVAL);
        assert_int_equal(spool_refuse(bench->spool, 2, true, &header), 0);
        assert_int_equal(header.sequence, 3);
        assert_true(asprintf(&path, "%s/rejected/diskstats-3.block", bench->folder) > 0);
        assert_int_equal(access(path, R_OK), 0);
        assert_int_equal(bench->counters.rejected_blocks, 1);
        /* The gap outlives the process, as the others do. */
        reopen(bench, 64 * MEBIBYTE);
        found = drain(bench, MEBIBYTE);
        assert_int_equal(found.blocks, 4);
        assert_int_equal(found.first, 1);
        assert_int_equal(found.last, 5);
        assert_int_equal(found.gap_rows, 10);
        assert_int_equal(found.gap.sequence, 3);
}

static void refused_blocks_in_memory_are_forgotten_one_by_one(void **state)
{
        struct spool_bench *bench = *state;
        struct block_header header;
        struct spool_batch batch;
        struct found found;

        bench->spool = spool_close(bench->spool);
        assert_int_equal(bench_try_open(bench, NULL, MEBIBYTE), 0);
        for (uint64_t i = 1; i <= 5; i++)
                append(bench, i, 10);
        assert_int_equal(spool_read(bench->spool, 1500, &batch), 1);
        assert_int_equal(batch.blocks, 2);
        assert_int_equal(spool_refuse(bench->spool, 0, true, &header), 0);
        assert_int_equal(header.sequence, 4);
        found = drain(bench, 1500);
        assert_int_equal(found.blocks, 4);
        assert_int_equal(found.rows + found.gap_rows, 50);
}

static void the_folder_of_refused_blocks_is_bounded(void **state)
{
        struct spool_bench *bench = *state;
        struct block_header header;
        struct spool_batch batch;
        CLEANUP(str) char *path = NULL;
        struct dirent *entry;
        unsigned files = 0;
        DIR *dir;

        for (uint64_t i = 1; i <= 100; i++) {
                append(bench, i, 1);
                assert_int_equal(spool_read(bench->spool, 1, &batch), 1);
                assert_int_equal(spool_refuse(bench->spool, 0, false, &header), 0);
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
        struct spool_bench *bench = *state;
        struct found found;
        int error = 0;

        append(bench, 1, 100);
        signal(SIGXFSZ, SIG_IGN);
        getrlimit(RLIMIT_FSIZE, &before);
        small = before;
        small.rlim_cur = 20000;
        setrlimit(RLIMIT_FSIZE, &small);
        for (uint64_t i = 2; i <= 20; i++)
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
        struct spool_bench *bench = *state;
        struct found found;

        bench->spool = spool_close(bench->spool);
        assert_int_equal(bench_try_open(bench, NULL, MEBIBYTE), 0);
        for (uint64_t i = 1; i <= 700; i++)
                assert_int_equal(append(bench, i, 100), 0);
        assert_true(bench->counters.spool_bytes <= MEBIBYTE);
        found = drain(bench, 100000);
        assert_int_equal(found.last, 700);
        assert_int_equal(found.rows + found.gap_rows, 70000);
        assert_int_equal(found.gap.first_us, 1000);
}

#define KILL_BLOCKS 20000u

enum fate { MAYBE = 1, GONE = 2, THERE = 4 };

/* What the child tells of its life: blocks appended so far; and a range that it is about to
 * acknowledge, or has. */
struct word {
        uint64_t appended, first, last;
        bool acknowledged;
};

static void tell(int fd, const struct word *word)
{
        if (write(fd, word, sizeof(*word)) != sizeof(*word))
                _exit(1);
}

static void live(struct spool_bench *bench, int fd)
{
        struct word word = {0};
        struct spool_batch batch;

        open_spool(bench, 4 * MEBIBYTE);
        for (uint64_t i = 1; i < KILL_BLOCKS; i++) {
                struct found found = {0};

                append(bench, i, 3);
                word = (struct word){.appended = i};
                tell(fd, &word);
                /* Now and then something is acknowledged, and something appended before that. */
                if (i % 7 != 0 || spool_read(bench->spool, 500 + i % 3 * 500, &batch) != 1)
                        continue;
                look_at_batch(&batch, &found);
                if (i % 3 == 0)
                        append(bench, ++i, 3);
                word = (struct word){i, found.batch_first, found.batch_last, false};
                tell(fd, &word);
                spool_acknowledge(bench->spool);
                word.acknowledged = true;
                tell(fd, &word);
        }
        _exit(0);
}

/* What is there after a kill, against what the child told. */
static void check_after_kill(struct spool_bench *bench, uint8_t *fate, uint64_t told)
{
        struct spool_batch batch;

        open_spool(bench, 4 * MEBIBYTE);
        while (spool_read(bench->spool, MEBIBYTE, &batch) == 1) {
                struct block_header header;
                size_t at = 0, size;

                for (uint32_t i = 0; i < batch.blocks; i++, at += size) {
                        assert_int_equal(
                                block_peek(batch.bytes + at, batch.size - at, &header, &size), 0);
                        assert_int_equal(fate[header.sequence] & (GONE | THERE), 0);
                        fate[header.sequence] |= THERE;
                }
                spool_acknowledge(bench->spool);
        }
        for (uint64_t i = 1; i <= told; i++)
                assert_int_not_equal(fate[i], 0);
        bench->spool = spool_close(bench->spool);
}

/* Hears one word; false at the end. */
static bool hear(int fd, uint8_t *fate, uint64_t *told)
{
        struct word word;

        if (read(fd, &word, sizeof(word)) != sizeof(word))
                return false;
        *told = word.appended;
        for (uint64_t i = word.first; i > 0 && i <= word.last; i++)
                fate[i] |= word.acknowledged ? GONE : MAYBE;
        return true;
}

static void blocks_survive_sigkill_at_any_moment(void **state)
{
        static uint8_t fate[KILL_BLOCKS + 1];
        struct spool_bench *bench = *state;

        bench->spool = spool_close(bench->spool);
        for (int round = 0; round < 15; round++) {
                uint64_t wait_for = 1 + (uint64_t)random() % 300;
                uint64_t told = 0;
                int pipes[2], status;
                pid_t child;

                memset(fate, 0, sizeof(fate));
                assert_int_equal(pipe(pipes), 0);
                child = fork();
                if (child == 0)
                        live(bench, pipes[1]);
                close(pipes[1]);
                while (told < wait_for)
                        assert_true(hear(pipes[0], fate, &told));
                kill(child, SIGKILL);
                waitpid(child, &status, 0);
                while (hear(pipes[0], fate, &told))
                        ;
                check_after_kill(bench, fate, told);
                close(pipes[0]);
        }
        open_spool(bench, MEBIBYTE);
}

static void blocks_older_than_the_bound_are_dropped_and_leave_a_gap(void **state)
{
        struct spool_bench *bench = *state;
        struct found found;

        bench->age_max_us = 7 * DAY_US;
        reopen(bench, 64 * MEBIBYTE);
        for (uint64_t i = 1; i <= 14 * 24; i++) {
                append(bench, i, 1);
                pass(bench, HOUR_US);
        }
        found = drain(bench, MEBIBYTE);
        /* To a 64th of the bound. */
        assert_in_range(found.blocks, 7 * 24 - 1, 7 * 24 + 4);
        assert_int_equal(found.last, 14 * 24);
        assert_int_equal(found.rows + found.gap_rows, 14 * 24);
        assert_int_equal(bench->counters.dropped_rows, found.gap_rows);
}

static void nothing_grows_old_by_a_wall_clock_that_jumps(void **state)
{
        static const int64_t jumps[] = {3600, -3600, 30 * 86400, -30 * 86400};
        struct spool_bench *bench = *state;

        bench->age_max_us = 7 * DAY_US;
        reopen(bench, 64 * MEBIBYTE);
        for (uint64_t i = 1; i <= 100; i++) {
                append(bench, i, 1);
                pass(bench, HOUR_US);
                bench->now.realtime_us += jumps[i % 4] * (int64_t)SECOND_US;
                if (i % 10 == 0)
                        reopen(bench, 64 * MEBIBYTE);
        }
        assert_int_equal(bench->counters.dropped_rows, 0);
        assert_int_equal(drain(bench, MEBIBYTE).blocks, 100);
}

static void a_reboot_counts_as_a_day_at_most(void **state)
{
        struct spool_bench *bench = *state;

        bench->age_max_us = 7 * DAY_US;
        reopen(bench, 64 * MEBIBYTE);
        append(bench, 1, 1);
        for (unsigned boots = 1; boots <= 6; boots++) {
                /* It wakes in a year far away. */
                bench->boot.bytes[0]++;
                bench->now.boot_us = 5 * SECOND_US;
                bench->now.realtime_us += (int64_t)(400 * DAY_US);
                reopen(bench, 64 * MEBIBYTE);
                assert_int_equal(bench->counters.dropped_rows, 0);
                append(bench, 1 + boots, 1);
        }
        pass(bench, DAY_US + HOUR_US);
        append(bench, 8, 1);
        assert_int_equal(bench->counters.dropped_rows, 1);
        /* Or long ago. */
        bench->boot.bytes[0]++;
        bench->now.realtime_us = 0;
        reopen(bench, 64 * MEBIBYTE);
        assert_int_equal(bench->counters.dropped_rows, 1);
}

static void without_a_bound_nothing_is_too_old(void **state)
{
        struct spool_bench *bench = *state;

        append(bench, 1, 1);
        pass(bench, 1000 * DAY_US);
        append(bench, 2, 1);
        assert_int_equal(drain(bench, MEBIBYTE).blocks, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(gives_back_what_it_took_newest_first_also_after_a_restart),
                TEST(does_not_give_again_what_is_acknowledged),
                TEST(blocks_appended_before_the_answer_come_next_and_none_twice),
                TEST(what_is_sealed_since_the_collector_answers_goes_before_the_backlog),
                TEST(an_acknowledged_backlog_gives_its_space_back),
                TEST(good_times_take_the_same_place_again_and_again),
                TEST(restarts_without_an_end_take_no_file_each),
                TEST(a_collector_that_comes_and_goes_costs_no_block),
                TEST(a_damaged_byte_costs_blocks_but_never_gives_a_wrong_one),
                TEST(a_full_spool_drops_the_oldest_and_leaves_a_gap),
                TEST(what_is_on_its_way_is_not_dropped),
                TEST(a_refused_block_is_put_aside_and_the_others_go_on),
                TEST(refused_blocks_in_memory_are_forgotten_one_by_one),
                TEST(the_folder_of_refused_blocks_is_bounded),
                TEST(blocks_wait_in_memory_while_the_disk_is_full),
                TEST(blocks_in_memory_are_bounded_and_leave_a_gap),
                TEST(blocks_survive_sigkill_at_any_moment),
                TEST(blocks_older_than_the_bound_are_dropped_and_leave_a_gap),
                TEST(nothing_grows_old_by_a_wall_clock_that_jumps),
                TEST(a_reboot_counts_as_a_day_at_most),
                TEST(without_a_bound_nothing_is_too_old),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
