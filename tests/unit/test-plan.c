#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/plan.h"

static int parse(const char *text, struct plan *ret, char **ret_message)
{
        json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
        int r;

        assert_non_null(json);
        r = plan_from_json(json, ret, ret_message);
        json_decref(json);
        return r;
}

static void fails_with(const char *text, const char *expected)
{
        CLEANUP(str) char *message = NULL;
        struct plan plan;

        memset(&plan, 0x5a, sizeof(plan));
        assert_int_equal(parse(text, &plan, &message), -EINVAL);
        assert_string_equal(message, expected);
        /* Written on success only. */
        for (size_t i = 0; i < sizeof(plan); i++)
                assert_int_equal(((unsigned char *)&plan)[i], 0x5a);
}

static void is_built_in_when_nothing_is_said(void **state)
{
        CLEANUP(str) char *message = NULL;
        CLEANUP(plan) struct plan plan = {0};

        (void)state;
        assert_int_equal(parse("{}", &plan, &message), 0);
        assert_null(message);
        assert_int_equal(plan.revision, 0);
        for (int i = SOURCE_NONE + 1; i < SOURCE_MAX_; i++) {
                bool often = i == SOURCE_DISKSTATS || i == SOURCE_OSD;

                assert_int_equal(
                        plan.sources[i].enabled, i != SOURCE_CEPH && i != SOURCE_OSD_HISTOGRAM);
                assert_int_equal(plan.sources[i].interval_us, i == SOURCE_CEPH            ? 5000000
                                                              : i == SOURCE_OSD_HISTOGRAM ? 60000000
                                                              : often                     ? 1000000
                                                                      : 10000000);
                assert_int_equal(plan.sources[i].count, 0);
                assert_true(plan_wants(&plan.sources[i], METRIC_DISK_READ_OPS));
        }
}

static void reads_every_field(void **state)
{
        CLEANUP(str) char *message = NULL;
        CLEANUP(plan) struct plan plan = {0};
        const struct plan_source *disk = &plan.sources[SOURCE_DISKSTATS];

        (void)state;
        assert_int_equal(parse("{\"revision\":7,\"sources\":{\"diskstats\":{\"enabled\":false,"
                               "\"interval\":\"500ms\",\"count\":20,\"start\":1796027570.5,"
                               "\"metrics\":[\"write_ops\",\"read_ops\",\"write_ops\"]}}}",
                                 &plan, &message),
                0);
        assert_int_equal(plan.revision, 7);
        assert_false(disk->enabled);
        assert_int_equal(disk->interval_us, 500000);
        assert_int_equal(disk->count, 20);
        assert_int_equal(disk->start_us, 1796027570500000);
        /* Ascending, each once. */
        assert_int_equal(disk->n_metrics, 2);
        assert_int_equal(disk->metrics[0], METRIC_DISK_READ_OPS);
        assert_int_equal(disk->metrics[1], METRIC_DISK_WRITE_OPS);
        assert_true(plan_wants(disk, METRIC_DISK_WRITE_OPS));
        assert_false(plan_wants(disk, METRIC_DISK_READ_SECTORS));
        /* A source that is not named keeps the default. */
        assert_true(plan.sources[SOURCE_OSD].enabled);
}

static void reads_back_what_it_wrote(void **state)
{
        CLEANUP(str) char *message = NULL;
        CLEANUP(plan) struct plan plan = {0};
        CLEANUP(plan) struct plan back = {0};
        json_t *first = NULL, *second = NULL;

        (void)state;
        assert_int_equal(
                parse("{\"revision\":9007199254740993,\"sources\":{\"osd\":{\"interval\":\"90s\","
                      "\"start\":1796027570,\"metrics\":[\"op_w\",\"op_r\"]},"
                      "\"ceph\":{\"enabled\":true,\"start\":0.000001}}}",
                        &plan, &message),
                0);
        assert_int_equal(plan_to_json(&plan, &first), 0);
        assert_int_equal(plan_from_json(first, &back, &message), 0);
        assert_int_equal(plan_to_json(&back, &second), 0);
        assert_true(json_equal(first, second));
        assert_int_equal(back.revision, 9007199254740993);
        assert_int_equal(back.sources[SOURCE_OSD].interval_us, 90000000);
        assert_int_equal(back.sources[SOURCE_OSD].n_metrics, 2);
        assert_int_equal(back.sources[SOURCE_CEPH].start_us, 1);
        json_decref(first);
        json_decref(second);
}

static void copies_deeply(void **state)
{
        CLEANUP(str) char *message = NULL;
        CLEANUP(plan) struct plan plan = {0};
        CLEANUP(plan) struct plan copy = {0};

        (void)state;
        assert_int_equal(
                parse("{\"sources\":{\"osd\":{\"metrics\":[\"op_w\"]}}}", &plan, &message), 0);
        assert_int_equal(plan_copy(&plan, &copy), 0);
        assert_ptr_not_equal(copy.sources[SOURCE_OSD].metrics, plan.sources[SOURCE_OSD].metrics);
        plan_done(&plan);
        assert_int_equal(copy.sources[SOURCE_OSD].metrics[0], METRIC_OSD_OP_W);
}

static void names_the_field_that_is_wrong(void **state)
{
        (void)state;
        fails_with("[]", "a plan must be a JSON object");
        fails_with("\"\"", "a plan must be a JSON object");
        fails_with("{\"revision\":-1}", "revision must be a whole number, but is -1");
        fails_with("{\"sources\":[]}", "sources must be an object, but is []");
        fails_with(
                "{\"sources\":{\"disk\":{}}}", "sources: unknown source 'disk'; there are: "
                                               "diskstats, osd, ceph, host, agent, osd_histogram");
        fails_with("{\"sources\":{\"osd\":5}}", "sources.osd must be an object, but is 5");
        fails_with("{\"sources\":{\"osd\":{\"enabled\":\"yes\"}}}",
                "sources.osd.enabled must be true or false, but is \"yes\"");
        fails_with("{\"sources\":{\"osd\":{\"intervall\":\"1s\"}}}",
                "sources.osd has no field 'intervall'; it has: enabled, interval, count, start, "
                "metrics");
        fails_with("{\"sources\":{\"osd\":{\"count\":-1}}}",
                "sources.osd.count must be a whole number up to 9007199254740991, 0 for no end, "
                "but is -1");
        fails_with("{\"sources\":{\"osd\":{\"count\":1.5}}}",
                "sources.osd.count must be a whole number up to 9007199254740991, 0 for no end, "
                "but is 1.5");
        fails_with("{\"sources\":{\"osd\":{\"start\":\"now\"}}}",
                "sources.osd.start must be a Unix time in seconds before the year 2261, or 0 for "
                "at once, but is \"now\"");
        fails_with("{\"sources\":{\"osd\":{\"start\":1e300}}}",
                "sources.osd.start must be a Unix time in seconds before the year 2261, or 0 for "
                "at once, but is 1.0000000000000001e300");
        fails_with("{\"sources\":{\"osd\":{\"count\":9007199254740992}}}",
                "sources.osd.count must be a whole number up to 9007199254740991, 0 for no end, "
                "but is 9007199254740992");
        fails_with("{\"sources\":{\"osd\":{\"metrics\":\"op_w\"}}}",
                "sources.osd.metrics must be a list of names, but is \"op_w\"");
        fails_with("{\"sources\":{\"osd\":{\"metrics\":[\"op_w\",1]}}}",
                "sources.osd.metrics[1] must be a name, but is 1");
}

static void lists_the_metrics_when_one_is_unknown(void **state)
{
        static const char begin[] =
                "sources.agent.metrics: unknown metric 'read_ops'; it has: cpu_time, rss, ";
        CLEANUP(str) char *message = NULL;
        struct plan plan;

        (void)state;
        /* It is one of another source. */
        assert_int_equal(parse("{\"sources\":{\"agent\":{\"metrics\":[\"rss\",\"read_ops\"]}}}",
                                 &plan, &message),
                -EINVAL);
        assert_memory_equal(message, begin, strlen(begin));
        assert_null(strstr(message, "read_sectors"));
}

static void bounds_the_interval(void **state)
{
        static const char format[] = "{\"sources\":{\"osd\":{\"interval\":%s}}}";
        static const char *const no_duration[] = {"1", "\"\"", "\"1\"", "\"fast\"", "null"};
        static const char *const out_of_range[] = {
                "99ms", "0s", "3601s", "99999999999999999999999s"};
        char text[128], expected[160];

        (void)state;
        for (size_t i = 0; i < 5; i++) {
                snprintf(text, sizeof(text), format, no_duration[i]);
                snprintf(expected, sizeof(expected),
                        "sources.osd.interval must be a duration such as \"1s\" or \"500ms\", but "
                        "is %s",
                        no_duration[i]);
                fails_with(text, expected);
        }
        for (size_t i = 0; i < 4; i++) {
                snprintf(text, sizeof(text), "{\"sources\":{\"osd\":{\"interval\":\"%s\"}}}",
                        out_of_range[i]);
                snprintf(expected, sizeof(expected),
                        "sources.osd.interval must be between 100ms and 1h, but is \"%s\"",
                        out_of_range[i]);
                fails_with(text, expected);
        }
}

static void bounds_the_list_of_metrics_and_the_length_of_a_name(void **state)
{
        CLEANUP(str) char *message = NULL;
        json_t *metrics = json_array(), *json;
        char name[201], expected[160];
        struct plan plan;

        (void)state;
        for (unsigned i = 0; i <= PLAN_METRICS_MAX; i++)
                json_array_append_new(metrics, json_string("op_w"));
        json = json_pack("{s:{s:{s:o}}}", "sources", "osd", "metrics", metrics);
        assert_int_equal(plan_from_json(json, &plan, &message), -EINVAL);
        assert_string_equal(
                message, "sources.osd.metrics must have at most 1024 names, but has 1025");
        json_decref(json);
        free(STEAL(message));

        /* A long name is cut between characters: 63 letters, then one of two bytes. */
        memset(name, 'a', 63);
        for (int i = 63; i < 200; i += 2)
                memcpy(name + i, "\xc3\xa9", 2);
        name[199] = '\0';
        json = json_pack("{s:{s:{}}}", "sources", name);
        assert_non_null(json);
        assert_int_equal(plan_from_json(json, &plan, &message), -EINVAL);
        snprintf(expected, sizeof(expected),
                "sources: unknown source '%.63s'; there are: diskstats, osd, ceph, host, agent, "
                "osd_histogram",
                name);
        assert_string_equal(message, expected);
        json_decref(json);
}

static void names_the_clusters_of_the_elected(void **state)
{
        static const char text[] = "{\"sources\":{\"ceph\":{\"enabled\":true,\"clusters\":"
                                   "[\"65000000-0000-0000-0000-000000000000\",\"unknown\"]}}}";
        CLEANUP(str) char *message = NULL;
        CLEANUP(plan) struct plan plan = {0};
        CLEANUP(plan) struct plan back = {0};
        json_t *json = NULL;

        (void)state;
        assert_true(plan_wants_cluster(&plan, &(struct id){{101}})); /* none named: all */
        assert_int_equal(parse(text, &plan, &message), 0);
        assert_int_equal(plan.n_clusters, 2);
        assert_true(plan_wants_cluster(&plan, &(struct id){{101}}));
        assert_true(plan_wants_cluster(&plan, &(struct id){{0}}));
        assert_false(plan_wants_cluster(&plan, &(struct id){{102}}));
        assert_int_equal(plan_to_json(&plan, &json), 0);
        assert_int_equal(plan_from_json(json, &back, &message), 0);
        json_decref(json);
        assert_memory_equal(back.clusters, plan.clusters, sizeof(plan.clusters));
        fails_with("{\"sources\":{\"ceph\":{\"clusters\":[\"ceph\"]}}}",
                "sources.ceph.clusters must be a list of fsids or \"unknown\", but is [\"ceph\"]");
        fails_with("{\"sources\":{\"osd\":{\"clusters\":[]}}}",
                "sources.osd has no field 'clusters'; it has: enabled, interval, count, start, "
                "metrics");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(is_built_in_when_nothing_is_said),
                cmocka_unit_test(reads_every_field),
                cmocka_unit_test(reads_back_what_it_wrote),
                cmocka_unit_test(copies_deeply),
                cmocka_unit_test(names_the_field_that_is_wrong),
                cmocka_unit_test(lists_the_metrics_when_one_is_unknown),
                cmocka_unit_test(bounds_the_interval),
                cmocka_unit_test(names_the_clusters_of_the_elected),
                cmocka_unit_test(bounds_the_list_of_metrics_and_the_length_of_a_name),
        };

        return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
