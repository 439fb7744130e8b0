#include "cli/plan-print.h"

#include <inttypes.h>
#include <string.h>

#include "cli/format.h"
#include "cli/json.h"
#include "cli/table.h"
#include "lib/metric.h"

#define WAITING_MAX 20 /* hosts that are listed; --json has more */

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

/* NULL when the collector knows no name for it. */
static const char *hostname_of(const json_t *agents, const char *id)
{
        const json_t *agent;
        size_t i;

        json_array_foreach (agents, i, agent)
                if (strcmp(json_get_text(agent, "host_id"), id) == 0)
                        return json_string_value(json_object_get(agent, "hostname"));
        return NULL;
}

static int print_waiting(struct invocation *invocation, const json_t *hosts)
{
        CLEANUP(json) json_t *agents = NULL;
        FILE *stream = invocation->output->stream;
        const json_t *host;
        size_t i;

        if (command_list(invocation, "/agents", "agents", NULL, &agents) < 0)
                return command_failed(invocation);
        json_array_foreach (hosts, i, host) {
                const char *id = json_get_text(host, "host_id");
                const char *name = hostname_of(agents, id);
                char revision[FORMAT_MAX], seen[FORMAT_MAX];

                if (i == WAITING_MAX) {
                        fprintf(stream, "  and more: --json\n");
                        break;
                }
                format_whole(json_get_number(host, "revision"), revision);
                format_age((double)invocation->now_us / 1e6 - json_get_number(host, "last_seen"),
                        seen);
                fprintf(stream, "  not yet on %s: it has revision %s, heard %s ago\n",
                        name ? name : id, revision, seen);
        }
        return STATUS_OK;
}

/* Which agents have it already. A plan just stored has no such list yet. */
static int print_followers(struct invocation *invocation, const json_t *plan)
{
        const json_t *agents = json_object_get(plan, "agents");
        FILE *stream = invocation->output->stream;
        char in_force[FORMAT_MAX], waiting[FORMAT_MAX];

        if (!agents) {
                fprintf(stream,
                        "Agents take it with their next upload; 'strata plan' tells which of "
                        "them have it.\n");
                return STATUS_OK;
        }
        format_whole(json_get_number(agents, "in_force"), in_force);
        format_whole(json_get_number(agents, "waiting"), waiting);
        fprintf(stream, "in force on %s agents, not yet on %s\n", in_force, waiting);
        if (json_get_number(agents, "waiting") > 0)
                return print_waiting(invocation, json_object_get(agents, "waiting_hosts"));
        return STATUS_OK;
}

int plan_print(struct invocation *invocation, const json_t *plan, const char *asked)
{
        if (print_plan(invocation, plan, asked) < 0)
                return command_failed(invocation);
        return print_followers(invocation, plan);
}
