#include "agentd/once.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include <jansson.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/time.h"

static void json_cleanup(json_t **json)
{
        json_decref(*json);
}

static void report_line(void *userdata, int level, const char *text)
{
        log_write((enum log_level)level, "%s: %s", source_name(*(enum source_id *)userdata), text);
}

/* jansson's integers end at 2^63 - 1. */
static json_t *value_of(uint64_t value)
{
        return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
}

static json_t *entity_of(const struct sample *sample, uint32_t index)
{
        const struct block_entity *entity = &sample->entities[index];
        bool present = !sample->present || sample->present[index];
        json_t *json = json_pack("{ss ss}", "name", entity->name, "identity", entity->identity);

        if (!present)
                json_object_set_new(json, "present", json_false());
        for (uint32_t i = 0; present && i < sample->n_columns; i++) {
                const struct metric *metric = metric_get(sample->columns[i].metric);

                if (metric && sample->columns[i].entity == index)
                        json_object_set_new(json, metric->name, value_of(sample->values[i]));
        }
        return json;
}

static json_t *units_of(const struct sample *sample)
{
        json_t *units = json_object();

        for (uint32_t i = 0; i < sample->n_columns; i++) {
                const struct metric *metric = metric_get(sample->columns[i].metric);

                if (metric)
                        json_object_set_new(
                                units, metric->name, json_string(metric_unit_name(metric->unit)));
        }
        return units;
}

static json_t *sample_of(const struct sample *sample)
{
        json_t *entities = json_array();
        char time[TIME_TEXT_MAX];

        for (uint32_t i = 0; i < sample->n_entities; i++)
                json_array_append_new(entities, entity_of(sample, i));
        return json_pack("{ss so so}", "time", time_format_rfc3339(sample->time_us, time), "units",
                units_of(sample), "entities", entities);
}

/* *ret is the sample, or says why there is none. */
static int sample_once(enum source_id id, const struct source_options *options, json_t **ret)
{
        struct source_report report = {.line = report_line, .userdata = &id};
        const struct source_class *class;
        struct source *source = NULL;
        struct sample sample;
        int r;

        r = source_class_get(id, &class);
        if (r >= 0)
                r = class->open(options, &report, &source);
        if (r >= 0) {
                r = class->collect(source, clock_monotonic_us() + class->deadline_us, &sample);
                r = source_wait(class, source, r, &sample);
                if (r >= 0)
                        *ret = sample_of(&sample);
                class->close(source);
        }
        if (r < 0)
                *ret = json_pack("{ss}", r == -EAGAIN ? "nothing" : "error",
                        r == -EAGAIN ? "there is nothing to read here" : strerror(-r));
        return r >= 0 ? (int)sample.failures : r;
}

static int add_once(
        json_t *document, enum source_id id, const struct source_options *options, const char *name)
{
        json_t *json = NULL;
        int r = sample_once(id, options, &json);

        json_object_set_new(document, name, json);
        return r != 0 && r != -EAGAIN;
}

/* The first cluster is "ceph", the others have their ceph.conf behind it. */
static int add_clusters(
        json_t *document, const struct agent_config *config, const struct source_options *options)
{
        int failed = 0;

        for (size_t i = 0; i < config->clusters.n; i++) {
                struct source_options one = *options;
                char name[PATH_MAX];

                one.ceph_conf = config->clusters.list[i].conf;
                one.ceph_name = config->clusters.list[i].name;
                one.ceph_keyring = config->clusters.list[i].keyring;
                snprintf(name, sizeof(name), "ceph%s%s", i > 0 ? " " : "",
                        i > 0 ? one.ceph_conf : "");
                failed += add_once(document, SOURCE_CEPH, &one, name);
        }
        return failed;
}

int once_print(const struct agent_config *config, FILE *file)
{
        CLEANUP(json) json_t *document = json_object();
        struct source_options options;
        int failed = 0;

        agent_config_get_source_options(config, &options);
        for (int id = SOURCE_NONE + 1; id < SOURCE_MAX_; id++) {
                if (!agent_config_allows(config, (enum source_id)id))
                        continue;
                if (id == SOURCE_CEPH)
                        failed += add_clusters(document, config, &options);
                else
                        failed += add_once(document, (enum source_id)id, &options,
                                source_name((enum source_id)id));
        }
        if (json_dumpf(document, file, JSON_INDENT(2)) < 0)
                return -ENOMEM;
        fputc('\n', file);
        return failed;
}
