/*
 * Fake OSDs: each is a thread behind a real socket, which answers as it is told to. No test needs
 * Ceph; tests/integration has the real one.
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
        FAULT_ERROR, /* the text an OSD sends for an unknown command */
        FAULT_MAX_,
};

static const char *const reasons[FAULT_MAX_] = {
        [FAULT_GARBAGE] = "cannot be understood",
        [FAULT_HUGE_LENGTH] = "more than 8 MiB",
        [FAULT_EMPTY] = "empty answer",
        [FAULT_CLOSE] = "before its answer is complete",
        [FAULT_CUT] = "before its answer is complete",
        [FAULT_SILENT] = "in time",
        [FAULT_DRIP] = "in time",
        [FAULT_HALF_LENGTH] = "in time",
        [FAULT_ERROR] = "cannot be understood",
};

struct fake {
        char path[128];
        unsigned id;
        const char *fsid;
        _Atomic enum fault fault;
        _Atomic(const char *) perf;
        _Atomic unsigned questions;
        int listener, stop[2];
        pthread_t thread;
};

struct node {
        char folder[64];
        struct source *source;
        struct sample sample;
        char lines[8192];
        unsigned n_lines;
};

static const char perf_first[] =
        "{\"osd\":{\"op_w\":100,\"op_r\":5},\"bluefs\":{\"logged_bytes\":7}}";
static const char perf_second[] =
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
        if (fault != FAULT_NONE) {
                fault_put(fake, fd, fault);
        } else if (strstr(question, "\"status\"")) {
                snprintf(text, sizeof(text),
                        "{\"cluster_fsid\":\"%s\",\"osd_fsid\":\"%s\",\"whoami\":%u}", CLUSTER,
                        fake->fsid, fake->id);
                answer_put(fd, text, strlen(text));
        } else if (strstr(question, "\"version\"")) {
                answer_put(fd, "{\"version\":\"16.2.15\"}", 21);
        } else {
                answer_put(fd, perf, strlen(perf));
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

        *fake = (struct fake){.id = id, .fsid = "e536d82a-4354-4596-968a-0eb0d3e2a91b"};
        fake->perf = perf_first;
        snprintf(fake->path, sizeof(fake->path), "%s", path);
        strcpy(address.sun_path, fake->path);
        fake->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(
                bind(fake->listener, (const struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(fake->listener, 5), 0);
        assert_int_equal(pipe(fake->stop), 0);
        assert_int_equal(pthread_create(&fake->thread, NULL, fake_run, fake), 0);
}

static void fake_start(struct fake *fake, const struct node *node, unsigned id)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/ceph-osd.%u.asok", node->folder, id);
        fake_start_at(fake, path, id);
}

static void fake_stop(struct fake *fake)
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
        assert_int_equal(source_osd.open(&options, &report, &node->source), 0);
}

static void node_start(struct node *node)
{
        *node = (struct node){0};
        strcpy(node->folder, "/tmp/strata-test-XXXXXX");
        assert_non_null(mkdtemp(node->folder));
}

static void node_stop(struct node *node)
{
        char command[128];

        source_osd.close(node->source);
        snprintf(command, sizeof(command), "rm -r '%s'", node->folder);
        assert_int_equal(system(command), 0);
}

static int collect(struct node *node)
{
        return source_osd.collect(node->source, now_us() + source_osd.deadline_us, &node->sample);
}

static void lines_forget(struct node *node)
{
        node->lines[0] = '\0';
        node->n_lines = 0;
}

static int64_t value(const struct node *node, const char *name, uint16_t metric)
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

static void an_osd_is_known_by_what_it_says_itself(void **state)
{
        char fsid[ID_TEXT_MAX];
        struct fake fake;
        struct node node;
        uint64_t start;

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 3);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.n_entities, 1);
        assert_int_equal(node.sample.n_columns, 3);
        assert_int_equal(node.sample.failures, 0);
        assert_string_equal(node.sample.entities[0].name, "osd.3");
        assert_string_equal(node.sample.entities[0].identity, fake.fsid);
        assert_string_equal(id_format(&node.sample.entities[0].cluster, fsid), CLUSTER);
        assert_int_equal(host_process_read_start("", (uint32_t)getpid(), &start), 0);
        assert_true(node.sample.entities[0].instance == start);
        assert_int_equal(value(&node, "osd.3", METRIC_OSD_OP_W), 100);
        fake_stop(&fake);
        node_stop(&node);
}

static void who_it_is_is_asked_once_and_counters_each_time(void **state)
{
        struct fake fake;
        struct node node;
        uint64_t generation;

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 0);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(fake.questions, 3);
        generation = node.sample.generation;
        fake.perf = perf_second;
        assert_int_equal(collect(&node), 0);
        assert_int_equal(fake.questions, 4);
        assert_true(node.sample.generation == generation);
        assert_int_equal(value(&node, "osd.0", METRIC_OSD_OP_W), 101);
        fake_stop(&fake);
        node_stop(&node);
}

static void counters_that_were_reset_are_another_instance(void **state)
{
        struct fake fake;
        struct node node;
        uint64_t instance, generation;

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 0);
        fake.perf = perf_second;
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        instance = node.sample.entities[0].instance;
        generation = node.sample.generation;
        fake.perf = perf_first;
        assert_int_equal(collect(&node), 0);
        assert_true(node.sample.entities[0].instance != instance);
        assert_true(node.sample.generation != generation);
        fake_stop(&fake);
        node_stop(&node);
}

/* It fails once; what is found in its place later may have the same process id. */
static void a_new_socket_is_asked_who_it_is(void **state)
{
        struct fake fake;
        struct node node;

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 0);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        shutdown(fake.listener, SHUT_RD);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.failures, 1);
        fake_stop(&fake);
        fake_start(&fake, &node, 0);
        fake.fsid = "11111111-2222-3333-4444-555555555555";
        fake.perf = perf_second;
        COLLECT_UNTIL(&node, node.sample.n_entities == 1 && node.sample.present[0]);
        assert_string_equal(node.sample.entities[0].identity, fake.fsid);
        assert_int_equal(value(&node, "osd.0", METRIC_OSD_OP_W), 101);
        fake_stop(&fake);
        node_stop(&node);
}

/* Its socket has been replaced between two rows, so that no row saw a failure. */
static void a_new_process_is_asked_who_it_is(void **state)
{
        static const char other[] = "11111111-2222-3333-4444-555555555555";
        struct fake fake, child;
        struct node node;
        char path[128];
        int ready[2];
        pid_t pid;

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 0);
        snprintf(path, sizeof(path), "%s", fake.path);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        fake_stop(&fake);
        assert_int_equal(pipe(ready), 0);
        pid = fork();
        if (pid == 0) {
                fake_start_at(&child, path, 0);
                child.fsid = other;
                (void)!write(ready[1], "", 1);
                pause();
                _exit(0);
        }
        assert_int_equal(read(ready[0], path, 1), 1);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.n_entities, 1);
        assert_string_equal(node.sample.entities[0].identity, other);
        assert_int_equal(node.sample.failures, 0);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        close(ready[0]);
        close(ready[1]);
        node_stop(&node);
}

static void counters_that_a_release_lacks_have_no_column(void **state)
{
        struct fake fake;
        struct node node;

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 0);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.n_lines, 1);
        assert_non_null(
                strstr(node.lines, "osd.0: Ceph 16.2.15 has no counter for op_r_out_bytes"));
        assert_int_equal(node.sample.n_columns, 3);
        fake_stop(&fake);
        node_stop(&node);
}

/* Fault after fault, at first contact and in the middle of life. */
static void each_fault_costs_its_own_samples_and_one_line(void **state)
{
        (void)state;
        for (int first = 0; first < 2; first++) {
                for (enum fault fault = FAULT_GARBAGE; fault < FAULT_MAX_; fault++) {
                        struct fake good, bad;
                        struct node node;
                        uint64_t begin;

                        node_start(&node);
                        fake_start(&good, &node, 0);
                        fake_start(&bad, &node, 1);
                        if (first)
                                bad.fault = fault;
                        node_open(&node, NULL);
                        assert_int_equal(collect(&node), 0);
                        if (!first) {
                                assert_int_equal(node.sample.failures, 0);
                                bad.fault = fault;
                                lines_forget(&node);
                                begin = now_us();
                                assert_int_equal(collect(&node), 0);
                                assert_true(now_us() - begin < 3000000);
                                assert_int_equal(node.sample.n_entities, 2);
                        }
                        assert_int_equal(node.sample.failures, 1);
                        assert_int_equal(value(&node, "osd.0", METRIC_OSD_OP_W), 100);
                        assert_int_equal(value(&node, "osd.1", METRIC_OSD_OP_W), -1);
                        assert_non_null(strstr(node.lines, "osd.1: "));
                        assert_non_null(strstr(node.lines, bad.path));
                        assert_non_null(strstr(node.lines, reasons[fault]));
                        assert_int_equal(node.n_lines, first ? 2 : 1);
                        /* It is left alone for a while. */
                        begin = bad.questions;
                        assert_int_equal(collect(&node), 0);
                        assert_int_equal(node.sample.failures, 1);
                        assert_true(bad.questions == begin);
                        assert_int_equal(node.n_lines, first ? 2 : 1);
                        fake_stop(&good);
                        fake_stop(&bad);
                        node_stop(&node);
                }
        }
}

static void an_osd_that_answers_again_is_back_in_the_row(void **state)
{
        struct fake fake;
        struct node node;

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 0);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        fake.fault = FAULT_GARBAGE;
        lines_forget(&node);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.present[0], 0);
        fake.fault = FAULT_NONE;
        COLLECT_UNTIL(&node, node.sample.present[0]);
        assert_int_equal(node.n_lines, 2);
        assert_non_null(strstr(node.lines, "answers again"));
        fake_stop(&fake);
        node_stop(&node);
}

static void pauses_grow_while_an_osd_fails(void **state)
{
        struct fake fake;
        struct node node;
        uint64_t begin = now_us();

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 0);
        fake.fault = FAULT_CLOSE;
        node_open(&node, NULL);
        while (fake.questions < 3) {
                assert_int_equal(collect(&node), -EIO);
                assert_true(now_us() - begin < 20000000);
                poll(NULL, 0, 10);
        }
        /* One second, then two, each less the slack of a tenth. */
        assert_true(now_us() - begin > 2700000);
        assert_int_equal(node.n_lines, 1);
        fake_stop(&fake);
        node_stop(&node);
}

static void a_socket_that_vanishes_takes_its_entity_along(void **state)
{
        struct fake stays, goes;
        struct node node;

        (void)state;
        node_start(&node);
        fake_start(&stays, &node, 0);
        fake_start(&goes, &node, 1);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        fake_stop(&goes);
        lines_forget(&node);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.failures, 1);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.failures, 0);
        assert_int_equal(node.sample.n_entities, 1);
        assert_int_equal(node.n_lines, 1);
        assert_non_null(strstr(node.lines, "is gone"));
        fake_stop(&stays);
        node_stop(&node);
}

static void a_socket_without_a_process_is_told(void **state)
{
        struct fake fake;
        struct node node;

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 0);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        lines_forget(&node);
        shutdown(fake.listener, SHUT_RD);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.failures, 1);
        assert_non_null(strstr(node.lines, "has no process behind it"));
        fake_stop(&fake);
        node_stop(&node);
}

static void what_is_no_socket_is_never_opened(void **state)
{
        char path[128];
        struct node node;
        uint64_t begin = now_us();

        (void)state;
        node_start(&node);
        snprintf(path, sizeof(path), "%s/ceph-osd.1.asok", node.folder);
        assert_int_equal(mkfifo(path, 0600), 0);
        snprintf(path, sizeof(path), "%s/ceph-osd.2.asok", node.folder);
        fclose(fopen(path, "w"));
        snprintf(path, sizeof(path), "%s/ceph-osd.3.asok", node.folder);
        assert_int_equal(symlink("/dev/zero", path), 0);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), -EIO);
        assert_true(now_us() - begin < 3000000);
        assert_int_equal(node.n_lines, 3);
        assert_non_null(strstr(node.lines, "osd.1.asok is not a socket"));
        assert_non_null(strstr(node.lines, "osd.2.asok is not a socket"));
        assert_non_null(strstr(node.lines, "osd.3.asok is not a socket"));
        node_stop(&node);
}

static void sockets_of_named_clusters_and_containers_are_found(void **state)
{
        struct fake named, contained;
        struct node node;
        char path[128], folders[256];

        (void)state;
        node_start(&node);
        snprintf(path, sizeof(path), "%s/backup-osd.7.asok", node.folder);
        fake_start_at(&named, path, 7);
        snprintf(path, sizeof(path), "%s/%s", node.folder, CLUSTER);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof(path), "%s/%s/ceph-osd.12.asok", node.folder, CLUSTER);
        fake_start_at(&contained, path, 12);
        /* One folder named twice, and one that is not there. */
        snprintf(folders, sizeof(folders), "%s:/nonexistent::%s/", node.folder, node.folder);
        node_open(&node, folders);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.n_entities, 2);
        assert_string_equal(node.sample.entities[0].name, "osd.7");
        assert_string_equal(node.sample.entities[1].name, "osd.12");
        assert_int_equal(node.sample.failures, 0);
        fake_stop(&named);
        fake_stop(&contained);
        node_stop(&node);
}

static void names_that_are_no_osd_are_passed_over(void **state)
{
        static const char *const names[] = {"ceph-mon.a.asok", "ceph-osd.x.asok",
                "ceph-osd.1.asok.old", "ceph-osd..asok", "xosd.1.asok", "ceph-osd.99999999999.asok",
                "ceph-osd.-1.asok"};
        char path[128];
        struct node node;

        (void)state;
        node_start(&node);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                snprintf(path, sizeof(path), "%s/%s", node.folder, names[i]);
                fclose(fopen(path, "w"));
        }
        node_open(&node, NULL);
        assert_int_equal(collect(&node), -EAGAIN);
        assert_int_equal(node.n_lines, 0);
        node_stop(&node);
}

static void a_node_without_osds_is_no_failure(void **state)
{
        struct node node;

        (void)state;
        node_start(&node);
        node_open(&node, "/nonexistent");
        assert_int_equal(collect(&node), -EAGAIN);
        assert_int_equal(node.n_lines, 0);
        node_stop(&node);
}

static void forty_silent_osds_cost_no_more_time_than_one(void **state)
{
        static struct fake fakes[40];
        struct node node;
        uint64_t begin;

        (void)state;
        node_start(&node);
        for (unsigned i = 0; i < 40; i++) {
                fake_start(&fakes[i], &node, i);
                fakes[i].fault = i == 0 ? FAULT_NONE : FAULT_SILENT;
        }
        node_open(&node, NULL);
        begin = now_us();
        assert_int_equal(collect(&node), 0);
        assert_true(now_us() - begin < 3000000);
        assert_int_equal(node.sample.failures, 39);
        assert_int_equal(value(&node, "osd.0", METRIC_OSD_OP_W), 100);
        for (unsigned i = 0; i < 40; i++)
                fake_stop(&fakes[i]);
        node_stop(&node);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_osd_is_known_by_what_it_says_itself),
                cmocka_unit_test(who_it_is_is_asked_once_and_counters_each_time),
                cmocka_unit_test(counters_that_were_reset_are_another_instance),
                cmocka_unit_test(a_new_socket_is_asked_who_it_is),
                cmocka_unit_test(a_new_process_is_asked_who_it_is),
                cmocka_unit_test(counters_that_a_release_lacks_have_no_column),
                cmocka_unit_test(each_fault_costs_its_own_samples_and_one_line),
                cmocka_unit_test(an_osd_that_answers_again_is_back_in_the_row),
                cmocka_unit_test(pauses_grow_while_an_osd_fails),
                cmocka_unit_test(a_socket_that_vanishes_takes_its_entity_along),
                cmocka_unit_test(a_socket_without_a_process_is_told),
                cmocka_unit_test(what_is_no_socket_is_never_opened),
                cmocka_unit_test(sockets_of_named_clusters_and_containers_are_found),
                cmocka_unit_test(names_that_are_no_osd_are_passed_over),
                cmocka_unit_test(a_node_without_osds_is_no_failure),
                cmocka_unit_test(forty_silent_osds_cost_no_more_time_than_one),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
