/*
 * Shows and changes the monitoring command: which sources an agent samples, which metrics, how
 * often and how many times. A change is read, modified, checked here as the agent would, and sent.
 */

#include "cli/command.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/format.h"
#include "cli/json.h"
#include "cli/table.h"
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

static void add_start(struct table *table, double start)
{
        char text[FORMAT_MAX];

        if (start > 0)
                table_add(table, COLOUR_NONE, "%s", format_time(start, text));
        else
                table_add(table, COLOUR_NONE, "at once");
}

static void add_count(struct table *table, const json_t *count)
{
        if (json_integer_value(count) > 0)
                table_add(table, COLOUR_NOTICE, "%" JSON_INTEGER_FORMAT, json_integer_value(count));
        else
                table_add(table, COLOUR_NONE, "for ever");
}

static void add_metrics(struct table *table, const json_t *metrics)
{
        char text[61] = "all";
        size_t length = 0, i;
        const json_t *metric;

        json_array_foreach (metrics, i, metric) {
                const char *name = json_string_value(metric);
                int n = snprintf(text + length, sizeof(text) - length, "%s%s", i ? "," : "",
                        name ? name : "?");

                if (n < 0 || length + n >= sizeof(text)) {
                        text[length] = '\0';
                        table_add(table, COLOUR_NONE, "%s and %zu more", text,
                                json_array_size(metrics) - i);
                        return;
                }
                length += n;
        }
        table_add(table, COLOUR_NONE, "%s", text);
}

static int print_sources(struct invocation *invocation, const json_t *plan)
{
        static const struct table_column columns[] = {{"SOURCE"}, {"ENABLED"}, {"INTERVAL", true},
                {"COUNT", true}, {"START"}, {"METRICS"}, {NULL}};
        CLEANUP(table) struct table *table = NULL;
        int r = table_new(columns, &table);

        if (r < 0)
                return r;
        for (int i = SOURCE_NONE + 1; i < SOURCE_MAX_; i++) {
                const char *name = source_name(i);
                const json_t *source = json_object_get(json_object_get(plan, "sources"), name);
                bool enabled = json_is_true(json_object_get(source, "enabled"));

                if (!source)
                        continue;
                table_add(table, COLOUR_NONE, "%s", name);
                table_add(table, enabled ? COLOUR_GOOD : COLOUR_DIM, enabled ? "yes" : "no");
                table_add(table, COLOUR_NONE, "%s", json_get_text(source, "interval"));
                add_count(table, json_object_get(source, "count"));
                add_start(table, json_get_number(source, "start"));
                add_metrics(table, json_object_get(source, "metrics"));
        }
        return table_print(table, invocation->output);
}

static int print_plan(struct invocation *invocation, const json_t *plan, const char *asked)
{
        FILE *stream = invocation->output->stream;
        const char *of = json_get_text(plan, "of"), *host = json_get_text(plan, "host");
        char revision[FORMAT_MAX];

        if (!asked)
                asked = host;
        format_whole(json_get_number(plan, "revision"), revision);
        if (strcmp(of, "default") == 0)
                fprintf(stream, "%s: the built-in plan (revision %s)\n", asked, revision);
        else if (strcmp(of, "*") == 0 && strcmp(host, "*") != 0)
                fprintf(stream, "%s: follows * (revision %s)\n", asked, revision);
        else if (strcmp(host, "*") == 0)
                fprintf(stream, "*: for every host without its own plan (revision %s)\n", revision);
        else
                fprintf(stream, "%s: its own plan (revision %s)\n", asked, revision);
        return print_sources(invocation, plan);
}

static int show(struct invocation *invocation, const json_t *plan)
{
        if (command_option(invocation, OPTION_JSON))
                return command_print_json(invocation, plan);
        if (print_plan(invocation, plan, invocation->argument) < 0)
                return command_failed(invocation);
        return STATUS_OK;
}

/* The plan of * and those of the hosts that have one. */
static int show_all(struct invocation *invocation)
{
        CLEANUP(json) json_t *shared = NULL;
        CLEANUP(json) json_t *answer = NULL;
        const json_t *plan;
        size_t i;

        if (command_get(invocation, "/plans", NULL, &answer) < 0)
                return command_failed(invocation);
        if (command_option(invocation, OPTION_JSON))
                return command_print_json(invocation, answer);
        if (command_get(invocation, "/plans/*", NULL, &shared) < 0 ||
                print_plan(invocation, shared, "*") < 0)
                return command_failed(invocation);
        json_array_foreach (json_object_get(answer, "plans"), i, plan) {
                if (strcmp(json_get_text(plan, "host"), "*") == 0)
                        continue;
                fputc('\n', invocation->output->stream);
                if (print_plan(invocation, plan, NULL) < 0)
                        return command_failed(invocation);
        }
        return STATUS_OK;
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
                        "there is no source '%s': diskstats, osd, ceph, host, agent or osd_histogram", name);
        source = json_object_get(sources, name);
        if (!source) {
                source = json_object();
                if (json_object_set_new(sources, name, source) < 0)
                        return command_failed(invocation);
        }
        value = field_value(field, equals + 1, invocation->now_us);
        if (!value)
                return command_fail(invocation, STATUS_USAGE, "'%s' is no value of %s.%s",
                        equals + 1, name, field);
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
                "own plan follows; without an argument, all of them. --set changes it, for "
                "example\n"
                "  strata plan node1 --set diskstats.interval=500ms --set osd.enabled=no\n"
                "Agents take the change with their next upload. Changing needs an operator's "
                "token.",
        .options = options,
        .run = plan_run,
};
