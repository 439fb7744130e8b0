/*
 * The rungs of one window, from what clients asked for down to what the devices did, with what each
 * is made of, what is left over, and why.
 */

#include "cli/command.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "cli/format.h"
#include "cli/json.h"
#include "cli/table.h"

#define PARTS_SHOWN 8u /* of pools and devices, unless --all */

struct ladder_view {
        struct invocation *invocation;
        double seconds; /* of the window */
        struct table *table;
        size_t hidden; /* parts that were left out */
};

static void add_numbers(struct ladder_view *view, enum colour colour, double bytes, double ops,
        double amplification)
{
        char text[FORMAT_MAX];

        table_add(view->table, colour, "%s", format_byte_rate(bytes / view->seconds, text));
        table_add(view->table, colour, "%s", format_count(ops / view->seconds, text));
        table_add(view->table, colour, "%s", format_bytes(ops > 0 ? bytes / ops : NAN, text));
        table_add(view->table, colour, "%s", format_factor(amplification, text));
}

static void add_part(struct ladder_view *view, const json_t *part)
{
        const char *included = json_get_text(part, "included_in");
        const char *role = json_get_text(part, "role");

        table_add(view->table, COLOUR_DIM, "%s%s", *included ? "    " : "  ",
                json_get_text(part, "name"));
        add_numbers(view, COLOUR_DIM, json_get_number(part, "bytes"), json_get_number(part, "ops"),
                json_get_number(part, "amplification"));
        if (*included)
                table_add(view->table, COLOUR_DIM, "part of %s", included);
        else
                table_add(view->table, COLOUR_DIM, "%s", role);
}

static bool is_idle(const json_t *part)
{
        return json_get_number(part, "bytes") == 0 && !(json_get_number(part, "ops") > 0);
}

/* Where it stands when parts are ordered by bytes. */
static size_t rank_of(const json_t *parts, size_t index)
{
        double bytes = json_get_number(json_array_get(parts, index), "bytes");
        size_t rank = 0, i;
        const json_t *part;

        json_array_foreach (parts, i, part) {
                double other = json_get_number(part, "bytes");

                rank += other > bytes || (other == bytes && i < index);
        }
        return rank;
}

/* Pools and devices may be thousands; the parts inside Ceph are a handful. */
static bool is_shown(
        const struct ladder_view *view, const char *layer, const json_t *parts, size_t i)
{
        bool many = strcmp(layer, "storage") == 0 || strcmp(layer, "filesystem") == 0;

        if (!many || command_option(view->invocation, OPTION_ALL))
                return true;
        if (is_idle(json_array_get(parts, i)))
                return false;
        return json_array_size(parts) <= PARTS_SHOWN || rank_of(parts, i) < PARTS_SHOWN;
}

/* The parts that @container includes: they are not on top of it. */
static void add_included(struct ladder_view *view, const json_t *parts, const char *container)
{
        const json_t *part;
        size_t i;

        json_array_foreach (parts, i, part)
                if (*container && strcmp(json_get_text(part, "included_in"), container) == 0)
                        add_part(view, part);
}

static void add_parts(struct ladder_view *view, const char *layer, const json_t *parts)
{
        const json_t *part;
        size_t i;

        json_array_foreach (parts, i, part) {
                if (*json_get_text(part, "included_in"))
                        continue;
                if (is_shown(view, layer, parts, i))
                        add_part(view, part);
                else
                        view->hidden++;
                add_included(view, parts, json_get_text(part, "name"));
        }
}

static void add_rung(struct ladder_view *view, const json_t *rung)
{
        const char *layer = json_get_text(rung, "layer");

        table_add(view->table, COLOUR_BOLD, "%s", layer);
        add_numbers(view, COLOUR_BOLD, json_get_number(rung, "bytes"), json_get_number(rung, "ops"),
                json_get_number(rung, "amplification"));
        table_add(view->table, COLOUR_NOTICE, "%s", json_get_text(rung, "note"));
        add_parts(view, layer, json_object_get(rung, "parts"));
}

static void add_unattributed(struct ladder_view *view, const json_t *unattributed)
{
        double share = json_get_number(unattributed, "share");
        double rate = json_get_number(unattributed, "bytes") / view->seconds;
        char text[FORMAT_MAX];

        if (!isfinite(rate))
                return;
        table_add(view->table, COLOUR_NONE, "unattributed");
        table_add(view->table, COLOUR_NONE, "%s", format_byte_rate(rate, text));
        table_add(view->table, COLOUR_NONE, "%s", "");
        table_add(view->table, COLOUR_NONE, "%s", "");
        table_add(view->table, COLOUR_NONE, "%s", "");
        if (isfinite(share))
                table_add(view->table, fabs(share) > 0.01 ? COLOUR_NOTICE : COLOUR_NONE,
                        "%s of the storage bytes", format_percent(share, text));
        else
                table_add(view->table, COLOUR_NONE, "%s", "");
}

static void print_state(struct invocation *invocation, const char *what, const json_t *json)
{
        const char *state = json_get_text(json, "state"), *detail = json_get_text(json, "detail");
        struct output *output = invocation->output;

        if (strcmp(state, "ok") == 0 || !*state)
                return;
        fprintf(output->stream, "%s%s is %s%s%s%s\n", output_colour(output, COLOUR_NOTICE), what,
                state, *detail ? ": " : "", detail, output_plain(output));
}

/* "6.39 = 3.00 copies + 3.00 deferred + 0.39 metadata", and a sentence on each. */
static void print_explained(struct invocation *invocation, const json_t *way)
{
        FILE *stream = invocation->output->stream;
        const json_t *items = json_object_get(way, "explained"), *item;
        char text[FORMAT_MAX];
        size_t i;

        if (json_array_size(items) == 0)
                return;
        fprintf(stream, "%s", format_factor(json_get_number(way, "amplification"), text));
        json_array_foreach (items, i, item) {
                double amplification = json_get_number(item, "amplification");

                fprintf(stream, " %s %s %s",
                        i == 0              ? "="
                        : amplification < 0 ? "-"
                                            : "+",
                        format_factor(fabs(amplification), text), json_get_text(item, "name"));
        }
        fprintf(stream, "\n");
        json_array_foreach (items, i, item) {
                double configured = json_get_number(item, "configured");

                fprintf(stream, "  %s x  %s",
                        format_factor(json_get_number(item, "amplification"), text),
                        json_get_text(item, "sentence"));
                if (isfinite(configured) && i > 0)
                        fprintf(stream, " By configuration: %s.", format_factor(configured, text));
                fprintf(stream, "\n");
        }
}

static void print_verdict(struct invocation *invocation, const json_t *way)
{
        struct output *output = invocation->output;
        double excess = json_get_number(way, "excess");
        char ratio[FORMAT_MAX], amplification[FORMAT_MAX], expected[FORMAT_MAX], text[FORMAT_MAX];
        const json_t *reason;
        size_t i;

        if (isnan(json_get_number(way, "amplification")))
                return;
        fprintf(output->stream, "\namplification %s (ratio %s), expected %s, excess %s%s%s\n",
                format_factor(json_get_number(way, "amplification"), amplification),
                format_factor(json_get_number(way, "ratio"), ratio),
                format_factor(json_get_number(way, "expected"), expected),
                output_colour(output, excess >= 1.2 ? COLOUR_NOTICE : COLOUR_NONE),
                format_factor(excess, text), output_plain(output));
        /* A collector that is older gives reasons only. */
        if (json_object_get(way, "explained")) {
                print_explained(invocation, way);
                return;
        }
        json_array_foreach (json_object_get(way, "reasons"), i, reason)
                fprintf(output->stream, "%s  %s x  %s\n", i == 0 ? "because\n" : "",
                        format_factor(json_get_number(reason, "amplification"), text),
                        json_get_text(reason, "sentence"));
}

static int print_way(
        struct invocation *invocation, const json_t *way, const char *name, double seconds)
{
        static const struct table_column columns[] = {{"LAYER"}, {"BYTES", true}, {"IOPS", true},
                {"MEAN SIZE", true}, {"AMPLIFICATION", true}, {""}, {NULL}};
        struct ladder_view view = {.invocation = invocation, .seconds = seconds};
        CLEANUP(table) struct table *table = NULL;
        struct output *output = invocation->output;
        const json_t *rung;
        size_t i;
        int r = table_new(columns, &table);

        if (r < 0)
                return r;
        fprintf(output->stream, "\n%s%s%s\n", output_colour(output, COLOUR_BOLD), name,
                output_plain(output));
        print_state(invocation, "this ladder", way);
        view.table = table;
        json_array_foreach (json_object_get(way, "rungs"), i, rung)
                add_rung(&view, rung);
        add_unattributed(&view, json_object_get(way, "unattributed"));
        r = table_print(table, output);
        if (r < 0)
                return r;
        if (view.hidden > 0)
                fprintf(output->stream, "(%zu idle or small part%s not shown: --all)\n",
                        view.hidden, view.hidden == 1 ? "" : "s");
        print_verdict(invocation, way);
        return 0;
}

static int print_ways(struct invocation *invocation, const json_t *json, double seconds)
{
        static const char *const ways[] = {"write", "read"};

        for (size_t i = 0; i < 2; i++) {
                const json_t *way = json_object_get(json, ways[i]);
                int r;

                if (!json_is_object(way))
                        continue;
                r = print_way(invocation, way, ways[i], seconds);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int print_ladder(struct invocation *invocation, const json_t *json, const char *cluster)
{
        struct output *output = invocation->output;
        const json_t *one;
        size_t i;
        double from = json_get_number(json, "from"), to = json_get_number(json, "to");
        char from_text[FORMAT_MAX], to_text[FORMAT_MAX], age[FORMAT_MAX];

        fprintf(invocation->output->stream, "%s, %s to %s (%s)\n", cluster,
                format_time(from, from_text), format_time(to, to_text), format_age(to - from, age));
        print_state(invocation, "the window", json);
        json_array_foreach (json_object_get(json, "ladders"), i, one) {
                int r;

                fprintf(output->stream, "\n%s%s%s\n", output_colour(output, COLOUR_BOLD),
                        json_get_text(one, "key"), output_plain(output));
                r = print_ways(invocation, one, to - from);
                if (r < 0)
                        return r;
        }
        if (*json_get_text(json, "cursor"))
                fprintf(output->stream, "\n(more after %s are not shown)\n",
                        json_get_text(json, "cursor"));
        return print_ways(invocation, json, to - from);
}

static int ladder_run(struct invocation *invocation)
{
        CLEANUP(json) json_t *clusters = NULL;
        CLEANUP(json) json_t *json = NULL;
        const char *fsid, *name;

        if (command_cluster(invocation, &clusters, &fsid, &name) < 0)
                return command_failed(invocation);
        const struct client_parameter parameters[] = {
                {"cluster", fsid},
                {"direction", command_option(invocation, OPTION_DIRECTION)},
                {"by", command_option(invocation, OPTION_BY)},
                {"from", command_option(invocation, OPTION_FROM)},
                {"to", command_option(invocation, OPTION_TO)},
                {NULL},
        };
        if (command_get(invocation, "/ladder", parameters, &json) < 0)
                return command_failed(invocation);
        if (command_option(invocation, OPTION_JSON))
                return command_print_json(invocation, json);
        if (print_ladder(invocation, json, name) < 0)
                return command_failed(invocation);
        return STATUS_OK;
}

static const enum option_id options[] = {OPTION_CLUSTER, OPTION_FROM, OPTION_TO, OPTION_DIRECTION,
        OPTION_BY, OPTION_ALL, OPTION_MAX_};

const struct command command_ladder = {
        .name = "ladder",
        .summary = "what became of the clients' bytes, layer by layer, and why",
        .text = "Shows one window (the last minute): the bytes, operations and mean request size "
                "of\n"
                "each layer, what each is made of, and its amplification, which is its bytes\n"
                "divided by the clients'. Unattributed are device bytes that no counter above\n"
                "explains. Ladders of classes, hosts and OSDs begin with what the OSDs received.",
        .options = options,
        .run = ladder_run,
};
