#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectord/rung.h"

#define SECOND 1000000ll

/* One counter, one target: what most tests need. */
static const struct rung_term sectors[] = {
        {.metric = METRIC_DISK_WRITE_SECTORS, .slot = 0, .scale = 512, .need = RUNG_NEED_ENTITY}};
static const struct rung_term raw_sectors[] = {
        {.metric = METRIC_DISK_WRITE_SECTORS, .slot = 0, .scale = 1, .need = RUNG_NEED_ENTITY}};
static const struct rung_term times_32[] = {
        {.metric = METRIC_DISK_WRITE_TIME, .slot = 0, .scale = 1, .need = RUNG_NEED_ENTITY}};

static void assert_close(double a, double b)
{
        if (!(fabs(a - b) < 1e-6 * (1 + fabs(b))))
                fail_msg("%.12g is not %.12g", a, b);
}

struct bench {
        struct rung_schema schema;
        struct rung_table *table;
        struct rung_cursor *cursor;
        uint32_t target;
};

static void bench_init(struct bench *bench, const struct rung_term *terms, uint32_t n_terms,
        struct rung_windows windows)
{
        memset(bench, 0, sizeof(*bench));
        assert_int_equal(rung_schema_init(terms, n_terms, &bench->schema), 0);
        assert_int_equal(rung_table_new(&windows, bench->schema.n_slots, &bench->table), 0);
        assert_int_equal(rung_table_add_target(bench->table, &bench->target), 0);
        assert_int_equal(rung_cursor_new(&bench->schema, &bench->cursor), 0);
}

static void bench_done(struct bench *bench)
{
        rung_cursor_free(bench->cursor);
        rung_table_free(bench->table);
}

static void feed(struct bench *bench, uint64_t instance, uint32_t n, const int64_t *times,
        const uint64_t *values)
{
        const uint64_t *columns[] = {values};
        struct rung_rows rows = {
                .life = {.instance = instance},
                .interval_us = SECOND,
                .n = n,
                .times_us = times,
                .values = columns,
        };

        rung_feed(bench->cursor, bench->table, bench->target, &rows);
}

static void finish(struct bench *bench)
{
        rung_finish(bench->cursor, bench->table, bench->target);
}

static double sum(const struct bench *bench, uint32_t window)
{
        return rung_sum(bench->table, bench->target, 0, window);
}

static uint32_t seen(const struct bench *bench, uint32_t window)
{
        return bench->table->targets[bench->target].seen[window];
}

static uint32_t reset(const struct bench *bench, uint32_t window)
{
        return bench->table->targets[bench->target].reset[window];
}

static void interpolates_between_the_rows_around_an_edge(void **state)
{
        /* Rows at 0.4, 1.4, 2.4, 3.4 s; windows [1,2) and [2,3). */
        static const int64_t times[] = {400000, 1400000, 2400000, 3400000};
        static const uint64_t values[] = {1000, 1010, 1030, 1130};
        struct bench bench;
        (void)state;

        bench_init(&bench, sectors, 1, (struct rung_windows){SECOND, SECOND, 2});
        feed(&bench, 1, 4, times, values);
        finish(&bench);
        assert_int_equal(seen(&bench, 0), 1);
        assert_close(sum(&bench, 0), 512 * (10 * 0.4 + 20 * 0.6));
        assert_close(sum(&bench, 1), 512 * (20 * 0.4 + 100 * 0.6));
        bench_done(&bench);
}

static void the_extremes_of_a_tiers_rows_are_taken_and_their_mean_where_they_are_not_known(
        void **state)
{
        /* Minutes, each read a little late. The second one knows no range, the fourth is torn. */
        static const int64_t times[] = {
                100, 60 * SECOND + 100, 120 * SECOND + 100, 180 * SECOND + 100, 240 * SECOND + 100};
        static const uint64_t values[] = {0, 600, 1800, 2400, 3000};
        static const uint64_t low[] = {1, 5000, 1, 2000, 1}, high[] = {0, 15000, 0, 30000, 0};
        static const uint8_t torn[] = {0, 0, 0, 0, 1};
        const uint64_t *columns[] = {values}, *lows[] = {low}, *highs[] = {high};
        struct rung_rows rows = {.life = {.instance = 1},
                .interval_us = 60 * SECOND,
                .n = 5,
                .times_us = times,
                .torn = torn,
                .values = columns,
                .low = lows,
                .high = highs};
        const struct rung_windows windows = {0, 60 * SECOND, 4};
        struct rung_table *table;
        struct rung_schema schema;
        struct rung_cursor *cursor;
        uint32_t target;
        (void)state;

        assert_int_equal(rung_schema_init(sectors, 1, &schema), 0);
        assert_int_equal(rung_table_new(&windows, schema.n_slots, &table), 0);
        table->extremes = true;
        assert_int_equal(rung_table_add_target(table, &target), 0);
        assert_int_equal(rung_cursor_new(&schema, &cursor), 0);
        rung_feed(cursor, table, target, &rows);
        rung_finish(cursor, table, target);
        assert_close(table->targets[target].low[0], 5.0 * 512);
        assert_close(table->targets[target].high[0], 15.0 * 512);
        assert_close(table->targets[target].low[1], 20.0 * 512);
        assert_close(table->targets[target].high[1], 20.0 * 512);
        assert_close(table->targets[target].high[2], 30.0 * 512);
        assert_true(isnan(table->targets[target].low[3]));
        rung_cursor_free(cursor);
        rung_table_free(table);
}

static void uses_the_clock_of_the_read_and_not_whole_seconds(void **state)
{
        /* 1.25 s really passed between the reads: 1000 sectors are 800 a second. */
        static const int64_t times[] = {0, 1250000, 2500000};
        static const uint64_t values[] = {0, 1000, 2000};
        struct bench bench;
        (void)state;

        bench_init(&bench, sectors, 1, (struct rung_windows){0, SECOND, 2});
        feed(&bench, 1, 3, times, values);
        finish(&bench);
        assert_close(sum(&bench, 0), 512 * 800.0);
        assert_close(sum(&bench, 1), 512 * 800.0);
        bench_done(&bench);
}

static void leaves_out_windows_without_rows_on_both_sides(void **state)
{
        static const int64_t times[] = {500000, 1500000, 2500000};
        static const uint64_t values[] = {0, 100, 200};
        struct bench bench;
        (void)state;

        bench_init(&bench, sectors, 1, (struct rung_windows){0, SECOND, 4});
        feed(&bench, 1, 3, times, values);
        finish(&bench);
        assert_int_equal(seen(&bench, 0), 0);
        assert_true(isnan(sum(&bench, 0)));
        assert_int_equal(seen(&bench, 1), 1);
        assert_int_equal(seen(&bench, 2), 0); /* the live edge */
        assert_true(isnan(sum(&bench, 2)));
        assert_int_equal(seen(&bench, 3), 0);
        bench_done(&bench);
}

static void a_32_bit_counter_wraps_within_a_life(void **state)
{
        static const int64_t times[] = {0, SECOND, 2 * SECOND};
        static const uint64_t values[] = {4294967000u, 4294967290u, 4};
        struct bench bench;
        (void)state;

        bench_init(&bench, times_32, 1, (struct rung_windows){0, SECOND, 2});
        feed(&bench, 1, 3, times, values);
        finish(&bench);
        assert_close(sum(&bench, 0), 290);
        assert_close(sum(&bench, 1), 10);
        assert_int_equal(reset(&bench, 1), 0);
        bench_done(&bench);
}

static void a_32_bit_counter_does_not_wrap_into_another_life(void **state)
{
        static const int64_t times[] = {0, SECOND};
        static const int64_t later[] = {2 * SECOND, 3 * SECOND};
        static const uint64_t values[] = {4294967000u, 4294967290u};
        static const uint64_t fresh[] = {4, 14};
        struct bench bench;
        (void)state;

        bench_init(&bench, times_32, 1, (struct rung_windows){0, 3 * SECOND, 1});
        feed(&bench, 1, 2, times, values);
        feed(&bench, 2, 2, later, fresh);
        finish(&bench);
        assert_int_equal(seen(&bench, 0), 1);
        assert_int_equal(reset(&bench, 0), 1);
        assert_close(sum(&bench, 0), 300); /* 290 of the old life, 10 of the new */
        bench_done(&bench);
}

static void a_32_bit_counter_that_steps_back_is_a_reset_and_no_wrap(void **state)
{
        /* Some kernels let busy time go back by a little: that is not 49 days of work. */
        static const int64_t times[] = {0, SECOND, 2 * SECOND, 3 * SECOND};
        static const uint64_t values[] = {5000, 5500, 5499, 5999};
        struct bench bench;
        (void)state;

        bench_init(&bench, times_32, 1, (struct rung_windows){0, 3 * SECOND, 1});
        feed(&bench, 1, 4, times, values);
        finish(&bench);
        assert_int_equal(reset(&bench, 0), 1);
        assert_close(sum(&bench, 0), 1000);
        bench_done(&bench);
}

static void a_64_bit_counter_that_goes_down_is_a_reset_and_never_a_wrap(void **state)
{
        static const int64_t times[] = {0, SECOND, 2 * SECOND, 3 * SECOND};
        static const uint64_t values[] = {5000, 5010, 3, 8};
        struct bench bench;
        (void)state;

        bench_init(&bench, sectors, 1, (struct rung_windows){0, 3 * SECOND, 1});
        feed(&bench, 1, 4, times, values);
        finish(&bench);
        assert_int_equal(reset(&bench, 0), 1);
        assert_close(sum(&bench, 0), 512 * (10 + 5));
        bench_done(&bench);
}

static void a_reset_that_nobody_announced_takes_the_32_bit_counters_along(void **state)
{
        static const struct rung_term terms[] = {
                {.metric = METRIC_DISK_WRITE_SECTORS, .slot = 0, .scale = 1},
                {.metric = METRIC_DISK_WRITE_TIME, .slot = 1, .scale = 1}};
        static const int64_t times[] = {0, SECOND, 2 * SECOND};
        static const uint64_t written[] = {5000, 3, 8}, time_ms[] = {900, 20, 30};
        const uint64_t *columns[] = {written, time_ms};
        struct rung_rows rows = {
                .interval_us = SECOND, .n = 3, .times_us = times, .values = columns};
        struct bench bench;
        (void)state;

        bench_init(&bench, terms, 2, (struct rung_windows){0, 2 * SECOND, 1});
        rung_feed(bench.cursor, bench.table, bench.target, &rows);
        finish(&bench);
        assert_int_equal(reset(&bench, 0), 1);
        assert_close(rung_sum(bench.table, 0, 0, 0), 5);
        assert_close(rung_sum(bench.table, 0, 1, 0), 10);
        bench_done(&bench);
}

static void another_boot_process_or_device_begins_anew_even_if_the_counter_went_up(void **state)
{
        static const struct rung_life lives[] = {
                {.boot = {{1}}, .instance = 1, .identity = 1},
                {.boot = {{2}}, .instance = 1, .identity = 1},
                {.boot = {{2}}, .instance = 2, .identity = 1},
                {.boot = {{2}}, .instance = 2, .identity = 2},
        };
        struct bench bench;
        (void)state;

        bench_init(&bench, sectors, 1, (struct rung_windows){0, SECOND, 7});
        for (int i = 0; i < 4; i++) {
                const int64_t times[] = {2 * i * SECOND, (2 * i + 1) * SECOND};
                const uint64_t values[] = {(uint64_t)i * 1000000, (uint64_t)i * 1000000 + 1};
                const uint64_t *columns[] = {values};
                struct rung_rows rows = {.life = lives[i],
                        .interval_us = SECOND,
                        .n = 2,
                        .times_us = times,
                        .values = columns};

                rung_feed(bench.cursor, bench.table, bench.target, &rows);
        }
        finish(&bench);
        for (uint32_t i = 0; i < 7; i++) {
                assert_int_equal(seen(&bench, i), 1);
                assert_int_equal(reset(&bench, i), i % 2);
                if (i % 2)
                        assert_true(isnan(sum(&bench, i)));
                else
                        assert_close(sum(&bench, i), 512);
        }
        bench_done(&bench);
}

static void a_window_around_a_hole_keeps_the_exact_increase(void **state)
{
        static const int64_t times[] = {0, SECOND, 31 * SECOND, 40 * SECOND, 41 * SECOND};
        static const uint64_t values[] = {0, 10, 400, 500, 500};
        struct bench bench;
        (void)state;

        bench_init(&bench, sectors, 1, (struct rung_windows){0, 35 * SECOND, 1});
        feed(&bench, 1, 3, times, values);
        feed(&bench, 1, 2, times + 3, values + 3);
        finish(&bench);
        /* The edge at 35 s lies in the hole from 31 s to 40 s. */
        assert_int_equal(seen(&bench, 0), 0);
        bench_done(&bench);

        bench_init(&bench, sectors, 1, (struct rung_windows){0, 41 * SECOND, 1});
        feed(&bench, 1, 5, times, values);
        finish(&bench);
        assert_int_equal(seen(&bench, 0), 1);
        assert_int_equal(reset(&bench, 0), 0);
        assert_close(sum(&bench, 0), 512 * 500.0);
        bench_done(&bench);
}

static void windows_inside_a_hole_have_no_number(void **state)
{
        static const int64_t times[] = {0, SECOND, 9 * SECOND, 10 * SECOND};
        static const uint64_t values[] = {0, 10, 90, 100};
        struct bench bench;
        (void)state;

        bench_init(&bench, sectors, 1, (struct rung_windows){0, SECOND, 10});
        feed(&bench, 1, 4, times, values);
        finish(&bench);
        for (uint32_t i = 0; i < 10; i++) {
                bool known = i == 0 || i == 9;

                assert_int_equal(seen(&bench, i), known);
                assert_int_equal(isnan(sum(&bench, i)), !known);
        }
        bench_done(&bench);
}

static void two_missed_rows_are_bridged(void **state)
{
        static const int64_t times[] = {0, SECOND, 4 * SECOND, 5 * SECOND};
        static const uint64_t values[] = {0, 10, 40, 50};
        struct bench bench;
        (void)state;

        bench_init(&bench, sectors, 1, (struct rung_windows){0, SECOND, 5});
        feed(&bench, 1, 4, times, values);
        finish(&bench);
        for (uint32_t i = 0; i < 5; i++)
                assert_close(sum(&bench, i), 5120);
        bench_done(&bench);
}

static void a_row_in_which_the_entity_is_absent_is_missing_and_not_zero(void **state)
{
        static const int64_t times[] = {0, SECOND, 2 * SECOND, 3 * SECOND};
        static const uint64_t values[] = {100, 0, 300, 400};
        static const uint8_t present[] = {1, 0, 1, 1};
        const uint64_t *columns[] = {values};
        struct rung_rows rows = {.interval_us = SECOND,
                .n = 4,
                .times_us = times,
                .present = present,
                .values = columns};
        struct bench bench;
        (void)state;

        bench_init(&bench, sectors, 1, (struct rung_windows){0, SECOND, 3});
        rung_feed(bench.cursor, bench.table, bench.target, &rows);
        finish(&bench);
        for (uint32_t i = 0; i < 3; i++) {
                assert_close(sum(&bench, i), 51200);
                assert_int_equal(reset(&bench, i), 0);
        }
        bench_done(&bench);
}

static void a_gauge_gives_its_mean_and_not_its_sum(void **state)
{
        static const struct rung_term terms[] = {
                {.metric = METRIC_DISK_IN_FLIGHT, .slot = 0, .scale = 1}};
        static const int64_t times[] = {0, SECOND, 2 * SECOND, 4 * SECOND};
        static const uint64_t values[] = {2, 4, 0, 6};
        struct bench bench;
        (void)state;

        bench_init(&bench, terms, 1, (struct rung_windows){0, 2 * SECOND, 2});
        feed(&bench, 1, 4, times, values);
        finish(&bench);
        assert_close(sum(&bench, 0) / 2, (3 + 2) / 2.0);
        assert_close(sum(&bench, 1) / 2, 3);
        bench_done(&bench);
}

static void a_gauge_keeps_its_mean_across_a_restart(void **state)
{
        static const struct rung_term terms[] = {
                {.metric = METRIC_DISK_IN_FLIGHT, .slot = 0, .scale = 1}};
        static const int64_t times[] = {0, SECOND}, later[] = {2 * SECOND, 3 * SECOND};
        static const uint64_t values[] = {4, 4};
        struct bench bench;
        (void)state;

        bench_init(&bench, terms, 1, (struct rung_windows){0, 3 * SECOND, 1});
        feed(&bench, 1, 2, times, values);
        feed(&bench, 2, 2, later, values);
        finish(&bench);
        assert_close(sum(&bench, 0) / 3, 4);
        bench_done(&bench);
}

static void a_missing_column_is_missing_as_its_term_says(void **state)
{
        static const enum rung_need needs[] = {
                RUNG_NEED_SLOT, RUNG_NEED_OPTIONAL, RUNG_NEED_ENTITY};
        static const int64_t times[] = {0, SECOND};
        static const uint64_t values[] = {0, 7};
        (void)state;

        for (int i = 0; i < 3; i++) {
                const struct rung_term terms[] = {
                        {.metric = METRIC_OSD_OP_W_IN_BYTES, .slot = 0, .scale = 1},
                        {.metric = METRIC_OSD_OP_RW_IN_BYTES,
                                .slot = 0,
                                .scale = 1,
                                .need = needs[i]},
                        {.metric = METRIC_OSD_OP_W, .slot = 1, .scale = 1}};
                const uint64_t *columns[] = {values, NULL, values};
                struct rung_rows rows = {
                        .interval_us = SECOND, .n = 2, .times_us = times, .values = columns};
                struct bench bench;

                bench_init(&bench, terms, 3, (struct rung_windows){0, SECOND, 1});
                rung_feed(bench.cursor, bench.table, bench.target, &rows);
                finish(&bench);
                assert_int_equal(seen(&bench, 0), needs[i] != RUNG_NEED_ENTITY);
                assert_int_equal(
                        isnan(rung_sum(bench.table, 0, 0, 0)), needs[i] != RUNG_NEED_OPTIONAL);
                assert_int_equal(
                        isnan(rung_sum(bench.table, 0, 1, 0)), needs[i] == RUNG_NEED_ENTITY);
                bench_done(&bench);
        }
}

static void rows_that_come_late_or_twice_are_left_out(void **state)
{
        static const int64_t times[] = {0, SECOND, SECOND, 500000, 2 * SECOND};
        static const uint64_t values[] = {0, 10, 10, 5, 20};
        struct bench bench;
        (void)state;

        bench_init(&bench, sectors, 1, (struct rung_windows){0, 2 * SECOND, 1});
        feed(&bench, 1, 5, times, values);
        feed(&bench, 1, 5, times, values);
        finish(&bench);
        assert_close(sum(&bench, 0), 512 * 20.0);
        assert_int_equal(reset(&bench, 0), 0);
        bench_done(&bench);
}

static void a_sum_counts_the_entities_that_answered(void **state)
{
        static const int64_t times[] = {0, SECOND, 2 * SECOND};
        static const uint64_t values[] = {0, 10, 20};
        struct rung_cursor *other;
        struct bench bench;
        (void)state;

        bench_init(&bench, sectors, 1, (struct rung_windows){0, SECOND, 2});
        feed(&bench, 1, 3, times, values);
        finish(&bench);
        other = bench.cursor;
        assert_int_equal(rung_cursor_new(&bench.schema, &bench.cursor), 0);
        feed(&bench, 1, 2, times, values);
        finish(&bench);
        assert_int_equal(seen(&bench, 0), 2);
        assert_close(sum(&bench, 0), 512 * 20.0);
        assert_int_equal(seen(&bench, 1), 1);
        assert_close(sum(&bench, 1), 512 * 10.0);
        rung_cursor_free(other);
        bench_done(&bench);
}

static void a_table_that_would_be_too_large_is_refused(void **state)
{
        struct rung_windows windows = {0, SECOND, 11000};
        struct rung_table *table;
        uint32_t target, n = 0;
        int r;
        (void)state;

        assert_int_equal(rung_table_new(&windows, 32, &table), 0);
        do
                r = rung_table_add_target(table, &target);
        while (r == 0 && ++n < 1000);
        assert_int_equal(r, -E2BIG);
        assert_true(n >= 64);
        rung_table_free(table);
}

/* ---- properties over random rows ---- */

#define UNIT 100000ll /* all times are multiples, so that the reference can count units */
#define N 120

struct history {
        uint32_t n;
        int64_t times[N];
        uint64_t values[N];
        uint64_t lives[N];
};

static void make_history(struct history *h, unsigned *seed, int resets, int holes, bool narrow)
{
        int64_t t = (rand_r(seed) % 20) * UNIT;
        uint64_t v = narrow ? 4294960000u : rand_r(seed), life = 1;

        h->n = 40 + rand_r(seed) % (N - 40);
        for (uint32_t i = 0; i < h->n; i++) {
                t += (5 + rand_r(seed) % 10) * UNIT;
                if (holes && rand_r(seed) % holes == 0)
                        t += (30 + rand_r(seed) % 60) * UNIT;
                v += rand_r(seed) % 1000;
                if (resets && rand_r(seed) % resets == 0) {
                        life++;
                        v = rand_r(seed) % 100;
                }
                h->times[i] = t;
                h->values[i] = narrow ? (uint32_t)v : v;
                h->lives[i] = life;
        }
}

/* Feeds in blocks of random length; a block has one life. */
static void feed_history(struct bench *bench, const struct history *h, unsigned *seed)
{
        for (uint32_t i = 0; i < h->n;) {
                uint32_t n = 1 + rand_r(seed) % 20, k = 1;

                while (k < n && i + k < h->n && h->lives[i + k] == h->lives[i])
                        k++;
                feed(bench, h->lives[i], k, h->times + i, h->values + i);
                i += k;
        }
        finish(bench);
}

static unsigned new_seed(void)
{
        const char *given = getenv("STRATA_SEED");
        unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);

        printf("# seed %u\n", seed);
        return seed;
}

static void windows_add_up_to_the_increase_over_the_whole_range(void **state)
{
        unsigned seed = new_seed();
        (void)state;

        for (int round = 0; round < 500; round++) {
                uint64_t step = (uint64_t)(1 + rand_r(&seed) % 400) * 33333;
                struct bench bench;
                struct history h;
                double all = 0, begin, end;
                uint32_t n;

                make_history(&h, &seed, 0, 0, round % 2);
                n = (uint32_t)((uint64_t)(h.times[h.n - 1] - h.times[0]) / step);
                if (n == 0)
                        continue;
                bench_init(&bench, times_32, 1, (struct rung_windows){h.times[0], step, n});
                feed_history(&bench, &h, &seed);
                for (uint32_t i = 0; i < n; i++)
                        all += sum(&bench, i);
                bench_done(&bench);

                begin = 0;
                end = (double)((uint64_t)h.times[0] + n * step);
                for (uint32_t i = 1; i < h.n; i++) {
                        double d = (double)(uint32_t)(h.values[i] - h.values[i - 1]);
                        double length = (double)(h.times[i] - h.times[i - 1]);
                        double until = end - (double)h.times[i - 1];

                        if (until > 0)
                                begin += until >= length ? d : d * until / length;
                }
                assert_close(all, begin);
        }
}

static void how_rows_are_cut_into_blocks_changes_nothing(void **state)
{
        unsigned seed = new_seed();
        (void)state;

        for (int round = 0; round < 300; round++) {
                struct rung_windows windows = {0, (uint64_t)(1 + rand_r(&seed) % 100) * 77777, 60};
                struct bench a, b;
                struct history h;

                make_history(&h, &seed, 15, 15, false);
                bench_init(&a, sectors, 1, windows);
                bench_init(&b, sectors, 1, windows);
                feed_history(&a, &h, &seed);
                feed_history(&b, &h, &seed);
                for (uint32_t i = 0; i < windows.n; i++) {
                        assert_int_equal(seen(&a, i), seen(&b, i));
                        assert_int_equal(reset(&a, i), reset(&b, i));
                        assert_memory_equal(&a.table->targets[0].sums[i],
                                &b.table->targets[0].sums[i], sizeof(double));
                }
                bench_done(&a);
                bench_done(&b);
        }
}

/* The same rules, counted out unit by unit of time. */
static void check_against_units(const struct history *h, struct rung_windows windows,
        const struct bench *bench, bool narrow)
{
        for (uint32_t w = 0; w < windows.n; w++) {
                int64_t begin = windows.from_us + (int64_t)(w * windows.step_us);
                int64_t end = begin + (int64_t)windows.step_us;
                bool covered = true, was_reset = false, given = false;
                double all = 0;

                for (int64_t t = begin; t < end; t += UNIT) {
                        uint32_t i = 1;
                        bool down, life;

                        while (i < h->n && !(h->times[i - 1] <= t && t < h->times[i]))
                                i++;
                        if (i == h->n) {
                                covered = false;
                                continue;
                        }
                        if (h->times[i] - h->times[i - 1] > 4 * SECOND &&
                                (h->times[i - 1] < begin || h->times[i] > end))
                                covered = false;
                        down = h->values[i] < h->values[i - 1];
                        life = h->lives[i] != h->lives[i - 1];
                        if (life || (down && !narrow)) {
                                was_reset = true;
                                continue;
                        }
                        given = true;
                        all += ((double)(h->values[i]) - (double)(h->values[i - 1]) +
                                       (down ? 4294967296.0 : 0)) *
                               UNIT / (double)(h->times[i] - h->times[i - 1]);
                }
                assert_int_equal(seen(bench, w), covered);
                assert_int_equal(reset(bench, w), covered && was_reset);
                assert_int_equal(isnan(sum(bench, w)), !(covered && given));
                if (covered && given)
                        assert_close(sum(bench, w), all);
        }
}

static void random_holes_resets_and_wraps_agree_with_a_slow_reference(void **state)
{
        unsigned seed = new_seed();
        (void)state;

        for (int round = 0; round < 300; round++) {
                bool narrow = round % 2;
                struct rung_windows windows = {(rand_r(&seed) % 50) * UNIT,
                        (uint64_t)(1 + rand_r(&seed) % 120) * UNIT, 30};
                struct bench bench;
                struct history h;

                make_history(&h, &seed, 12, 12, narrow);
                bench_init(&bench, narrow ? times_32 : raw_sectors, 1, windows);
                feed_history(&bench, &h, &seed);
                check_against_units(&h, windows, &bench, narrow);
                bench_done(&bench);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(interpolates_between_the_rows_around_an_edge),
                cmocka_unit_test(
                        the_extremes_of_a_tiers_rows_are_taken_and_their_mean_where_they_are_not_known),
                cmocka_unit_test(uses_the_clock_of_the_read_and_not_whole_seconds),
                cmocka_unit_test(leaves_out_windows_without_rows_on_both_sides),
                cmocka_unit_test(a_32_bit_counter_wraps_within_a_life),
                cmocka_unit_test(a_32_bit_counter_does_not_wrap_into_another_life),
                cmocka_unit_test(a_32_bit_counter_that_steps_back_is_a_reset_and_no_wrap),
                cmocka_unit_test(a_64_bit_counter_that_goes_down_is_a_reset_and_never_a_wrap),
                cmocka_unit_test(a_reset_that_nobody_announced_takes_the_32_bit_counters_along),
                cmocka_unit_test(
                        another_boot_process_or_device_begins_anew_even_if_the_counter_went_up),
                cmocka_unit_test(a_window_around_a_hole_keeps_the_exact_increase),
                cmocka_unit_test(windows_inside_a_hole_have_no_number),
                cmocka_unit_test(two_missed_rows_are_bridged),
                cmocka_unit_test(a_row_in_which_the_entity_is_absent_is_missing_and_not_zero),
                cmocka_unit_test(a_gauge_gives_its_mean_and_not_its_sum),
                cmocka_unit_test(a_gauge_keeps_its_mean_across_a_restart),
                cmocka_unit_test(a_missing_column_is_missing_as_its_term_says),
                cmocka_unit_test(rows_that_come_late_or_twice_are_left_out),
                cmocka_unit_test(a_sum_counts_the_entities_that_answered),
                cmocka_unit_test(a_table_that_would_be_too_large_is_refused),
                cmocka_unit_test(windows_add_up_to_the_increase_over_the_whole_range),
                cmocka_unit_test(how_rows_are_cut_into_blocks_changes_nothing),
                cmocka_unit_test(random_holes_resets_and_wraps_agree_with_a_slow_reference),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
