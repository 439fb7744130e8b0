/* Who the OSDs of a node are, and their counters. What hostile ones do is in test-osd-fault.c. */
#include <sys/prctl.h>

#include "osd-fixture.h"

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

/* The fake is a thread of this program, which takes the name of a thread that handles operations.
 */
static void the_kernel_tells_how_the_process_fares_for_a_cpu(void **state)
{
        struct fake fake;
        struct node node;
        char name[16];

        (void)state;
        assert_int_equal(prctl(PR_GET_NAME, name), 0);
        assert_int_equal(prctl(PR_SET_NAME, "tp_osd_tp"), 0);
        node_start(&node);
        fake_start(&fake, &node, 3);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(prctl(PR_SET_NAME, name), 0);
        assert_int_equal(node.sample.n_columns, 3 + 2);
        assert_true(value(&node, "osd.3", METRIC_OSD_RUN_TIME) > 0);
        assert_true(value(&node, "osd.3", METRIC_OSD_WAIT_TIME) >= 0);
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

/* Both have an osd.0: the key is the cluster's fsid, and each has its own series. */
static void two_clusters_on_one_host_keep_their_osd_0_apart(void **state)
{
        static const char *const clusters[] = {CLUSTER, "11111111-aaaa-4aaa-8aaa-111111111111"};
        struct fake fakes[2];
        struct node node;
        char path[128], text[ID_TEXT_MAX];

        (void)state;
        node_start(&node);
        for (unsigned i = 0; i < 2; i++) {
                snprintf(path, sizeof(path), "%s/%s", node.folder, clusters[i]);
                assert_int_equal(mkdir(path, 0700), 0);
                snprintf(path, sizeof(path), "%s/%s/ceph-osd.0.asok", node.folder, clusters[i]);
                fake_start_at(&fakes[i], path, 0);
                fakes[i].cluster = clusters[i];
                fakes[i].fsid = clusters[i];
                fakes[i].perf = i == 0 ? perf_first : perf_second;
        }
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.failures, 0);
        assert_int_equal(node.sample.n_entities, 2);
        assert_int_equal(node.sample.n_columns, 6);
        for (unsigned i = 0; i < 2; i++) {
                const struct block_entity *entity = &node.sample.entities[i];
                unsigned which = strcmp(id_format(&entity->cluster, text), CLUSTER) == 0 ? 0 : 1;

                assert_string_equal(entity->name, "osd.0");
                assert_string_equal(text, clusters[which]);
                for (uint32_t j = 0; j < node.sample.n_columns; j++)
                        if (node.sample.columns[j].entity == i &&
                                node.sample.columns[j].metric == METRIC_OSD_OP_W)
                                assert_int_equal(node.sample.values[j], 100 + which);
        }
        for (unsigned i = 0; i < 2; i++)
                fake_stop(&fakes[i]);
        node_stop(&node);
}

static void what_a_release_counts_wrongly_has_no_column_and_one_line(void **state)
{
        static const char dump[] =
                "{\"osd\":{\"op_w\":100},\"bluestore\":{\"bluestore_buffer_hit_bytes\":5}}";
        struct fake fake;
        struct node node;

        (void)state;
        for (unsigned i = 0; i < 2; i++) {
                node_start(&node);
                fake_start(&fake, &node, 0);
                fake.release = i == 0 ? "13.2.1" : "14.2.21";
                fake.perf = dump;
                node_open(&node, NULL);
                assert_int_equal(collect(&node), 0);
                assert_int_equal(collect(&node), 0);
                assert_int_equal(node.sample.n_columns, 1 + i);
                assert_int_equal(
                        value(&node, "osd.0", METRIC_BLUESTORE_BUFFER_HIT_BYTES), i == 0 ? -1 : 5);
                assert_int_equal(
                        strstr(node.lines, "buffer_hit_bytes is left out: in Ceph 13.2.1") != NULL,
                        i == 0);
                assert_null(strstr(node.lines, "has no counter for buffer_hit_bytes"));
                assert_int_equal(node.n_lines, i == 0 ? 2 : 1);
                fake_stop(&fake);
                node_stop(&node);
        }
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_osd_is_known_by_what_it_says_itself),
                cmocka_unit_test(the_kernel_tells_how_the_process_fares_for_a_cpu),
                cmocka_unit_test(who_it_is_is_asked_once_and_counters_each_time),
                cmocka_unit_test(counters_that_were_reset_are_another_instance),
                cmocka_unit_test(a_new_socket_is_asked_who_it_is),
                cmocka_unit_test(a_new_process_is_asked_who_it_is),
                cmocka_unit_test(counters_that_a_release_lacks_have_no_column),
                cmocka_unit_test(sockets_of_named_clusters_and_containers_are_found),
                cmocka_unit_test(two_clusters_on_one_host_keep_their_osd_0_apart),
                cmocka_unit_test(what_a_release_counts_wrongly_has_no_column_and_one_line),
                cmocka_unit_test(names_that_are_no_osd_are_passed_over),
                cmocka_unit_test(a_node_without_osds_is_no_failure),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
