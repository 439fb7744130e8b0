/* GET /plans, GET /plans/{host}: what agents are told to sample. */
#include "collectord/api.h"

#include <errno.h>
#include <string.h>

#include "collectord/plan-list.h"

struct list {
        const struct api_page *page;
        json_t *plans;
        char last[ID_TEXT_MAX];
        bool more;
};

static int see_plan(void *userdata, const struct id *host, const char *text, uint64_t revision)
{
        struct list *list = userdata;
        char name[ID_TEXT_MAX] = "*"; /* before all ids: '*' is less than any digit */
        json_t *plan;
        int r;

        if (host)
                id_format(host, name);
        if (list->more || strcmp(name, list->page->after) <= 0)
                return 0;
        if (json_array_size(list->plans) == list->page->limit) {
                list->more = true;
                return 0;
        }
        r = plan_load(text, revision, &plan);
        if (r < 0)
                return r;
        json_object_set_new(plan, "host", json_string(name));
        json_object_set_new(plan, "of", json_string(host ? "host" : "*"));
        memcpy(list->last, name, sizeof(name));
        return json_array_append_new(list->plans, plan) < 0 ? -ENOMEM : 0;
}

int api_plans(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        struct api_page page;
        struct list list = {.page = &page};
        int r;

        r = api_parse_page(request, response, &page);
        if (r != 0)
                return r < 0 ? r : 0;
        list.plans = json_array();
        r = store_read_plans(reader, see_plan, &list);
        if (r < 0) {
                json_decref(list.plans);
                return r;
        }
        return api_json(response, 200,
                json_pack("{s:o, s:s?}", "plans", list.plans, "cursor",
                        list.more ? list.last : NULL));
}

/* The plan that @host (NULL: "*") follows, and whose it is. */
static int read_plan(
        struct store_reader *reader, const struct id *host, json_t **ret, const char **ret_of)
{
        CLEANUP(str) char *text = NULL;
        uint64_t revision;
        int r = -ENOENT;

        if (host) {
                *ret_of = "host";
                r = store_read_plan(reader, host, &text, &revision);
        }
        if (r == -ENOENT) {
                *ret_of = "*";
                r = store_read_plan(reader, NULL, &text, &revision);
        }
        if (r == -ENOENT) {
                *ret_of = "default";
                return plan_default(ret);
        }
        return r < 0 ? r : plan_load(text, revision, ret);
}

/* People see what they wrote; an agent what it is to do. */
static bool is_agent(const struct api_request *request, const struct id *host)
{
        const char *text = api_header(request, "strata-host");
        struct id asking;

        if (request->role == API_ROLE_AGENT)
                return true;
        return text && id_parse(text, &asking) == 0 && id_equal(&asking, host);
}

int api_plan(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        const char *tail = api_path_tail(request);
        bool for_all = strcmp(tail, "*") == 0;
        char name[ID_TEXT_MAX] = "*";
        const char *of;
        struct id host = {0};
        json_t *plan;
        int r;

        if (!for_all && id_parse(tail, &host) < 0)
                return api_problem(request, response, 400,
                        "the path must end with a host id (a UUID) or *, but ends with '%s'", tail);
        if (request->role == API_ROLE_AGENT && (for_all || !id_equal(&host, &request->host)))
                return api_problem(
                        request, response, 403, "an agent's token reads the plan of its own host");
        r = read_plan(reader, for_all ? NULL : &host, &plan, &of);
        if (r < 0)
                return r;
        if (!for_all && is_agent(request, &host))
                plan_make_effective(plan, request->elected);
        if (!for_all)
                id_format(&host, name);
        json_object_set_new(plan, "host", json_string(name));
        json_object_set_new(plan, "of", json_string(of));
        return api_json(response, 200, plan);
}
