#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agentd/ceph-facts.h"
#include "agentd/ceph-row.h"
#include "lib/metric.h"

static json_t *load(const char *name)
{
        static char text[1 << 20];
        char path[4096];
        size_t size;
        json_t *json;
        FILE *f;

        snprintf(path, sizeof(path), "%s/ceph/%s", getenv("STRATA_FIXTURES"), name);
        f = fopen(path, "r");
        assert_non_null(f);
        size = fread(text, 1, sizeof(text), f);
        fclose(f);
        json = ceph_json_load(text, size);
        assert_non_null(json);
        return json;
}

static void status_load(struct ceph_status *ret)
{
        json_t *json = load("status.json");

        assert_int_equal(ceph_status_parse(json, ret), 0);
        json_decref(json);
}

static struct ceph_pool *pools_load(size_t *ret_count)
{
        json_t *json = load("df.json");
        struct ceph_pool *pools;

        assert_int_equal(ceph_pools_parse(json, &pools, ret_count), 0);
        json_decref(json);
        return pools;
}

static void the_status_tells_what_moves_bytes_besides_clients(void **state)
{
        struct ceph_status status;

        (void)state;
        status_load(&status);
        assert_int_equal(status.pgs_scrubbing, 4);
        assert_int_equal(status.pgs_recovering, 6);
        assert_int_equal(status.pgs_snaptrim, 5);
        assert_int_equal(status.degraded_objects, 77);
        assert_string_equal(status.health, "HEALTH_WARN");
        assert_int_equal(status.health_level, 1);
        assert_true(status.mgr_available);
}

static void pools_are_read_in_the_order_of_ids(void **state)
{
        struct ceph_pool *pools;
        size_t n;

        (void)state;
        pools = pools_load(&n);
        assert_int_equal(n, 4);
        assert_string_equal(pools[2].name, "rbd");
        assert_int_equal(pools[2].id, 3);
        assert_int_equal(pools[2].values[0], 22601);
        assert_int_equal(pools[2].values[1], 688936960);
        assert_int_equal(pools[2].values[2], 24121);
        assert_int_equal(pools[2].values[3], 1415806976);
        assert_int_equal(pools[2].values[4], 847323328);
        assert_int_equal(pools[2].values[5], 687);
        free(pools);
}

static void a_number_of_two_to_the_63_is_read(void **state)
{
        static const char text[] =
                "{\"pools\":[{\"name\":\"a\",\"id\":1,\"stats\":{\"rd\":9223372036854775808,"
                "\"rd_bytes\":1024,\"wr\":3,\"wr_bytes\":18446744073709549568,\"stored\":0,"
                "\"objects\":1}}]}";
        struct ceph_pool *pools;
        json_t *json;
        size_t n;

        (void)state;
        json = ceph_json_load(text, strlen(text));
        assert_non_null(json);
        assert_int_equal(ceph_pools_parse(json, &pools, &n), 0);
        assert_true(pools[0].values[0] == UINT64_C(9223372036854775808));
        assert_int_equal(pools[0].values[1], 1024);
        assert_true(pools[0].values[3] == UINT64_C(18446744073709549568));
        free(pools);
        json_decref(json);
}

static void answers_that_lack_something_are_refused(void **state)
{
        static const char *const bad[] = {"null", "[]", "{}", "{\"pools\":{}}", "{\"pools\":[{}]}",
                "{\"pools\":[{\"name\":\"a\",\"id\":-1,\"stats\":{}}]}",
                "{\"pools\":[{\"name\":\"a\",\"id\":1,\"stats\":{\"rd\":1}}]}",
                "{\"pools\":[{\"name\":\"a\",\"id\":1,\"stats\":{\"rd\":-1,\"rd_bytes\":0,\"wr\":0,"
                "\"wr_bytes\":0,\"stored\":0,\"objects\":0}}]}"};
        static const char *const bad_status[] = {"null", "{}", "{\"fsid\":\"x\"}",
                "{\"fsid\":\"8626af4b-f01e-42db-a6a4-b4c4ad849419\",\"health\":{\"status\":"
                "\"HEALTH_OK\"},\"osdmap\":{}}"};

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                json_t *json = ceph_json_load(bad[i], strlen(bad[i]));
                struct ceph_pool *pools;
                size_t n;

                assert_int_equal(ceph_pools_parse(json, &pools, &n), -EBADMSG);
                json_decref(json);
        }
        for (size_t i = 0; i < sizeof(bad_status) / sizeof(bad_status[0]); i++) {
                json_t *json = ceph_json_load(bad_status[i], strlen(bad_status[i]));
                struct ceph_status status;

                assert_int_equal(ceph_status_parse(json, &status), -EBADMSG);
                json_decref(json);
        }
        assert_null(ceph_json_load("{\"a\":", 5));
}

static void nautilus_has_the_map_one_level_deeper(void **state)
{
        static const char text[] =
                "{\"fsid\":\"8626af4b-f01e-42db-a6a4-b4c4ad849419\",\"health\":{\"status\":"
                "\"HEALTH_ERR\"},\"osdmap\":{\"osdmap\":{\"epoch\":7}},\"mgrmap\":{\"available\":"
                "false}}";
        json_t *json = ceph_json_load(text, strlen(text));
        struct ceph_status status;

        (void)state;
        assert_int_equal(ceph_status_parse(json, &status), 0);
        assert_int_equal(status.osdmap_epoch, 7);
        assert_int_equal(status.health_level, 2);
        assert_int_equal(status.degraded_objects, 0);
        assert_false(status.mgr_available);
        json_decref(json);
}

static int64_t value(const struct ceph_row *row, const char *name, uint16_t metric)
{
        for (uint32_t i = 0; i < row->n_columns; i++)
                if (strcmp(row->entities[row->columns[i].entity].name, name) == 0 &&
                        row->columns[i].metric == metric)
                        return (int64_t)row->values[i];
        return -1;
}

static void a_row_has_an_entity_a_pool_and_one_for_the_cluster(void **state)
{
        struct ceph_row row = {0};
        struct ceph_status status;
        struct ceph_pool *pools;
        size_t n;

        (void)state;
        status_load(&status);
        pools = pools_load(&n);
        assert_int_equal(ceph_row_make(&row, &status, pools, n, 1000000), 0);
        assert_int_equal(row.n_entities, 5);
        assert_int_equal(row.n_columns, 4 * 6 + 6);
        assert_string_equal(row.entities[2].identity, "3");
        assert_int_equal(row.entities[2].instance, 3);
        assert_true(id_equal(&row.entities[2].cluster, &status.fsid));
        assert_int_equal(value(&row, "rbd", METRIC_POOL_WRITE_BYTES), 1415806976);
        assert_int_equal(value(&row, "cluster", METRIC_POOL_PGS_SCRUBBING), 4);
        assert_int_equal(value(&row, "cluster", METRIC_CLUSTER_HEALTH), 1);
        assert_int_equal(value(&row, "cluster", METRIC_CLUSTER_STATS_AGE), 0);
        for (uint32_t i = 1; i < row.n_columns; i++)
                assert_true(row.columns[i - 1].entity < row.columns[i].entity ||
                            row.columns[i - 1].metric < row.columns[i].metric);
        ceph_row_done(&row);
}

static void a_pool_that_comes_goes_or_is_renamed_makes_a_new_layout(void **state)
{
        struct ceph_row row = {0};
        struct ceph_status status;
        struct ceph_pool *pools;
        uint64_t generation;
        size_t n;

        (void)state;
        status_load(&status);
        pools = pools_load(&n);
        assert_int_equal(ceph_row_make(&row, &status, pools, n, 1), 0);
        generation = row.generation;
        pools = pools_load(&n);
        pools[1].values[3] += 4096;
        assert_int_equal(ceph_row_make(&row, &status, pools, n, 2), 0);
        assert_int_equal(row.generation, generation);
        pools = pools_load(&n);
        strcpy(pools[1].name, "other");
        pools[1].values[3] += 4096;
        assert_int_equal(ceph_row_make(&row, &status, pools, n, 3), 0);
        assert_int_equal(row.generation, generation + 1);
        pools = pools_load(&n);
        memmove(&pools[0], &pools[1], (n - 1) * sizeof(*pools));
        pools[0].values[3] += 4096;
        assert_int_equal(ceph_row_make(&row, &status, pools, n - 1, 4), 0);
        assert_int_equal(row.generation, generation + 2);
        assert_string_equal(row.entities[0].identity, "2");
        ceph_row_done(&row);
}

static void totals_that_go_down_are_another_instance(void **state)
{
        struct ceph_row row = {0};
        struct ceph_status status;
        struct ceph_pool *pools;
        uint64_t instance, other;
        size_t n;

        (void)state;
        status_load(&status);
        pools = pools_load(&n);
        assert_int_equal(ceph_row_make(&row, &status, pools, n, 1), 0);
        instance = row.entities[2].instance;
        other = row.entities[3].instance;
        pools = pools_load(&n);
        pools[2].values[3]--;
        pools[3].values[4]--; /* what is stored may go down */
        assert_int_equal(ceph_row_make(&row, &status, pools, n, 2), 0);
        assert_true(row.entities[2].instance != instance);
        assert_true(row.entities[3].instance == other);
        ceph_row_done(&row);
}

static void statistics_grow_old_while_no_manager_is_active(void **state)
{
        struct ceph_row row = {0};
        struct ceph_status status;
        struct ceph_pool *pools;
        size_t n;

        (void)state;
        status_load(&status);
        for (uint64_t now = 5; now <= 20; now += 5) {
                status.mgr_available = now == 5;
                pools = pools_load(&n);
                assert_int_equal(ceph_row_make(&row, &status, pools, n, now * 1000000), 0);
                assert_int_equal(
                        value(&row, "cluster", METRIC_CLUSTER_STATS_AGE), (now - 5) * 1000);
        }
        ceph_row_done(&row);
}

static void facts_make(struct facts *facts)
{
        struct ceph_status status;
        struct ceph_documents documents = {.status = &status, .name = "ceph", .release = "16.2.15"};
        json_t *dump = load("osd-dump.json"), *metadata = load("osd-metadata.json");
        json_t *tree = load("osd-tree.json"), *cluster;
        json_t *profiles =
                json_pack("{s:{s:s, s:s, s:s}}", "k2m1", "k", "2", "m", "1", "plugin", "jerasure");

        status_load(&status);
        documents.mgr_stats_period = 2.5;
        documents.osd_dump = dump;
        documents.osd_metadata = metadata;
        documents.osd_tree = tree;
        documents.profiles = profiles;
        assert_int_equal(ceph_facts_make(&documents, &cluster), 0);
        assert_int_equal(ceph_facts_add(cluster, facts), 0);
        json_decref(cluster);
        json_decref(profiles);
        json_decref(tree);
        json_decref(metadata);
        json_decref(dump);
}

static void facts_name_the_devices_as_the_kernel_does(void **state)
{
        CLEANUP(facts) struct facts *facts = NULL;
        const struct facts_osd *osds;

        (void)state;
        assert_int_equal(facts_new(&facts), 0);
        facts_make(facts);
        assert_int_equal(facts->n_clusters, 1);
        assert_int_equal(facts->clusters[0].n_osds, 3);
        osds = facts->clusters[0].osds;
        assert_int_equal(osds[0].n_block, 1);
        assert_string_equal(osds[0].block[0], "loop0");
        assert_int_equal(osds[0].n_db, 0);
        assert_string_equal(osds[1].block[0], "dm-3");
        assert_int_equal(osds[1].n_db, 1);
        assert_string_equal(osds[1].db[0], "nvme0n1p2");
        assert_int_equal(osds[1].n_wal, 0);
        assert_string_equal(osds[2].block[0], "sdc1");
        assert_int_equal(osds[2].n_db, 2);
        assert_string_equal(osds[2].db[0], "sdd");
        assert_string_equal(osds[2].db[1], "sde");
        assert_string_equal(osds[2].wal[0], "nvme0n1p3");
}

static void facts_tell_of_osds_and_pools(void **state)
{
        CLEANUP(facts) struct facts *facts = NULL;
        const struct facts_cluster *cluster;

        (void)state;
        assert_int_equal(facts_new(&facts), 0);
        facts_make(facts);
        cluster = &facts->clusters[0];
        assert_string_equal(cluster->name, "ceph");
        assert_string_equal(cluster->health, "HEALTH_WARN");
        assert_string_equal(cluster->release, "16.2.15");
        assert_int_equal(cluster->mgr_stats_period_us, 2500000);
        assert_string_equal(cluster->osds[0].host, "node1");
        assert_string_equal(cluster->osds[0].device_class, "hdd");
        assert_string_equal(cluster->osds[2].device_class, "ssd");
        assert_true(cluster->osds[0].up && cluster->osds[0].in && cluster->osds[0].rotational);
        assert_false(cluster->osds[2].up);
        assert_false(cluster->osds[2].rotational);
        assert_int_equal(cluster->osds[0].min_alloc_size, 4096);
        assert_int_equal(cluster->osds[2].min_alloc_size, 65536);
        assert_string_equal(cluster->osds[0].release, "16.2.15");
        assert_int_equal(cluster->n_pools, 4);
        assert_string_equal(cluster->pools[2].name, "rbd");
        assert_false(cluster->pools[2].erasure);
        assert_int_equal(cluster->pools[2].size, 3);
        assert_true(cluster->pools[3].erasure);
        assert_int_equal(cluster->pools[3].k, 2);
        assert_int_equal(cluster->pools[3].m, 1);
        assert_int_equal(cluster->pools[3].stripe_unit, 4096);
}

static void facts_do_without_what_the_monitor_does_not_tell(void **state)
{
        struct ceph_status status;
        struct ceph_documents documents = {
                .status = &status, .name = "ceph", .release = "", .mgr_stats_period = 5};
        CLEANUP(facts) struct facts *facts = NULL;
        json_t *dump = load("osd-dump.json"), *cluster;

        (void)state;
        status_load(&status);
        assert_int_equal(ceph_facts_make(&documents, &cluster), -EBADMSG);
        documents.osd_dump = dump;
        assert_int_equal(ceph_facts_make(&documents, &cluster), 0);
        assert_int_equal(facts_new(&facts), 0);
        assert_int_equal(ceph_facts_add(cluster, facts), 0);
        assert_int_equal(facts->clusters[0].n_osds, 3);
        assert_int_equal(facts->clusters[0].osds[1].n_block, 0);
        assert_int_equal(facts->clusters[0].pools[3].k, 0);
        json_decref(cluster);
        json_decref(dump);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_status_tells_what_moves_bytes_besides_clients),
                cmocka_unit_test(pools_are_read_in_the_order_of_ids),
                cmocka_unit_test(a_number_of_two_to_the_63_is_read),
                cmocka_unit_test(answers_that_lack_something_are_refused),
                cmocka_unit_test(nautilus_has_the_map_one_level_deeper),
                cmocka_unit_test(a_row_has_an_entity_a_pool_and_one_for_the_cluster),
                cmocka_unit_test(a_pool_that_comes_goes_or_is_renamed_makes_a_new_layout),
                cmocka_unit_test(totals_that_go_down_are_another_instance),
                cmocka_unit_test(statistics_grow_old_while_no_manager_is_active),
                cmocka_unit_test(facts_name_the_devices_as_the_kernel_does),
                cmocka_unit_test(facts_tell_of_osds_and_pools),
                cmocka_unit_test(facts_do_without_what_the_monitor_does_not_tell),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
