#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agentd/device.h"

static void read_device(const char *tree, const char *name, struct device *ret)
{
        char root[4096];

        snprintf(root, sizeof(root), "%s/%s", getenv("STRATA_FIXTURES"), tree);
        assert_int_equal(device_read(root, name, 8, 1, ret), 0);
}

static void a_disk_is_known_by_its_wwn(void **state)
{
        CLEANUP(device) struct device device = {0};

        (void)state;
        read_device("stacked", "sda", &device);
        assert_int_equal(device.facts.kind, DEVICE_DISK);
        assert_string_equal(device.facts.identity, "naa.5000c500a1b2c3d4");
        assert_string_equal(device.facts.model, "ST4000NM0035-1V4");
        assert_true(device.facts.rotational);
        assert_true(device.facts.size_bytes == 7814037168u * 512u);
        assert_int_equal(device.sequence, 1);
        assert_int_equal(device.facts.n_parents, 0);
}

static void padding_of_vendors_becomes_one_blank(void **state)
{
        CLEANUP(device) struct device device = {0};

        (void)state;
        read_device("stacked", "sdb", &device);
        assert_string_equal(device.facts.identity, "t10.ATA WDC WD4002FYYZ-01B7CB1 NHG7XXXX");
}

static void a_disk_without_wwn_is_known_by_its_serial(void **state)
{
        CLEANUP(device) struct device device = {0};

        (void)state;
        read_device("stacked", "sdc", &device);
        assert_string_equal(device.facts.serial, "WD-WCC4E1234567");
        assert_string_equal(device.facts.identity, "WD-WCC4E1234567");
}

static void a_disk_without_both_is_known_by_its_numbers(void **state)
{
        CLEANUP(device) struct device device = {0};

        (void)state;
        read_device("stacked", "loop0", &device);
        assert_int_equal(device.facts.kind, DEVICE_LOOP);
        assert_string_equal(device.facts.identity, "8:1:12");
        assert_string_equal(device.facts.alias, "/srv/osd0.img");
}

static void a_partition_is_a_part_of_its_disk(void **state)
{
        CLEANUP(device) struct device device = {0};

        (void)state;
        read_device("stacked", "sda2", &device);
        assert_int_equal(device.facts.kind, DEVICE_PARTITION);
        assert_string_equal(device.facts.identity, "naa.5000c500a1b2c3d4-part2");
        assert_int_equal(device.facts.n_parents, 1);
        assert_string_equal(device.facts.parents[0], "sda");
        assert_true(device.facts.rotational);
        assert_int_equal(device.sequence, 1);
}

static void lvm_stands_on_crypt_and_crypt_on_a_partition(void **state)
{
        CLEANUP(device) struct device crypt = {0}, volume = {0};

        (void)state;
        read_device("stacked", "dm-0", &crypt);
        assert_int_equal(crypt.facts.kind, DEVICE_DM);
        assert_string_equal(crypt.facts.alias, "luks-osd0");
        assert_int_equal(crypt.facts.n_parents, 1);
        assert_string_equal(crypt.facts.parents[0], "sda2");
        read_device("stacked", "dm-1", &volume);
        assert_string_equal(volume.facts.alias, "ceph--1f2e-osd--block--7a6b");
        assert_string_equal(volume.facts.parents[0], "dm-0");
        assert_memory_equal(volume.facts.identity, "LVM-", 4);
}

static void an_array_stands_on_its_members_in_order(void **state)
{
        CLEANUP(device) struct device device = {0};

        (void)state;
        read_device("stacked", "md0", &device);
        assert_int_equal(device.facts.kind, DEVICE_MD);
        assert_int_equal(device.facts.n_parents, 2);
        assert_string_equal(device.facts.parents[0], "sdb1");
        assert_string_equal(device.facts.parents[1], "sdc1");
}

static void a_bcache_stands_on_its_backing_disk(void **state)
{
        CLEANUP(device) struct device device = {0};

        (void)state;
        read_device("stacked", "bcache0", &device);
        assert_int_equal(device.facts.kind, DEVICE_BCACHE);
        assert_string_equal(device.facts.parents[0], "sdf");
}

static void a_slash_in_a_name_is_found_in_sysfs(void **state)
{
        CLEANUP(device) struct device device = {0};

        (void)state;
        read_device("stacked", "cciss/c0d0", &device);
        assert_string_equal(device.facts.name, "cciss/c0d0");
        assert_string_equal(device.facts.model, "LOGICAL VOLUME");
}

static void a_path_of_nvme_is_told_from_its_head(void **state)
{
        CLEANUP(device) struct device head = {0}, path = {0};

        (void)state;
        read_device("nvme-multipath", "nvme0n1", &head);
        read_device("nvme-multipath", "nvme0c1n1", &path);
        assert_int_equal(head.facts.kind, DEVICE_DISK);
        assert_int_equal(path.facts.kind, DEVICE_NVME_PATH);
        assert_string_equal(head.facts.identity, "eui.0025385b71b0c3d4");
        assert_string_equal(path.facts.identity, "eui.0025385b71b0c3d4@nvme0c1n1");
        assert_string_equal(path.facts.wwn, head.facts.wwn);
        assert_string_equal(head.facts.model, "SAMSUNG MZQL23T8HCLS-00A07");
}

static void a_device_that_sysfs_lacks_is_described_all_the_same(void **state)
{
        static const char *const names[] = {"sdz", "..", ".", "../../etc", "a/../../b"};

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                CLEANUP(device) struct device device = {0};

                read_device("stacked", names[i], &device);
                assert_string_equal(device.facts.name, names[i]);
                assert_string_equal(device.facts.identity, "8:1:0");
                assert_string_equal(device.facts.alias, "");
        }
}

static void a_copy_is_equal_and_a_change_is_seen(void **state)
{
        CLEANUP(device) struct device device = {0}, copy = {0};

        (void)state;
        read_device("stacked", "md0", &device);
        assert_int_equal(device_copy_facts(&device, &copy.facts), 0);
        copy.sequence = device.sequence;
        assert_true(device_equal(&device, &copy));
        copy.facts.parents[1][0] = 'x';
        assert_false(device_equal(&device, &copy));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_disk_is_known_by_its_wwn),
                cmocka_unit_test(padding_of_vendors_becomes_one_blank),
                cmocka_unit_test(a_disk_without_wwn_is_known_by_its_serial),
                cmocka_unit_test(a_disk_without_both_is_known_by_its_numbers),
                cmocka_unit_test(a_partition_is_a_part_of_its_disk),
                cmocka_unit_test(lvm_stands_on_crypt_and_crypt_on_a_partition),
                cmocka_unit_test(an_array_stands_on_its_members_in_order),
                cmocka_unit_test(a_bcache_stands_on_its_backing_disk),
                cmocka_unit_test(a_slash_in_a_name_is_found_in_sysfs),
                cmocka_unit_test(a_path_of_nvme_is_told_from_its_head),
                cmocka_unit_test(a_device_that_sysfs_lacks_is_described_all_the_same),
                cmocka_unit_test(a_copy_is_equal_and_a_change_is_seen),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
