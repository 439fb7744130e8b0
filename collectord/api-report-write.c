#include <math.h>

#include "collectord/api-report.h"

static void add_number(struct text *text, const char *name, double value)
{
        text_format(text, ",\"%s\":", name);
        text_number(text, value);
}

static void add_text(struct text *text, const char *name, const char *value)
{
        text_format(text, ",\"%s\":", name);
        text_string(text, value && *value ? value : NULL);
}

static void add_rates(struct text *text, const char *name, double bytes, double ops, double size)
{
        text_format(text, ",\"%s\":{\"bytes_per_second\":", name);
        text_number(text, bytes);
        add_number(text, "ops_per_second", ops);
        add_number(text, "mean_size", size);
        text_add(text, "}");
}

static void write_use(struct text *text, const struct report_use *use)
{
        text_format(text, "{\"direction\":\"%s\",\"order\":\"%s\",\"size\":\"%s\",\"windows\":%u",
                use->direction == RATIO_WRITE ? "write" : "read", report_order_name(use->order),
                report_size_name(use->size), use->windows);
        add_number(text, "seconds", use->seconds);
        add_rates(text, "filesystem", use->filesystem_bytes, use->filesystem_ops,
                use->filesystem_size);
        add_rates(text, "osd", NAN, NAN, use->osd_size);
        add_rates(text, "storage", use->storage_bytes, use->storage_ops, use->storage_size);
        add_number(text, "joined", use->joined);
        add_number(text, "merged", use->merged);
        add_number(text, "utilisation", use->utilisation);
        add_number(text, "queue", use->queue);
        add_number(text, "ratio", 1 / use->amplification);
        add_number(text, "amplification", use->amplification);
        add_number(text, "expected", use->expected);
        add_number(text, "excess", use->excess);
        text_format(text, ",\"ability\":{\"state\":\"%s\"", report_ability_name(use->ability));
        add_number(text, "bytes_per_second", use->ability_bytes);
        add_number(text, "ops_per_second", use->ability_ops);
        add_number(text, "utilisation", use->ability_utilisation);
        text_add(text, "}");
        add_number(text, "share", use->share);
        add_number(text, "used", use->used);
        add_number(text, "of_best", use->share * use->expected);
        add_text(text, "grade", report_grade_name(use->grade));
        add_number(text, "in_class", use->in_class);
        add_number(text, "p50", use->p50_s);
        add_number(text, "p99", use->p99_s);
        add_text(text, "detail", use->detail);
        add_text(text, "sentence", use->sentence);
        text_add(text, "}");
}

static void write_uses(struct text *text, const struct report *report)
{
        bool first = true;

        text_add(text, ",\"uses\":[");
        for (size_t i = 0; i < REPORT_USES; i++) {
                if (!report_is_shown(report, i))
                        continue;
                if (!first)
                        text_add(text, ",");
                first = false;
                write_use(text, &report->uses[i]);
        }
        text_add(text, "]");
}

static void write_fates(struct text *text, const struct report *report, uint32_t n)
{
        text_format(text, ",\"windows\":{\"all\":%u", n);
        for (unsigned i = 0; i < REPORT_FATES; i++)
                text_format(text, ",\"%s\":%u", report_fate_name(i), report->fates[i]);
        text_add(text, "}");
}

static double utilisation_of(const struct report_answer *answer, uint32_t i)
{
        const struct report_window *window = &answer->list[i];

        return window->devices > 0 ? window->busy_seconds / answer->input.seconds / window->devices
                                   : NAN;
}

static void write_curve(struct text *text, const struct report_answer *answer, const char *name,
        unsigned direction, bool storage)
{
        text_format(text, ",\"%s\":[", name);
        for (uint32_t i = 0; i < answer->windows.n; i++) {
                const struct ratio_point *point = &answer->list[i].sides[direction].bytes;

                if (i > 0)
                        text_add(text, ",");
                text_number(text, storage ? point->lower : point->upper);
        }
        text_add(text, "]");
}

static void write_curves(struct text *text, const struct report_answer *answer)
{
        text_add(text, ",\"curves\":{");
        api_query_times(text, &answer->windows);
        write_curve(text, answer, "filesystem_read", RATIO_READ, false);
        write_curve(text, answer, "storage_read", RATIO_READ, true);
        write_curve(text, answer, "filesystem_write", RATIO_WRITE, false);
        write_curve(text, answer, "storage_write", RATIO_WRITE, true);
        text_add(text, ",\"utilisation\":[");
        for (uint32_t i = 0; i < answer->windows.n; i++) {
                if (i > 0)
                        text_add(text, ",");
                text_number(text, utilisation_of(answer, i));
        }
        text_add(text, "]}");
}

struct list {
        struct text *text;
        uint32_t n;
};

static int add_finding(void *userdata, const struct store_finding *finding)
{
        struct list *list = userdata;

        if (list->n == REPORT_FINDINGS_MAX)
                return 0;
        if (list->n++ > 0)
                text_add(list->text, ",");
        api_query_finding(list->text, finding);
        return 0;
}

static int write_findings(struct text *text, const struct report_answer *answer)
{
        const struct topology_cluster *cluster =
                &answer->query->topology->clusters[answer->cluster];
        struct store_finding_filter filter = {
                .cluster = &cluster->fsid,
                .from_us = answer->window.from_us,
                .to_us = answer->window.to_us,
                .limit = REPORT_FINDINGS_MAX,
        };
        struct list list = {text, 0};
        int r;

        text_add(text, ",\"findings\":[");
        r = store_read_findings(answer->query->reader, &filter, add_finding, &list);
        text_add(text, "]");
        return r;
}

int report_write(const struct report_answer *answer, struct text *text)
{
        const struct report *report = answer->report;
        const struct facts_cluster *facts =
                answer->query->topology->clusters[answer->cluster].facts;
        char fsid[ID_TEXT_MAX];
        int r;

        text_format(
                text, "{\"cluster\":\"%s\"", api_query_fsid(answer->query, answer->cluster, fsid));
        add_text(text, "name", facts ? facts->name : NULL);
        api_query_span(text, &answer->window);
        write_fates(text, report, answer->windows.n);
        text_format(text, ",\"histograms\":%s,\"summary\":[",
                answer->input.histograms ? "true" : "false");
        for (size_t i = 0; i < report->n_summary; i++) {
                if (i > 0)
                        text_add(text, ",");
                text_string(text, report->summary[i]);
        }
        text_add(text, "]");
        write_uses(text, report);
        r = write_findings(text, answer);
        if (r < 0)
                return r;
        write_curves(text, answer);
        text_add(text, "}");
        return 0;
}
