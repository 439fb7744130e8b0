/* What a cluster is good for: which windows tell of which use, and what is said of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "collectord/report.h"

#define SECONDS 10.0
#define N 8u
#define MIB 1048576.0

/* A steady load: @rate bytes/s of clients in requests of @size, @amplification on three devices,
 * each busy for @busy of the time. */
struct load {
        enum ratio_direction direction;
        double rate, size, amplification, expected, busy;
        double deferred, joined; /* shares: of the OSDs' writes, of the deferred ones */
};
static const struct load writes = {RATIO_WRITE, 10 * MIB, 16384, 6, 3, 0.9, 1, 0};

/* assert_float_equal takes NaN for equal to anything. */
static void must_be(double value, double wanted)
{
        if (!(fabs(value - wanted) <= 1e-9 * fmax(1, fabs(wanted))))
                fail_msg("%.12g is not %.12g", value, wanted);
}

static struct report_side quiet_side(void)
{
        return (struct report_side){.bytes = {.upper = 0,
                                            .lower = 0,
                                            .ratio = NAN,
                                            .amplification = NAN,
                                            .expected = 3,
                                            .excess = NAN,
                                            .state = RUNG_IDLE}};
}

static struct report_window make(const struct load *load)
{
        struct report_window window = {.sides = {quiet_side(), quiet_side()}, .devices = 3};
        struct report_side *side = &window.sides[load->direction];

        side->bytes = (struct ratio_point){
                .upper = load->rate,
                .lower = load->rate * load->amplification,
                .expected = load->expected,
                .state = RUNG_OK,
        };
        side->ops = load->rate * SECONDS / load->size;
        side->osd_bytes = load->rate * SECONDS * load->expected;
        side->osd_ops = side->ops * load->expected;
        side->device_ops = side->ops * load->amplification;
        side->merges = side->device_ops;
        window.busy_seconds = load->busy * SECONDS * 3;
        window.waiting_seconds = 4 * SECONDS;
        window.deferred_submitted = side->osd_ops * load->deferred;
        window.deferred_issued = window.deferred_submitted * (1 - load->joined);
        return window;
}

static void fill(struct report_window *windows, const struct load *load)
{
        for (uint32_t i = 0; i < N; i++)
                windows[i] = make(load);
}

static struct report *compute(const struct report_window *windows, struct report_input *input)
{
        struct report *report;

        *input = (struct report_input){.seconds = SECONDS, .windows = windows, .n = N};
        assert_int_equal(report_compute(input, &report), 0);
        return report;
}

static const struct report_use *use_of(const struct report *report, uint32_t window)
{
        assert_int_not_equal(report->use_of[window], REPORT_NONE);
        return &report->uses[report->use_of[window]];
}

static void share_is_the_ratio_times_what_is_used(void **state)
{
        struct report_window windows[N];
        struct report_input input;
        CLEANUP(report) struct report *report = NULL;
        const struct report_use *use;

        (void)state;
        fill(windows, &writes);
        windows[4].sides[RATIO_WRITE].bytes.lower *= 1.25; /* the devices' best window */
        report = compute(windows, &input);
        use = use_of(report, 3);
        assert_int_equal(use->size, REPORT_16K);
        assert_int_equal(use->order, REPORT_RANDOM);
        assert_int_equal(use->ability, REPORT_SEEN);
        must_be(use->ability_bytes, 75 * MIB);
        must_be(use->share, 10.0 / 75);
        must_be(use->share, use->used / use->amplification);
        must_be(use->excess, use->amplification / 3);
        assert_int_equal(use->grade, REPORT_IS_FAIR); /* excess 2.08 */
}

static void the_first_and_last_window_of_a_load_are_left_out(void **state)
{
        struct report_window windows[N];
        struct report_input input;
        struct load other = writes;
        CLEANUP(report) struct report *report = NULL;

        (void)state;
        other.size = 1 << 20;
        fill(windows, &writes);
        for (uint32_t i = 4; i < N; i++)
                windows[i] = make(&other);
        report = compute(windows, &input);
        assert_int_equal(report->fates[REPORT_USED], 4);
        assert_int_equal(report->fates[REPORT_EDGE], 4);
        assert_int_equal(report->use_of[3], REPORT_NONE);
        assert_int_equal(report->use_of[4], REPORT_NONE);
        assert_int_equal(use_of(report, 2)->windows, 2);
        assert_int_equal(use_of(report, 5)->size, REPORT_1M);
}

/* Pool totals come late: a load that is over at the devices goes on for a while at the clients. */
static void a_window_whose_neighbours_have_other_rates_is_left_out(void **state)
{
        struct report_window windows[N];
        struct report_input input;
        CLEANUP(report) struct report *report = NULL;

        (void)state;
        fill(windows, &writes);
        windows[5].sides[RATIO_WRITE].bytes.lower /= 3;
        windows[1].sides[RATIO_WRITE].bytes.upper /= 3;
        report = compute(windows, &input);
        assert_int_equal(report->use_of[0], REPORT_NONE);
        assert_int_equal(report->use_of[2], REPORT_NONE);
        assert_int_not_equal(report->use_of[3], REPORT_NONE);
        assert_int_equal(report->use_of[4], REPORT_NONE);
        assert_int_equal(report->use_of[6], REPORT_NONE);
        assert_int_equal(report->fates[REPORT_USED], 1);
}

static void what_cannot_be_divided_is_counted_by_its_reason(void **state)
{
        struct report_window windows[N];
        struct report_input input;
        const struct load reads = {RATIO_READ, 2 * MIB, 4096, 1, 1, 0.5, 0, 0};
        CLEANUP(report) struct report *report = NULL;

        (void)state;
        fill(windows, &writes);
        windows[1].sides[RATIO_WRITE].bytes.state = RUNG_IDLE;
        windows[2].sides[RATIO_WRITE].bytes.state = RUNG_PARTIAL;
        windows[3].sides[RATIO_WRITE].bytes.state = RUNG_CONTAMINATED;
        windows[4].sides[RATIO_READ] = make(&reads).sides[RATIO_READ];
        windows[5].sides[RATIO_WRITE].bytes.upper = NAN;
        windows[5].sides[RATIO_WRITE].bytes.state = RUNG_GAP;
        report = compute(windows, &input);
        assert_int_equal(report->fates[REPORT_IDLE], 1);
        assert_int_equal(report->fates[REPORT_INCOMPLETE], 2);
        assert_int_equal(report->fates[REPORT_DISTURBED], 1);
        assert_int_equal(report->fates[REPORT_MIXED], 1);
        assert_int_equal(report->fates[REPORT_USED], 0);
}

/* Many small reads beside few large writes: bytes alone would call it writing. */
static void operations_of_the_other_direction_make_a_window_mixed(void **state)
{
        struct report_window windows[N];
        struct report_input input;
        const struct load reads = {RATIO_READ, 0.5 * MIB, 4096, 1, 1, 0.5, 0, 0};
        struct load large = writes;
        CLEANUP(report) struct report *report = NULL;

        (void)state;
        large.size = 4 << 20;
        fill(windows, &large);
        for (uint32_t i = 0; i < N; i++)
                windows[i].sides[RATIO_READ] = make(&reads).sides[RATIO_READ];
        report = compute(windows, &input);
        assert_int_equal(report->fates[REPORT_MIXED], N);
}

static void ability_is_estimated_below_80_and_unknown_below_20_percent_busy(void **state)
{
        static const struct {
                double busy;
                enum report_ability ability;
                double bytes;
        } cases[] = {{0.9, REPORT_SEEN, 60 * MIB}, {0.5, REPORT_ESTIMATED, 120 * MIB},
                {0.1, REPORT_UNKNOWN, NAN}};

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct report_window windows[N];
                struct report_input input;
                struct load load = writes;
                CLEANUP(report) struct report *report = NULL;
                const struct report_use *use;

                load.busy = cases[i].busy;
                fill(windows, &load);
                report = compute(windows, &input);
                report_describe(&input, report);
                use = use_of(report, 3);
                assert_int_equal(use->ability, cases[i].ability);
                if (isnan(cases[i].bytes)) {
                        assert_true(isnan(use->ability_bytes) && isnan(use->share));
                        assert_non_null(
                                strstr(use->detail, "not known, because they were only 10 % busy"));
                } else {
                        must_be(use->ability_bytes, cases[i].bytes);
                        assert_string_equal(use->detail, "");
                }
        }
}

/* A full window is a fact, and so is a higher rate in one that was not full: nothing is used more
 * than wholly. */
static void what_was_seen_comes_before_what_is_estimated(void **state)
{
        struct report_window windows[N];
        struct report_input input;
        struct load half = writes;
        CLEANUP(report) struct report *report = NULL;

        (void)state;
        half.busy = 0.5;
        half.rate = 12 * MIB;
        fill(windows, &half);
        windows[3] = make(&writes);
        report = compute(windows, &input);
        assert_int_equal(use_of(report, 3)->ability, REPORT_SEEN);
        must_be(use_of(report, 3)->ability_bytes, 72 * MIB);
        must_be(use_of(report, 3)->ability_utilisation, 0.9);
        assert_true(use_of(report, 3)->used <= 1);
}

static void an_estimate_is_never_below_what_was_done(void **state)
{
        struct report_window windows[N];
        struct report_input input;
        struct load half = writes;
        CLEANUP(report) struct report *report = NULL;

        (void)state;
        half.busy = 0.75;
        fill(windows, &half);
        windows[3].sides[RATIO_WRITE].bytes.lower *= 1.9;
        report = compute(windows, &input);
        assert_int_equal(use_of(report, 3)->ability, REPORT_ESTIMATED);
        must_be(use_of(report, 3)->ability_bytes, 114 * MIB);
}

static void order_is_told_by_deferred_writes_only(void **state)
{
        static const struct {
                double deferred, joined;
                enum report_order order;
        } cases[] = {{1, 0.98, REPORT_SEQUENTIAL}, {1, 0.01, REPORT_RANDOM},
                {1, 0.3, REPORT_ORDER_UNKNOWN}, {0.2, 0.98, REPORT_ORDER_UNKNOWN},
                {0, 0, REPORT_ORDER_UNKNOWN}};

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct report_window windows[N];
                struct report_input input;
                struct load load = writes;
                CLEANUP(report) struct report *report = NULL;

                load.deferred = cases[i].deferred;
                load.joined = cases[i].joined;
                fill(windows, &load);
                report = compute(windows, &input);
                assert_int_equal(use_of(report, 3)->order, cases[i].order);
        }
}

static void reads_are_sequential_only_where_the_device_read_larger_ones(void **state)
{
        struct report_window windows[N];
        struct report_input input;
        const struct load reads = {RATIO_READ, 20 * MIB, 65536, 1, 1, 0.5, 0, 0};
        CLEANUP(report) struct report *report = NULL;
        CLEANUP(report) struct report *joined = NULL;

        (void)state;
        fill(windows, &reads);
        report = compute(windows, &input);
        assert_int_equal(use_of(report, 3)->order, REPORT_ORDER_UNKNOWN);
        for (uint32_t i = 0; i < N; i++)
                windows[i].sides[RATIO_READ].device_ops /= 4;
        joined = compute(windows, &input);
        assert_int_equal(use_of(joined, 3)->order, REPORT_SEQUENTIAL);
}

static void sizes_have_their_bounds_at_the_geometric_means(void **state)
{
        (void)state;
        assert_int_equal(report_size_of(512), REPORT_4K);
        assert_int_equal(report_size_of(8191), REPORT_4K);
        assert_int_equal(report_size_of(8192), REPORT_16K);
        assert_int_equal(report_size_of(32768), REPORT_64K);
        assert_int_equal(report_size_of(262143), REPORT_64K);
        assert_int_equal(report_size_of(262144), REPORT_1M);
        assert_int_equal(report_size_of(2097152), REPORT_4M);
        assert_int_equal(report_size_of(1e9), REPORT_4M);
}

static void a_mean_that_hides_other_sizes_is_named(void **state)
{
        struct report_window windows[N];
        struct report_input input;
        CLEANUP(report) struct report *report = NULL;
        struct report_use *use;

        (void)state;
        fill(windows, &writes);
        report = compute(windows, &input);
        use = &report->uses[report->use_of[3]];
        report_add_cell(use, REPORT_16K, 3, 30);
        report_add_cell(use, REPORT_16K, 5, 10);
        report_add_cell(use, REPORT_4K, 3, 40);
        report_add_cell(use, REPORT_4M, 3, 20);
        report_add_cell(use, REPORT_4M, 3, NAN);
        input.histograms = true;
        report_describe(&input, report);
        must_be(use->in_class, 0.4);
        must_be(use->p50_s, 0.0008); /* the end of the fourth bucket */
        must_be(use->p99_s, 0.0032);
        assert_non_null(strstr(use->detail, "Only 40 % of the operations have this size"));
}

static void a_latency_in_the_open_bucket_has_no_number(void **state)
{
        struct report_window windows[N];
        struct report_input input;
        CLEANUP(report) struct report *report = NULL;
        struct report_use *use;

        (void)state;
        fill(windows, &writes);
        report = compute(windows, &input);
        use = &report->uses[report->use_of[3]];
        report_add_cell(use, REPORT_16K, REPORT_LATENCIES - 1, 1);
        input.histograms = true;
        report_describe(&input, report);
        assert_true(isnan(use->p50_s));
}

static void an_empty_range_says_what_is_not_known(void **state)
{
        struct report_input input = {.seconds = SECONDS};
        CLEANUP(report) struct report *report = NULL;
        size_t shown = 0;

        (void)state;
        assert_int_equal(report_compute(&input, &report), 0);
        report_describe(&input, report);
        for (size_t i = 0; i < REPORT_USES; i++) {
                if (!report_is_shown(report, i))
                        continue;
                shown++;
                assert_int_equal(report->uses[i].order, REPORT_ORDER_UNKNOWN);
                assert_non_null(
                        strstr(report->uses[i].sentence, "not known, because no steady window"));
                assert_true(isnan(report->uses[i].filesystem_bytes));
        }
        assert_int_equal(shown, REPORT_DIRECTIONS * REPORT_SIZES);
        assert_non_null(strstr(report->summary[0], "the best use nothing is known"));
}

static void redundancy_that_is_not_known_gives_no_grade(void **state)
{
        struct report_window windows[N];
        struct report_input input;
        struct load load = writes;
        CLEANUP(report) struct report *report = NULL;

        (void)state;
        load.expected = NAN;
        fill(windows, &load);
        for (uint32_t i = 0; i < N; i++)
                windows[i].sides[RATIO_WRITE].osd_ops = windows[i].deferred_submitted = 100;
        report = compute(windows, &input);
        report_describe(&input, report);
        assert_int_equal(use_of(report, 3)->grade, REPORT_NO_GRADE);
        assert_false(isnan(use_of(report, 3)->share));
        assert_non_null(strstr(use_of(report, 3)->detail, "the redundancy of a pool is not"));
}

static void the_grade_is_of_what_redundancy_leaves_and_of_full_devices(void **state)
{
        static const struct {
                double amplification, busy;
                enum report_grade grade;
                const char *said;
        } cases[] = {{3, 0.9, REPORT_IS_GOOD, "random writes of 16k (excess 1)"},
                {3, 0.5, REPORT_HAS_ROOM, "random writes of 16k (50 % busy)"},
                {3, 0.1, REPORT_HAS_ROOM, "random writes of 16k (10 % busy)"},
                {5, 0.9, REPORT_IS_FAIR, "random writes of 16k (excess 1.67)"},
                {5, 0.1, REPORT_IS_FAIR, "random writes of 16k (excess 1.67)"},
                {9, 0.5, REPORT_IS_POOR, "random writes of 16k (excess 3)"}};

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct report_window windows[N];
                struct report_input input;
                struct load load = writes;
                CLEANUP(report) struct report *report = NULL;

                load.amplification = cases[i].amplification;
                load.busy = cases[i].busy;
                fill(windows, &load);
                report = compute(windows, &input);
                report_describe(&input, report);
                assert_int_equal(use_of(report, 3)->grade, cases[i].grade);
                assert_non_null(strstr(report->summary[0], cases[i].said));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(share_is_the_ratio_times_what_is_used),
                cmocka_unit_test(the_first_and_last_window_of_a_load_are_left_out),
                cmocka_unit_test(a_window_whose_neighbours_have_other_rates_is_left_out),
                cmocka_unit_test(what_cannot_be_divided_is_counted_by_its_reason),
                cmocka_unit_test(operations_of_the_other_direction_make_a_window_mixed),
                cmocka_unit_test(ability_is_estimated_below_80_and_unknown_below_20_percent_busy),
                cmocka_unit_test(what_was_seen_comes_before_what_is_estimated),
                cmocka_unit_test(an_estimate_is_never_below_what_was_done),
                cmocka_unit_test(order_is_told_by_deferred_writes_only),
                cmocka_unit_test(reads_are_sequential_only_where_the_device_read_larger_ones),
                cmocka_unit_test(sizes_have_their_bounds_at_the_geometric_means),
                cmocka_unit_test(a_mean_that_hides_other_sizes_is_named),
                cmocka_unit_test(a_latency_in_the_open_bucket_has_no_number),
                cmocka_unit_test(an_empty_range_says_what_is_not_known),
                cmocka_unit_test(redundancy_that_is_not_known_gives_no_grade),
                cmocka_unit_test(the_grade_is_of_what_redundancy_leaves_and_of_full_devices),
        };

        return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
