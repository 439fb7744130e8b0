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
};

void plan_init(struct plan *plan)
{
        plan->revision = 0;
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

static int read_interval(
        const json_t *json, const char *name, struct plan_source *source, char **ret_message)
{
        char min[TIME_DURATION_MAX], max[TIME_DURATION_MAX];
        uint64_t us = 0;

        if (!json_is_string(json) || config_parse_duration(json_string_value(json), &us) == -EINVAL)
                return message_refuse(ret_message,
                        "sources.%s.interval must be a duration such as \"1s\" or \"500ms\"", name);
        /* A duration beyond 64 bits leaves 0, which is out of range as well. */
        if (us < PLAN_INTERVAL_MIN_US || us > PLAN_INTERVAL_MAX_US)
                return message_refuse(ret_message,
                        "sources.%s.interval must be between %s and %s, but is '%.*s'", name,
                        time_format_duration(PLAN_INTERVAL_MIN_US, min),
                        time_format_duration(PLAN_INTERVAL_MAX_US, max),
                        message_clip(json_string_value(json)), json_string_value(json));
        source->interval_us = us;
        return 0;
}

static int read_start(
        const json_t *json, const char *name, struct plan_source *source, char **ret_message)
{
        double seconds = json_number_value(json);

        if (!json_is_number(json) || !(seconds >= 0 && seconds <= TIME_MAX_US / 1e6))
                return message_refuse(ret_message,
                        "sources.%s.start must be a Unix time in seconds, or 0 for at once", name);
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

static int read_metrics(
        const json_t *json, enum source_id id, struct plan_source *source, char **ret_message)
{
        size_t n = json_array_size(json);
        const char *name = source_name(id);

        if (!json_is_array(json))
                return message_refuse(
                        ret_message, "sources.%s.metrics must be a list of names", name);
        if (n > PLAN_METRICS_MAX)
                return message_refuse(ret_message, "sources.%s.metrics must have at most %u names",
                        name, PLAN_METRICS_MAX);
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

                if (!text)
                        return message_refuse(
                                ret_message, "sources.%s.metrics[%zu] must be a name", name, i);
                if (!metric)
                        return message_refuse(ret_message,
                                "sources.%s.metrics: unknown metric '%.*s'", name,
                                message_clip(text), text);
                source->metrics[source->n_metrics++] = metric->id;
        }
        sort_metrics(source);
        return 0;
}

static int read_field(const char *field, const json_t *json, enum source_id id,
        struct plan_source *source, char **ret_message)
{
        const char *name = source_name(id);

        if (strcmp(field, "enabled") == 0) {
                if (!json_is_boolean(json))
                        return message_refuse(
                                ret_message, "sources.%s.enabled must be true or false", name);
                source->enabled = json_is_true(json);
                return 0;
        }
        if (strcmp(field, "count") == 0) {
                if (!json_is_integer(json) || json_integer_value(json) < 0)
                        return message_refuse(ret_message,
                                "sources.%s.count must be a whole number, 0 for no end", name);
                source->count = json_integer_value(json);
                return 0;
        }
        if (strcmp(field, "interval") == 0)
                return read_interval(json, name, source, ret_message);
        if (strcmp(field, "start") == 0)
                return read_start(json, name, source, ret_message);
        if (strcmp(field, "metrics") == 0)
                return read_metrics(json, id, source, ret_message);
        return message_refuse(
                ret_message, "sources.%s has no field '%.*s'", name, message_clip(field), field);
}

static int read_source(const char *name, const json_t *json, struct plan *plan, char **ret_message)
{
        enum source_id id;
        const char *field;
        const json_t *value;

        if (source_parse(name, &id) < 0)
                return message_refuse(
                        ret_message, "sources: unknown source '%.*s'", message_clip(name), name);
        if (!json_is_object(json))
                return message_refuse(ret_message, "sources.%s must be an object", name);
        json_object_foreach ((json_t *)json, field, value) {
                int r = read_field(field, value, id, &plan->sources[id], ret_message);

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
                return message_refuse(ret_message, "revision must be a whole number");
        if (sources && !json_is_object(sources))
                return message_refuse(ret_message, "sources must be an object");

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

int plan_to_json(const struct plan *plan, json_t **ret)
{
        json_t *sources, *json;

        json = json_pack("{s:I, s:{}}", "revision", (json_int_t)plan->revision, "sources");
        if (!json)
                return -ENOMEM;
        sources = json_object_get(json, "sources");
        for (int i = SOURCE_NONE + 1; i < SOURCE_MAX_; i++) {
                json_t *source = source_to_json(&plan->sources[i]);

                if (json_object_set_new(sources, source_name(i), source) < 0) {
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
