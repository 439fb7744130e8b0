#pragma once
/*
 * The options of all subcommands, each described once; a subcommand lists those it takes. Options
 * may stand before and after the subcommand's name.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum option_id {
        OPTION_URL,
        OPTION_TOKEN_FILE,
        OPTION_CA_FILE,
        OPTION_JSON,
        OPTION_HELP,
        OPTION_VERSION,
        OPTION_LAST_COMMON = OPTION_VERSION, /* those above are taken everywhere */
        OPTION_CLUSTER,
        OPTION_FROM,
        OPTION_TO,
        OPTION_STEP,
        OPTION_UPPER,
        OPTION_LOWER,
        OPTION_DIRECTION,
        OPTION_MEASURE,
        OPTION_BY,
        OPTION_LAYER,
        OPTION_METRIC,
        OPTION_ENTITY,
        OPTION_HOST,
        OPTION_TOP,
        OPTION_ALL,
        OPTION_ENDED,
        OPTION_HTML,
        OPTION_MAX_AGE,
        OPTION_INTERVAL,
        OPTION_COUNT,
        OPTION_SET,
        OPTION_RESET,
        OPTION_MAX_,
};

#define OPTION_SETS_MAX 64u     /* --set may be given again: 5 sources of 5 fields, and room */
#define OPTION_ARGUMENTS_MAX 2u /* the subcommand and one more word */

struct options {
        const char *values[OPTION_MAX_]; /* NULL when not given; "" for those without a value */
        const char *sets[OPTION_SETS_MAX];
        size_t n_sets;
        const char *arguments[OPTION_ARGUMENTS_MAX];
        size_t n_arguments;
};

/* Points into @argv. -EINVAL: *ret_message is a sentence (the caller frees). -ENOMEM. */
int options_parse(int argc, char **argv, struct options *ret, char **ret_message);
/* "--step" */
const char *options_name(enum option_id id);
/* The lines of --help for one option. */
void options_describe(enum option_id id, FILE *stream);
