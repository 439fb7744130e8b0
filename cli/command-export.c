/* Anything that the collector answers, as CSV for other programs. */

#include "cli/command.h"

#include <string.h>

#include "cli/json.h"

/* Curves and the ladder are of one cluster; of the lists all but the clusters may be. */
static bool has_cluster(const char *what)
{
        return strcmp(what, "clusters") != 0 && strcmp(what, "plans") != 0;
}

static bool needs_cluster(const char *what)
{
        return strcmp(what, "series") == 0 || strcmp(what, "ratio") == 0 ||
               strcmp(what, "ladder") == 0;
}

static int run(struct invocation *invocation)
{
        const char *what = invocation->argument, *fsid = NULL, *name;
        CLEANUP(json) json_t *clusters = NULL;
        CLEANUP(str) char *text = NULL;
        int r;

        if (!what)
                return command_fail(invocation, STATUS_USAGE,
                        "say what to export: series, ratio, ladder, agents, clusters, devices, "
                        "osds, pools or plans");
        if (has_cluster(what) &&
                (needs_cluster(what) || command_option(invocation, OPTION_CLUSTER))) {
                r = command_cluster(invocation, &clusters, &fsid, &name);
                if (r < 0)
                        return command_failed(invocation);
        }
        const struct client_parameter parameters[] = {
                {"what", what},
                {"format", "csv"},
                {"cluster", fsid},
                {"from", command_option(invocation, OPTION_FROM)},
                {"to", command_option(invocation, OPTION_TO)},
                {"step", command_option(invocation, OPTION_STEP)},
                {"layer", command_option(invocation, OPTION_LAYER)},
                {"metric", command_option(invocation, OPTION_METRIC)},
                {"entity", command_option(invocation, OPTION_ENTITY)},
                {"host", command_option(invocation, OPTION_HOST)},
                {"upper", command_option(invocation, OPTION_UPPER)},
                {"lower", command_option(invocation, OPTION_LOWER)},
                {"direction", command_option(invocation, OPTION_DIRECTION)},
                {"measure", command_option(invocation, OPTION_MEASURE)},
                {"by", command_option(invocation, OPTION_BY)},
                {"top", command_option(invocation, OPTION_TOP)},
                {NULL},
        };

        free(STEAL(invocation->message));
        r = client_text(invocation->client, "/export", parameters, &text, &invocation->message);
        if (r < 0)
                return command_failed(invocation);
        fputs(text, invocation->output->stream);
        return STATUS_OK;
}

static const enum option_id options[] = {OPTION_CLUSTER, OPTION_FROM, OPTION_TO, OPTION_STEP,
        OPTION_LAYER, OPTION_METRIC, OPTION_ENTITY, OPTION_HOST, OPTION_UPPER, OPTION_LOWER,
        OPTION_DIRECTION, OPTION_MEASURE, OPTION_BY, OPTION_TOP, OPTION_MAX_};

const struct command command_export = {
        .name = "export",
        .argument = "WHAT",
        .summary = "print anything as CSV",
        .text = "Prints what the collector answers as CSV with a first line of names, for other\n"
                "programs: series (with --layer and --metric), ratio, ladder, or a list: agents,\n"
                "clusters, devices, osds, pools, plans. Times are Unix seconds; what has no value "
                "is\nempty.",
        .options = options,
        .run = run,
};
