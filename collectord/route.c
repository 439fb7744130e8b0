#include "collectord/route.h"

#include <errno.h>
#include <string.h>

#define ROLE(role) (1u << API_ROLE_##role)
#define READERS (ROLE(READER) | ROLE(OPERATOR) | ROLE(LOCAL))
#define OPERATORS (ROLE(OPERATOR) | ROLE(LOCAL))
#define AGENTS (ROLE(AGENT) | ROLE(LOCAL))
#define ANYBODY (ROLE(NONE) | ROLE(AGENT) | READERS)

#define PAGE "limit cursor"
#define WINDOW "cluster from to step"
#define CURVE "layer metric entity host by top extremes"

static const struct route routes[] = {
        {"POST", "/api/v1/blocks", "", AGENTS, ROUTE_PUT_BLOCKS, NULL},
        {"PUT", "/api/v1/facts/{host}", "", AGENTS, ROUTE_PUT_FACTS, NULL},
        {"GET", "/api/v1/plans", PAGE, READERS, ROUTE_READ, api_plans},
        {"GET", "/api/v1/plans/{host}", "", READERS | ROLE(AGENT), ROUTE_READ, api_plan},
        {"PUT", "/api/v1/plans/{host}", "", OPERATORS, ROUTE_PUT_PLAN, NULL},
        {"DELETE", "/api/v1/plans/{host}", "", OPERATORS, ROUTE_DELETE_PLAN, NULL},
        {"GET", "/api/v1/clusters", PAGE, READERS, ROUTE_READ, api_clusters},
        {"GET", "/api/v1/agents", PAGE " cluster", READERS, ROUTE_READ, api_agents},
        {"GET", "/api/v1/osds", PAGE " cluster", READERS, ROUTE_READ, api_osds},
        {"GET", "/api/v1/devices", PAGE " cluster", READERS, ROUTE_READ, api_devices},
        {"GET", "/api/v1/pools", PAGE " cluster", READERS, ROUTE_READ, api_pools},
        {"GET", "/api/v1/series", WINDOW " " CURVE " " PAGE, READERS, ROUTE_READ, api_series},
        {"GET", "/api/v1/ratio", WINDOW " upper lower direction measure by top " PAGE, READERS,
                ROUTE_READ, api_ratio},
        {"GET", "/api/v1/ladder", "cluster from to direction by limit cursor", READERS, ROUTE_READ,
                api_ladder},
        {"GET", "/api/v1/report", WINDOW, READERS, ROUTE_READ, api_report},
        {"GET", "/api/v1/export",
                "what format " PAGE " " WINDOW " " CURVE " direction upper lower measure", READERS,
                ROUTE_READ, api_export},
        {"GET", "/api/v1/findings", PAGE " cluster from to open", READERS, ROUTE_READ,
                api_findings},
        {"GET", "/metrics", "", READERS, ROUTE_READ, api_metrics},
        {"GET", "/api/v1/openapi.json", "", ANYBODY, ROUTE_OPENAPI, NULL},
        {"GET", "/", NULL, ANYBODY, ROUTE_FILE, NULL},
};
#define N_ROUTES (sizeof(routes) / sizeof(routes[0]))

const struct route *route_all(size_t *ret_count)
{
        *ret_count = N_ROUTES;
        return routes;
}

static bool path_matches(const struct route *route, const char *path)
{
        size_t prefix = strcspn(route->path, "{");

        if (route->action == ROUTE_FILE)
                return strncmp(path, "/api/", 5) != 0 && strcmp(path, "/metrics") != 0;
        if (!route->path[prefix])
                return strcmp(route->path, path) == 0;
        /* The variable segment is always the last. */
        return strncmp(route->path, path, prefix) == 0 && path[prefix] &&
               !strchr(path + prefix, '/');
}

static const char *allow_of(const char *path)
{
        for (size_t i = 0; i < N_ROUTES; i++) {
                if (!path_matches(&routes[i], path))
                        continue;
                if (strcmp(routes[i].path, "/api/v1/plans/{host}") == 0)
                        return "GET, HEAD, PUT, DELETE";
                return strcmp(routes[i].method, "GET") == 0 ? "GET, HEAD" : routes[i].method;
        }
        return NULL;
}

int route_find(
        const char *method, const char *path, const struct route **ret, const char **ret_allow)
{
        const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
        const char *allow;

        for (size_t i = 0; i < N_ROUTES; i++)
                if (strcmp(routes[i].method, wanted) == 0 && path_matches(&routes[i], path)) {
                        *ret = &routes[i];
                        return 0;
                }
        allow = allow_of(path);
        if (!allow)
                return -ENOENT;
        *ret_allow = allow;
        return -EOPNOTSUPP;
}

static bool word_in(const char *words, const char *word)
{
        size_t length = strlen(word);

        for (const char *p = words; *p;) {
                size_t n = strcspn(p, " ");

                if (n == length && memcmp(p, word, n) == 0)
                        return true;
                p += n + strspn(p + n, " ");
        }
        return false;
}

static const char *role_name(enum api_role role)
{
        switch (role) {
        case API_ROLE_AGENT:
                return "an agent's";
        case API_ROLE_READER:
                return "a reader's";
        case API_ROLE_OPERATOR:
                return "an operator's";
        default:
                return "this";
        }
}

static int check_parameters(
        const struct route *route, const struct api_request *request, struct api_response *response)
{
        for (size_t i = 0; i < request->n_parameters; i++) {
                const char *name = request->parameters[i].name;

                if (!word_in(route->parameters, name)) {
                        int r = api_problem(request, response, 400,
                                "unknown parameter '%s'; this call has: %s", name,
                                route->parameters[0] ? route->parameters : "none");
                        return r < 0 ? r : 1;
                }
                for (size_t k = 0; k < i; k++)
                        if (strcmp(request->parameters[k].name, name) == 0) {
                                int r = api_problem(request, response, 400,
                                        "parameter '%s' is given twice", name);
                                return r < 0 ? r : 1;
                        }
        }
        return 0;
}

int route_check(
        const struct route *route, const struct api_request *request, struct api_response *response)
{
        int r;

        if (!(route->roles & 1u << request->role)) {
                if (request->role == API_ROLE_NONE)
                        r = api_problem(request, response, 401,
                                "this call needs a token: 'Authorization: Bearer TOKEN'");
                else
                        r = api_problem(request, response, 403, "%s token may not do this",
                                role_name(request->role));
                return r < 0 ? r : 1;
        }
        /* A cache buster on a file of the dashboard harms nobody. */
        if (!route->parameters)
                return 0;
        return check_parameters(route, request, response);
}
