#pragma once
/*
 * A subcommand is a const row: its name, its options, its function. To add one: a file
 * cli/command-NAME.c and its row in the list of cli/command.c.
 */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "cli/client.h"
#include "cli/options.h"
#include "cli/output.h"

/* What the program ends with. */
enum status {
        STATUS_OK = 0,
        STATUS_FAILED = 1, /* the collector refused, or cannot be reached */
        STATUS_USAGE = 2,
        STATUS_STALE = 3, /* strata status: something needs attention */
};

/* One call of the program. */
struct invocation {
        const struct command *command;
        const struct options *options;
        const char *argument; /* the word after the subcommand, or NULL */
        struct client *client;
        struct output *output;
        int stop_fd; /* readable once the program is asked to end; -1 when the command needs none */
        int64_t now_us;
        char *message; /* why it failed; printed where the program ends */
};

struct command {
        const char *name;
        const char *argument;                      /* in the usage line; NULL when it takes none */
        const char *summary;                       /* one line */
        const char *text;                          /* the paragraph of --help */
        const enum option_id *options;             /* ends with OPTION_MAX_ */
        bool live;                                 /* asked to end by SIGINT, it ends well */
        int (*run)(struct invocation *invocation); /* enum status */
};

extern const struct command command_status, command_ratio, command_ladder, command_top,
        command_plan, command_export, command_findings, command_report;

/* The whole program but setlocale. */
int command_main(int argc, char **argv);

/* Replaces the message; returns @status. */
__attribute__((format(printf, 3, 4))) int command_fail(
        struct invocation *invocation, enum status status, const char *format, ...);
const char *command_option(const struct invocation *invocation, enum option_id id);

/* client_request GET and client_list with the message kept in @invocation. -errno. */
int command_get(struct invocation *invocation, const char *path,
        const struct client_parameter *parameters, json_t **ret);
int command_list(struct invocation *invocation, const char *path, const char *key,
        const char *cluster, json_t **ret);
/* Prints @json on one line and returns the status. */
int command_print_json(struct invocation *invocation, const json_t *json);
/* STATUS_FAILED, with "out of memory" when nothing was said yet. */
int command_failed(struct invocation *invocation);
/*
 * The fsid for --cluster, which may be a name; NULL when not given. When it is not given, there are
 * several and one of them is a real cluster, a sentence lists them. The result belongs to
 * *ret_json. -errno.
 */
int command_cluster(struct invocation *invocation, json_t **ret_json, const char **ret_fsid,
        const char **ret_name);
