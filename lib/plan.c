#include "lib/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/config.h"
#include "lib/message.h"
#include "lib/time.h"

#define SECOND_US UINT64_C(1000000)

static const struct plan_source defaults[SOURCE_MAX_] = {
        [SOURCE_DISKSTATS] = {.enabled = true, .interval_us = SECOND_US},
        [SOURCE_OSD] = {.enabled = true, .interval_us = SECOND_US},
        /* One agent of a cluster runs it; the collector says which. OSDs send the pools' totals
         * every 5 s, so that sampling more often reads the same numbers again. */
        [SOURCE_CEPH] = {.enabled = false, .interval_us = 5 * SECOND_US},
        [SOURCE_HOST] = {.enabled = true, .interval_us = 10 * SECOND_US},
        [SOURCE_AGENT] = {.enabled = true, .interval_us = 10 * SECOND_US},
        /* Some hundred numbers an OSD: for who looks for the shape of a load. */
        [SOURCE_OSD_HISTOGRAM] = {.enabled = false, .interval_us = 60 * SECOND_US},
};

void plan_init(struct plan *plan)
{
        *plan = (struct plan){0};
        memcpy(plan->sources, defaults, sizeof(plan->sources));
}

void plan_done(struct plan *plan)
{
        for (size_t i = 0; i < SOURCE_MAX_; i++)
                free(plan->sources[i].metrics);
        memset(plan, 0, sizeof(*plan));
}

int plan_copy(const struct plan *plan, struct plan *ret)
{
        CLEANUP(plan) struct plan copy = *plan;

        for (size_t i = 0; i < SOURCE_MAX_; i++)
                copy.sources[i].metrics = NULL;
        for (size_t i = 0; i < SOURCE_MAX_; i++) {
                const struct plan_source *source = &plan->sources[i];

                if (source->n_metrics == 0)
                        continue;
                copy.sources[i].metrics = malloc(source->n_metrics * sizeof(*source->metrics));
                if (!copy.sources[i].metrics)
                        return -ENOMEM;
                memcpy(copy.sources[i].metrics, source->metrics,
                        source->n_metrics * sizeof(*source->metrics));
        }
        *ret = copy;
        memset(&copy, 0, sizeof(copy));
        return 0;
}

/* "sources.osd.count must be a whole number, but is 1.5". */
static int refuse_value(char **ret_message, const char *source, const char *field, const char *rule,
        const json_t *value)
{
        CLEANUP(str) char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

        if (!text)
                return -ENOMEM;
        return message_refuse(ret_message, "%s%s%s must be %s, but is %.*s%s",
                source ? "sources." : "", source ? source : "", field, rule, message_clip(text),
                text, text[message_clip(text)] ? "..." : "");
}

static int read_interval(
        const json_t *json, const char *name, struct plan_source *source, char **ret_message)
{
        char rule[96], min[TIME_DURATION_MAX], max[TIME_DURATION_MAX];
        const char *text = json_string_value(json);
        uint64_t us = 0;

        if (!text || config_parse_duration(text, &us) == -EINVAL)
                return refuse_value(ret_message, name, ".interval",
                        "a duration such as \"1s\" or \"500ms\"", json);
        snprintf(rule, sizeof(rule), "between %s and %s",
                time_format_duration(PLAN_INTERVAL_MIN_US, min),
                time_format_duration(PLAN_INTERVAL_MAX_US, max));
        /* A duration beyond 64 bits leaves 0, which is out of range as well. */
        if (us < PLAN_INTERVAL_MIN_US || us > PLAN_INTERVAL_MAX_US)
                return refuse_value(ret_message, name, ".interval", rule, json);
        source->interval_us = us;
        return 0;
}

static int read_count(
        const json_t *json, const char *name, struct plan_source *source, char **ret_message)
{
        json_int_t count = json_integer_value(json);

        if (!json_is_integer(json) || count < 0 || (uint64_t)count > PLAN_COUNT_MAX)
                return refuse_value(ret_message, name, ".count",
                        "a whole number up to 9007199254740991, 0 for no end", json);
        source->count = (uint64_t)count;
        return 0;
}

static int read_start(
        const json_t *json, const char *name, struct plan_source *source, char **ret_message)
{
        double seconds = json_number_value(json);

        if (!json_is_number(json) || !(seconds >= 0 && seconds <= TIME_MAX_US / 1e6))
                return refuse_value(ret_message, name, ".start",
                        "a Unix time in seconds before the year 2261, or 0 for at once", json);
        source->start_us = json_is_integer(json)
                                   ? (int64_t)(json_integer_value(json) * (json_int_t)SECOND_US)
                                   : (int64_t)(seconds * 1e6 + 0.5);
        return 0;
}

static int compare_metrics(const void *a, const void *b)
{
        return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

/* Ascending, each once. */
static void sort_metrics(struct plan_source *source)
{
        uint32_t n = 0;

        qsort(source->metrics, source->n_metrics, sizeof(*source->metrics), compare_metrics);
        for (uint32_t i = 0; i < source->n_metrics; i++)
                if (n == 0 || source->metrics[n - 1] != source->metrics[i])
                        source->metrics[n++] = source->metrics[i];
        source->n_metrics = n;
}

/* Who mistypes one gets to see them all. */
static int refuse_metric(char **ret_message, enum source_id id, const char *text)
{
        CLEANUP(str) char *names = NULL;
        size_t size;
        FILE *stream = open_memstream(&names, &size);

        if (!stream)
                return -ENOMEM;
        for (uint32_t i = 0; i <= UINT16_MAX; i++) {
                const struct metric *metric = metric_get((uint16_t)i);

                if (metric && metric->source == id)
                        fprintf(stream, "%s%s", ftell(stream) > 0 ? ", " : "", metric->name);
        }
        if (fclose(stream) != 0)
                return -ENOMEM;
        return message_refuse(ret_message, "sources.%s.metrics: unknown metric '%.*s'; it has: %s",
                source_name(id), message_clip(text), text, names);
}

static int read_metrics(
        const json_t *json, enum source_id id, struct plan_source *source, char **ret_message)
{
        size_t n = json_array_size(json);
        const char *name = source_name(id);

        if (!json_is_array(json))
                return refuse_value(ret_message, name, ".metrics", "a list of names", json);
        if (n > PLAN_METRICS_MAX)
                return message_refuse(ret_message,
                        "sources.%s.metrics must have at most %u names, but has %zu", name,
                        PLAN_METRICS_MAX, n);
        free(source->metrics);
        source->metrics = NULL;
        source->n_metrics = 0;
        if (n == 0)
                return 0;

        source->metrics = malloc(n * sizeof(*source->metrics));
        if (!source->metrics)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const char *text = json_string_value(json_array_get(json, i));
                const struct metric *metric = text ? metric_find(id, text) : NULL;
                char field[32];

                snprintf(field, sizeof(field), ".metrics[%zu]", i);
                if (!text)
                        return refuse_value(
                                ret_message, name, field, "a name", json_array_get(json, i));
                if (!metric)
                        return refuse_metric(ret_message, id, text);
                source->metrics[source->n_metrics++] = metric->id;
        }
        sort_metrics(source);
        return 0;
}

/* "unknown" is the zero id. */
static int read_clusters(const json_t *json, struct plan *plan, char **ret_message)
{
        size_t n = json_array_size(json);

        if (!json_is_array(json) || n > PLAN_CLUSTERS_MAX)
                return refuse_value(
                        ret_message, "ceph", ".clusters", "a list of at most 8 fsids", json);
        for (size_t i = 0; i < n; i++) {
                const char *text = json_string_value(json_array_get(json, i));
                struct id *id = &plan->clusters[i];

                *id = (struct id){0};
                if (!text || (strcmp(text, PLAN_CLUSTER_UNKNOWN) != 0 && id_parse(text, id) < 0))
                        return refuse_value(ret_message, "ceph", ".clusters",
                                "a list of fsids or \"" PLAN_CLUSTER_UNKNOWN "\"", json);
        }
        plan->n_clusters = (uint32_t)n;
        return 0;
}

static int read_field(const char *field, const json_t *json, enum source_id id, struct plan *plan,
        char **ret_message)
{
        struct plan_source *source = &plan->sources[id];
        const char *name = source_name(id);

        if (strcmp(field, "enabled") == 0) {
                if (!json_is_boolean(json))
                        return refuse_value(ret_message, name, ".enabled", "true or false", json);
                source->enabled = json_is_true(json);
                return 0;
        }
        if (strcmp(field, "count") == 0)
                return read_count(json, name, source, ret_message);
        if (strcmp(field, "interval") == 0)
                return read_interval(json, name, source, ret_message);
        if (strcmp(field, "start") == 0)
                return read_start(json, name, source, ret_message);
        if (strcmp(field, "metrics") == 0)
                return read_metrics(json, id, source, ret_message);
        if (strcmp(field, "clusters") == 0 && id == SOURCE_CEPH)
                return read_clusters(json, plan, ret_message);
        return message_refuse(ret_message,
                "sources.%s has no field '%.*s'; it has: enabled, interval, count, start, metrics",
                name, message_clip(field), field);
}

static int refuse_source(char **ret_message, const char *text)
{
        char names[128] = "";
        size_t used = 0;

        for (int i = SOURCE_NONE + 1; i < SOURCE_MAX_ && used < sizeof(names); i++)
                used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                        used ? ", " : "", source_name((enum source_id)i));
        return message_refuse(ret_message, "sources: unknown source '%.*s'; there are: %s",
                message_clip(text), text, names);
}

static int read_source(const char *name, const json_t *json, struct plan *plan, char **ret_message)
{
        enum source_id id;
        const char *field;
        const json_t *value;

        if (source_parse(name, &id) < 0)
                return refuse_source(ret_message, name);
        if (!json_is_object(json))
                return refuse_value(ret_message, name, "", "an object", json);
        json_object_foreach ((json_t *)json, field, value) {
                int r = read_field(field, value, id, plan, ret_message);

                if (r < 0)
                        return r;
        }
        return 0;
}

int plan_from_json(const json_t *json, struct plan *ret, char **ret_message)
{
        const json_t *revision = json_object_get(json, "revision");
        const json_t *sources = json_object_get(json, "sources");
        CLEANUP(plan) struct plan plan = {0};
        const char *name;
        const json_t *source;

        *ret_message = NULL;
        plan_init(&plan);
        if (!json_is_object(json))
                return message_refuse(ret_message, "a plan must be a JSON object");
        if (revision && (!json_is_integer(revision) || json_integer_value(revision) < 0))
                return refuse_value(ret_message, NULL, "revision", "a whole number", revision);
        if (sources && !json_is_object(sources))
                return refuse_value(ret_message, NULL, "sources", "an object", sources);

        plan.revision = json_integer_value(revision);
        json_object_foreach ((json_t *)sources, name, source) {
                int r = read_source(name, source, &plan, ret_message);

                if (r < 0)
                        return r;
        }
        *ret = plan;
        memset(&plan, 0, sizeof(plan));
        return 0;
}

static json_t *metrics_to_json(const struct plan_source *source)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < source->n_metrics; i++) {
                const struct metric *metric = metric_get(source->metrics[i]);

                if (metric && json_array_append_new(list, json_string(metric->name)) < 0) {
                        json_decref(list);
                        return NULL;
                }
        }
        return list;
}

static json_t *start_to_json(int64_t start_us)
{
        if (start_us % (int64_t)SECOND_US == 0)
                return json_integer(start_us / (int64_t)SECOND_US);
        return json_real((double)start_us / 1e6);
}

static json_t *source_to_json(const struct plan_source *source)
{
        char interval[TIME_DURATION_MAX];

        return json_pack("{s:b, s:s, s:I, s:o, s:o}", "enabled", source->enabled, "interval",
                time_format_duration(source->interval_us, interval), "count",
                (json_int_t)source->count, "start", start_to_json(source->start_us), "metrics",
                metrics_to_json(source));
}

static int clusters_to_json(const struct plan *plan, json_t *ceph)
{
        json_t *list;

        if (plan->n_clusters == 0)
                return 0;
        list = json_array();
        for (uint32_t i = 0; i < plan->n_clusters; i++) {
                const struct id *id = &plan->clusters[i];
                char text[ID_TEXT_MAX];

                json_array_append_new(list,
                        json_string(id_is_zero(id) ? PLAN_CLUSTER_UNKNOWN : id_format(id, text)));
        }
        return json_object_set_new(ceph, "clusters", list);
}

int plan_to_json(const struct plan *plan, json_t **ret)
{
        json_t *sources, *json;

        json = json_pack("{s:I, s:{}}", "revision", (json_int_t)plan->revision, "sources");
        if (!json)
                return -ENOMEM;
        sources = json_object_get(json, "sources");
        for (int i = SOURCE_NONE + 1; i < SOURCE_MAX_; i++) {
                json_t *source = source_to_json(&plan->sources[i]);

                if (json_object_set_new(sources, source_name(i), source) < 0 ||
                        (i == SOURCE_CEPH && clusters_to_json(plan, source) < 0)) {
                        json_decref(json);
                        return -ENOMEM;
                }
        }
        *ret = json;
        return 0;
}

bool plan_wants(const struct plan_source *source, uint16_t metric)
{
        if (source->n_metrics == 0)
                return true;
        return bsearch(&metric, source->metrics, source->n_metrics, sizeof(metric),
                       compare_metrics) != NULL;
}

bool plan_wants_cluster(const struct plan *plan, const struct id *cluster)
{
        for (uint32_t i = 0; i < plan->n_clusters; i++)
                if (id_equal(&plan->clusters[i], cluster))
                        return true;
        return plan->n_clusters == 0;
}
