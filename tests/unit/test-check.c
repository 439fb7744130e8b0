/* What the check of a store finds: each damage by its name, and all else still counted. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "collectord/query.h"
#include "collectord/store-check.h"
#include "collectord/store.h"
#include "lib/block.h"
#include "lib/metric.h"
#include "tests/unit/folder-fixture.h"

#define SECOND INT64_C(1000000)
#define START (INT64_C(1796083200) * SECOND) /* midnight of 2026-12-01 */
#define INTERVAL (10 * SECOND)
#define BLOCK_ROWS 30u
#define BLOCKS                                                                                     \
        160u /* 13 hours and a bit: a raw file, two slots of minutes, a rest in the hot log        \
              */
#define COLUMNS 2u
#define SAID_MAX 32u

struct said {
        char file[64], table[16], what[128];
        int64_t key, first_us, last_us;
        struct id host, cluster;
        enum source_id source;
};

struct world {
        char folder[64];
        struct store *store;
        struct store_keeper *keeper;
        struct block_encoder *encoder;
        uint64_t sequence;
        struct said said[SAID_MAX]; /* damage */
        size_t n_said;
        struct said unreadable[SAID_MAX];
        size_t n_unreadable;
        uint64_t progress, mend_at; /* blocks after which the hot log is mended; 0: never */
        struct store_check_counts counts, whole;
};

static const struct id host = {.bytes = {7, 1}}, cluster = {.bytes = {8, 2}};
static const struct store_ages ages = {0};

/* ---- a store ---- */

static void encode(struct world *world, struct block_header header, int64_t first_us,
        const uint8_t **ret_bytes, size_t *ret_size)
{
        static const struct block_column columns[COLUMNS] = {
                {0, METRIC_DISK_WRITE_OPS}, {0, METRIC_DISK_WRITE_SECTORS}};
        struct block_entity entity = {.name = "sda", .identity = "a"};
        uint64_t values[BLOCK_ROWS][COLUMNS];
        int64_t times[BLOCK_ROWS];
        struct block_rows rows = {.header = header,
                .entities = &entity,
                .n_entities = 1,
                .columns = columns,
                .n_columns = COLUMNS,
                .times_us = times,
                .values = &values[0][0]};

        for (uint32_t i = 0; i < BLOCK_ROWS; i++) {
                times[i] = first_us + i * INTERVAL;
                values[i][0] = (uint64_t)(times[i] / 1000 % 7919 * 31);
                values[i][1] = (uint64_t)times[i] * 3;
        }
        rows.header.rows = BLOCK_ROWS;
        rows.header.interval_us = INTERVAL;
        assert_int_equal(block_encode(world->encoder, &rows, ret_bytes, ret_size), 0);
}

static void put(struct world *world, int64_t first_us)
{
        struct block_header header = {.host = host,
                .boot.bytes = {1},
                .source = SOURCE_DISKSTATS,
                .sequence = ++world->sequence};
        const uint8_t *bytes;
        size_t size;

        encode(world, header, first_us, &bytes, &size);
        assert_int_equal(block_peek(bytes, size, &header, &size), 0);
        assert_int_equal(store_begin(world->store), 0);
        assert_int_equal(store_put_block(world->store, &header, bytes, size, header.last_us), 0);
        assert_int_equal(store_commit(world->store), 0);
}

static void put_gap(struct world *world)
{
        struct block_rows rows = {.header = {.host = host,
                                          .boot.bytes = {1},
                                          .source = SOURCE_DISKSTATS,
                                          .flags = BLOCK_FLAG_GAP,
                                          .sequence = ++world->sequence,
                                          .first_us = START - 60 * SECOND,
                                          .last_us = START - 30 * SECOND,
                                          .rows = 5}};
        struct block_header header;
        const uint8_t *bytes;
        size_t size;

        assert_int_equal(block_encode(world->encoder, &rows, &bytes, &size), 0);
        assert_int_equal(block_peek(bytes, size, &header, &size), 0);
        assert_int_equal(store_begin(world->store), 0);
        assert_int_equal(store_put_block(world->store, &header, bytes, size, START), 0);
        assert_int_equal(store_commit(world->store), 0);
}

static void follow(struct world *world, struct store_step *step)
{
        int r;

        while ((r = store_follow(world->store, step, STORE_SLICE_US)) > 0)
                ;
        assert_int_equal(r, 0);
}

static void put_total(struct world *world)
{
        CLEANUP(store_step) struct store_step *step = NULL;
        struct store_total total = {.cluster = cluster,
                .source = SOURCE_DISKSTATS,
                .by = QUERY_BY_CLUSTER,
                .first_us = START,
                .last_us = START + (BLOCK_ROWS - 1) * INTERVAL};
        struct store_total_slot slot = {.source = SOURCE_DISKSTATS,
                .from_us = START,
                .to_us = START + STORE_TOTAL_SLOT_US,
                .version = 1};
        struct block_header header = {.cluster = cluster, .source = SOURCE_DISKSTATS};

        encode(world, header, START, &total.bytes, &total.size);
        assert_int_equal(store_keeper_put_totals(world->keeper, &slot, 1, &total, 1, &step), 0);
        follow(world, step);
}

static void close_store(struct world *world)
{
        world->keeper = store_keeper_close(world->keeper);
        world->store = store_close(world->store);
}

static void open_store(struct world *world)
{
        CLEANUP(str) char *message = NULL;

        if (store_open(world->folder, &world->store, &message) < 0)
                fail_msg("%s", message);
        assert_int_equal(store_keeper_open(world->folder, &ages, &world->keeper), 0);
}

static void make_store(struct world *world)
{
        int64_t now_us = START + BLOCKS * BLOCK_ROWS * INTERVAL;

        open_store(world);
        for (uint32_t i = 0; i < BLOCKS; i++)
                put(world, START + i * BLOCK_ROWS * INTERVAL);
        put_gap(world);
        for (int r = 1; r > 0;) {
                CLEANUP(store_step) struct store_step *step = NULL;

                r = store_keeper_step(world->keeper, now_us, &step);
                assert_true(r >= 0);
                if (r > 0)
                        follow(world, step);
        }
        put_total(world);
        close_store(world);
}

/* ---- the check ---- */

static void on_damage(void *userdata, const struct store_damage *damage)
{
        struct world *world = userdata;
        struct said *said = &world->said[world->n_said++];

        assert_true(world->n_said < SAID_MAX);
        *said = (struct said){.key = damage->key,
                .first_us = damage->first_us,
                .last_us = damage->last_us,
                .host = damage->host,
                .cluster = damage->cluster,
                .source = damage->source};
        snprintf(said->file, sizeof(said->file), "%s", damage->file);
        snprintf(said->table, sizeof(said->table), "%s", damage->table ? damage->table : "");
        snprintf(said->what, sizeof(said->what), "%s", damage->what);
        print_message(
                "# %s %s %lld: %s\n", said->file, said->table, (long long)said->key, said->what);
}

static void on_unreadable(void *userdata, const char *file, const char *what)
{
        struct world *world = userdata;
        struct said *said = &world->unreadable[world->n_unreadable++];

        assert_true(world->n_unreadable < SAID_MAX);
        snprintf(said->file, sizeof(said->file), "%s", file);
        snprintf(said->what, sizeof(said->what), "%s", what);
        print_message("# %s: %s\n", said->file, said->what);
}

static int64_t ask(
        const struct world *world, const char *file, const char *sql, uint8_t *blob, size_t *size);

#define NEWEST "WHERE id = (SELECT max(id) FROM block)"

static void on_progress(void *userdata, const char *file, const struct store_check_counts *counts)
{
        struct world *world = userdata;

        world->progress++;
        if (!world->mend_at || counts->blocks < world->mend_at)
                return;
        world->mend_at = 0;
        ask(world, file, "UPDATE block SET rows = rows - 1 " NEWEST, NULL, NULL);
}

static void check(struct world *world)
{
        struct store_check_sink sink = {world, on_damage, on_unreadable, on_progress};

        world->n_said = world->n_unreadable = 0;
        assert_int_equal(store_check(world->folder, &sink, &world->counts), 0);
        assert_int_equal(world->counts.damaged, world->n_said);
        assert_int_equal(world->counts.unreadable, world->n_unreadable);
}

static int begin(void **state)
{
        struct world *world = calloc(1, sizeof(*world));

        strcpy(world->folder, "/tmp/strata-check %#?-XXXXXX");
        assert_non_null(mkdtemp(world->folder));
        assert_int_equal(block_encoder_new(&world->encoder), 0);
        make_store(world);
        check(world);
        world->whole = world->counts;
        *state = world;
        return 0;
}

static int end(void **state)
{
        struct world *world = *state;

        close_store(world);
        block_encoder_free(world->encoder);
        folder_remove(world->folder);
        free(world);
        return 0;
}

/* ---- breaking it ---- */

static const char *path_of(const struct world *world, const char *file)
{
        static char path[256];

        snprintf(path, sizeof(path), "%s/%s", world->folder, file);
        return path;
}

static int64_t ask(
        const struct world *world, const char *file, const char *sql, uint8_t *blob, size_t *size)
{
        sqlite3 *db = NULL;
        sqlite3_stmt *statement = NULL;
        int64_t value = 0;

        assert_int_equal(sqlite3_open(path_of(world, file), &db), SQLITE_OK);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
        if (sqlite3_step(statement) == SQLITE_ROW) {
                value = sqlite3_column_int64(statement, 0);
                if (blob) {
                        *size = (size_t)sqlite3_column_bytes(statement, 1);
                        assert_in_range(*size, 1, 65536);
                        memcpy(blob, sqlite3_column_blob(statement, 1), *size);
                }
        }
        sqlite3_finalize(statement);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        return value;
}

/* The bytes of a row's block, in the file itself; the key is returned. */
static int64_t flip(const struct world *world, const char *file, const char *table)
{
        static uint8_t blob[65536];
        CLEANUP(fd) int fd = -1;
        struct stat status;
        size_t size = 0;
        uint8_t *all, *at;
        char sql[128];
        int64_t key;

        snprintf(sql, sizeof(sql), "SELECT id, data FROM %s ORDER BY id LIMIT 1 OFFSET 1", table);
        key = ask(world, file, sql, blob, &size);
        fd = open(path_of(world, file), O_RDWR);
        assert_true(fd >= 0 && fstat(fd, &status) == 0);
        all = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_true(all != MAP_FAILED);
        at = memmem(all, (size_t)status.st_size, blob, size);
        assert_non_null(at);
        at[size - 1] ^= 4;
        munmap(all, (size_t)status.st_size);
        return key;
}

static void expect_one(const struct world *world, const char *file, const char *what)
{
        assert_int_equal(world->n_said, 1);
        assert_string_equal(world->said[0].file, file);
        assert_non_null(strstr(world->said[0].what, what));
}

static void expect_flipped(struct world *world, const char *file, const char *table)
{
        int64_t key = flip(world, file, table);

        check(world);
        expect_one(world, file, "checksum");
        assert_string_equal(world->said[0].table, table);
        assert_int_equal(world->said[0].key, key);
        assert_true(world->said[0].first_us > START - 3600 * SECOND);
        assert_true(world->said[0].last_us > world->said[0].first_us);
        assert_int_equal(world->counts.blocks, world->whole.blocks);
        assert_int_equal(world->n_unreadable, 0);
}

static void expect_flipped_of_host(struct world *world, const char *file, const char *table)
{
        expect_flipped(world, file, table);
        assert_true(id_equal(&world->said[0].host, &host));
        assert_int_equal(world->said[0].source, SOURCE_DISKSTATS);
}

#define HOT "strata.db"
#define RAW "raw-20261201.db"
#define MINUTE "minute-20261128.db"
#define TOTAL "total-20261201.db"

static uint64_t count_files(const struct world *world)
{
        DIR *folder = opendir(world->folder);
        uint64_t n = 0;

        assert_non_null(folder);
        while (readdir(folder))
                n++;
        closedir(folder);
        return n;
}

static int64_t blocks_of(const struct world *world, const char *file, const char *table)
{
        char sql[64];

        snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
        return ask(world, file, sql, NULL, NULL);
}

/* ---- what is said ---- */

static void finds_nothing_in_a_whole_store_and_leaves_nothing_in_its_folder(void **state)
{
        struct world *world = *state;
        uint64_t files = count_files(world);

        check(world);
        assert_int_equal(world->n_said, 0);
        assert_int_equal(world->n_unreadable, 0);
        assert_int_equal(world->counts.files, 5);
        assert_true(world->progress >= 5);
        assert_int_equal(count_files(world), files);
        assert_int_equal(files, 2 + 5);
        assert_true(blocks_of(world, HOT, "block") > 1);
        assert_true(blocks_of(world, RAW, "part") > 1);
        assert_true(blocks_of(world, MINUTE, "part") > 1);
        assert_int_equal(world->counts.blocks,
                blocks_of(world, HOT, "block") + blocks_of(world, HOT, "gap") +
                        blocks_of(world, RAW, "part") + blocks_of(world, MINUTE, "part") +
                        blocks_of(world, TOTAL, "part"));
}

static void reads_beside_a_collector_what_is_in_its_log_alone(void **state)
{
        struct world *world = *state;

        open_store(world);
        put(world, START + BLOCKS * BLOCK_ROWS * INTERVAL);
        check(world);
        assert_int_equal(world->n_said, 0);
        assert_int_equal(world->n_unreadable, 0);
        assert_int_equal(world->counts.blocks, world->whole.blocks + 1);
}

static void names_a_block_of_the_hot_log_with_a_flipped_bit(void **state)
{
        expect_flipped_of_host(*state, HOT, "block");
}

static void names_a_sealed_block_with_a_flipped_bit(void **state)
{
        expect_flipped_of_host(*state, RAW, "part");
}

static void names_a_block_of_a_tier_with_a_flipped_bit(void **state)
{
        expect_flipped_of_host(*state, MINUTE, "part");
}

static void names_a_block_whose_row_says_something_else(void **state)
{
        static const struct {
                const char *file, *sql, *what;
        } cases[] = {
                {HOT, "UPDATE block SET rows = rows + 1 WHERE id = (SELECT max(id) FROM block)",
                        "rows"},
                {HOT,
                        "UPDATE block SET rows = rows - 1, sequence = 999 WHERE id = "
                        "(SELECT max(id) FROM block)",
                        "sequence"},
                {RAW,
                        "UPDATE part SET first_us = first_us - 1 WHERE id = (SELECT max(id) FROM "
                        "part)",
                        "times"},
                {MINUTE, "UPDATE part SET id = id + 4096 WHERE id = (SELECT max(id) FROM part)",
                        "stream is not known"},
                {TOTAL, "UPDATE part SET id = id + 4096", "another cluster"},
        };
        struct world *world = *state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                ask(world, cases[i].file, cases[i].sql, NULL, NULL);
                check(world);
                /* Those before stay, but the hot log's block, that has two of them. */
                assert_int_equal(world->n_said, i == 0 ? 1 : i);
                assert_non_null(strstr(world->said[world->n_said - 1].what, cases[i].what));
                assert_string_equal(world->said[world->n_said - 1].file, cases[i].file);
                assert_int_equal(world->counts.blocks, world->whole.blocks);
        }
}

static void names_a_file_that_is_cut_and_counts_the_others(void **state)
{
        struct world *world = *state;
        int64_t lost = blocks_of(world, RAW, "part");
        struct stat status;

        assert_int_equal(stat(path_of(world, RAW), &status), 0);
        assert_int_equal(truncate(path_of(world, RAW), status.st_size - 65536), 0);
        check(world);
        expect_one(world, RAW, "is cut");
        assert_string_equal(world->said[0].table, "");
        assert_int_equal(world->counts.files, 5);
        assert_int_equal(world->counts.blocks, world->whole.blocks - (uint64_t)lost);
}

static void names_files_of_versions_that_it_does_not_know(void **state)
{
        struct world *world = *state;

        ask(world, RAW, "PRAGMA user_version=9", NULL, NULL);
        ask(world, HOT, "PRAGMA user_version=99", NULL, NULL);
        check(world);
        assert_int_equal(world->n_said, 0);
        assert_int_equal(world->n_unreadable, 2);
        assert_string_equal(world->unreadable[0].file, HOT);
        assert_string_equal(world->unreadable[1].file, RAW);
        assert_non_null(strstr(world->unreadable[1].what, "version"));
}

static void names_a_file_that_is_no_database(void **state)
{
        struct world *world = *state;
        FILE *file = fopen(path_of(world, MINUTE), "w");

        assert_non_null(file);
        for (int i = 0; i < 1000; i++)
                fputs("nothing of the kind\n", file);
        assert_int_equal(fclose(file), 0);
        check(world);
        expect_one(world, MINUTE, "is no database");
}

static void names_a_file_of_another_program(void **state)
{
        struct world *world = *state;

        ask(world, RAW, "PRAGMA application_id=5", NULL, NULL);
        check(world);
        expect_one(world, RAW, "another program");
}

static void names_a_folder_in_the_place_of_a_file_as_unreadable(void **state)
{
        struct world *world = *state;

        assert_int_equal(unlink(path_of(world, TOTAL)), 0);
        assert_int_equal(mkdir(path_of(world, TOTAL), 0700), 0);
        check(world);
        assert_int_equal(world->n_said, 0);
        assert_int_equal(world->n_unreadable, 1);
        assert_string_equal(world->unreadable[0].file, TOTAL);
        assert_string_equal(world->unreadable[0].what, "is no file");
        assert_int_equal(world->counts.blocks, world->whole.blocks - 1);
}

static void names_a_hot_log_that_is_missing_and_reads_the_rest(void **state)
{
        struct world *world = *state;
        int64_t lost = blocks_of(world, HOT, "block") + blocks_of(world, HOT, "gap");

        assert_int_equal(unlink(path_of(world, HOT)), 0);
        check(world);
        assert_int_equal(world->n_said, 0);
        assert_int_equal(world->n_unreadable, 1);
        assert_string_equal(world->unreadable[0].file, HOT);
        assert_int_equal(world->counts.blocks, world->whole.blocks - (uint64_t)lost);
}

static void reads_what_is_on_both_sides_of_a_page_that_is_broken(void **state)
{
        struct world *world = *state;
        int64_t page, leaves, lost;
        CLEANUP(fd) int fd = -1;
        uint8_t zero[4096] = {0};

        open_store(world);
        for (uint32_t i = 0; i < 40; i++)
                put(world, START + (BLOCKS + i) * BLOCK_ROWS * INTERVAL);
        close_store(world);
        check(world);
        assert_int_equal(world->n_said, 0);
        world->whole = world->counts;
        leaves = ask(world, HOT,
                "SELECT count(*) FROM dbstat WHERE name = 'block' AND pagetype = 'leaf'", NULL,
                NULL);
        assert_true(leaves >= 3);
        page = ask(world, HOT,
                "SELECT pageno FROM dbstat WHERE name = 'block' AND pagetype = 'leaf' "
                "ORDER BY path LIMIT 1 OFFSET 1",
                NULL, NULL);
        lost = ask(world, HOT,
                "SELECT ncell FROM dbstat WHERE name = 'block' AND pagetype = 'leaf' "
                "ORDER BY path LIMIT 1 OFFSET 1",
                NULL, NULL);
        fd = open(path_of(world, HOT), O_WRONLY);
        assert_int_equal(pwrite(fd, zero, sizeof(zero), (page - 1) * 4096), sizeof(zero));
        check(world);
        assert_true(world->n_said >= 2);
        assert_string_equal(
                world->said[world->n_said - 1].what, "what follows this key cannot be read");
        assert_true(lost >= 1 && lost < 20);
        assert_int_equal(world->counts.blocks, world->whole.blocks - (uint64_t)lost);
}

static void reads_again_what_somebody_wrote_while_it_was_read(void **state)
{
        struct world *world = *state;

        open_store(world);
        for (uint32_t i = 0; i < 150; i++)
                put(world, START + (BLOCKS + i) * BLOCK_ROWS * INTERVAL);
        close_store(world);
        ask(world, HOT, "UPDATE block SET rows = rows + 1 " NEWEST, NULL, NULL);
        check(world);
        expect_one(world, HOT, "rows");
        world->mend_at = 100;
        check(world);
        assert_int_equal(world->mend_at, 0);
        assert_int_equal(world->n_said, 0);
        assert_int_equal(world->counts.blocks, world->whole.blocks + 150);
}

static void says_when_there_is_no_store(void **state)
{
        struct store_check_sink sink = {*state, on_damage, on_unreadable, on_progress};
        struct store_check_counts counts;

        assert_int_equal(store_check("/nonexistent/strata", &sink, &counts), -ENOENT);
        assert_int_equal(store_check("/proc/self/fd", &sink, &counts), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(finds_nothing_in_a_whole_store_and_leaves_nothing_in_its_folder),
                TEST(reads_beside_a_collector_what_is_in_its_log_alone),
                TEST(names_a_block_of_the_hot_log_with_a_flipped_bit),
                TEST(names_a_sealed_block_with_a_flipped_bit),
                TEST(names_a_block_of_a_tier_with_a_flipped_bit),
                TEST(names_a_block_whose_row_says_something_else),
                TEST(names_a_file_that_is_cut_and_counts_the_others),
                TEST(names_files_of_versions_that_it_does_not_know),
                TEST(names_a_file_that_is_no_database),
                TEST(names_a_file_of_another_program),
                TEST(names_a_folder_in_the_place_of_a_file_as_unreadable),
                TEST(names_a_hot_log_that_is_missing_and_reads_the_rest),
                TEST(reads_what_is_on_both_sides_of_a_page_that_is_broken),
                TEST(reads_again_what_somebody_wrote_while_it_was_read),
                TEST(says_when_there_is_no_store),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
