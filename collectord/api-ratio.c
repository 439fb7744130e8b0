/* GET /ratio: two layers, their ratio and what it should be, over time. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/api-query.h"
#include "collectord/api-select.h"
#include "collectord/csv.h"
#include "collectord/layers.h"

enum by { BY_CLUSTER, BY_CLASS, BY_HOST, BY_OSD, BY_POOL, BY_DEVICE };

struct ratio_request {
        enum layer upper, lower;
        unsigned direction, measure, by;
        struct api_selection selection;
        bool csv;
        struct api_window window;
        struct rung_windows windows;
        uint32_t cluster;
};

static const char *const direction_names[] = {"write", "read"};
static const char *const measure_names[] = {"bytes", "ops"};
static const char *const by_names[] = {"cluster", "class", "host", "osd", "pool", "device"};

static int refuse(int r)
{
        return r < 0 ? r : 1;
}

static int check_layers(const struct ratio_request *ratio, const struct api_request *request,
        struct api_response *response)
{
        const char *upper = layer_name(ratio->upper), *lower = layer_name(ratio->lower);

        if (ratio->upper >= ratio->lower)
                return refuse(api_problem(request, response, 400,
                        "upper must be a layer above lower, but upper is '%s' and lower is '%s'",
                        upper, lower));
        if (ratio->upper == LAYER_FILESYSTEM && ratio->by != BY_CLUSTER && ratio->by != BY_POOL)
                return refuse(api_problem(request, response, 400,
                        "clients write to a pool and not to one %s: with by=%s, upper must be osd "
                        "or objectstore",
                        by_names[ratio->by], by_names[ratio->by]));
        if (ratio->lower != LAYER_STORAGE && ratio->by == BY_DEVICE)
                return refuse(api_problem(request, response, 400,
                        "only the storage layer has devices: with by=device, lower must be "
                        "storage"));
        if (ratio->upper != LAYER_FILESYSTEM && ratio->by == BY_POOL)
                return refuse(api_problem(request, response, 400,
                        "only the filesystem layer has pools: with by=pool, upper must be "
                        "filesystem"));
        return 0;
}

static int parse(
        const struct api_request *request, struct api_response *response, struct ratio_request *ret)
{
        int r;

        r = api_query_layer(request, response, "upper", "filesystem", &ret->upper);
        if (r != 0)
                return r;
        r = api_query_layer(request, response, "lower", "storage", &ret->lower);
        if (r != 0)
                return r;
        r = api_parse_choice(
                request, response, "direction", "write read", "write", &ret->direction);
        if (r != 0)
                return r;
        r = api_parse_choice(request, response, "measure", "bytes ops", "bytes", &ret->measure);
        if (r != 0)
                return r;
        r = api_parse_choice(
                request, response, "by", "cluster class host osd pool device", "cluster", &ret->by);
        if (r != 0)
                return r;
        r = check_layers(ret, request, response);
        if (r != 0)
                return r;
        r = api_select_parse(request, response, &ret->selection);
        if (r != 0)
                return r;
        ret->csv = request->csv;
        return api_parse_window(request, response, "-15m", &ret->window);
}

/* ---- writing ---- */

struct series {
        const char *key; /* by device "host/device" */
        bool lower;      /* there is one: not by pool */
        struct ratio_input *inputs;
        struct ratio_point *points;
};

static void write_numbers(
        struct text *text, const char *name, const struct series *series, uint32_t n, size_t offset)
{
        text_format(text, ",\"%s\":[", name);
        for (uint32_t i = 0; i < n; i++) {
                if (i > 0)
                        text_add(text, ",");
                text_number(text, *(const double *)((const char *)&series->points[i] + offset));
        }
        text_add(text, "]");
}

static void write_details(
        struct text *text, const struct series *series, uint32_t n, const char *fixed)
{
        char detail[RATIO_DETAIL_MAX];

        text_add(text, ",\"state\":[");
        for (uint32_t i = 0; i < n; i++) {
                text_add(text, i > 0 ? ",\"" : "\"");
                text_add(text, rung_state_name(series->points[i].state));
                text_add(text, "\"");
        }
        text_add(text, "],\"detail\":[");
        for (uint32_t i = 0; i < n; i++) {
                bool some = ratio_detail(
                        &series->inputs[i], series->points[i].state, detail, sizeof(detail));

                if (i > 0)
                        text_add(text, ",");
                text_string(text, fixed ? fixed : some ? detail : NULL);
        }
        text_add(text, "]");
}

static void write_series(struct text *text, const struct series *series,
        const struct rung_windows *windows, const char *fixed_detail)
{
        uint32_t n = windows->n;

        text_add(text, "{\"key\":");
        text_string(text, series->key);
        text_add(text, ",");
        api_query_times(text, windows);
        write_numbers(text, "upper", series, n, offsetof(struct ratio_point, upper));
        write_numbers(text, "lower", series, n, offsetof(struct ratio_point, lower));
        write_numbers(text, "ratio", series, n, offsetof(struct ratio_point, ratio));
        write_numbers(
                text, "amplification", series, n, offsetof(struct ratio_point, amplification));
        write_numbers(text, "expected", series, n, offsetof(struct ratio_point, expected));
        write_numbers(text, "excess", series, n, offsetof(struct ratio_point, excess));
        write_details(text, series, n, fixed_detail);
        text_add(text, "}");
}

static void write_rows(struct text *text, const struct series *series,
        const struct rung_windows *windows, const char *fixed)
{
        char detail[RATIO_DETAIL_MAX];

        for (uint32_t i = 0; i < windows->n; i++) {
                const struct ratio_point *point = &series->points[i];
                bool some = ratio_detail(&series->inputs[i], point->state, detail, sizeof(detail));

                csv_string(text, series->key);
                csv_time(text, api_query_window(windows, i));
                csv_number(text, point->upper);
                csv_number(text, point->lower);
                csv_number(text, point->ratio);
                csv_number(text, point->amplification);
                csv_number(text, point->expected);
                csv_number(text, point->excess);
                csv_string(text, rung_state_name(point->state));
                csv_string(text, fixed ? fixed : some ? detail : NULL);
                csv_end_line(text);
        }
}

/* By pool there is no lower rung: devices do not know pools. The upper one speaks for itself. */
static void compute_pool(struct ratio_input *input, struct ratio_point *point)
{
        enum rung_state state = ratio_rung_state(&input->upper);

        *point = (struct ratio_point){
                .upper = state == RUNG_GAP ? NAN : input->upper.sum / input->seconds,
                .lower = NAN,
                .ratio = NAN,
                .amplification = NAN,
                .expected = input->expected,
                .excess = NAN,
                .state = state,
        };
        /* So that the sentences do not miss it. */
        input->lower = (struct ratio_rung){.layer = LAYER_OSD, .seen = 1};
}

static void compute(const struct layers *layers, const struct layers_target *target,
        const struct ratio_request *ratio, uint32_t window, struct ratio_input *ret_input,
        struct ratio_point *ret_point)
{
        layers_ratio(layers, target, ratio->upper, ratio->lower, ratio->direction, ratio->measure,
                window, ret_input);
        if (ratio->by == BY_POOL)
                compute_pool(ret_input, ret_point);
        else
                ratio_compute(ret_input, ret_point);
}

static int write_target(struct text *text, const struct query *query, const struct layers *layers,
        const struct layers_target *target, const struct ratio_request *ratio)
{
        uint32_t n = ratio->windows.n;
        CLEANUP(mem) struct ratio_input *inputs = calloc(n + 1, sizeof(*inputs));
        CLEANUP(mem) struct ratio_point *points = calloc(n + 1, sizeof(*points));
        CLEANUP(str) char *key = api_select_key(target->host, target->key);
        struct series series = {key, ratio->by != BY_POOL, inputs, points};
        bool none = id_is_zero(&query->topology->clusters[ratio->cluster].fsid);
        const char *fixed =
                none ? "These hosts have no Ceph cluster: there is only a storage layer." : NULL;

        if (!inputs || !points || !key)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                compute(layers, target, ratio, i, &inputs[i], &points[i]);
        if (ratio->csv)
                write_rows(text, &series, &ratio->windows, fixed);
        else
                write_series(text, &series, &ratio->windows, fixed);
        return 0;
}

static void write_head(
        struct text *text, const struct query *query, const struct ratio_request *ratio)
{
        char fsid[ID_TEXT_MAX];

        if (ratio->csv) {
                text_add(text, "key,t,upper,lower,ratio,amplification,expected,excess,state,"
                               "detail\r\n");
                return;
        }
        text_format(text,
                "{\"cluster\":\"%s\",\"upper\":\"%s\",\"lower\":\"%s\",\"direction\":\"%s\","
                "\"measure\":\"%s\",\"by\":\"%s\"",
                api_query_fsid(query, ratio->cluster, fsid), layer_name(ratio->upper),
                layer_name(ratio->lower), direction_names[ratio->direction],
                measure_names[ratio->measure], by_names[ratio->by]);
        api_query_span(text, &ratio->window);
        text_add(text, ",\"series\":[");
}

/* Of what the lower layer did, or by pool the upper one. */
static double mean_of(const struct layers *layers, const struct layers_target *target,
        const struct ratio_request *ratio)
{
        double sum = 0;
        uint32_t known = 0;

        for (uint32_t i = 0; i < ratio->windows.n; i++) {
                struct ratio_input input;
                struct ratio_point point;
                double value;

                compute(layers, target, ratio, i, &input, &point);
                value = ratio->by == BY_POOL ? point.upper : point.lower;
                if (isnan(value))
                        continue;
                sum += value;
                known++;
        }
        return known ? sum / known : NAN;
}

static int write_targets(struct text *text, const struct query *query, const struct layers *layers,
        const struct ratio_request *ratio, const struct api_candidate *chosen, size_t n)
{
        const struct layers_target *targets;
        size_t all;

        targets = layers_get_targets(layers, &all);
        if ((uint64_t)n * ratio->windows.n > API_POINTS_MAX)
                return -E2BIG;
        for (size_t i = 0; i < n; i++) {
                int r = query_check_deadline(query);

                if (r < 0)
                        return r;
                if (i > 0 && !ratio->csv)
                        text_add(text, ",");
                r = write_target(text, query, layers, &targets[chosen[i].index], ratio);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int list_targets(const struct layers *layers, const struct ratio_request *ratio,
        struct api_candidate **ret, size_t *ret_count)
{
        const struct layers_target *targets;
        struct api_candidate *list;
        size_t n;

        targets = layers_get_targets(layers, &n);
        list = calloc(n + 1, sizeof(*list));
        for (size_t i = 0; list && i < n; i++) {
                list[i].index = (uint32_t)i;
                list[i].mean = ratio->selection.top ? mean_of(layers, &targets[i], ratio) : NAN;
                list[i].key = api_select_key(targets[i].host, targets[i].key);
                if (!list[i].key) {
                        api_select_done(list, n);
                        return -ENOMEM;
                }
        }
        *ret = list;
        *ret_count = n;
        return list ? 0 : -ENOMEM;
}

static int write_all(struct text *text, const struct query *query, const struct layers *layers,
        const struct ratio_request *ratio)
{
        struct api_candidate *list;
        const struct api_candidate *chosen;
        const char *cursor;
        size_t all, n;
        int r;

        r = list_targets(layers, ratio, &list, &all);
        if (r < 0)
                return r;
        chosen = api_select(&ratio->selection, list, all, &n, &cursor);
        r = write_targets(text, query, layers, ratio, chosen, n);
        if (r == 0 && ratio->selection.paged && !ratio->csv) {
                text_add(text, "],\"cursor\":");
                text_string(text, cursor);
        }
        api_select_done(list, all);
        return r;
}

static int answer(
        const struct query *query, const struct ratio_request *ratio, char **ret, size_t *ret_size)
{
        static const enum query_by bys[] = {[BY_CLUSTER] = QUERY_BY_CLUSTER,
                [BY_CLASS] = QUERY_BY_CLASS,
                [BY_HOST] = QUERY_BY_HOST,
                [BY_OSD] = QUERY_BY_OSD,
                [BY_POOL] = QUERY_BY_POOL,
                [BY_DEVICE] = QUERY_BY_DEVICE};
        struct layers_spec spec = {
                .cluster = ratio->cluster,
                .windows = ratio->windows,
                .by = bys[ratio->by],
                .layers = LAYERS_BIT(ratio->upper),
                .directions = 1u << ratio->direction,
                .measures = 1u << ratio->measure,
        };
        CLEANUP(layers) struct layers *layers = NULL;
        struct text storage = {0};
        CLEANUP(text_object) struct text *text = &storage;
        int r;

        if (ratio->by != BY_POOL)
                spec.layers |= LAYERS_BIT(ratio->lower);
        if (ratio->windows.n > 0) {
                r = layers_open(query, &spec, &layers);
                if (r < 0)
                        return r;
        }
        write_head(text, query, ratio);
        if (layers) {
                r = write_all(text, query, layers, ratio);
                if (r < 0)
                        return r;
        }
        if (!ratio->csv)
                text_add(text, layers && ratio->selection.paged ? "}" : "]}");
        return text_take(text, ret, ret_size);
}

int api_ratio(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        CLEANUP(query) struct query *query = NULL;
        struct ratio_request ratio = {0};
        unsigned layers;
        size_t size = 0;
        char *body = NULL;
        int r;

        r = parse(request, response, &ratio);
        if (r != 0)
                return r < 0 ? r : 0;
        r = query_open(reader, request->now_us, request->deadline_us, &query);
        if (r < 0)
                return api_query_problem(request, response, r);
        r = api_query_cluster(query, request, response, &ratio.cluster);
        if (r != 0)
                return r < 0 ? r : 0;
        layers = LAYERS_BIT(ratio.upper);
        if (ratio.by != BY_POOL)
                layers |= LAYERS_BIT(ratio.lower);
        api_query_trim(query, ratio.cluster, layers_sources(layers), &ratio.window, &ratio.windows);
        r = answer(query, &ratio, &body, &size);
        if (r < 0)
                return api_query_problem(request, response, r);
        return ratio.csv ? api_csv(response, body, size) : api_text(response, 200, body, size);
}
