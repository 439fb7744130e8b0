#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node-fixture.h"

/* What a source told, and a source that is told of. */
struct told {
        unsigned lines;
        char last[512];
};

static void line_note(void *userdata, int level, const char *text)
{
        struct told *told = userdata;

        (void)level;
        told->lines++;
        snprintf(told->last, sizeof(told->last), "%s", text);
}

#define STAT_REST "\ncpu0 1 2 3 4 5 6 7 8\nctxt 5\n"
#define STAT_GOOD "cpu  100 20 30 400 50 6 7 80" STAT_REST
#define MEMINFO_GOOD "MemTotal: 24 kB\nMemAvailable: 12 kB\n"
#define PRESSURE_GOOD "some avg10=1.0 total=5\nfull avg10=1.0 total=4\n"
#define NIC_GOOD "eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
#define PROCESS(user, threads, pages)                                                              \
        "5845 (ceph-osd) S 1 1 1 0 -1 1 1 0 1 0 " user " 22 0 0 20 0 " threads " 0 33881 1 " pages \
        " 1 1\n"

/* A file spoilt: what it costs (0 to end), which word the one line has, and what is not touched. */
static const struct spoilt {
        const char *name, *file, *good, *bad;
        const char *entity;
        uint16_t lost[8], kept;
        unsigned failures;
        const char *line;
} spoilt[] = {
        {"a field that is missing", "stat", STAT_GOOD, "cpu  100 20 30 400 50 6 7" STAT_REST,
                "host", {METRIC_HOST_CPU_STEAL}, METRIC_HOST_CPU_IOWAIT, 1, "cpu_steal"},
        {"a field that is negative", "stat", STAT_GOOD, "cpu  100 20 30 400 -50 6 7 80" STAT_REST,
                "host", {METRIC_HOST_CPU_IOWAIT}, METRIC_HOST_CPU_STEAL, 1, "cpu_iowait"},
        {"a field beyond 64 bits", "stat", STAT_GOOD,
                "cpu  100 20 30 18446744073709551616 50 6 7 80" STAT_REST, "host",
                {METRIC_HOST_CPU_IDLE}, METRIC_HOST_CPU_SYSTEM, 1, "cpu_idle"},
        {"a sum beyond 64 bits", "stat", STAT_GOOD,
                "cpu  18446744073709551615 20 30 400 50 6 7 80" STAT_REST, "host",
                {METRIC_HOST_CPU_USER}, METRIC_HOST_CPU_IDLE, 1, "cpu_user"},
        {"a text cut within a number", "stat", STAT_GOOD, "cpu  100 20 30 400 5", "host",
                {METRIC_HOST_CPU_SYSTEM, METRIC_HOST_CPU_IOWAIT, METRIC_HOST_CPU_STEAL,
                        METRIC_HOST_CPU_COUNT},
                METRIC_HOST_CPU_IDLE, 4, "cpu_count"},
        {"a text cut among the CPUs", "stat", STAT_GOOD, "cpu  1 2 3 4 5 6 7 8\ncpu0 1 2 3\n",
                "host", {METRIC_HOST_CPU_COUNT}, METRIC_HOST_CPU_STEAL, 1, "cpu_count"},
        {"an empty text", "stat", STAT_GOOD, "", "host",
                {METRIC_HOST_CPU_USER, METRIC_HOST_CPU_SYSTEM, METRIC_HOST_CPU_IDLE,
                        METRIC_HOST_CPU_IOWAIT, METRIC_HOST_CPU_STEAL, METRIC_HOST_CPU_COUNT},
                METRIC_HOST_MEMORY_TOTAL, 6, "cpu_user"},
        {"a line that is missing", "meminfo", MEMINFO_GOOD, "MemTotal: 24 kB\n", "host",
                {METRIC_HOST_MEMORY_AVAILABLE}, METRIC_HOST_MEMORY_TOTAL, 1, "memory_available"},
        {"a word for a number", "meminfo", MEMINFO_GOOD, "MemTotal: x kB\nMemAvailable: 12 kB\n",
                "host", {METRIC_HOST_MEMORY_TOTAL}, METRIC_HOST_MEMORY_AVAILABLE, 1,
                "memory_total"},
        {"a key that is missing", "pressure/io", PRESSURE_GOOD,
                "some avg10=1.0\nfull avg10=1.0 total=4\n", "host", {METRIC_HOST_PRESSURE_IO_SOME},
                METRIC_HOST_PRESSURE_IO_FULL, 1, "pressure_io_some"},
        {"a total that is cut", "pressure/memory", PRESSURE_GOOD,
                "some avg10=1.0 total=5\nfull avg10=1.0 total=4", "host",
                {METRIC_HOST_PRESSURE_MEMORY_FULL}, METRIC_HOST_PRESSURE_MEMORY_SOME, 1,
                "pressure_memory_full"},
        {"a negative count of an interface", "net/dev", NIC_GOOD,
                "eth0: 1 2 3 -4 5 6 7 8 9 10 11 12 13 14 15 16\n", "eth0", {METRIC_NIC_RX_DROPPED},
                METRIC_NIC_TX_DROPPED, 1, "rx_dropped"},
        {"a count of an interface beyond 64 bits", "net/dev", NIC_GOOD,
                "eth0: 1 2 3 4 5 6 7 8 99999999999999999999 10 11 12 13 14 15 16\n", "eth0",
                {METRIC_NIC_TX_BYTES}, METRIC_NIC_RX_BYTES, 1, "tx_bytes"},
        {"an interface with fewer fields", "net/dev", NIC_GOOD, "eth0: 1 2 3 4 5 6 7 8 9 10\n",
                "eth0", {METRIC_NIC_TX_DROPPED}, METRIC_NIC_TX_PACKETS, 1, "tx_dropped"},
        {"interfaces cut within a line", "net/dev", NIC_GOOD NIC_GOOD, NIC_GOOD "et", "eth0", {0},
                METRIC_NIC_TX_DROPPED, 1, "/proc/net/dev"},
        {"a negative time of a process", "5845/stat", PROCESS("21", "59", "7"),
                PROCESS("-21", "59", "7"), "osd.0", {METRIC_PROCESS_CPU_USER}, METRIC_PROCESS_RSS,
                1, "process_cpu_user"},
        {"a size of a process beyond 64 bits", "5845/stat", PROCESS("21", "59", "7"),
                PROCESS("21", "59", "18446744073709551615"), "osd.0", {METRIC_PROCESS_RSS},
                METRIC_PROCESS_THREADS, 1, "process_rss"},
        {"a process cut within a number", "5845/stat", PROCESS("21", "59", "7"),
                "5845 (ceph-osd) S 1 1 1 0 -1 1 1 0 1 0 21 22 0 0 20 0 5", "osd.0",
                {METRIC_PROCESS_THREADS, METRIC_PROCESS_RSS}, METRIC_PROCESS_CPU_SYSTEM, 2,
                "process_threads"},
};

static void spoilt_try(const char *root, const struct spoilt *spoilt_)
{
        struct source_options options = {.root = root};
        struct told told = {0};
        struct source_report report = {.line = line_note, .userdata = &told};
        struct source *source;
        struct sample sample;
        uint32_t columns;
        uint64_t instance;
        char file[64];

        snprintf(file, sizeof(file), "proc/%s", spoilt_->file);
        file_write(root, file, spoilt_->good);
        assert_int_equal(source_host.open(&options, &report, &source), 0);
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        assert_int_equal(sample.failures, 0);
        columns = sample.n_columns;
        instance = entity(&sample, spoilt_->entity)->instance;
        file_write(root, file, spoilt_->bad);
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
                assert_int_equal(sample.failures, spoilt_->failures);
        }
        for (size_t i = 0; spoilt_->lost[i]; i++) {
                assert_int_equal(value(&sample, spoilt_->entity, spoilt_->lost[i]), -1);
                columns--;
        }
        if (spoilt_->lost[0])
                assert_int_equal(sample.n_columns, columns);
        assert_true(value(&sample, spoilt_->entity, spoilt_->kept) >= 0);
        assert_int_equal(entity(&sample, spoilt_->entity)->instance, instance);
        assert_int_equal(told.lines, 1);
        assert_non_null(strstr(told.last, spoilt_->line));
        file_write(root, file, spoilt_->good);
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        assert_int_equal(sample.failures, 0);
        assert_int_equal(told.lines, 2);
        source_host.close(source);
}

static void what_is_spoilt_costs_its_own_value_a_count_and_a_line(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(spoilt) / sizeof(spoilt[0]); i++) {
                char root[64];

                print_message("# %s\n", spoilt[i].name);
                node_copy(root);
                spoilt_try(root, &spoilt[i]);
                node_remove(root);
        }
}

static void lines_that_are_no_interface_are_left_out(void **state)
{
        char root[64];
        struct source *source;
        struct sample sample;

        (void)state;
        node_copy(root);
        file_write(
                root, "proc/net/dev", ":::\n a/b: 1 2 3\n\n:\nan_interface_of_17: 1\nInter-| x\n");
        source = source_of(root);
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        for (uint32_t i = 1; i < sample.n_entities; i++)
                assert_int_equal(strncmp(sample.entities[i].name, "osd.", 4), 0);
        source_host.close(source);
        node_remove(root);
}

static void a_process_without_a_start_is_known_when_it_has_one(void **state)
{
        char root[64];
        struct source *source;
        struct sample sample;
        uint64_t generation;

        (void)state;
        node_copy(root);
        file_write(root, "proc/5845/stat", "5845 (ceph-osd) S 1 1 1 0 -1 1 1 0 1 0 21 22 0 0 20 ");
        source = source_of(root);
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        assert_int_equal(entity(&sample, "osd.0")->instance, 0);
        generation = sample.generation;
        file_write(root, "proc/5845/stat", PROCESS("21", "59", "7"));
        assert_int_equal(source_host.collect(source, UINT64_MAX, &sample), 0);
        assert_int_equal(entity(&sample, "osd.0")->instance, 33881);
        assert_true(sample.generation > generation);
        source_host.close(source);
        node_remove(root);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_spoilt_costs_its_own_value_a_count_and_a_line),
                cmocka_unit_test(lines_that_are_no_interface_are_left_out),
                cmocka_unit_test(a_process_without_a_start_is_known_when_it_has_one),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
