#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "collectord/expected.h"
#include "collectord/ratio.h"

#define MIB (1024.0 * 1024)

static void assert_close(double a, double b)
{
        if (!(fabs(a - b) < 1e-9 * (1 + fabs(b))))
                fail_msg("%.12g is not %.12g", a, b);
}

/* 100 MiB asked, 640 MiB written in ten seconds at three copies: all is well but the excess. */
static struct ratio_input usual(void)
{
        return (struct ratio_input){
                .upper = {.layer = LAYER_FILESYSTEM, .sum = 100 * MIB, .seen = 1, .expected = 1},
                .lower = {.layer = LAYER_STORAGE, .sum = 640 * MIB, .seen = 3, .expected = 3},
                .seconds = 10,
                .expected = 3,
                .noise = {NAN, NAN, NAN, NAN},
        };
}

static struct ratio_point compute(struct ratio_input input)
{
        struct ratio_point point;

        ratio_compute(&input, &point);
        return point;
}

static const char *detail(struct ratio_input input)
{
        static char text[RATIO_DETAIL_MAX];
        struct ratio_point point = compute(input);

        return ratio_detail(&input, point.state, text, sizeof(text)) ? text : "";
}

static void divides_the_layers(void **state)
{
        struct ratio_point point = compute(usual());
        (void)state;

        assert_int_equal(point.state, RUNG_OK);
        assert_close(point.upper, 10 * MIB);
        assert_close(point.lower, 64 * MIB);
        assert_close(point.ratio, 100.0 / 640);
        assert_close(point.amplification, 6.4);
        assert_close(point.excess, 6.4 / 3);
        assert_string_equal(detail(usual()), "");
}

static void idle_gives_no_number_however_much_the_devices_wrote(void **state)
{
        struct ratio_input input = usual();
        struct ratio_point point;
        (void)state;

        /* One mouse click over a minute: 4 KiB asked, 9 MiB of RocksDB's own writes. */
        input.seconds = 60;
        input.upper.sum = 4096;
        input.lower.sum = 9 * MIB;
        point = compute(input);
        assert_int_equal(point.state, RUNG_IDLE);
        assert_true(isnan(point.ratio));
        assert_true(isnan(point.amplification));
        assert_true(isnan(point.excess));
        assert_close(point.lower, 9 * MIB / 60);
        assert_string_equal(detail(input), "Too little moved in the filesystem layer for a ratio.");
}

static void the_floor_is_a_mebibyte_or_sixteen_kibibytes_a_second(void **state)
{
        (void)state;
        assert_true(ratio_is_idle(MIB - 1, 3600, RATIO_BYTES));
        assert_false(ratio_is_idle(MIB, 3600, RATIO_BYTES));
        assert_true(ratio_is_idle(16 * 1024 - 1, 1, RATIO_BYTES));
        assert_false(ratio_is_idle(16 * 1024, 1, RATIO_BYTES));
        assert_true(ratio_is_idle(99, 60, RATIO_OPS));
        assert_false(ratio_is_idle(100, 60, RATIO_OPS));
        assert_false(ratio_is_idle(10, 1, RATIO_OPS));
}

static void nothing_known_is_a_gap_and_not_zero(void **state)
{
        struct ratio_input input = usual();
        struct ratio_point point;
        (void)state;

        input.lower.seen = 0;
        input.lower.sum = NAN;
        point = compute(input);
        assert_int_equal(point.state, RUNG_GAP);
        assert_true(isnan(point.lower));
        assert_true(isnan(point.ratio));
        assert_close(point.upper, 10 * MIB);
        assert_string_equal(detail(input), "No samples of the storage layer cover this window.");

        input.upper.seen = 0;
        input.upper.sum = 0; /* even if someone left a zero behind */
        assert_true(isnan(compute(input).upper));
}

static void missing_entities_make_it_partial_with_how_many(void **state)
{
        struct ratio_input input = usual();
        (void)state;

        input.lower.expected = 12;
        input.lower.seen = 10;
        assert_int_equal(compute(input).state, RUNG_PARTIAL);
        assert_close(compute(input).amplification, 6.4);
        assert_string_equal(detail(input), "2 of 12 devices did not answer.");
}

static void the_worst_state_wins(void **state)
{
        struct ratio_input input = usual();
        (void)state;

        input.upper.lagging = true;
        assert_int_equal(compute(input).state, RUNG_SHORT);
        input.noise.recovered_bytes = 4096;
        assert_int_equal(compute(input).state, RUNG_CONTAMINATED);
        input.lower.expected = 4;
        assert_int_equal(compute(input).state, RUNG_PARTIAL);
        input.lower.reset = 1;
        assert_int_equal(compute(input).state, RUNG_RESET);
        input.upper.sum = 1;
        assert_int_equal(compute(input).state, RUNG_IDLE);
        input.lower.sum = NAN;
        assert_int_equal(compute(input).state, RUNG_GAP);
}

static void contamination_says_with_how_many_bytes(void **state)
{
        struct ratio_input input = usual();
        (void)state;

        input.noise.recovered_bytes = 5000000;
        assert_string_equal(detail(input), "Recovery or backfill moved 5000000 bytes.");
        input.noise.recovered_bytes = 0;
        input.noise.pgs_snaptrim = 0.5;
        assert_int_equal(compute(input).state, RUNG_CONTAMINATED);
}

static void a_scrub_disturbs_reads_only(void **state)
{
        struct ratio_input input = usual();
        (void)state;

        input.noise.pgs_scrubbing = 2;
        assert_int_equal(compute(input).state, RUNG_OK);
        input.direction = RATIO_READ;
        assert_int_equal(compute(input).state, RUNG_CONTAMINATED);
}

static void recovery_does_not_disturb_what_the_osds_count_apart(void **state)
{
        struct ratio_input input = usual();
        (void)state;

        input.lower.layer = LAYER_OSD;
        input.noise.recovered_bytes = 5000000;
        assert_int_equal(compute(input).state, RUNG_OK);
}

static void reads_from_a_cache_have_an_amplification_of_0_and_no_ratio(void **state)
{
        struct ratio_input input = usual();
        struct ratio_point point;
        (void)state;

        input.direction = RATIO_READ;
        input.expected = 1;
        input.lower.sum = 0;
        point = compute(input);
        assert_int_equal(point.state, RUNG_OK);
        assert_true(isnan(point.ratio));
        assert_close(point.amplification, 0);
}

static void an_amplification_below_the_expected_one_is_legal(void **state)
{
        struct ratio_input input = usual();
        (void)state;

        input.lower.sum = 50 * MIB; /* compressed */
        assert_close(compute(input).amplification, 0.5);
        assert_int_equal(compute(input).state, RUNG_OK);
}

static void expected_is_copies_or_shards(void **state)
{
        struct facts_pool replicated = {.size = 3},
                          erasure = {.erasure = true, .size = 3, .k = 2, .m = 1};
        struct facts_pool unknown = {.erasure = true, .size = 3};
        (void)state;

        assert_close(expected_factor(&replicated), 3);
        assert_close(expected_factor(&erasure), 1.5);
        assert_true(isnan(expected_factor(&unknown)));
        assert_true(isnan(expected_factor(NULL)));
}

static void a_mix_of_pools_is_weighted_by_the_bytes_written(void **state)
{
        struct expected_pool pools[] = {
                {"a", 300, 3}, {"b", 100, 1.5}, {"c", 0, NAN}, {"d", NAN, NAN}};
        const char *unknown = "x";
        (void)state;

        assert_close(expected_write(pools, 4, &unknown), (300 * 3 + 100 * 1.5) / 400);
        assert_null(unknown);
        pools[2].bytes = 1;
        assert_true(isnan(expected_write(pools, 4, &unknown)));
        assert_string_equal(unknown, "c");
}

static void idle_pools_expect_what_they_have_in_common(void **state)
{
        struct expected_pool pools[] = {{"a", 0, 3}, {"b", 0, 3}};
        (void)state;

        assert_close(expected_write(pools, 2, NULL), 3);
        pools[1].factor = 2;
        assert_true(isnan(expected_write(pools, 2, NULL)));
        assert_true(isnan(expected_write(NULL, 0, NULL)));
}

static void only_what_crosses_the_redundancy_expects_more_than_one(void **state)
{
        (void)state;
        assert_close(expected_between(LAYER_FILESYSTEM, RATIO_WRITE, RATIO_BYTES, 3), 3);
        assert_close(expected_between(LAYER_OSD, RATIO_WRITE, RATIO_BYTES, 3), 1);
        assert_close(expected_between(LAYER_FILESYSTEM, RATIO_READ, RATIO_BYTES, 3), 1);
        assert_true(isnan(expected_between(LAYER_FILESYSTEM, RATIO_WRITE, RATIO_OPS, 3)));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(divides_the_layers),
                cmocka_unit_test(idle_gives_no_number_however_much_the_devices_wrote),
                cmocka_unit_test(the_floor_is_a_mebibyte_or_sixteen_kibibytes_a_second),
                cmocka_unit_test(nothing_known_is_a_gap_and_not_zero),
                cmocka_unit_test(missing_entities_make_it_partial_with_how_many),
                cmocka_unit_test(the_worst_state_wins),
                cmocka_unit_test(contamination_says_with_how_many_bytes),
                cmocka_unit_test(a_scrub_disturbs_reads_only),
                cmocka_unit_test(recovery_does_not_disturb_what_the_osds_count_apart),
                cmocka_unit_test(reads_from_a_cache_have_an_amplification_of_0_and_no_ratio),
                cmocka_unit_test(an_amplification_below_the_expected_one_is_legal),
                cmocka_unit_test(expected_is_copies_or_shards),
                cmocka_unit_test(a_mix_of_pools_is_weighted_by_the_bytes_written),
                cmocka_unit_test(idle_pools_expect_what_they_have_in_common),
                cmocka_unit_test(only_what_crosses_the_redundancy_expects_more_than_one),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
