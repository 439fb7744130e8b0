#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agentd/sampler.h"
#include "sample-fixture.h"

#define SECOND 1000000

/* The world of the fake sources: their clock, what they shall do, what they did. */
static struct world {
        int64_t realtime_us;
        uint64_t monotonic_us;
        int open_result, collect_result;
        unsigned opens, closes, collects, rows, facts_calls;
        uint64_t cost_us;
        uint64_t time_us; /* that the waiting source had */
        uint64_t facts_generation;
        int64_t first_row_us, last_row_us, row_step_us;
        uint64_t epoch;
        uint64_t pending_us; /* that the asking source's row takes; it looks thrice */
        bool will_wait;      /* the host */
        pthread_t collector; /* who collected last */
        sem_t gate;          /* the waiting source collects when it may pass */
        sem_t live, dead;    /* the same for the clusters of these names */
        unsigned cluster_rows[2];
        struct fixture fixture;
} world;

struct source {
        bool dead;
        uint64_t answer_us;
};

static int fake_open(const struct source_options *options, const struct source_report *report,
        struct source **ret)
{
        (void)report;
        world.opens++;
        if (world.open_result < 0)
                return world.open_result;
        *ret = calloc(1, sizeof(**ret));
        (*ret)->dead = options->ceph_conf && strcmp(options->ceph_conf, "dead.conf") == 0;
        return 0;
}

static int cluster_collect(struct source *source, uint64_t deadline_us, struct sample *ret)
{
        (void)deadline_us;
        sem_wait(source->dead ? &world.dead : &world.live);
        if (source->dead)
                return -ETIMEDOUT;
        *ret = world.fixture.sample;
        return 0;
}

static int cluster_add_facts(struct source *source, struct facts *facts)
{
        facts->clusters = calloc(1, sizeof(*facts->clusters));
        facts->n_clusters = 1;
        facts->clusters[0].fsid.bytes[0] = source->dead ? 2 : 1;
        return 0;
}

static int fake_collect(struct source *source, uint64_t deadline_us, struct sample *ret)
{
        (void)source;
        (void)deadline_us;
        world.collects++;
        if (world.collect_result < 0)
                return world.collect_result;
        *ret = world.fixture.sample;
        ret->time_us = world.realtime_us;
        ret->facts_generation = world.facts_generation;
        world.realtime_us += (int64_t)world.cost_us;
        world.monotonic_us += world.cost_us;
        return 0;
}

static int waiting_collect(struct source *source, uint64_t deadline_us, struct sample *ret)
{
        world.time_us = deadline_us - world.monotonic_us;
        sem_wait(&world.gate);
        return fake_collect(source, deadline_us, ret);
}

static int asking_proceed(struct source *source, struct sample *ret)
{
        if (world.monotonic_us < source->answer_us) {
                ret->again_us = world.monotonic_us + world.pending_us / 2;
                return SOURCE_PENDING;
        }
        return fake_collect(source, 0, ret);
}

static int asking_collect(struct source *source, uint64_t deadline_us, struct sample *ret)
{
        (void)deadline_us;
        source->answer_us = world.monotonic_us + world.pending_us;
        return asking_proceed(source, ret);
}

static int host_collect(struct source *source, uint64_t deadline_us, struct sample *ret)
{
        world.collector = pthread_self();
        return fake_collect(source, deadline_us, ret);
}

static bool host_will_wait(struct source *source)
{
        (void)source;
        return world.will_wait;
}

static int fake_add_facts(struct source *source, struct facts *facts)
{
        (void)source;
        (void)facts;
        world.facts_calls++;
        return 0;
}

static void fake_close(struct source *source)
{
        world.closes += source != NULL;
        free(source);
}

static int class_get(enum source_id id, const struct source_class **ret)
{
        static const struct source_class quick = {
                .id = SOURCE_DISKSTATS,
                .open = fake_open,
                .collect = fake_collect,
                .add_facts = fake_add_facts,
                .close = fake_close,
        };
        static const struct source_class waiting = {
                .id = SOURCE_OSD,
                .may_wait = true,
                .asks = true,
                .in_interval = true,
                .deadline_us = SECOND,
                .open = fake_open,
                .collect = waiting_collect,
                .close = fake_close,
        };

        static const struct source_class cluster = {
                .id = SOURCE_CEPH,
                .may_wait = true,
                .deadline_us = 2 * SECOND,
                .open = fake_open,
                .collect = cluster_collect,
                .add_facts = cluster_add_facts,
                .close = fake_close,
        };

        static const struct source_class asking = {
                .id = SOURCE_OSD_HISTOGRAM,
                .asks = true,
                .open = fake_open,
                .collect = asking_collect,
                .proceed = asking_proceed,
                .close = fake_close,
        };
        static const struct source_class host = {
                .id = SOURCE_HOST,
                .may_wait = true,
                .open = fake_open,
                .collect = host_collect,
                .will_wait = host_will_wait,
                .close = fake_close,
        };
        static const struct source_class *const classes[SOURCE_MAX_] = {
                [SOURCE_DISKSTATS] = &quick,
                [SOURCE_OSD] = &waiting,
                [SOURCE_CEPH] = &cluster,
                [SOURCE_HOST] = &host,
                [SOURCE_OSD_HISTOGRAM] = &asking,
        };

        if (!classes[id])
                return -ENOENT;
        *ret = classes[id];
        return 0;
}

static struct moment look(void *userdata)
{
        (void)userdata;
        return (struct moment){world.realtime_us, world.monotonic_us};
}

static void on_row(void *userdata, const struct sampler_row *row)
{
        (void)userdata;
        world.rows++;
        if (row->source == SOURCE_CEPH)
                world.cluster_rows[row->instance]++;
        if (world.first_row_us == 0)
                world.first_row_us = row->sample->time_us;
        world.row_step_us = row->sample->time_us - world.last_row_us;
        world.last_row_us = row->sample->time_us;
        world.epoch = row->epoch;
}

struct bench {
        struct sampler *sampler;
        struct agent_counters counters;
        struct plan plan;
};

static int set_up(void **state)
{
        struct bench *bench = calloc(1, sizeof(*bench));
        struct sampler_options options = {
                .class_get = class_get,
                .clock = look,
                .row = on_row,
                .counters = &bench->counters,
        };

        memset(&world, 0, sizeof(world));
        sem_init(&world.gate, 0, 0);
        fixture_init(&world.fixture);
        world.realtime_us = INT64_C(1796040000) * SECOND + 123456;
        world.monotonic_us = 5000;
        options.allowed[SOURCE_DISKSTATS] = options.allowed[SOURCE_OSD] = true;
        options.allowed[SOURCE_HOST] = options.allowed[SOURCE_OSD_HISTOGRAM] = true;
        assert_int_equal(sampler_new(&options, &bench->sampler), 0);
        plan_init(&bench->plan);
        for (int id = 0; id < SOURCE_MAX_; id++)
                bench->plan.sources[id].enabled = false;
        bench->plan.revision = 1;
        bench->plan.sources[SOURCE_DISKSTATS].interval_us = SECOND;
        bench->plan.sources[SOURCE_OSD].interval_us = SECOND;
        *state = bench;
        return 0;
}

static int tear_down(void **state)
{
        struct bench *bench = *state;

        sem_post(&world.gate);
        assert_null(sampler_free(bench->sampler, 10 * SECOND));
        assert_int_equal(world.closes, world.open_result < 0 ? 0 : world.opens);
        plan_done(&bench->plan);
        free(bench);
        return 0;
}

static void apply(struct bench *bench, enum source_id id, bool enabled)
{
        bench->plan.sources[id].enabled = enabled;
        assert_int_equal(sampler_apply(bench->sampler, &bench->plan), 0);
}

static void pass(int64_t us)
{
        world.realtime_us += us;
        world.monotonic_us += (uint64_t)us;
}

/* Sleeps to the next look, as the loop does. */
static void sleep_and_run(struct bench *bench, uint64_t *next_us)
{
        if (*next_us != UINT64_MAX && *next_us > world.monotonic_us)
                pass((int64_t)(*next_us - world.monotonic_us));
        sampler_run(bench->sampler, next_us);
}

static void run(struct bench *bench, unsigned times)
{
        uint64_t next_us;

        sampler_run(bench->sampler, &next_us);
        for (unsigned i = 0; i < times; i++)
                sleep_and_run(bench, &next_us);
}

static void an_hour_at_a_second_has_3600_rows_on_whole_seconds(void **state)
{
        struct bench *bench = *state;

        world.cost_us = 300;
        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 3600);
        assert_int_equal(world.rows, 3600);
        assert_int_equal(world.last_row_us % SECOND, 0);
        assert_int_equal(world.row_step_us, SECOND);
        assert_int_equal(bench->counters.ticks, 3600);
        assert_int_equal(bench->counters.ticks_missed, 0);
        assert_int_equal(bench->counters.sample_time_us, 3600 * 300);
        assert_int_equal(world.opens, 1);
}

static void what_a_row_leaves_out_is_counted(void **state)
{
        struct bench *bench = *state;

        world.fixture.sample.failures = 2;
        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 3);
        assert_int_equal(world.rows, 3);
        assert_int_equal(bench->counters.failed_parts, 6);
        assert_int_equal(bench->counters.failures, 0);
}

static void time_with_other_programs_counts_as_socket_time(void **state)
{
        struct bench *bench = *state;
        struct pollfd done = {.fd = sampler_get_fd(bench->sampler), .events = POLLIN};
        uint64_t next_us;

        world.cost_us = 700;
        apply(bench, SOURCE_OSD, true);
        run(bench, 1);
        assert_int_equal(bench->counters.socket_time_us, 0);
        sem_post(&world.gate);
        assert_int_equal(poll(&done, 1, 10000), 1);
        sampler_run(bench->sampler, &next_us);
        assert_int_equal(world.rows, 1);
        assert_int_equal(bench->counters.socket_time_us, 700);
        assert_int_equal(bench->counters.sample_time_us, 0);
}

static void a_source_that_asks_ends_before_its_next_tick(void **state)
{
        static const struct {
                uint64_t interval_us, late_us, time_us;
        } cases[] = {
                {10 * SECOND, 0, SECOND}, /* its own deadline is the shorter one */
                {SECOND, 0, 800000}, {100000, 0, 80000}, {100000, 30000, 50000},
                {100000, 90000, 20000}, /* a fifth of the interval at least */
        };
        struct bench *bench = *state;
        struct pollfd done = {.fd = sampler_get_fd(bench->sampler), .events = POLLIN};
        uint64_t next_us;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                bench->plan.sources[SOURCE_OSD].interval_us = cases[i].interval_us;
                apply(bench, SOURCE_OSD, true);
                sampler_run(bench->sampler, &next_us);
                pass((int64_t)(next_us - world.monotonic_us + cases[i].late_us));
                sampler_run(bench->sampler, &next_us);
                sem_post(&world.gate);
                assert_int_equal(poll(&done, 1, 10000), 1);
                sampler_run(bench->sampler, &next_us);
                assert_int_equal(world.rows, i + 1);
                assert_int_equal(world.time_us, cases[i].time_us);
        }
}

static void a_pending_row_goes_on_without_a_thread(void **state)
{
        struct bench *bench = *state;
        struct pollfd done = {.fd = sampler_get_fd(bench->sampler), .events = POLLIN};
        uint64_t next_us, tick_us;

        world.pending_us = 8000;
        bench->plan.sources[SOURCE_OSD_HISTOGRAM].interval_us = SECOND;
        apply(bench, SOURCE_OSD_HISTOGRAM, true);
        run(bench, 1);
        tick_us = world.monotonic_us;
        for (unsigned looks = 1; looks <= 2; looks++) {
                sampler_run(bench->sampler, &next_us);
                assert_int_equal(next_us, tick_us + looks * 4000);
                assert_int_equal(world.rows, 0);
                sleep_and_run(bench, &next_us);
        }
        assert_int_equal(world.rows, 1);
        assert_int_equal(next_us, tick_us + SECOND);
        assert_int_equal(bench->counters.socket_time_us, 8000);
        assert_int_equal(bench->counters.skips, 0);
        assert_int_equal(poll(&done, 1, 0), 0);
}

static void a_pending_row_is_not_begun_anew_by_a_tick(void **state)
{
        struct bench *bench = *state;

        world.pending_us = 5 * SECOND / 2;
        bench->plan.sources[SOURCE_OSD_HISTOGRAM].interval_us = SECOND;
        apply(bench, SOURCE_OSD_HISTOGRAM, true);
        for (unsigned i = 0; i < 40 && world.rows < 2; i++)
                run(bench, 1);
        assert_int_equal(world.rows, 2);
        assert_int_equal(bench->counters.skips, 4);
        assert_int_equal(bench->counters.failures, 0);
        /* Switched off in the midst of a row. */
        run(bench, 1);
        apply(bench, SOURCE_OSD_HISTOGRAM, false);
        run(bench, 5);
        assert_int_equal(world.closes, 1);
        assert_int_equal(world.rows, 2);
}

static void a_thread_is_woken_only_for_what_may_wait(void **state)
{
        struct bench *bench = *state;
        struct pollfd done = {.fd = sampler_get_fd(bench->sampler), .events = POLLIN};
        uint64_t next_us;

        bench->plan.sources[SOURCE_HOST].interval_us = SECOND;
        apply(bench, SOURCE_HOST, true);
        sampler_run(bench->sampler, &next_us);
        for (unsigned i = 0; i < 6; i++) {
                /* To open it may always wait. */
                bool threaded = i == 0 || i == 3;

                world.will_wait = i == 3;
                sleep_and_run(bench, &next_us);
                assert_int_equal(poll(&done, 1, threaded ? 10000 : 0), threaded);
                assert_int_equal(pthread_equal(world.collector, pthread_self()) != 0, !threaded);
                if (threaded)
                        sampler_run(bench->sampler, &next_us);
                assert_int_equal(world.rows, i + 1);
        }
}

static void slept_over_ticks_are_counted(void **state)
{
        struct bench *bench = *state;

        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 5);
        pass(3 * SECOND + SECOND / 2);
        run(bench, 5);
        assert_int_equal(bench->counters.ticks_missed, 2);
        assert_int_equal(bench->counters.lateness_max_us, SECOND / 2);
        assert_int_equal(bench->counters.ticks, 11);
}

static void stops_at_the_count_and_begins_anew_with_another_revision(void **state)
{
        struct bench *bench = *state;
        uint64_t next_us;

        bench->plan.sources[SOURCE_DISKSTATS].count = 7;
        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 30);
        assert_int_equal(world.rows, 7);
        assert_int_equal(world.closes, 1);
        sampler_run(bench->sampler, &next_us);
        assert_int_equal(next_us, UINT64_MAX);
        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 30);
        assert_int_equal(world.rows, 7);
        bench->plan.revision++;
        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 30);
        assert_int_equal(world.rows, 14);
}

static void a_count_goes_on_after_a_restart(void **state)
{
        struct bench *bench = *state;

        bench->plan.sources[SOURCE_DISKSTATS].count = 7;
        apply(bench, SOURCE_DISKSTATS, true);
        sampler_set_taken(bench->sampler, SOURCE_DISKSTATS, 5);
        run(bench, 30);
        assert_int_equal(world.rows, 2);
        assert_int_equal(sampler_get_taken(bench->sampler, SOURCE_DISKSTATS), 7);
}

static void another_plan_costs_no_tick(void **state)
{
        struct bench *bench = *state;
        uint64_t epoch;

        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 10);
        epoch = world.epoch;
        for (int i = 0; i < 10; i++) {
                pass(SECOND / 2);
                bench->plan.revision++;
                apply(bench, SOURCE_DISKSTATS, true);
                run(bench, 1);
                assert_int_equal(world.row_step_us, SECOND);
        }
        assert_int_equal(world.rows, 20);
        /* Not even one that is due at this moment. */
        pass(SECOND + 1000);
        bench->plan.revision++;
        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 0);
        assert_int_equal(world.rows, 21);
        assert_int_equal(world.epoch, epoch);
        bench->plan.sources[SOURCE_DISKSTATS].interval_us = SECOND / 10;
        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 10);
        assert_int_equal(world.row_step_us, SECOND / 10);
        assert_int_not_equal(world.epoch, epoch);
        assert_int_equal(world.opens, 1);
}

static void a_clock_set_back_by_an_hour_goes_on_within_a_second(void **state)
{
        struct bench *bench = *state;

        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 10);
        world.realtime_us -= 3600ll * SECOND + 200000;
        run(bench, 2);
        assert_in_range(world.rows, 11, 12);
        assert_int_equal(world.last_row_us % SECOND, 0);
        assert_int_equal(bench->counters.ticks_missed, 0);
}

static void a_source_that_cannot_be_opened_is_tried_ever_less_often(void **state)
{
        struct bench *bench = *state;

        world.open_result = -ENOTSUP;
        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 600);
        assert_in_range(world.opens, 10, 20);
        assert_int_equal(world.rows, 0);
        assert_int_equal(bench->counters.failures, world.opens);
}

static void nothing_to_read_is_no_failure(void **state)
{
        struct bench *bench = *state;

        world.collect_result = -EAGAIN;
        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 5);
        assert_int_equal(bench->counters.failures, 0);
        world.collect_result = -EIO;
        run(bench, 5);
        assert_int_equal(bench->counters.failures, 5);
        assert_int_equal(world.rows, 0);
        assert_int_equal(world.opens, 1);
}

static void facts_are_asked_for_when_they_change_and_forgotten_with_the_source(void **state)
{
        struct bench *bench = *state;

        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 5);
        assert_int_equal(world.facts_calls, 1);
        assert_int_equal(sampler_get_facts_revision(bench->sampler), 1);
        assert_non_null(sampler_get_facts(bench->sampler, SOURCE_DISKSTATS, 0));
        world.facts_generation++;
        run(bench, 5);
        assert_int_equal(world.facts_calls, 2);
        apply(bench, SOURCE_DISKSTATS, false);
        run(bench, 1);
        assert_int_equal(world.closes, 1);
        assert_null(sampler_get_facts(bench->sampler, SOURCE_DISKSTATS, 0));
        assert_int_equal(sampler_get_facts_revision(bench->sampler), 3);
}

static void a_source_that_is_not_allowed_here_is_not_run_whatever_the_plan_says(void **state)
{
        struct bench *bench = *state;

        apply(bench, SOURCE_CEPH, true);
        run(bench, 5);
        assert_int_equal(world.opens, 0);
}

static void wait_for_worker(struct bench *bench)
{
        struct pollfd wanted = {.fd = sampler_get_fd(bench->sampler), .events = POLLIN};

        assert_int_equal(poll(&wanted, 1, 10000), 1);
}

static void a_busy_source_is_skipped_not_queued(void **state)
{
        struct bench *bench = *state;
        uint64_t next_us;

        apply(bench, SOURCE_OSD, true);
        run(bench, 5);
        assert_int_equal(world.rows, 0);
        assert_int_equal(bench->counters.skips, 4);
        assert_int_equal(bench->counters.ticks, 5);
        sem_post(&world.gate);
        wait_for_worker(bench);
        sampler_run(bench->sampler, &next_us);
        assert_int_equal(world.rows, 1);
        assert_int_equal(world.collects, 1);
}

static void a_busy_source_does_not_hold_up_the_others(void **state)
{
        struct bench *bench = *state;

        apply(bench, SOURCE_OSD, true);
        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 100);
        assert_true(world.rows >= 49);
        assert_int_equal(world.row_step_us, SECOND);
}

static void a_source_switched_off_while_busy_is_closed_when_it_comes_back(void **state)
{
        struct bench *bench = *state;

        apply(bench, SOURCE_OSD, true);
        run(bench, 1);
        apply(bench, SOURCE_OSD, false);
        run(bench, 1);
        assert_int_equal(world.closes, 0);
        sem_post(&world.gate);
        wait_for_worker(bench);
        run(bench, 0);
        wait_for_worker(bench);
        run(bench, 0);
        assert_int_equal(world.closes, 1);
        assert_int_equal(world.rows, 0);
}

static void a_source_that_never_comes_back_does_not_hold_up_the_end(void **state)
{
        struct bench *bench = *state;

        apply(bench, SOURCE_OSD, true);
        run(bench, 1);
        assert_ptr_equal(sampler_free(bench->sampler, 100000), bench->sampler);
}

/* A sampler of two clusters in place of the bench's, elected for those given. */
static void begin_clusters(
        struct bench *bench, const struct ceph_clusters *clusters, uint8_t first, uint8_t second)
{
        struct sampler_options options = {
                .class_get = class_get,
                .clock = look,
                .row = on_row,
                .counters = &bench->counters,
                .clusters = clusters,
                .allowed = {[SOURCE_CEPH] = true, [SOURCE_DISKSTATS] = true},
        };

        assert_null(sampler_free(bench->sampler, SECOND));
        sem_init(&world.live, 0, 0);
        sem_init(&world.dead, 0, 0);
        assert_int_equal(sampler_new(&options, &bench->sampler), 0);
        bench->plan.sources[SOURCE_CEPH].interval_us = SECOND;
        bench->plan.n_clusters = 2;
        bench->plan.clusters[0] = (struct id){{first}};
        bench->plan.clusters[1] = (struct id){{second}};
        apply(bench, SOURCE_CEPH, true);
}

static void expect_clusters(struct bench *bench, const char *expected)
{
        char text[SAMPLER_CLUSTERS_TEXT];

        sampler_list_clusters(bench->sampler, text, sizeof(text));
        assert_string_equal(text, expected);
}

#define LIVE "01000000-0000-0000-0000-000000000000"
#define DEAD "02000000-0000-0000-0000-000000000000"

static void a_dead_cluster_delays_no_other(void **state)
{
        static char live[] = "live.conf", dead[] = "dead.conf", name[] = "client.strata";
        struct ceph_clusters clusters = {
                {{dead, name, name, {{2}}}, {live, name, name, {{1}}}}, .n = 2};
        struct bench *bench = *state;

        begin_clusters(bench, &clusters, 1, 2);
        run(bench, 1);
        for (int i = 0; i < 20; i++) {
                /* Nothing of the dead one comes back meanwhile. */
                sem_post(&world.live);
                wait_for_worker(bench);
                run(bench, 1);
                if (i == 0)
                        expect_clusters(bench, DEAD "," LIVE);
        }
        assert_int_equal(world.cluster_rows[1], 20);
        assert_int_equal(world.cluster_rows[0], 0);
        assert_int_equal(bench->counters.skips, 20);
        expect_clusters(bench, DEAD "!," LIVE); /* it is past its deadline */
        sem_post(&world.dead);
        sem_post(&world.live);
        sem_post(&world.live);
}

static void a_cluster_that_it_is_not_elected_for_is_left_alone(void **state)
{
        static char live[] = "live.conf", dead[] = "dead.conf", name[] = "client.strata";
        struct ceph_clusters clusters = {
                {{dead, name, name, {{2}}}, {live, name, name, {{1}}}}, .n = 2};
        struct bench *bench = *state;

        begin_clusters(bench, &clusters, 1, 1);
        for (int i = 0; i < 5; i++)
                sem_post(&world.live);
        run(bench, 1);
        wait_for_worker(bench);
        run(bench, 1);
        assert_int_equal(world.opens, 1);
        assert_int_equal(world.cluster_rows[0], 0);
        assert_true(world.cluster_rows[1] > 0);
}

static void nothing_is_kept_of_a_cluster_before_it_is_elected_by_name(void **state)
{
        static char live[] = "live.conf", name[] = "client.strata";
        struct ceph_clusters clusters = {{{live, name, name, {{0}}}}, .n = 1};
        struct bench *bench = *state;
        uint64_t facts_revision;

        begin_clusters(bench, &clusters, 0, 0);
        expect_clusters(bench, "unknown");
        for (int i = 0; i < 20; i++)
                sem_post(&world.live);
        for (int i = 0; i < 3; i++) {
                run(bench, 1);
                wait_for_worker(bench);
                run(bench, 0);
        }
        expect_clusters(bench, LIVE);
        assert_int_equal(world.rows, 0);
        assert_null(sampler_get_facts(bench->sampler, SOURCE_CEPH, 0));
        facts_revision = sampler_get_facts_revision(bench->sampler);
        bench->plan.clusters[0] = (struct id){{1}};
        bench->plan.revision++;
        apply(bench, SOURCE_CEPH, true);
        run(bench, 1);
        wait_for_worker(bench);
        run(bench, 0);
        assert_true(world.rows > 0);
        assert_non_null(sampler_get_facts(bench->sampler, SOURCE_CEPH, 0));
        assert_true(sampler_get_facts_revision(bench->sampler) > facts_revision);
        assert_int_equal(world.opens, 1);
}

static void two_configurations_of_one_cluster_are_sampled_once(void **state)
{
        static char first[] = "first.conf", second[] = "second.conf", name[] = "client.strata";
        struct ceph_clusters clusters = {
                {{first, name, name, {{1}}}, {second, name, name, {{0}}}}, .n = 2};
        struct bench *bench = *state;

        begin_clusters(bench, &clusters, 1, 0);
        /* It may always be the second one that is first, while the first one waits for a CPU. */
        for (int i = 0; i < 5000 && (i < 5 || world.cluster_rows[0] == 0); i++) {
                sem_post(&world.live);
                sem_post(&world.live);
                run(bench, 1);
                wait_for_worker(bench);
                run(bench, 0);
                poll(NULL, 0, i < 5 ? 0 : 1);
        }
        assert_true(world.cluster_rows[0] > 0);
        assert_int_equal(world.cluster_rows[1], 0);
}

/* Each plan changes something else, also of the source that is watched. */
static void a_hundred_plans_at_a_tenth_of_a_second_cost_no_tick(void **state)
{
        struct bench *bench = *state;
        struct plan_source *disk = &bench->plan.sources[SOURCE_DISKSTATS];
        static uint16_t metrics[] = {METRIC_DISK_READ_OPS};

        disk->interval_us = SECOND / 10;
        apply(bench, SOURCE_DISKSTATS, true);
        run(bench, 10);
        for (int i = 0; i < 100; i++) {
                /* Just before a tick, just after it, and while it is due. */
                pass(i % 3 == 0 ? SECOND / 10 + 1000 : i % 3 == 1 ? SECOND / 10 - 1 : 1);
                bench->plan.revision++;
                disk->metrics = metrics;
                disk->n_metrics = i % 2;
                disk->count = i % 5 == 0 ? 1000 : 0;
                disk->start_us = i % 4 == 0 ? world.realtime_us - SECOND : 0;
                bench->plan.sources[SOURCE_OSD].interval_us = (uint64_t)(1 + i) * SECOND;
                apply(bench, SOURCE_DISKSTATS, true);
                run(bench, 1);
        }
        disk->metrics = NULL;
        disk->n_metrics = 0;
        assert_int_equal(bench->counters.ticks_missed, 0);
        assert_int_equal(world.rows,
                world.last_row_us / (SECOND / 10) - world.first_row_us / (SECOND / 10) + 1);
        assert_true(world.rows >= 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(an_hour_at_a_second_has_3600_rows_on_whole_seconds),
                TEST(what_a_row_leaves_out_is_counted),
                TEST(time_with_other_programs_counts_as_socket_time),
                TEST(a_source_that_asks_ends_before_its_next_tick),
                TEST(a_pending_row_goes_on_without_a_thread),
                TEST(a_pending_row_is_not_begun_anew_by_a_tick),
                TEST(a_thread_is_woken_only_for_what_may_wait),
                TEST(slept_over_ticks_are_counted),
                TEST(stops_at_the_count_and_begins_anew_with_another_revision),
                TEST(a_count_goes_on_after_a_restart),
                TEST(another_plan_costs_no_tick),
                TEST(a_clock_set_back_by_an_hour_goes_on_within_a_second),
                TEST(a_source_that_cannot_be_opened_is_tried_ever_less_often),
                TEST(nothing_to_read_is_no_failure),
                TEST(facts_are_asked_for_when_they_change_and_forgotten_with_the_source),
                TEST(a_dead_cluster_delays_no_other),
                TEST(a_cluster_that_it_is_not_elected_for_is_left_alone),
                TEST(nothing_is_kept_of_a_cluster_before_it_is_elected_by_name),
                TEST(two_configurations_of_one_cluster_are_sampled_once),
                TEST(a_hundred_plans_at_a_tenth_of_a_second_cost_no_tick),
                TEST(a_source_that_is_not_allowed_here_is_not_run_whatever_the_plan_says),
                TEST(a_busy_source_is_skipped_not_queued),
                TEST(a_busy_source_does_not_hold_up_the_others),
                TEST(a_source_switched_off_while_busy_is_closed_when_it_comes_back),
                TEST(a_source_that_never_comes_back_does_not_hold_up_the_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
