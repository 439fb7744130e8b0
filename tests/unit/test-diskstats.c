#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agentd/source.h"

/* What sysfs alone tells is looked at every ten seconds: a test puts the clocks forward. */
static time_t clock_ahead_s;

int clock_gettime(clockid_t clock, struct timespec *ret)
{
        int r = (int)syscall(SYS_clock_gettime, clock, ret);

        ret->tv_sec += clock_ahead_s;
        return r;
}

/* One machine: its tree, its source, what it reported. */
struct machine {
        char root[256];
        bool temporary;
        struct source *source;
        struct sample sample;
        char lines[4096];
        unsigned n_lines;
};

static void note_line(void *userdata, int level, const char *text)
{
        struct machine *machine = userdata;

        (void)level;
        machine->n_lines++;
        snprintf(machine->lines, sizeof(machine->lines), "%s", text);
}

static void machine_open(struct machine *machine)
{
        struct source_options options = {.root = machine->root};
        struct source_report report = {note_line, machine};

        assert_int_equal(source_diskstats.open(&options, &report, &machine->source), 0);
}

static void machine_of_fixture(struct machine *machine, const char *tree)
{
        *machine = (struct machine){0};
        snprintf(machine->root, sizeof(machine->root), "%s/%s", getenv("STRATA_FIXTURES"), tree);
        machine_open(machine);
}

static void text_write(struct machine *machine, const char *text)
{
        char path[512];
        FILE *f;

        snprintf(path, sizeof(path), "%s/proc/diskstats", machine->root);
        f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fwrite(text, 1, strlen(text), f) == strlen(text));
        assert_int_equal(fclose(f), 0);
}

static void attribute_write(
        struct machine *machine, const char *name, const char *file, const char *text)
{
        char path[512];
        FILE *f;

        snprintf(path, sizeof(path), "%s/sys/class/block/%s", machine->root, name);
        mkdir(path, 0700);
        snprintf(path, sizeof(path), "%s/sys/class/block/%s/%s", machine->root, name, file);
        f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        assert_int_equal(fclose(f), 0);
}

static void machine_of_text(struct machine *machine, const char *text)
{
        static const char *const folders[] = {"/proc", "/sys", "/sys/class", "/sys/class/block"};
        char path[512];

        *machine = (struct machine){.temporary = true};
        strcpy(machine->root, "/tmp/strata-test-XXXXXX");
        assert_non_null(mkdtemp(machine->root));
        for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
                snprintf(path, sizeof(path), "%s%s", machine->root, folders[i]);
                assert_int_equal(mkdir(path, 0700), 0);
        }
        text_write(machine, text);
        machine_open(machine);
}

static void machine_done(struct machine *machine)
{
        char command[512];

        source_diskstats.close(machine->source);
        if (!machine->temporary)
                return;
        snprintf(command, sizeof(command), "rm -r '%s'", machine->root);
        assert_int_equal(system(command), 0);
}

static int collect(struct machine *machine)
{
        return source_diskstats.collect(machine->source, UINT64_MAX, &machine->sample);
}

static void must_collect(struct machine *machine)
{
        assert_int_equal(collect(machine), 0);
        assert_true(machine->sample.time_us > INT64_C(1700000000000000));
}

static int entity_find(const struct machine *machine, const char *name)
{
        for (uint32_t i = 0; i < machine->sample.n_entities; i++)
                if (strcmp(machine->sample.entities[i].name, name) == 0)
                        return (int)i;
        return -1;
}

static const struct block_entity *entity(const struct machine *machine, const char *name)
{
        int i = entity_find(machine, name);

        assert_true(i >= 0);
        return &machine->sample.entities[i];
}

/* The value, or -1 when the entity has no such column or is absent in this row. */
static int64_t value(const struct machine *machine, const char *name, uint16_t metric)
{
        const struct sample *sample = &machine->sample;
        int index = entity_find(machine, name);

        assert_true(index >= 0);
        if (!sample->present[index])
                return -1;
        for (uint32_t i = 0; i < sample->n_columns; i++)
                if (sample->columns[i].entity == (uint32_t)index &&
                        sample->columns[i].metric == metric)
                        return (int64_t)sample->values[i];
        return -1;
}

static void all_seventeen_numbers_of_a_disk_are_read(void **state)
{
        static const int64_t expected[] = {119783, 12461, 7351954, 47391, 512115, 67066, 18466128,
                135269, 0, 75352, 213038, 18194, 44, 2688264, 3733, 109014, 26642};
        struct machine machine;

        (void)state;
        machine_of_fixture(&machine, "node");
        must_collect(&machine);
        for (uint16_t i = 0; i < 17; i++)
                assert_int_equal(value(&machine, "vda", METRIC_DISK_READ_OPS + i), expected[i]);
        assert_string_equal(entity(&machine, "vda")->identity, "VIRTIO0001");
        assert_int_equal(entity(&machine, "vda")->instance, 9);
        assert_int_equal(machine.sample.failures, 0);
        machine_done(&machine);
}

static void columns_are_grouped_by_entity(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_fixture(&machine, "stacked");
        must_collect(&machine);
        for (uint32_t i = 1; i < machine.sample.n_columns; i++) {
                const struct block_column *a = &machine.sample.columns[i - 1], *b = a + 1;

                assert_true(
                        a->entity < b->entity || (a->entity == b->entity && a->metric < b->metric));
        }
        machine_done(&machine);
}

static void devices_without_size_and_history_are_left_out(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_fixture(&machine, "stacked");
        must_collect(&machine);
        assert_true(entity_find(&machine, "loop0") >= 0);
        assert_true(entity_find(&machine, "loop1") < 0);
        assert_true(entity_find(&machine, "loop2") >= 0); /* no I/O yet, but a backing file */
        assert_true(entity_find(&machine, "ram0") < 0);
        assert_true(entity_find(&machine, "zram0") < 0);
        assert_int_equal(machine.sample.failures, 0);
        machine_done(&machine);
}

static void partitions_have_no_flushes(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_fixture(&machine, "stacked");
        must_collect(&machine);
        assert_int_equal(value(&machine, "sda2", METRIC_DISK_DISCARD_TIME), 2 * 1025);
        assert_int_equal(value(&machine, "sda2", METRIC_DISK_FLUSH_OPS), -1);
        assert_int_equal(value(&machine, "sda", METRIC_DISK_FLUSH_OPS), 9984);
        machine_done(&machine);
}

static void two_paths_to_one_disk_have_two_identities(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_fixture(&machine, "stacked");
        must_collect(&machine);
        assert_string_equal(
                entity(&machine, "sdd")->identity, "naa.600a098038303053453f463045727a41@sdd");
        assert_string_equal(
                entity(&machine, "sde")->identity, "naa.600a098038303053453f463045727a41@sde");
        machine_done(&machine);
}

static void paths_of_nvme_have_their_own_counters(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_fixture(&machine, "nvme-multipath");
        must_collect(&machine);
        assert_int_equal(machine.sample.n_entities, 3);
        assert_int_equal(value(&machine, "nvme0n1", METRIC_DISK_READ_OPS), 0);
        assert_int_equal(value(&machine, "nvme0c0n1", METRIC_DISK_READ_OPS), 3 * 36271);
        assert_int_equal(value(&machine, "nvme0c1n1", METRIC_DISK_READ_OPS), 2 * 36271);
        machine_done(&machine);
}

static void old_kernels_have_fewer_columns(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_fixture(&machine, "diskstats-3.10");
        must_collect(&machine);
        assert_int_equal(machine.sample.n_columns, 22);
        assert_int_equal(value(&machine, "sda1", METRIC_DISK_WEIGHTED_TIME), 2 * 28712);
        assert_int_equal(value(&machine, "sda", METRIC_DISK_DISCARD_OPS), -1);
        machine_done(&machine);
        machine_of_fixture(&machine, "diskstats-4.19");
        must_collect(&machine);
        assert_int_equal(machine.sample.n_columns, 30);
        machine_done(&machine);
}

static void numbers_nobody_knows_yet_are_passed_over(void **state)
{
        struct machine machine;
        uint64_t generation;

        (void)state;
        machine_of_fixture(&machine, "diskstats-future");
        must_collect(&machine);
        assert_int_equal(machine.sample.n_columns, 17);
        assert_int_equal(value(&machine, "sda", METRIC_DISK_FLUSH_TIME), 2403);
        generation = machine.sample.generation;
        must_collect(&machine);
        assert_int_equal(machine.sample.generation, generation);
        machine_done(&machine);
}

static void a_row_costs_no_new_layout_while_devices_stay(void **state)
{
        struct machine machine;
        uint64_t generation;
        const uint64_t *values;

        (void)state;
        machine_of_text(
                &machine, "8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n");
        must_collect(&machine);
        generation = machine.sample.generation;
        values = machine.sample.values;
        text_write(&machine, "8 0 sda 10 2 3 4 5 6 7 8 0 10 11\n7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n");
        must_collect(&machine);
        assert_int_equal(machine.sample.generation, generation);
        assert_ptr_equal(machine.sample.values, values);
        assert_int_equal(value(&machine, "sda", METRIC_DISK_READ_OPS), 10);
        machine_done(&machine);
}

static void a_loop_device_appears_with_its_first_io(void **state)
{
        struct machine machine;
        uint64_t generation, facts_generation;

        (void)state;
        machine_of_text(
                &machine, "8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n");
        must_collect(&machine);
        assert_int_equal(machine.sample.n_entities, 1);
        generation = machine.sample.generation;
        facts_generation = machine.sample.facts_generation;
        text_write(&machine, "8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n7 0 loop0 1 0 8 0 0 0 0 0 0 0 0\n");
        must_collect(&machine);
        assert_int_equal(value(&machine, "loop0", METRIC_DISK_READ_SECTORS), 8);
        assert_true(machine.sample.generation > generation);
        assert_true(machine.sample.facts_generation > facts_generation);
        machine_done(&machine);
}

static void a_detached_disk_vanishes(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_text(
                &machine, "8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n8 16 sdb 2 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_int_equal(machine.sample.n_entities, 2);
        text_write(&machine, "8 16 sdb 2 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_int_equal(machine.sample.n_entities, 1);
        assert_string_equal(machine.sample.entities[0].name, "sdb");
        text_write(&machine, "");
        assert_int_equal(collect(&machine), -EAGAIN);
        machine_done(&machine);
}

static void a_disk_plugged_in_again_is_another_instance(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_text(&machine, "8 0 sda 100 2 3 4 5 6 7 8 0 10 11\n");
        attribute_write(&machine, "sda", "diskseq", "9\n");
        must_collect(&machine);
        attribute_write(&machine, "sda", "diskseq", "10\n");
        text_write(&machine, "8 0 sda 99 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_int_equal(entity(&machine, "sda")->instance, 10);
        machine_done(&machine);
}

static void a_disk_that_comes_back_under_another_name_is_the_same_disk(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_text(
                &machine, "8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n8 16 sdb 2 2 3 4 5 6 7 8 0 10 11\n");
        attribute_write(&machine, "sda", "wwid", "naa.1\n");
        attribute_write(&machine, "sdb", "wwid", "naa.2\n");
        attribute_write(&machine, "sdb", "diskseq", "2\n");
        must_collect(&machine);
        text_write(&machine, "8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_int_equal(machine.sample.n_entities, 1);
        attribute_write(&machine, "sdc", "wwid", "naa.2\n");
        attribute_write(&machine, "sdc", "diskseq", "3\n");
        text_write(&machine,
                "8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n8 32 sdc 900 2 3 4 900 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_string_equal(entity(&machine, "sdc")->identity, "naa.2");
        /* Its counters began anew, however high they are by now. */
        assert_int_equal(entity(&machine, "sdc")->instance, 3);
        machine_done(&machine);
}

/* Between two readings, its partition went with the old one, and the counters went up. */
static void another_disk_under_the_same_name_is_told_apart(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_text(&machine,
                "8 16 sdb 100 2 3 4 5 6 7 8 0 10 11\n8 17 sdb1 100 2 3 4 5 6 7 8 0 10 11\n");
        attribute_write(&machine, "sdb", "wwid", "naa.2\n");
        attribute_write(&machine, "sdb", "diskseq", "2\n");
        must_collect(&machine);
        assert_string_equal(entity(&machine, "sdb")->identity, "naa.2");
        attribute_write(&machine, "sdb", "wwid", "naa.9\n");
        attribute_write(&machine, "sdb", "diskseq", "7\n");
        text_write(&machine, "8 16 sdb 200 2 3 4 50 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_string_equal(entity(&machine, "sdb")->identity, "naa.9");
        assert_int_equal(entity(&machine, "sdb")->instance, 7);
        machine_done(&machine);
}

/* Its line stays as it is. */
static void a_loop_device_that_lost_its_file_is_another_within_ten_seconds(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_text(
                &machine, "7 0 loop0 100 2 3 4 5 6 7 8 0 10 11\n7 1 loop1 1 2 3 4 5 6 7 8 0 9 9\n"
                          "7 2 loop2 1 2 3 4 5 6 7 8 0 9 9\n7 3 loop3 1 2 3 4 5 6 7 8 0 9 9\n");
        attribute_write(&machine, "loop0", "diskseq", "3\n");
        must_collect(&machine);
        assert_int_equal(entity(&machine, "loop0")->instance, 3);
        attribute_write(&machine, "loop0", "diskseq", "8\n");
        clock_ahead_s += 11;
        must_collect(&machine);
        assert_int_equal(entity(&machine, "loop0")->instance, 8);
        assert_string_equal(entity(&machine, "loop0")->identity, "7:0:8");
        machine_done(&machine);
}

static void a_swap_is_seen_on_old_kernels_while_another_device_comes(void **state)
{
        struct machine machine;
        uint64_t instance;

        (void)state;
        machine_of_text(&machine, "8 16 sdb 100 2 3 4 5 6 7 8 0 10 11\n");
        attribute_write(&machine, "sdb", "wwid", "naa.2\n");
        must_collect(&machine);
        instance = entity(&machine, "sdb")->instance;
        attribute_write(&machine, "sdb", "wwid", "naa.9\n");
        text_write(
                &machine, "8 16 sdb 3 2 3 4 5 6 7 8 0 10 11\n8 32 sdc 2 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_string_equal(entity(&machine, "sdb")->identity, "naa.9");
        /* The same disk whose counters go down has another life. */
        text_write(&machine, "8 16 sdb 1 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_string_equal(entity(&machine, "sdb")->identity, "naa.9");
        assert_true(entity(&machine, "sdb")->instance != instance);
        machine_done(&machine);
}

static void counters_that_go_down_are_another_instance_on_old_kernels_too(void **state)
{
        struct machine machine;
        uint64_t instance, generation;

        (void)state;
        machine_of_text(&machine, "8 0 sda 100 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        instance = entity(&machine, "sda")->instance;
        generation = machine.sample.generation;
        text_write(&machine, "8 0 sda 100 2 3 4 4 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_true(entity(&machine, "sda")->instance != instance);
        assert_true(machine.sample.generation != generation);
        instance = entity(&machine, "sda")->instance;
        must_collect(&machine);
        assert_true(entity(&machine, "sda")->instance == instance);
        machine_done(&machine);
}

static void a_bad_number_costs_its_own_line_only(void **state)
{
        static const char *const bad[] = {"-1", "123456789012345678901", "18446744073709551616",
                "1x", "x", "99999999999999999999999999999999999999999999999999"};
        struct machine machine;

        (void)state;
        machine_of_text(
                &machine, "8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n8 16 sdb 1 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                char text[256];

                snprintf(text, sizeof(text),
                        "8 0 sda 1 2 3 %s 5 6 7 8 0 10 11\n8 16 sdb 7 2 3 4 5 6 7 8 0 10 11\n",
                        bad[i]);
                text_write(&machine, text);
                must_collect(&machine);
                assert_int_equal(machine.sample.failures, 1);
                assert_int_equal(value(&machine, "sda", METRIC_DISK_READ_OPS), -1);
                assert_int_equal(value(&machine, "sdb", METRIC_DISK_READ_OPS), 7);
        }
        /* Said once, not each time. */
        assert_int_equal(machine.n_lines, 1);
        assert_non_null(strstr(machine.lines, "sda"));
        text_write(&machine, "8 0 sda 1 2 3 18446744073709551615 5 6 7 8 0 10 11\n8 16 sdb 7 2 3 4 "
                             "5 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_int_equal(machine.sample.failures, 0);
        assert_int_equal(machine.n_lines, 2);
        assert_true((uint64_t)value(&machine, "sda", METRIC_DISK_READ_TIME) == UINT64_MAX);
        machine_done(&machine);
}

/* Lines that did not change are not looked at again, and mean what they meant. */
static void a_bad_line_that_stays_is_bad_until_it_changes(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_text(
                &machine, "8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n8 16 sdb 1 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        for (int i = 0; i < 5; i++) {
                char text[256];

                snprintf(text, sizeof(text),
                        "8 0 sda -1 2 3 4 5 6 7 8 0 10 11\n8 16 sdb %d 2 3 4 5 6 7 8 0 10 11\n",
                        100 + i / 2);
                text_write(&machine, text);
                must_collect(&machine);
                assert_int_equal(machine.sample.failures, 1);
                assert_int_equal(value(&machine, "sda", METRIC_DISK_READ_OPS), -1);
                assert_int_equal(value(&machine, "sdb", METRIC_DISK_READ_OPS), 100 + i / 2);
        }
        assert_int_equal(machine.n_lines, 1);
        machine_done(&machine);
}

static void a_line_cut_for_one_reading_costs_that_line_only(void **state)
{
        struct machine machine;
        uint64_t instance;

        (void)state;
        machine_of_text(
                &machine, "8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n8 16 sdb 1 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        instance = entity(&machine, "sda")->instance;
        text_write(&machine, "8 0 sda 2 2 3 4 5 6 7 8 0 10 11\n8 16 sdb 1 2 3 4");
        must_collect(&machine);
        assert_int_equal(value(&machine, "sda", METRIC_DISK_READ_OPS), 2);
        assert_int_equal(machine.sample.n_entities, 1);
        assert_int_equal(machine.sample.failures, 1);
        text_write(&machine, "8 0 sda 3 2 3 4 5 6 7 8 0 10 11\n8 16 sdb 4 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_int_equal(value(&machine, "sda", METRIC_DISK_READ_OPS), 3);
        assert_int_equal(value(&machine, "sdb", METRIC_DISK_READ_OPS), 4);
        assert_true(entity(&machine, "sda")->instance == instance);
        assert_int_equal(machine.sample.failures, 0);
        assert_int_equal(machine.n_lines, 2); /* that there is one, that there is none */
        machine_done(&machine);
}

static void a_number_of_any_length_is_read_as_printed(void **state)
{
        uint64_t numbers[11], seed = 1;
        const char *given = getenv("STRATA_SEED");
        struct machine machine;

        (void)state;
        seed = given ? strtoull(given, NULL, 10) : seed;
        print_message("# STRATA_SEED=%llu\n", (unsigned long long)seed);
        machine_of_text(&machine, "8 0 sda 0 0 0 0 0 0 0 0 0 0 1\n");
        for (unsigned round = 0; round < 2000; round++) {
                char text[512] = "8 0 sda";

                for (unsigned i = 0; i < 11; i++) {
                        seed = seed * 6364136223846793005u + 1442695040888963407u;
                        /* 0 to 64 bits long. */
                        numbers[i] = (seed ^ seed >> 31) >> (seed >> 58);
                        if (round % 4 == 0)
                                numbers[i] %= 10;
                        snprintf(text + strlen(text), sizeof(text) - strlen(text), " %llu",
                                (unsigned long long)numbers[i]);
                }
                strcat(text, "\n");
                text_write(&machine, text);
                must_collect(&machine);
                assert_int_equal(machine.sample.failures, 0);
                assert_memory_equal(machine.sample.values, numbers, sizeof(numbers));
        }
        machine_done(&machine);
}

static void rubbish_of_every_kind_costs_its_own_line(void **state)
{
        static const char *const rubbish[] = {"", " ", "\n\n", "8", "8 0", "8 0 \n", "sdq",
                "\xff\xfe", "8 0 sdq", "8 0 sdq ", "8 0 sdq \x80 1 2", "8 0 sd\xff 1 2 3",
                "-1 0 sdq 1 2 3", "18446744073709551616 0 sdq 1", "8 0 sdq\t1 2 3",
                "8 0 sdq 1\t2 3",
                "8 0 0123456789012345678901234567890123456789012345678901234567890123456789 1 2 3",
                "8 0 sdq 1,2,3", "8 0 sdq 0x10 2 3", "8 0 sdq 1 2 3.5 4", "8 0 sdq +1 2 3"};
        struct machine machine;

        (void)state;
        machine_of_text(&machine, "");
        for (size_t i = 0; i < sizeof(rubbish) / sizeof(rubbish[0]); i++) {
                char text[512];

                for (int k = 0; k < 2; k++) {
                        snprintf(text, sizeof(text),
                                "8 16 sdb 1%d 2 3 4 5 6 7 8 0 10 11\n%s\n"
                                "8 32 sdc 2%d 2 3 4 5 6 7 8 0 10 11\n",
                                k, rubbish[i], k);
                        text_write(&machine, text);
                        must_collect(&machine);
                        assert_int_equal(value(&machine, "sdb", METRIC_DISK_READ_OPS), 10 + k);
                        assert_int_equal(value(&machine, "sdc", METRIC_DISK_READ_OPS), 20 + k);
                        if (machine.sample.failures == 0)
                                fail_msg("'%s' was taken for a device", rubbish[i]);
                }
        }
        machine_done(&machine);
}

static void a_line_that_says_nothing_is_counted_and_passed_over(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_text(&machine, "garbage\n\n8 0\n8 x sdq 1\n4294967296 0 sdr 1 2\n8 0 sda 1 2 3 "
                                  "4 5 6 7 8 0 10 11\n8 16 sdb 1 2 3");
        must_collect(&machine);
        assert_int_equal(machine.sample.n_entities, 1);
        assert_int_equal(machine.sample.failures, 6);
        assert_int_equal(machine.n_lines, 1);
        must_collect(&machine);
        assert_int_equal(machine.n_lines, 1);
        machine_done(&machine);
}

static void a_line_printed_twice_counts_once(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_text(&machine, "8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n8 0 sda 1 2 3 4 5 6 7 8 0 10 "
                                  "11\n8 16 sdb 1 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_int_equal(machine.sample.n_entities, 2);
        assert_int_equal(machine.sample.n_columns, 22);
        assert_int_equal(machine.sample.failures, 1);
        assert_int_equal(value(&machine, "sdb", METRIC_DISK_READ_OPS), 1);
        machine_done(&machine);
}

/* Found by the fuzzer: the disk of before was the second of its name, and leaked. */
static void a_known_disk_behind_another_of_its_name_is_let_go(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_text(&machine, "8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        text_write(&machine, "8 1 sda 1 2 3 4 5 6 7 8 0 10 11\n8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_int_equal(machine.sample.n_entities, 1);
        assert_int_equal(machine.sample.failures, 1);
        machine_done(&machine);
}

static void a_line_that_was_cut_gets_its_columns_back(void **state)
{
        struct machine machine;

        (void)state;
        machine_of_text(&machine, "8 0 sda 1 2 3 4 5\n");
        must_collect(&machine);
        assert_int_equal(machine.sample.n_columns, 5);
        text_write(&machine, "8 0 sda 1 2 3 4 5 6 7 8 0 10 11\n");
        must_collect(&machine);
        assert_int_equal(machine.sample.n_columns, 11);
        machine_done(&machine);
}

static void a_thousand_disks_are_read_to_the_end(void **state)
{
        static char text[1000 * 200];
        struct machine machine;
        size_t length = 0;

        (void)state;
        for (int i = 0; i < 1000; i++)
                length += (size_t)snprintf(text + length, sizeof(text) - length,
                        "%4d %7d sd%d %d 9802 3069538 11402 47101 12707 2984432 13880 0 12192 "
                        "28712 6595 43 388024 1025 9984 2403\n",
                        8, i, i, i);
        machine_of_text(&machine, text);
        must_collect(&machine);
        assert_int_equal(machine.sample.n_entities, 1000);
        assert_int_equal(machine.sample.n_columns, 17000);
        assert_int_equal(value(&machine, "sd999", METRIC_DISK_READ_OPS), 999);
        machine_done(&machine);
}

/* One read of a real file of /proc gives at most a page; another long one stands for diskstats. */
static void a_file_of_more_than_a_page_is_read_to_the_end(void **state)
{
        struct machine machine;
        char path[512], line[4096];
        unsigned n = 0;
        FILE *f;

        (void)state;
        f = fopen("/proc/zoneinfo", "r");
        assert_non_null(f);
        while (fgets(line, sizeof(line), f))
                n++;
        if (ftell(f) <= 4096)
                skip();
        fclose(f);
        machine_of_text(&machine, "");
        source_diskstats.close(machine.source);
        snprintf(path, sizeof(path), "%s/proc/diskstats", machine.root);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(symlink("/proc/zoneinfo", path), 0);
        machine_open(&machine);
        assert_int_equal(collect(&machine), -EBADMSG);
        assert_int_equal(machine.n_lines, 1);
        snprintf(line, sizeof(line), "/proc/diskstats: %u lines cannot", n);
        assert_non_null(strstr(machine.lines, line));
        machine_done(&machine);
}

static void facts_and_samples_know_devices_by_the_same_identity(void **state)
{
        CLEANUP(facts) struct facts *facts = NULL;
        struct machine machine;

        (void)state;
        machine_of_fixture(&machine, "stacked");
        must_collect(&machine);
        assert_int_equal(facts_new(&facts), 0);
        assert_int_equal(source_diskstats.add_facts(machine.source, facts), 0);
        assert_int_equal(facts->n_devices, machine.sample.n_entities);
        for (size_t i = 0; i < facts->n_devices; i++) {
                assert_string_equal(facts->devices[i].name, machine.sample.entities[i].name);
                assert_string_equal(
                        facts->devices[i].identity, machine.sample.entities[i].identity);
        }
        machine_done(&machine);
}

static void this_machine_is_read_as_it_is(void **state)
{
        struct source_options options = {.root = ""};
        struct source_report report = {0};
        struct source *source;
        struct sample sample;
        int r;

        (void)state;
        assert_int_equal(source_diskstats.open(&options, &report, &source), 0);
        r = source_diskstats.collect(source, UINT64_MAX, &sample);
        assert_true(r == 0 || r == -EAGAIN);
        source_diskstats.close(source);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_seventeen_numbers_of_a_disk_are_read),
                cmocka_unit_test(columns_are_grouped_by_entity),
                cmocka_unit_test(devices_without_size_and_history_are_left_out),
                cmocka_unit_test(partitions_have_no_flushes),
                cmocka_unit_test(two_paths_to_one_disk_have_two_identities),
                cmocka_unit_test(paths_of_nvme_have_their_own_counters),
                cmocka_unit_test(old_kernels_have_fewer_columns),
                cmocka_unit_test(numbers_nobody_knows_yet_are_passed_over),
                cmocka_unit_test(a_row_costs_no_new_layout_while_devices_stay),
                cmocka_unit_test(a_loop_device_appears_with_its_first_io),
                cmocka_unit_test(a_detached_disk_vanishes),
                cmocka_unit_test(a_disk_plugged_in_again_is_another_instance),
                cmocka_unit_test(a_disk_that_comes_back_under_another_name_is_the_same_disk),
                cmocka_unit_test(another_disk_under_the_same_name_is_told_apart),
                cmocka_unit_test(a_loop_device_that_lost_its_file_is_another_within_ten_seconds),
                cmocka_unit_test(a_swap_is_seen_on_old_kernels_while_another_device_comes),
                cmocka_unit_test(counters_that_go_down_are_another_instance_on_old_kernels_too),
                cmocka_unit_test(a_bad_number_costs_its_own_line_only),
                cmocka_unit_test(a_bad_line_that_stays_is_bad_until_it_changes),
                cmocka_unit_test(a_line_cut_for_one_reading_costs_that_line_only),
                cmocka_unit_test(a_number_of_any_length_is_read_as_printed),
                cmocka_unit_test(rubbish_of_every_kind_costs_its_own_line),
                cmocka_unit_test(a_line_that_says_nothing_is_counted_and_passed_over),
                cmocka_unit_test(a_line_printed_twice_counts_once),
                cmocka_unit_test(a_known_disk_behind_another_of_its_name_is_let_go),
                cmocka_unit_test(a_line_that_was_cut_gets_its_columns_back),
                cmocka_unit_test(a_thousand_disks_are_read_to_the_end),
                cmocka_unit_test(a_file_of_more_than_a_page_is_read_to_the_end),
                cmocka_unit_test(facts_and_samples_know_devices_by_the_same_identity),
                cmocka_unit_test(this_machine_is_read_as_it_is),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
