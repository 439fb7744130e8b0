/*
 * The floor beneath the agent: each second the same files of /proc and the same admin sockets, read
 * with the fewest system calls that do it and not looked at. What the agent costs beyond this is
 * its own; what this costs is the kernel's, for anybody who wants these numbers.
 *
 *     bare-reads FILE...      a socket is asked for "perf dump", any other file is read, and a
 *                             number is a process whose CPU clock is looked at
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define TARGETS_MAX 256
#define ANSWERS_MS 100 /* until all are there: to be woken by each would cost more */
#define QUESTION "{\"prefix\":\"perf dump\",\"format\":\"json\"}"

static char buffer[256 << 10];

static int socket_ask(const char *path)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
                send(fd, QUESTION, sizeof(QUESTION), MSG_NOSIGNAL) < 0) {
                perror(path);
                exit(1);
        }
        return fd;
}

static void sockets_read(const char *const *paths, int n)
{
        int fds[TARGETS_MAX];

        for (int i = 0; i < n; i++)
                fds[i] = socket_ask(paths[i]);
        if (n > 0)
                poll(NULL, 0, ANSWERS_MS);
        for (int i = 0; i < n; i++) {
                while (recv(fds[i], buffer, sizeof(buffer), MSG_WAITALL) > 0)
                        ;
                close(fds[i]);
        }
}

int main(int argc, char **argv)
{
        const char *sockets[TARGETS_MAX];
        int files[TARGETS_MAX], n_sockets = 0, n_files = 0, n_clocks = 0;
        clockid_t clocks[TARGETS_MAX];
        struct timespec due, time;

        for (int i = 1; i < argc && i < TARGETS_MAX; i++) {
                struct stat status;

                if (clock_getcpuclockid((pid_t)atoi(argv[i]), &clocks[n_clocks]) == 0 &&
                        atoi(argv[i]) > 0)
                        n_clocks++;
                else if (stat(argv[i], &status) == 0 && S_ISSOCK(status.st_mode))
                        sockets[n_sockets++] = argv[i];
                else
                        files[n_files++] = open(argv[i], O_RDONLY | O_CLOEXEC);
        }
        clock_gettime(CLOCK_MONOTONIC, &due);
        for (;;) {
                due.tv_sec++;
                clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
                for (int i = 0; i < n_files; i++)
                        (void)!pread(files[i], buffer, sizeof(buffer), 0);
                for (int i = 0; i < n_clocks; i++)
                        clock_gettime(clocks[i], &time);
                sockets_read(sockets, n_sockets);
        }
}
