/* GET /findings: the verdict of each cluster, and findings, the newest first. */
#include "collectord/api-query.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/finding-metrics.h"

struct answer {
        struct text *text;
        const struct id *cluster; /* NULL: all */
        int64_t now_us;
        uint32_t limit, n;
        int64_t last_id;
        bool more, any;
};

static void add_text(struct text *text, const char *name, const char *value)
{
        text_format(text, ",\"%s\":", name);
        text_string(text, value);
}

static void add_time(struct text *text, const char *name, int64_t time_us)
{
        text_format(text, ",\"%s\":", name);
        if (time_us == 0)
                text_add(text, "null");
        else
                text_time(text, time_us);
}

void api_query_finding(struct text *text, const struct store_finding *finding)
{
        char fsid[ID_TEXT_MAX];

        text_format(text, "{\"id\":%" PRId64 ",\"cluster\":\"%s\"", finding->id,
                id_format(&finding->cluster, fsid));
        add_text(text, "rule", finding->rule);
        add_text(text, "layer", finding->layer);
        add_text(text, "kind", finding->kind);
        add_text(text, "entity", finding->entity);
        text_format(text, ",\"open\":%s,\"bottleneck\":%s", finding->end_us == 0 ? "true" : "false",
                finding->bottleneck ? "true" : "false");
        add_time(text, "begin", finding->begin_us);
        add_time(text, "last", finding->last_us);
        add_time(text, "end", finding->end_us);
        text_add(text, ",\"share\":");
        text_number(text, finding->share);
        add_text(text, "sentence", finding->sentence);
        add_text(text, "advice", finding->advice);
        text_add(text, ",\"curves\":");
        text_add(
                text, finding->curves); /* as finding.c wrote them: longer than text_format takes */
        text_add(text, "}");
}

static int add_verdict(void *userdata, const struct id *cluster, int64_t time_us, const char *json)
{
        struct answer *answer = userdata;

        if ((answer->cluster && !id_equal(answer->cluster, cluster)) ||
                answer->now_us - time_us > FINDING_VERDICT_AGE_US)
                return 0;
        if (answer->any)
                text_add(answer->text, ",");
        answer->any = true;
        text_add(answer->text, json); /* as finding.c wrote it */
        return 0;
}

static int add_finding(void *userdata, const struct store_finding *finding)
{
        struct answer *answer = userdata;

        if (answer->n == answer->limit) {
                answer->more = true;
                return 0;
        }
        if (answer->n++ > 0)
                text_add(answer->text, ",");
        api_query_finding(answer->text, finding);
        answer->last_id = finding->id;
        return 0;
}

static int write_answer(struct store_reader *reader, const struct store_finding_filter *filter,
        struct answer *answer)
{
        int r;

        text_add(answer->text, "{\"verdicts\":[");
        r = store_read_verdicts(reader, add_verdict, answer);
        if (r < 0)
                return r;
        text_add(answer->text, "],\"findings\":[");
        r = store_read_findings(reader, filter, add_finding, answer);
        if (r < 0)
                return r;
        if (answer->more)
                text_format(answer->text, "],\"cursor\":\"%" PRId64 "\"}", answer->last_id);
        else
                text_add(answer->text, "],\"cursor\":null}");
        return 0;
}

static int parse(const struct api_request *request, struct api_response *response,
        struct store_finding_filter *ret, struct id *ret_cluster)
{
        struct api_window window;
        struct api_page page;
        unsigned open;
        char *end;
        int r;

        r = api_parse_page(request, response, &page);
        if (r != 0)
                return r;
        r = api_parse_range(request, response, "-1d", &window);
        if (r != 0)
                return r;
        r = api_parse_choice(request, response, "open", "no yes", "no", &open);
        if (r != 0)
                return r;
        r = api_parse_id(request, response, "cluster", ret_cluster, NULL);
        if (r != 0)
                return r;
        *ret = (struct store_finding_filter){
                .cluster = api_parameter(request, "cluster") ? ret_cluster : NULL,
                .from_us = window.from_us,
                .to_us = window.to_us,
                .open = open,
                .limit = page.limit + 1, /* one more tells whether there is another page */
        };
        if (!*page.after)
                return 0;
        ret->before_id = strtoll(page.after, &end, 10);
        if (*end || ret->before_id <= 0) {
                r = api_problem(
                        request, response, 400, "cursor '%s' is none of this list", page.after);
                return r < 0 ? r : 1;
        }
        return 0;
}

int api_findings(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        struct text storage = {0};
        CLEANUP(text_object) struct text *text = &storage;
        struct store_finding_filter filter;
        struct answer answer = {.text = text, .now_us = request->now_us};
        struct id cluster;
        size_t size;
        char *body;
        int r;

        r = parse(request, response, &filter, &cluster);
        if (r != 0)
                return r < 0 ? r : 0;
        answer.cluster = filter.cluster;
        answer.limit = filter.limit - 1;
        r = write_answer(reader, &filter, &answer);
        if (r == 0)
                r = text_take(text, &body, &size);
        if (r < 0)
                return api_query_problem(request, response, r);
        return api_text(response, 200, body, size);
}
