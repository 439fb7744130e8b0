/* GET /series: curves of a layer, derived metrics or raw ones, summed or one for each. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/api-query.h"
#include "collectord/api-select.h"
#include "collectord/csv.h"
#include "collectord/series.h"

#define METRICS_MAX 16u
#define METRIC_NAME_MAX 64u

enum by { BY_DEFAULT, BY_CLUSTER, BY_HOST, BY_CLASS, BY_POOL, BY_OSD, BY_DEVICE };

struct series_request {
        enum layer layer; /* LAYER_NONE: host */
        unsigned by;
        enum query_by query_by;
        struct api_selection selection;
        bool csv;
        unsigned extremes;
        const char *entity, *host;
        struct series_definition metrics[METRICS_MAX];
        uint32_t first_slot[METRICS_MAX];
        uint32_t n_metrics;
        struct rung_term terms[RUNG_COLUMNS_MAX];
        uint32_t n_terms, n_slots;
        struct api_window window;
        struct rung_windows windows;
        uint32_t cluster;
};

static int refuse(int r)
{
        return r < 0 ? r : 1;
}

/* All metrics are read in one pass: their slots stand one after the other. */
static int add_metric(const struct api_request *request, struct api_response *response,
        struct series_request *series, const char *name)
{
        struct series_definition *metric = &series->metrics[series->n_metrics];

        if (series->n_metrics == METRICS_MAX)
                return refuse(api_problem(
                        request, response, 400, "metric names more than %u metrics", METRICS_MAX));
        if (series_find(series->layer, name, metric) < 0)
                return refuse(api_problem(request, response, 400,
                        "metric: the layer %s has no '%s'",
                        series->layer == LAYER_NONE ? "host" : layer_name(series->layer), name));
        if (metric->source != series->metrics[0].source)
                return refuse(api_problem(request, response, 400,
                        "metric: '%s' and '%s' come from different sources; ask for them one after "
                        "the other",
                        series->metrics[0].name, name));
        if (series->n_terms + metric->n_terms > RUNG_COLUMNS_MAX ||
                series->n_slots + metric->n_slots > RUNG_SLOTS_MAX)
                return refuse(api_problem(request, response, 400, "metric names too many metrics"));
        series->first_slot[series->n_metrics++] = series->n_slots;
        for (uint32_t i = 0; i < metric->n_terms; i++) {
                struct rung_term *term = &series->terms[series->n_terms++];

                *term = metric->terms[i];
                term->slot += series->n_slots;
                /* A partition without flushes still has its writes. */
                if (term->need == RUNG_NEED_ENTITY)
                        term->need = RUNG_NEED_SLOT;
        }
        series->n_slots += metric->n_slots;
        return 0;
}

static int parse_metrics(const struct api_request *request, struct api_response *response,
        struct series_request *series)
{
        const char *text = api_parameter(request, "metric");
        int r;

        if (!text || !*text)
                return refuse(api_problem(request, response, 400,
                        "the parameter metric is missing, e.g. write_bytes"));
        for (const char *p = text; *p;) {
                char name[METRIC_NAME_MAX];
                size_t n = strcspn(p, ",");

                snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : 63), p);
                r = add_metric(request, response, series, name);
                if (r != 0)
                        return r;
                p += n + (p[n] == ',');
        }
        return 0;
}

static int parse_by(const struct api_request *request, struct api_response *response,
        struct series_request *series)
{
        static const enum query_by bys[] = {
                [BY_DEFAULT] = QUERY_BY_CLUSTER,
                [BY_CLUSTER] = QUERY_BY_CLUSTER,
                [BY_HOST] = QUERY_BY_HOST,
                [BY_CLASS] = QUERY_BY_CLASS,
                [BY_POOL] = QUERY_BY_POOL,
                [BY_OSD] = QUERY_BY_OSD,
                [BY_DEVICE] = QUERY_BY_DEVICE,
        };
        /* Which groups a layer's entities can be put into. */
        static const unsigned allowed[LAYER_MAX_] = {
                [LAYER_NONE] = 1u << BY_CLUSTER | 1u << BY_HOST | 1u << BY_DEVICE,
                [LAYER_FILESYSTEM] = 1u << BY_CLUSTER | 1u << BY_POOL,
                [LAYER_OSD] = 1u << BY_CLUSTER | 1u << BY_HOST | 1u << BY_CLASS | 1u << BY_OSD,
                [LAYER_OBJECTSTORE] =
                        1u << BY_CLUSTER | 1u << BY_HOST | 1u << BY_CLASS | 1u << BY_OSD,
                [LAYER_STORAGE] = 1u << BY_CLUSTER | 1u << BY_HOST | 1u << BY_CLASS | 1u << BY_OSD |
                                  1u << BY_DEVICE,
        };
        int r;

        r = api_parse_choice(request, response, "by", "default cluster host class pool osd device",
                "default", &series->by);
        if (r != 0)
                return r;
        series->query_by = bys[series->by];
        if (series->by == BY_DEFAULT) {
                if (series->entity)
                        series->query_by = QUERY_BY_ENTITY;
                return 0;
        }
        if (!(allowed[series->layer] & 1u << series->by))
                return refuse(api_problem(request, response, 400,
                        "by=%s makes no sense for the layer %s", api_parameter(request, "by"),
                        series->layer == LAYER_NONE ? "host" : layer_name(series->layer)));
        return 0;
}

static int parse(const struct api_request *request, struct api_response *response,
        struct series_request *ret)
{
        static const enum layer layers[] = {
                LAYER_FILESYSTEM, LAYER_OSD, LAYER_OBJECTSTORE, LAYER_STORAGE, LAYER_NONE};
        unsigned index;
        int r;

        r = api_parse_choice(request, response, "layer", "filesystem osd objectstore storage host",
                NULL, &index);
        if (r != 0)
                return r;
        ret->layer = layers[index];
        ret->entity = api_parameter(request, "entity");
        ret->host = api_parameter(request, "host");
        ret->csv = request->csv;
        r = parse_metrics(request, response, ret);
        if (r != 0)
                return r;
        r = parse_by(request, response, ret);
        if (r != 0)
                return r;
        r = api_select_parse(request, response, &ret->selection);
        if (r != 0)
                return r;
        r = api_parse_choice(request, response, "extremes", "no yes", "no", &ret->extremes);
        if (r != 0)
                return r;
        return api_parse_window(request, response, "-15m", &ret->window);
}

/* ---- values ---- */

static double value_at(const struct series_request *series, const struct query_result *result,
        uint32_t target, uint32_t metric, uint32_t window)
{
        const struct series_definition *definition = &series->metrics[metric];
        double sums[SERIES_SLOTS_MAX];

        for (uint32_t i = 0; i < definition->n_slots; i++)
                sums[i] = rung_sum(result->table, target, series->first_slot[metric] + i, window);
        return series_value(definition, sums, (double)series->windows.step_us / 1e6,
                result->table->targets[target].seen[window],
                result->targets[target].compaction_bytes);
}

static enum rung_state state_at(const struct query_result *result, uint32_t target, uint32_t window,
        double value, bool lagging)
{
        const struct rung_target *t = &result->table->targets[target];
        struct ratio_rung rung = {
                .sum = value,
                .seen = t->seen[window],
                .reset = t->reset[window],
                .expected = result->targets[target].expected,
                .shared = result->targets[target].shared,
                .lagging = lagging,
        };

        /* A mean over no requests has no value, and the samples are there all the same. */
        if (isnan(value) && rung.seen > 0)
                return RUNG_IDLE;
        return ratio_rung_state(&rung);
}

/* Of the first metric. */
static double mean_of(
        const struct series_request *series, const struct query_result *result, uint32_t target)
{
        double sum = 0;
        uint32_t known = 0;

        for (uint32_t window = 0; window < series->windows.n; window++) {
                double value = value_at(series, result, target, 0, window);

                if (isnan(value))
                        continue;
                sum += value;
                known++;
        }
        return known ? sum / known : NAN;
}

static int list_targets(const struct series_request *series, const struct query_result *result,
        struct api_candidate **ret)
{
        uint32_t n = result->table->n_targets;
        struct api_candidate *list = calloc(n + 1, sizeof(*list));

        for (uint32_t i = 0; list && i < n; i++) {
                const struct query_target *target = &result->targets[i];

                list[i].index = i;
                list[i].mean = series->selection.top ? mean_of(series, result, i) : NAN;
                list[i].key = api_select_key(target->host, target->key);
                if (!list[i].key) {
                        api_select_done(list, n);
                        return -ENOMEM;
                }
        }
        *ret = list;
        return list ? 0 : -ENOMEM;
}

/*
 * The lowest or highest rate from row to row in a window. Of one entity and of one counter: that of
 * a sum is not known from those of its parts.
 */
static double extreme_at(const struct series_request *series, const struct query_result *result,
        uint32_t target, uint32_t metric, uint32_t window, bool highest)
{
        const struct series_definition *definition = &series->metrics[metric];
        const struct rung_target *t = &result->table->targets[target];
        size_t at = (size_t)series->first_slot[metric] * series->windows.n + window;

        if (t->seen[window] != 1 || definition->n_terms != 1 ||
                (definition->kind != SERIES_RATE && definition->kind != SERIES_FRACTION))
                return NAN;
        return highest ? t->high[at] : t->low[at];
}

static void write_extremes(struct text *text, const struct series_request *series,
        const struct query_result *result, uint32_t target, uint32_t metric, const char *name)
{
        text_format(text, "],\"%s\":[", name);
        for (uint32_t i = 0; i < series->windows.n; i++) {
                if (i > 0)
                        text_add(text, ",");
                text_number(text,
                        extreme_at(series, result, target, metric, i, strcmp(name, "max") == 0));
        }
}

static void write_series(struct text *text, const struct series_request *series,
        const struct query_result *result, uint32_t target, uint32_t metric, bool lagging)
{
        const struct series_definition *definition = &series->metrics[metric];
        uint32_t n = series->windows.n;

        text_add(text, "{\"key\":");
        text_string(text, result->targets[target].key);
        text_add(text, ",\"host\":");
        text_string(text, result->targets[target].host);
        text_format(
                text, ",\"metric\":\"%s\",\"unit\":\"%s\",", definition->name, definition->unit);
        api_query_times(text, &series->windows);
        text_add(text, ",\"value\":[");
        for (uint32_t i = 0; i < n; i++) {
                if (i > 0)
                        text_add(text, ",");
                text_number(text, value_at(series, result, target, metric, i));
        }
        if (series->extremes) {
                write_extremes(text, series, result, target, metric, "min");
                write_extremes(text, series, result, target, metric, "max");
        }
        text_add(text, "],\"state\":[");
        for (uint32_t i = 0; i < n; i++) {
                double value = value_at(series, result, target, metric, i);

                text_add(text, i > 0 ? ",\"" : "\"");
                text_add(text, rung_state_name(state_at(result, target, i, value, lagging)));
                text_add(text, "\"");
        }
        text_add(text, "]}");
}

static void write_rows(struct text *text, const struct series_request *series,
        const struct query_result *result, uint32_t target, uint32_t metric, bool lagging)
{
        const struct series_definition *definition = &series->metrics[metric];

        for (uint32_t i = 0; i < series->windows.n; i++) {
                double value = value_at(series, result, target, metric, i);

                csv_string(text, result->targets[target].key);
                csv_string(text, result->targets[target].host);
                csv_string(text, definition->name);
                csv_string(text, definition->unit);
                csv_time(text, api_query_window(&series->windows, i));
                csv_number(text, value);
                if (series->extremes) {
                        csv_number(text, extreme_at(series, result, target, metric, i, false));
                        csv_number(text, extreme_at(series, result, target, metric, i, true));
                }
                csv_string(text, rung_state_name(state_at(result, target, i, value, lagging)));
                csv_end_line(text);
        }
}

static bool is_lagging(const struct query *query, const struct series_request *series)
{
        const struct facts_cluster *facts = query->topology->clusters[series->cluster].facts;

        return series->layer == LAYER_FILESYSTEM && facts &&
               series->windows.step_us < 2 * facts->mgr_stats_period_us;
}

static int write_targets(struct text *text, const struct query *query,
        const struct series_request *series, const struct query_result *result,
        const struct api_candidate *chosen, size_t n)
{
        bool lagging = is_lagging(query, series);

        if ((uint64_t)n * series->n_metrics * series->windows.n > API_POINTS_MAX)
                return -E2BIG;
        for (size_t i = 0; i < n * series->n_metrics; i++) {
                uint32_t target = chosen[i / series->n_metrics].index;
                uint32_t metric = (uint32_t)(i % series->n_metrics);
                int r = query_check_deadline(query);

                if (r < 0)
                        return r;
                if (series->csv) {
                        write_rows(text, series, result, target, metric, lagging);
                        continue;
                }
                if (i > 0)
                        text_add(text, ",");
                write_series(text, series, result, target, metric, lagging);
        }
        return 0;
}

static int write_all(struct text *text, const struct query *query,
        const struct series_request *series, const struct query_result *result)
{
        struct api_candidate *list;
        const struct api_candidate *chosen;
        const char *cursor;
        size_t n;
        int r;

        r = list_targets(series, result, &list);
        if (r < 0)
                return r;
        chosen = api_select(&series->selection, list, result->table->n_targets, &n, &cursor);
        r = write_targets(text, query, series, result, chosen, n);
        if (r == 0 && series->selection.paged && !series->csv) {
                text_add(text, "],\"cursor\":");
                text_string(text, cursor);
        }
        api_select_done(list, result->table->n_targets);
        return r;
}

#define ENTITY_UNKNOWN 1

static void write_head(
        struct text *text, const struct query *query, const struct series_request *series)
{
        char fsid[ID_TEXT_MAX];

        if (series->csv) {
                text_format(text, "key,host,metric,unit,t,value,%sstate\r\n",
                        series->extremes ? "min,max," : "");
                return;
        }
        text_format(text, "{\"cluster\":\"%s\",\"layer\":\"%s\"",
                api_query_fsid(query, series->cluster, fsid),
                series->layer == LAYER_NONE ? "host" : layer_name(series->layer));
        api_query_span(text, &series->window);
        text_add(text, ",\"series\":[");
}

static int answer(const struct query *query, const struct series_request *series, char **ret,
        size_t *ret_size)
{
        struct query_spec spec = {
                .cluster = series->cluster,
                .source = series->metrics[0].source,
                .windows = series->windows,
                .by = series->query_by,
                .terms = series->terms,
                .n_terms = series->n_terms,
                .entity = series->entity,
                .host = series->host,
                .extremes = series->extremes,
        };
        CLEANUP(query_result) struct query_result *result = NULL;
        struct text storage = {0};
        CLEANUP(text_object) struct text *text = &storage;
        int r;

        write_head(text, query, series);
        if (series->windows.n > 0) {
                r = query_run(query, &spec, &result);
                if (r < 0)
                        return r;
                if (series->entity && result->table->n_targets == 0)
                        return ENTITY_UNKNOWN;
                r = write_all(text, query, series, result);
                if (r < 0)
                        return r;
        }
        if (!series->csv)
                text_add(text, series->selection.paged && series->windows.n > 0 ? "}" : "]}");
        return text_take(text, ret, ret_size);
}

int api_series(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        CLEANUP(query) struct query *query = NULL;
        struct series_request series = {0};
        size_t size = 0;
        char *body = NULL;
        int r;

        r = parse(request, response, &series);
        if (r != 0)
                return r < 0 ? r : 0;
        r = query_open(reader, request->now_us, request->deadline_us, &query);
        if (r < 0)
                return api_query_problem(request, response, r);
        r = api_query_cluster(query, request, response, &series.cluster);
        if (r != 0)
                return r < 0 ? r : 0;
        api_query_trim(query, series.cluster, 1u << series.metrics[0].source, &series.window,
                &series.windows);
        r = answer(query, &series, &body, &size);
        if (r == ENTITY_UNKNOWN)
                return api_problem(request, response, 404,
                        "the layer %s of this cluster has no '%s' in this time",
                        api_parameter(request, "layer"), series.entity);
        if (r < 0)
                return api_query_problem(request, response, r);
        return series.csv ? api_csv(response, body, size) : api_text(response, 200, body, size);
}
