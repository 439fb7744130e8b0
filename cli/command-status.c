/*
 * Who is there, how fresh, how far behind. It reads like a list for somebody who was woken up: a
 * table, then one sentence for each thing that needs attention, with where to look. Ages are by the
 * collector's clock, so that a wrong clock here changes nothing.
 */

#include "cli/command.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "cli/format.h"
#include "cli/json.h"
#include "cli/table.h"
#include "lib/config.h"
#include "lib/plan.h"

#define MAX_AGE_SECONDS 30.0
#define INTERVALS_MAX 3 /* a source this many intervals late is stale */
#define CLOCK_OFFSET_MAX                                                                           \
        0.5 /* seconds: more, and rows of one second fall into another's window                    \
             */

struct status_view {
        struct invocation *invocation;
        json_t *clusters, *agents, *plans;
        double max_age;
        json_t *problems; /* sentences */
};

static void status_view_cleanup(struct status_view *view)
{
        json_decref(view->clusters);
        json_decref(view->agents);
        json_decref(view->plans);
        json_decref(view->problems);
}

__attribute__((format(printf, 2, 3))) static void add_problem(
        struct status_view *view, const char *format, ...)
{
        CLEANUP(str) char *text = NULL;
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(&text, format, arguments) < 0)
                text = NULL;
        va_end(arguments);
        json_array_append_new(view->problems, json_string(text ? text : "out of memory"));
}

static bool is_stale(double age, double interval, double max_age)
{
        return !(age <= fmax(max_age, INTERVALS_MAX * interval));
}

/* The plan that @host follows; NULL is the built-in one. */
static const json_t *find_plan(const struct status_view *view, const char *host)
{
        const json_t *plan, *shared = NULL;
        size_t i;

        json_array_foreach (view->plans, i, plan) {
                const char *name = json_get_text(plan, "host");

                if (strcmp(name, host) == 0)
                        return plan;
                if (strcmp(name, "*") == 0)
                        shared = plan;
        }
        return shared;
}

/*
 * Whether new samples of @source are due all the time: it is on, and not for a count only. The ceph
 * source moves from agent to agent; the age of its cluster tells more.
 */
static bool is_expected(const struct status_view *view, const char *host, const char *source)
{
        const json_t *plan = find_plan(view, host), *entry;

        if (strcmp(source, "ceph") == 0)
                return false;
        entry = json_object_get(json_object_get(plan, "sources"), source);
        if (!entry)
                return true;
        return json_is_true(json_object_get(entry, "enabled")) &&
               json_integer_value(json_object_get(entry, "count")) == 0;
}

/* The collector's clock at its answer; NAN when it does not say. */
static double collector_now(const json_t *agent)
{
        return json_get_number(agent, "last_seen") + json_get_number(agent, "age");
}

/* Adds a sentence for each late source of one agent; *ret_age is that of the oldest. */
static size_t check_sources(struct status_view *view, const json_t *agent, double *ret_age)
{
        const char *name = json_get_text(agent, "hostname");
        const json_t *source;
        char text[FORMAT_MAX];
        size_t i, stale = 0;

        *ret_age = NAN;
        json_array_foreach (json_object_get(agent, "sources"), i, source) {
                const char *source_name = json_get_text(source, "source");
                double age = collector_now(agent) - json_get_number(source, "last_sample");

                if (!is_expected(view, json_get_text(agent, "host_id"), source_name))
                        continue;
                *ret_age = fmax(*ret_age, age);
                if (!is_stale(age, json_get_number(source, "interval"), view->max_age))
                        continue;
                stale++;
                add_problem(view,
                        "%s: the source '%s' gave its last sample %s ago, though its agent is "
                        "alive. Check there: journalctl -u strata-agentd.",
                        name, source_name, format_age(age, text));
        }
        return stale;
}

static void add_source_names(struct table *table, const json_t *agent)
{
        char names[128] = "";
        const json_t *source;
        size_t i, length = 0;

        json_array_foreach (json_object_get(agent, "sources"), i, source) {
                int n = snprintf(names + length, sizeof(names) - length, "%s%s", length ? " " : "",
                        json_get_text(source, "source"));

                if (n < 0 || length + n >= sizeof(names))
                        break;
                length += n;
        }
        table_add(table, COLOUR_NONE, "%s", names);
}

/* The word in the last column, and the sentences. */
static const char *check_agent(struct status_view *view, const json_t *agent, double *ret_sample)
{
        const char *name = json_get_text(agent, "hostname");
        double age = json_get_number(agent, "age");
        double offset = json_get_number(agent, "clock_offset");
        char text[FORMAT_MAX], seen[FORMAT_MAX];
        size_t stale = check_sources(view, agent, ret_sample);

        if (is_stale(age, 0, view->max_age)) {
                /* Its sources are silent for the same reason: one sentence is enough. */
                for (; stale > 0; stale--)
                        json_array_remove(view->problems, json_array_size(view->problems) - 1);
                add_problem(view,
                        "%s: nothing heard for %s (since %s). Check there: systemctl status "
                        "strata-agentd.",
                        name, format_age(age, text),
                        format_time(json_get_number(agent, "last_seen"), seen));
                return "silent";
        }
        if (fabs(offset) > CLOCK_OFFSET_MAX)
                add_problem(view,
                        "%s: its clock is %s %s the collector's, so its rows fall into wrong "
                        "windows. Check there: timedatectl.",
                        name, format_latency(fabs(offset), false, text),
                        offset > 0 ? "ahead of" : "behind");
        if (stale > 0)
                return "stale";
        return fabs(offset) > CLOCK_OFFSET_MAX ? "clock" : "ok";
}

static void add_state(struct table *table, const char *state)
{
        table_add(table, strcmp(state, "ok") == 0 ? COLOUR_GOOD : COLOUR_BAD, "%s", state);
}

static void add_ago(struct table *table, double age)
{
        char text[FORMAT_MAX];

        if (isfinite(age))
                table_add(table, COLOUR_NONE, "%s ago", format_age(age, text));
        else
                table_add(table, COLOUR_NONE, "never");
}

static void add_number(struct table *table, double value, bool attention)
{
        char text[FORMAT_MAX];

        table_add(table, attention && value > 0 ? COLOUR_NOTICE : COLOUR_NONE, "%s",
                format_whole(value, text));
}

static void add_agent(struct status_view *view, struct table *table, const json_t *agent)
{
        char text[FORMAT_MAX];
        double sample;
        const char *state = check_agent(view, agent, &sample);

        table_add(table, COLOUR_NONE, "%s", json_get_text(agent, "hostname"));
        add_source_names(table, agent);
        add_ago(table, json_get_number(agent, "age"));
        add_ago(table, sample);
        table_add(table, COLOUR_NONE, "%s",
                format_latency(json_get_number(agent, "clock_offset"), true, text));
        add_number(table, json_get_number(agent, "backlog_rows"), false);
        add_number(table, json_get_number(agent, "dropped_rows"), true);
        add_state(table, state);
}

static int print_agents(struct status_view *view)
{
        static const struct table_column columns[] = {{"AGENT"}, {"SOURCES"}, {"HEARD", true},
                {"OLDEST SAMPLE", true}, {"CLOCK", true}, {"BACKLOG", true}, {"LOST", true},
                {"STATE"}, {NULL}};
        CLEANUP(table) struct table *table = NULL;
        const json_t *agent;
        size_t i;
        int r;

        if (json_array_size(view->agents) == 0) {
                fputs("No agent has reported to this collector yet. Check on a node: systemctl "
                      "status strata-agentd.\n",
                        view->invocation->output->stream);
                return 0;
        }
        r = table_new(columns, &table);
        if (r < 0)
                return r;
        json_array_foreach (view->agents, i, agent)
                add_agent(view, table, agent);
        if (json_array_size(view->clusters) > 0)
                fputc('\n', view->invocation->output->stream);
        return table_print(table, view->invocation->output);
}

static enum colour health_colour(const char *health)
{
        if (strcmp(health, "HEALTH_OK") == 0)
                return COLOUR_GOOD;
        return strcmp(health, "HEALTH_ERR") == 0 ? COLOUR_BAD : COLOUR_NOTICE;
}

static const char *check_cluster(struct status_view *view, const json_t *cluster)
{
        double age = json_get_number(cluster, "age");
        const char *name = json_get_text(cluster, "name");
        char text[FORMAT_MAX];

        /* Machines outside any cluster have no filesystem layer that could be late. */
        if (strcmp(json_get_text(cluster, "fsid"), "none") == 0)
                return "ok";
        if (isnan(age)) {
                add_problem(view,
                        "%s: no pool statistics have arrived. Is the ceph source on at one agent, "
                        "with a key that may read? Check there: journalctl -u strata-agentd.",
                        name);
                return "no data";
        }
        if (!is_stale(age, json_get_number(cluster, "mgr_stats_period"), view->max_age))
                return "ok";
        add_problem(view,
                "%s: the last pool statistics are %s old. Check the agent with the ceph source and "
                "the cluster's mgr: ceph -s.",
                name, format_age(age, text));
        return "stale";
}

static void add_cluster(struct status_view *view, struct table *table, const json_t *cluster)
{
        const char *health = json_get_text(cluster, "health");
        double osds = json_get_number(cluster, "osds"), up = json_get_number(cluster, "osds_up");
        char up_text[FORMAT_MAX], osds_text[FORMAT_MAX];

        table_add(table, COLOUR_NONE, "%s", json_get_text(cluster, "name"));
        table_add(table, COLOUR_NONE, "%s", json_get_text(cluster, "fsid"));
        if (*health)
                table_add(table, health_colour(health), "%s", health);
        else
                table_add(table, COLOUR_NONE, "-");
        table_add(table, COLOUR_NONE, "%s",
                *json_get_text(cluster, "release") ? json_get_text(cluster, "release") : "-");
        add_number(table, json_get_number(cluster, "hosts"), false);
        table_add(table, up < osds ? COLOUR_NOTICE : COLOUR_NONE, "%s/%s",
                format_whole(up, up_text), format_whole(osds, osds_text));
        add_number(table, json_get_number(cluster, "pools"), false);
        add_ago(table, json_get_number(cluster, "age"));
        add_state(table, check_cluster(view, cluster));
}

static int print_clusters(struct status_view *view)
{
        static const struct table_column columns[] = {{"CLUSTER"}, {"FSID"}, {"HEALTH"},
                {"RELEASE"}, {"HOSTS", true}, {"OSDS UP", true}, {"POOLS", true},
                {"POOL STATISTICS", true}, {"STATE"}, {NULL}};
        CLEANUP(table) struct table *table = NULL;
        const json_t *cluster;
        size_t i;
        int r;

        if (json_array_size(view->clusters) == 0)
                return 0;
        r = table_new(columns, &table);
        if (r < 0)
                return r;
        json_array_foreach (view->clusters, i, cluster)
                add_cluster(view, table, cluster);
        return table_print(table, view->invocation->output);
}

static void print_problems(struct status_view *view)
{
        struct output *output = view->invocation->output;
        const json_t *problem;
        size_t i, n = json_array_size(view->problems);

        if (n == 0 && json_array_size(view->agents) == 0)
                return;
        if (n == 0) {
                fprintf(output->stream, "\n%sAll is well.%s\n", output_colour(output, COLOUR_GOOD),
                        output_plain(output));
                return;
        }
        fprintf(output->stream, "\n%s%zu thing%s attention:%s\n", output_colour(output, COLOUR_BAD),
                n, n == 1 ? " needs" : "s need", output_plain(output));
        json_array_foreach (view->problems, i, problem)
                fprintf(output->stream, "  %s\n", json_string_value(problem));
}

static int print_tables(struct status_view *view)
{
        int r = print_clusters(view);

        if (r < 0)
                return r;
        r = print_agents(view);
        if (r < 0)
                return r;
        print_problems(view);
        return 0;
}

/* The same checks; the tables are thrown away. */
static int print_json(struct status_view *view)
{
        struct output scratch = {0}, *shown = view->invocation->output;
        json_t *json;
        int r = output_init(&scratch);

        if (r < 0)
                return r;
        view->invocation->output = &scratch;
        r = print_tables(view);
        view->invocation->output = shown;
        output_done(&scratch);
        if (r < 0)
                return r;

        json = json_pack("{s:O, s:O, s:O}", "clusters", view->clusters, "agents", view->agents,
                "problems", view->problems);
        r = command_print_json(view->invocation, json) == STATUS_OK ? 0 : -ENOMEM;
        json_decref(json);
        return r;
}

static int fetch(struct status_view *view)
{
        json_t *plans = NULL;
        int r;

        r = command_list(view->invocation, "/clusters", "clusters", NULL, &view->clusters);
        if (r < 0)
                return r;
        r = command_list(view->invocation, "/agents", "agents", NULL, &view->agents);
        if (r < 0)
                return r;
        r = command_get(view->invocation, "/plans", NULL, &plans);
        if (r < 0)
                return r;
        view->plans = json_incref(json_object_get(plans, "plans"));
        json_decref(plans);
        view->problems = json_array();
        return view->problems ? 0 : -ENOMEM;
}

static int status_run(struct invocation *invocation)
{
        CLEANUP(status_view)
        struct status_view view = {.invocation = invocation, .max_age = MAX_AGE_SECONDS};
        const char *max_age = command_option(invocation, OPTION_MAX_AGE);
        uint64_t us;

        if (max_age) {
                if (config_parse_duration(max_age, &us) < 0)
                        return command_fail(invocation, STATUS_USAGE,
                                "--max-age must be a duration such as 30s or 5m, but is '%s'",
                                max_age);
                view.max_age = (double)us / 1e6;
        }
        if (fetch(&view) < 0)
                return command_failed(invocation);
        if ((command_option(invocation, OPTION_JSON) ? print_json(&view) : print_tables(&view)) < 0)
                return command_failed(invocation);
        return json_array_size(view.problems) > 0 ? STATUS_STALE : STATUS_OK;
}

static const enum option_id options[] = {OPTION_MAX_AGE, OPTION_MAX_};

const struct command command_status = {
        .name = "status",
        .summary = "clusters and agents: who is there, how fresh, how far behind",
        .text = "Lists clusters and agents. HEARD is when the collector last heard of the agent,\n"
                "OLDEST SAMPLE the age of the newest row of its slowest source, CLOCK how far its\n"
                "clock is ahead of the collector's, BACKLOG the rows it has yet to send, LOST the\n"
                "rows it had to drop.\n\n"
                "Ends with status 3 when an agent is silent, a source or a cluster gives no new\n"
                "samples, or a clock is off by more than half a second.",
        .options = options,
        .run = status_run,
};
