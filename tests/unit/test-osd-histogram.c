/* The source osd_histogram: its reader against a full JSON parser, and its columns. */
#include "osd-fixture.h"

#include <jansson.h>

#include "agentd/perf-histogram.h"

#define FIXTURE "histogram-16.2.15.json"
#define BUCKETS 32u

static const char *const names[METRIC_CELL_HISTOGRAMS] = {"op_r_latency_out_bytes_histogram",
        "op_w_latency_in_bytes_histogram", "op_rw_latency_in_bytes_histogram",
        "op_rw_latency_out_bytes_histogram"};

static uint32_t fold(uint32_t bucket, uint32_t last)
{
        return bucket == 0 ? 1 : bucket > last ? last : bucket;
}

/* Our own reading, by what lib/metric.h says of the numbers. */
static void cells_expect(const char *text, uint64_t *cells)
{
        json_t *json = json_loads(text, 0, NULL);

        memset(cells, 0, METRIC_CELL_COUNT * sizeof(*cells));
        for (uint32_t h = 0; h < METRIC_CELL_HISTOGRAMS; h++) {
                json_t *values = json_object_get(
                        json_object_get(json_object_get(json, "osd"), names[h]), "values");

                assert_int_equal(json_array_size(values), BUCKETS);
                for (uint32_t latency = 0; latency < BUCKETS; latency++)
                        for (uint32_t size = 0; size < BUCKETS; size++)
                                cells[(h * METRIC_CELL_LATENCIES +
                                              fold(latency, METRIC_CELL_LATENCIES) - 1) *
                                                METRIC_CELL_SIZES +
                                        fold(size, METRIC_CELL_SIZES) - 1] +=
                                        (uint64_t)json_integer_value(json_array_get(
                                                json_array_get(values, latency), size));
        }
        json_decref(json);
}

/* The text with @from in the place of the first @to; to be freed. */
static char *replaced(const char *text, const char *from, const char *to)
{
        const char *at = strstr(text, from);
        char *copy;

        assert_non_null(at);
        assert_true(asprintf(&copy, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
        return copy;
}

static void cells_are_what_the_dump_has(void **state)
{
        static uint64_t cells[METRIC_CELL_COUNT], expected[METRIC_CELL_COUNT];
        const char *text = fixture_load(FIXTURE);
        uint64_t sum = 0;

        (void)state;
        assert_int_equal(perf_histogram_parse(text, strlen(text), cells), 0);
        cells_expect(text, expected);
        for (size_t i = 0; i < METRIC_CELL_COUNT; i++) {
                assert_int_equal(cells[i], expected[i]);
                sum += cells[i];
        }
        assert_true(sum > 1000);
        free((void *)text);
}

/* Buckets beyond ours go into our last ones. */
static void far_buckets_are_in_the_last_cells(void **state)
{
        static uint64_t cells[METRIC_CELL_COUNT];
        char row[BUCKETS * 2 + 1], last[BUCKETS * 2 + 1], *text = calloc(1, 1 << 16), *end = text;

        (void)state;
        for (unsigned i = 0; i < BUCKETS; i++) {
                memcpy(row + i * 2, "0,", 2);
                memcpy(last + i * 2, "1,", 2);
        }
        row[BUCKETS * 2 - 1] = last[BUCKETS * 2 - 1] = '\0';
        end += sprintf(end,
                "{\"osd\":{\"op_w_latency_in_bytes_histogram\":{\"axes\":["
                "{\"name\":\"a\",\"min\":0,\"quant_size\":100000,\"buckets\":32,"
                "\"scale_type\":\"log2\",\"ranges\":[{\"max\":-1},{\"min\":0}]},"
                "{\"name\":\"b\",\"min\":0,\"quant_size\":512,\"buckets\":32,"
                "\"scale_type\":\"log2\",\"ranges\":[{\"max\":-1},{\"min\":0}]}],\"values\":[");
        for (unsigned i = 0; i < BUCKETS; i++)
                end += sprintf(end, "%s[%s]", i ? "," : "", i == BUCKETS - 1 ? last : row);
        sprintf(end, "]}}}");
        assert_int_equal(perf_histogram_parse(text, strlen(text), cells), 0);
        assert_int_equal(cells[METRIC_CELL_W_IN_SIZE_1_LATENCY_20 - METRIC_CELL_FIRST], 2);
        assert_int_equal(cells[METRIC_CELL_W_IN_SIZE_2_LATENCY_20 - METRIC_CELL_FIRST], 1);
        assert_int_equal(cells[METRIC_CELL_W_IN_SIZE_16_LATENCY_20 - METRIC_CELL_FIRST], 16);
        assert_int_equal(cells[METRIC_CELL_W_IN_SIZE_16_LATENCY_19 - METRIC_CELL_FIRST], 0);
        assert_int_equal(cells[METRIC_CELL_R_OUT_SIZE_1_LATENCY_20 - METRIC_CELL_FIRST], 0);
        free(text);
}

static void a_cut_dump_is_an_error_up_to_the_last_number(void **state)
{
        static uint64_t cells[METRIC_CELL_COUNT];
        const char *text = fixture_load(FIXTURE);
        const char *last = strstr(text, names[3]);
        size_t whole = (size_t)(strstr(last, "]]") - text) + 2;

        (void)state;
        for (size_t size = 0; size < whole; size += size < whole - 300 ? 37 : 1) {
                char *copy = malloc(size + 1);
                int r;

                memcpy(copy, text, size);
                copy = realloc(copy, size ? size : 1);
                r = perf_histogram_parse(copy, size, cells);
                /* Before the name of one it is as if that one were missing. */
                if (r == 0)
                        assert_true(size < (size_t)(last - text) + strlen(names[3]) + 3);
                else
                        assert_int_equal(r, -EBADMSG);
                free(copy);
        }
        free((void *)text);
}

static void axes_of_another_meaning_are_refused(void **state)
{
        static const struct {
                const char *from, *to;
                int r;
        } cases[] = {
                {"\"quant_size\":100000", "\"quant_size\":1000", -EPROTONOSUPPORT},
                {"\"quant_size\":512", "\"quant_size\":4096", -EPROTONOSUPPORT},
                {"\"buckets\":32", "\"buckets\":64", -EPROTONOSUPPORT},
                {"\"min\":0,\"quant", "\"min\":1,\"quant", -EPROTONOSUPPORT},
                {"\"scale_type\":\"log2\"", "\"scale_type\":\"linear\"", -EPROTONOSUPPORT},
                {"\"axes\":[{", "\"axis\":[{", -EBADMSG},
                {"[[0,0", "[[-1,0", -EBADMSG},
                {"[[0,0", "[[0,0,0", -EBADMSG},
                {"[[0,0", "[[0,18446744073709551616", -EBADMSG},
                {"\"osd\":{", "\"ost\":{", -EBADMSG},
        };
        static uint64_t cells[METRIC_CELL_COUNT];
        const char *text = fixture_load(FIXTURE);

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char *other = replaced(text, cases[i].from, cases[i].to);

                if (perf_histogram_parse(other, strlen(other), cells) != cases[i].r)
                        fail_msg("%s", cases[i].to);
                free(other);
        }
        free((void *)text);
}

static void node_start_histogram(struct node *node, struct fake *fake)
{
        node_start(node);
        node->class = &source_osd_histogram;
        fake_start(fake, node, 3);
        fake->histogram = fixture_load(FIXTURE);
        node_open(node, NULL);
}

static void columns_are_the_cells_that_are_not_0(void **state)
{
        static uint64_t cells[METRIC_CELL_COUNT];
        struct fake fake;
        struct node node;
        uint32_t n = 0;

        (void)state;
        node_start_histogram(&node, &fake);
        cells_expect(fake.histogram, cells);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.n_entities, 1);
        assert_string_equal(node.sample.entities[0].name, "osd.3");
        for (size_t i = 0; i < METRIC_CELL_COUNT; i++) {
                if (cells[i] == 0)
                        continue;
                assert_int_equal(node.sample.columns[n].metric, METRIC_CELL_FIRST + i);
                assert_int_equal(node.sample.values[n++], cells[i]);
        }
        assert_int_equal(node.sample.n_columns, n);
        assert_int_equal(node.n_lines, 0);
        fake_stop(&fake);
        free((void *)fake.histogram);
        node_stop(&node);
}

static void a_new_cell_is_a_new_column_and_one_that_goes_to_0_stays(void **state)
{
        const char *first, *tail;
        char *more, *more_tail;
        uint64_t generation, instance;
        struct fake fake;
        struct node node;
        uint32_t n;

        (void)state;
        node_start_histogram(&node, &fake);
        first = fake.histogram;
        tail = strstr(first, names[2]); /* nobody read-modify-writes in this one */
        more_tail = replaced(tail, "[[0,0", "[[0,5");
        assert_true(asprintf(&more, "%.*s%s", (int)(tail - first), first, more_tail) > 0);
        assert_int_equal(collect(&node), 0);
        generation = node.sample.generation;
        instance = node.sample.entities[0].instance;
        n = node.sample.n_columns;
        assert_int_equal(collect(&node), 0);
        assert_true(node.sample.generation == generation);
        fake.histogram = more;
        assert_int_equal(collect(&node), 0);
        assert_true(node.sample.generation != generation);
        assert_int_equal(node.sample.n_columns, n + 1);
        assert_int_equal(value(&node, "osd.3", METRIC_CELL_RW_IN_SIZE_1_LATENCY_1), 5);
        assert_true(node.sample.entities[0].instance == instance);
        /* Somebody said "perf reset": it counts from 0 again. */
        generation = node.sample.generation;
        n = node.sample.n_columns;
        fake.histogram = first;
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.n_columns, n);
        assert_int_equal(value(&node, "osd.3", METRIC_CELL_RW_IN_SIZE_1_LATENCY_1), 0);
        assert_true(node.sample.entities[0].instance != instance);
        fake_stop(&fake);
        free((void *)first);
        free(more);
        free(more_tail);
        node_stop(&node);
}

static void other_axes_are_refused_with_one_line(void **state)
{
        const char *text;
        struct fake fake;
        struct node node;

        (void)state;
        node_start_histogram(&node, &fake);
        text = fake.histogram;
        fake.histogram = replaced(text, "\"quant_size\":100000", "\"quant_size\":1000");
        assert_int_equal(collect(&node), -EIO);
        assert_int_equal(collect(&node), -EIO);
        assert_int_equal(node.n_lines, 1);
        assert_non_null(strstr(node.lines, "counts in other units than the releases known"));
        fake_stop(&fake);
        free((void *)text);
        free((void *)fake.histogram);
        node_stop(&node);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(cells_are_what_the_dump_has),
                cmocka_unit_test(far_buckets_are_in_the_last_cells),
                cmocka_unit_test(a_cut_dump_is_an_error_up_to_the_last_number),
                cmocka_unit_test(axes_of_another_meaning_are_refused),
                cmocka_unit_test(columns_are_the_cells_that_are_not_0),
                cmocka_unit_test(a_new_cell_is_a_new_column_and_one_that_goes_to_0_stays),
                cmocka_unit_test(other_axes_are_refused_with_one_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
