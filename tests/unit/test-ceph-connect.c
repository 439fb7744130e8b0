/*
 * Monitors that are dead in two ways: nobody listens at their port, or somebody does and never says
 * a word. The ceph source is let fail and connect anew dozens of times; it must come back in time
 * each time, and leave neither descriptors nor threads nor memory behind.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agentd/source.h"
#include "lib/clock.h"
#include "sample-fixture.h"

#define FSID "11111111-2222-3333-4444-555555555555"
#define TIMEOUT_US 1000000u
#define ROUNDS 12u /* of each of the threads: 48 connections in all */
#define THREADS 4u
#define SLACK_US 3000000u     /* of a machine that does much else */
#define GROWTH_MAX_KIB 12288u /* a single connection that stays behind has 24 MiB */

static struct node {
        char *folder;
        int silent_fd;
        const struct source_class *class;
} node;

static int listen_silently(uint16_t *ret_port)
{
        struct sockaddr_in address = {
                .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t size = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
        *ret_port = ntohs(address.sin_port);
        return fd;
}

static FILE *open_file(const char *name)
{
        char path[512];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", node.folder, name);
        file = fopen(path, "w");
        assert_non_null(file);
        return file;
}

static void write_conf(const char *name, unsigned port)
{
        FILE *file = open_file(name);

        fprintf(file,
                "[global]\nfsid = " FSID "\nmon_host = v2:127.0.0.1:%u/0\nkeyring = %s/keyring\n",
                port, node.folder);
        fclose(file);
}

static int set_up(void **state)
{
        uint16_t silent, refusing;
        FILE *file;
        int closed_fd;

        (void)state;
        node.folder = fixture_folder();
        node.silent_fd = listen_silently(&silent);
        assert_int_equal(listen(node.silent_fd, 64), 0); /* the kernel accepts */
        closed_fd = listen_silently(&refusing);
        close(closed_fd);
        write_conf("silent.conf", silent);
        write_conf("refusing.conf", refusing);
        file = open_file("keyring");
        fputs("[client.strata]\n\tkey = AQBSdFhkAAAAABAAe1bPz0Jq8pS2Vq1bE1v8gA==\n", file);
        fclose(file);
        return source_class_get(SOURCE_CEPH, &node.class);
}

static int tear_down(void **state)
{
        (void)state;
        close(node.silent_fd);
        fixture_remove(node.folder);
        return 0;
}

static void no_line(void *userdata, int level, const char *text)
{
        (void)userdata;
        (void)level;
        (void)text;
}

/* The longest that one round took, in microseconds. */
static uint64_t connect_often(const char *name, unsigned rounds)
{
        const struct source_report report = {.line = no_line};
        char path[512];
        struct source_options options = {
                .ceph_conf = path,
                .ceph_name = "client.strata",
                .ceph_keyring = "",
                .ceph_timeout_us = TIMEOUT_US,
                .module_folder = getenv("STRATA_MODULES"),
        };
        uint64_t longest_us = 0;

        snprintf(path, sizeof(path), "%s/%s", node.folder, name);
        for (unsigned i = 0; i < rounds; i++) {
                uint64_t begin_us = clock_monotonic_us(), took_us;
                struct source *source = NULL;
                struct sample sample;

                assert_int_equal(node.class->open(&options, &report, &source), 0);
                assert_int_equal(
                        node.class->collect(source, begin_us + node.class->deadline_us, &sample),
                        -ETIMEDOUT);
                node.class->close(source);
                took_us = clock_monotonic_us() - begin_us;
                if (took_us > longest_us)
                        longest_us = took_us;
        }
        return longest_us;
}

static void *connect_silent(void *userdata)
{
        *(uint64_t *)userdata = connect_often("silent.conf", ROUNDS);
        return NULL;
}

static void *connect_refusing(void *userdata)
{
        *(uint64_t *)userdata = connect_often("refusing.conf", ROUNDS);
        return NULL;
}

static unsigned count_entries(const char *folder)
{
        DIR *dir = opendir(folder);
        unsigned n = 0;

        assert_non_null(dir);
        while (readdir(dir))
                n++;
        closedir(dir);
        return n;
}

static unsigned resident_kib(void)
{
        FILE *file = fopen("/proc/self/statm", "r");
        unsigned size, resident;

        assert_non_null(file);
        assert_int_equal(fscanf(file, "%u %u", &size, &resident), 2);
        fclose(file);
        return resident * (unsigned)(sysconf(_SC_PAGESIZE) / 1024);
}

static void run_threads(uint64_t *longest_us)
{
        pthread_t threads[THREADS];

        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL,
                                         i % 2 ? connect_silent : connect_refusing, &longest_us[i]),
                        0);
        for (unsigned i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
}

static void leaves_nothing_behind_when_the_monitors_are_dead(void **state)
{
        unsigned fds, tasks, kib;
        uint64_t longest_us[THREADS];

        (void)state;
        run_threads(longest_us); /* what is loaded and allocated once, and for so many at a time */
        fds = count_entries("/proc/self/fd");
        tasks = count_entries("/proc/self/task");
        kib = resident_kib();
        run_threads(longest_us);
        print_message("# %u connections: descriptors %u to %u, threads %u to %u, resident %u to %u "
                      "KiB, longest %u ms\n",
                ROUNDS * THREADS, fds, count_entries("/proc/self/fd"), tasks,
                count_entries("/proc/self/task"), kib, resident_kib(),
                (unsigned)(longest_us[0] / 1000));
        assert_int_equal(count_entries("/proc/self/fd"), fds);
        assert_int_equal(count_entries("/proc/self/task"), tasks);
        assert_true(resident_kib() < kib + GROWTH_MAX_KIB);
        for (unsigned i = 0; i < THREADS; i++)
                assert_true(longest_us[i] < TIMEOUT_US + SLACK_US);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(leaves_nothing_behind_when_the_monitors_are_dead),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
