/*
 * Live: every layer, and the devices behind the OSDs, busiest first. A window ends at the newest
 * time that every live agent has reported, so that the layers are compared over the same seconds.
 */

#include "cli/command.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/device-table.h"
#include "cli/format.h"
#include "cli/json.h"
#include "cli/table.h"
#include "lib/config.h"

#define INTERVAL_US 2000000ull
#define INTERVAL_MIN_US 1000000ull /* the interval at which agents sample */
#define WINDOW_MIN_SECONDS 10.0    /* two periods in which OSDs report the pools' totals */
#define INTERVAL_MAX_US 3600000000ull
#define LATENESS_MAX 30.0 /* seconds: an agent further behind is not waited for */
#define DEVICES_SHOWN 20u /* where the height of the terminal is unknown */
#define LINES_TAKEN 13u   /* by layers, headings and the line on what is not shown */

struct top_view {
        struct invocation *invocation;
        const char *fsid, *name;
        double window; /* seconds */
        double from, to;
        json_t *ladder, *series, *devices;
};

static void forget(struct top_view *view)
{
        json_decref(view->ladder);
        json_decref(view->series);
        json_decref(view->devices);
        view->ladder = view->series = view->devices = NULL;
}

static void top_view_cleanup(struct top_view *view)
{
        forget(view);
}

/* The ceph source samples less often than the others; it counts where it runs. */
static bool is_layer_source(const json_t *source)
{
        const char *name = json_get_text(source, "source");

        return strcmp(name, "diskstats") == 0 || strcmp(name, "osd") == 0 ||
               strcmp(name, "ceph") == 0;
}

/* The newest time up to which all layers of every live agent are known; NAN when there is none. */
static double find_end(const json_t *agents)
{
        double newest = NAN, end = NAN;
        const json_t *agent, *source;
        size_t i, k;

        json_array_foreach (agents, i, agent)
                json_array_foreach (json_object_get(agent, "sources"), k, source)
                        newest = fmax(newest, json_get_number(source, "last_sample"));
        json_array_foreach (agents, i, agent)
                json_array_foreach (json_object_get(agent, "sources"), k, source) {
                        double last = json_get_number(source, "last_sample");

                        if (is_layer_source(source) && newest - last < LATENESS_MAX)
                                end = fmin(end, last);
                }
        /* Whole seconds, as the agents' ticks. */
        return floor(end);
}

static int fetch(struct top_view *view)
{
        struct invocation *invocation = view->invocation;
        CLEANUP(json) json_t *agents = NULL;
        char from[32], to[32], step[32];
        int r;

        forget(view);
        r = command_list(invocation, "/agents", "agents", view->fsid, &agents);
        if (r < 0)
                return r;
        view->to = find_end(agents);
        if (isnan(view->to)) {
                command_fail(invocation, STATUS_FAILED,
                        "no agent of this cluster has sent disk samples; see 'strata status'");
                return -ENODATA;
        }
        view->from = view->to - view->window;
        snprintf(from, sizeof(from), "%.0f", view->from);
        snprintf(to, sizeof(to), "%.0f", view->to);
        snprintf(step, sizeof(step), "%.0fs", view->window);
        const struct client_parameter window[] = {
                {"cluster", view->fsid}, {"from", from}, {"to", to}, {NULL}};
        const struct client_parameter series[] = {{"cluster", view->fsid}, {"from", from},
                {"to", to}, {"step", step}, {"layer", "storage"}, {"by", "device"},
                {"metric", DEVICE_TABLE_METRICS}, {NULL}};

        r = command_get(invocation, "/ladder", window, &view->ladder);
        if (r < 0)
                return r;
        r = command_get(invocation, "/series", series, &view->series);
        if (r < 0)
                return r;
        return command_list(invocation, "/devices", "devices", view->fsid, &view->devices);
}

static const json_t *find_rung(const json_t *ladder, const char *way, const char *layer)
{
        const json_t *rung;
        size_t i;

        json_array_foreach (json_object_get(json_object_get(ladder, way), "rungs"), i, rung)
                if (strcmp(json_get_text(rung, "layer"), layer) == 0)
                        return rung;
        return NULL;
}

static void add_way(struct top_view *view, struct table *table, const char *way, const char *layer)
{
        const json_t *rung = find_rung(view->ladder, way, layer);
        double bytes = json_get_number(rung, "bytes"), ops = json_get_number(rung, "ops");
        double seconds =
                json_get_number(view->ladder, "to") - json_get_number(view->ladder, "from");
        char text[FORMAT_MAX];

        table_add(table, COLOUR_NONE, "%s", format_count(ops / seconds, text));
        table_add(table, COLOUR_NONE, "%s", format_byte_rate(bytes / seconds, text));
        table_add(table, COLOUR_NONE, "%s", format_bytes(ops > 0 ? bytes / ops : NAN, text));
        table_add(table, COLOUR_BOLD, "%s",
                format_factor(json_get_number(rung, "amplification"), text));
}

static int print_layers(struct top_view *view)
{
        static const struct table_column columns[] = {{"LAYER"}, {"WRITE IOPS", true},
                {"BYTES", true}, {"MEAN SIZE", true}, {"AMPL.", true}, {"READ IOPS", true},
                {"BYTES", true}, {"MEAN SIZE", true}, {"AMPL.", true}, {NULL}};
        static const char *const layers[] = {"filesystem", "osd", "objectstore", "storage"};
        CLEANUP(table) struct table *table = NULL;
        int r = table_new(columns, &table);

        if (r < 0)
                return r;
        for (size_t i = 0; i < 4; i++) {
                table_add(table, COLOUR_BOLD, "%s", layers[i]);
                add_way(view, table, "write", layers[i]);
                add_way(view, table, "read", layers[i]);
        }
        return table_print(table, view->invocation->output);
}

static void print_way_state(struct top_view *view, const char *way)
{
        const json_t *ladder = json_object_get(view->ladder, way);
        const char *state = json_get_text(ladder, "state");
        const char *detail = json_get_text(ladder, "detail");
        struct output *output = view->invocation->output;
        double excess = json_get_number(ladder, "excess");
        char expected[FORMAT_MAX], text[FORMAT_MAX];

        fprintf(output->stream, "%s:", way);
        if (isfinite(excess))
                fprintf(output->stream, " expected %s, excess %s%s%s",
                        format_factor(json_get_number(ladder, "expected"), expected),
                        output_colour(output, excess >= 1.2 ? COLOUR_NOTICE : COLOUR_NONE),
                        format_factor(excess, text), output_plain(output));
        if (*state && strcmp(state, "ok") != 0)
                fprintf(output->stream, " %s%s%s%s%s", output_colour(output, COLOUR_NOTICE), state,
                        *detail ? ": " : "", detail, output_plain(output));
        fputc('\n', output->stream);
}

/* Devices that fit under the layers; to a pipe, all. */
static size_t count_room(const struct top_view *view)
{
        const struct output *output = view->invocation->output;

        if (!output->terminal || command_option(view->invocation, OPTION_ALL))
                return SIZE_MAX;
        if (output->lines == 0)
                return DEVICES_SHOWN;
        return output->lines > LINES_TAKEN ? output->lines - LINES_TAKEN : 1;
}

static int print_view(struct top_view *view)
{
        char text[FORMAT_MAX];
        int r;

        fprintf(view->invocation->output->stream, "%s, %.0f s to %s\n", view->name, view->window,
                format_time(view->to, text));
        r = print_layers(view);
        if (r < 0)
                return r;
        print_way_state(view, "write");
        print_way_state(view, "read");
        return device_table_print(
                view->series, view->devices, count_room(view), view->invocation->output);
}

static int print_json(struct top_view *view)
{
        json_t *json = json_pack("{s:O, s:O}", "ladder", view->ladder, "series", view->series);
        FILE *stream = view->invocation->output->stream;
        int r = json ? json_dumpf(json, stream, JSON_COMPACT) : -1;

        json_decref(json);
        fputc('\n', stream);
        return r < 0 ? -ENOMEM : 0;
}

/* One refresh. A failure after the first one is shown in place, since the collector may come back;
 * the first failure ends the program. */
static int refresh(struct top_view *view, bool first)
{
        struct invocation *invocation = view->invocation;
        int r = fetch(view);

        if (r == -ECANCELED)
                return STATUS_OK;
        if (r < 0 && first)
                return command_failed(invocation);
        if (r < 0) {
                fprintf(invocation->output->stream, "strata: %s\nTrying again.\n",
                        invocation->message ? invocation->message : "out of memory");
        } else {
                r = command_option(invocation, OPTION_JSON) ? print_json(view) : print_view(view);
                if (r < 0)
                        return command_failed(invocation);
        }
        r = output_show(invocation->output, !command_option(invocation, OPTION_JSON));
        if (r < 0)
                return command_fail(invocation, STATUS_FAILED, "cannot write: %s", strerror(-r));
        return STATUS_OK;
}

/* False once the program is asked to end. */
static bool wait_interval(const struct invocation *invocation, uint64_t us)
{
        struct pollfd pollfd = {.fd = invocation->stop_fd, .events = POLLIN};
        struct timespec timeout = {
                .tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};

        return ppoll(&pollfd, 1, &timeout, NULL) == 0;
}

static int read_options(struct invocation *invocation, uint64_t *ret_us, uint64_t *ret_count)
{
        const char *interval = command_option(invocation, OPTION_INTERVAL);
        const char *count = command_option(invocation, OPTION_COUNT);
        char *end;

        *ret_us = INTERVAL_US;
        *ret_count = 0;
        if (interval && (config_parse_duration(interval, ret_us) < 0 || *ret_us < INTERVAL_MIN_US ||
                                *ret_us > INTERVAL_MAX_US))
                return command_fail(invocation, STATUS_USAGE,
                        "--interval must be a duration from 1s to 1h, but is '%s'", interval);
        if (!count)
                return STATUS_OK;
        *ret_count = strtoul(count, &end, 10);
        if (*count < '0' || *count > '9' || *end || *ret_count == 0)
                return command_fail(invocation, STATUS_USAGE,
                        "-n must be a whole number above 0, but is '%s'", count);
        return STATUS_OK;
}

static int top_run(struct invocation *invocation)
{
        CLEANUP(top_view) struct top_view view = {.invocation = invocation};
        CLEANUP(json) json_t *clusters = NULL;
        uint64_t interval_us, count;
        int status, r;

        status = read_options(invocation, &interval_us, &count);
        if (status != STATUS_OK)
                return status;
        r = command_cluster(invocation, &clusters, &view.fsid, &view.name);
        if (r == -ECANCELED)
                return STATUS_OK;
        if (r < 0)
                return command_failed(invocation);
        view.window = fmax(ceil((double)interval_us / 1e6), WINDOW_MIN_SECONDS);
        for (uint64_t turn = 0; count == 0 || turn < count; turn++) {
                if (turn > 0 && !wait_interval(invocation, interval_us))
                        break;
                if (turn > 0 && !invocation->output->terminal &&
                        !command_option(invocation, OPTION_JSON))
                        fputc('\n', invocation->output->stream);
                status = refresh(&view, turn == 0);
                if (status != STATUS_OK)
                        return status;
        }
        return STATUS_OK;
}

static const enum option_id options[] = {
        OPTION_CLUSTER, OPTION_INTERVAL, OPTION_COUNT, OPTION_ALL, OPTION_MAX_};

const struct command command_top = {
        .name = "top",
        .summary = "live: all layers, and the devices behind the OSDs",
        .text = "Refreshes until Ctrl-C. Each refresh shows the last 10 s, or the interval when "
                "that\n"
                "is longer: OSDs report the filesystem layer only every 5 s.\n"
                "BUSY is the share of time with a request in flight: 100 % does not mean "
                "saturated\n"
                "on a device that works in parallel; look at AWAIT and QUEUE.",
        .options = options,
        .live = true,
        .run = top_run,
};
