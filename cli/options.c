#include "cli/options.h"

#include <errno.h>
#include <string.h>

#include "lib/message.h"

struct option_spec {
        const char *name;     /* with its hyphens */
        const char *letter;   /* "-n", or NULL */
        const char *argument; /* NULL when it takes none */
        const char *help;
};

static const struct option_spec specs[OPTION_MAX_] = {
        [OPTION_URL] = {"--url", NULL, "URL",
                "the collector (STRATA_URL, else http://127.0.0.1:7440)"},
        [OPTION_TOKEN_FILE] = {"--token-file", NULL, "FILE",
                "a file that holds the token (STRATA_TOKEN_FILE; or the token in STRATA_TOKEN)"},
        [OPTION_CA_FILE] = {"--ca-file", NULL, "FILE",
                "the authority that signed the collector's certificate (STRATA_CA_FILE)"},
        [OPTION_JSON] = {"--json", NULL, NULL, "print the collector's answer as JSON"},
        [OPTION_HELP] = {"--help", "-h", NULL, "show this help"},
        [OPTION_VERSION] = {"--version", NULL, NULL, "show the version"},
        [OPTION_CLUSTER] = {"--cluster", NULL, "FSID|NAME",
                "the cluster; needed when there are several"},
        [OPTION_FROM] = {"--from", NULL, "TIME",
                "begin: RFC 3339, Unix seconds, now, or relative: -15m"},
        [OPTION_TO] = {"--to", NULL, "TIME", "end (now)"},
        [OPTION_STEP] = {"--step", NULL, "DURATION", "length of a window: 10s, 5m, 1h"},
        [OPTION_UPPER] = {"--upper", NULL, "LAYER",
                "filesystem, osd, objectstore or storage (filesystem)"},
        [OPTION_LOWER] = {"--lower", NULL, "LAYER", "the layer below (storage)"},
        [OPTION_DIRECTION] = {"--direction", NULL, "read|write", "which way"},
        [OPTION_MEASURE] = {"--measure", NULL, "bytes|ops", "what is divided (bytes)"},
        [OPTION_BY] = {"--by", NULL, "cluster|pool|class|host|osd", "one table for each (cluster)"},
        [OPTION_LAYER] = {"--layer", NULL, "LAYER",
                "of a series: filesystem, osd, objectstore, storage or host"},
        [OPTION_METRIC] = {"--metric", NULL, "NAME,...", "of a series: write_bytes, write_await"},
        [OPTION_ENTITY] = {"--entity", NULL, "NAME", "only this one: sda, node1/sda, osd.3, rbd"},
        [OPTION_HOST] = {"--host", NULL, "NAME", "only this host"},
        [OPTION_TOP] = {"--top", NULL, "NUMBER", "only the largest curves"},
        [OPTION_ALL] = {"--all", NULL, NULL, "list every device and pool, not the largest only"},
        [OPTION_ENDED] = {"--ended", NULL, NULL, "also findings that are over"},
        [OPTION_HTML] = {"--html", NULL, NULL, "print one HTML page that needs nothing else"},
        [OPTION_MAX_AGE] = {"--max-age", NULL, "DURATION",
                "older data is stale; never below three intervals (30s)"},
        [OPTION_INTERVAL] = {"--interval", "-i", "DURATION", "time between two refreshes (2s)"},
        [OPTION_COUNT] = {"--count", "-n", "NUMBER", "stop after so many refreshes"},
        [OPTION_SET] = {"--set", NULL, "SOURCE.FIELD=VALUE",
                "change the plan: enabled, interval, count, start or metrics; may be repeated"},
        [OPTION_RESET] = {"--reset", NULL, NULL,
                "delete the plan: follow * (or the built-in plan)"},
};

const char *options_name(enum option_id id)
{
        return specs[id].name;
}

void options_describe(enum option_id id, FILE *stream)
{
        const struct option_spec *spec = &specs[id];
        char left[64];

        snprintf(left, sizeof(left), "%s%s%s%s%s", spec->letter ? spec->letter : "",
                spec->letter ? ", " : "", spec->name, spec->argument ? " " : "",
                spec->argument ? spec->argument : "");
        if (strlen(left) > 24)
                fprintf(stream, "  %s\n  %-24s  %s\n", left, "", spec->help);
        else
                fprintf(stream, "  %-24s  %s\n", left, spec->help);
}

/* @length of @text is what stands before a '='. */
static int find_option(const char *text, size_t length)
{
        for (int i = 0; i < OPTION_MAX_; i++) {
                const struct option_spec *spec = &specs[i];

                if (strlen(spec->name) == length && memcmp(spec->name, text, length) == 0)
                        return i;
                if (spec->letter && strcmp(spec->letter, text) == 0)
                        return i;
        }
        return -ENOENT;
}

static int keep(struct options *options, enum option_id id, const char *value, char **ret_message)
{
        if (id != OPTION_SET) {
                options->values[id] = value;
                return 0;
        }
        if (options->n_sets == OPTION_SETS_MAX)
                return message_refuse(
                        ret_message, "--set may be given at most %u times", OPTION_SETS_MAX);
        options->sets[options->n_sets++] = value;
        options->values[id] = value;
        return 0;
}

/* @next is the word after this one, or NULL. 1: it was the option's value. */
static int parse_option(
        struct options *options, const char *text, const char *next, char **ret_message)
{
        const char *equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
        int id = find_option(text, equals ? (size_t)(equals - text) : strlen(text));
        int r;

        if (id < 0)
                return message_refuse(ret_message, "unknown option '%s'", text);
        if (!specs[id].argument) {
                if (equals)
                        return message_refuse(
                                ret_message, "option %s takes no value", specs[id].name);
                return keep(options, id, "", ret_message);
        }
        if (equals)
                return keep(options, id, equals + 1, ret_message);
        if (!next)
                return message_refuse(ret_message, "option %s needs a value: %s %s", specs[id].name,
                        specs[id].name, specs[id].argument);
        r = keep(options, id, next, ret_message);
        return r < 0 ? r : 1;
}

int options_parse(int argc, char **argv, struct options *ret, char **ret_message)
{
        bool only_arguments = false;

        *ret = (struct options){0};
        *ret_message = NULL;
        for (int i = 1; i < argc; i++) {
                if (!only_arguments && strcmp(argv[i], "--") == 0) {
                        only_arguments = true;
                } else if (!only_arguments && argv[i][0] == '-' && argv[i][1]) {
                        int r = parse_option(
                                ret, argv[i], i + 1 < argc ? argv[i + 1] : NULL, ret_message);

                        if (r < 0)
                                return r;
                        i += r;
                } else if (ret->n_arguments == OPTION_ARGUMENTS_MAX) {
                        return message_refuse(ret_message, "unexpected argument '%s'", argv[i]);
                } else {
                        ret->arguments[ret->n_arguments++] = argv[i];
                }
        }
        return 0;
}
