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

static int set_up(void **state)
{
        struct row_join *join;

        if (row_join_new(&join) < 0)
                return -1;
        *state = join;
        return 0;
}

static int tear_down(void **state)
{
        row_join_free(*state);
        return 0;
}

static struct sampler_row add(
        struct row_join *join, uint32_t instance, const struct sample *sample, uint64_t epoch)
{
        struct sampler_row row = {
                .source = SOURCE_CEPH, .instance = instance, .epoch = epoch, .sample = sample};
        struct sampler_row joined;

        assert_int_equal(row_join_add(join, &row, &joined), 0);
        return joined;
}

static void the_row_of_a_cluster_alone_stays_as_it_is(void **state)
{
        struct fixture fixture;
        struct sampler_row first, second;

        fixture_init(&fixture);
        first = add(*state, 1, &fixture.sample, 1);
        assert_ptr_equal(first.sample, &fixture.sample);
        second = add(*state, 1, &fixture.sample, 1);
        assert_ptr_equal(second.sample, &fixture.sample);
        assert_int_equal(first.epoch, second.epoch);
}

static void a_joined_row_has_all_entities_and_only_those_of_one_present(void **state)
{
        struct fixture fixtures[2];
        struct sampler_row row;

        for (int i = 0; i < 2; i++) {
                fixture_init(&fixtures[i]);
                fixture_set(&fixtures[i], 7 + i);
                for (uint32_t k = 0; k < FIXTURE_ENTITIES; k++)
                        fixtures[i].entities[k].cluster.bytes[0] = (uint8_t)(1 + i);
        }
        add(*state, 0, &fixtures[0].sample, 1);
        row = add(*state, 1, &fixtures[1].sample, 1);
        /* What a source gave is gone with its next row. */
        memset(fixtures[0].entities, 0x5a, sizeof(fixtures[0].entities));
        assert_int_equal(row.sample->n_entities, 2 * FIXTURE_ENTITIES);
        assert_int_equal(row.sample->n_columns, 2 * FIXTURE_COLUMNS);
        assert_int_equal(row.sample->time_us, fixtures[1].sample.time_us);
        for (uint32_t i = 0; i < 2 * FIXTURE_ENTITIES; i++) {
                assert_int_equal(row.sample->present[i], i >= FIXTURE_ENTITIES);
                assert_int_equal(
                        row.sample->entities[i].cluster.bytes[0], 1 + i / FIXTURE_ENTITIES);
        }
        for (uint32_t i = 0; i < FIXTURE_COLUMNS; i++) {
                assert_int_equal(row.sample->columns[FIXTURE_COLUMNS + i].entity,
                        FIXTURE_ENTITIES + fixtures[1].columns[i].entity);
                assert_int_equal(row.sample->values[FIXTURE_COLUMNS + i], fixture_value(8, i));
        }
        assert_string_equal(row.sample->entities[0].name, "sda");
}

static void another_shape_of_one_is_another_shape_of_the_row(void **state)
{
        struct fixture fixtures[2];
        struct sampler_row rows[4];

        fixture_init(&fixtures[0]);
        fixture_init(&fixtures[1]);
        rows[0] = add(*state, 0, &fixtures[0].sample, 3);
        rows[1] = add(*state, 1, &fixtures[1].sample, 3);
        assert_int_not_equal(rows[0].epoch, rows[1].epoch);
        rows[1] = add(*state, 0, &fixtures[0].sample, 3);
        fixtures[1].sample.generation++;
        fixtures[1].sample.n_entities--;
        fixtures[1].sample.n_columns -= 2;
        rows[2] = add(*state, 1, &fixtures[1].sample, 3);
        assert_int_not_equal(rows[1].epoch, rows[2].epoch);
        assert_int_equal(rows[2].sample->n_columns, 2 * FIXTURE_COLUMNS - 2);
        /* One that is no longer asked leaves no trace; the same numbers are not the same shape. */
        row_join_clear(*state);
        rows[3] = add(*state, 1, &fixtures[1].sample, 3);
        assert_ptr_equal(rows[3].sample, &fixtures[1].sample);
        assert_int_not_equal(rows[2].epoch, rows[3].epoch);
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
                TEST(a_joined_row_has_all_entities_and_only_those_of_one_present),
                TEST(another_shape_of_one_is_another_shape_of_the_row),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
