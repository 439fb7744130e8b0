#include "cli/command.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

#include "cli/json.h"
#include "lib/clock.h"

#define DEFAULT_URL "http://127.0.0.1:7440"
#define TOKEN_MAX 4096 /* the collector's tokens have fewer than 100 bytes */

static const struct command *const commands[] = {
        &command_status,
        &command_findings,
        &command_ladder,
        &command_ratio,
        &command_top,
        &command_plan,
        &command_report,
        &command_export,
        NULL,
};

static const struct command *find_command(const char *name)
{
        for (size_t i = 0; commands[i]; i++)
                if (strcmp(commands[i]->name, name) == 0)
                        return commands[i];
        return NULL;
}

static bool takes(const struct command *command, enum option_id id)
{
        if (id <= OPTION_LAST_COMMON)
                return true;
        for (const enum option_id *p = command->options; *p != OPTION_MAX_; p++)
                if (*p == id)
                        return true;
        return false;
}

static void describe_common(void)
{
        for (int i = 0; i <= OPTION_LAST_COMMON; i++)
                options_describe(i, stdout);
}

static void print_help(void)
{
        puts("Usage: strata SUBCOMMAND [OPTION...]\n\n"
             "Shows, layer by layer, where a Ceph cluster multiplies I/O.\n\n"
             "Subcommands:");
        for (size_t i = 0; commands[i]; i++)
                printf("  %-8s  %s\n", commands[i]->name, commands[i]->summary);
        puts("\nOptions of all subcommands:");
        describe_common();
        puts("\nstrata SUBCOMMAND --help tells more.\n"
             "Exit status: 0 done, 1 failed, 2 wrong usage, 3 something is stale (status).");
}

static void print_command_help(const struct command *command)
{
        printf("Usage: strata %s%s%s [OPTION...]\n\n%s\n\nOptions:\n", command->name,
                command->argument ? " " : "", command->argument ? command->argument : "",
                command->text);
        for (const enum option_id *p = command->options; *p != OPTION_MAX_; p++)
                options_describe(*p, stdout);
        describe_common();
}

int command_fail(struct invocation *invocation, enum status status, const char *format, ...)
{
        char *message = NULL;
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(&message, format, arguments) < 0)
                message = NULL;
        va_end(arguments);
        free(invocation->message);
        invocation->message = message;
        return status;
}

int command_failed(struct invocation *invocation)
{
        if (!invocation->message)
                return command_fail(invocation, STATUS_FAILED, "out of memory");
        return STATUS_FAILED;
}

const char *command_option(const struct invocation *invocation, enum option_id id)
{
        return invocation->options->values[id];
}

int command_get(struct invocation *invocation, const char *path,
        const struct client_parameter *parameters, json_t **ret)
{
        free(STEAL(invocation->message));
        return client_request(
                invocation->client, "GET", path, parameters, NULL, ret, &invocation->message);
}

int command_list(struct invocation *invocation, const char *path, const char *key,
        const char *cluster, json_t **ret)
{
        free(STEAL(invocation->message));
        return client_list(invocation->client, path, key, cluster, ret, &invocation->message);
}

int command_print_json(struct invocation *invocation, const json_t *json)
{
        if (json_dumpf(json, invocation->output->stream, JSON_COMPACT) < 0)
                return command_failed(invocation);
        fputc('\n', invocation->output->stream);
        return STATUS_OK;
}

static int list_clusters(struct invocation *invocation, const json_t *clusters)
{
        CLEANUP(str) char *names = NULL;
        size_t size, i;
        FILE *stream = open_memstream(&names, &size);
        json_t *cluster;

        if (!stream)
                return -ENOMEM;
        json_array_foreach (clusters, i, cluster)
                fprintf(stream, "\n  %s  %s", json_get_text(cluster, "fsid"),
                        json_get_text(cluster, "name"));
        fclose(stream);
        command_fail(invocation, STATUS_FAILED,
                "there are several clusters; choose one with --cluster:%s", names ? names : "");
        return -EINVAL;
}

/* The one that is asked for, or the only one that has an fsid. */
static json_t *pick_cluster(const json_t *clusters, const char *wanted, size_t *ret_count)
{
        json_t *cluster, *found = NULL;
        size_t i;

        *ret_count = 0;
        json_array_foreach (clusters, i, cluster) {
                const char *fsid = json_get_text(cluster, "fsid");
                bool match = wanted ? strcasecmp(fsid, wanted) == 0 ||
                                              strcmp(json_get_text(cluster, "name"), wanted) == 0
                                    : strcmp(fsid, "none") != 0;

                if (!match)
                        continue;
                found = cluster;
                (*ret_count)++;
        }
        /* Only machines without a cluster. */
        if (!found && !wanted && json_array_size(clusters) == 1)
                found = json_array_get(clusters, 0);
        return found;
}

int command_cluster(struct invocation *invocation, json_t **ret_json, const char **ret_fsid,
        const char **ret_name)
{
        const char *wanted = command_option(invocation, OPTION_CLUSTER);
        CLEANUP(json) json_t *clusters = NULL;
        json_t *cluster;
        size_t count;
        int r;

        r = command_list(invocation, "/clusters", "clusters", NULL, &clusters);
        if (r < 0)
                return r;
        cluster = pick_cluster(clusters, wanted, &count);
        if (count > 1)
                return list_clusters(invocation, clusters);
        if (!cluster && wanted)
                command_fail(invocation, STATUS_FAILED,
                        "the collector knows no cluster '%s'; 'strata status' lists them", wanted);
        else if (!cluster)
                command_fail(invocation, STATUS_FAILED,
                        "the collector knows no cluster yet: no agent has reported. See 'strata "
                        "status'.");
        if (!cluster)
                return -ENOENT;
        *ret_fsid = json_get_text(cluster, "fsid");
        *ret_name = json_get_text(cluster, "name");
        *ret_json = STEAL(clusters);
        return 0;
}

static const char *setting(const struct options *options, enum option_id id, const char *variable)
{
        const char *value = options->values[id];

        if (!value)
                value = getenv(variable);
        return value && *value ? value : NULL;
}

/* The first line of the file, or STRATA_TOKEN; *ret stays NULL when there is neither. */
static int read_token(const struct options *options, char **ret, struct invocation *invocation)
{
        const char *path = setting(options, OPTION_TOKEN_FILE, "STRATA_TOKEN_FILE");
        const char *variable = getenv("STRATA_TOKEN");
        CLEANUP(file) FILE *file = NULL;
        char token[TOKEN_MAX];

        if (path) {
                file = fopen(path, "re");
                if (!file || !fgets(token, sizeof(token), file))
                        return command_fail(invocation, STATUS_FAILED,
                                "cannot read a token from %s: %s", path,
                                file && !ferror(file) ? "it is empty" : strerror(errno));
        } else if (variable && *variable) {
                snprintf(token, sizeof(token), "%s", variable);
        } else {
                return STATUS_OK;
        }
        for (size_t n = strlen(token); n > 0 && isspace((unsigned char)token[n - 1]); n--)
                token[n - 1] = '\0';
        *ret = strdup(token);
        return *ret ? STATUS_OK : command_failed(invocation);
}

static int open_client(struct invocation *invocation, struct client **ret)
{
        const struct options *options = invocation->options;
        const char *url = setting(options, OPTION_URL, "STRATA_URL");
        CLEANUP(str) char *token = NULL;
        int r;

        r = read_token(options, &token, invocation);
        if (r != STATUS_OK)
                return r;
        r = client_new(&(struct client_options){.url = url ? url : DEFAULT_URL,
                               .token = token,
                               .ca_file = setting(options, OPTION_CA_FILE, "STRATA_CA_FILE"),
                               .stop_fd = invocation->stop_fd},
                ret, &invocation->message);
        if (r < 0)
                return r == -EINVAL ? STATUS_USAGE : command_failed(invocation);
        return STATUS_OK;
}

/* A live command is told by a descriptor, so that no signal handler and no global is needed. */
static int open_stop(const struct command *command)
{
        sigset_t signals;

        if (!command->live)
                return -1;
        sigemptyset(&signals);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGTERM);
        sigprocmask(SIG_BLOCK, &signals, NULL);
        return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run(const struct command *command, const struct options *options)
{
        CLEANUP(output) struct output output = {0};
        CLEANUP(client) struct client *client = NULL;
        CLEANUP(fd) int stop_fd = open_stop(command);
        struct invocation invocation = {
                .command = command,
                .options = options,
                .argument = options->n_arguments > 1 ? options->arguments[1] : NULL,
                .output = &output,
                .stop_fd = stop_fd,
                .now_us = clock_realtime_us(),
        };
        int status, r = output_init(&output);

        status = r < 0 ? command_failed(&invocation) : open_client(&invocation, &client);
        if (status == STATUS_OK) {
                invocation.client = client;
                status = command->run(&invocation);
        }
        if (status == STATUS_OK || status == STATUS_STALE) {
                r = output_show(&output, false);
                if (r < 0)
                        status = command_fail(
                                &invocation, STATUS_FAILED, "cannot write: %s", strerror(-r));
        }
        if (invocation.message && status != STATUS_OK)
                fprintf(stderr, "strata: %s\n", invocation.message);
        free(invocation.message);
        return status;
}

/* Wrong use of @command, or of the program when NULL. */
__attribute__((format(printf, 2, 3))) static int usage_error(
        const struct command *command, const char *format, ...)
{
        va_list arguments;

        fputs("strata: ", stderr);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fprintf(stderr, ". See 'strata%s%s --help'.\n", command ? " " : "",
                command ? command->name : "");
        return STATUS_USAGE;
}

static int check_usage(const struct command *command, const struct options *options)
{
        for (int i = 0; i < OPTION_MAX_; i++)
                if (options->values[i] && !takes(command, i))
                        return usage_error(command, "option %s is not one of 'strata %s'",
                                options_name(i), command->name);
        if (options->n_arguments > 1 && !command->argument)
                return usage_error(command, "unexpected argument '%s'", options->arguments[1]);
        return STATUS_OK;
}

int command_main(int argc, char **argv)
{
        const struct command *command = NULL;
        CLEANUP(str) char *message = NULL;
        struct options options;
        int status;

        if (options_parse(argc, argv, &options, &message) < 0)
                return usage_error(NULL, "%s", message ? message : "out of memory");
        if (options.n_arguments > 0) {
                command = find_command(options.arguments[0]);
                if (!command)
                        return usage_error(NULL, "unknown subcommand '%s'", options.arguments[0]);
        }
        if (options.values[OPTION_VERSION]) {
                puts("strata " STRATA_VERSION);
                return STATUS_OK;
        }
        if (options.values[OPTION_HELP]) {
                if (command)
                        print_command_help(command);
                else
                        print_help();
                return STATUS_OK;
        }
        if (!command)
                return usage_error(NULL, "%s", "a subcommand is missing");
        status = check_usage(command, &options);
        return status == STATUS_OK ? run(command, &options) : status;
}
