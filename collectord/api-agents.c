/* GET /agents: who delivers, how fresh, how far behind. */
#include "collectord/api.h"

#include <errno.h>
#include <string.h>

#include "collectord/plan-list.h"
#include "collectord/query.h"
#include "collectord/roll.h"

struct list {
        const struct query *query;
        const struct api_request *request;
        struct api_page page;
        uint32_t cluster; /* index, or TOPOLOGY_NONE for all */
};

static double seconds(int64_t us)
{
        return (double)us / 1e6;
}

static json_t *list_sources(const struct query *query, const struct id *host)
{
        json_t *sources = json_array();

        for (size_t i = 0; i < query->n_streams; i++) {
                const struct store_stream *stream = &query->streams[i];

                if (!id_equal(&stream->host, host))
                        continue;
                json_array_append_new(sources,
                        json_pack("{s:s?, s:f, s:f}", "source", source_name(stream->source),
                                "last_sample", seconds(stream->last_us), "interval",
                                seconds((int64_t)stream->interval_us)));
        }
        return sources;
}

static json_t *list_clusters(const struct topology *topology, uint32_t host)
{
        json_t *clusters = json_array();
        char text[ID_TEXT_MAX];

        for (uint32_t i = 0; i < topology->n_clusters; i++) {
                const struct id *fsid = &topology->clusters[i].fsid;

                if (host != TOPOLOGY_NONE && topology_host_in(topology, host, i))
                        json_array_append_new(clusters,
                                json_string(id_is_zero(fsid) ? "none" : id_format(fsid, text)));
        }
        return clusters;
}

static json_t *describe(const struct list *list, const struct store_agent *agent, uint32_t host,
        const char *host_id)
{
        const struct topology *topology = list->query->topology;
        const struct facts *facts = host == TOPOLOGY_NONE ? NULL : topology->hosts[host].facts;
        json_t *offset = agent->clock_offset_us == INT64_MIN
                                 ? json_null()
                                 : json_real(seconds(agent->clock_offset_us));

        return json_pack("{s:s, s:s?, s:s?, s:s?, s:f, s:f, s:f, s:o, s:I, s:I, s:I, s:I, s:I, "
                         "s:o, s:o, s:b}",
                "host_id", host_id, "hostname", facts ? facts->hostname : NULL, "kernel",
                facts ? facts->kernel : NULL, "version", facts ? facts->agent_version : NULL,
                "first_seen", seconds(agent->first_seen_us), "last_seen",
                seconds(agent->last_seen_us), "age",
                seconds(list->query->now_us - agent->last_seen_us), "clock_offset", offset,
                "plan_revision", (json_int_t)agent->plan_revision, "backlog_rows",
                (json_int_t)agent->backlog_rows, "blocks", (json_int_t)agent->blocks, "rows",
                (json_int_t)agent->rows, "dropped_rows", (json_int_t)agent->dropped_rows,
                "clusters", list_clusters(topology, host), "sources",
                list_sources(list->query, &agent->host), "cloned",
                list->request->roll && roll_is_cloned(list->request->roll, &agent->host));
}

static int see_agent(void *userdata, const struct store_agent *agent)
{
        struct list *list = userdata;
        const struct topology *topology = list->query->topology;
        uint32_t host = TOPOLOGY_NONE;
        char host_id[ID_TEXT_MAX];

        id_format(&agent->host, host_id);
        if (topology_find_host(topology, &agent->host, &host) < 0)
                host = TOPOLOGY_NONE;
        if (list->cluster != TOPOLOGY_NONE &&
                (host == TOPOLOGY_NONE || !topology_host_in(topology, host, list->cluster)))
                return 0;
        if (!api_page_takes(&list->page, host_id))
                return 0;
        return api_page_add(&list->page, host_id, describe(list, agent, host, host_id));
}

static int find_cluster(const struct query *query, const struct api_request *request,
        struct api_response *response, uint32_t *ret)
{
        const char *text = api_parameter(request, "cluster");
        struct id fsid;
        int r;

        *ret = TOPOLOGY_NONE;
        r = api_parse_id(request, response, "cluster", &fsid, &(bool){false});
        if (r != 0 || !text)
                return r;
        if (topology_find_cluster(query->topology, &fsid, ret) < 0) {
                r = api_problem(request, response, 404, "there is no cluster '%s'", text);
                return r < 0 ? r : 1;
        }
        return 0;
}

int api_agents(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        CLEANUP(query) struct query *query = NULL;
        struct list list = {.request = request};
        int r;

        r = api_parse_page(request, response, &list.page);
        if (r != 0)
                return r < 0 ? r : 0;
        r = query_open(reader, request->now_us, request->deadline_us, &query);
        if (r < 0)
                return r;
        list.query = query;
        r = find_cluster(query, request, response, &list.cluster);
        if (r != 0)
                return r < 0 ? r : 0;
        list.page.rows = json_array();
        r = store_read_agents(reader, see_agent, &list);
        return api_page_answer(&list.page, r, "agents", response);
}
