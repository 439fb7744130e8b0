#include "collectord/finding-metrics.h"

#include <errno.h>
#include <jansson.h>

#include "lib/cleanup.h"
#include "lib/id.h"

#define SHOWN_MAX 1000u

DEFINE_CLEANUP(verdict_json, json_t *, json_decref)

struct writer {
        FILE *out;
        int64_t now_us;
};

static void write_label(FILE *out, const char *name, const char *value, const char *after)
{
        fprintf(out, "%s=\"", name);
        for (; *value; value++) {
                if (*value == '\n')
                        fputs("\\n", out);
                else
                        fprintf(out, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
        }
        fprintf(out, "\"%s", after);
}

static void write_line(FILE *out, const char *family, const struct id *cluster, const char *rule,
        const char *layer, const char *entity)
{
        char fsid[ID_TEXT_MAX];

        fprintf(out, "%s{cluster=\"%s\",", family, id_format(cluster, fsid));
        write_label(out, "rule", rule, ",");
        write_label(out, "layer", layer, ",");
        write_label(out, "entity", entity, "} 1\n");
}

static int write_finding(void *userdata, const struct store_finding *finding)
{
        const struct writer *writer = userdata;

        write_line(writer->out, "strata_finding", &finding->cluster, finding->rule, finding->layer,
                finding->entity);
        return 0;
}

static const char *text_of(const json_t *json, const char *key)
{
        const char *text = json_string_value(json_object_get(json, key));

        return text ? text : "";
}

static int write_verdict(
        void *userdata, const struct id *cluster, int64_t time_us, const char *text)
{
        const struct writer *writer = userdata;
        CLEANUP(verdict_json) json_t *json = NULL;

        if (writer->now_us - time_us > FINDING_VERDICT_AGE_US)
                return 0;
        json = json_loads(text, 0, NULL);
        if (!json)
                return -EBADMSG;
        write_line(writer->out, "strata_verdict", cluster, text_of(json, "rule"),
                text_of(json, "layer"), text_of(json_object_get(json, "entity"), "name"));
        return 0;
}

int finding_metrics_write(struct store_reader *reader, int64_t now_us, FILE *out)
{
        const struct store_finding_filter open = {
                .to_us = INT64_MAX, .open = true, .limit = SHOWN_MAX};
        struct writer writer = {.out = out, .now_us = now_us};
        int r;

        fputs("# TYPE strata_finding gauge\n# HELP strata_finding Findings that go on.\n", out);
        r = store_read_findings(reader, &open, write_finding, &writer);
        if (r < 0)
                return r;
        fputs("# TYPE strata_verdict gauge\n# HELP strata_verdict The layer that is the bottleneck "
              "of "
              "each cluster, or none.\n",
                out);
        return store_read_verdicts(reader, write_verdict, &writer);
}
