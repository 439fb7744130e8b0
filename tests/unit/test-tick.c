#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "agentd/tick.h"

#define SECOND 1000000

static const int64_t noon = INT64_C(1796040000) * SECOND + 123456;

static struct moment at(int64_t realtime_us, uint64_t monotonic_us)
{
        return (struct moment){.realtime_us = realtime_us, .monotonic_us = monotonic_us};
}

static void ticks_stand_on_multiples_of_the_interval_since_the_epoch(void **state)
{
        static const uint64_t intervals[] = {100000, SECOND, 5 * SECOND, 3600ull * SECOND};
        struct tick tick;

        (void)state;
        for (size_t i = 0; i < 4; i++) {
                tick_start(&tick, intervals[i], 0, at(noon, 777));
                assert_int_equal(tick.due_us % (int64_t)intervals[i], 0);
                assert_in_range(tick.due_us - noon, 1, intervals[i]);
                assert_int_equal(tick_due_monotonic(&tick), 777 + (tick.due_us - noon));
        }
}

static void a_start_in_the_future_is_waited_for_and_is_a_tick_itself(void **state)
{
        int64_t start = (noon / SECOND + 60) * SECOND;
        uint64_t missed, late;
        struct tick tick;

        (void)state;
        tick_start(&tick, SECOND, start, at(noon, 0));
        assert_int_equal(tick.due_us, start);
        tick_start(&tick, SECOND, start - 1, at(noon, 0));
        assert_int_equal(tick.due_us, start);
        /* A clock that is set does not make it begin earlier. */
        assert_int_equal(tick_look(&tick, at(noon - 10 * SECOND, 1), &missed, &late), TICK_JUMP);
        assert_int_equal(tick.due_us, start);
}

static void a_day_of_seconds_has_86400_ticks(void **state)
{
        uint64_t missed, late, ticks = 0;
        struct tick tick;
        int64_t realtime;

        (void)state;
        tick_start(&tick, SECOND, 0, at(noon, 0));
        while (ticks < 86400) {
                /* The timer comes 50 us after its time. */
                realtime = noon + (int64_t)tick_due_monotonic(&tick) + 50;
                assert_int_equal(tick_look(&tick, at(realtime, tick_due_monotonic(&tick) + 50),
                                         &missed, &late),
                        TICK_SAMPLE);
                assert_int_equal(missed, 0);
                assert_int_equal(late, 50);
                ticks++;
        }
        assert_int_equal(tick.due_us, (noon / SECOND + 86401) * SECOND);
}

static void ticks_taken_and_missed_add_up_whatever_the_lateness(void **state)
{
        uint64_t missed, late, sum = 0, monotonic = 0;
        unsigned seed = (unsigned)time(NULL);
        struct tick tick;
        int64_t first;

        (void)state;
        print_message("# seed %u\n", seed);
        srandom(seed);
        tick_start(&tick, SECOND, 0, at(noon, 0));
        first = tick.due_us;
        for (int i = 0; i < 20000; i++) {
                monotonic = tick_due_monotonic(&tick);
                monotonic += (uint64_t)random() % (i % 50 ? 900000 : 5 * SECOND);
                assert_int_equal(
                        tick_look(&tick, at(noon + (int64_t)monotonic, monotonic), &missed, &late),
                        TICK_SAMPLE);
                assert_in_range(late, 0, SECOND - 1);
                sum += 1 + missed;
                assert_int_equal((tick.due_us - first) / SECOND, sum);
        }
}

static void an_early_look_waits(void **state)
{
        uint64_t missed, late;
        struct tick tick;

        (void)state;
        tick_start(&tick, SECOND, 0, at(noon, 0));
        assert_int_equal(tick_look(&tick, at(noon + 10, 10), &missed, &late), TICK_WAIT);
}

static void a_slewed_clock_keeps_its_ticks(void **state)
{
        uint64_t missed, late, monotonic = 0;
        int64_t realtime = noon;
        struct tick tick;

        (void)state;
        tick_start(&tick, 3600ull * SECOND, 0, at(realtime, monotonic));
        /* 500 ppm slow: at the time first computed it is 1.8 s too early. */
        monotonic = tick_due_monotonic(&tick);
        realtime = noon + (int64_t)(monotonic - monotonic / 2000);
        assert_int_equal(tick_look(&tick, at(realtime, monotonic), &missed, &late), TICK_WAIT);
        realtime += (int64_t)(tick_due_monotonic(&tick) - monotonic);
        monotonic = tick_due_monotonic(&tick);
        assert_int_equal(tick_look(&tick, at(realtime, monotonic), &missed, &late), TICK_SAMPLE);
        assert_int_equal(missed, 0);
        assert_int_equal(late, 0);
}

static void a_clock_set_forward_misses_nothing(void **state)
{
        uint64_t missed, late, monotonic;
        struct tick tick;

        (void)state;
        tick_start(&tick, SECOND, 0, at(noon, 0));
        monotonic = tick_due_monotonic(&tick);
        assert_int_equal(
                tick_look(&tick, at(noon + 7200ll * SECOND, monotonic), &missed, &late), TICK_JUMP);
        assert_int_equal(missed, 0);
        assert_in_range(tick_due_monotonic(&tick), monotonic + 1, monotonic + SECOND);
        assert_int_equal(tick.due_us % SECOND, 0);
}

static void a_clock_set_back_does_not_stop_the_ticks(void **state)
{
        uint64_t missed, late, monotonic;
        struct tick tick;

        (void)state;
        tick_start(&tick, SECOND, 0, at(noon, 0));
        monotonic = tick_due_monotonic(&tick);
        assert_int_equal(
                tick_look(&tick, at(noon - 7200ll * SECOND, monotonic), &missed, &late), TICK_JUMP);
        assert_in_range(tick_due_monotonic(&tick), monotonic + 1, monotonic + SECOND);
}

static void a_clock_set_by_a_fraction_goes_on_with_the_next_tick(void **state)
{
        uint64_t missed, late;
        struct tick tick;
        int64_t due;

        (void)state;
        tick_start(&tick, SECOND, 0, at(noon, 0));
        due = tick.due_us;
        assert_int_equal(tick_look(&tick, at(noon - 100000, 10), &missed, &late), TICK_WAIT);
        assert_int_equal(tick.due_us, due);
        assert_int_equal(tick_due_monotonic(&tick), 10 + (due - (noon - 100000)));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ticks_stand_on_multiples_of_the_interval_since_the_epoch),
                cmocka_unit_test(a_start_in_the_future_is_waited_for_and_is_a_tick_itself),
                cmocka_unit_test(a_day_of_seconds_has_86400_ticks),
                cmocka_unit_test(ticks_taken_and_missed_add_up_whatever_the_lateness),
                cmocka_unit_test(an_early_look_waits),
                cmocka_unit_test(a_slewed_clock_keeps_its_ticks),
                cmocka_unit_test(a_clock_set_forward_misses_nothing),
                cmocka_unit_test(a_clock_set_back_does_not_stop_the_ticks),
                cmocka_unit_test(a_clock_set_by_a_fraction_goes_on_with_the_next_tick),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
