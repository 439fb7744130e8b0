#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/facts.h"

#define HOST "4a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
#define FSID "00000000-0000-0000-0000-00000000000f"

static const char good[] =
        "{\"host_id\":\"" HOST "\",\"hostname\":\"node1\",\"kernel\":\"6.1.0\","
        "\"agent_version\":\"0.1.0\",\"devices\":["
        "{\"name\":\"sda\",\"alias\":\"\",\"identity\":\"wwn:0x5000\",\"model\":\"M\","
        "\"serial\":\"S\",\"wwn\":\"0x5000\",\"kind\":\"disk\",\"major\":8,\"minor\":0,"
        "\"type\":\"nvme_head\",\"scheduler\":\"none\",\"write_cache\":\"write back\","
        "\"rotational\":true,\"uncounted\":true,\"size_bytes\":4000787030016,\"parents\":[],"
        "\"caches\":[\"sdc\"]},"
        "{\"name\":\"dm-3\",\"alias\":\"vg-osd\",\"kind\":\"dm\",\"parents\":[\"sda\",\"sdb\"]}],"
        "\"clusters\":[{\"fsid\":\"" FSID "\",\"name\":\"ceph\",\"health\":\"HEALTH_OK\","
        "\"release\":\"16.2.15\",\"mgr_stats_period\":5.0,\"kept\":false,"
        "\"osds\":[{\"id\":0,\"host\":\"node1\",\"device_class\":\"hdd\",\"up\":true,\"in\":true,"
        "\"rotational\":true,\"min_alloc_size\":4096,\"release\":\"16.2.15\",\"block\":[\"dm-3\"],"
        "\"db\":[],\"wal\":[]}],"
        "\"pools\":[{\"id\":2,\"name\":\"ec\",\"type\":\"erasure\",\"size\":3,\"k\":2,\"m\":1,"
        "\"stripe_unit\":4096,\"until_us\":0}],\"past_pools\":[{\"id\":1,\"name\":\"gone\","
        "\"type\":\"replicated\",\"size\":3,\"k\":0,\"m\":0,\"stripe_unit\":0,"
        "\"until_us\":1796027570000000}]}]}";

static json_t *load(const char *text)
{
        json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);

        assert_non_null(json);
        return json;
}

static void fails_with(json_t *json, const char *expected)
{
        CLEANUP(str) char *message = NULL;
        struct facts *facts = NULL;

        assert_int_equal(facts_from_json(json, &facts, &message), -EINVAL);
        assert_null(facts);
        assert_string_equal(message, expected);
        json_decref(json);
}

/* The good facts with @value at @list[0].@key; @value NULL removes the key. */
static json_t *changed(const char *list, const char *key, json_t *value)
{
        json_t *json = load(good), *target = json;

        if (*list && strcmp(list, "devices") != 0)
                target = json_array_get(json_object_get(json, "clusters"), 0);
        if (*list && strcmp(list, "clusters") != 0)
                target = json_array_get(json_object_get(target, list), 0);
        assert_true(json_is_object(target));
        if (value)
                json_object_set_new(target, key, value);
        else
                json_object_del(target, key);
        return json;
}

static void reads_every_field(void **state)
{
        CLEANUP(str) char *message = NULL;
        CLEANUP(facts) struct facts *facts = NULL;
        json_t *json = load(good);
        char text[ID_TEXT_MAX];
        size_t index;

        (void)state;
        assert_int_equal(facts_from_json(json, &facts, &message), 0);
        assert_null(message);
        json_decref(json);

        assert_string_equal(id_format(&facts->host_id, text), HOST);
        assert_string_equal(facts->hostname, "node1");
        assert_int_equal(facts->n_devices, 2);
        assert_int_equal(facts->devices[0].kind, DEVICE_DISK);
        assert_int_equal(facts->devices[0].size_bytes, 4000787030016);
        assert_true(facts->devices[0].rotational);
        assert_string_equal(facts->devices[0].identity, "wwn:0x5000");
        assert_string_equal(facts->devices[0].type, "nvme_head");
        assert_string_equal(facts->devices[0].scheduler, "none");
        assert_string_equal(facts->devices[0].write_cache, "write back");
        assert_true(facts->devices[0].uncounted);
        assert_string_equal(facts->devices[0].caches[0], "sdc");
        /* What is not said is empty, never NULL: older agents say less. */
        assert_string_equal(facts->devices[1].type, "");
        assert_string_equal(facts->devices[1].scheduler, "");
        assert_string_equal(facts->devices[1].write_cache, "");
        assert_false(facts->devices[1].uncounted);
        assert_int_equal(facts->devices[1].n_caches, 0);
        assert_string_equal(facts->devices[1].serial, "");
        assert_int_equal(facts->devices[1].n_parents, 2);
        assert_string_equal(facts->devices[1].parents[1], "sdb");
        assert_int_equal(facts_find_device(facts, "dm-3", &index), 0);
        assert_int_equal(index, 1);
        assert_int_equal(facts_find_device(facts, "sdz", &index), -ENOENT);

        assert_int_equal(facts->n_clusters, 1);
        assert_int_equal(facts->clusters[0].mgr_stats_period_us, 5000000);
        assert_int_equal(facts->clusters[0].n_osds, 1);
        assert_string_equal(facts->clusters[0].osds[0].block[0], "dm-3");
        assert_true(facts->clusters[0].osds[0].up);
        assert_int_equal(facts->clusters[0].osds[0].n_wal, 0);
        assert_int_equal(facts->clusters[0].n_pools, 1);
        assert_true(facts->clusters[0].pools[0].erasure);
        assert_int_equal(facts->clusters[0].pools[0].k, 2);
}

static void writes_what_it_read(void **state)
{
        CLEANUP(str) char *message = NULL;
        CLEANUP(facts) struct facts *facts = NULL;
        CLEANUP(facts) struct facts *back = NULL;
        json_t *json = load(good), *first, *second;
        uint64_t hash, back_hash;

        (void)state;
        assert_int_equal(facts_from_json(json, &facts, &message), 0);
        assert_int_equal(facts_to_json(facts, &first), 0);
        assert_true(json_equal(json_array_get(json_object_get(json, "clusters"), 0),
                json_array_get(json_object_get(first, "clusters"), 0)));
        assert_true(json_equal(json_array_get(json_object_get(json, "devices"), 0),
                json_array_get(json_object_get(first, "devices"), 0)));
        assert_int_equal(facts_from_json(first, &back, &message), 0);
        assert_int_equal(facts_to_json(back, &second), 0);
        assert_true(json_equal(first, second));

        assert_int_equal(facts_hash(facts, &hash), 0);
        assert_int_equal(facts_hash(back, &back_hash), 0);
        assert_true(hash == back_hash);
        json_decref(json);
        json_decref(first);
        json_decref(second);
}

static void hashes_the_same_facts_equal_in_every_run_and_others_not(void **state)
{
        CLEANUP(str) char *message = NULL;
        CLEANUP(facts) struct facts *facts = NULL;
        json_t *json = load(good);
        uint64_t hash, other;

        (void)state;
        assert_int_equal(facts_from_json(json, &facts, &message), 0);
        json_decref(json);
        assert_int_equal(facts_hash(facts, &hash), 0);
        facts->clusters[0].osds[0].up = false;
        assert_int_equal(facts_hash(facts, &other), 0);
        assert_true(hash != other);
        facts->clusters[0].osds[0].up = true;
        assert_int_equal(facts_hash(facts, &other), 0);
        assert_true(hash == other);
}

static void starts_empty(void **state)
{
        CLEANUP(facts) struct facts *facts = NULL;
        json_t *json = NULL;

        (void)state;
        assert_int_equal(facts_new(&facts), 0);
        assert_string_equal(facts->hostname, "");
        assert_true(id_is_zero(&facts->host_id));
        assert_int_equal(facts_to_json(facts, &json), 0);
        assert_int_equal(json_array_size(json_object_get(json, "devices")), 0);
        json_decref(json);
        assert_null(facts_free(NULL));
}

static void writes_names_that_are_not_utf8(void **state)
{
        CLEANUP(facts) struct facts *facts = NULL;
        json_t *json = NULL;

        (void)state;
        assert_int_equal(facts_new(&facts), 0);
        free(facts->hostname);
        facts->hostname = strdup("n\xff");
        assert_int_equal(facts_to_json(facts, &json), 0);
        assert_string_equal(json_string_value(json_object_get(json, "hostname")), "n?");
        json_decref(json);
}

static void names_the_field_that_is_missing(void **state)
{
        (void)state;
        fails_with(load("{}"), "host_id is missing");
        fails_with(load("{\"host_id\":\"" HOST "\"}"), "hostname is missing");
        fails_with(changed("devices", "name", NULL), "devices[0].name is missing");
        fails_with(changed("clusters", "fsid", NULL), "clusters[0].fsid is missing");
        fails_with(changed("osds", "id", NULL), "clusters[0].osds[0].id is missing");
        fails_with(changed("pools", "type", NULL), "clusters[0].pools[0].type is missing");
}

static void names_the_field_that_is_wrong(void **state)
{
        (void)state;
        fails_with(load("[]"), "facts must be an object");
        fails_with(changed("", "host_id", json_string("node1")), "host_id must be a UUID");
        fails_with(changed("", "hostname", json_integer(1)), "hostname must be text");
        fails_with(changed("", "devices", json_object()), "devices must be a list");
        fails_with(changed("devices", "kind", json_string("floppy")),
                "devices[0].kind must be a kind of device, such as \"disk\" or \"partition\"");
        fails_with(changed("devices", "major", json_integer(-1)),
                "devices[0].major must be a whole number from 0 to 4294967295");
        fails_with(changed("devices", "major", json_integer(4294967296)),
                "devices[0].major must be a whole number from 0 to 4294967295");
        fails_with(changed("devices", "size_bytes", json_real(1.5)),
                "devices[0].size_bytes must be a whole number from 0 to 9223372036854775807");
        fails_with(changed("devices", "rotational", json_integer(1)),
                "devices[0].rotational must be true or false");
        fails_with(changed("devices", "parents", json_pack("[s,i]", "sda", 1)),
                "devices[0].parents[1] must be text");
        fails_with(changed("clusters", "mgr_stats_period", json_real(-1)),
                "clusters[0].mgr_stats_period must be a number of seconds from 0 to 86400");
        fails_with(changed("pools", "type", json_string("mirror")),
                "clusters[0].pools[0].type must be \"replicated\" or \"erasure\"");
        fails_with(
                changed("osds", "block", json_null()), "clusters[0].osds[0].block must be a list");
}

static void bounds_lists_and_texts(void **state)
{
        json_t *list = json_array();
        char text[1026];

        (void)state;
        for (unsigned i = 0; i <= FACTS_PARENTS_MAX; i++)
                json_array_append_new(list, json_string("sda"));
        fails_with(changed("devices", "parents", list),
                "devices[0].parents must have at most 256 elements");

        list = json_array();
        for (unsigned i = 0; i <= FACTS_CLUSTERS_MAX; i++)
                json_array_append_new(list, json_object());
        fails_with(changed("", "clusters", list), "clusters must have at most 64 elements");

        memset(text, 'x', 1025);
        text[1025] = '\0';
        fails_with(changed("devices", "model", json_string(text)),
                "devices[0].model is longer than 1024 bytes");
}

static void ignores_fields_that_a_newer_agent_may_send(void **state)
{
        CLEANUP(str) char *message = NULL;
        CLEANUP(facts) struct facts *facts = NULL;
        json_t *json = changed("devices", "colour", json_string("grey"));

        (void)state;
        assert_int_equal(facts_from_json(json, &facts, &message), 0);
        json_decref(json);
}

/* What remains after a cut: lists that end early, objects without their last fields. */
static void refuses_a_cut_object(void **state)
{
        (void)state;
        fails_with(load("{\"host_id\":\"" HOST "\",\"hostname\":\"n\",\"devices\":[{}]}"),
                "devices[0].name is missing");
        fails_with(load("{\"host_id\":\"" HOST "\",\"hostname\":\"n\",\"devices\":[null]}"),
                "devices[0] must be an object");
        fails_with(changed("clusters", "mgr_stats_period", NULL),
                "clusters[0].mgr_stats_period is missing");
}

static void knows_the_name_of_every_kind(void **state)
{
        (void)state;
        for (int i = DEVICE_DISK; i <= DEVICE_OTHER; i++) {
                enum device_kind kind = DEVICE_OTHER;

                assert_int_equal(
                        device_kind_parse(device_kind_name((enum device_kind)i), &kind), 0);
                assert_int_equal(kind, i);
        }
        assert_int_equal(device_kind_parse("", &(enum device_kind){0}), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_every_field),
                cmocka_unit_test(writes_what_it_read),
                cmocka_unit_test(hashes_the_same_facts_equal_in_every_run_and_others_not),
                cmocka_unit_test(starts_empty),
                cmocka_unit_test(writes_names_that_are_not_utf8),
                cmocka_unit_test(names_the_field_that_is_missing),
                cmocka_unit_test(names_the_field_that_is_wrong),
                cmocka_unit_test(bounds_lists_and_texts),
                cmocka_unit_test(ignores_fields_that_a_newer_agent_may_send),
                cmocka_unit_test(refuses_a_cut_object),
                cmocka_unit_test(knows_the_name_of_every_kind),
        };

        return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
