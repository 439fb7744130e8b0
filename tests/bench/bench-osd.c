/*
 * What one sample of the OSDs costs the agent: another process plays the OSDs and answers with a
 * captured "perf dump". Times are of the sampling thread alone, as the kernel accounts them.
 *
 *     bench-osd tests/fixtures/perf/pacific-16.2.15.json [OSDS [SAMPLES]]
 */

#include <arpa/inet.h>
#include <err.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "agentd/perf.h"
#include "agentd/source.h"
#include "lib/clock.h"

#define OSDS_MAX 256u
#define DUMP_MAX (1u << 20)
#define PARSES 2000u

static const char status[] = "{\"cluster_fsid\":\"8626af4b-f01e-42db-a6a4-b4c4ad849419\","
                             "\"osd_fsid\":\"e536d82a-4354-4596-968a-0eb0d3e2a91b\",\"whoami\":0}";

struct player {
        char folder[64];
        char dump[DUMP_MAX];
        size_t dump_size;
        unsigned n;
        struct pollfd listeners[OSDS_MAX];
};

static void listen_at(struct player *player, unsigned osd)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%.63s/ceph-osd.%u.asok",
                player->folder, osd);
        if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
                listen(fd, 16) < 0)
                err(EXIT_FAILURE, "%s", address.sun_path);
        player->listeners[osd] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void answer(struct player *player, int listener)
{
        static const char version[] = "{\"version\":\"16.2.15\"}";
        int fd = accept(listener, NULL, NULL);
        char question[256] = "";
        const char *text = player->dump;
        size_t size = player->dump_size;
        uint32_t length;

        if (recv(fd, question, sizeof(question) - 1, 0) < 0)
                err(EXIT_FAILURE, "recv");
        if (strstr(question, "\"status\"")) {
                text = status;
                size = sizeof(status) - 1;
        } else if (strstr(question, "\"version\"")) {
                text = version;
                size = sizeof(version) - 1;
        }
        length = htonl((uint32_t)size);
        if (send(fd, &length, sizeof(length), MSG_NOSIGNAL) < 0 ||
                send(fd, text, size, MSG_NOSIGNAL) < 0)
                warn("send");
        close(fd);
}

static void play(struct player *player)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
                poll(player->listeners, player->n, -1);
                for (unsigned i = 0; i < player->n; i++)
                        if (player->listeners[i].revents)
                                answer(player, player->listeners[i].fd);
        }
}

static double seconds(const struct timeval *time)
{
        return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static void line(void *userdata, int level, const char *text)
{
        (void)userdata, (void)level;
        warnx("%s", text);
}

static void sample(const struct player *player, unsigned samples)
{
        struct source_options options = {.root = "", .osd_folders = player->folder};
        struct source_report report = {line, NULL};
        struct rusage before, after;
        struct source *source;
        struct sample row;
        double user, system;

        if (source_osd.open(&options, &report, &source) < 0)
                errx(EXIT_FAILURE, "open failed");
        for (unsigned i = 0; i < samples + 10; i++) {
                if (i == 10)
                        getrusage(RUSAGE_THREAD, &before);
                if (source_osd.collect(source, clock_monotonic_us() + 800000, &row) < 0 ||
                        row.failures > 0)
                        errx(EXIT_FAILURE, "a sample failed");
        }
        getrusage(RUSAGE_THREAD, &after);
        user = (seconds(&after.ru_utime) - seconds(&before.ru_utime)) * 1e6 / samples;
        system = (seconds(&after.ru_stime) - seconds(&before.ru_stime)) * 1e6 / samples;
        printf("%u OSDs, %u samples: user %.1f us, system %.1f us a sample; user %.2f us, system "
               "%.2f us an OSD\n",
                player->n, samples, user, system, user / player->n, system / player->n);
        source_osd.close(source);
}

static void parse(const struct player *player)
{
        struct perf_values values;
        struct timespec begin, end;
        struct perf *perf;

        if (perf_new(&perf) < 0)
                errx(EXIT_FAILURE, "no memory");
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        for (unsigned i = 0; i < PARSES; i++)
                if (perf_parse(perf, player->dump, player->dump_size, &values) < 0)
                        errx(EXIT_FAILURE, "not a dump");
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        printf("perf_parse: %.2f us for %zu bytes\n",
                ((double)(end.tv_sec - begin.tv_sec) * 1e6 +
                        (double)(end.tv_nsec - begin.tv_nsec) / 1e3) /
                        PARSES,
                player->dump_size);
        perf_free(perf);
}

static void dump_read(struct player *player, const char *path)
{
        FILE *file = fopen(path, "re");

        if (!file)
                err(EXIT_FAILURE, "%s", path);
        player->dump_size = fread(player->dump, 1, sizeof(player->dump), file);
        fclose(file);
}

int main(int argc, char **argv)
{
        static struct player player;
        unsigned samples = argc > 3 ? (unsigned)atoi(argv[3]) : 300;
        char command[128];
        pid_t child;

        player.n = argc > 2 ? (unsigned)atoi(argv[2]) : 12;
        if (argc < 2 || player.n == 0 || player.n > OSDS_MAX || samples == 0)
                errx(EXIT_FAILURE, "usage: bench-osd DUMP [OSDS [SAMPLES]]");
        dump_read(&player, argv[1]);
        strcpy(player.folder, "/tmp/strata-bench-XXXXXX");
        if (!mkdtemp(player.folder))
                err(EXIT_FAILURE, "%s", player.folder);
        for (unsigned i = 0; i < player.n; i++)
                listen_at(&player, i);
        child = fork();
        if (child == 0)
                play(&player);
        sample(&player, samples);
        parse(&player);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        snprintf(command, sizeof(command), "rm -r '%.63s'", player.folder);
        return system(command) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
