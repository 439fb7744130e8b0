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
#define DEVICE_METRICS                                                                             \
        "read_ops,write_ops,read_bytes,write_bytes,read_await,write_await,queue,utilisation"

enum {
        READ_OPS,
        WRITE_OPS,
        READ_BYTES,
        WRITE_BYTES,
        READ_AWAIT,
        WRITE_AWAIT,
        QUEUE,
        UTILISATION,
        N_METRICS
};
static const char *const metric_names[N_METRICS] = {"read_ops", "write_ops", "read_bytes",
        "write_bytes", "read_await", "write_await", "queue", "utilisation"};

struct device_row {
        const char *host, *name; /* of the answer */
        double values[N_METRICS];
};

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

/* The newest time up to which every live agent's disks are known; NAN when there is none. */
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

                        if (strcmp(json_get_text(source, "source"), "diskstats") == 0 &&
                                newest - last < LATENESS_MAX)
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
                {"metric", DEVICE_METRICS}, {NULL}};

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

static void add_rate(struct table *table, double value, bool bytes)
{
        char text[FORMAT_MAX];

        if (bytes)
                table_add(table, COLOUR_NONE, "%s%s", format_bytes(value, text),
                        isfinite(value) ? "/s" : "");
        else
                table_add(table, COLOUR_NONE, "%s", format_count(value, text));
}

static void add_way(struct top_view *view, struct table *table, const char *way, const char *layer)
{
        const json_t *rung = find_rung(view->ladder, way, layer);
        double bytes = json_get_number(rung, "bytes"), ops = json_get_number(rung, "ops");
        double seconds =
                json_get_number(view->ladder, "to") - json_get_number(view->ladder, "from");
        char text[FORMAT_MAX];

        add_rate(table, ops / seconds, false);
        add_rate(table, bytes / seconds, true);
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

static int metric_index(const char *name)
{
        for (int i = 0; i < N_METRICS; i++)
                if (strcmp(metric_names[i], name) == 0)
                        return i;
        return -ENOENT;
}

static struct device_row *find_row(
        struct device_row *rows, size_t *n, const char *host, const char *name)
{
        for (size_t i = 0; i < *n; i++)
                if (strcmp(rows[i].name, name) == 0 && strcmp(rows[i].host, host) == 0)
                        return &rows[i];
        rows[*n] = (struct device_row){.host = host, .name = name};
        for (int i = 0; i < N_METRICS; i++)
                rows[*n].values[i] = NAN;
        return &rows[(*n)++];
}

static int compare_rows(const void *a, const void *b)
{
        const struct device_row *x = a, *y = b;
        double first = isfinite(x->values[UTILISATION]) ? x->values[UTILISATION] : -1;
        double second = isfinite(y->values[UTILISATION]) ? y->values[UTILISATION] : -1;
        int order = strcmp(x->host, y->host);

        if (first != second)
                return first < second ? 1 : -1;
        return order ? order : strcmp(x->name, y->name);
}

/* The answer has a series for each device and metric; a row has all metrics of one device. */
static size_t gather_rows(const struct top_view *view, struct device_row *rows)
{
        const json_t *series;
        size_t i, n = 0;

        json_array_foreach (json_object_get(view->series, "series"), i, series) {
                int metric = metric_index(json_get_text(series, "metric"));
                const json_t *values = json_object_get(series, "value");
                struct device_row *row;

                if (metric < 0)
                        continue;
                row = find_row(
                        rows, &n, json_get_text(series, "host"), json_get_text(series, "key"));
                row->values[metric] = json_number_at(values, json_array_size(values) - 1);
        }
        qsort(rows, n, sizeof(*rows), compare_rows);
        return n;
}

/* "osd.3 osd.4 (db)" */
static void add_osds(const struct top_view *view, struct table *table, const struct device_row *row)
{
        char text[64] = "";
        const json_t *device, *osd;
        size_t i, k, length = 0;

        json_array_foreach (view->devices, i, device) {
                const char *role = json_get_text(device, "role");

                if (strcmp(json_get_text(device, "name"), row->name) != 0 ||
                        strcmp(json_get_text(device, "hostname"), row->host) != 0)
                        continue;
                json_array_foreach (json_object_get(device, "osds"), k, osd)
                        if (length + 16 < sizeof(text))
                                length += snprintf(text + length, sizeof(text) - length,
                                        "%sosd.%" JSON_INTEGER_FORMAT, length ? " " : "",
                                        json_integer_value(osd));
                if (length && *role && strcmp(role, "block") != 0)
                        snprintf(text + length, sizeof(text) - length, " (%s)", role);
                break;
        }
        table_add(table, COLOUR_NONE, "%s", text);
}

static void add_device(
        const struct top_view *view, struct table *table, const struct device_row *row)
{
        const double *values = row->values;
        char text[FORMAT_MAX];

        table_add(table, COLOUR_NONE, "%s%s%s", row->host, *row->host ? "/" : "", row->name);
        add_osds(view, table, row);
        add_rate(table, values[WRITE_OPS], false);
        add_rate(table, values[WRITE_BYTES], true);
        table_add(table, COLOUR_NONE, "%s", format_latency(values[WRITE_AWAIT], false, text));
        add_rate(table, values[READ_OPS], false);
        add_rate(table, values[READ_BYTES], true);
        table_add(table, COLOUR_NONE, "%s", format_latency(values[READ_AWAIT], false, text));
        table_add(table, COLOUR_NONE, "%s", format_factor(values[QUEUE], text));
        table_add(table, values[UTILISATION] > 0.9 ? COLOUR_NOTICE : COLOUR_NONE, "%s",
                format_percent(values[UTILISATION], text));
}

/* What fits under the layers; to a pipe, all. */
static size_t count_shown(const struct top_view *view, size_t n)
{
        const struct output *output = view->invocation->output;
        size_t room = output->lines > 14 ? output->lines - 13 : 1;

        if (!output->terminal || command_option(view->invocation, OPTION_ALL))
                return n;
        if (output->lines == 0)
                room = DEVICES_SHOWN;
        return n < room ? n : room;
}

static int print_devices(struct top_view *view)
{
        static const struct table_column columns[] = {{"DEVICE"}, {"OSD"}, {"WRITE IOPS", true},
                {"BYTES", true}, {"AWAIT", true}, {"READ IOPS", true}, {"BYTES", true},
                {"AWAIT", true}, {"QUEUE", true}, {"BUSY", true}, {NULL}};
        size_t n_series = json_array_size(json_object_get(view->series, "series")), n, shown;
        CLEANUP(mem) struct device_row *rows = calloc(n_series + 1, sizeof(*rows));
        CLEANUP(table) struct table *table = NULL;
        int r;

        if (!rows)
                return -ENOMEM;
        n = gather_rows(view, rows);
        if (n == 0)
                return 0;
        shown = count_shown(view, n);
        r = table_new(columns, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < shown; i++)
                add_device(view, table, &rows[i]);
        fputc('\n', view->invocation->output->stream);
        r = table_print(table, view->invocation->output);
        if (r == 0 && shown < n)
                fprintf(view->invocation->output->stream,
                        "(%zu less busy devices not shown: --all)\n", n - shown);
        return r;
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
        return print_devices(view);
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
        struct timespec timeout = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};

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
        view.window = fmax(ceil(interval_us / 1e6), WINDOW_MIN_SECONDS);
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
