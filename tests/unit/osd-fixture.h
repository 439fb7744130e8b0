#pragma once
/*
 * Fake OSDs: each is a thread behind a real socket, which answers as it is told to. No test needs
 * Ceph; tests/integration has the real one. A test program includes this once.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agentd/host-process.h"
#include "agentd/source.h"

#define CLUSTER "8626af4b-f01e-42db-a6a4-b4c4ad849419"

enum fault {
        FAULT_NONE,
        FAULT_GARBAGE,
        FAULT_HUGE_LENGTH,
        FAULT_EMPTY,
        FAULT_CLOSE,
        FAULT_CUT,
        FAULT_SILENT,
        FAULT_DRIP, /* a byte now and then, never done */
        FAULT_HALF_LENGTH,
        FAULT_ERROR,     /* the text an OSD sends for an unknown command */
        FAULT_MORE,      /* than it announced */
        FAULT_ENDLESS,   /* as many bytes as are taken */
        FAULT_NO_LENGTH, /* the answer at once */
        FAULT_MAX_,
};

__attribute__((unused)) static const char *const reasons[FAULT_MAX_] = {
        [FAULT_GARBAGE] = "cannot be understood",
        [FAULT_HUGE_LENGTH] = "more than 8 MiB",
        [FAULT_EMPTY] = "empty answer",
        [FAULT_CLOSE] = "before its answer is complete",
        [FAULT_CUT] = "before its answer is complete",
        [FAULT_SILENT] = "in time",
        [FAULT_DRIP] = "in time",
        [FAULT_HALF_LENGTH] = "in time",
        [FAULT_ERROR] = "cannot be understood",
        [FAULT_MORE] = "more than it announced",
        [FAULT_ENDLESS] = "more than it announced",
        [FAULT_NO_LENGTH] = "more than 8 MiB",
};

struct fake {
        char path[128];
        unsigned id;
        const char *fsid, *cluster;
        _Atomic unsigned delay_ms; /* before each answer */
        _Atomic unsigned pause_ms; /* in the midst of each "perf dump" */
        _Atomic enum fault fault;
        _Atomic(const char *) perf, histogram;
        const char *release;
        _Atomic unsigned questions;
        int listener, stop[2];
        pthread_t thread;
};

struct node {
        char folder[64];
        const struct source_class *class; /* &source_osd unless said otherwise */
        struct source *source;
        struct sample sample;
        char lines[8192];
        unsigned n_lines;
};

static const char perf_first[] =
        "{\"osd\":{\"op_w\":100,\"op_r\":5},\"bluefs\":{\"logged_bytes\":7}}";
__attribute__((unused)) static const char perf_second[] =
        "{\"osd\":{\"op_w\":101,\"op_r\":5},\"bluefs\":{\"logged_bytes\":7}}";

static uint64_t now_us(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* What is written may be more than the other side wants to read. */
static void put(int fd, const void *bytes, size_t size)
{
        (void)!send(fd, bytes, size, MSG_NOSIGNAL);
}

static void answer_put(int fd, const char *text, size_t announced)
{
        uint32_t length = htonl((uint32_t)announced);

        put(fd, &length, sizeof(length));
        put(fd, text, strlen(text));
}

/* Until the other side closes, or the test ends. */
static void wait_for_end(struct fake *fake, int fd, bool drip)
{
        for (;;) {
                struct pollfd polls[] = {
                        {.fd = fake->stop[0], .events = POLLIN}, {.fd = fd, .events = POLLIN}};

                if (poll(polls, 2, drip ? 20 : -1) != 0)
                        return;
                put(fd, " ", 1);
        }
}

/* Until the other side closes. */
static void bytes_pour(int fd)
{
        static const char bytes[65536];

        while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
                ;
}

static void fault_put(struct fake *fake, int fd, enum fault fault)
{
        switch (fault) {
        case FAULT_GARBAGE:
                answer_put(fd, "\x01{\"osd\":{{{{", 12);
                break;
        case FAULT_HUGE_LENGTH:
                answer_put(fd, "", 0xffffffff);
                break;
        case FAULT_EMPTY:
                answer_put(fd, "", 0);
                break;
        case FAULT_CUT:
                answer_put(fd, "{\"osd\":", 4000);
                break;
        case FAULT_SILENT:
                wait_for_end(fake, fd, false);
                break;
        case FAULT_DRIP:
                answer_put(fd, "{", 8000000);
                wait_for_end(fake, fd, true);
                break;
        case FAULT_HALF_LENGTH:
                put(fd, "\0\0", 2);
                wait_for_end(fake, fd, false);
                break;
        case FAULT_MORE:
                answer_put(fd, "{\"osd\":{\"op_w\":1}}", 12);
                break;
        case FAULT_ENDLESS:
                answer_put(fd, "{", 1 << 20);
                bytes_pour(fd);
                break;
        case FAULT_NO_LENGTH:
                put(fd, "{\"osd\":{\"op_w\":1}}", 18);
                break;
        case FAULT_ERROR:
                answer_put(fd, "ERROR: (22) Invalid argument\n", 29);
                break;
        default:
                break;
        }
}

static void fake_answer(struct fake *fake, int fd)
{
        char question[256] = "", text[256];
        size_t length = 0;
        enum fault fault = fake->fault;
        const char *perf = fake->perf;

        while (length < sizeof(question) && (length == 0 || question[length - 1] != '\0')) {
                ssize_t n = recv(fd, question + length, sizeof(question) - length, 0);

                if (n <= 0)
                        return;
                length += (size_t)n;
        }
        fake->questions++;
        poll(NULL, 0, (int)fake->delay_ms);
        if (fault != FAULT_NONE) {
                fault_put(fake, fd, fault);
        } else if (strstr(question, "\"status\"")) {
                snprintf(text, sizeof(text),
                        "{\"cluster_fsid\":\"%s\",\"osd_fsid\":\"%s\",\"whoami\":%u}",
                        fake->cluster, fake->fsid, fake->id);
                answer_put(fd, text, strlen(text));
        } else if (strstr(question, "\"version\"")) {
                snprintf(text, sizeof(text), "{\"version\":\"%s\"}", fake->release);
                answer_put(fd, text, strlen(text));
        } else if (strstr(question, "histogram")) {
                answer_put(fd, fake->histogram, strlen(fake->histogram));
        } else {
                size_t half = fake->pause_ms > 0 ? strlen(perf) / 2 : strlen(perf);

                snprintf(text, sizeof(text), "%.*s", (int)half, perf);
                answer_put(fd, half < strlen(perf) ? text : perf, strlen(perf));
                poll(NULL, 0, (int)fake->pause_ms);
                put(fd, perf + half, strlen(perf) - half);
        }
}

static void *fake_run(void *argument)
{
        struct fake *fake = argument;

        for (;;) {
                struct pollfd polls[] = {{.fd = fake->stop[0], .events = POLLIN},
                        {.fd = fake->listener, .events = POLLIN}};
                int fd;

                poll(polls, 2, -1);
                if (polls[0].revents)
                        return NULL;
                fd = accept(fake->listener, NULL, NULL);
                if (fd < 0)
                        continue;
                fake_answer(fake, fd);
                close(fd);
        }
}

static void fake_start_at(struct fake *fake, const char *path, unsigned id)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        *fake = (struct fake){.id = id,
                .fsid = "e536d82a-4354-4596-968a-0eb0d3e2a91b",
                .cluster = CLUSTER,
                .release = "16.2.15"};
        fake->perf = perf_first;
        fake->histogram = "{}";
        snprintf(fake->path, sizeof(fake->path), "%s", path);
        strcpy(address.sun_path, fake->path);
        fake->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(
                bind(fake->listener, (const struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(fake->listener, 5), 0);
        assert_int_equal(pipe(fake->stop), 0);
        assert_int_equal(pthread_create(&fake->thread, NULL, fake_run, fake), 0);
}

__attribute__((unused)) static void fake_start(
        struct fake *fake, const struct node *node, unsigned id)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/ceph-osd.%u.asok", node->folder, id);
        fake_start_at(fake, path, id);
}

__attribute__((unused)) static void fake_stop(struct fake *fake)
{
        assert_int_equal(write(fake->stop[1], "", 1), 1);
        pthread_join(fake->thread, NULL);
        close(fake->listener);
        close(fake->stop[0]);
        close(fake->stop[1]);
        unlink(fake->path);
}

static void note_line(void *userdata, int level, const char *text)
{
        struct node *node = userdata;
        size_t length = strlen(node->lines);

        (void)level;
        node->n_lines++;
        snprintf(node->lines + length, sizeof(node->lines) - length, "%s\n", text);
}

static void node_open(struct node *node, const char *folders)
{
        struct source_options options = {.root = ""};
        struct source_report report = {note_line, node};

        options.osd_folders = folders ? folders : node->folder;
        assert_int_equal(node->class->open(&options, &report, &node->source), 0);
}

static void node_start(struct node *node)
{
        *node = (struct node){.class = &source_osd};
        strcpy(node->folder, "/tmp/strata-test-XXXXXX");
        assert_non_null(mkdtemp(node->folder));
}

static void node_stop(struct node *node)
{
        char command[128];

        node->class->close(node->source);
        snprintf(command, sizeof(command), "rm -r '%s'", node->folder);
        assert_int_equal(system(command), 0);
}

static int collect(struct node *node)
{
        int r = node->class->collect(
                node->source, now_us() + node->class->deadline_us, &node->sample);

        return source_wait(node->class, node->source, r, &node->sample);
}

__attribute__((unused)) static void lines_forget(struct node *node)
{
        node->lines[0] = '\0';
        node->n_lines = 0;
}

__attribute__((unused)) static int64_t value(
        const struct node *node, const char *name, uint16_t metric)
{
        const struct sample *sample = &node->sample;

        for (uint32_t i = 0; i < sample->n_columns; i++) {
                uint32_t entity = sample->columns[i].entity;

                if (strcmp(sample->entities[entity].name, name) == 0 && sample->present[entity] &&
                        sample->columns[i].metric == metric)
                        return (int64_t)sample->values[i];
        }
        return -1;
}

/* Rows until the condition holds: pauses after failures are short. */
#define COLLECT_UNTIL(node, condition)                                                             \
        do {                                                                                       \
                uint64_t end_ = now_us() + 20000000;                                               \
                int r_;                                                                            \
                                                                                                   \
                do {                                                                               \
                        assert_true(now_us() < end_);                                              \
                        r_ = collect(node);                                                        \
                        poll(NULL, 0, 10);                                                         \
                } while (!(r_ == 0 && (condition)));                                               \
        } while (0)

/* A file of tests/fixtures/perf; never freed. */
__attribute__((unused)) static const char *fixture_load(const char *name)
{
        char path[4096], *text = calloc(1, 1 << 18);
        FILE *f;

        snprintf(path, sizeof(path), "%s/perf/%s", getenv("STRATA_FIXTURES"), name);
        f = fopen(path, "r");
        assert_non_null(f);
        assert_true(fread(text, 1, (1 << 18) - 1, f) > 0);
        fclose(f);
        return text;
}
