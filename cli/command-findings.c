/*
 * The verdict, with what led to it and what to do, and what else was found. Sentences are for
 * people, so there is no table.
 */

#include "cli/command.h"

#include <math.h>
#include <string.h>

#include "cli/format.h"
#include "cli/json.h"

#define FINDINGS_SHOWN "1000"

static void print_curves(struct output *output, const json_t *curves)
{
        size_t i;
        const json_t *curve;

        json_array_foreach (curves, i, curve)
                fprintf(output->stream, "  %s%s%s\n", output_colour(output, COLOUR_DIM),
                        json_text_at(curves, i), output_plain(output));
}

static void print_since(struct output *output, const char *word, double since, double until)
{
        char begin[FORMAT_MAX], span[FORMAT_MAX];

        if (isnan(since))
                return;
        fprintf(output->stream, "%s %s (%s)", word, format_time(since, begin),
                format_age(until - since, span));
}

static void print_verdict(struct invocation *invocation, const json_t *verdict, const char *name)
{
        struct output *output = invocation->output;
        const json_t *entity = json_object_get(verdict, "entity"), *doubts, *doubt;
        bool none = strcmp(json_get_text(verdict, "layer"), "none") == 0;
        size_t i;

        fprintf(output->stream, "%s: %s%s%s", name,
                output_colour(output, none ? COLOUR_GOOD : COLOUR_BAD),
                none ? "no bottleneck" : json_get_text(verdict, "layer"), output_plain(output));
        if (!none)
                fprintf(output->stream, " is the bottleneck: %s (%s)",
                        json_get_text(entity, "name"), json_get_text(verdict, "rule"));
        print_since(output, ", since", json_get_number(verdict, "since"),
                json_get_number(verdict, "time"));
        fprintf(output->stream, "\n  %s\n", json_get_text(verdict, "sentence"));
        if (*json_get_text(verdict, "advice"))
                fprintf(output->stream, "  %s\n", json_get_text(verdict, "advice"));
        print_curves(output, json_object_get(verdict, "curves"));
        doubts = json_object_get(verdict, "doubts");
        json_array_foreach (doubts, i, doubt)
                fprintf(output->stream, "  %s%s%s\n", output_colour(output, COLOUR_NOTICE),
                        json_text_at(doubts, i), output_plain(output));
}

static void print_finding(struct invocation *invocation, const json_t *finding)
{
        struct output *output = invocation->output;
        bool open = json_is_true(json_object_get(finding, "open"));
        double end = json_get_number(finding, open ? "last" : "end");

        fprintf(output->stream, "\n%s%s%s, %s (%s)",
                output_colour(output, open ? COLOUR_NOTICE : COLOUR_NONE),
                json_get_text(finding, "layer"), output_plain(output),
                json_get_text(finding, "entity"), json_get_text(finding, "rule"));
        print_since(output, open ? ", since" : ", from", json_get_number(finding, "begin"), end);
        if (json_is_true(json_object_get(finding, "bottleneck")))
                fprintf(output->stream, ", %s the bottleneck", open ? "is or was" : "was");
        fprintf(output->stream, "\n  %s\n  %s\n", json_get_text(finding, "sentence"),
                json_get_text(finding, "advice"));
}

/* What the verdict tells already is not told again. */
static bool is_verdict(const json_t *finding, const json_t *verdict)
{
        return json_is_true(json_object_get(finding, "open")) &&
               strcmp(json_get_text(finding, "rule"), json_get_text(verdict, "rule")) == 0 &&
               strcmp(json_get_text(finding, "entity"),
                       json_get_text(json_object_get(verdict, "entity"), "name")) == 0;
}

static void print_findings(struct invocation *invocation, const json_t *json, const char *name)
{
        const json_t *verdict = json_array_get(json_object_get(json, "verdicts"), 0), *finding;
        struct output *output = invocation->output;
        size_t i;

        if (verdict)
                print_verdict(invocation, verdict, name);
        else
                fprintf(output->stream,
                        "%s: nobody has judged this cluster in the last 5 minutes\n", name);
        json_array_foreach (json_object_get(json, "findings"), i, finding)
                if (!verdict || !is_verdict(finding, verdict))
                        print_finding(invocation, finding);
        if (*json_get_text(json, "cursor"))
                fprintf(output->stream,
                        "\nThere are more than " FINDINGS_SHOWN "; choose a shorter range.\n");
}

static int findings_run(struct invocation *invocation)
{
        CLEANUP(json) json_t *clusters = NULL;
        CLEANUP(json) json_t *json = NULL;
        const char *fsid, *name;

        if (command_cluster(invocation, &clusters, &fsid, &name) < 0)
                return command_failed(invocation);
        const struct client_parameter parameters[] = {
                {"cluster", fsid},
                {"from", command_option(invocation, OPTION_FROM)},
                {"to", command_option(invocation, OPTION_TO)},
                {"open", command_option(invocation, OPTION_ENDED) ? "no" : "yes"},
                {"limit", FINDINGS_SHOWN},
                {NULL},
        };
        if (command_get(invocation, "/findings", parameters, &json) < 0)
                return command_failed(invocation);
        if (command_option(invocation, OPTION_JSON))
                return command_print_json(invocation, json);
        print_findings(invocation, json, name);
        return STATUS_OK;
}

static const enum option_id options[] = {
        OPTION_CLUSTER, OPTION_FROM, OPTION_TO, OPTION_ENDED, OPTION_MAX_};

const struct command command_findings = {
        .name = "findings",
        .summary = "which layer is the bottleneck, why, and what to do",
        .text = "Shows the verdict: the layer that holds the clients back, by which disk, OSD, "
                "host\n"
                "or pool, why, what to do, and the curves that show it; and what else was found.\n"
                "With --ended also what is over, of the last day or the range.",
        .options = options,
        .run = findings_run,
};
