/*
 * Whole machines: what the agent makes of the captured or reconstructed /proc and /sys, and what
 * the collector makes of that and of the machine's `ceph osd metadata`. Each tree has a file
 * "expected" with one line a device, written from what the machine is and not from what we print.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agentd/ceph-facts.h"
#include "agentd/source.h"
#include "collectord/topology.h"

#define FSID "aaaaaaaa-0000-4000-8000-000000000001"
#define HEAD                                                                                       \
        "# name kind type parents caches identity alias medium scheduler write_cache fields leaf " \
        "role osds shared\n"

struct machine {
        const char *tree;
        const char *hostname;
        uint32_t n_devices, n_leaves;
};

static const struct machine machines[] = {
        {"node", "node1", 7, 3},
        {"machines/jbod-lvm", "jbod1", 11, 4},
        {"machines/crypt-nvme-db", "crypt1", 16, 7},
        {"machines/nvme-paths-6.1", "fabric1", 8, 3},
        {"machines/nvme-paths-6.8", "fabric1", 8, 2},
        {"machines/multipath-sas", "shelf1", 9, 2},
        {"machines/md-bcache", "cache1", 12, 2},
        {"machines/cephadm", "adm1.example.org", 16, 6},
        {"machines/el7-3.10", "el7node", 16, 9},
        {"machines/buster-4.19", "buster1", 6, 3},
        {"machines/vm-virtio", "vm1", 7, 2},
        {"machines/dense-45", "dense1", 90, 45},
        {"machines/no-ceph", "plain1", 5, 2},
};

static void path_of(const struct machine *machine, const char *file, char ret[4096])
{
        snprintf(ret, 4096, "%s/%s%s%s", getenv("STRATA_FIXTURES"), machine->tree, *file ? "/" : "",
                file);
}

/* The answers of a monitor that knows just what the OSDs told about themselves. */
static void cluster_add(const struct machine *machine, struct facts *facts)
{
        struct ceph_status status = {.health = "HEALTH_OK"};
        struct ceph_documents documents = {
                .status = &status, .name = "ceph", .release = "0", .mgr_stats_period = 5};
        json_t *metadata, *osds = json_array(), *dump, *cluster;
        char path[4096];

        path_of(machine, "osd-metadata.json", path);
        metadata = json_load_file(path, 0, NULL);
        assert_non_null(metadata);
        for (size_t i = 0; i < json_array_size(metadata); i++)
                json_array_append_new(
                        osds, json_pack("{s:O, s:i, s:i}", "osd",
                                      json_object_get(json_array_get(metadata, i), "id"), "up", 1,
                                      "in", 1));
        dump = json_pack("{s:o, s:[]}", "osds", osds, "pools");
        documents.osd_dump = dump;
        documents.osd_metadata = metadata;
        assert_int_equal(id_parse(FSID, &status.fsid), 0);
        if (json_array_size(metadata) > 0) {
                assert_int_equal(ceph_facts_make(&documents, &cluster), 0);
                assert_int_equal(ceph_facts_add(cluster, facts), 0);
                json_decref(cluster);
        }
        json_decref(dump);
        json_decref(metadata);
}

static void report_nothing(void *userdata, int level, const char *text)
{
        (void)userdata;
        (void)level;
        fail_msg("%s", text);
}

/* How many numbers a line of each device gives, by the order of the facts. */
static void fields_count(const struct sample *sample, const struct facts *facts, unsigned *ret)
{
        assert_int_equal(sample->n_entities, facts->n_devices);
        assert_int_equal(sample->failures, 0);
        for (uint32_t i = 0; i < sample->n_columns; i++)
                ret[sample->columns[i].entity]++;
}

static struct facts *facts_take(const struct machine *machine, unsigned *ret_fields)
{
        char root[4096];
        struct source_options options = {.root = root};
        struct source_report report = {.line = report_nothing};
        CLEANUP(facts) struct facts *facts = NULL;
        struct source *source;
        struct sample sample;

        path_of(machine, "", root);
        assert_int_equal(source_diskstats.open(&options, &report, &source), 0);
        assert_int_equal(source_diskstats.collect(source, UINT64_MAX, &sample), 0);
        assert_int_equal(facts_new(&facts), 0);
        assert_int_equal(source_diskstats.add_facts(source, facts), 0);
        fields_count(&sample, facts, ret_fields);
        source_diskstats.close(source);
        free(facts->hostname);
        facts->hostname = strdup(machine->hostname);
        assert_non_null(facts->hostname);
        facts->host_id.bytes[0] = 1;
        cluster_add(machine, facts);
        return STEAL(facts);
}

/* As it comes to the collector. */
static struct facts *facts_send(const struct facts *facts)
{
        struct facts *received;
        char *message = NULL;
        json_t *json;

        assert_int_equal(facts_to_json(facts, &json), 0);
        if (facts_from_json(json, &received, &message) < 0)
                fail_msg("%s", message);
        json_decref(json);
        return received;
}

/* A word of the file: blanks become underscores, nothing a dash. */
static void print_word(FILE *file, const char *text)
{
        fputc(' ', file);
        if (!*text)
                fputc('-', file);
        for (; *text; text++)
                fputc(*text == ' ' ? '_' : *text, file);
}

static void print_names(FILE *file, char *const *names, size_t n)
{
        fputs(n > 0 ? " " : " -", file);
        for (size_t i = 0; i < n; i++)
                fprintf(file, "%s%s", i > 0 ? "," : "", names[i]);
}

static void print_osds(
        FILE *file, const struct topology *topology, const struct topology_device *device)
{
        fputs(device->n_osds > 0 ? " " : " -", file);
        for (uint32_t i = 0; i < device->n_osds; i++)
                fprintf(file, "%s%u", i > 0 ? "," : "",
                        topology->osds[topology->osd_of[device->first_osd + i]].id);
}

static void print_device(FILE *file, const struct topology *topology,
        const struct topology_device *device, unsigned fields)
{
        const struct facts_device *facts = device->facts;
        const char *role = topology_role_name(device->role);

        fprintf(file, "%s %s", facts->name, device_kind_name(facts->kind));
        print_word(file, facts->type);
        print_names(file, facts->parents, facts->n_parents);
        print_names(file, facts->caches, facts->n_caches);
        print_word(file, facts->identity);
        print_word(file, facts->alias);
        print_word(file, facts->rotational ? "rotational" : "flash");
        print_word(file, facts->scheduler);
        print_word(file, facts->write_cache);
        fprintf(file, " %u %s %s", fields, device->leaf ? "leaf" : "-", role ? role : "-");
        print_osds(file, topology, device);
        fprintf(file, " %s\n", device->n_osds > 1 ? "shared" : "-");
}

static void compare_with_expected(const struct machine *machine, const char *text)
{
        char path[4096], line[1024];
        FILE *file;

        path_of(machine, "expected", path);
        file = fopen(path, "r");
        assert_non_null(file);
        while (fgets(line, sizeof(line), file)) {
                if (strncmp(text, line, strlen(line)) != 0)
                        fail_msg("expected %sfound    %.*s", line, (int)strcspn(text, "\n"), text);
                text += strlen(line);
        }
        assert_string_equal(text, "");
        fclose(file);
}

/* An OSD is shared when one of its devices is another's too. */
static void check_osds(const struct topology *topology)
{
        for (size_t i = 0; i < topology->n_osds; i++) {
                bool shared = false;

                for (size_t d = 0; d < topology->n_devices; d++) {
                        const struct topology_device *device = &topology->devices[d];

                        for (uint32_t k = 0; k < device->n_osds; k++)
                                shared |= device->n_osds > 1 &&
                                          topology->osd_of[device->first_osd + k] == i;
                }
                assert_int_equal(topology->osds[i].host, 0);
                assert_true(topology->osds[i].n_leaves > 0);
                assert_int_equal(topology->osds[i].shared, shared);
        }
}

static void a_machine_is_understood_from_sysfs_to_the_leaves_of_its_osds(void **state)
{
        const struct machine *machine = *state;
        unsigned fields[256] = {0};
        CLEANUP(facts) struct facts *facts = facts_take(machine, fields);
        struct topology_input input = {.facts = facts_send(facts), .updated_us = 1};
        CLEANUP(topology) struct topology *topology = NULL;
        CLEANUP(str) char *text = NULL;
        uint32_t n_leaves = 0;
        size_t size;
        FILE *file;

        assert_int_equal(facts->n_devices, machine->n_devices);
        assert_int_equal(topology_new(&input, 1, &topology), 0);
        file = open_memstream(&text, &size);
        assert_non_null(file);
        fputs(HEAD, file);
        for (size_t i = 0; i < topology->n_devices; i++) {
                size_t index;

                assert_int_equal(
                        facts_find_device(facts, topology->devices[i].facts->name, &index), 0);
                print_device(file, topology, &topology->devices[i], fields[index]);
                n_leaves += topology->devices[i].leaf;
        }
        fclose(file);
        compare_with_expected(machine, text);
        assert_int_equal(n_leaves, machine->n_leaves);
        check_osds(topology);
}

int main(void)
{
        enum { N = sizeof(machines) / sizeof(machines[0]) };
        struct CMUnitTest tests[N];
        char names[N][160];

        for (size_t i = 0; i < N; i++) {
                snprintf(names[i], sizeof(names[i]), "%s: %s", machines[i].tree,
                        "a_machine_is_understood_from_sysfs_to_the_leaves_of_its_osds");
                tests[i] = (struct CMUnitTest){.name = names[i],
                        .test_func = a_machine_is_understood_from_sysfs_to_the_leaves_of_its_osds,
                        .initial_state = (void *)&machines[i]};
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
