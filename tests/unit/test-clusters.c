/* Several clusters at one agent: how they are configured, and how their rows share a block. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agentd/ceph-clusters.h"
#include "agentd/row-join.h"
#include "sample-fixture.h"

#define FSID "11111111-2222-3333-4444-555555555555"

static void a_name_and_a_keyring_stand_for_all_or_for_one_each(void **state)
{
        CLEANUP(str) char *message = NULL;
        struct ceph_clusters clusters;

        (void)state;
        assert_int_equal(
                ceph_clusters_parse("/etc/ceph/ceph.conf:/etc/ceph/backup.conf", "client.strata",
                        ":/etc/strata/backup.keyring", &clusters, &message),
                0);
        assert_int_equal(clusters.n, 2);
        assert_string_equal(clusters.list[0].conf, "/etc/ceph/ceph.conf");
        assert_string_equal(clusters.list[1].conf, "/etc/ceph/backup.conf");
        assert_string_equal(clusters.list[0].name, "client.strata");
        assert_string_equal(clusters.list[1].name, "client.strata");
        assert_string_equal(clusters.list[0].keyring, "");
        assert_string_equal(clusters.list[1].keyring, "/etc/strata/backup.keyring");
        ceph_clusters_done(&clusters);
}

static void refuse(const char *conf, const char *name, const char *keyring, const char *sentence)
{
        CLEANUP(str) char *message = NULL;
        struct ceph_clusters clusters;

        assert_int_equal(ceph_clusters_parse(conf, name, keyring, &clusters, &message), -EINVAL);
        assert_string_equal(message, sentence);
        ceph_clusters_done(&clusters);
}

static void lists_that_do_not_fit_are_refused(void **state)
{
        (void)state;
        refuse("a:b:c", "x:y", "",
                "name 'x:y' has 2 values for 3 files in conf: one for all or one for each");
        refuse("a", "x", "k:l",
                "keyring 'k:l' has 2 values for 1 files in conf: one for all or one for each");
        refuse("a::b", "x", "", "conf 'a::b' has an empty name of a file");
        refuse("", "x", "", "conf '' has an empty name of a file");
        refuse("a:b", "x:", "", "name 'x:' has an empty name");
        refuse("1:2:3:4:5:6:7:8:9", "x", "", "conf names 9 files, but may name at most 8");
}

static void expect_fsid(const char *text, bool known)
{
        CLEANUP(str) char *message = NULL;
        struct ceph_clusters clusters;
        char path[] = "/tmp/strata-conf-XXXXXX";
        int fd = mkstemp(path);
        struct id fsid;

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
        id_parse(FSID, &fsid);
        assert_int_equal(ceph_clusters_parse(path, "x", "", &clusters, &message), 0);
        ceph_clusters_read_fsids(&clusters);
        unlink(path);
        assert_int_equal(id_equal(&clusters.list[0].fsid, &fsid), known);
        assert_int_equal(id_is_zero(&clusters.list[0].fsid), !known);
        ceph_clusters_done(&clusters);
}

static void the_fsid_is_read_from_the_configuration(void **state)
{
        (void)state;
        expect_fsid("[global]\n\tfsid = " FSID "\nmon_host = 10.0.0.1\n", true);
        expect_fsid("[global]\nmon_host = a\nFSID=\"" FSID "\" # ours\n", true);
        expect_fsid("[global]\n# fsid = " FSID "\n", false);
        expect_fsid("[global]\nfsid = something\n", false);
        expect_fsid("[global]\nfsid", false);
        expect_fsid("", false);
}

static void one_cluster_named_twice_is_refused(void **state)
{
        static char first[] = "a.conf", second[] = "b.conf";
        struct ceph_clusters clusters = {.list = {{.conf = first}, {.conf = second}}, .n = 2};
        CLEANUP(str) char *message = NULL;

        (void)state;
        assert_int_equal(ceph_clusters_check_fsids(&clusters, &message), 0); /* not known */
        id_parse(FSID, &clusters.list[0].fsid);
        assert_int_equal(ceph_clusters_check_fsids(&clusters, &message), 0);
        clusters.list[1].fsid = clusters.list[0].fsid;
        assert_int_equal(ceph_clusters_check_fsids(&clusters, &message), -EINVAL);
        assert_string_equal(
                message, "conf names the cluster " FSID " twice: in a.conf and in b.conf");
}

/* What was kept, and the row that was kept last. */
static struct world {
        struct row_join *join;
        struct fixture fixtures[2];
        struct plan_source plan;
        unsigned rows;
        uint64_t epoch;
        struct sample sample;
        uint8_t present[2 * FIXTURE_ENTITIES];
        uint64_t values[2 * FIXTURE_COLUMNS];
        bool has_names;
} world;

static void keep(void *userdata, const struct sampler_row *row)
{
        const struct sample *sample = row->sample;

        (void)userdata;
        world.rows++;
        world.epoch = row->epoch;
        world.sample = *sample;
        memset(world.present, 1, sizeof(world.present));
        if (sample->present)
                memcpy(world.present, sample->present, sample->n_entities);
        memcpy(world.values, sample->values, sample->n_columns * sizeof(*world.values));
        world.has_names = strcmp(sample->entities[0].name, "sda") == 0;
}

static int set_up(void **state)
{
        (void)state;
        memset(&world, 0, sizeof(world));
        world.plan.interval_us = 1000000;
        fixture_init(&world.fixtures[0]);
        fixture_init(&world.fixtures[1]);
        return row_join_new(keep, NULL, &world.join);
}

static int tear_down(void **state)
{
        (void)state;
        row_join_free(world.join);
        return 0;
}

/* The row of tick @tick, @late_us after it. */
static void add(uint32_t instance, uint64_t tick, uint64_t late_us)
{
        struct sampler_row row = {.source = SOURCE_CEPH,
                .instance = instance,
                .epoch = 3,
                .plan = &world.plan,
                .sample = &world.fixtures[instance].sample};

        fixture_set(&world.fixtures[instance], tick);
        memset(world.fixtures[instance].present, 1, FIXTURE_ENTITIES);
        world.fixtures[instance].sample.time_us = (int64_t)(tick * 1000000 + late_us);
        assert_int_equal(row_join_add(world.join, &row, tick * 1000000 + late_us), 0);
}

static void expect_present(bool first, bool second)
{
        assert_int_equal(world.sample.n_entities, 2 * FIXTURE_ENTITIES);
        for (uint32_t i = 0; i < 2 * FIXTURE_ENTITIES; i++)
                assert_int_equal(world.present[i], i < FIXTURE_ENTITIES ? first : second);
}

static void the_row_of_a_cluster_alone_stays_as_it_is(void **state)
{
        (void)state;
        for (uint64_t tick = 1; tick < 10; tick++) {
                add(1, tick, 5000);
                assert_int_equal(world.rows, tick);
                assert_ptr_equal(world.sample.values, world.fixtures[1].values);
                assert_int_equal(row_join_due(world.join), UINT64_MAX);
        }
}

static void two_clusters_have_one_row_a_tick(void **state)
{
        unsigned before;

        (void)state;
        add(0, 1, 5000);
        add(1, 1, 9000);
        before = world.rows;
        for (uint64_t tick = 2; tick < 50; tick++) {
                /* In either order. */
                add(tick % 2, tick, 5000);
                add(1 - tick % 2, tick, 9000);
                assert_int_equal(world.rows, before + tick - 1);
                expect_present(true, true);
                assert_int_equal(world.sample.time_us, tick * 1000000 + 9000);
                for (uint32_t i = 0; i < 2 * FIXTURE_COLUMNS; i++) {
                        assert_int_equal(world.values[i], fixture_value(tick, i % FIXTURE_COLUMNS));
                        assert_int_equal(world.sample.columns[i].entity, i / 2);
                }
        }
        assert_true(world.has_names);
}

static void one_that_dies_is_waited_for_once_and_not_for_long(void **state)
{
        (void)state;
        for (uint64_t tick = 1; tick < 4; tick++) {
                add(0, tick, 1000);
                add(1, tick, 2000);
        }
        world.rows = 0;
        add(0, 4, 1000);
        assert_int_equal(world.rows, 0);
        assert_int_equal(row_join_due(world.join), 4001000 + ROW_JOIN_HOLD_US);
        row_join_run(world.join, 4001000 + ROW_JOIN_HOLD_US - 1);
        assert_int_equal(world.rows, 0);
        row_join_run(world.join, 4001000 + ROW_JOIN_HOLD_US);
        assert_int_equal(world.rows, 1);
        expect_present(true, false);
        for (uint64_t tick = 5; tick < 10; tick++) {
                add(0, tick, 1000);
                assert_int_equal(world.rows, tick - 3);
        }
        /* It comes back: in a row of its own, then in the joined one. */
        add(1, 9, 400000);
        assert_int_equal(world.rows, 7);
        expect_present(false, true);
        add(1, 10, 1000);
        add(0, 10, 2000);
        assert_int_equal(world.rows, 8);
        expect_present(true, true);
}

static void a_row_that_nobody_completes_goes_with_the_next(void **state)
{
        (void)state;
        for (uint64_t tick = 1; tick < 4; tick++) {
                add(0, tick, 1000);
                add(1, tick, 2000);
        }
        world.rows = 0;
        add(0, 4, 1000);
        add(0, 5, 1000);
        assert_true(world.rows >= 1);
        expect_present(true, false);
        row_join_clear(world.join);
        assert_int_equal(world.rows, 2);
}

static void another_shape_of_one_is_another_shape_of_the_row(void **state)
{
        uint64_t epoch;

        (void)state;
        add(0, 1, 1000);
        add(1, 1, 2000);
        add(0, 2, 1000);
        add(1, 2, 2000);
        epoch = world.epoch;
        world.fixtures[1].sample.generation++;
        world.fixtures[1].sample.n_entities--;
        world.fixtures[1].sample.n_columns -= 2;
        add(1, 3, 1000);
        add(0, 3, 2000);
        assert_int_not_equal(world.epoch, epoch);
        assert_int_equal(world.sample.n_columns, 2 * FIXTURE_COLUMNS - 2);
        /* One that is no longer asked leaves no trace; the same numbers are not the same shape. */
        epoch = world.epoch;
        row_join_clear(world.join);
        add(1, 4, 1000);
        assert_int_equal(world.sample.n_columns, FIXTURE_COLUMNS - 2);
        assert_int_not_equal(world.epoch, epoch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_name_and_a_keyring_stand_for_all_or_for_one_each),
                cmocka_unit_test(lists_that_do_not_fit_are_refused),
                cmocka_unit_test(the_fsid_is_read_from_the_configuration),
                cmocka_unit_test(one_cluster_named_twice_is_refused),
                TEST(the_row_of_a_cluster_alone_stays_as_it_is),
                TEST(two_clusters_have_one_row_a_tick),
                TEST(one_that_dies_is_waited_for_once_and_not_for_long),
                TEST(a_row_that_nobody_completes_goes_with_the_next),
                TEST(another_shape_of_one_is_another_shape_of_the_row),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
