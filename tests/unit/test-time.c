#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/config.h"
#include "lib/time.h"

#define NOW_US INT64_C(1796027570123456)
#define SECOND_US INT64_C(1000000)

static int64_t parsed(const char *text, bool expect_relative)
{
        bool relative = !expect_relative;
        int64_t us = -1;

        assert_int_equal(time_parse(text, NOW_US, &us, &relative), 0);
        assert_int_equal(relative, expect_relative);
        return us;
}

static void reads_rfc3339_with_zones_and_fractions(void **state)
{
        (void)state;
        assert_int_equal(parsed("1970-01-01T00:00:00Z", false), 0);
        assert_int_equal(parsed("2026-11-30T10:32:50Z", false), 1796034770 * SECOND_US);
        assert_int_equal(parsed("2026-11-30t10:32:50.25z", false), 1796034770250000);
        assert_int_equal(parsed("2026-11-30 11:32:50.1234567+01:00", false), 1796034770123456);
        assert_int_equal(parsed("2026-11-30T05:02:50-05:30", false), 1796034770 * SECOND_US);
        assert_int_equal(parsed("2024-02-29T00:00:00Z", false), 1709164800 * SECOND_US);
        /* A leap second is the second after. */
        assert_int_equal(parsed("2016-12-31T23:59:60Z", false), 1483228800 * SECOND_US);
}

static void reads_unix_seconds(void **state)
{
        (void)state;
        assert_int_equal(parsed("0", false), 0);
        assert_int_equal(parsed("1796027570", false), 1796027570 * SECOND_US);
        assert_int_equal(parsed("1796027570.5", false), 1796027570500000);
        assert_int_equal(parsed("1796027570.000001", false), 1796027570000001);
}

static void reads_times_relative_to_now(void **state)
{
        (void)state;
        assert_int_equal(parsed("now", true), NOW_US);
        assert_int_equal(parsed("-15m", true), NOW_US - 900 * SECOND_US);
        assert_int_equal(parsed("+5s", true), NOW_US + 5 * SECOND_US);
        assert_int_equal(parsed("now-1h", true), NOW_US - 3600 * SECOND_US);
        assert_int_equal(parsed("now+250ms", true), NOW_US + 250000);
        assert_int_equal(time_parse("now", NOW_US, &(int64_t){0}, NULL), 0);
}

static void refuses_what_is_not_a_time(void **state)
{
        static const char *const wrong[] = {"", " ", "-", "+", "now-", "nowhere", "now 1h", "-15",
                "-15x", "yesterday", "12.", "12.5.5", "12 ", "1e9", "0x10", ".5", "--5s",
                "2026-11-30", "2026-11-30T10:32", "2026-11-30T10:32:50", "2026-11-30T10:32:50.Z",
                "2026-11-30T10:32:50+1", "2026-11-30T10:32:50+01:60", "2026-11-30T10:32:50Zx",
                "2026-13-30T10:32:50Z", "2026-00-10T10:32:50Z", "2026-02-29T10:32:50Z",
                "2026-11-31T10:32:50Z", "2026-11-30T24:00:00Z", "2026-11-30T10:60:00Z",
                "2026-11-30T10:32:61Z", "2026-11-30X10:32:50Z", "10:32"};

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                int64_t us = 7;
                int r = time_parse(wrong[i], NOW_US, &us, NULL);

                if (r != -EINVAL)
                        print_error("'%s' gave %d\n", wrong[i], r);
                assert_int_equal(r, -EINVAL);
                assert_int_equal(us, 7);
        }
}

static void refuses_times_outside_its_range(void **state)
{
        static const char *const wrong[] = {"99999999999999999999", "9999999999", "-40000d",
                "now+100000d", "-18446744073709551615d", "1969-12-31T23:59:59Z",
                "9999-01-01T00:00:00Z"};

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                assert_int_equal(time_parse(wrong[i], NOW_US, &(int64_t){0}, NULL), -ERANGE);
}

static void reads_back_what_it_wrote(void **state)
{
        unsigned seed = 20261130;

        (void)state;
        for (int i = 0; i < 20000; i++) {
                int64_t us = ((int64_t)rand_r(&seed) << 31 | rand_r(&seed)) % TIME_MAX_US, back;
                char text[TIME_TEXT_MAX];

                if (i % 3 == 0)
                        us -= us % SECOND_US;
                assert_int_equal(time_parse(time_format_rfc3339(us, text), NOW_US, &back, NULL), 0);
                if (back != us)
                        print_error("seed 20261130, turn %d: %s\n", i, text);
                assert_int_equal(back, us);
        }
}

static void writes_a_fraction_only_when_there_is_one(void **state)
{
        char text[TIME_TEXT_MAX];

        (void)state;
        assert_string_equal(
                time_format_rfc3339(1796034770 * SECOND_US, text), "2026-11-30T10:32:50Z");
        assert_string_equal(
                time_format_rfc3339(1796034770250000, text), "2026-11-30T10:32:50.250Z");
        assert_string_equal(
                time_format_rfc3339(1796034770000007, text), "2026-11-30T10:32:50.000007Z");
        assert_string_equal(time_format_rfc3339(-1, text), "1969-12-31T23:59:59.999999Z");
        /* Whatever comes in, the buffer is never overrun. */
        time_format_rfc3339(INT64_MAX, text);
        time_format_rfc3339(INT64_MIN + 1000000, text);
}

static void writes_durations_in_the_longest_whole_unit(void **state)
{
        static const struct {
                uint64_t us;
                const char *text;
        } cases[] = {{0, "0s"}, {250, "250us"}, {500000, "500ms"}, {10000000, "10s"},
                {90000000, "90s"}, {300000000, "5m"}, {3600000000, "1h"}, {604800000000, "7d"}};

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char text[TIME_DURATION_MAX];
                uint64_t back;

                assert_string_equal(time_format_duration(cases[i].us, text), cases[i].text);
                assert_int_equal(config_parse_duration(text, &back), 0);
                assert_int_equal(back, cases[i].us);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_rfc3339_with_zones_and_fractions),
                cmocka_unit_test(reads_unix_seconds),
                cmocka_unit_test(reads_times_relative_to_now),
                cmocka_unit_test(refuses_what_is_not_a_time),
                cmocka_unit_test(refuses_times_outside_its_range),
                cmocka_unit_test(reads_back_what_it_wrote),
                cmocka_unit_test(writes_a_fraction_only_when_there_is_one),
                cmocka_unit_test(writes_durations_in_the_longest_whole_unit),
        };

        return cmocka_run_group_tests_name("time", tests, NULL, NULL);
}
