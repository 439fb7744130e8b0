/*
 * The ratio curve as a table: one line a window, a sparkline over all of them, and a summary in
 * which sums are divided, not ratios averaged.
 */

#include "cli/command.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "cli/format.h"
#include "cli/json.h"
#include "cli/table.h"
#include "cli/window.h"
#include "lib/time.h"

#define DEFAULT_FROM "-15m"
#define DETAILS_MAX 8u /* different sentences shown under a table */

struct summary {
        double upper, lower;    /* sums of the windows that have a number */
        double expected_upper;  /* upper of the windows with an expected value */
        double expected_weight; /* and the sum of expected times upper */
        size_t windows, numbers, ok;
};

/* --step, or a round one for the asked range; "" leaves it to the server. */
static const char *choose_step(const struct invocation *invocation, char *buffer)
{
        const char *step = command_option(invocation, OPTION_STEP);
        const char *from = command_option(invocation, OPTION_FROM);
        const char *to = command_option(invocation, OPTION_TO);
        int64_t from_us, to_us;

        if (step)
                return step;
        if (time_parse(from ? from : DEFAULT_FROM, invocation->now_us, &from_us, NULL) < 0 ||
                time_parse(to ? to : "now", invocation->now_us, &to_us, NULL) < 0 ||
                to_us <= from_us)
                return NULL; /* the server says what is wrong */
        return time_format_duration(window_choose_step(to_us - from_us), buffer);
}

static void summarise(const json_t *series, struct summary *ret)
{
        const json_t *times = json_object_get(series, "t");

        *ret = (struct summary){.windows = json_array_size(times)};
        for (size_t i = 0; i < ret->windows; i++) {
                double upper = json_number_at(json_object_get(series, "upper"), i);
                double lower = json_number_at(json_object_get(series, "lower"), i);
                double ratio = json_number_at(json_object_get(series, "ratio"), i);
                double expected = json_number_at(json_object_get(series, "expected"), i);

                if (strcmp(json_text_at(json_object_get(series, "state"), i), "ok") == 0)
                        ret->ok++;
                if (!isfinite(ratio) || !isfinite(upper) || !isfinite(lower))
                        continue;
                ret->numbers++;
                ret->upper += upper;
                ret->lower += lower;
                if (isfinite(expected)) {
                        ret->expected_upper += upper;
                        ret->expected_weight += upper * expected;
                }
        }
}

static enum colour state_colour(const char *state)
{
        if (strcmp(state, "ok") == 0)
                return COLOUR_GOOD;
        return strcmp(state, "gap") == 0 ? COLOUR_BAD : COLOUR_NOTICE;
}

static void add_rate(struct table *table, double value, bool bytes)
{
        char text[FORMAT_MAX];

        if (bytes)
                format_bytes(value, text);
        else
                format_count(value, text);
        table_add(table, COLOUR_NONE, "%s%s", text, isfinite(value) ? "/s" : "");
}

static void add_factor(struct table *table, enum colour colour, double value)
{
        char text[FORMAT_MAX];

        table_add(table, colour, "%s", format_factor(value, text));
}

static void add_window(struct table *table, const json_t *series, size_t i, bool bytes)
{
        const char *state = json_text_at(json_object_get(series, "state"), i);
        double excess = json_number_at(json_object_get(series, "excess"), i);
        char text[FORMAT_MAX];

        table_add(table, COLOUR_NONE, "%s",
                format_time(json_number_at(json_object_get(series, "t"), i), text));
        add_rate(table, json_number_at(json_object_get(series, "upper"), i), bytes);
        add_rate(table, json_number_at(json_object_get(series, "lower"), i), bytes);
        add_factor(table, COLOUR_NONE, json_number_at(json_object_get(series, "ratio"), i));
        add_factor(table, COLOUR_NONE, json_number_at(json_object_get(series, "amplification"), i));
        add_factor(table, COLOUR_NONE, json_number_at(json_object_get(series, "expected"), i));
        add_factor(table, excess >= 1.2 ? COLOUR_NOTICE : COLOUR_NONE, excess);
        table_add(table, state_colour(state), "%s", state);
}

/* "FILESYSTEM" from "filesystem" */
static void upper_case(const char *layer, char *ret, size_t size)
{
        size_t i = 0;

        for (; layer[i] && i + 1 < size; i++)
                ret[i] = (char)(layer[i] >= 'a' && layer[i] <= 'z' ? layer[i] - 32 : layer[i]);
        ret[i] = '\0';
}

static int print_windows(struct invocation *invocation, const json_t *json, const json_t *series)
{
        char upper[32], lower[32];
        const struct table_column columns[] = {{"WINDOW FROM"}, {upper, true}, {lower, true},
                {"RATIO", true}, {"AMPLIFICATION", true}, {"EXPECTED", true}, {"EXCESS", true},
                {"STATE"}, {NULL}};
        bool bytes = strcmp(json_get_text(json, "measure"), "ops") != 0;
        size_t n = json_array_size(json_object_get(series, "t"));
        CLEANUP(table) struct table *table = NULL;
        int r;

        upper_case(json_get_text(json, "upper"), upper, sizeof(upper));
        upper_case(json_get_text(json, "lower"), lower, sizeof(lower));
        r = table_new(columns, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                add_window(table, series, i, bytes);
        return table_print(table, invocation->output);
}

static int print_sparkline(struct invocation *invocation, const json_t *series)
{
        const json_t *ratios = json_object_get(series, "ratio");
        size_t n = json_array_size(ratios);
        CLEANUP(mem) double *values = calloc(n + 1, sizeof(*values));
        CLEANUP(str) char *line = NULL;
        double low = INFINITY, high = -INFINITY;
        char low_text[FORMAT_MAX], high_text[FORMAT_MAX];

        for (size_t i = 0; values && i < n; i++) {
                values[i] = json_number_at(ratios, i);
                low = fmin(low, isfinite(values[i]) ? values[i] : low);
                high = fmax(high, isfinite(values[i]) ? values[i] : high);
        }
        line = values ? format_sparkline(values, n, invocation->output->utf8) : NULL;
        if (!line)
                return -ENOMEM;
        fprintf(invocation->output->stream, "\nratio %s to %s  |%s|\n",
                format_factor(low, low_text), format_factor(high, high_text), line);
        return 0;
}

/* A run of windows with the same sentence shows it once. */
static void print_details(struct invocation *invocation, const json_t *series)
{
        const json_t *details = json_object_get(series, "detail");
        size_t n = json_array_size(details), shown = 0;
        const char *last = "";

        for (size_t i = 0; i < n && shown < DETAILS_MAX; i++) {
                const char *detail = json_text_at(details, i);
                char text[FORMAT_MAX];

                if (!*detail || strcmp(detail, last) == 0)
                        continue;
                fprintf(invocation->output->stream, "  %s %s: %s\n",
                        format_time(json_number_at(json_object_get(series, "t"), i), text),
                        json_text_at(json_object_get(series, "state"), i), detail);
                last = detail;
                shown++;
        }
}

static void print_summary(struct invocation *invocation, const json_t *series)
{
        FILE *stream = invocation->output->stream;
        char ratio[FORMAT_MAX], factor[FORMAT_MAX], expected[FORMAT_MAX], excess[FORMAT_MAX];
        struct summary summary;
        double amplification, wanted;

        summarise(series, &summary);
        if (summary.windows == 0) {
                fputs("No window is complete yet: ask for a longer range (--from) or a shorter "
                      "--step.\n",
                        stream);
                return;
        }
        if (summary.numbers == 0) {
                fprintf(stream,
                        "No ratio: none of the %zu windows has a number (last state: %s).\n",
                        summary.windows,
                        json_text_at(json_object_get(series, "state"), summary.windows - 1));
                return;
        }
        amplification = summary.lower / summary.upper;
        wanted = summary.expected_weight / summary.expected_upper;
        fprintf(stream, "Ratio %s, amplification %s",
                format_factor(summary.upper / summary.lower, ratio),
                format_factor(amplification, factor));
        if (isfinite(wanted))
                fprintf(stream, ", expected %s, excess %s", format_factor(wanted, expected),
                        format_factor(amplification / wanted, excess));
        fprintf(stream, "; %zu of %zu windows have a number, %zu are ok.\n", summary.numbers,
                summary.windows, summary.ok);
}

static int print_series(struct invocation *invocation, const json_t *json, const json_t *series)
{
        const char *key = json_get_text(series, "key");
        struct output *output = invocation->output;
        struct summary summary;
        int r;

        if (strcmp(json_get_text(json, "by"), "cluster") != 0)
                fprintf(output->stream, "\n%s%s %s%s\n", output_colour(output, COLOUR_BOLD),
                        json_get_text(json, "by"), key, output_plain(output));
        summarise(series, &summary);
        if (summary.windows > 0) {
                r = print_windows(invocation, json, series);
                if (r < 0)
                        return r;
        }
        if (summary.numbers > 1) {
                r = print_sparkline(invocation, series);
                if (r < 0)
                        return r;
        }
        if (strcmp(json_get_text(json, "by"), "pool") != 0)
                print_summary(invocation, series);
        print_details(invocation, series);
        return 0;
}

static int print_ratio(struct invocation *invocation, const json_t *json, const char *name)
{
        const json_t *list = json_object_get(json, "series"), *series;
        double step = json_get_number(json, "step");
        char text[TIME_DURATION_MAX] = "-";
        size_t i;

        if (step > 0 && step < 1e9)
                time_format_duration((uint64_t)(step * 1e6 + 0.5), text);
        fprintf(invocation->output->stream, "%s: %s %s, %s / %s, in windows of %s\n", name,
                json_get_text(json, "direction"),
                strcmp(json_get_text(json, "measure"), "ops") == 0 ? "operations" : "bytes",
                json_get_text(json, "upper"), json_get_text(json, "lower"), text);
        if (json_array_size(list) == 0)
                fputs("No data in this range.\n", invocation->output->stream);
        else if (strcmp(json_get_text(json, "by"), "pool") == 0)
                fputs("There is no ratio by pool: the layers below do not know for which pool they "
                      "work.\n",
                        invocation->output->stream);
        json_array_foreach (list, i, series) {
                int r = print_series(invocation, json, series);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int ratio_run(struct invocation *invocation)
{
        const char *from = command_option(invocation, OPTION_FROM);
        CLEANUP(json) json_t *clusters = NULL;
        CLEANUP(json) json_t *json = NULL;
        char step[TIME_DURATION_MAX];
        const char *fsid, *name;

        if (command_cluster(invocation, &clusters, &fsid, &name) < 0)
                return command_failed(invocation);
        const struct client_parameter parameters[] = {
                {"cluster", fsid},
                {"upper", command_option(invocation, OPTION_UPPER)},
                {"lower", command_option(invocation, OPTION_LOWER)},
                {"direction", command_option(invocation, OPTION_DIRECTION)},
                {"measure", command_option(invocation, OPTION_MEASURE)},
                {"by", command_option(invocation, OPTION_BY)},
                {"from", from ? from : DEFAULT_FROM},
                {"to", command_option(invocation, OPTION_TO)},
                {"step", choose_step(invocation, step)},
                {NULL},
        };
        if (command_get(invocation, "/ratio", parameters, &json) < 0)
                return command_failed(invocation);
        if (command_option(invocation, OPTION_JSON))
                return command_print_json(invocation, json);
        if (print_ratio(invocation, json, name) < 0)
                return command_failed(invocation);
        return STATUS_OK;
}

static const enum option_id options[] = {OPTION_CLUSTER, OPTION_FROM, OPTION_TO, OPTION_STEP,
        OPTION_UPPER, OPTION_LOWER, OPTION_DIRECTION, OPTION_MEASURE, OPTION_BY, OPTION_MAX_};

const struct command command_ratio = {
        .name = "ratio",
        .summary = "the ratio of two layers over time, beside its expected value",
        .text = "Divides an upper layer by a lower one, window by window. AMPLIFICATION is the\n"
                "inverse; EXPECTED is what replication or erasure coding alone explains; EXCESS "
                "is\n"
                "the amplification divided by it: 1.00 is as good as the configuration allows.\n"
                "Times are local. A STATE other than ok is explained below the table.",
        .options = options,
        .run = ratio_run,
};
