#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cli/format.h"
#include "cli/table.h"
#include "cli/window.h"

struct number_case {
        double value;
        const char *text;
};

static void check(char *(*format)(double, char *), const struct number_case *cases, size_t n)
{
        char text[FORMAT_MAX];

        for (size_t i = 0; i < n; i++) {
                assert_ptr_equal(format(cases[i].value, text), text);
                assert_string_equal(text, cases[i].text);
        }
        assert_string_equal(format(NAN, text), "-");
        assert_string_equal(format(INFINITY, text), "-");
}

#define CHECK(format, ...)                                                                         \
        do {                                                                                       \
                static const struct number_case cases[] = {__VA_ARGS__};                           \
                check(format, cases, sizeof(cases) / sizeof(cases[0]));                            \
        } while (0)

static void bytes_have_three_digits_and_an_iec_unit(void **state)
{
        (void)state;
        CHECK(format_bytes, {0, "0 B"}, {0.4, "0 B"}, {512, "512 B"}, {1023.4, "1023 B"},
                {1023.6, "1.00 KiB"}, {1024, "1.00 KiB"}, {16384, "16.0 KiB"},
                {1047000, "1022 KiB"}, {1048576, "1.00 MiB"}, {1.3e9, "1.21 GiB"},
                {4.1e12, "3.73 TiB"}, {1e30, "867361737988 EiB"}, {-2048, "-2.00 KiB"});
}

static void byte_rates_are_bytes_per_second(void **state)
{
        char text[FORMAT_MAX];

        (void)state;
        CHECK(format_byte_rate, {0, "0 B/s"}, {1048576, "1.00 MiB/s"});
        /* What an answer may hold, however wrong. */
        assert_int_equal(strlen(format_byte_rate(1e300, text)), FORMAT_MAX - 1);
}

static void counts_have_three_digits_and_an_si_prefix(void **state)
{
        (void)state;
        CHECK(format_count, {0, "0"}, {0.25, "0.25"}, {7, "7"}, {950, "950"}, {999.4, "999"},
                {999.6, "1.00 k"}, {1290, "1.29 k"}, {12340, "12.3 k"}, {1.5e6, "1.50 M"});
}

static void factors_keep_the_digits_that_matter(void **state)
{
        (void)state;
        CHECK(format_factor, {0, "0.00"}, {1, "1.00"}, {6.39, "6.39"}, {0.15625, "0.156"},
                {0.00123, "0.0012"}, {0.0376, "0.038"}, {99.994, "99.99"}, {99.996, "100"},
                {120.4, "120"});
}

static void shares_are_per_cent(void **state)
{
        (void)state;
        CHECK(format_percent, {0, "0.0 %"}, {0.001, "0.1 %"}, {0.0999, "10.0 %"}, {0.5, "50 %"},
                {1, "100 %"}, {-0.004, "-0.4 %"});
}

static void ages_use_the_units_of_a_conversation(void **state)
{
        (void)state;
        CHECK(format_age, {-3, "0.0 s"}, {0.44, "0.4 s"}, {9.9, "9.9 s"}, {9.96, "10 s"},
                {119, "119 s"}, {120, "2 min"}, {7199, "119 min"}, {12000, "3 h 20 min"},
                {172800, "2 d 0 h"}, {360000, "4 d 4 h"});
}

static void latencies_are_milliseconds_up_to_a_second(void **state)
{
        char text[FORMAT_MAX];

        (void)state;
        assert_string_equal(format_latency(0.00036, false, text), "0.36 ms");
        assert_string_equal(format_latency(0.00036, true, text), "+0.36 ms");
        assert_string_equal(format_latency(-0.0123, true, text), "-12.3 ms");
        assert_string_equal(format_latency(0, true, text), "0.00 ms");
        assert_string_equal(format_latency(1.2, false, text), "1.20 s");
        assert_string_equal(format_latency(NAN, true, text), "-");
}

static void times_are_rfc_3339_in_the_local_zone(void **state)
{
        char text[FORMAT_MAX];

        (void)state;
        setenv("TZ", "CET-1", 1);
        tzset();
        assert_string_equal(format_time(1796034770.9, text), "2026-11-30T11:32:50+01:00");
        setenv("TZ", "NST3:30", 1);
        tzset();
        assert_string_equal(format_time(1796034770, text), "2026-11-30T07:02:50-03:30");
        assert_string_equal(format_time(1e300, text), "-");
        assert_string_equal(format_time(NAN, text), "-");
}

static void a_sparkline_spans_from_the_smallest_to_the_largest(void **state)
{
        static const double values[] = {1, 2, NAN, 8, 4.5};
        static const double level[] = {3, 3};
        char *line;

        (void)state;
        line = format_sparkline(values, 5, true);
        assert_string_equal(line, "▁▂ █▅");
        free(line);
        line = format_sparkline(values, 5, false);
        assert_string_equal(line, "_. #=");
        free(line);
        line = format_sparkline(level, 2, false);
        assert_string_equal(line, "==");
        free(line);
        line = format_sparkline(NULL, 0, true);
        assert_string_equal(line, "");
        free(line);
}

static void steps_are_round_and_give_at_most_twenty_rows(void **state)
{
        (void)state;
        assert_int_equal(window_choose_step(1), 10000000);
        assert_int_equal(window_choose_step(200000000), 10000000);
        assert_int_equal(window_choose_step(200000001), 15000000);
        assert_int_equal(window_choose_step(900000000), 60000000);
        assert_int_equal(window_choose_step(UINT64_MAX), 604800000000);
}

/* The table as text; the caller frees. */
static char *printed(struct table *table, bool colour)
{
        struct output output = {.colour = colour, .utf8 = true};

        output.stream = open_memstream(&output.text, &output.size);
        assert_non_null(output.stream);
        assert_int_equal(table_print(table, &output), 0);
        fclose(output.stream);
        return output.text;
}

static void a_table_is_aligned_by_what_is_seen(void **state)
{
        static const struct table_column columns[] = {{"NAME"}, {"SIZE", true}, {"NOTE"}, {NULL}};
        CLEANUP(table) struct table *table = NULL;
        CLEANUP(str) char *text = NULL;
        CLEANUP(str) char *coloured = NULL;

        (void)state;
        assert_int_equal(table_new(columns, &table), 0);
        table_add(table, COLOUR_NONE, "nöde");
        table_add(table, COLOUR_BAD, "%d", 1234567);
        table_add(table, COLOUR_NONE, "x");
        table_add(table, COLOUR_NONE, "日本");
        table_add(table, COLOUR_NONE, "1");
        table_add(table, COLOUR_NONE, "%s", "");
        /* A row that is not full. */
        table_add(table, COLOUR_NONE, "last");
        text = printed(table, false);
        assert_string_equal(text, "NAME     SIZE  NOTE\n"
                                  "nöde  1234567  x\n"
                                  "日本        1\n"
                                  "last\n");
        coloured = printed(table, true);
        assert_non_null(strstr(coloured, "\nnöde  \033[1;31m1234567\033[0m  x\n"));
}

static void a_table_grows(void **state)
{
        static const struct table_column columns[] = {{"N", true}, {NULL}};
        CLEANUP(table) struct table *table = NULL;
        CLEANUP(str) char *text = NULL;

        (void)state;
        assert_int_equal(table_new(columns, &table), 0);
        for (int i = 0; i < 1000; i++)
                table_add(table, COLOUR_NONE, "%d", i);
        text = printed(table, false);
        assert_int_equal(strlen(text), 1001 * 4);
        assert_null(table_free(NULL));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(bytes_have_three_digits_and_an_iec_unit),
                cmocka_unit_test(byte_rates_are_bytes_per_second),
                cmocka_unit_test(counts_have_three_digits_and_an_si_prefix),
                cmocka_unit_test(factors_keep_the_digits_that_matter),
                cmocka_unit_test(shares_are_per_cent),
                cmocka_unit_test(ages_use_the_units_of_a_conversation),
                cmocka_unit_test(latencies_are_milliseconds_up_to_a_second),
                cmocka_unit_test(times_are_rfc_3339_in_the_local_zone),
                cmocka_unit_test(a_sparkline_spans_from_the_smallest_to_the_largest),
                cmocka_unit_test(steps_are_round_and_give_at_most_twenty_rows),
                cmocka_unit_test(a_table_is_aligned_by_what_is_seen),
                cmocka_unit_test(a_table_grows),
        };

        setlocale(LC_CTYPE, "C.UTF-8");
        return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
