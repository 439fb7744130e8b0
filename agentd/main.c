#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agentd/agent.h"
#include "agentd/once.h"
#include "agentd/state.h"
#include "lib/log.h"

static const char help[] =
        "strata-agentd [--config=FILE]\n"
        "\n"
        "Samples the layers of this Ceph node and sends the samples to strata-collectord.\n"
        "\n"
        "  --config=FILE  configuration (default " AGENT_CONFIG_PATH ", when it is there)\n"
        "  --check        read the configuration, say whether it is right, and end\n"
        "  --once         print one sample of every source as JSON, and end\n"
        "  --host-id      print what the collector knows this host by, and end\n"
        "  --version\n"
        "  --help\n";

enum mode { MODE_RUN, MODE_CHECK, MODE_ONCE, MODE_HOST_ID };

struct options {
        enum mode mode;
        const char *config; /* NULL: defaults */
};

/* 1: done already. -EINVAL: told. */
static int parse_options(int argc, char **argv, struct options *ret)
{
        static const struct option known[] = {
                {"config", required_argument, NULL, 'c'},
                {"check", no_argument, NULL, 'k'},
                {"once", no_argument, NULL, 'o'},
                {"host-id", no_argument, NULL, 'i'},
                {"version", no_argument, NULL, 'v'},
                {"help", no_argument, NULL, 'h'},
                {0},
        };
        int c;

        *ret = (struct options){.mode = MODE_RUN};
        while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
                switch (c) {
                case 'c':
                        ret->config = optarg;
                        break;
                case 'k':
                        ret->mode = MODE_CHECK;
                        break;
                case 'o':
                        ret->mode = MODE_ONCE;
                        break;
                case 'i':
                        ret->mode = MODE_HOST_ID;
                        break;
                case 'v':
                        puts("strata-agentd " STRATA_VERSION);
                        return 1;
                case 'h':
                        fputs(help, stdout);
                        return 1;
                default:
                        return -EINVAL;
                }
        }
        if (optind < argc) {
                fprintf(stderr, "strata-agentd: '%s' is not an option; see --help\n", argv[optind]);
                return -EINVAL;
        }
        if (!ret->config && access(AGENT_CONFIG_PATH, F_OK) == 0)
                ret->config = AGENT_CONFIG_PATH;
        return 0;
}

static int run(const struct agent_config *config)
{
        struct agent *agent = NULL;
        sigset_t signals;
        int r;

        /* A peer that went away, a limit on file size: error codes here. */
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN);
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        sigprocmask(SIG_BLOCK, &signals, NULL);
        r = agent_new(config, &agent);
        if (r < 0)
                return EXIT_FAILURE;
        r = agent_run(agent);
        if (r < 0)
                log_error("the loop failed: %s", strerror(-r));
        if (agent_free(agent)) {
                log_warning("a source did not come back in time; ending without it");
                _exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
        }
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int print_once(const struct agent_config *config)
{
        int r = once_print(config, stdout);

        if (r < 0)
                log_error("cannot print the samples: %s", strerror(-r));
        return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print_host_id(const struct agent_config *config)
{
        CLEANUP(state) struct state *state = NULL;
        char text[ID_TEXT_MAX];
        struct id host;
        int r;

        r = state_open(config->state_folder, &state);
        if (r >= 0)
                r = state_get_host_id(state, config->host_id, &host);
        if (r < 0) {
                log_error("no host id: %s",
                        r == -EBUSY ? "an agent is running, it told its host id when it started"
                                    : strerror(-r));
                return EXIT_FAILURE;
        }
        puts(id_format(&host, text));
        return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
        CLEANUP(agent_config) struct agent_config config = {0};
        CLEANUP(str) char *message = NULL;
        struct options options;
        enum log_level level;
        int r;

        r = parse_options(argc, argv, &options);
        if (r != 0)
                return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        r = agent_config_load(options.config, &config, &message);
        if (r < 0) {
                fprintf(stderr, "strata-agentd: %s\n", message ? message : strerror(-r));
                return EXIT_FAILURE;
        }
        if (log_level_parse(config.log_level, &level) == 0)
                log_set_level(level);
        switch (options.mode) {
        case MODE_CHECK:
                puts("configuration OK");
                return EXIT_SUCCESS;
        case MODE_ONCE:
                return print_once(&config);
        case MODE_HOST_ID:
                return print_host_id(&config);
        case MODE_RUN:
                break;
        }
        return run(&config);
}
