/*
 * A load of simulated agents for the collector: real blocks over real connections.
 *
 *     zcat diskstats-1s.txt.gz | load-agents --port=7440 [OPTION...]
 *
 * Ends when everything that was made is acknowledged, or some time after; prints what happened as
 * one JSON object. SIGTERM ends the sampling, a second one the rest. The exit code is 0 when all
 * was acknowledged and nothing refused.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "lib/clock.h"
#include "lib/config.h"
#include "tests/load/agent.h"

#define EVENTS 256
#define TURN_MS 5 /* agents are looked at so often */
#define OTHER_FILES 64u

struct options {
        uint32_t agents, devices, rows, seed;
        uint64_t interval_us, seconds, drain_seconds;
        uint64_t history; /* blocks of each source and agent, as fast as it goes */
        uint64_t begin;   /* of the history, Unix seconds */
        const char *sources, *list;
        uint16_t port;
        bool facts;
};

static volatile sig_atomic_t stops;

static void on_signal(int number)
{
        (void)number;
        stops++;
}

static int usage(void)
{
        puts("zcat TRACE | load-agents --port=N [OPTION...]\n\n"
             "  --agents=N       hosts (100), each with a connection\n"
             "  --interval=10s   of their samples\n"
             "  --rows=N         of a block (1): a block is sent every N intervals\n"
             "  --seconds=N      how long they sample (60)\n"
             "  --sources=LIST   (diskstats,osd,host,agent)\n"
             "  --devices=N      disks and OSDs of a host (12)\n"
             "  --facts          tell the facts of hosts and cluster first\n"
             "  --history=N      N blocks of each agent's past, one a request, as fast as they are "
             "taken;\n"
             "                   of the source diskstats alone, each disk with numbers of its own\n"
             "  --begin=UNIX     when the history begins (so that it ends now)\n"
             "  --drain=N        seconds to wait for the last acknowledgements (30)\n"
             "  --list=FILE      of acknowledged blocks, a line each:\n"
             "                   HOST BOOT SOURCE SEQUENCE TIME_US...\n"
             "  --seed=N         of the pauses (1)");
        return EXIT_FAILURE;
}

static int read_options(int argc, char **argv, struct options *options)
{
        static const struct option known[] = {
                {"agents", required_argument, NULL, 'a'},
                {"interval", required_argument, NULL, 'i'},
                {"rows", required_argument, NULL, 'r'},
                {"seconds", required_argument, NULL, 's'},
                {"sources", required_argument, NULL, 'o'},
                {"devices", required_argument, NULL, 'd'},
                {"facts", no_argument, NULL, 'f'},
                {"history", required_argument, NULL, 'l'},
                {"begin", required_argument, NULL, 'b'},
                {"drain", required_argument, NULL, 'w'},
                {"list", required_argument, NULL, 'n'},
                {"seed", required_argument, NULL, 'e'},
                {"port", required_argument, NULL, 'p'},
                {NULL, 0, NULL, 0},
        };
        int option;

        while ((option = getopt_long(argc, argv, "", known, NULL)) >= 0) {
                uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;

                switch (option) {
                case 'a':
                        options->agents = (uint32_t)number;
                        break;
                case 'i':
                        if (config_parse_duration(optarg, &options->interval_us) < 0)
                                return -EINVAL;
                        break;
                case 'r':
                        options->rows = (uint32_t)number;
                        break;
                case 's':
                        options->seconds = number;
                        break;
                case 'o':
                        options->sources = optarg;
                        break;
                case 'd':
                        options->devices = (uint32_t)number;
                        break;
                case 'f':
                        options->facts = true;
                        break;
                case 'l':
                        options->history = number;
                        break;
                case 'b':
                        options->begin = number;
                        break;
                case 'w':
                        options->drain_seconds = number;
                        break;
                case 'n':
                        options->list = optarg;
                        break;
                case 'e':
                        options->seed = (uint32_t)number;
                        break;
                case 'p':
                        options->port = (uint16_t)number;
                        break;
                default:
                        return -EINVAL;
                }
        }
        if (options->history)
                options->sources = source_name(SOURCE_DISKSTATS);
        /* Templates are read from the trace by whole seconds. */
        if (optind < argc || options->port == 0 || options->agents == 0 || options->rows == 0 ||
                options->rows > WORLD_ROWS_MAX || options->devices == 0 ||
                options->devices > WORLD_DEVICES_MAX || options->interval_us < SECOND)
                return -EINVAL;
        return 0;
}

static int raise_file_limit(uint32_t agents)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return -errno;
        if (limit.rlim_cur >= agents + OTHER_FILES)
                return 0;
        limit.rlim_cur = agents + OTHER_FILES;
        if (limit.rlim_max < limit.rlim_cur)
                limit.rlim_max = limit.rlim_cur; /* root may */
        return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

static int load_open(struct load *load, const struct options *options)
{
        uint64_t block_us = options->rows * options->interval_us;
        int64_t now_us = clock_realtime_us();
        int r;

        *load = (struct load){.epoll = -1, .n_agents = options->agents, .end_us = UINT64_MAX};
        r = raise_file_limit(options->agents);
        if (r < 0)
                return r;
        r = template_set_open(&load->set, stdin, options->sources, options->agents,
                options->devices, options->rows, options->interval_us);
        if (r < 0)
                return r;
        load->address = (struct sockaddr_in){.sin_family = AF_INET,
                .sin_port = htons(options->port),
                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        load->with_facts = options->facts;
        load->count = options->history ? options->history : options->seconds * 1000000 / block_us;
        load->period_us = options->history ? 0 : block_us;
        /* The newest block's last row is now, or the first one's begin was a moment ago. */
        load->base_us = (int64_t)((uint64_t)now_us / options->interval_us * options->interval_us) -
                        (int64_t)(options->history ? options->history * block_us
                                                   : block_us - options->interval_us);
        if (options->history && options->begin)
                load->base_us = (int64_t)options->begin * SECOND;
        load->start_us = clock_monotonic_us();
        load->agents = calloc(options->agents, sizeof(*load->agents));
        load->latencies = calloc(LATENCY_UNITS, sizeof(*load->latencies));
        load->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (!load->agents || !load->latencies || load->epoll < 0)
                return -ENOMEM;
        for (uint32_t i = 0; i < options->agents; i++)
                load->agents[i] = (struct agent){.number = i, .fd = -1};
        if (options->list) {
                load->acknowledged = fopen(options->list, "we");
                if (!load->acknowledged)
                        return -errno;
        }
        return 0;
}

static void load_done(struct load *load)
{
        for (uint32_t i = 0; load->agents && i < load->n_agents; i++)
                agent_done(&load->agents[i]);
        free(load->agents);
        free(load->latencies);
        if (load->epoll >= 0)
                close(load->epoll);
        if (load->acknowledged)
                fclose(load->acknowledged);
        template_set_done(&load->set);
}

/* One turn; whether anything is still to be acknowledged. */
static bool turn(struct load *load)
{
        struct epoll_event events[EVENTS];
        uint64_t now_us = clock_monotonic_us();
        bool open = false;
        int n;

        for (uint32_t i = 0; i < load->n_agents; i++) {
                struct agent *agent = &load->agents[i];

                if (agent->next_us <= now_us)
                        agent_look(load, agent, now_us);
                open = open || agent->acked < agent_made(load, agent, UINT64_MAX);
        }
        do {
                n = epoll_wait(load->epoll, events, EVENTS, TURN_MS);
                for (int i = 0; i < n; i++)
                        agent_event(load, events[i].data.ptr, events[i].events);
        } while (n == EVENTS);
        /* A test reads the list while we go on. */
        if (load->acknowledged)
                fflush(load->acknowledged);
        return open;
}

static void report(struct load *load, uint64_t now_us)
{
        uint64_t unacknowledged = 0;
        struct rusage usage;

        for (uint32_t i = 0; i < load->n_agents; i++)
                unacknowledged +=
                        (agent_made(load, &load->agents[i], now_us) - load->agents[i].acked) *
                        load->set.n_sources;
        getrusage(RUSAGE_SELF, &usage);
        printf("{\"seconds\":%.2f,\"requests\":%" PRIu64 ",\"blocks\":%" PRIu64 ",\"rows\":%" PRIu64
               ",\"values\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"duplicates\":%" PRIu64
               ",\"busy\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"broken\":%" PRIu64
               ",\"unacknowledged\":%" PRIu64
               ",\"ack_p50_ms\":%.2f,\"ack_p99_ms\":%.2f,\"ack_max_ms\":%.2f,"
               "\"cpu_seconds\":%.2f}\n",
                (double)(now_us - load->start_us) / 1e6, load->requests, load->blocks, load->rows,
                load->values, load->bytes, load->duplicates, load->busy, load->refused,
                load->broken, unacknowledged, load_latency_ms(load, 0.5),
                load_latency_ms(load, 0.99), (double)load->latency_max_us / 1e3,
                (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                        (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
}

static int run(struct load *load, const struct options *options)
{
        uint64_t drain_us = options->drain_seconds * 1000000;
        uint64_t end_us = load->start_us + (load->count + 1) * load->period_us + drain_us;
        bool open = true;

        /* A history ends when it ends. */
        while (open && stops < 2 && (load->period_us == 0 || clock_monotonic_us() < end_us)) {
                if (stops > 0 && load->end_us == UINT64_MAX) {
                        load->end_us = clock_monotonic_us();
                        end_us = load->end_us + drain_us;
                }
                open = turn(load);
        }
        report(load, clock_monotonic_us());
        return open || load->refused ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
        struct options options = {.agents = 100,
                .devices = 12,
                .rows = 1,
                .seed = 1,
                .interval_us = 10 * SECOND,
                .seconds = 60,
                .drain_seconds = 30,
                .sources = "diskstats,osd,host,agent"};
        struct load *load;
        int r;

        if (read_options(argc, argv, &options) < 0)
                return usage();
        srandom(options.seed);
        signal(SIGTERM, on_signal);
        signal(SIGINT, on_signal);
        load = calloc(1, sizeof(*load));
        r = load ? load_open(load, &options) : -ENOMEM;
        if (r < 0)
                fprintf(stderr, "load-agents: %s\n", strerror(-r));
        else
                r = run(load, &options);
        if (load)
                load_done(load);
        free(load);
        return r == EXIT_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
