/* GET /plans, GET /plans/{host}: what agents are told to sample. */
#include "collectord/api.h"

#include <errno.h>
#include <string.h>

#include "collectord/plan-list.h"

#define WAITING_MAX 100u /* hosts that are named; the rest is counted */

/* Who follows which plan, and has it in force: an object, by the plan's host or "*". */
struct followers {
        const struct plan_list *plans;
        const struct id *only; /* this host alone, whatever it follows; NULL: all */
        json_t *counts;
};

static json_t *get_counts(struct followers *followers, const char *name)
{
        json_t *counts = json_object_get(followers->counts, name);

        if (counts)
                return counts;
        counts = json_pack("{s:i, s:i, s:[]}", "in_force", 0, "waiting", 0, "waiting_hosts");
        return json_object_set_new(followers->counts, name, counts) < 0 ? NULL : counts;
}

static void count(json_t *counts, const char *key)
{
        json_t *number = json_object_get(counts, key);

        json_integer_set(number, json_integer_value(number) + 1);
}

static int see_follower(void *userdata, const struct store_agent *agent)
{
        struct followers *followers = userdata;
        uint64_t revision = plan_list_stored_revision(followers->plans, &agent->host);
        char host[ID_TEXT_MAX], name[ID_TEXT_MAX] = "*";
        json_t *counts, *hosts;

        if (followers->only && !id_equal(followers->only, &agent->host))
                return 0;
        id_format(&agent->host, host);
        if (followers->only || plan_list_has(followers->plans, &agent->host))
                memcpy(name, host, sizeof(name));
        counts = get_counts(followers, name);
        if (!counts)
                return -ENOMEM;
        if (agent->plan_revision == revision) {
                count(counts, "in_force");
                return 0;
        }
        count(counts, "waiting");
        hosts = json_object_get(counts, "waiting_hosts");
        if (json_array_size(hosts) == WAITING_MAX)
                return 0;
        return json_array_append_new(
                       hosts, json_pack("{s:s, s:I, s:f}", "host_id", host, "revision",
                                      (json_int_t)agent->plan_revision, "last_seen",
                                      (double)agent->last_seen_us / 1e6)) < 0
                       ? -ENOMEM
                       : 0;
}

/* *ret is a new reference. */
static int read_followers(struct store_reader *reader, const struct id *only, json_t **ret)
{
        CLEANUP(plan_list) struct plan_list *plans = NULL;
        struct followers followers = {.only = only};
        int r;

        r = plan_list_new(reader, &plans);
        if (r < 0)
                return r;
        followers.plans = plans;
        followers.counts = json_object();
        r = store_read_agents(reader, see_follower, &followers);
        if (r < 0)
                json_decref(followers.counts);
        else
                *ret = followers.counts;
        return r;
}

static void add_followers(json_t *plan, json_t *followers, const char *name)
{
        json_t *counts = json_object_get(followers, name);

        if (counts)
                json_object_set(plan, "agents", counts);
        else
                json_object_set_new(plan, "agents",
                        json_pack(
                                "{s:i, s:i, s:[]}", "in_force", 0, "waiting", 0, "waiting_hosts"));
}

struct list {
        struct api_page page;
        json_t *followers;
};

static int see_plan(void *userdata, const struct id *host, const char *text, uint64_t revision)
{
        struct list *list = userdata;
        char name[ID_TEXT_MAX] = "*"; /* before all ids: '*' is less than any digit */
        json_t *plan;
        int r;

        if (host)
                id_format(host, name);
        if (!api_page_takes(&list->page, name))
                return 0;
        r = plan_load(text, revision, &plan);
        if (r < 0)
                return r;
        json_object_set_new(plan, "host", json_string(name));
        json_object_set_new(plan, "of", json_string(host ? "host" : "*"));
        add_followers(plan, list->followers, name);
        return api_page_add(&list->page, name, plan);
}

int api_plans(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        struct list list;
        int r;

        r = api_parse_page(request, response, &list.page);
        if (r != 0)
                return r < 0 ? r : 0;
        r = read_followers(reader, NULL, &list.followers);
        if (r < 0)
                return r;
        list.page.rows = json_array();
        r = store_read_plans(reader, see_plan, &list);
        json_decref(list.followers);
        return api_page_answer(&list.page, r, "plans", response);
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

int api_plan(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        const char *tail = api_path_tail(request);
        bool for_all = strcmp(tail, "*") == 0;
        char name[ID_TEXT_MAX] = "*";
        const char *of;
        struct id host = {0};
        json_t *plan, *followers;
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
        if (!for_all)
                id_format(&host, name);
        /* People see what they wrote and who follows it; an agent what it is to do. */
        if (request->elected) {
                plan_make_effective(plan, request->elected);
        } else {
                r = read_followers(reader, for_all ? NULL : &host, &followers);
                if (r < 0) {
                        json_decref(plan);
                        return r;
                }
                add_followers(plan, followers, name);
                json_decref(followers);
        }
        json_object_set_new(plan, "host", json_string(name));
        json_object_set_new(plan, "of", json_string(of));
        return api_json(response, 200, plan);
}
