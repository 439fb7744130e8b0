/*
 * The agent's own way of a sample (sampler, open rows, sealer, spool, feed) through simulated days:
 * made-up sources, a made-up clock, and a collector that is a bitmap. Each row carries its number,
 * so that it is known which came, which came twice and which are told as missing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agentd/feed.h"
#include "agentd/sampler.h"
#include "agentd/sealer.h"
#include "allocations.h"
#include "spool-fixture.h"

#define SEAL_US (10 * SECOND_US)
#define ANSWER_US 30000u /* a request's way there and back */
#define ROWS_MOST (8u * 86400)
#define QUICK_US SECOND_US       /* the interval of diskstats */
#define SLOW_US (10 * SECOND_US) /* of host */

struct source {
        enum source_id id;
};

/* What the collector has, by the rows' numbers. */
struct ledger {
        uint8_t stored[SOURCE_MAX_][ROWS_MOST / 8];
        uint64_t sampled[SOURCE_MAX_];
        uint64_t rows, gap_rows, repeats, bytes, newest_us;
        uint64_t gap_names[4096];
        unsigned n_gaps;
};

struct rig {
        struct spool_bench *bench;
        struct sampler *sampler;
        struct sealer *sealer;
        struct feed feed;
        struct fixture fixture;
        struct plan plan;
        struct ledger *ledger;
        uint64_t next_us, seal_us, answer_us;
        bool flying, outage;
        struct spool_batch batch;
        uint64_t lag_max_us; /* of the newest row at the collector, while it answers */
};

/* Sources have no userdata of the test's: they find it here. */
static struct rig *rig;

static int fake_open(enum source_id id, struct source **ret)
{
        *ret = calloc(1, sizeof(**ret));
        (*ret)->id = id;
        return 0;
}

static int open_quick(const struct source_options *options, const struct source_report *report,
        struct source **ret)
{
        (void)options;
        (void)report;
        return fake_open(SOURCE_DISKSTATS, ret);
}

static int open_slow(const struct source_options *options, const struct source_report *report,
        struct source **ret)
{
        (void)options;
        (void)report;
        return fake_open(SOURCE_HOST, ret);
}

static int fake_collect(struct source *source, uint64_t deadline_us, struct sample *ret)
{
        (void)deadline_us;
        fixture_set(&rig->fixture, rig->ledger->sampled[source->id]);
        rig->fixture.values[0] = rig->ledger->sampled[source->id]++;
        rig->fixture.present[0] = 1;
        *ret = rig->fixture.sample;
        ret->time_us = rig->bench->now.realtime_us;
        return 0;
}

static void fake_close(struct source *source)
{
        free(source);
}

static int class_get(enum source_id id, const struct source_class **ret)
{
        static const struct source_class quick = {
                .id = SOURCE_DISKSTATS,
                .open = open_quick,
                .collect = fake_collect,
                .close = fake_close,
        };
        static const struct source_class slow = {
                .id = SOURCE_HOST,
                .open = open_slow,
                .collect = fake_collect,
                .close = fake_close,
        };

        if (id != SOURCE_DISKSTATS && id != SOURCE_HOST)
                return -ENOENT;
        *ret = id == SOURCE_HOST ? &slow : &quick;
        return 0;
}

static struct moment look(void *userdata)
{
        (void)userdata;
        return rig->bench->now;
}

static void on_row(void *userdata, const struct sampler_row *row)
{
        (void)userdata;
        sealer_add(rig->sealer, row);
}

static void rig_start(uint64_t bytes_max, uint64_t age_max_us, uint64_t backfill_rate)
{
        struct sampler_options sampler = {.class_get = class_get, .clock = look, .row = on_row};
        struct sealer_options sealer = {
                .clock = look, .seal_interval_us = SEAL_US, .block_rows = 300};

        rig = calloc(1, sizeof(*rig));
        rig->ledger = calloc(1, sizeof(*rig->ledger));
        rig->bench = bench_new();
        fixture_init(&rig->fixture);
        rig->bench->age_max_us = age_max_us;
        open_spool(rig->bench, bytes_max);
        feed_init(&rig->feed, rig->bench->spool, backfill_rate);
        sealer.folder = rig->bench->folder;
        sealer.spool = rig->bench->spool;
        sealer.boot = rig->bench->boot;
        sealer.host.bytes[0] = 1;
        assert_int_equal(sealer_new(&sealer, &rig->sealer), 0);
        sampler.counters = &rig->bench->counters;
        sampler.allowed[SOURCE_DISKSTATS] = sampler.allowed[SOURCE_HOST] = true;
        assert_int_equal(sampler_new(&sampler, &rig->sampler), 0);
        plan_init(&rig->plan);
        for (int id = 0; id < SOURCE_MAX_; id++)
                rig->plan.sources[id].enabled = id == SOURCE_DISKSTATS || id == SOURCE_HOST;
        rig->plan.revision = 1;
        rig->plan.sources[SOURCE_DISKSTATS].interval_us = QUICK_US;
        rig->plan.sources[SOURCE_HOST].interval_us = SLOW_US;
        assert_int_equal(sampler_apply(rig->sampler, &rig->plan), 0);
        rig->seal_us = rig->bench->now.monotonic_us + SEAL_US;
}

static int rig_stop(void **state)
{
        (void)state;
        if (!rig)
                return 0;
        sampler_free(rig->sampler, SECOND_US);
        sealer_free(rig->sealer);
        plan_done(&rig->plan);
        bench_free(rig->bench);
        free(rig->ledger);
        free(rig);
        rig = NULL;
        return 0;
}

static void store_rows(const uint8_t *bytes, size_t size)
{
        CLEANUP(block) struct block *block = NULL;
        const struct block_header *header;
        uint64_t numbers[BLOCK_ROWS_MAX];

        assert_int_equal(block_open(bytes, size, &block), 0);
        header = block_get_header(block);
        assert_int_equal(block_read_column(block, 0, numbers), 0);
        for (uint32_t row = 0; row < header->rows; row++) {
                uint8_t *byte = &rig->ledger->stored[header->source][numbers[row] / 8];

                assert_true(numbers[row] < ROWS_MOST);
                rig->ledger->repeats += *byte >> numbers[row] % 8 & 1;
                *byte |= (uint8_t)(1u << numbers[row] % 8);
        }
        rig->ledger->rows += header->rows;
        if ((uint64_t)header->last_us > rig->ledger->newest_us)
                rig->ledger->newest_us = (uint64_t)header->last_us;
}

static void store_gap(const struct block_header *header)
{
        uint64_t name = header->sequence * SOURCE_MAX_ + header->source;

        for (unsigned i = 0; i < rig->ledger->n_gaps; i++)
                assert_int_not_equal(rig->ledger->gap_names[i], name);
        assert_true(rig->ledger->n_gaps < 4096);
        rig->ledger->gap_names[rig->ledger->n_gaps++] = name;
        rig->ledger->gap_rows += header->rows;
}

static void store_batch(void)
{
        struct block_header header;
        size_t at, size;

        for (at = 0; at < rig->batch.size; at += size) {
                assert_int_equal(
                        block_peek(rig->batch.bytes + at, rig->batch.size - at, &header, &size), 0);
                if (header.flags & BLOCK_FLAG_GAP)
                        store_gap(&header);
                else
                        store_rows(rig->batch.bytes + at, size);
        }
        rig->ledger->bytes += rig->batch.size;
}

/* The sender's part: a request, its answer, and when there may be another. */
static void deliver(void)
{
        uint64_t now_us = rig->bench->now.monotonic_us, next_us;

        if (rig->flying && now_us >= rig->answer_us) {
                rig->flying = false;
                if (rig->outage) {
                        feed_failed(&rig->feed);
                } else {
                        store_batch();
                        feed_stored(&rig->feed);
                }
        }
        if (rig->flying || feed_next(&rig->feed, now_us, &rig->batch, &next_us) <= 0)
                return;
        rig->flying = true;
        /* A collector that is away costs a pause. */
        rig->answer_us = now_us + (rig->outage ? 30 * SECOND_US : ANSWER_US);
}

static void seal(void)
{
        if (rig->bench->now.monotonic_us < rig->seal_us)
                return;
        rig->seal_us += SEAL_US;
        sealer_seal_all(rig->sealer);
        deliver();
}

static void check_bounds(uint64_t bytes_max)
{
        assert_true(rig->bench->counters.spool_bytes <= bytes_max);
}

/* Lets @us pass as the loop does: from one thing that is due to the next. */
static void run(uint64_t us)
{
        uint64_t end_us = rig->bench->now.monotonic_us + us, at_us;

        while (rig->bench->now.monotonic_us < end_us) {
                sampler_run(rig->sampler, &rig->next_us);
                seal();
                deliver();
                at_us = rig->next_us < rig->seal_us ? rig->next_us : rig->seal_us;
                if (rig->flying && rig->answer_us < at_us)
                        at_us = rig->answer_us;
                else if (!rig->flying && rig->bench->counters.spool_blocks > 0 &&
                         rig->feed.backfill.next_us > rig->bench->now.monotonic_us &&
                         rig->feed.backfill.next_us < at_us)
                        at_us = rig->feed.backfill.next_us;
                if (at_us > end_us)
                        at_us = end_us;
                if (at_us > rig->bench->now.monotonic_us)
                        pass(rig->bench, at_us - rig->bench->now.monotonic_us);
        }
}

static uint64_t sampled(void)
{
        return rig->ledger->sampled[SOURCE_DISKSTATS] + rig->ledger->sampled[SOURCE_HOST];
}

/* Seals and sends all there is, then counts: each row is stored once or told as missing. */
static void check_every_row(void)
{
        rig->outage = false;
        run(HOUR_US);
        sealer_seal_all(rig->sealer);
        run(SEAL_US - 1);
        sampler_run(rig->sampler, &rig->next_us);
        sealer_seal_all(rig->sealer);
        for (unsigned i = 0; i < 20; i++) {
                deliver();
                pass(rig->bench, ANSWER_US);
        }
        assert_int_equal(rig->bench->counters.spool_blocks, 0);
        assert_int_equal(rig->ledger->repeats, 0);
        assert_int_equal(rig->ledger->rows + rig->ledger->gap_rows, sampled());
        assert_int_equal(rig->bench->counters.dropped_rows, rig->ledger->gap_rows);
        assert_int_equal(rig->bench->counters.rows, sampled());
        assert_int_equal(rig->bench->counters.ticks_missed, 0);
}

static void hours(unsigned count, bool outage, uint64_t bytes_max)
{
        rig->outage = outage;
        for (unsigned i = 0; i < count; i++) {
                run(HOUR_US);
                check_bounds(bytes_max);
                /* Each file's last page counts whole. */
                assert_true(folder_bytes(rig->bench->folder, true) <=
                            bytes_max + 130 * 4096 + MEBIBYTE / 2);
        }
}

static void a_week_of_daily_outages_costs_no_row_that_is_not_told(void **state)
{
        size_t bytes[8];
        uint64_t dropped_before;

        (void)state;
        rig_start(MEBIBYTE, 0, 256 << 10);
        for (unsigned day = 1; day <= 7; day++) {
                dropped_before = rig->bench->counters.dropped_rows;
                /* The first day and the fifth lose more than the spool holds. */
                hours(4, false, MEBIBYTE);
                hours(day % 4 == 1 ? 14 : 2, true, MEBIBYTE);
                hours(day % 4 == 1 ? 6 : 18, false, MEBIBYTE);
                assert_int_equal(rig->bench->counters.dropped_rows > dropped_before, day % 4 == 1);
                bytes[day] = allocations_bytes();
        }
        /* zstd sizes its workspace anew now and then, by some bytes. One byte lost a seal would be
         * 86,400. */
        assert_in_range(bytes[7], bytes[2] - 512, bytes[2] + 512);
        check_every_row();
        assert_in_range(rig->ledger->rows, sampled() / 2, sampled() - 10000);
}

static void what_grows_too_old_is_told_as_missing_to_the_row(void **state)
{
        (void)state;
        rig_start(64 * MEBIBYTE, 3 * HOUR_US, 256 << 10);
        for (unsigned day = 1; day <= 2; day++) {
                hours(2, false, 64 * MEBIBYTE);
                hours(5, true, 64 * MEBIBYTE);
                hours(2, false, 64 * MEBIBYTE);
        }
        check_every_row();
        /* Two hours of two outages, to a 64th of the bound. */
        assert_in_range(rig->ledger->gap_rows, 2 * 2 * 3960 - 2 * 400, 2 * 2 * 3960 + 400);
}

static void a_wall_clock_that_jumps_by_an_hour_costs_no_row(void **state)
{
        static const int64_t jumps[] = {3600, -3600, -3600, 3600};

        (void)state;
        rig_start(64 * MEBIBYTE, 3 * HOUR_US, 256 << 10);
        for (unsigned i = 0; i < 8; i++) {
                rig->outage = i % 4 > 1;
                run(HOUR_US);
                rig->bench->now.realtime_us += jumps[i % 4] * (int64_t)SECOND_US + 250000;
        }
        check_every_row();
        assert_int_equal(rig->ledger->gap_rows, 0);
        /* A jump costs a part of an interval; not one tick comes twice. */
        assert_in_range(sampled(), 9 * 3960 - 2 * 8, 9 * 3960 + 20);
}

static void after_an_hour_without_a_collector_the_newest_comes_first_and_live_is_not_held_up(
        void **state)
{
        const uint64_t rate = 2000;
        uint64_t begin_us, backlog, drained_us = 0, sent, lag_us, lag_max_us = 0;

        (void)state;
        rig_start(64 * MEBIBYTE, 0, rate);
        run(60 * SECOND_US);
        rig->outage = true;
        run(HOUR_US);
        backlog = rig->bench->counters.spool_bytes;
        assert_true(backlog > 60 * rate);
        rig->outage = false;
        rig->ledger->bytes = 0;
        while (rig->ledger->bytes == 0)
                run(SECOND_US);
        /* At once the newest: no older than what is not sealed yet, and the pause before the try.
         */
        lag_us = (uint64_t)rig->bench->now.realtime_us - rig->ledger->newest_us;
        assert_true(lag_us <= SEAL_US + 32 * SECOND_US);
        begin_us = rig->bench->now.monotonic_us;
        sent = rig->ledger->bytes;
        run(SEAL_US);
        for (unsigned i = 0; drained_us == 0 && i < 7200; i++) {
                run(SECOND_US);
                lag_us = (uint64_t)rig->bench->now.realtime_us - rig->ledger->newest_us;
                lag_max_us = lag_us > lag_max_us ? lag_us : lag_max_us;
                if (rig->bench->counters.spool_bytes < 1000)
                        drained_us = rig->bench->now.monotonic_us - begin_us;
        }
        print_message("# backlog of %lu bytes drained in %lu s at %lu bytes/s; newest row at the "
                      "collector at most "
                      "%lu ms old\n",
                (unsigned long)backlog, (unsigned long)(drained_us / SECOND_US),
                (unsigned long)rate, (unsigned long)(lag_max_us / 1000));
        /* A row waits for the next seal, and then for an answer or two. */
        assert_true(lag_max_us <= SEAL_US + SECOND_US + 2 * ANSWER_US);
        assert_true(drained_us > 0);
        sent = rig->ledger->bytes - sent;
        /* What was sampled meanwhile comes on top: about 70 bytes a second. */
        assert_in_range(sent * SECOND_US / drained_us, rate * 9 / 10, rate * 12 / 10);
        check_every_row();
        assert_int_equal(rig->ledger->gap_rows, 0);
}

static void a_tick_allocates_nothing(void **state)
{
        uint64_t ticks;
        size_t before;

        (void)state;
        rig_start(64 * MEBIBYTE, 0, 0);
        run(60 * SECOND_US + 1);
        /* Ticks alone: no seal is due. */
        run(SECOND_US);
        before = allocations;
        ticks = rig->bench->counters.ticks;
        run(8 * SECOND_US);
        assert_int_equal(allocations, before);
        assert_int_equal(rig->bench->counters.ticks - ticks, 8);
        /* It does count. */
        assert_int_equal(sampler_apply(rig->sampler, &rig->plan), 0);
        sealer_seal_all(rig->sealer);
        rig->plan.sources[SOURCE_DISKSTATS].interval_us *= 2;
        assert_int_equal(sampler_apply(rig->sampler, &rig->plan), 0);
        run(4 * SECOND_US);
        assert_true(allocations > before);
}

static void sealing_and_appending_use_their_memory_again(void **state)
{
        size_t before;

        (void)state;
        rig_start(64 * MEBIBYTE, 0, 0);
        run(60 * SECOND_US);
        rig->outage = true; /* The bitmap decodes blocks, which takes memory. */
        rig->answer_us = UINT64_MAX;
        rig->flying = true;
        run(100 * SEAL_US);
        before = allocations;
        run(100 * SEAL_US);
        /* But for zstd, which sizes its workspace anew now and then. */
        assert_in_range(allocations, before, before + 4);
        assert_true(rig->bench->counters.spool_blocks >= 200);
        rig->flying = false;
}

#define TEST(name) cmocka_unit_test_teardown(name, rig_stop)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_week_of_daily_outages_costs_no_row_that_is_not_told),
                TEST(what_grows_too_old_is_told_as_missing_to_the_row),
                TEST(a_wall_clock_that_jumps_by_an_hour_costs_no_row),
                TEST(after_an_hour_without_a_collector_the_newest_comes_first_and_live_is_not_held_up),
                TEST(a_tick_allocates_nothing),
                TEST(sealing_and_appending_use_their_memory_again),
        };

        allocations_watch();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
