/*
 * From the hot log into sealed files and coarser tiers: every row that was acknowledged is read
 * once, whatever comes late or twice, and wherever the keeper was cut short.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "collectord/store.h"
#include "collectord/tier.h"
#include "lib/block.h"
#include "lib/metric.h"
#include "tests/unit/folder-fixture.h"

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)
#define START (INT64_C(1796083200) * SECOND)
#define COLUMNS 6u
#define ENTITIES 2u
#define HOSTS 3u
#define INTERVAL (10 * SECOND)
#define ROWS_MAX 12000u

struct row {
        int64_t time_us;
        uint64_t values[COLUMNS];
        uint8_t present[ENTITIES];
        uint8_t boot;
        bool stored;
};

struct piece {
        uint8_t *bytes;
        size_t size;
        uint32_t first_row, rows;
        bool stored;
};

struct host {
        struct row *rows;
        uint32_t n_rows;
        struct piece *pieces;
        uint32_t n_pieces;
};

struct world {
        char folder[64];
        uint64_t seed;
        struct store *store;
        struct store_keeper *keeper;
        struct store_reader *reader;
        struct block_encoder *encoder;
        struct block_decoder *decoder;
        struct host hosts[HOSTS];
        int64_t now_us;
        uint64_t sequence;
};

static uint64_t next(struct world *world)
{
        world->seed ^= world->seed << 13;
        world->seed ^= world->seed >> 7;
        world->seed ^= world->seed << 17;
        return world->seed;
}

static uint64_t below(struct world *world, uint64_t limit)
{
        return next(world) % limit;
}

static void open_all(struct world *world, const struct store_ages *ages)
{
        CLEANUP(str) char *message = NULL;

        if (!world->store && store_open(world->folder, &world->store, &message) < 0)
                fail_msg("%s", message);
        if (!world->keeper)
                assert_int_equal(store_keeper_open(world->folder, ages, &world->keeper), 0);
        if (!world->reader)
                assert_int_equal(store_reader_open(world->folder, &world->reader), 0);
}

static void close_all(struct world *world)
{
        if (world->store)
                assert_int_equal(store_commit(world->store), 0);
        world->keeper = store_keeper_close(world->keeper);
        world->reader = store_reader_close(world->reader);
        world->store = store_close(world->store);
}

static int begin(void **state)
{
        struct world *world = calloc(1, sizeof(*world));
        const char *seed = getenv("STRATA_SEED");

        assert_true(folder_make(world->folder, "sealed"));
        world->seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) * 2654435761u | 1;
        print_message("# STRATA_SEED=%llu\n", (unsigned long long)world->seed);
        assert_int_equal(block_encoder_new(&world->encoder), 0);
        assert_int_equal(block_decoder_new(&world->decoder), 0);
        *state = world;
        return 0;
}

static int end(void **state)
{
        struct world *world = *state;

        close_all(world);
        for (uint32_t h = 0; h < HOSTS; h++) {
                for (uint32_t i = 0; i < world->hosts[h].n_pieces; i++)
                        free(world->hosts[h].pieces[i].bytes);
                free(world->hosts[h].pieces);
                free(world->hosts[h].rows);
        }
        block_encoder_free(world->encoder);
        block_decoder_free(world->decoder);
        folder_remove(world->folder);
        free(world);
        return 0;
}

/* ---- histories ---- */

static const struct block_column columns[COLUMNS] = {{0, METRIC_DISK_WRITE_OPS},
        {0, METRIC_DISK_WRITE_SECTORS}, {0, METRIC_DISK_WRITE_TIME}, {0, METRIC_DISK_IN_FLIGHT},
        {1, METRIC_DISK_WRITE_OPS}, {1, METRIC_DISK_WRITE_SECTORS}};

static struct id host_id(uint32_t host)
{
        return (struct id){.bytes = {1, (uint8_t)host}};
}

static void make_piece(struct world *world, uint32_t host, uint32_t first, uint32_t n)
{
        struct host *h = &world->hosts[host];
        struct block_entity entities[ENTITIES] = {{.name = "sda", .identity = "a"},
                {.name = "sdb", .identity = "b", .instance = h->rows[first].boot}};
        uint64_t values[64][COLUMNS];
        uint8_t present[64][ENTITIES];
        int64_t times[64];
        struct block_rows rows = {
                .header = {.host = host_id(host),
                        .boot.bytes = {h->rows[first].boot},
                        .source = SOURCE_DISKSTATS,
                        .sequence = ++world->sequence,
                        .interval_us = INTERVAL,
                        .rows = n},
                .entities = entities,
                .n_entities = ENTITIES,
                .columns = columns,
                .n_columns = COLUMNS,
                .times_us = times,
                .values = &values[0][0],
                .present = &present[0][0],
        };
        const uint8_t *bytes;
        size_t size;

        for (uint32_t i = 0; i < n; i++) {
                times[i] = h->rows[first + i].time_us;
                memcpy(values[i], h->rows[first + i].values, sizeof(values[i]));
                memcpy(present[i], h->rows[first + i].present, sizeof(present[i]));
        }
        assert_int_equal(block_encode(world->encoder, &rows, &bytes, &size), 0);
        h->pieces[h->n_pieces] = (struct piece){malloc(size), size, first, n, false};
        memcpy(h->pieces[h->n_pieces++].bytes, bytes, size);
}

/* Rows with holes, reboots, counters that go down, entities that are absent. */
static void make_history(struct world *world, uint32_t host, int64_t length_us)
{
        struct host *h = &world->hosts[host];
        struct row row = {.boot = 1, .present = {1, 1}};
        uint32_t first = 0;

        h->rows = calloc(ROWS_MAX, sizeof(*h->rows));
        h->pieces = calloc(ROWS_MAX, sizeof(*h->pieces));
        for (int64_t at_us = 0; at_us < length_us && h->n_rows < ROWS_MAX; at_us += INTERVAL) {
                bool torn = false;

                if (below(world, 400) == 0) {
                        at_us += (int64_t)below(world, 100) * INTERVAL;
                        torn = true;
                }
                if (below(world, 700) == 0) {
                        row.boot++;
                        memset(row.values, 0, sizeof(row.values));
                        torn = true;
                } else if (below(world, 900) == 0)
                        row.values[4] /= 2;
                if ((torn || h->n_rows - first == 1 + below(world, 20) ||
                            h->n_rows - first == 60) &&
                        h->n_rows > first) {
                        make_piece(world, host, first, h->n_rows - first);
                        first = h->n_rows;
                }
                row.time_us = START + at_us + 50 + (int64_t)below(world, 50);
                for (uint32_t i = 0; i < COLUMNS; i++)
                        row.values[i] =
                                i == 3 ? below(world, 9) : row.values[i] + below(world, 1000);
                row.present[1] = below(world, 30) > 0;
                if (!row.present[1] && h->n_rows > first) {
                        row.values[4] = h->rows[h->n_rows - 1].values[4];
                        row.values[5] = h->rows[h->n_rows - 1].values[5];
                } else if (!row.present[1])
                        row.present[1] = 1;
                h->rows[h->n_rows++] = row;
        }
        make_piece(world, host, first, h->n_rows - first);
}

static int put(struct world *world, uint32_t host, uint32_t index)
{
        struct piece *piece = &world->hosts[host].pieces[index];
        struct block_header header;
        size_t size;
        int r;

        assert_int_equal(block_peek(piece->bytes, piece->size, &header, &size), 0);
        assert_int_equal(store_begin(world->store), 0);
        r = store_put_block(world->store, &header, piece->bytes, size, header.last_us);
        assert_int_equal(r, piece->stored ? STORE_DUPLICATE : 0);
        piece->stored = true;
        for (uint32_t i = 0; i < piece->rows; i++)
                world->hosts[host].rows[piece->first_row + i].stored = true;
        if (header.last_us > world->now_us)
                world->now_us = header.last_us;
        return r;
}

/* Upkeep until nothing is to do; cut short before one change in @crashes, as a kill does (0:
 * never). */
static void keep(struct world *world, const struct store_ages *ages, uint32_t crashes)
{
        assert_int_equal(store_commit(world->store), 0);
        for (;;) {
                CLEANUP(store_step) struct store_step *step = NULL;
                int r = store_keeper_step(world->keeper, world->now_us, &step);

                assert_true(r >= 0);
                if (r == 0)
                        return;
                while (!(crashes && below(world, crashes) == 0)) {
                        /* A kill may come between any two changes. */
                        r = store_follow(world->store, step, crashes ? 0 : STORE_SLICE_US);
                        assert_true(r >= 0);
                        if (r == 0)
                                break;
                }
                if (r > 0) {
                        close_all(world);
                        open_all(world, ages);
                        crashes = below(world, 4) > 0 ? crashes : 0;
                }
        }
}

/* ---- what is read ---- */

struct check {
        struct world *world;
        struct host *host;
        uint32_t at; /* of the host's rows: the next that may come */
        int64_t last_us;
        uint64_t interval_us; /* 0: every row has to come */
        uint32_t blocks, rows;
        uint64_t low, high; /* of column 1, since the last row that was kept */
        bool unsure;        /* some row since then was not stored */
};

static void check_range(struct check *check, const struct block *block, uint32_t row)
{
        uint64_t low[BLOCK_ROWS_MAX], high[BLOCK_ROWS_MAX];
        uint32_t column;

        if (block_find_column(block, 0, METRIC_DISK_WRITE_SECTORS | TIER_LOWEST, &column) < 0)
                return;
        assert_int_equal(block_read_column(block, column, low), 0);
        assert_int_equal(
                block_find_column(block, 0, METRIC_DISK_WRITE_SECTORS | TIER_HIGHEST, &column), 0);
        assert_int_equal(block_read_column(block, column, high), 0);
        if (row == 0 || check->interval_us != 60000000 || check->unsure)
                return;
        if (check->low > check->high) {
                assert_true(low[row] > high[row]);
                return;
        }
        assert_int_equal(low[row], check->low);
        assert_int_equal(high[row], check->high);
}

static void expect_row(struct check *check, const struct block *block, uint32_t at)
{
        static uint64_t column[BLOCK_ROWS_MAX];
        const struct row *row = &check->host->rows[check->at];

        for (uint32_t i = 0; i < COLUMNS; i++) {
                uint32_t index, entity = columns[i].entity;

                assert_int_equal(block_find_column(block, entity, columns[i].metric, &index), 0);
                assert_int_equal(block_read_column(block, index, column), 0);
                assert_int_equal(block_is_present(block, entity, at), row->present[entity]);
                if (row->present[entity])
                        assert_int_equal(column[at], row->values[i]);
        }
}

/* Between the row and the one before it nothing is known. */
static bool is_torn(const struct row *row)
{
        const struct row *before = row - 1;

        if (row->boot != before->boot || row->time_us - before->time_us > 3 * INTERVAL + SECOND)
                return true;
        for (uint32_t i = 0; i < COLUMNS; i++)
                if (i != 3 && row->values[i] < before->values[i])
                        return true;
        return false;
}

static void add_range(struct check *check)
{
        const struct row *row = &check->host->rows[check->at], *before = row - 1;
        uint64_t rate;

        if (check->at == 0 || is_torn(row))
                return;
        rate = (uint64_t)((double)(row->values[1] - before->values[1]) * 1e9 /
                                  (double)(row->time_us - before->time_us) +
                          0.5);
        if (rate < check->low)
                check->low = rate;
        if (rate > check->high)
                check->high = rate;
}

/* Rows that may be left out have a later one in the same window, and of the same life. */
static void skip_rows(struct check *check, int64_t until_us)
{
        struct host *h = check->host;

        while (check->at < h->n_rows && h->rows[check->at].time_us < until_us) {
                const struct row *row = &h->rows[check->at], *after = row + 1;
                int64_t half = 5 * SECOND, step = (int64_t)check->interval_us;

                if (row->stored) {
                        if (check->interval_us == 0)
                                fail_msg("row %u is missing", check->at);
                        if (after->boot != row->boot ||
                                (row->time_us - half) / step != (after->time_us - half) / step)
                                fail_msg("row %u is missing, the last of its window", check->at);
                        add_range(check);
                } else
                        check->unsure = true;
                check->at++;
        }
}

static int check_block(void *userdata, const struct store_block *stored)
{
        struct check *check = userdata;
        const struct block *block = NULL;
        const int64_t *times;

        assert_int_equal(
                block_decode(check->world->decoder, stored->bytes, stored->size, &block), 0);
        times = block_get_times(block);
        check->blocks++;
        for (uint32_t i = 0; i < block_get_header(block)->rows; i++) {
                if (times[i] <= check->last_us)
                        continue;
                skip_rows(check, times[i]);
                if (check->at == check->host->n_rows ||
                        check->host->rows[check->at].time_us != times[i])
                        fail_msg("a row that nobody sent");
                expect_row(check, block, i);
                add_range(check);
                check_range(check, block, i);
                check->low = UINT64_MAX;
                check->high = 0;
                check->unsure = false;
                check->last_us = times[i];
                check->at++;
                check->rows++;
        }
        return 0;
}

static struct check read_host(struct world *world, uint32_t host, uint64_t interval_us)
{
        struct check check = {.world = world,
                .host = &world->hosts[host],
                .interval_us = interval_us,
                .last_us = INT64_MIN};
        struct id id = host_id(host);

        assert_int_equal(store_commit(world->store), 0);
        assert_int_equal(store_reader_begin(world->reader), 0);
        assert_int_equal(store_read_blocks(world->reader, SOURCE_DISKSTATS, &id, START,
                                 START + 100 * DAY, interval_us, check_block, &check),
                0);
        store_reader_end(world->reader);
        if (interval_us == 0)
                skip_rows(&check, INT64_MAX);
        return check;
}

/* ---- tests ---- */

static int count_rows(void *userdata, const struct store_block *stored)
{
        struct check *check = userdata;
        const struct block *block = NULL;

        assert_int_equal(
                block_decode(check->world->decoder, stored->bytes, stored->size, &block), 0);
        check->rows += block_get_header(block)->rows;
        check->blocks++;
        return 0;
}

static void deliver_randomly(struct world *world, const struct store_ages *ages, uint32_t crashes)
{
        for (uint32_t i = 0, late = 0; i < ROWS_MAX; i++) {
                for (uint32_t host = 0; host < HOSTS; host++) {
                        struct host *h = &world->hosts[host];

                        if (i < h->n_pieces && below(world, 25) > 0)
                                put(world, host, i);
                        /* One that was left out, or one that is there. */
                        if (below(world, 40) == 0 && i > 0) {
                                late = (uint32_t)below(world, i < h->n_pieces ? i : h->n_pieces);
                                put(world, host, late);
                        }
                }
                if (below(world, 60) == 0)
                        keep(world, ages, crashes);
        }
        for (uint32_t host = 0; host < HOSTS; host++)
                for (uint32_t i = world->hosts[host].n_pieces; i-- > 0;)
                        if (!world->hosts[host].pieces[i].stored)
                                put(world, host, i);
}

static void every_row_is_read_once_whatever_comes_late_or_twice(void **state)
{
        static const struct store_ages ages = {0};
        struct world *world = *state;

        open_all(world, &ages);
        for (uint32_t i = 0; i < HOSTS; i++)
                make_history(world, i, 20 * HOUR);
        deliver_randomly(world, &ages, 0);
        for (uint32_t i = 0; i < HOSTS; i++)
                read_host(world, i, 0);
        world->now_us += 2 * HOUR;
        keep(world, &ages, 0);
        for (uint32_t i = 0; i < HOSTS; i++) {
                struct check check = read_host(world, i, 0);

                assert_int_equal(check.rows, world->hosts[i].n_rows);
                assert_true(check.blocks < world->hosts[i].n_pieces);
                for (uint32_t k = 0; k < world->hosts[i].n_pieces; k += 7)
                        assert_int_equal(put(world, i, k), STORE_DUPLICATE);
        }
}

static void nothing_is_lost_or_doubled_when_the_keeper_is_killed(void **state)
{
        static const struct store_ages ages = {0};
        struct world *world = *state;

        open_all(world, &ages);
        for (uint32_t i = 0; i < HOSTS; i++)
                make_history(world, i, 8 * HOUR);
        deliver_randomly(world, &ages, 100);
        world->now_us += 2 * HOUR;
        keep(world, &ages, 100);
        keep(world, &ages, 0);
        for (uint32_t i = 0; i < HOSTS; i++) {
                struct check all = {.world = world};
                struct id id = host_id(i);

                assert_int_equal(store_read_blocks(world->reader, SOURCE_DISKSTATS, &id, START,
                                         START + DAY, 0, count_rows, &all),
                        0);
                assert_int_equal(all.rows, world->hosts[i].n_rows);
                assert_int_equal(read_host(world, i, 0).rows, world->hosts[i].n_rows);
                for (uint32_t k = 0; k < world->hosts[i].n_pieces; k++)
                        assert_int_equal(put(world, i, k), STORE_DUPLICATE);
        }
}

static void a_coarser_tier_keeps_the_last_row_of_each_window_and_both_sides_of_a_tear(void **state)
{
        static const struct store_ages ages = {0};
        struct world *world = *state;

        open_all(world, &ages);
        for (uint32_t i = 0; i < HOSTS; i++)
                make_history(world, i, 30 * HOUR);
        deliver_randomly(world, &ages, 0);
        world->now_us += 20 * DAY;
        keep(world, &ages, 0);
        for (uint32_t i = 0; i < HOSTS; i++) {
                struct check raw = read_host(world, i, 0);
                struct check minute = read_host(world, i, 60 * SECOND);
                struct check hour = read_host(world, i, 3600 * SECOND);

                assert_int_equal(raw.rows, world->hosts[i].n_rows);
                assert_in_range(minute.rows, raw.rows / 6, raw.rows / 4);
                assert_in_range(hour.rows, 30, minute.rows / 4);
        }
}

struct coarse {
        struct tier *next; /* made of what comes, or NULL */
        uint64_t interval_us;
        uint32_t rows;
};

static int take_coarse(void *userdata, const struct merge_piece *piece)
{
        struct coarse *coarse = userdata;
        struct block_header header;
        size_t size;

        assert_int_equal(block_peek(piece->bytes, piece->size, &header, &size), 0);
        assert_int_equal(header.interval_us, coarse->interval_us);
        coarse->rows += header.rows;
        return coarse->next ? tier_add(coarse->next, piece->bytes, piece->size) : 0;
}

/* An interval that is too short would make each pair of rows a hole, and no edge between them
 * known. */
static void rows_that_are_further_apart_than_a_tiers_windows_are_no_holes(void **state)
{
        struct world *world = *state;
        CLEANUP(tier) struct tier *minutes = NULL;
        CLEANUP(tier) struct tier *hours = NULL;
        struct coarse hour = {NULL, 3600 * SECOND, 0}, minute = {NULL, 600 * SECOND, 0};
        static uint64_t values[48][COLUMNS];
        static int64_t times[48];
        struct block_entity entities[ENTITIES] = {
                {.name = "sda", .identity = "a"}, {.name = "sdb", .identity = "b"}};
        struct block_rows rows = {
                .header = {.host = host_id(0),
                        .source = SOURCE_DISKSTATS,
                        .interval_us = 600 * SECOND,
                        .rows = 48},
                .entities = entities,
                .n_entities = ENTITIES,
                .columns = columns,
                .n_columns = COLUMNS,
                .times_us = times,
                .values = &values[0][0],
        };
        const uint8_t *bytes;
        size_t size;

        for (uint32_t i = 0; i < 48; i++)
                times[i] = START + 50 + i * 600 * SECOND;
        assert_int_equal(block_encode(world->encoder, &rows, &bytes, &size), 0);
        assert_int_equal(tier_new(3600 * SECOND, take_coarse, &hour, &hours), 0);
        minute.next = hours;
        assert_int_equal(tier_new(60 * SECOND, take_coarse, &minute, &minutes), 0);
        assert_int_equal(tier_add(minutes, bytes, size), 0);
        assert_int_equal(tier_finish(minutes), 0);
        assert_int_equal(tier_finish(hours), 0);
        assert_int_equal(minute.rows, 48);
        /* The last of each hour, and the first and the last of all. */
        assert_in_range(hour.rows, 8, 10);
}

static void a_late_block_is_in_every_tier(void **state)
{
        static const struct store_ages ages = {0};
        struct world *world = *state;
        struct host *h = &world->hosts[0];
        uint32_t late;
        int64_t now_us;

        open_all(world, &ages);
        make_history(world, 0, 30 * HOUR);
        late = h->n_pieces / 2;
        for (uint32_t i = 0; i < h->n_pieces; i++)
                if (i != late)
                        put(world, 0, i);
        now_us = world->now_us += 20 * DAY;
        keep(world, &ages, 0);
        read_host(world, 0, 60 * SECOND);
        put(world, 0, late);
        world->now_us = now_us;
        /* At once, from what is finer; and when the tiers were made anew. */
        read_host(world, 0, 60 * SECOND);
        read_host(world, 0, 3600 * SECOND);
        keep(world, &ages, 0);
        read_host(world, 0, 0);
        read_host(world, 0, 60 * SECOND);
        read_host(world, 0, 3600 * SECOND);
}

static int count_stream(void *userdata, const struct store_stream *stream)
{
        struct store_stream *sum = userdata;

        sum->blocks += stream->blocks;
        sum->rows += stream->rows;
        sum->first_us = stream->first_us;
        return 0;
}

static void a_day_that_is_too_old_goes_and_its_minutes_stay(void **state)
{
        static const struct store_ages ages = {.raw_us = DAY, .minute_us = 30 * DAY};
        struct world *world = *state;
        struct store_stream sum = {0};
        struct check check;

        open_all(world, &ages);
        make_history(world, 0, 30 * HOUR);
        for (uint32_t i = 0; i < world->hosts[0].n_pieces; i++) {
                put(world, 0, i);
                if (i % 100 == 0)
                        keep(world, &ages, 0);
        }
        world->now_us = START + 31 * HOUR;
        keep(world, &ages, 0);
        assert_int_equal(read_host(world, 0, 0).rows, world->hosts[0].n_rows);
        world->now_us = START + 2 * DAY + HOUR;
        keep(world, &ages, 0);
        check = read_host(world, 0, 60 * SECOND);
        assert_in_range(check.rows, world->hosts[0].n_rows / 6, world->hosts[0].n_rows / 4);
        assert_int_equal(store_read_streams(world->reader, count_stream, &sum), 0);
        assert_in_range(sum.rows, 1, world->hosts[0].n_rows / 3);
        assert_true(sum.first_us == world->hosts[0].rows[0].time_us);
}

static void a_day_that_goes_is_taken_off_the_counts_once_however_often_the_keeper_is_killed(
        void **state)
{
        static const struct store_ages all = {0},
                                       ages = {.raw_us = DAY, .minute_us = DAY, .hour_us = DAY};
        struct world *world = *state;
        struct store_stream sum = {0};
        uint64_t rows = 0;

        open_all(world, &all);
        for (uint32_t i = 0; i < HOSTS; i++) {
                struct host *host = &world->hosts[i];

                make_history(world, i, 30 * HOUR);
                for (uint32_t k = 0; k < host->n_pieces; k++) {
                        put(world, i, k);
                        if (host->rows[host->pieces[k].first_row].time_us >= START + DAY)
                                rows += host->pieces[k].rows;
                }
        }
        world->now_us = START + 32 * HOUR;
        keep(world, &all, 0);
        close_all(world);
        open_all(world, &ages);
        world->now_us = START + 2 * DAY + HOUR;
        keep(world, &ages, 3);
        keep(world, &ages, 0);
        assert_int_equal(store_read_streams(world->reader, count_stream, &sum), 0);
        assert_true(rows > 0);
        assert_int_equal(sum.rows, rows);
}

static void a_file_that_is_damaged_hides_nothing_else(void **state)
{
        static const struct store_ages ages = {0};
        struct world *world = *state;
        struct id id = host_id(0);
        char path[128];
        struct check check = {
                .world = world, .host = &world->hosts[0], .interval_us = 3600000000, .last_us = 0};
        int fd;

        open_all(world, &ages);
        make_history(world, 0, 46 * HOUR);
        for (uint32_t i = 0; i < world->hosts[0].n_pieces; i++)
                put(world, 0, i);
        world->now_us = START + 47 * HOUR;
        keep(world, &ages, 0);
        close_all(world);
        snprintf(path, sizeof(path), "%s/raw-20261201.db", world->folder);
        fd = open(path, O_WRONLY);
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, "no database at all", 18, 0), 18);
        close(fd);
        open_all(world, &ages);
        for (uint32_t i = 0; i < world->hosts[0].n_rows; i++)
                world->hosts[0].rows[i].stored = false;
        assert_int_equal(store_read_blocks(world->reader, SOURCE_DISKSTATS, &id, START,
                                 START + 2 * DAY, 0, check_block, &check),
                0);
        assert_true(store_reader_take_rotten(world->reader) > 0);
        assert_in_range(check.rows, world->hosts[0].n_rows / 3, world->hosts[0].n_rows * 2 / 3);
}

/* Three blocks of ten rows, written by the first schema's program. */
static void goes_on_with_the_store_of_the_first_version(void **state)
{
        static const struct store_ages ages = {0};
        struct world *world = *state;
        struct check check = {.world = world};
        char command[512];

        snprintf(command, sizeof(command), "zcat %s/store-1.db.gz > %s/strata.db",
                getenv("STRATA_FIXTURES"), world->folder);
        assert_int_equal(system(command), 0);
        open_all(world, &ages);
        assert_int_equal(store_read_blocks(world->reader, SOURCE_DISKSTATS, NULL, 0, START, 0,
                                 count_rows, &check),
                0);
        assert_int_equal(check.rows, 30);
        assert_int_equal(check.blocks, 3);
        world->now_us = START;
        keep(world, &ages, 0);
        check = (struct check){.world = world};
        assert_int_equal(store_read_blocks(world->reader, SOURCE_DISKSTATS, NULL, 0, START, 0,
                                 count_rows, &check),
                0);
        assert_int_equal(check.rows, 30);
        assert_int_equal(check.blocks, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
                TEST(every_row_is_read_once_whatever_comes_late_or_twice),
                TEST(nothing_is_lost_or_doubled_when_the_keeper_is_killed),
                TEST(a_coarser_tier_keeps_the_last_row_of_each_window_and_both_sides_of_a_tear),
                TEST(rows_that_are_further_apart_than_a_tiers_windows_are_no_holes),
                TEST(a_late_block_is_in_every_tier),
                TEST(a_day_that_is_too_old_goes_and_its_minutes_stay),
                TEST(a_day_that_goes_is_taken_off_the_counts_once_however_often_the_keeper_is_killed),
                TEST(a_file_that_is_damaged_hides_nothing_else),
                TEST(goes_on_with_the_store_of_the_first_version),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
