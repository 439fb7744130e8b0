#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <cmocka.h>

#include "agentd/perf-faults.h"
#include "agentd/perf.h"
#include "lib/metric.h"

/* Our own reading of a fixture, by a full JSON parser. */
struct dump {
        char *text;
        size_t size;
        json_t *json;
};

static int setup(void **state)
{
        struct perf *perf;

        if (perf_new(&perf) < 0)
                return -1;
        *state = perf;
        return 0;
}

static int teardown(void **state)
{
        perf_free(*state);
        return 0;
}

static void dump_load(struct dump *dump, const char *name)
{
        char path[4096];
        FILE *f;

        snprintf(path, sizeof(path), "%s/perf/%s", getenv("STRATA_FIXTURES"), name);
        f = fopen(path, "r");
        assert_non_null(f);
        dump->text = malloc(1 << 20);
        dump->size = fread(dump->text, 1, 1 << 20, f);
        fclose(f);
        dump->json = json_loadb(dump->text, dump->size, 0, NULL);
        assert_non_null(dump->json);
}

static void dump_done(struct dump *dump)
{
        free(dump->text);
        json_decref(dump->json);
}

static size_t index_of(const struct perf *perf, uint16_t metric)
{
        size_t n;
        const uint16_t *metrics = perf_get_metrics(perf, &n);

        for (size_t i = 0; i < n; i++)
                if (metrics[i] == metric)
                        return i;
        fail_msg("no metric %u", metric);
        return 0;
}

static void parse(const struct perf *perf, const char *text, struct perf_values *ret)
{
        assert_int_equal(perf_parse(perf, text, strlen(text), ret), 0);
}

static void must_be(const struct perf *perf, const struct perf_values *values, uint16_t metric,
        uint64_t expected)
{
        size_t index = index_of(perf, metric);

        assert_true(values->present[index]);
        assert_int_equal(values->value[index], expected);
}

static json_int_t number(const struct dump *dump, const char *logger, const char *name)
{
        json_t *value = json_object_get(json_object_get(dump->json, logger), name);

        assert_true(json_is_integer(value));
        return json_integer_value(value);
}

static void every_metric_of_an_osd_has_a_name(void **state)
{
        size_t n, n_all, n_osd = 0;
        const uint16_t *metrics = perf_get_metrics(*state, &n);
        const struct metric *all = metric_all(&n_all);

        for (size_t i = 1; i < n; i++)
                assert_true(metrics[i] > metrics[i - 1]);
        for (size_t i = 0; i < n_all; i++)
                n_osd += all[i].source == SOURCE_OSD;
        for (size_t i = 0; i < n; i++)
                assert_int_equal(metric_get(metrics[i])->source, SOURCE_OSD);
        /* process_run_time and process_wait_time are not the OSD's but the kernel's. */
        assert_int_equal(n + 2, n_osd);
}

static void a_dump_of_pacific_gives_every_metric(void **state)
{
        struct perf_values values;
        struct dump dump;
        size_t n;

        dump_load(&dump, "pacific-16.2.15.json");
        assert_int_equal(perf_parse(*state, dump.text, dump.size, &values), 0);
        perf_get_metrics(*state, &n);
        for (size_t i = 0; i < n; i++)
                assert_true(values.present[i]);
        must_be(*state, &values, METRIC_OSD_OP_W, number(&dump, "osd", "op_w"));
        must_be(*state, &values, METRIC_OSD_NUMPG, number(&dump, "osd", "numpg"));
        must_be(*state, &values, METRIC_BLUESTORE_WRITE_BIG_BYTES,
                number(&dump, "bluestore", "bluestore_write_big_bytes"));
        must_be(*state, &values, METRIC_BLUESTORE_DEFERRED_BYTES,
                number(&dump, "bluestore", "deferred_write_bytes"));
        must_be(*state, &values, METRIC_BLUESTORE_DEFERRED_SUBMITTED_BYTES,
                number(&dump, "bluestore", "bluestore_write_deferred_bytes"));
        must_be(*state, &values, METRIC_BLUEFS_LOG_BYTES, number(&dump, "bluefs", "logged_bytes"));
        must_be(*state, &values, METRIC_BLUEFS_WAL_BYTES,
                number(&dump, "bluefs", "bytes_written_wal"));
        dump_done(&dump);
}

static void averages_are_nanoseconds(void **state)
{
        struct perf_values values;
        struct dump dump;
        json_t *latency;
        double seconds;

        dump_load(&dump, "pacific-16.2.15.json");
        assert_int_equal(perf_parse(*state, dump.text, dump.size, &values), 0);
        latency = json_object_get(json_object_get(dump.json, "osd"), "op_w_latency");
        seconds = json_real_value(json_object_get(latency, "sum"));
        must_be(*state, &values, METRIC_OSD_OP_W_LATENCY_COUNT,
                (uint64_t)json_integer_value(json_object_get(latency, "avgcount")));
        must_be(*state, &values, METRIC_OSD_OP_W_LATENCY_TIME, (uint64_t)(seconds * 1e9 + 0.5));
        dump_done(&dump);
}

/* The fixtures are the numbers of the one that was captured, under the names of each release. */
static void each_release_gives_the_same_numbers_and_lacks_what_it_lacks(void **state)
{
        static const struct {
                const char *file;
                uint16_t lacks[4]; /* ends with 0 */
        } releases[] = {
                {"nautilus-14.2.21.json", {METRIC_BLUESTORE_DEFERRED_SUBMITTED,
                                                  METRIC_BLUESTORE_DEFERRED_SUBMITTED_BYTES}},
                {"octopus-15.2.17.json", {METRIC_BLUESTORE_DEFERRED_SUBMITTED,
                                                 METRIC_BLUESTORE_DEFERRED_SUBMITTED_BYTES}},
                {"pacific-16.2.15.json", {0}},
                {"quincy-17.2.7.json", {0}},
                {"reef-18.2.7.json", {0}},
                {"squid-19.2.0.json", {0}},
        };
        struct perf_values pacific, values;
        struct dump dump;
        size_t n;
        const uint16_t *metrics = perf_get_metrics(*state, &n);

        dump_load(&dump, "pacific-16.2.15.json");
        assert_int_equal(perf_parse(*state, dump.text, dump.size, &pacific), 0);
        dump_done(&dump);
        for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
                dump_load(&dump, releases[i].file);
                assert_int_equal(perf_parse(*state, dump.text, dump.size, &values), 0);
                for (size_t j = 0; j < n; j++) {
                        bool lacks = false;

                        for (const uint16_t *metric = releases[i].lacks; *metric != 0; metric++)
                                lacks |= *metric == metrics[j];
                        if (values.present[j] == lacks ||
                                (!lacks && values.value[j] != pacific.value[j]))
                                fail_msg("%s: %s", releases[i].file, metric_get(metrics[j])->name);
                }
                dump_done(&dump);
        }
}

/* "submitted" was the name of what goes into the WAL, and is that of what reaches the device. */
static void deferred_writes_into_the_wal_and_to_the_device_are_not_mixed_up(void **state)
{
        struct perf_values values;

        parse(*state,
                "{\"bluestore\":{\"deferred_write_ops\":1,\"deferred_write_bytes\":2,"
                "\"bluestore_write_deferred\":3,\"bluestore_write_deferred_bytes\":4}}",
                &values);
        must_be(*state, &values, METRIC_BLUESTORE_DEFERRED_OPS, 1);
        must_be(*state, &values, METRIC_BLUESTORE_DEFERRED_BYTES, 2);
        must_be(*state, &values, METRIC_BLUESTORE_DEFERRED_SUBMITTED, 3);
        must_be(*state, &values, METRIC_BLUESTORE_DEFERRED_SUBMITTED_BYTES, 4);
        parse(*state,
                "{\"bluestore\":{\"submitted_deferred_writes\":1,"
                "\"submitted_deferred_write_bytes\":2,"
                "\"issued_deferred_writes\":3,\"issued_deferred_write_bytes\":4}}",
                &values);
        must_be(*state, &values, METRIC_BLUESTORE_DEFERRED_OPS, 1);
        must_be(*state, &values, METRIC_BLUESTORE_DEFERRED_BYTES, 2);
        must_be(*state, &values, METRIC_BLUESTORE_DEFERRED_SUBMITTED, 3);
        must_be(*state, &values, METRIC_BLUESTORE_DEFERRED_SUBMITTED_BYTES, 4);
}

static void a_gauge_below_zero_is_absent(void **state)
{
        struct perf_values values;

        parse(*state,
                "{\"osd\":{\"numpg\":18446744073709551615,\"op_w\":18446744073709551615},"
                "\"bluefs\":{\"slow_used_bytes\":0}}",
                &values);
        assert_false(values.present[index_of(*state, METRIC_OSD_NUMPG)]);
        must_be(*state, &values, METRIC_OSD_OP_W, UINT64_MAX);
        must_be(*state, &values, METRIC_BLUEFS_SLOW_USED_BYTES, 0);
}

static uint32_t random_next(uint32_t *seed)
{
        *seed = *seed * 1664525u + 1013904223u;
        return *seed >> 8;
}

/* Numbers of other lengths in the place of some; the rest as it was. */
static char *dump_age(const struct dump *dump, uint32_t *seed, unsigned changes)
{
        char *text = malloc(dump->size * 2), *end = text;

        for (size_t i = 0; i < dump->size; i++) {
                bool number = dump->text[i] >= '0' && dump->text[i] <= '9' && i > 0 &&
                              dump->text[i - 1] == ':';

                if (!number || random_next(seed) % 500 >= changes) {
                        *end++ = dump->text[i];
                        continue;
                }
                end += sprintf(end, "%u", random_next(seed) >> random_next(seed) % 24);
                while (dump->text[i + 1] >= '0' && dump->text[i + 1] <= '9')
                        i++;
        }
        *end = '\0';
        return text;
}

static void must_be_alike(
        const struct perf *perf, const struct perf_values *a, const struct perf_values *b)
{
        size_t n;

        perf_get_metrics(perf, &n);
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(a->present[i], b->present[i]);
                if (a->present[i])
                        assert_int_equal(a->value[i], b->value[i]);
        }
}

static void dumps_that_age_are_read_as_if_for_the_first_time(void **state)
{
        struct perf_places places = {0};
        struct perf_values values, again;
        struct dump dump;
        uint32_t seed = 7;
        unsigned by_place = 0;

        print_message("# seed %u\n", seed);
        dump_load(&dump, "pacific-16.2.15.json");
        for (unsigned i = 0; i < 2000; i++) {
                /* Mostly few numbers change, at times nearly all. */
                char *text = dump_age(&dump, &seed, i % 10 == 9 ? 450 : i % 10);
                uint16_t uses = places.uses;

                assert_int_equal(perf_parse(*state, text, strlen(text), &values), 0);
                assert_int_equal(perf_parse_again(*state, text, strlen(text), &places, &again), 0);
                must_be_alike(*state, &values, &again);
                by_place += places.uses > uses;
                free(text);
        }
        /* Else nothing was tested. */
        assert_true(by_place > 1000);
        dump_done(&dump);
}

static void a_dump_of_another_shape_is_not_read_by_places(void **state)
{
        static const char first[] =
                "{\"bluefs\":{\"logged_bytes\":7},\"osd\":{\"op_w\":100,"
                "\"op_w_latency\":{\"avgcount\":3,\"sum\":1.500000000,\"avgtime\":0.5}}}";
        static const char *const others[] = {
                "{\"bluefs\":{\"logged_bytes\":7},\"osd\":{\"op_x\":1}}",
                "{\"bluefs\":{\"logged_bytes\":8},\"osx\":{\"op_w\":100,"
                "\"op_w_latency\":{\"avgcount\":3,\"sum\":1.500000000,\"avgtime\":0.5}}}",
                "{\"bluefs\":{\"logged_bytes\":8},\"osd\":{\"op_w\":1.5,"
                "\"op_w_latency\":{\"avgcount\":3,\"sum\":1.500000000,\"avgtime\":0.5}}}",
                "{\"bluefs\":{\"logged_bytes\":8},\"osd\":{\"op_w\":1,"
                "\"op_w_latency\":{\"avgcount\":4,\"sum\":-1,\"avgtime\":0.5}}}",
                "{\"osd\":{\"op_w\":1,\"op_w_latency\":{\"avgcount\":4,\"sum\":1}},"
                "\"bluefs\":{\"logged_bytes\":7}}",
                "{\"bluefs\":{\"logged_bytes\":},\"osd\":{\"op_w\":,"
                "\"op_w_latency\":{\"avgcount\":3,\"sum\":1.500000000,\"avgtime\":0.5}}}",
                "{\"bluefs\":{\"logged_bytes\":7},\"osd\":{\"op_w\":100,"
                "\"op_w_latency\":{\"avgcount\":3,\"sum\":1.500000000,\"avgtime\":0.5}",
                "", "{", "}}", "ERROR: (22) Invalid argument\n"};

        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
                struct perf_places places = {0};
                struct perf_values values, again;
                int r;

                assert_int_equal(
                        perf_parse_again(*state, first, strlen(first), &places, &again), 0);
                assert_int_equal(
                        perf_parse_again(*state, first, strlen(first), &places, &again), 0);
                assert_int_equal(places.uses, 1);
                r = perf_parse(*state, others[i], strlen(others[i]), &values);
                assert_int_equal(
                        perf_parse_again(*state, others[i], strlen(others[i]), &places, &again), r);
                if (r == 0)
                        must_be_alike(*state, &values, &again);
        }
}

static void releases_are_read_with_whatever_follows_them(void **state)
{
        static const struct {
                const char *text;
                uint32_t release;
        } cases[] = {{"16.2.15", PERF_RELEASE(16, 2, 15)}, {"18.2.7-1.el9", 18002007},
                {"19.3.0-1234-gabcdef", 19003000}, {"14", 14000000}, {"", 0}, {"x", 0},
                {"16.2.99999999999999", 16002999}};

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                assert_int_equal(perf_release_parse(cases[i].text), cases[i].release);
}

static char *documentation_load(void)
{
        char path[4096], *text = calloc(1, 1 << 18);
        FILE *f;

        snprintf(path, sizeof(path), "%s/../../docs/osd-counters.md", getenv("STRATA_FIXTURES"));
        f = fopen(path, "r");
        assert_non_null(f);
        assert_true(fread(text, 1, (1 << 18) - 1, f) > 0);
        fclose(f);
        return text;
}

static void every_known_fault_is_of_an_osd_metric_and_has_its_line_in_the_documentation(
        void **state)
{
        char *text = documentation_load();
        const struct perf_fault *faults;
        size_t n;

        (void)state;
        faults = perf_faults_get(&n);
        for (size_t i = 0; i < n; i++) {
                const struct metric *metric = metric_get(faults[i].metric);
                char name[128];

                assert_int_equal(metric->source, SOURCE_OSD);
                assert_true(faults[i].from < faults[i].until);
                snprintf(name, sizeof(name), "`%s`", metric->name);
                if (!strstr(text, name) || !strstr(text, faults[i].origin))
                        fail_msg("%s, %s", name, faults[i].origin);
        }
        free(text);
}

/* One row a metric, so that nobody has to look into Ceph's sources again. */
static void every_metric_has_its_row_in_the_documentation(void **state)
{
        char *text = documentation_load();
        size_t n;
        const uint16_t *metrics = perf_get_metrics(*state, &n);

        for (size_t i = 0; i < n; i++) {
                char row[128];

                snprintf(row, sizeof(row), "\n| `%s` |", metric_get(metrics[i])->name);
                if (!strstr(text, row))
                        fail_msg("no row for %s", metric_get(metrics[i])->name);
        }
        free(text);
}

static void a_cut_dump_is_an_error_at_every_length(void **state)
{
        struct perf_values values;
        struct dump dump;
        size_t whole;

        dump_load(&dump, "pacific-16.2.15.json");
        whole = dump.size;
        while (whole > 0 && dump.text[whole - 1] != '}')
                whole--;
        for (size_t size = 0; size < whole; size++) {
                /* A copy of exactly this size, so that a read beyond it is seen. */
                char *copy = malloc(size + 1);

                memcpy(copy, dump.text, size);
                copy = realloc(copy, size ? size : 1);
                assert_int_equal(perf_parse(*state, copy, size, &values), -EBADMSG);
                free(copy);
        }
        dump_done(&dump);
}

static void numbers_beyond_the_range_are_absent(void **state)
{
        struct perf_values values;

        parse(*state,
                "{\"osd\":{\"op_r\":18446744073709551615,\"op_w\":18446744073709551616,"
                "\"op_rw\":-1,\"subop_w\":1.5,\"numpg\":\"7\",\"recovery_ops\":null,"
                "\"recovery_bytes\":[1],\"op_rw_in_bytes\":99999999999999999999,\"subop_push\":{"
                "\"a\":1}}}",
                &values);
        must_be(*state, &values, METRIC_OSD_OP_R, UINT64_MAX);
        assert_false(values.present[index_of(*state, METRIC_OSD_OP_W)]);
        assert_false(values.present[index_of(*state, METRIC_OSD_OP_RW)]);
        assert_false(values.present[index_of(*state, METRIC_OSD_SUBOP_W)]);
        assert_false(values.present[index_of(*state, METRIC_OSD_NUMPG)]);
        assert_false(values.present[index_of(*state, METRIC_OSD_RECOVERY_OPS)]);
        assert_false(values.present[index_of(*state, METRIC_OSD_RECOVERY_BYTES)]);
        assert_false(values.present[index_of(*state, METRIC_OSD_OP_RW_IN_BYTES)]);
        assert_false(values.present[index_of(*state, METRIC_OSD_SUBOP_PUSH)]);
}

static void sums_come_with_and_without_fraction_and_exponent(void **state)
{
        static const struct {
                const char *sum;
                uint64_t nanoseconds;
        } cases[] = {{"0", 0}, {"7", 7000000000}, {"0.000079044", 79044}, {"1.5", 1500000000},
                {"23.044397852", 23044397852}, {"8.5e-05", 85000}, {"1e2", 100000000000},
                {"1.0000000009", 1000000000}, {"18446744073.709551615", UINT64_MAX}};
        static const char *const bad[] = {
                "-1", "18446744074", "99999999999999999999", "1e30", "1.x", "nan", "1e", "true"};

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct perf_values values;
                char text[256];

                snprintf(text, sizeof(text),
                        "{\"osd\":{\"op_w_latency\":{\"avgcount\":3,\"sum\":%s,\"avgtime\":1}}}",
                        cases[i].sum);
                parse(*state, text, &values);
                must_be(*state, &values, METRIC_OSD_OP_W_LATENCY_COUNT, 3);
                must_be(*state, &values, METRIC_OSD_OP_W_LATENCY_TIME, cases[i].nanoseconds);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct perf_values values;
                char text[256];

                snprintf(text, sizeof(text),
                        "{\"osd\":{\"op_w_latency\":{\"avgcount\":3,\"sum\":%s}}}", bad[i]);
                parse(*state, text, &values);
                assert_false(values.present[index_of(*state, METRIC_OSD_OP_W_LATENCY_TIME)]);
        }
}

static void other_loggers_and_shapes_are_passed_over(void **state)
{
        struct perf_values values;

        parse(*state,
                "{\"osd-extra\":{\"op_w\":1},\"osd\":7,\"x\":[{\"osd\":{\"op_w\":2}},\"}\\\"{\"],"
                "\"bluefs\": { \"a\" : { \"b\" : [ 1 , { } ] } , \"logged_bytes\" : 5 } }\n\0",
                &values);
        assert_false(values.present[index_of(*state, METRIC_OSD_OP_W)]);
        must_be(*state, &values, METRIC_BLUEFS_LOG_BYTES, 5);
}

static void broken_json_is_an_error(void **state)
{
        static const char *const broken[] = {"", " ", "x", "[]", "{", "{}x", "{]", "{\"osd\"}",
                "{\"osd\":}", "{\"osd\":{\"op_w\":}}", "{\"osd\":{\"op_w\":1,}}",
                "{\"osd\":{op_w:1}}", "{\"osd\":{\"op_w\" 1}}", "{\"osd\":{\"op_w\":1}",
                "{\"osd\":{\"op_w\":1};", "{\"osd\":{\"op_w_latency\":{\"sum\":}}}", "{\"a\":\"",
                "{\"a\":\"\\", "{\"a\":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}",
                "ERROR: (22) Invalid argument\nunknown command prefix\n"};

        for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
                struct perf_values values;

                if (perf_parse(*state, broken[i], strlen(broken[i]), &values) != -EBADMSG)
                        fail_msg("accepted: %s", broken[i]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_metric_of_an_osd_has_a_name),
                cmocka_unit_test(a_dump_of_pacific_gives_every_metric),
                cmocka_unit_test(averages_are_nanoseconds),
                cmocka_unit_test(each_release_gives_the_same_numbers_and_lacks_what_it_lacks),
                cmocka_unit_test(deferred_writes_into_the_wal_and_to_the_device_are_not_mixed_up),
                cmocka_unit_test(a_gauge_below_zero_is_absent),
                cmocka_unit_test(dumps_that_age_are_read_as_if_for_the_first_time),
                cmocka_unit_test(a_dump_of_another_shape_is_not_read_by_places),
                cmocka_unit_test(releases_are_read_with_whatever_follows_them),
                cmocka_unit_test(
                        every_known_fault_is_of_an_osd_metric_and_has_its_line_in_the_documentation),
                cmocka_unit_test(every_metric_has_its_row_in_the_documentation),
                cmocka_unit_test(a_cut_dump_is_an_error_at_every_length),
                cmocka_unit_test(numbers_beyond_the_range_are_absent),
                cmocka_unit_test(sums_come_with_and_without_fraction_and_exponent),
                cmocka_unit_test(other_loggers_and_shapes_are_passed_over),
                cmocka_unit_test(broken_json_is_an_error),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
