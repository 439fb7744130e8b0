/* strata-collectord: options, signals and the order in which things start and stop. */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "lib/log.h"
#include "collectord/auth.h"
#include "collectord/collector-config.h"
#include "collectord/server.h"
#include "collectord/service.h"
#include "collectord/store-check-print.h"
#include "collectord/store.h"

#define STOP_POLL_US 20000ull
#define STOP_PATIENCE_US 2500000ull /* with the workers' 2 s within the 5 s we promise */
#define FLUSH_US 200000ull
#define OTHER_FILES 64u /* descriptors besides connections */
/*
 * What a query of many entities needs goes back to the kernel when it is answered: allocations from
 * this size on are mappings of their own. Without the limit the C library raises it to 32 MiB by
 * itself, and each thread's heap stays as large as its largest query.
 */
#define MAPPED_SIZE (1 << 20)
/* Pages of files that SQLite keeps, the writer's 64 MiB among them. */
#define STORE_MEMORY (160u << 20)

struct program {
        struct collector_config config;
        sd_event *event;
        struct service *service;
        struct server *server;
        uint64_t stop_us; /* when it must end */
};

static int on_stop_poll(sd_event_source *source, uint64_t time_us, void *userdata)
{
        struct program *program = userdata;

        if (server_count_requests(program->server) == 0 || time_us >= program->stop_us)
                return sd_event_exit(program->event, 0);
        sd_event_source_set_time_relative(source, STOP_POLL_US);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct program *program = userdata;
        uint64_t now_us;

        (void)source, (void)info;
        if (program->stop_us)
                return sd_event_exit(program->event, 0);
        log_info("stops");
        sd_notify(0, "STOPPING=1");
        server_stop(program->server);
        service_stop(program->service);
        sd_event_now(program->event, CLOCK_MONOTONIC, &now_us);
        program->stop_us = now_us + STOP_PATIENCE_US;
        return sd_event_add_time_relative(
                program->event, NULL, CLOCK_MONOTONIC, 0, 1000, on_stop_poll, program);
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        (void)source, (void)info;
        service_reload(((struct program *)userdata)->service);
        return 0;
}

/* Blocked before any thread starts, so that all take them from the loop. */
static int add_signals(struct program *program)
{
        sigset_t set;
        int r;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
        sigprocmask(SIG_BLOCK, &set, NULL);
        signal(SIGPIPE, SIG_IGN);
        r = sd_event_add_signal(program->event, NULL, SIGTERM, on_stop, program);
        if (r < 0)
                return r;
        r = sd_event_add_signal(program->event, NULL, SIGINT, on_stop, program);
        if (r < 0)
                return r;
        return sd_event_add_signal(program->event, NULL, SIGHUP, on_reload, program);
}

static void raise_file_limit(uint64_t connections)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= connections + OTHER_FILES)
                return;
        limit.rlim_cur = connections + OTHER_FILES;
        if (limit.rlim_cur > limit.rlim_max)
                limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
}

static int start(struct program *program, char **ret_message)
{
        int r;

        r = sd_event_default(&program->event);
        if (r < 0)
                return r;
        r = add_signals(program);
        if (r < 0)
                return r;
        raise_file_limit(program->config.connections);
        r = service_new(program->event, &program->config, &program->service, ret_message);
        if (r < 0)
                return r;
        r = server_new(
                program->event, &program->config, program->service, &program->server, ret_message);
        if (r < 0)
                return r;
        r = sd_event_set_watchdog(program->event, true);
        return r < 0 ? r : 0;
}

static int run(struct program *program)
{
        CLEANUP(str) char *message = NULL;
        int r;

        mallopt(M_MMAP_THRESHOLD, MAPPED_SIZE);
        store_limit_memory(STORE_MEMORY);
        r = start(program, &message);
        if (r < 0) {
                log_error("%s", message ? message : strerror(-r));
                return r;
        }
        log_info("listening on %s://%s", *program->config.certificate ? "https" : "http",
                server_get_address(program->server));
        sd_notifyf(0, "READY=1\nSTATUS=Listening on %s", server_get_address(program->server));
        r = sd_event_loop(program->event);
        if (r < 0)
                log_error("the loop ended: %s", strerror(-r));
        service_finish(program->service);
        server_flush(program->server, FLUSH_US);
        return r;
}

static void program_done(struct program *program)
{
        server_free(program->server);
        service_free(program->service);
        sd_event_unref(program->event);
        collector_config_done(&program->config);
}

static int make_token(const char *kind, const char *name)
{
        CLEANUP(str) char *token = NULL, *line = NULL, *message = NULL;
        int r;

        r = auth_make_token(kind, name ? name : kind, &token, &line, &message);
        if (r < 0) {
                fprintf(stderr, "strata-collectord: %s\n", message ? message : strerror(-r));
                return EXIT_FAILURE;
        }
        fputs("The token, shown only this once, and its line of the token file:\n", stderr);
        printf("%s\n%s\n", token, line);
        return EXIT_SUCCESS;
}

static int usage(void)
{
        puts("strata-collectord [OPTION...]\n\n"
             "Gathers what agents sample and answers which layer multiplies I/O.\n\n"
             "  --config=FILE             configuration (" COLLECTOR_CONFIG_PATH ")\n"
             "  --check                   read the configuration, say whether it is right\n"
             "  --check-store             read the whole store, say what of it is damaged\n"
             "  --make-token=KIND [NAME]  make a token: agent HOST_ID, reader or operator\n"
             "  --version\n"
             "  --help");
        return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
        static const struct option options[] = {
                {"config", required_argument, NULL, 'c'},
                {"check", no_argument, NULL, 'k'},
                {"check-store", no_argument, NULL, 's'},
                {"make-token", required_argument, NULL, 't'},
                {"version", no_argument, NULL, 'v'},
                {"help", no_argument, NULL, 'h'},
                {NULL, 0, NULL, 0},
        };
        struct program program = {0};
        CLEANUP(str) char *message = NULL;
        const char *path = COLLECTOR_CONFIG_PATH, *token_kind = NULL;
        enum log_level level;
        bool check = false, check_store = false;
        int option, r, status;

        while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (option) {
                case 'c':
                        path = optarg;
                        break;
                case 'k':
                        check = true;
                        break;
                case 's':
                        check_store = true;
                        break;
                case 't':
                        token_kind = optarg;
                        break;
                case 'v':
                        puts("strata-collectord " STRATA_VERSION);
                        return EXIT_SUCCESS;
                case 'h':
                        return usage();
                default:
                        return EXIT_FAILURE;
                }
        if (token_kind)
                return make_token(token_kind, argv[optind]);
        if (optind < argc) {
                fprintf(stderr, "strata-collectord: unknown argument '%s'\n", argv[optind]);
                return EXIT_FAILURE;
        }

        r = collector_config_load(path, &program.config, &message);
        if (r < 0)
                log_error("%s", message ? message : strerror(-r));
        status = r < 0 && check_store ? STORE_CHECK_UNREADABLE : EXIT_SUCCESS;
        if (r == 0 && check_store)
                status = store_check_print(program.config.store_folder);
        else if (r == 0 && check)
                puts("configuration OK");
        else if (r == 0 && log_level_parse(program.config.log_level, &level) == 0)
                log_set_level(level);
        if (r == 0 && !check && !check_store)
                r = run(&program);
        program_done(&program);
        return status ? status : r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
