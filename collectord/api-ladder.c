/* GET /ladder: what each layer made of the clients' bytes in one window. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/api-ladder.h"
#include "collectord/api-query.h"

enum { DIRECTION_WRITE, DIRECTION_READ, DIRECTION_BOTH };

static const char *const direction_names[] = {[RATIO_WRITE] = "write", [RATIO_READ] = "read"};

static void text_member(struct text *text, const char *name, const char *value)
{
        text_format(text, "\"%s\":", name);
        text_string(text, value && *value ? value : NULL);
        text_add(text, ",");
}

static int write_ladder(struct text *text, const struct ladder_sums *sums,
        const struct layers_target *of, unsigned direction)
{
        struct ladder_members lists[2] = {0};
        CLEANUP(ladder_members) struct ladder_members *write_members = &lists[0];
        CLEANUP(ladder_members) struct ladder_members *read_members = &lists[1];
        CLEANUP(ladder) struct ladder *write = NULL;
        CLEANUP(ladder) struct ladder *read = NULL;
        const struct ladder *worst;
        bool none = id_is_zero(&sums->query->topology->clusters[sums->cluster].fsid);
        int r;

        r = ladder_sums_compute(sums, of, RATIO_WRITE, write_members, &write);
        if (r < 0)
                return r;
        r = ladder_sums_compute(sums, of, RATIO_READ, read_members, &read);
        if (r < 0)
                return r;
        /* Nobody reading is no flaw of a window in which somebody writes. */
        worst = direction == DIRECTION_READ ||
                                (direction == DIRECTION_BOTH && write->point.state == RUNG_IDLE)
                        ? read
                        : write;
        text_member(text, "state", rung_state_name(worst->point.state));
        text_add(text, "\"detail\":");
        text_string(text, none ? "These hosts have no Ceph cluster: there is only a storage layer."
                          : *worst->detail ? worst->detail
                                           : NULL);
        if (direction != DIRECTION_READ) {
                text_format(text, ",\"%s\":", direction_names[RATIO_WRITE]);
                ladder_write_side(text, write);
        }
        if (direction != DIRECTION_WRITE) {
                text_format(text, ",\"%s\":", direction_names[RATIO_READ]);
                ladder_write_side(text, read);
        }
        return 0;
}

static int compare_targets(const void *a, const void *b)
{
        const struct layers_target *x = *(const struct layers_target *const *)a;
        const struct layers_target *y = *(const struct layers_target *const *)b;

        return strverscmp(x->key, y->key);
}

static int write_page(struct text *text, const struct ladder_sums *sums, unsigned direction,
        const struct api_page *page)
{
        size_t n, shown = 0;
        const struct layers_target *targets = layers_get_targets(sums->layers, &n);
        CLEANUP(mem)
        const struct layers_target **list = calloc(n + 1, sizeof(struct layers_target *));
        const char *cursor = NULL;

        if (!list)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                list[i] = &targets[i];
        qsort(list, n, sizeof(struct layers_target *), compare_targets);
        text_add(text, "\"ladders\":[");
        for (size_t i = 0; i < n; i++) {
                int r;

                if (*page->after && strverscmp(list[i]->key, page->after) <= 0)
                        continue;
                if (shown == page->limit) {
                        cursor = list[i - 1]->key;
                        break;
                }
                r = query_check_deadline(sums->query);
                if (r < 0)
                        return r;
                text_add(text, shown++ > 0 ? ",{" : "{");
                text_member(text, "key", list[i]->key);
                r = write_ladder(text, sums, list[i], direction);
                if (r < 0)
                        return r;
                text_add(text, "}");
        }
        text_add(text, "],\"cursor\":");
        text_string(text, cursor);
        return 0;
}

static int write_answer(struct text *text, const struct ladder_sums *sums, unsigned direction,
        const struct api_page *page)
{
        static const char *const by_names[] = {[QUERY_BY_CLASS] = "class",
                [QUERY_BY_HOST] = "host",
                [QUERY_BY_OSD] = "osd",
                [QUERY_BY_POOL] = "pool"};
        const struct rung_windows *window = &sums->window;
        char fsid[ID_TEXT_MAX];
        size_t n;
        int r;

        text_add(text, "{");
        text_member(text, "cluster", api_query_fsid(sums->query, sums->cluster, fsid));
        text_add(text, "\"from\":");
        text_time(text, window->from_us);
        text_add(text, ",\"to\":");
        text_time(text, window->from_us + (int64_t)window->step_us);
        text_add(text, ",");
        if (sums->by == QUERY_BY_CLUSTER) {
                r = write_ladder(text, sums, layers_get_targets(sums->layers, &n), direction);
        } else {
                text_member(text, "by", by_names[sums->by]);
                r = write_page(text, sums, direction, page);
        }
        if (r < 0)
                return r;
        text_add(text, "}");
        return 0;
}

static bool is_relative(const struct api_request *request, const char *name)
{
        const char *text = api_parameter(request, name);

        return !text || *text == '-' || *text == '+' || *text == 'n';
}

/*
 * "The last minute" ends where the live sources have delivered: the window moves back and keeps its
 * length. A range that was named by absolute times stays what it is, but for an end of "now".
 */
static void move_back(struct ladder_sums *sums, const struct api_request *request,
        const struct api_window *window)
{
        const unsigned all =
                LAYERS_BIT(LAYER_FILESYSTEM) | LAYERS_BIT(LAYER_OSD) | LAYERS_BIT(LAYER_STORAGE);
        int64_t frontier_us = query_frontier(sums->query, sums->cluster, layers_sources(all));
        int64_t late_us = window->to_us - frontier_us;

        sums->window = (struct rung_windows){window->from_us, window->step_us, 1};
        if (late_us <= 0 || !is_relative(request, "to"))
                return;
        if (is_relative(request, "from"))
                sums->window.from_us -= late_us;
        else if (frontier_us > window->from_us)
                sums->window.step_us -= (uint64_t)late_us;
}

int api_ladder(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        CLEANUP(query) struct query *query = NULL;
        struct ladder_sums storage = {0};
        CLEANUP(ladder_sums) struct ladder_sums *sums = &storage;
        struct text buffer = {0};
        CLEANUP(text_object) struct text *text = &buffer;
        static const enum query_by bys[] = {
                QUERY_BY_CLUSTER, QUERY_BY_CLASS, QUERY_BY_HOST, QUERY_BY_OSD, QUERY_BY_POOL};
        unsigned direction = DIRECTION_BOTH, by = 0;
        struct api_window window;
        struct api_page page = {0};
        size_t size = 0;
        char *body = NULL;
        int r;

        r = api_parse_range(request, response, "-1m", &window);
        if (r == 0 && api_parameter(request, "direction"))
                r = api_parse_choice(
                        request, response, "direction", "write read", NULL, &direction);
        if (r == 0)
                r = api_parse_choice(
                        request, response, "by", "cluster class host osd pool", "cluster", &by);
        if (r == 0)
                r = api_parse_page(request, response, &page);
        if (r != 0)
                return r < 0 ? r : 0;
        r = query_open(reader, request->now_us, request->deadline_us, &query);
        if (r < 0)
                return api_query_problem(request, response, r);
        sums->query = query;
        sums->by = bys[by];
        r = api_query_cluster(query, request, response, &sums->cluster);
        if (r != 0)
                return r < 0 ? r : 0;
        move_back(sums, request, &window);
        r = ladder_sums_read(sums);
        if (r == 0)
                r = write_answer(text, sums, direction, &page);
        if (r == 0)
                r = text_take(text, &body, &size);
        if (r < 0)
                return api_query_problem(request, response, r);
        return api_text(response, 200, body, size);
}
