/*
 * Shows and changes the monitoring command: which sources an agent samples, which metrics, how
 * often and how many times. A change is read, modified, checked here as the agent would, and sent.
 */

#include "cli/command.h"

#include <errno.h>
#include <string.h>

#include "cli/json.h"
#include "cli/plan-print.h"
#include "lib/id.h"
#include "lib/message.h"
#include "lib/plan.h"
#include "lib/time.h"

#define PATH_BYTES 64

/* The host id for a host name. Names are not unique, ids are. */
static int find_host(struct invocation *invocation, const char *name, char *ret_id)
{
        CLEANUP(json) json_t *agents = NULL;
        const json_t *agent;
        size_t i, found = 0;
        struct id id;

        if (command_list(invocation, "/agents", "agents", NULL, &agents) < 0)
                return command_failed(invocation);
        json_array_foreach (agents, i, agent) {
                if (strcmp(json_get_text(agent, "hostname"), name) != 0 ||
                        id_parse(json_get_text(agent, "host_id"), &id) < 0)
                        continue;
                id_format(&id, ret_id);
                found++;
        }
        if (found == 0)
                return command_fail(invocation, STATUS_FAILED,
                        "the collector knows no host '%s'; 'strata status' lists them", name);
        if (found > 1)
                return command_fail(invocation, STATUS_FAILED,
                        "%zu hosts are named '%s'; give the host id (strata status --json)", found,
                        name);
        return STATUS_OK;
}

/* "/plans/HOST" for the argument, which may be "*", a host id or a host name. */
static int make_path(struct invocation *invocation, char *ret)
{
        char text[ID_TEXT_MAX] = "*";
        struct id id;
        int status = STATUS_OK;

        if (id_parse(invocation->argument, &id) == 0)
                id_format(&id, text);
        else if (strcmp(invocation->argument, "*") != 0)
                status = find_host(invocation, invocation->argument, text);
        snprintf(ret, PATH_BYTES, "/plans/%s", text);
        return status;
}

static int show(struct invocation *invocation, const json_t *plan)
{
        if (command_option(invocation, OPTION_JSON))
                return command_print_json(invocation, plan);
        return plan_print(invocation, plan, invocation->argument);
}

/* The plan of * and those of the hosts that have one. */
static int show_all(struct invocation *invocation)
{
        CLEANUP(json) json_t *shared = NULL;
        CLEANUP(json) json_t *plans = NULL;
        const json_t *plan;
        size_t i;
        int status;

        if (command_list(invocation, "/plans", "plans", NULL, &plans) < 0)
                return command_failed(invocation);
        if (command_option(invocation, OPTION_JSON)) {
                CLEANUP(json) json_t *answer = json_pack("{s:O}", "plans", plans);

                return command_print_json(invocation, answer);
        }
        if (command_get(invocation, "/plans/*", NULL, &shared) < 0)
                return command_failed(invocation);
        status = plan_print(invocation, shared, "*");
        json_array_foreach (plans, i, plan) {
                if (status != STATUS_OK || strcmp(json_get_text(plan, "host"), "*") == 0)
                        continue;
                fputc('\n', invocation->output->stream);
                status = plan_print(invocation, plan, NULL);
        }
        return status;
}

static json_t *bool_value(const char *text)
{
        static const char *const words[2][4] = {
                {"no", "false", "off", "0"}, {"yes", "true", "on", "1"}};

        for (size_t i = 0; i < 8; i++)
                if (strcmp(text, words[i / 4][i % 4]) == 0)
                        return json_boolean(i / 4);
        return NULL;
}

static json_t *count_value(const char *text)
{
        char *end;
        long long count;

        errno = 0;
        count = strtoll(text, &end, 10);
        return errno == 0 && *text >= '0' && *text <= '9' && !*end ? json_integer(count) : NULL;
}

static json_t *start_value(const char *text, int64_t now_us)
{
        int64_t us;

        if (time_parse(text, now_us, &us, NULL) < 0)
                return NULL;
        return us % 1000000 == 0 ? json_integer(us / 1000000) : json_real((double)us / 1e6);
}

/* Names with commas between; "all" or nothing is the empty list. */
static json_t *metrics_value(const char *text)
{
        json_t *list = json_array();

        if (strcmp(text, "all") == 0)
                return list;
        while (list && *text) {
                size_t length = strcspn(text, ",");

                if (json_array_append_new(list, json_stringn(text, length)) < 0) {
                        json_decref(list);
                        return NULL;
                }
                text += length + (text[length] == ',');
        }
        return list;
}

/* NULL when @text is no value of @field. */
static json_t *field_value(const char *field, const char *text, int64_t now_us)
{
        if (strcmp(field, "enabled") == 0)
                return bool_value(text);
        if (strcmp(field, "count") == 0)
                return count_value(text);
        if (strcmp(field, "start") == 0)
                return start_value(text, now_us);
        if (strcmp(field, "metrics") == 0)
                return metrics_value(text);
        return json_string(text);
}

static const char *field_rule(const char *field)
{
        if (strcmp(field, "enabled") == 0)
                return "yes or no";
        if (strcmp(field, "count") == 0)
                return "a whole number of samples, 0 for no end";
        return "a time such as 2026-11-30T10:00:00Z, Unix seconds or +5m, 0 for at once";
}

/* One --set SOURCE.FIELD=VALUE. What is left unchecked here, plan_from_json checks. */
static int apply_set(struct invocation *invocation, json_t *sources, const char *set)
{
        size_t source_length = strcspn(set, ".=");
        const char *equals = strchr(set, '=');
        CLEANUP(str) char *name = strndup(set, source_length);
        CLEANUP(str) char *field = NULL;
        json_t *source, *value;
        enum source_id id;

        if (!equals || set[source_length] != '.')
                return command_fail(invocation, STATUS_USAGE,
                        "--set takes SOURCE.FIELD=VALUE, such as osd.interval=5s, but got '%s'",
                        set);
        field = strndup(set + source_length + 1, equals - set - source_length - 1);
        if (!name || !field)
                return command_failed(invocation);
        if (source_parse(name, &id) < 0)
                return command_fail(invocation, STATUS_USAGE,
                        "there is no source '%s': diskstats, osd, ceph, host, agent or "
                        "osd_histogram",
                        name);
        source = json_object_get(sources, name);
        if (!source) {
                source = json_object();
                if (json_object_set_new(sources, name, source) < 0)
                        return command_failed(invocation);
        }
        value = field_value(field, equals + 1, invocation->now_us);
        if (!value)
                return command_fail(invocation, STATUS_USAGE,
                        "'%s' is no value of %s.%s: it takes %s", equals + 1, name, field,
                        field_rule(field));
        return json_object_set_new(source, field, value) < 0 ? command_failed(invocation)
                                                             : STATUS_OK;
}

static int check(struct invocation *invocation, const json_t *plan)
{
        CLEANUP(plan) struct plan checked = {0};
        CLEANUP(str) char *message = NULL;

        if (plan_from_json(plan, &checked, &message) == 0)
                return STATUS_OK;
        return command_fail(invocation, STATUS_USAGE, "%s", message ? message : "out of memory");
}

static int change(struct invocation *invocation, const char *path)
{
        CLEANUP(json) json_t *old = NULL;
        CLEANUP(json) json_t *body = NULL;
        CLEANUP(json) json_t *stored = NULL;
        json_t *sources;
        int status;

        if (command_get(invocation, path, NULL, &old) < 0)
                return command_failed(invocation);
        sources = json_object_get(old, "sources");
        body = json_pack("{s:O?}", "sources", sources);
        if (!body)
                return command_failed(invocation);
        for (size_t i = 0; i < invocation->options->n_sets; i++) {
                status = apply_set(invocation, sources, invocation->options->sets[i]);
                if (status != STATUS_OK)
                        return status;
        }
        status = check(invocation, body);
        if (status != STATUS_OK)
                return status;
        if (client_request(
                    invocation->client, "PUT", path, NULL, body, &stored, &invocation->message) < 0)
                return command_failed(invocation);
        return show(invocation, stored);
}

static int reset(struct invocation *invocation, const char *path)
{
        CLEANUP(json) json_t *answer = NULL;
        CLEANUP(json) json_t *plan = NULL;

        if (client_request(invocation->client, "DELETE", path, NULL, NULL, &answer,
                    &invocation->message) < 0)
                return command_failed(invocation);
        if (command_get(invocation, path, NULL, &plan) < 0)
                return command_failed(invocation);
        return show(invocation, plan);
}

static int plan_run(struct invocation *invocation)
{
        bool wants_reset = command_option(invocation, OPTION_RESET);
        bool wants_change = invocation->options->n_sets > 0;
        CLEANUP(json) json_t *plan = NULL;
        char path[PATH_BYTES];
        int status;

        if (wants_reset && wants_change)
                return command_fail(
                        invocation, STATUS_USAGE, "--reset and --set exclude each other");
        if (!invocation->argument && (wants_reset || wants_change))
                return command_fail(invocation, STATUS_USAGE,
                        "say whose plan: a host, or '*' for all that have none of their own");
        if (!invocation->argument)
                return show_all(invocation);
        status = make_path(invocation, path);
        if (status != STATUS_OK)
                return status;
        if (wants_reset)
                return reset(invocation, path);
        if (wants_change)
                return change(invocation, path);
        if (command_get(invocation, path, NULL, &plan) < 0)
                return command_failed(invocation);
        return show(invocation, plan);
}

static const enum option_id options[] = {OPTION_SET, OPTION_RESET, OPTION_MAX_};

const struct command command_plan = {
        .name = "plan",
        .argument = "[HOST|'*']",
        .summary = "shows or changes what the agents sample, and how often",
        .text = "Shows the plan of a host (its name or id) or of '*', which every host without "
                "its\n"
                "own plan follows; without an argument, all of them, each with its revision and "
                "with\n"
                "the agents that do not have it in force yet. --set changes it, for example\n"
                "  strata plan node1 --set diskstats.interval=500ms --set osd.enabled=no\n"
                "  strata plan '*' --set osd.metrics=op_w,op_r --set osd.start=+5m\n"
                "Sources: diskstats, osd, osd_histogram (off by default), ceph, host, agent. "
                "Fields:\n"
                "  enabled   yes or no; of ceph: on the agent elected for each cluster\n"
                "  interval  100ms to 1h; samples are taken at whole multiples of it\n"
                "  count     samples to take, then stop until the plan changes; 0 has no end\n"
                "  start     time of the first: RFC 3339, Unix seconds, +5m; 0 is at once\n"
                "  metrics   names with commas between, or all; a wrong one lists them all\n"
                "A plan that is wrong in one field is refused as a whole, before it is sent. "
                "Agents take\n"
                "a change with their next upload, without a restart and without losing a tick. "
                "Changing\n"
                "needs an operator's token.",
        .options = options,
        .run = plan_run,
};
