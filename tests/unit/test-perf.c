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
        assert_int_equal(n, n_osd);
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

static void newer_names_mean_the_same_metrics(void **state)
{
        struct perf_values values, newer_values;
        struct dump pacific, quincy;
        size_t n;

        dump_load(&pacific, "pacific-16.2.15.json");
        dump_load(&quincy, "quincy.json");
        assert_int_equal(perf_parse(*state, pacific.text, pacific.size, &values), 0);
        assert_int_equal(perf_parse(*state, quincy.text, quincy.size, &newer_values), 0);
        perf_get_metrics(*state, &n);
        for (size_t i = 0; i < n; i++) {
                assert_true(newer_values.present[i]);
                assert_int_equal(newer_values.value[i], values.value[i]);
        }
        dump_done(&pacific);
        dump_done(&quincy);
}

static void what_an_older_release_lacks_is_absent_and_not_zero(void **state)
{
        struct perf_values values;
        struct dump dump;

        dump_load(&dump, "nautilus.json");
        assert_int_equal(perf_parse(*state, dump.text, dump.size, &values), 0);
        assert_false(values.present[index_of(*state, METRIC_BLUESTORE_DEFERRED_SUBMITTED)]);
        assert_false(values.present[index_of(*state, METRIC_BLUEFS_READ_PREFETCH_BYTES)]);
        must_be(*state, &values, METRIC_BLUESTORE_ONODE_HITS,
                number(&dump, "bluestore", "bluestore_onode_hits"));
        must_be(*state, &values, METRIC_BLUESTORE_DEFERRED_BYTES,
                number(&dump, "bluestore", "deferred_write_bytes"));
        dump_done(&dump);
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
                cmocka_unit_test(newer_names_mean_the_same_metrics),
                cmocka_unit_test(what_an_older_release_lacks_is_absent_and_not_zero),
                cmocka_unit_test(a_cut_dump_is_an_error_at_every_length),
                cmocka_unit_test(numbers_beyond_the_range_are_absent),
                cmocka_unit_test(sums_come_with_and_without_fraction_and_exponent),
                cmocka_unit_test(other_loggers_and_shapes_are_passed_over),
                cmocka_unit_test(broken_json_is_an_error),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
