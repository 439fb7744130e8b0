#include "collectord/api-query.h"

#include <errno.h>
#include <string.h>

#define REFUSE(status, ...)                                                                        \
        ({                                                                                         \
                int refused_ = api_problem(request, response, status, __VA_ARGS__);                \
                refused_ < 0 ? refused_ : 1;                                                       \
        })

static int only_cluster(const struct query *query, const struct api_request *request,
        struct api_response *response, uint32_t *ret)
{
        const struct topology *topology = query->topology;
        size_t n = topology->n_clusters;

        if (n == 0)
                return REFUSE(404, "no agent has sent facts yet, so there is no cluster");
        /* "none" is the last, and steps back before a real one. */
        if (n > 1 && id_is_zero(&topology->clusters[n - 1].fsid))
                n--;
        if (n > 1)
                return REFUSE(400,
                        "there are %zu clusters; name one with the parameter cluster (its fsid)",
                        n);
        *ret = 0;
        return 0;
}

int api_query_cluster(const struct query *query, const struct api_request *request,
        struct api_response *response, uint32_t *ret)
{
        const char *text = api_parameter(request, "cluster");
        struct id fsid;
        int r;

        if (!text)
                return only_cluster(query, request, response, ret);
        r = api_parse_id(request, response, "cluster", &fsid, &(bool){false});
        if (r != 0)
                return r;
        if (topology_find_cluster(query->topology, &fsid, ret) < 0)
                return REFUSE(404, "there is no cluster '%s'", text);
        return 0;
}

int api_query_layer(const struct api_request *request, struct api_response *response,
        const char *name, const char *fallback, enum layer *ret)
{
        unsigned index;
        int r;

        r = api_parse_choice(
                request, response, name, "filesystem osd objectstore storage", fallback, &index);
        if (r == 0)
                *ret = LAYER_FILESYSTEM + index;
        return r;
}

void api_query_trim(const struct query *query, uint32_t cluster, unsigned sources,
        const struct api_window *window, struct rung_windows *ret)
{
        int64_t frontier_us = query_frontier(query, cluster, sources);
        int64_t complete = (frontier_us - window->from_us) / (int64_t)window->step_us;

        *ret = (struct rung_windows){window->from_us, window->step_us, window->n};
        if (frontier_us < window->from_us)
                ret->n = 0;
        else if (complete < (int64_t)window->n)
                ret->n = (uint32_t)complete;
}

const char *api_query_fsid(const struct query *query, uint32_t cluster, char text[ID_TEXT_MAX])
{
        const struct id *fsid = &query->topology->clusters[cluster].fsid;

        return id_is_zero(fsid) ? "none" : id_format(fsid, text);
}

int api_query_problem(const struct api_request *request, struct api_response *response, int error)
{
        if (error == -E2BIG)
                return api_problem(request, response, 400,
                        "the answer would have too many numbers; ask for fewer windows (a longer "
                        "step), one entity, or by=cluster");
        return api_problem_errno(request, response, error);
}

int64_t api_query_window(const struct rung_windows *windows, uint32_t i)
{
        return windows->from_us + (int64_t)(i * windows->step_us);
}

void api_query_times(struct text *text, const struct rung_windows *windows)
{
        text_add(text, "\"t\":[");
        for (uint32_t i = 0; i < windows->n; i++) {
                if (i > 0)
                        text_add(text, ",");
                text_time(text, api_query_window(windows, i));
        }
        text_add(text, "]");
}

void api_query_span(struct text *text, const struct api_window *window)
{
        text_add(text, ",\"from\":");
        text_time(text, window->from_us);
        text_add(text, ",\"to\":");
        text_time(text, window->to_us);
        text_add(text, ",\"step\":");
        text_time(text, (int64_t)window->step_us);
}
