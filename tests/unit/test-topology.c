#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/topology.h"

#define FSID_A "aaaaaaaa-0000-4000-8000-000000000001"
#define FSID_B "bbbbbbbb-0000-4000-8000-000000000002"
#define HOST_1 "11111111-0000-4000-8000-000000000001"
#define HOST_2 "22222222-0000-4000-8000-000000000002"

#define DISK(name, identity)                                                                       \
        "{\"name\":\"" name "\",\"identity\":\"" identity "\",\"kind\":\"disk\"}"
#define DEVICE(name, kind, parents)                                                                \
        "{\"name\":\"" name "\",\"identity\":\"id-" name "\",\"kind\":\"" kind                     \
        "\",\"parents\":[" parents "]}"
#define OSD(id, host, block, db)                                                                   \
        "{\"id\":" id ",\"host\":\"" host "\",\"device_class\":\"hdd\",\"up\":true,\"in\":true,"   \
        "\"block\":[" block "],\"db\":[" db "]}"
#define CLUSTER(fsid, osds)                                                                        \
        "{\"fsid\":\"" fsid "\",\"name\":\"ceph\",\"mgr_stats_period\":5,\"osds\":[" osds          \
        "],\"pools\":[]}"
#define HOST(id, name, devices, clusters)                                                          \
        "{\"host_id\":\"" id "\",\"hostname\":\"" name "\",\"devices\":[" devices                  \
        "],\"clusters\":[" clusters "]}"

static struct facts *parse(const char *text)
{
        json_t *json = json_loads(text, 0, NULL);
        struct facts *facts;
        char *message = NULL;

        assert_non_null(json);
        if (facts_from_json(json, &facts, &message) < 0)
                fail_msg("%s", message);
        json_decref(json);
        return facts;
}

static struct topology *build(const char *first, const char *second)
{
        struct topology_input inputs[2] = {{.facts = parse(first), .updated_us = 1}};
        struct topology *topology;
        size_t n = 1;

        if (second)
                inputs[n++] = (struct topology_input){.facts = parse(second), .updated_us = 2};
        assert_int_equal(topology_new(inputs, n, &topology), 0);
        return topology;
}

static uint32_t cluster_of(const struct topology *topology, const char *fsid)
{
        struct id id = {0};
        uint32_t cluster;

        if (fsid)
                assert_int_equal(id_parse(fsid, &id), 0);
        assert_int_equal(topology_find_cluster(topology, &id, &cluster), 0);
        return cluster;
}

/* The leaves of a cluster, "host/name" sorted and joined. */
static const char *leaves(const struct topology *topology, const char *fsid, char *text)
{
        uint32_t cluster = cluster_of(topology, fsid);

        text[0] = '\0';
        for (size_t i = 0; i < topology->n_devices; i++)
                if (topology_is_leaf_of(topology, i, cluster))
                        sprintf(text + strlen(text), "%s%s/%s", *text ? " " : "",
                                topology->hosts[topology->devices[i].host].facts->hostname,
                                topology->devices[i].facts->name);
        return text;
}

static const struct topology_device *device(const struct topology *topology, const char *name)
{
        uint32_t index;

        assert_int_equal(topology_find_name(topology, 0, name, &index), 0);
        return &topology->devices[index];
}

static void counts_the_device_that_the_osd_names_and_nothing_around_it(void **state)
{
        CLEANUP(topology)
        struct topology *topology = build(
                HOST(HOST_1, "node1",
                        DISK("sda", "a") "," DEVICE("sda1", "partition", "\"sda\"") "," DISK(
                                "sdb", "b") "," DEVICE("dm-0", "dm", "\"sdb\"") "," DEVICE("dm-1",
                                "dm", "\"dm-0\"") "," DISK("sdc", "c"),
                        CLUSTER(FSID_A, OSD("0", "node1", "\"sda1\"", "") "," OSD(
                                                "1", "node1", "\"dm-1\"", ""))),
                NULL);
        char text[256];
        (void)state;

        /* sdc is the system's; sda and sdb stand below the leaves; dm-0 is the crypt below dm-1. */
        assert_string_equal(leaves(topology, FSID_A, text), "node1/dm-1 node1/sda1");
        assert_int_equal(topology->n_clusters, 1);
        assert_int_equal(device(topology, "sda1")->role, TOPOLOGY_ROLE_BLOCK);
}

static void a_partition_and_its_disk_are_counted_once(void **state)
{
        CLEANUP(topology)
        struct topology *topology =
                build(HOST(HOST_1, "node1",
                              DISK("sda", "a") "," DEVICE("sda1", "partition",
                                      "\"sda\"") "," DEVICE("dm-0", "dm", "\"sda1\""),
                              CLUSTER(FSID_A, OSD("0", "node1", "\"sda\"", "") "," OSD(
                                                      "1", "node1", "\"dm-0\"", ""))),
                        NULL);
        char text[256];
        (void)state;

        assert_string_equal(leaves(topology, FSID_A, text), "node1/sda");
        assert_int_equal(device(topology, "sda")->n_osds, 2);
        assert_true(topology->osds[0].shared);
        assert_true(topology->osds[1].shared);
}

static void the_members_of_an_array_are_not_added_to_it(void **state)
{
        CLEANUP(topology)
        struct topology *topology =
                build(HOST(HOST_1, "node1",
                              DISK("sda", "a") "," DISK("sdb", "b") "," DEVICE(
                                      "md0", "md", "\"sda\",\"sdb\""),
                              CLUSTER(FSID_A, OSD("0", "node1", "\"md0\"", ""))),
                        NULL);
        char text[256];
        (void)state;

        assert_string_equal(leaves(topology, FSID_A, text), "node1/md0");
}

static void a_path_of_an_nvme_namespace_is_never_counted(void **state)
{
        CLEANUP(topology)
        struct topology *topology = build(
                HOST(HOST_1, "node1",
                        DISK("nvme0n1",
                                "eui") ",{\"name\":\"nvme0c0n1\",\"identity\":\"eui\",\"kind\":"
                                       "\"nvme_path\"},{\"name\":\"nvme0c1n1\",\"identity\":"
                                       "\"eui\",\"kind\":\"nvme_path\"}",
                        CLUSTER(FSID_A, OSD("0", "node1", "\"nvme0n1\"", "") "," OSD(
                                                "1", "node1", "\"nvme0c0n1\"", ""))),
                NULL);
        uint32_t found;
        char text[256];
        (void)state;

        assert_string_equal(leaves(topology, FSID_A, text), "node1/nvme0n1");
        /* The path has the head's identity, and still is not the head. */
        assert_int_equal(topology_find_device(topology, 0, "nvme0c1n1", "eui", &found), 0);
        assert_string_equal(topology->devices[found].facts->name, "nvme0c1n1");
        assert_false(topology->devices[found].leaf);
        /* A path that the facts do not know yet could be any of the three. */
        assert_int_equal(topology_find_device(topology, 0, "nvme0c2n1", "eui", &found), -ENOENT);
}

#define NVME_PATH(name)                                                                            \
        "{\"name\":\"" name "\",\"identity\":\"eui@" name "\",\"kind\":\"nvme_path\"}"
#define NVME_HEAD(uncounted)                                                                       \
        "{\"name\":\"nvme0n1\",\"identity\":\"eui\",\"kind\":\"disk\",\"type\":\"nvme_head\","     \
        "\"uncounted\":" uncounted ",\"parents\":[\"nvme0c0n1\",\"nvme0c1n1\"]},"                  \
        "{\"name\":\"nvme0n1p1\",\"identity\":\"p1\",\"kind\":\"partition\","                      \
        "\"uncounted\":" uncounted                                                                 \
        ",\"parents\":[\"nvme0n1\"]}," NVME_PATH("nvme0c0n1") "," NVME_PATH("nvme0c1n1")

static void a_head_counts_itself_where_the_kernel_does(void **state)
{
        CLEANUP(topology)
        struct topology *topology =
                build(HOST(HOST_1, "node1", NVME_HEAD("false"),
                              CLUSTER(FSID_A, OSD("0", "node1", "\"nvme0n1\"", ""))),
                        HOST(HOST_2, "node2", NVME_HEAD("false"), ""));
        char text[256];
        (void)state;

        assert_string_equal(leaves(topology, FSID_A, text), "node1/nvme0n1");
        assert_string_equal(leaves(topology, NULL, text), "node2/nvme0n1");
        assert_int_equal(topology->osds[0].n_leaves, 1);
}

static void the_paths_count_for_a_head_that_the_kernel_does_not(void **state)
{
        CLEANUP(topology)
        struct topology *topology =
                build(HOST(HOST_1, "node1", NVME_HEAD("true"),
                              CLUSTER(FSID_A, OSD("0", "node1", "\"nvme0n1\"", ""))),
                        HOST(HOST_2, "node2", NVME_HEAD("true"), ""));
        char text[256];
        (void)state;

        assert_string_equal(leaves(topology, FSID_A, text), "node1/nvme0c0n1 node1/nvme0c1n1");
        assert_string_equal(leaves(topology, NULL, text), "node2/nvme0c0n1 node2/nvme0c1n1");
        assert_int_equal(topology->osds[0].n_leaves, 2);
        assert_int_equal(device(topology, "nvme0c1n1")->role, TOPOLOGY_ROLE_BLOCK);
        assert_false(topology->osds[0].shared);
}

/* The paths hold the bytes of the volume too. */
static void a_partition_and_a_volume_of_an_uncounted_head_share_its_paths(void **state)
{
        CLEANUP(topology)
        struct topology *topology = build(
                HOST(HOST_1, "node1", NVME_HEAD("true") "," DEVICE("dm-0", "dm", "\"nvme0n1\""),
                        CLUSTER(FSID_A, OSD("0", "node1", "\"nvme0n1p1\"", "") "," OSD(
                                                "1", "node1", "\"dm-0\"", ""))),
                NULL);
        char text[256];
        (void)state;

        assert_string_equal(leaves(topology, FSID_A, text), "node1/nvme0c0n1 node1/nvme0c1n1");
        assert_true(topology->osds[0].shared);
        assert_true(topology->osds[1].shared);
        assert_int_equal(topology->osds[1].n_leaves, 2);
}

static void a_db_device_of_several_osds_is_counted_once_and_called_shared(void **state)
{
        CLEANUP(topology)
        struct topology *topology = build(
                HOST(HOST_1, "node1",
                        DISK("sda", "a") "," DISK("sdb", "b") "," DISK("sdc", "c") "," DISK(
                                "nvme0n1", "n"),
                        CLUSTER(FSID_A, OSD("0", "node1", "\"sda\"", "\"nvme0n1\"") "," OSD(
                                                "1", "node1", "\"sdb\"", "\"nvme0n1\"") "," OSD("2",
                                                "node1", "\"sdc\"", ""))),
                NULL);
        char text[256];
        (void)state;

        assert_string_equal(
                leaves(topology, FSID_A, text), "node1/nvme0n1 node1/sda node1/sdb node1/sdc");
        assert_int_equal(device(topology, "nvme0n1")->n_osds, 2);
        assert_int_equal(device(topology, "nvme0n1")->role, TOPOLOGY_ROLE_DB);
        assert_true(topology->osds[0].shared);
        assert_false(topology->osds[2].shared);
        assert_int_equal(topology->osds[0].n_leaves, 2);
}

static void db_volumes_of_their_own_are_not_shared(void **state)
{
        CLEANUP(topology)
        struct topology *topology =
                build(HOST(HOST_1, "node1",
                              DISK("sda", "a") "," DISK("sdb", "b") "," DISK(
                                      "nvme0n1", "n") "," DEVICE("dm-0", "dm",
                                      "\"nvme0n1\"") "," DEVICE("dm-1", "dm", "\"nvme0n1\""),
                              CLUSTER(FSID_A, OSD("0", "node1", "\"sda\"", "\"dm-0\"") "," OSD(
                                                      "1", "node1", "\"sdb\"", "\"dm-1\""))),
                        NULL);
        char text[256];
        (void)state;

        assert_string_equal(
                leaves(topology, FSID_A, text), "node1/dm-0 node1/dm-1 node1/sda node1/sdb");
        assert_false(topology->osds[0].shared);
}

static void one_device_for_block_and_db_of_one_osd_is_not_shared(void **state)
{
        CLEANUP(topology)
        struct topology *topology =
                build(HOST(HOST_1, "node1", DISK("sda", "a"),
                              CLUSTER(FSID_A, OSD("0", "node1", "\"sda\"", "\"sda\""))),
                        NULL);
        (void)state;

        assert_int_equal(device(topology, "sda")->n_osds, 1);
        assert_false(topology->osds[0].shared);
        assert_int_equal(topology->osds[0].n_leaves, 1);
}

static void both_clusters_of_one_host_have_an_osd_0_of_their_own(void **state)
{
        CLEANUP(topology)
        struct topology *topology =
                build(HOST(HOST_1, "node1", DISK("sda", "a") "," DISK("sdb", "b"),
                              CLUSTER(FSID_B, OSD("0", "node1", "\"sdb\"", "")) "," CLUSTER(
                                      FSID_A, OSD("0", "node1", "\"sda\"", ""))),
                        NULL);
        uint32_t a, b;
        char text[256];
        (void)state;

        assert_string_equal(leaves(topology, FSID_A, text), "node1/sda");
        assert_string_equal(leaves(topology, FSID_B, text), "node1/sdb");
        assert_int_equal(topology_find_osd(topology, cluster_of(topology, FSID_A), 0, &a), 0);
        assert_int_equal(topology_find_osd(topology, cluster_of(topology, FSID_B), 0, &b), 0);
        assert_int_not_equal(a, b);
        assert_int_equal(topology_find_osd(topology, cluster_of(topology, FSID_A), 1, &a), -ENOENT);
}

static void osds_find_their_host_by_short_or_full_name(void **state)
{
        CLEANUP(topology)
        struct topology *topology =
                build(HOST(HOST_1, "node1.example.org", DISK("sda", "a"),
                              CLUSTER(FSID_A, OSD("0", "node1", "\"sda\"", "") "," OSD("1",
                                                      "NODE2.example.org", "\"sda\"",
                                                      "") "," OSD("2", "node3", "\"sda\"", ""))),
                        HOST(HOST_2, "node2", DISK("sda", "a"), ""));
        char text[256];
        (void)state;

        assert_string_equal(leaves(topology, FSID_A, text), "node1.example.org/sda node2/sda");
        assert_int_equal(topology->osds[2].host, TOPOLOGY_NONE);
        assert_int_equal(topology->clusters[0].n_hosts, 2);
        assert_false(topology_same_host("node1.a.org", "node1.b.org"));
        assert_false(topology_same_host("node1", "node10"));
        assert_false(topology_same_host("", ".org"));
}

static void an_equal_name_comes_before_a_short_one(void **state)
{
        CLEANUP(topology)
        struct topology *topology = build(HOST(HOST_1, "node1.b.org", DISK("sda", "a"), ""),
                HOST(HOST_2, "node1.a.org", DISK("sda", "a"),
                        CLUSTER(FSID_A, OSD("0", "node1.a.org", "\"sda\"", "") "," OSD(
                                                "1", "node1", "\"sda\"", ""))));
        (void)state;

        assert_int_equal(topology->osds[0].host, 1);
        assert_int_equal(topology->osds[1].host, TOPOLOGY_NONE); /* could be either */
}

static void a_host_without_osds_counts_its_whole_disks_under_none(void **state)
{
        CLEANUP(topology)
        struct topology *topology = build(
                HOST(HOST_1, "node1",
                        DISK("sda", "a") "," DEVICE("sda1", "partition", "\"sda\"") "," DISK("sdb",
                                "b") "," DEVICE("md0", "md", "\"sda1\",\"sdb\"") "," DEVICE("dm-0",
                                "dm", "\"md0\"") "," DEVICE("loop0", "loop", "") "," DEVICE("zram0",
                                "zram", "") "," DEVICE("nvme0c0n1", "nvme_path",
                                "\"nvme0n1\"") "," DISK("nvme0n1", "n"),
                        ""),
                HOST(HOST_2, "node2", DISK("sda", "a"),
                        CLUSTER(FSID_A, OSD("0", "node2", "\"sda\"", ""))));
        char text[256];
        (void)state;

        assert_string_equal(leaves(topology, NULL, text), "node1/nvme0n1 node1/sda node1/sdb");
        assert_string_equal(leaves(topology, FSID_A, text), "node2/sda");
        assert_true(topology_host_in(topology, 0, cluster_of(topology, NULL)));
        assert_false(topology_host_in(topology, 1, cluster_of(topology, NULL)));
        assert_true(topology_host_in(topology, 1, cluster_of(topology, FSID_A)));
}

static void an_identity_is_followed_when_its_name_moves(void **state)
{
        CLEANUP(topology)
        struct topology *topology =
                build(HOST(HOST_1, "node1",
                              DISK("sda", "wwn-1") "," DISK("sdb", "wwn-2") "," DISK("sdc", ""),
                              CLUSTER(FSID_A, OSD("0", "node1", "\"sda\"", ""))),
                        NULL);
        uint32_t found;
        (void)state;

        /* Before the reboot sdb was what is sda now. */
        assert_int_equal(topology_find_device(topology, 0, "sdb", "wwn-1", &found), 0);
        assert_string_equal(topology->devices[found].facts->name, "sda");
        /* Another disk under the old name is not the old disk. */
        assert_int_equal(topology_find_device(topology, 0, "sda", "wwn-9", &found), -ENOENT);
        /* Without an identity the name has to do. */
        assert_int_equal(topology_find_device(topology, 0, "sda", "", &found), 0);
        assert_int_equal(topology_find_device(topology, 0, "sdc", "wwn-9", &found), 0);
        assert_string_equal(topology->devices[found].facts->name, "sdc");
}

static void of_two_hosts_that_tell_about_a_cluster_the_fresher_is_believed(void **state)
{
        struct topology_input inputs[] = {
                {.facts = parse(HOST(HOST_1, "node1", DISK("sda", "a"),
                         CLUSTER(FSID_A, OSD("0", "node1", "\"sda\"", "") "," OSD(
                                                 "1", "node1", "\"sda\"", "")))),
                        .updated_us = 10,
                        .ceph_last_us = 50},
                {.facts = parse(HOST(HOST_2, "node2", DISK("sda", "a"),
                         CLUSTER(FSID_A, OSD("0", "node2", "\"sda\"", "")))),
                        .updated_us = 20,
                        .ceph_last_us = 40},
        };
        CLEANUP(topology) struct topology *topology = NULL;
        (void)state;

        assert_int_equal(topology_new(inputs, 2, &topology), 0);
        assert_int_equal(topology->clusters[0].n_osds, 2);
        assert_int_equal(topology->n_osds, 2);
        assert_int_equal(topology->osds[0].host, 0);
}

static void parents_in_a_circle_end(void **state)
{
        CLEANUP(topology)
        struct topology *topology =
                build(HOST(HOST_1, "node1",
                              DEVICE("dm-0", "dm", "\"dm-1\",\"dm-0\"") "," DEVICE(
                                      "dm-1", "dm", "\"dm-0\",\"dm-1\""),
                              CLUSTER(FSID_A, OSD("0", "node1", "\"dm-0\"", ""))),
                        NULL);
        char text[256];
        (void)state;

        assert_string_equal(leaves(topology, FSID_A, text), "node1/dm-0");
}

static void devices_that_the_host_does_not_have_leave_the_osd_without_leaves(void **state)
{
        CLEANUP(topology)
        struct topology *topology =
                build(HOST(HOST_1, "node1", DISK("sda", "a"),
                              CLUSTER(FSID_A, OSD("0", "node1", "\"sdz\"", ""))),
                        NULL);
        char text[256];
        (void)state;

        assert_string_equal(leaves(topology, FSID_A, text), "");
        assert_int_equal(topology->osds[0].n_leaves, 0);
        assert_true(topology->hosts[0].has_osds);
}

static void no_facts_make_an_empty_topology(void **state)
{
        CLEANUP(topology) struct topology *topology = NULL;
        struct id id = {0};
        uint32_t found;
        (void)state;

        assert_int_equal(topology_new(NULL, 0, &topology), 0);
        assert_int_equal(topology->n_clusters, 0);
        assert_int_equal(topology_find_cluster(topology, &id, &found), -ENOENT);
        assert_int_equal(topology_find_host(topology, &id, &found), -ENOENT);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(counts_the_device_that_the_osd_names_and_nothing_around_it),
                cmocka_unit_test(a_partition_and_its_disk_are_counted_once),
                cmocka_unit_test(the_members_of_an_array_are_not_added_to_it),
                cmocka_unit_test(a_path_of_an_nvme_namespace_is_never_counted),
                cmocka_unit_test(a_head_counts_itself_where_the_kernel_does),
                cmocka_unit_test(the_paths_count_for_a_head_that_the_kernel_does_not),
                cmocka_unit_test(a_partition_and_a_volume_of_an_uncounted_head_share_its_paths),
                cmocka_unit_test(a_db_device_of_several_osds_is_counted_once_and_called_shared),
                cmocka_unit_test(db_volumes_of_their_own_are_not_shared),
                cmocka_unit_test(one_device_for_block_and_db_of_one_osd_is_not_shared),
                cmocka_unit_test(both_clusters_of_one_host_have_an_osd_0_of_their_own),
                cmocka_unit_test(osds_find_their_host_by_short_or_full_name),
                cmocka_unit_test(an_equal_name_comes_before_a_short_one),
                cmocka_unit_test(a_host_without_osds_counts_its_whole_disks_under_none),
                cmocka_unit_test(an_identity_is_followed_when_its_name_moves),
                cmocka_unit_test(of_two_hosts_that_tell_about_a_cluster_the_fresher_is_believed),
                cmocka_unit_test(parents_in_a_circle_end),
                cmocka_unit_test(devices_that_the_host_does_not_have_leave_the_osd_without_leaves),
                cmocka_unit_test(no_facts_make_an_empty_topology),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
