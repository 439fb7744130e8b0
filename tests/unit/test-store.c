/* The store on a real file: what it keeps, what it refuses, what survives SIGKILL. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "collectord/store.h"

#define SECOND INT64_C(1000000)
#define START (INT64_C(1796000000) * SECOND)

static int make_folder(void **state)
{
        char *folder = strdup("/tmp/strata-store-XXXXXX");

        *state = folder;
        return folder && mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
        static const char *const names[] = {"strata.db", "strata.db-wal", "strata.db-shm"};

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                char path[256];

                snprintf(path, sizeof(path), "%s/%s", (char *)*state, names[i]);
                unlink(path);
        }
        rmdir(*state);
        free(*state);
        return 0;
}

static struct store *open_store(const char *folder)
{
        CLEANUP(str) char *message = NULL;
        struct store *store = NULL;
        int r = store_open(folder, &store, &message);

        if (r < 0)
                fail_msg("%s", message);
        return store;
}

static struct store_reader *open_reader(const char *folder)
{
        struct store_reader *reader = NULL;

        assert_int_equal(store_reader_open(folder, &reader), 0);
        return reader;
}

/* Ten rows, one second apart, that begin at @first. */
static struct block_header header(uint8_t host, uint64_t sequence, int64_t first)
{
        return (struct block_header){
                .host.bytes = {host},
                .boot.bytes = {7},
                .source = SOURCE_DISKSTATS,
                .sequence = sequence,
                .interval_us = SECOND,
                .rows = 10,
                .first_us = START + first * SECOND,
                .last_us = START + (first + 9) * SECOND,
        };
}

static int put(struct store *store, const struct block_header *block, const char *content)
{
        return store_put_block(store, block, (const uint8_t *)content, strlen(content), START);
}

static void put_committed(
        struct store *store, const struct block_header *block, const char *content)
{
        assert_int_equal(store_begin(store), 0);
        assert_int_equal(put(store, block, content), 0);
        assert_int_equal(store_commit(store), 0);
}

struct seen {
        char text[512];
        size_t n;
};

static int see_block(void *userdata, const struct store_block *block)
{
        struct seen *seen = userdata;
        size_t length = strlen(seen->text);

        snprintf(seen->text + length, sizeof(seen->text) - length, "%s%.*s", length ? " " : "",
                (int)block->size, (const char *)block->bytes);
        seen->n++;
        return 0;
}

/* The contents of the blocks, in order. */
static struct seen read_blocks(
        struct store_reader *reader, const struct id *host, int64_t from, int64_t to)
{
        struct seen seen = {0};

        assert_int_equal(store_read_blocks(reader, SOURCE_DISKSTATS, host, START + from * SECOND,
                                 START + to * SECOND, 0, see_block, &seen),
                0);
        return seen;
}

static void gives_the_blocks_that_touch_a_range_and_the_one_before(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        struct id two = {{2}};

        /* Late blocks: the order of arrival is not the order of time. */
        for (int i = 4; i >= 0; i--) {
                char content[2] = {(char)('a' + i), 0};
                struct block_header block = header(1, (uint64_t)i, i * 10);

                put_committed(store, &block, content);
                content[0] = (char)('A' + i);
                block.host = two;
                put_committed(store, &block, content);
        }
        assert_string_equal(read_blocks(reader, NULL, 25, 31).text, "b c d B C D");
        assert_string_equal(read_blocks(reader, &two, 25, 31).text, "B C D");
        assert_string_equal(read_blocks(reader, &two, 0, 5).text, "A");
        assert_string_equal(read_blocks(reader, &two, -9, -1).text, "");
        /* Between the rows of two blocks: only the one before. */
        assert_string_equal(read_blocks(reader, &two, 49, 49).text, "D E");
        assert_string_equal(read_blocks(reader, &two, 70, 90).text, "E");
}

static void looks_back_past_short_blocks_for_a_long_one(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        struct block_header long_block = header(1, 1, 0), other = header(1, 2, 20);

        long_block.last_us = START + 100 * SECOND;
        other.boot.bytes[0] = 9;
        put_committed(store, &long_block, "long");
        put_committed(store, &other, "short");
        assert_string_equal(read_blocks(reader, NULL, 90, 95).text, "long short");
}

static void ignores_a_repeat_and_refuses_other_content_under_the_same_name(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        struct block_header block = header(1, 5, 0), other_boot = header(1, 5, 20);

        put_committed(store, &block, "once");
        assert_int_equal(store_begin(store), 0);
        assert_int_equal(put(store, &block, "once"), STORE_DUPLICATE);
        assert_int_equal(put(store, &block, "othr"), -EEXIST);
        assert_int_equal(put(store, &block, "once more"), -EEXIST);
        other_boot.boot.bytes[0] = 8;
        assert_int_equal(put(store, &other_boot, "reboot"), 0);
        assert_int_equal(store_commit(store), 0);
        assert_string_equal(read_blocks(reader, NULL, 0, 50).text, "once reboot");
}

static int see_gap(void *userdata, const struct store_gap *gap)
{
        *(struct store_gap *)userdata = *gap;
        return 0;
}

static int see_agent(void *userdata, const struct store_agent *agent)
{
        *(struct store_agent *)userdata = *agent;
        return 0;
}

static void keeps_gaps_apart_and_counts_their_rows_once(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        struct block_header block = header(1, 1, 0), gap = header(1, 1, 10);
        struct store_agent_update update = {
                .host = block.host, .now_us = START, .clock_offset_us = -250, .plan_revision = 3};
        struct store_gap seen = {0};
        struct store_agent agent = {0};

        gap.flags = BLOCK_FLAG_GAP;
        gap.rows = 17;
        put_committed(store, &block, "block");
        put_committed(store, &gap, "gap");
        assert_int_equal(store_begin(store), 0);
        assert_int_equal(put(store, &gap, "gap"), STORE_DUPLICATE);
        assert_int_equal(store_put_agent(store, &update), 0);
        update.clock_offset_us = INT64_MIN; /* unknown: the last known stays */
        update.now_us += SECOND;
        assert_int_equal(store_put_agent(store, &update), 0);
        assert_int_equal(store_commit(store), 0);

        assert_string_equal(read_blocks(reader, NULL, 0, 99).text, "block");
        assert_int_equal(
                store_read_gaps(reader, START + 12 * SECOND, START + 13 * SECOND, see_gap, &seen),
                0);
        assert_int_equal(seen.rows, 17);
        seen.rows = 0;
        assert_int_equal(
                store_read_gaps(reader, START + 20 * SECOND, START + 30 * SECOND, see_gap, &seen),
                0);
        assert_int_equal(seen.rows, 0);
        assert_int_equal(store_read_agents(reader, see_agent, &agent), 0);
        assert_int_equal(agent.dropped_rows, 17);
        assert_int_equal(agent.rows, 10);
        assert_int_equal(agent.blocks, 1);
        assert_int_equal(agent.clock_offset_us, -250);
        assert_int_equal(agent.first_seen_us, START);
        assert_int_equal(agent.last_seen_us, START + SECOND);
}

static void undoes_one_request_of_a_group(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        struct block_header a = header(1, 1, 0), b = header(2, 1, 0), c = header(1, 2, 10);

        assert_int_equal(store_begin(store), 0);
        assert_int_equal(store_savepoint(store), 0);
        assert_int_equal(put(store, &a, "a"), 0);
        assert_int_equal(store_savepoint_release(store), 0);
        assert_int_equal(store_savepoint(store), 0);
        assert_int_equal(put(store, &b, "b"), 0);
        assert_int_equal(store_savepoint_rollback(store), 0);
        assert_int_equal(store_savepoint(store), 0);
        assert_int_equal(put(store, &c, "c"), 0);
        assert_int_equal(store_savepoint_release(store), 0);
        assert_int_equal(read_blocks(reader, NULL, 0, 99).n, 0); /* not committed yet */
        assert_int_equal(store_commit(store), 0);
        assert_string_equal(read_blocks(reader, NULL, 0, 99).text, "a c");
        put_committed(store, &b, "b");
        assert_string_equal(read_blocks(reader, NULL, 0, 99).text, "a c b");
}

static int see_facts(void *userdata, const struct store_facts *facts)
{
        strcat(userdata, facts->json);
        return 0;
}

static void counts_a_version_only_when_facts_change(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        struct id host = {{1}};
        uint64_t versions[4];
        char text[64] = "";
        static const char *const json[] = {"{}", "{}", "{\"a\":1}"};

        assert_int_equal(store_read_facts_version(reader, &versions[0]), 0);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(store_begin(store), 0);
                assert_int_equal(store_put_facts(store, &host, json[i], START + i), 0);
                assert_int_equal(store_commit(store), 0);
                assert_int_equal(store_read_facts_version(reader, &versions[i + 1]), 0);
        }
        assert_true(versions[1] > versions[0]);
        assert_int_equal(versions[2], versions[1]);
        assert_true(versions[3] > versions[2]);
        assert_int_equal(store_read_facts(reader, see_facts, text), 0);
        assert_string_equal(text, "{\"a\":1}");
}

static void gives_every_change_of_a_plan_a_larger_revision(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        CLEANUP(str) char *json = NULL;
        struct id host = {{1}};
        uint64_t first, second, third, found;

        assert_int_equal(store_begin(store), 0);
        assert_int_equal(store_put_plan(store, NULL, "{\"all\":1}", &first), 0);
        assert_int_equal(store_put_plan(store, &host, "{\"one\":1}", &second), 0);
        assert_int_equal(store_put_plan(store, &host, NULL, &third), 0);
        assert_int_equal(store_put_plan(store, &host, NULL, &found), -ENOENT);
        assert_int_equal(store_commit(store), 0);
        assert_true(first < second && second < third);
        assert_int_equal(store_read_plan(reader, NULL, &json, &found), 0);
        assert_string_equal(json, "{\"all\":1}");
        assert_int_equal(found, first);
        assert_int_equal(store_read_plan(reader, &host, &json, &found), -ENOENT);
}

static int see_stream(void *userdata, const struct store_stream *stream)
{
        *(struct store_stream *)userdata = *stream;
        return 0;
}

static void forgets_old_blocks_in_small_steps(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        struct store_stream stream = {0};
        uint32_t removed, steps = 0;

        for (int i = 0; i < 50; i++) {
                struct block_header block = header(1, (uint64_t)i, i * 10);

                put_committed(store, &block, "x");
        }
        do {
                assert_int_equal(store_retain(store, START + 300 * SECOND, 7, &removed), 0);
                assert_true(removed <= 7);
                steps++;
        } while (removed > 0);
        assert_int_equal(steps, 6); /* 30 blocks end before, in 5 steps */
        assert_int_equal(read_blocks(reader, NULL, 0, 500).n, 20);
        assert_int_equal(store_read_streams(reader, see_stream, &stream), 0);
        assert_int_equal(stream.blocks, 20);
        assert_int_equal(stream.rows, 200);
        assert_int_equal(stream.first_us, START + 300 * SECOND);
        assert_int_equal(stream.last_us, START + 499 * SECOND);
}

static void does_not_believe_a_clock_of_another_century(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        struct block_header early = header(1, 1, INT64_C(5000000000)), right = header(1, 2, 700);
        struct store_stream stream = {0};

        put_committed(store, &early, "early");
        assert_int_equal(store_read_streams(reader, see_stream, &stream), 0);
        assert_int_equal(stream.last_us, START + STORE_AHEAD_MAX_US);
        assert_int_equal(read_blocks(reader, NULL, INT64_C(5000000000), INT64_C(5000000001)).n, 1);

        right.interval_us = 2 * SECOND;
        assert_int_equal(store_begin(store), 0);
        assert_int_equal(store_put_block(store, &right, (const uint8_t *)"r", 1, right.last_us), 0);
        assert_int_equal(store_commit(store), 0);
        assert_int_equal(store_read_streams(reader, see_stream, &stream), 0);
        assert_int_equal(stream.last_us, right.last_us);
        assert_int_equal(stream.interval_us, 2 * SECOND);
}

static void says_full_at_its_limit_and_goes_on_after(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        CLEANUP(mem) char *large = malloc(1 << 20);
        struct block_header block = header(1, 1, 0), next = header(1, 2, 10);

        memset(large, 'x', 1 << 20);
        assert_int_equal(store_set_limit(store, 512 * 1024), 0);
        assert_int_equal(store_begin(store), 0);
        assert_int_equal(
                store_put_block(store, &block, (const uint8_t *)large, 1 << 20, START), -ENOSPC);
        assert_int_equal(store_rollback(store), 0);
        assert_int_equal(read_blocks(reader, NULL, 0, 99).n, 0);
        put_committed(store, &next, "small");
        assert_int_equal(store_set_limit(store, 0), 0);
        assert_int_equal(store_begin(store), 0);
        assert_int_equal(store_put_block(store, &block, (const uint8_t *)large, 1 << 20, START), 0);
        assert_int_equal(store_commit(store), 0);
        assert_int_equal(read_blocks(reader, NULL, 0, 99).n, 2);
}

static void gives_up_a_read_at_its_deadline(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        struct seen seen = {0};

        store_reader_set_deadline(reader, 1);
        assert_int_equal(
                store_read_blocks(reader, SOURCE_OSD, NULL, 0, START, 0, see_block, &seen), -ETIME);
        store_reader_set_deadline(reader, 0);
        assert_int_equal(
                store_read_blocks(reader, SOURCE_OSD, NULL, 0, START, 0, see_block, &seen), 0);
}

static void sees_one_state_between_begin_and_end(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        struct block_header a = header(1, 1, 0), b = header(1, 2, 10);

        put_committed(store, &a, "a");
        assert_int_equal(store_reader_begin(reader), 0);
        assert_string_equal(read_blocks(reader, NULL, 0, 99).text, "a");
        put_committed(store, &b, "b");
        assert_string_equal(read_blocks(reader, NULL, 0, 99).text, "a");
        store_reader_end(reader);
        assert_string_equal(read_blocks(reader, NULL, 0, 99).text, "a b");
}

/* Writes @size bytes of @content over the store's file from @offset; @size 0 cuts it there. */
/* Until the WAL has @pages. */
static uint64_t fill_wal(struct store *store, uint64_t sequence, int pages)
{
        static char content[4000];

        memset(content, 'x', sizeof(content) - 1);
        while (store_wal_pages(store) < pages) {
                struct block_header block = header(1, sequence++, 0);

                put_committed(store, &block, content);
        }
        return sequence;
}

static void folds_its_wal_back_once_no_reader_holds_on_to_an_old_state(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        CLEANUP(store_fold) struct store_fold *fold = NULL;
        uint64_t sequence;

        assert_int_equal(store_fold_open(*state, &fold), 0);
        sequence = fill_wal(store, 0, 100);
        assert_int_equal(store_reader_begin(reader), 0);
        sequence = fill_wal(store, sequence, 200);
        /* What the reader has not seen must not go into the file under its feet. */
        assert_int_equal(store_fold_run(fold), 0);
        assert_int_equal(store_fold_finish(store), 0);
        sequence = fill_wal(store, sequence, 210);
        store_reader_end(reader);
        assert_int_equal(store_fold_run(fold), 0);
        /* Beside the writer, whose last pages are left for the loop. */
        (void)fill_wal(store, sequence, 220);
        assert_int_equal(store_fold_finish(store), 0);
        put_committed(store, &(struct block_header){.host.bytes = {2}, .rows = 1}, "y");
        assert_in_range(store_wal_pages(store), 1, 20);
}

static void damage(const char *folder, off_t offset, const void *content, size_t size)
{
        char path[256];
        CLEANUP(fd) int fd = -1;

        snprintf(path, sizeof(path), "%s/strata.db", folder);
        fd = open(path, O_RDWR | O_CREAT, 0600);
        assert_true(fd >= 0);
        if (size == 0)
                assert_int_equal(ftruncate(fd, offset), 0);
        else
                assert_int_equal(pwrite(fd, content, size, offset), size);
}

static void expect_refusal(const char *folder, int error, const char *words)
{
        CLEANUP(str) char *message = NULL;
        CLEANUP(store) struct store *store = NULL;

        assert_int_equal(store_open(folder, &store, &message), error);
        assert_non_null(message);
        assert_non_null(strstr(message, folder));
        if (!strstr(message, words))
                fail_msg("'%s' does not say '%s'", message, words);
}

static void names_the_file_when_it_is_not_a_store(void **state)
{
        damage(*state, 0, "this is no database, but long enough to be looked at as one .......",
                67);
        expect_refusal(*state, -EBADMSG, "strata.db: is damaged");
}

static void names_the_file_when_it_is_cut(void **state)
{
        struct store *store = open_store(*state);

        store_close(store);
        damage(*state, 8192, NULL, 0);
        expect_refusal(*state, -EBADMSG, "strata.db: is damaged");
}

static void refuses_a_newer_schema(void **state)
{
        static const uint8_t version[] = {0, 0, 0, 99}; /* user_version, big-endian at byte 60 */
        struct store *store = open_store(*state);

        store_close(store);
        damage(*state, 60, version, sizeof(version));
        expect_refusal(*state, -EPROTONOSUPPORT, "newer");
}

static void refuses_the_database_of_another_program(void **state)
{
        static const uint8_t other[] = {1, 2, 3, 4}; /* application_id, at byte 68 */
        struct store *store = open_store(*state);

        store_close(store);
        damage(*state, 68, other, sizeof(other));
        expect_refusal(*state, -EBADMSG, "another program");
}

static void refuses_a_store_in_use(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);

        expect_refusal(*state, -EBUSY, "another strata-collectord");
}

static void names_a_folder_that_cannot_be_made(void **state)
{
        char folder[256];

        snprintf(folder, sizeof(folder), "%s/missing/store", (char *)*state);
        expect_refusal(folder, -ENOENT, "No such file");
}

/* Ingests groups of three until it is killed; tells the last sequence of each committed group. */
static void ingest_for_ever(const char *folder, uint64_t first, int pipe_fd)
{
        CLEANUP(store) struct store *store = open_store(folder);

        for (uint64_t sequence = first;; sequence += 3) {
                uint64_t last = sequence + 2;
                int r = store_begin(store);

                for (uint64_t i = sequence; i <= last && r >= 0; i++) {
                        struct block_header block = header(1, i, (int64_t)i);
                        char content[32];

                        snprintf(content, sizeof(content), "block %lu", (unsigned long)i);
                        r = put(store, &block, content);
                }
                if (r < 0 || store_commit(store) < 0)
                        _exit(1);
                if (write(pipe_fd, &last, sizeof(last)) != sizeof(last))
                        _exit(1);
        }
}

/* The first sequence without acknowledgement of a child that was killed after about @delay_us. */
static uint64_t kill_ingest(const char *folder, uint64_t first, unsigned delay_us)
{
        struct timespec delay = {.tv_nsec = delay_us * 1000L};
        uint64_t last;
        int pipe_fds[2], status;
        pid_t pid;

        assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                ingest_for_ever(folder, first, pipe_fds[1]);
        close(pipe_fds[1]);
        assert_int_equal(read(pipe_fds[0], &last, sizeof(last)), sizeof(last));
        nanosleep(&delay, NULL);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        while (read(pipe_fds[0], &first, sizeof(first)) == sizeof(first))
                last = first;
        close(pipe_fds[0]);
        return last + 1;
}

static int count_sequence(void *userdata, const struct store_block *block)
{
        uint32_t *counts = userdata;

        counts[(block->first_us - START) / SECOND]++;
        return 0;
}

static void keeps_each_acknowledged_block_once_when_it_is_killed(void **state)
{
        enum { SEQUENCES_MAX = 1 << 20 };
        CLEANUP(mem) uint32_t *counts = calloc(SEQUENCES_MAX, sizeof(*counts));
        CLEANUP(store_reader) struct store_reader *reader = NULL;
        CLEANUP(store) struct store *store = NULL;
        unsigned seed = (unsigned)time(NULL);
        uint64_t next = 0;

        print_message("# seed %u\n", seed);
        srand(seed);
        /* What was not acknowledged is sent again, as an agent does. */
        for (int round = 0; round < 20; round++)
                next = kill_ingest(*state, next, (unsigned)rand() % 20000);
        store = open_store(*state);
        reader = open_reader(*state);
        assert_int_equal(store_read_blocks(reader, SOURCE_DISKSTATS, NULL, 0,
                                 START + SEQUENCES_MAX * SECOND, 0, count_sequence, counts),
                0);
        for (uint64_t i = 0; i < next; i++)
                if (counts[i] != 1)
                        fail_msg("block %lu is there %u times", (unsigned long)i, counts[i]);
}

static void reads_360_small_blocks_quickly(void **state)
{
        CLEANUP(store) struct store *store = open_store(*state);
        CLEANUP(store_reader) struct store_reader *reader = open_reader(*state);
        struct timespec begin, end;
        char content[701];
        struct seen seen;

        memset(content, 'x', 700);
        content[700] = 0;
        assert_int_equal(store_begin(store), 0);
        for (int i = 0; i < 2000; i++)
                for (uint8_t host = 0; host < 3; host++) {
                        struct block_header block = header(host, (uint64_t)i, i * 10);

                        assert_int_equal(put(store, &block, content), 0);
                }
        assert_int_equal(store_commit(store), 0);
        read_blocks(reader, &(struct id){{1}}, 10000, 13600);
        clock_gettime(CLOCK_MONOTONIC, &begin);
        seen = read_blocks(reader, &(struct id){{1}}, 10000, 13600);
        clock_gettime(CLOCK_MONOTONIC, &end);
        assert_int_equal(seen.n, 362);
        print_message("# 360 blocks of 700 bytes in %ld us\n",
                (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(gives_the_blocks_that_touch_a_range_and_the_one_before),
                TEST(looks_back_past_short_blocks_for_a_long_one),
                TEST(ignores_a_repeat_and_refuses_other_content_under_the_same_name),
                TEST(keeps_gaps_apart_and_counts_their_rows_once),
                TEST(undoes_one_request_of_a_group),
                TEST(counts_a_version_only_when_facts_change),
                TEST(gives_every_change_of_a_plan_a_larger_revision),
                TEST(forgets_old_blocks_in_small_steps),
                TEST(does_not_believe_a_clock_of_another_century),
                TEST(says_full_at_its_limit_and_goes_on_after),
                TEST(gives_up_a_read_at_its_deadline),
                TEST(sees_one_state_between_begin_and_end),
                TEST(folds_its_wal_back_once_no_reader_holds_on_to_an_old_state),
                TEST(names_the_file_when_it_is_not_a_store),
                TEST(names_the_file_when_it_is_cut),
                TEST(refuses_a_newer_schema),
                TEST(refuses_the_database_of_another_program),
                TEST(refuses_a_store_in_use),
                TEST(names_a_folder_that_cannot_be_made),
                TEST(keeps_each_acknowledged_block_once_when_it_is_killed),
                TEST(reads_360_small_blocks_quickly),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
