#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agentd/host-process.h"
#include "agentd/host-sched.h"
#include "node-fixture.h"

static void the_captured_node_is_read(void **state)
{
        char root[64];
        struct source *source;
        struct sample sample;

        (void)state;
        node_copy(root);
        file_write(root, "proc/stat",
                "cpu  100 20 30 400 50 6 7 80 9 0\ncpu0 50 10 15 200 25 3 3 40 4 0\n"
                "cpu1 50 10 15 200 25 3 4 40 5 0\nintr 1 2 3\nctxt 5\n");
        file_write(root, "proc/pressure/io",
                "some avg10=31.30 avg60=19.55 avg300=6.87 total=31397752\n"
                "full avg10=1.64 avg60=1.71 avg300=0.75 total=7829180\n");
        file_write(root, "proc/meminfo",
                "MemTotal:       24683620 kB\nMemFree:  1 kB\nMemAvailable:   23828088 kB\n");
        file_write(root, "proc/net/dev",
                "Inter-|   Receive | Transmit\n face |bytes packets\n"
                "    lo: 93952065   45411    0    0    0     0          0         0 93952065   "
                "45411    0    0    0     0       0          0\n"
                "  eth0:238065206 6668 1 2 3 4 5 6 226593 3068 7 8 9 10 11 12\n");
        file_write(root, "sys/class/net/eth0/speed", "25000\n");
        source = source_of(root);
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        assert_int_equal(value(&sample, "host", METRIC_HOST_CPU_USER), 120);
        assert_int_equal(value(&sample, "host", METRIC_HOST_CPU_SYSTEM), 43);
        assert_int_equal(value(&sample, "host", METRIC_HOST_CPU_IDLE), 400);
        assert_int_equal(value(&sample, "host", METRIC_HOST_CPU_IOWAIT), 50);
        assert_int_equal(value(&sample, "host", METRIC_HOST_CPU_STEAL), 80);
        assert_int_equal(value(&sample, "host", METRIC_HOST_CPU_COUNT), 2);
        assert_int_equal(value(&sample, "host", METRIC_HOST_MEMORY_TOTAL), 24683620);
        assert_int_equal(value(&sample, "host", METRIC_HOST_MEMORY_AVAILABLE), 23828088);
        assert_int_equal(value(&sample, "host", METRIC_HOST_PRESSURE_IO_SOME), 31397752);
        assert_int_equal(value(&sample, "host", METRIC_HOST_PRESSURE_IO_FULL), 7829180);
        assert_null(entity(&sample, "lo"));
        assert_int_equal(value(&sample, "eth0", METRIC_NIC_RX_BYTES), 238065206);
        assert_int_equal(value(&sample, "eth0", METRIC_NIC_RX_PACKETS), 6668);
        assert_int_equal(value(&sample, "eth0", METRIC_NIC_RX_DROPPED), 2);
        assert_int_equal(value(&sample, "eth0", METRIC_NIC_TX_BYTES), 226593);
        assert_int_equal(value(&sample, "eth0", METRIC_NIC_TX_PACKETS), 3068);
        assert_int_equal(value(&sample, "eth0", METRIC_NIC_TX_DROPPED), 8);
        assert_int_equal(value(&sample, "eth0", METRIC_NIC_SPEED), 25000);
        source_host.close(source);
        node_remove(root);
}

static void osd_processes_are_known_by_their_id(void **state)
{
        char root[64];
        struct source *source;
        struct sample sample;

        (void)state;
        node_copy(root);
        file_write(root, "proc/5845/stat",
                "5845 (ceph) osd) S 1 5845 5845 0 -1 4194368 397930 0 16 0 2847 2364 0 0 20 0 59 0 "
                "33881 2189750272 103814 18446744073709551615 1 1 1 0 0 0\n");
        source = source_of(root);
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        assert_int_equal(value(&sample, "osd.0", METRIC_PROCESS_CPU_USER), 2847);
        assert_int_equal(value(&sample, "osd.0", METRIC_PROCESS_CPU_SYSTEM), 2364);
        assert_int_equal(value(&sample, "osd.0", METRIC_PROCESS_THREADS), 59);
        assert_int_equal(value(&sample, "osd.0", METRIC_PROCESS_RSS),
                103814 * (sysconf(_SC_PAGESIZE) / 1024));
        assert_int_equal(entity(&sample, "osd.0")->instance, 33881);
        /* The machine that it was captured on is not this one. */
        assert_int_equal(value(&sample, "osd.0", METRIC_PROCESS_CPU_TIME), -1);
        assert_non_null(entity(&sample, "osd.1"));
        source_host.close(source);
        node_remove(root);
}

static void thread_write(
        const char *root, const char *thread, const char *name, const char *schedstat)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/proc/5845/task", root);
        mkdir(path, 0755);
        snprintf(path, sizeof(path), "%s/proc/5845/task/%s", root, thread);
        mkdir(path, 0755);
        snprintf(path, sizeof(path), "proc/5845/task/%s/comm", thread);
        file_write(root, path, name);
        snprintf(path, sizeof(path), "proc/5845/task/%s/schedstat", thread);
        file_write(root, path, schedstat);
}

static void wait_for_a_cpu_try(uint32_t files)
{
        const uint64_t later_us = HOST_SCHED_INTERVAL_US;
        struct host_sched sched = {0};
        uint32_t left = files;
        char root[64], path[128];

        node_copy(root);
        thread_write(root, "5845", "ceph-osd\n", "5 5 5\n");
        thread_write(root, "5846", "safe_timer\n", "5 90000 5\n");
        thread_write(root, "5849", "msgr-worker-0\n", "100 7 3\n");
        thread_write(root, "5850", "tp_osd_tp\n", "1000 20 3\n");
        host_sched_read(root, 5845, 1, &left, &sched);
        assert_int_equal(left, files > 2 ? files - 2 : 0);
        /* Not all are read a whole interval later, for they take turns. */
        assert_true(sched.read_us - 1 > UINT64_MAX - later_us);
        sched.read_us = 1;
        assert_int_equal(sched.run_ns, 1100);
        assert_int_equal(sched.wait_ns, 27);
        thread_write(root, "5850", "tp_osd_tp\n", "1500 320 3\n");
        host_sched_read(root, 5845, later_us, &left, &sched);
        assert_int_equal(sched.run_ns, 1100); /* read a moment ago */
        host_sched_read(root, 5845, later_us + 1, &left, &sched);
        assert_int_equal(sched.run_ns, 1600);
        assert_int_equal(sched.wait_ns, 327);
        /* As of a thread that ended, nothing can be read of it, open or not. */
        thread_write(root, "5850", "tp_osd_tp\n", "");
        snprintf(path, sizeof(path), "rm -r %s/proc/5845/task/5850", root);
        assert_int_equal(system(path), 0);
        host_sched_read(root, 5845, 2 * later_us + 1, &left, &sched);
        assert_int_equal(sched.wait_ns, 327);
        thread_write(root, "5849", "msgr-worker-0\n", "150 17 4\n");
        host_sched_read(root, 5845, 3 * later_us + 1, &left, &sched);
        assert_int_equal(sched.n_threads, 1);
        assert_int_equal(left, files > 1 ? files - 1 : 0);
        assert_int_equal(sched.run_ns, 1650);
        assert_int_equal(sched.wait_ns, 337);
        host_sched_done(&sched, &left);
        assert_int_equal(left, files);
        assert_int_equal(sched.n_threads, 0);
        node_remove(root);
}

static void the_wait_for_a_cpu_is_summed_over_the_threads_of_operations_and_outlives_them(
        void **state)
{
        (void)state;
        wait_for_a_cpu_try(HOST_SCHED_FILES_MAX);
        wait_for_a_cpu_try(1);
        wait_for_a_cpu_try(0);
}

static void *thread_of_operations(void *end)
{
        char byte;

        prctl(PR_SET_NAME, "tp_osd_tp");
        assert_int_equal(write(((int *)end)[1], "", 1), 1);
        assert_int_equal(read(((int *)end)[0], &byte, 1), 1);
        return NULL;
}

/* Of the kernel's own files. */
static void a_thread_that_ends_is_noticed(void **state)
{
        struct host_sched sched = {0};
        uint32_t left = HOST_SCHED_FILES_MAX;
        uint64_t now_us = 1, run_ns;
        pthread_t thread;
        int ends[2];
        char byte;

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        assert_int_equal(
                pthread_create(&thread, NULL, thread_of_operations, (int[]){ends[0], ends[0]}), 0);
        assert_int_equal(read(ends[1], &byte, 1), 1);
        host_sched_read("", (uint32_t)getpid(), now_us, &left, &sched);
        assert_int_equal(sched.n_threads, 1);
        assert_int_equal(left, HOST_SCHED_FILES_MAX - 1);
        run_ns = sched.run_ns;
        assert_true(run_ns > 0);
        assert_int_equal(write(ends[1], "", 1), 1);
        assert_int_equal(pthread_join(thread, NULL), 0);
        for (unsigned i = 0; i < 2; i++) {
                now_us += 2 * HOST_SCHED_INTERVAL_US;
                host_sched_read("", (uint32_t)getpid(), now_us, &left, &sched);
        }
        assert_int_equal(sched.n_threads, 0);
        assert_int_equal(left, HOST_SCHED_FILES_MAX);
        assert_int_equal(sched.run_ns, run_ns);
        close(ends[0]);
        close(ends[1]);
}

static void the_id_stands_in_several_forms_of_command_lines(void **state)
{
        static const struct {
                const char *command;
                size_t size;
                const char *name, *identity;
        } cases[] = {
#define CASE(command, name, identity) {command, sizeof(command), name, identity}
                CASE("ceph-osd\0-i\0"
                     "7",
                        "osd.7", ""),
                CASE("ceph-osd\0-i7", "osd.7", ""),
                CASE("ceph-osd\0--id=12\0-f", "osd.12", ""),
                CASE("/usr/bin/ceph-osd\0-n\0osd.3\0-f\0--setuser\0ceph", "osd.3", ""),
                CASE("ceph-osd\0--name=osd.4\0--cluster\0other", "osd.4", "other"),
                CASE("ceph-osd\0--foreground\0--id\0"
                     "5\0--fsid\0abc",
                        "osd.5", "abc"),
                CASE("ceph-osd\0--help", NULL, NULL),
                CASE("ceph-osd\0-i", NULL, NULL),
                CASE("ceph-osd\0--id\0../1", NULL, NULL),
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char root[64], path[128];
                struct source *source;
                struct sample sample;
                FILE *f;

                node_copy(root);
                snprintf(path, sizeof(path), "%s/proc/5845/cmdline", root);
                f = fopen(path, "w");
                fwrite(cases[i].command, 1, cases[i].size, f);
                fclose(f);
                file_write(root, "proc/5846/comm", "bash\n");
                source = source_of(root);
                assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
                if (cases[i].name) {
                        assert_non_null(entity(&sample, cases[i].name));
                        assert_string_equal(
                                entity(&sample, cases[i].name)->identity, cases[i].identity);
                } else {
                        for (uint32_t j = 0; j < sample.n_entities; j++)
                                assert_null(strstr(sample.entities[j].name, "osd."));
                }
                source_host.close(source);
                node_remove(root);
        }
}

static void two_osds_of_one_name_are_told_apart(void **state)
{
        char root[64];
        struct source *source;
        struct sample sample;
        uint32_t last;

        (void)state;
        node_copy(root);
        file_write(root, "proc/5845/cmdline", "-i1");
        source = source_of(root);
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        last = sample.n_entities - 1;
        assert_string_equal(sample.entities[last].name, "osd.1");
        assert_string_equal(sample.entities[last - 1].name, "osd.1");
        assert_string_not_equal(sample.entities[last].identity, sample.entities[last - 1].identity);
        source_host.close(source);
        node_remove(root);
}

static void a_kernel_without_pressure_has_no_such_columns(void **state)
{
        char root[64], command[128];
        struct source *source;
        struct sample sample;

        (void)state;
        node_copy(root);
        snprintf(command, sizeof(command), "rm -r '%s/proc/pressure'", root);
        assert_int_equal(system(command), 0);
        source = source_of(root);
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        assert_int_equal(value(&sample, "host", METRIC_HOST_PRESSURE_CPU_SOME), -1);
        assert_int_equal(value(&sample, "host", METRIC_HOST_PRESSURE_MEMORY_FULL), -1);
        assert_true(value(&sample, "host", METRIC_HOST_CPU_USER) > 0);
        source_host.close(source);
        node_remove(root);
}

static void an_interface_that_comes_makes_a_new_layout(void **state)
{
        static const char line[] = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        char root[64], text[512];
        struct source *source;
        struct sample sample;
        uint64_t generation;

        (void)state;
        node_copy(root);
        snprintf(text, sizeof(text), "eth0:%s", line);
        file_write(root, "proc/net/dev", text);
        source = source_of(root);
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        generation = sample.generation;
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        assert_int_equal(sample.generation, generation);
        snprintf(text, sizeof(text), "eth0:%seth1:%s", line, line);
        file_write(root, "proc/net/dev", text);
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        assert_true(sample.generation > generation);
        assert_int_equal(value(&sample, "eth1", METRIC_NIC_TX_BYTES), 9);
        source_host.close(source);
        node_remove(root);
}

static void an_interface_that_counts_from_zero_is_another_instance(void **state)
{
        char root[64];
        struct source *source;
        struct sample sample;
        uint64_t instance;

        (void)state;
        node_copy(root);
        file_write(root, "proc/net/dev", "eth0: 5 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
        source = source_of(root);
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        instance = entity(&sample, "eth0")->instance;
        file_write(root, "proc/net/dev", "eth0: 4 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        assert_true(entity(&sample, "eth0")->instance != instance);
        source_host.close(source);
        node_remove(root);
}

/* A real process: a copy of cat that is named like an OSD. */
static pid_t osd_start(char *folder)
{
        char program[64], command[256], byte;
        int ready[2];
        pid_t pid;

        assert_non_null(mkdtemp(folder));
        snprintf(program, sizeof(program), "%s/ceph-osd", folder);
        snprintf(command, sizeof(command), "cp \"$(command -v cat)\" '%s'", program);
        assert_int_equal(system(command), 0);
        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                int input[2];

                if (pipe(input) == 0 && dup2(input[0], STDIN_FILENO) >= 0)
                        execl(program, "ceph-osd", "-", "-n", "osd.4000000000", NULL);
                _exit(127);
        }
        close(ready[1]);
        /* The pipe closes with exec. */
        assert_int_equal(read(ready[0], &byte, 1), 0);
        close(ready[0]);
        return pid;
}

static void a_process_that_ends_is_gone_in_the_next_row(void **state)
{
        char folder[] = "/tmp/strata-test-XXXXXX";
        pid_t pid = osd_start(folder);
        struct source *source;
        struct sample sample;
        siginfo_t ended;
        uint64_t generation;

        (void)state;
        source = source_of("");
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        assert_non_null(entity(&sample, "osd.4000000000"));
        generation = sample.generation;
        kill(pid, SIGKILL);
        /* That nobody has asked yet how it ended makes no difference. */
        assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        assert_null(entity(&sample, "osd.4000000000"));
        assert_true(sample.generation > generation);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        source_host.close(source);
        node_remove(folder);
}

static void the_cpu_clock_of_a_process_is_in_each_row(void **state)
{
        char folder[] = "/tmp/strata-test-XXXXXX";
        pid_t pid = osd_start(folder);
        struct source *source;
        struct timespec time;
        struct sample sample;
        clockid_t clock;
        int64_t now;

        (void)state;
        assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
        source = source_of("");
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
                assert_int_equal(clock_gettime(clock, &time), 0);
                now = time.tv_sec * 1000000000 + time.tv_nsec;
                assert_true(value(&sample, "osd.4000000000", METRIC_PROCESS_CPU_TIME) > 0);
                assert_true(value(&sample, "osd.4000000000", METRIC_PROCESS_CPU_TIME) <= now);
        }
        /* It waits for its input, so that its clock stands still. */
        usleep(50000);
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        assert_int_equal(clock_gettime(clock, &time), 0);
        now = time.tv_sec * 1000000000 + time.tv_nsec;
        assert_int_equal(value(&sample, "osd.4000000000", METRIC_PROCESS_CPU_TIME), now);
        source_host.close(source);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        node_remove(folder);
}

static void what_has_no_clock_is_read_each_five_seconds(void **state)
{
        char folder[] = "/tmp/strata-test-XXXXXX";
        pid_t pid = osd_start(folder);
        uint64_t now_us = 10 * HOST_PROCESS_INTERVAL_US, read_us;
        struct host_processes *processes;
        struct host_process *process;
        bool changed;
        size_t n, i;

        (void)state;
        assert_int_equal(host_processes_new("", &processes), 0);
        assert_int_equal(host_processes_read(processes, now_us, &process, &n, &changed), 0);
        for (i = 0; i < n && process[i].pid != (uint32_t)pid; i++)
                ;
        assert_true(i < n);
        assert_true(process[i].values[3] == 1);
        /* When it is found; they take turns from then on. */
        read_us = process[i].read_us;
        assert_true(read_us <= now_us && now_us - read_us < HOST_PROCESS_INTERVAL_US);
        process[i].values[3] = 0;
        now_us = read_us + HOST_PROCESS_INTERVAL_US / 2;
        assert_int_equal(host_processes_read(processes, now_us, &process, &n, &changed), 0);
        assert_true(process[i].values[3] == 0 && process[i].read_us == read_us);
        now_us = read_us + HOST_PROCESS_INTERVAL_US;
        assert_int_equal(host_processes_read(processes, now_us, &process, &n, &changed), 0);
        assert_true(process[i].values[3] == 1 && process[i].read_us == now_us);
        host_processes_free(processes);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        node_remove(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_captured_node_is_read),
                cmocka_unit_test(osd_processes_are_known_by_their_id),
                cmocka_unit_test(
                        the_wait_for_a_cpu_is_summed_over_the_threads_of_operations_and_outlives_them),
                cmocka_unit_test(a_thread_that_ends_is_noticed),
                cmocka_unit_test(the_id_stands_in_several_forms_of_command_lines),
                cmocka_unit_test(two_osds_of_one_name_are_told_apart),
                cmocka_unit_test(a_kernel_without_pressure_has_no_such_columns),
                cmocka_unit_test(an_interface_that_comes_makes_a_new_layout),
                cmocka_unit_test(an_interface_that_counts_from_zero_is_another_instance),
                cmocka_unit_test(a_process_that_ends_is_gone_in_the_next_row),
                cmocka_unit_test(the_cpu_clock_of_a_process_is_in_each_row),
                cmocka_unit_test(what_has_no_clock_is_read_each_five_seconds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
