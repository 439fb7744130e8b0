/* What agents and operators send, from request to answer, on a real store with real blocks. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "collectord/ingest.h"
#include "collectord/roll.h"

#define HOST "7d6f3c1e-93a4-4a34-8f0e-0c2f5a1d9b11"
#define OTHER "1f0b7a52-5f6e-4c1d-a3b8-6b0d2c9e4f22"
#define CLUSTER "0b0e4b64-5a3c-4d2c-9f8e-2f1b3a6c7d8e"
#define SECOND INT64_C(1000000)
#define NOW (INT64_C(1796027577) * SECOND)
#define BODY_MAX 65536u

struct fixture {
        char folder[32];
        struct store *store;
        struct store_reader *reader;
        struct plan_list *plans;
        struct election *election;
        struct metrics metrics;
        struct block_encoder *encoder;
        uint8_t body[BODY_MAX];
        size_t size;
        const char *sources, *clusters, *revision, *token_host, *sent_at;
        struct roll *roll;
        uint64_t boot;
        int64_t age_us;
        uint64_t monotonic_us, interval_us;
};

static int set_up(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));
        char *message = NULL;

        *state = f;
        strcpy(f->folder, "/tmp/strata-ingest-XXXXXX");
        f->sources = "diskstats,osd";
        f->clusters = CLUSTER;
        f->boot = 9;
        f->revision = "0";
        f->sent_at = "1796027577250000";
        f->monotonic_us = 1000 * SECOND;
        f->interval_us = SECOND;
        if (!mkdtemp(f->folder) || store_open(f->folder, &f->store, &message) < 0 ||
                store_reader_open(f->folder, &f->reader) < 0 ||
                plan_list_new(f->reader, &f->plans) < 0 || election_new(&f->election) < 0 ||
                roll_new(&f->roll) < 0 || block_encoder_new(&f->encoder) < 0)
                return -1;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *f = *state;
        char command[64];

        store_reader_close(f->reader);
        store_close(f->store);
        plan_list_free(f->plans);
        election_free(f->election);
        roll_free(f->roll);
        block_encoder_free(f->encoder);
        snprintf(command, sizeof(command), "rm -r %s", f->folder);
        free(f);
        return system(command);
}

/* Appends a block of two rows to the body. */
static void add_block(struct fixture *f, const char *host, uint64_t sequence, uint64_t value,
        enum source_id source, uint16_t flags)
{
        struct block_entity entity = {.name = "sda", .identity = "wwn:0x1"};
        struct block_column column = {.entity = 0, .metric = METRIC_DISK_WRITE_OPS};
        int64_t times_us[] = {NOW - f->age_us - 2 * SECOND, NOW - f->age_us - SECOND};
        uint64_t values[] = {value, value + 8};
        struct block_rows rows = {
                .header = {.source = (uint16_t)source,
                        .flags = flags,
                        .sequence = sequence,
                        .interval_us = f->interval_us,
                        .boot.bytes = {(uint8_t)f->boot},
                        .rows = 2,
                        .first_us = times_us[0],
                        .last_us = times_us[1]},
                .entities = &entity,
                .n_entities = 1,
                .columns = &column,
                .n_columns = 1,
                .times_us = times_us,
                .values = values,
        };
        const uint8_t *bytes;
        size_t size;

        if (flags & BLOCK_FLAG_GAP) {
                rows.n_entities = 0;
                rows.n_columns = 0;
        }
        id_parse(host, &rows.header.host);
        assert_int_equal(block_encode(f->encoder, &rows, &bytes, &size), 0);
        assert_true(f->size + size <= BODY_MAX);
        memcpy(f->body + f->size, bytes, size);
        f->size += size;
}

/* One request through all steps; returns the status, and the answer's JSON unless @ret is NULL. */
static unsigned send(struct fixture *f, enum route_action action, const char *method,
        const char *path, json_t **ret)
{
        const struct api_parameter headers[] = {
                {"content-type", "application/vnd.strata.blocks"},
                {"strata-host", HOST},
                {"strata-plan-revision", f->revision},
                {"strata-sent-at", f->sent_at},
                {"strata-backlog", "42"},
                {"strata-sources", f->sources},
                {"strata-clusters", f->clusters},
        };
        struct api_request request = {
                .method = method,
                .path = path,
                .headers = headers,
                .n_headers = sizeof(headers) / sizeof(headers[0]),
                .body = f->body,
                .body_size = f->size,
                .role = API_ROLE_LOCAL,
                .now_us = NOW,
                .metrics = &f->metrics,
                .roll = f->roll,
        };
        struct api_response response = {0};
        struct ingest_change change;
        unsigned status;
        int r;

        if (f->token_host) {
                request.role = API_ROLE_AGENT;
                id_parse(f->token_host, &request.host);
        }
        r = ingest_check(&request, action, f->reader, &response, &change);
        assert_true(r >= 0);
        if (r == 0) {
                assert_int_equal(store_begin(f->store), 0);
                assert_int_equal(store_savepoint(f->store), 0);
                r = ingest_apply(&change, &request, &response, f->store);
                assert_true(r >= 0);
                assert_int_equal(r == 1 ? store_savepoint_rollback(f->store)
                                        : store_savepoint_release(f->store),
                        0);
                assert_int_equal(store_commit(f->store), 0);
                if (r == 0)
                        assert_int_equal(ingest_answer(&change, &request, &response, f->plans,
                                                 f->election, f->monotonic_us),
                                0);
        }
        status = response.status;
        if (ret)
                *ret = json_loadb(response.body ? response.body : "", response.body_size, 0, NULL);
        ingest_change_done(&change);
        api_response_done(&response);
        f->size = 0;
        return status;
}

static unsigned send_blocks(struct fixture *f, json_t **ret)
{
        return send(f, ROUTE_PUT_BLOCKS, "POST", "/api/v1/blocks", ret);
}

static json_int_t number(json_t *json, const char *name)
{
        assert_true(json_is_integer(json_object_get(json, name)));
        return json_integer_value(json_object_get(json, name));
}

static void expect_accepted(struct fixture *f, int accepted, int duplicates)
{
        json_t *answer;

        assert_int_equal(send_blocks(f, &answer), 200);
        assert_int_equal(number(answer, "accepted"), accepted);
        assert_int_equal(number(answer, "duplicates"), duplicates);
        json_decref(answer);
}

/* A refusal that names a block (or none, with @block < 0) and says @words. */
static void expect_refusal(struct fixture *f, unsigned status, int block, const char *words)
{
        json_t *answer;
        const char *detail;

        assert_int_equal(send_blocks(f, &answer), status);
        detail = json_string_value(json_object_get(answer, "detail"));
        if (!detail || !strstr(detail, words))
                fail_msg("'%s' does not say '%s'", detail, words);
        if (block >= 0)
                assert_int_equal(number(answer, "block"), block);
        json_decref(answer);
}

static int count_block(void *userdata, const struct store_block *block)
{
        (void)block;
        ++*(int *)userdata;
        return 0;
}

static int count_blocks(struct fixture *f)
{
        int n = 0;

        assert_int_equal(
                store_read_blocks(f->reader, SOURCE_DISKSTATS, NULL, 0, NOW, 0, count_block, &n),
                0);
        return n;
}

static void stores_blocks_once_however_often_they_come(void **state)
{
        struct fixture *f = *state;

        add_block(f, HOST, 1, 100, SOURCE_DISKSTATS, 0);
        add_block(f, HOST, 2, 200, SOURCE_DISKSTATS, 0);
        expect_accepted(f, 2, 0);
        add_block(f, HOST, 2, 200, SOURCE_DISKSTATS, 0);
        add_block(f, HOST, 3, 300, SOURCE_DISKSTATS, 0);
        expect_accepted(f, 1, 1);
        assert_int_equal(count_blocks(f), 3);
        assert_int_equal(metrics_get(&f->metrics, blocks), 3);
        assert_int_equal(metrics_get(&f->metrics, rows), 6);
        assert_int_equal(metrics_get(&f->metrics, duplicates), 1);
}

static void refuses_other_content_under_a_known_name_and_stores_nothing_of_it(void **state)
{
        struct fixture *f = *state;

        add_block(f, HOST, 1, 100, SOURCE_DISKSTATS, 0);
        expect_accepted(f, 1, 0);
        add_block(f, HOST, 2, 200, SOURCE_DISKSTATS, 0);
        add_block(f, HOST, 1, 999, SOURCE_DISKSTATS, 0);
        expect_refusal(f, 409, 1, "other content");
        assert_int_equal(count_blocks(f), 1);
        assert_int_equal(metrics_get(&f->metrics, rejected[METRICS_REASON_conflict]), 1);
        assert_int_equal(metrics_get(&f->metrics, blocks), 1);
}

static void counts_gaps_apart(void **state)
{
        struct fixture *f = *state;

        add_block(f, HOST, 1, 0, SOURCE_DISKSTATS, BLOCK_FLAG_GAP);
        expect_accepted(f, 1, 0);
        add_block(f, HOST, 1, 0, SOURCE_DISKSTATS, BLOCK_FLAG_GAP);
        expect_accepted(f, 0, 1);
        assert_int_equal(count_blocks(f), 0);
        assert_int_equal(metrics_get(&f->metrics, gaps), 1);
        assert_int_equal(metrics_get(&f->metrics, gap_rows), 2);
        assert_int_equal(metrics_get(&f->metrics, blocks), 0);
}

static void refuses_bytes_that_are_no_block_as_a_whole(void **state)
{
        struct fixture *f = *state;
        size_t first;

        expect_refusal(f, 400, -1, "no block");
        f->size = 300;
        memset(f->body, 'x', f->size);
        expect_refusal(f, 400, 0, "damaged");

        add_block(f, HOST, 1, 100, SOURCE_DISKSTATS, 0);
        first = f->size;
        add_block(f, HOST, 2, 200, SOURCE_DISKSTATS, 0);
        f->size -= 1;
        expect_refusal(f, 400, 1, "cut");

        add_block(f, HOST, 1, 100, SOURCE_DISKSTATS, 0);
        add_block(f, HOST, 2, 200, SOURCE_DISKSTATS, 0);
        f->body[f->size - 1] ^= 1;
        expect_refusal(f, 400, 1, "damaged");

        add_block(f, HOST, 1, 100, SOURCE_DISKSTATS, 0);
        add_block(f, HOST, 2, 200, SOURCE_DISKSTATS, 0);
        f->body[first + 4] = 99; /* the version */
        expect_refusal(f, 415, 1, "version");
        assert_int_equal(count_blocks(f), 0);
}

static void refuses_what_belongs_to_another_host(void **state)
{
        struct fixture *f = *state;

        add_block(f, OTHER, 1, 100, SOURCE_DISKSTATS, 0);
        expect_refusal(f, 403, 0, "another host");
        f->token_host = OTHER;
        add_block(f, HOST, 1, 100, SOURCE_DISKSTATS, 0);
        expect_refusal(f, 403, -1, "another host");
        f->token_host = HOST;
        add_block(f, HOST, 1, 100, SOURCE_DISKSTATS, 0);
        expect_accepted(f, 1, 0);
        assert_int_equal(metrics_get(&f->metrics, rejected[METRICS_REASON_host]), 2);
}

static void refuses_a_source_and_headers_that_it_does_not_know(void **state)
{
        struct fixture *f = *state;

        add_block(f, HOST, 1, 100, (enum source_id)77, 0);
        expect_refusal(f, 400, 0, "unknown source: 77");
        f->revision = "seven";
        add_block(f, HOST, 1, 100, SOURCE_DISKSTATS, 0);
        expect_refusal(f, 400, -1, "strata-plan-revision must be a whole number, but is 'seven'");
}

static void refuses_an_interval_that_no_query_could_count_with(void **state)
{
        struct fixture *f = *state;

        f->interval_us = INT64_MAX;
        add_block(f, HOST, 1, 100, SOURCE_DISKSTATS, 0);
        expect_refusal(f, 400, 0, "an interval that cannot be: 9223372036854775807 us");
        f->interval_us = 3600 * SECOND;
        add_block(f, HOST, 1, 100, SOURCE_DISKSTATS, 0);
        expect_accepted(f, 1, 0);
}

static int see_agent(void *userdata, const struct store_agent *agent)
{
        *(struct store_agent *)userdata = *agent;
        return 0;
}

static void keeps_what_an_agent_says_of_itself(void **state)
{
        struct fixture *f = *state;
        struct store_agent agent = {0};

        add_block(f, HOST, 1, 100, SOURCE_DISKSTATS, 0);
        expect_accepted(f, 1, 0);
        assert_int_equal(store_read_agents(f->reader, see_agent, &agent), 0);
        assert_int_equal(agent.clock_offset_us, 250000);
        assert_int_equal(agent.backlog_rows, 42);
        assert_int_equal(agent.last_seen_us, NOW);
}

static void does_not_count_with_a_clock_of_another_millennium(void **state)
{
        struct fixture *f = *state;
        struct store_agent agent = {0};

        f->sent_at = "999999999999999999";
        add_block(f, HOST, 1, 100, SOURCE_DISKSTATS, 0);
        expect_accepted(f, 1, 0);
        assert_int_equal(store_read_agents(f->reader, see_agent, &agent), 0);
        assert_int_equal(agent.clock_offset_us, INT64_MIN);
}

/* The plan of an answer: its revision, and whether `ceph` is on in it; -1 when there is none. */
static json_int_t answered_revision(struct fixture *f, uint64_t sequence, bool *ret_ceph)
{
        json_t *answer, *plan;
        json_int_t revision = -1;

        add_block(f, HOST, sequence, 100 * sequence, SOURCE_DISKSTATS, 0);
        assert_int_equal(send_blocks(f, &answer), 200);
        plan = json_object_get(answer, "plan");
        if (plan) {
                json_t *ceph = json_object_get(json_object_get(plan, "sources"), "ceph");

                revision = number(plan, "revision");
                *ret_ceph = json_is_true(json_object_get(ceph, "enabled"));
        }
        json_decref(answer);
        return revision;
}

static void put_plan(struct fixture *f, const char *path, const char *body, unsigned status)
{
        f->size = strlen(body);
        memcpy(f->body, body, f->size);
        assert_int_equal(send(f, ROUTE_PUT_PLAN, "PUT", path, NULL), status);
}

static void sends_the_plan_when_the_agent_has_another(void **state)
{
        struct fixture *f = *state;
        char text[32];
        json_int_t first, second;
        bool ceph = true;

        assert_int_equal(answered_revision(f, 1, &ceph), -1);
        put_plan(f, "/api/v1/plans/*", "{\"sources\":{\"diskstats\":{\"interval\":\"5s\"}}}", 200);
        first = answered_revision(f, 2, &ceph);
        assert_true(first > 0);
        assert_false(ceph); /* it is not able */
        snprintf(text, sizeof(text), "%lld", (long long)first);
        f->revision = text;
        assert_int_equal(answered_revision(f, 3, &ceph), -1);
        put_plan(f, "/api/v1/plans/" HOST, "{\"sources\":{\"diskstats\":{\"interval\":\"2s\"}}}",
                200);
        second = answered_revision(f, 4, &ceph);
        assert_true(second > first);
        assert_int_equal(send(f, ROUTE_DELETE_PLAN, "DELETE", "/api/v1/plans/" HOST, NULL), 204);
        f->revision = "99";
        assert_int_equal(answered_revision(f, 5, &ceph), first);
        assert_int_equal(send(f, ROUTE_DELETE_PLAN, "DELETE", "/api/v1/plans/" HOST, NULL), 404);
}

static void turns_the_ceph_source_on_only_where_it_was_elected(void **state)
{
        struct fixture *f = *state;
        struct election_voice other = {.interval_us = 10 * SECOND, .n_clusters = 1};
        struct election_result elected;
        bool ceph = false;
        json_int_t on, off;

        f->sources = "diskstats, osd, ceph";
        on = answered_revision(f, 1, &ceph);
        assert_true(on > 0 && ceph);
        /* Another agent takes the seat while this one is silent. */
        id_parse(OTHER, &other.host);
        id_parse(CLUSTER, &other.clusters[0]);
        f->monotonic_us += 20 * SECOND;
        election_hear(f->election, &other, f->monotonic_us, &elected);
        assert_int_equal(elected.n_clusters, 1);
        f->revision = "1";
        off = answered_revision(f, 2, &ceph);
        assert_true(off >= 0 && off != on);
        assert_false(ceph);
        /* Switched off for all: also on the elected one. */
        f->monotonic_us += 20 * SECOND;
        put_plan(f, "/api/v1/plans/*", "{\"sources\":{\"ceph\":{\"enabled\":false}}}", 200);
        ceph = true;
        assert_true(answered_revision(f, 3, &ceph) > 0);
        assert_false(ceph);
}

static void the_plan_names_the_clusters_that_the_agent_is_elected_for(void **state)
{
        struct fixture *f = *state;
        json_t *answer, *clusters;

        f->sources = "ceph";
        f->clusters = CLUSTER "!, unknown";
        f->revision = "1";
        add_block(f, HOST, 1, 5, SOURCE_OSD, 0);
        assert_int_equal(send_blocks(f, &answer), 200);
        clusters = json_object_get(
                json_object_get(
                        json_object_get(json_object_get(answer, "plan"), "sources"), "ceph"),
                "clusters");
        assert_int_equal(json_array_size(clusters), 2);
        assert_string_equal(json_string_value(json_array_get(clusters, 0)), CLUSTER);
        assert_string_equal(json_string_value(json_array_get(clusters, 1)), "unknown");
        json_decref(answer);
}

static void refuses_clusters_that_are_none(void **state)
{
        static const char *const wrong[] = {"ceph", CLUSTER "!!", "!",
                "unknown,unknown,unknown,unknown,unknown,unknown,unknown,unknown,unknown"};
        struct fixture *f = *state;

        f->sources = "ceph";
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                f->clusters = wrong[i];
                add_block(f, HOST, 1, 5, SOURCE_DISKSTATS, 0);
                assert_int_equal(send_blocks(f, NULL), 400);
        }
}

static void notices_two_machines_with_one_host_id(void **state)
{
        /* A reboot, and what waited in the spool; then two kernels take turns. */
        static const struct {
                uint64_t boot;
                int64_t age;
                bool cloned;
        } blocks[] = {{1, 90, false}, {2, 80, false}, {1, 85, false}, {2, 70, false},
                {3, 60, false}, {3, 50, false}, {2, 75, false}, {2, 40, true}, {3, 30, true}};
        struct fixture *f = *state;
        struct id host;

        id_parse(HOST, &host);
        for (uint64_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
                f->boot = blocks[i].boot;
                f->age_us = blocks[i].age * SECOND;
                add_block(f, HOST, 1 + i, 5, SOURCE_DISKSTATS, 0);
                expect_accepted(f, 1, 0);
                assert_int_equal(roll_is_cloned(f->roll, &host), blocks[i].cloned);
        }
        assert_int_equal(roll_count(f->roll), 1);
        assert_false(roll_is_cloned(f->roll, &(struct id){{77}}));
}

static void refuses_a_plan_that_does_not_validate_and_keeps_the_old_one(void **state)
{
        struct fixture *f = *state;
        uint64_t revision;
        char *json;

        put_plan(f, "/api/v1/plans/*", "{\"sources\":{\"diskstats\":{\"interval\":\"5s\"}}}", 200);
        put_plan(f, "/api/v1/plans/*", "{\"sources\":{\"diskstats\":{\"interval\":\"0s\"}}}", 400);
        put_plan(f, "/api/v1/plans/*", "[1,2]", 400);
        put_plan(f, "/api/v1/plans/*", "{\"sources\":7}", 400);
        put_plan(f, "/api/v1/plans/*", "{\"source\":{\"diskstats\":{\"interval\":\"2s\"}}}", 400);
        put_plan(f, "/api/v1/plans/*", "{", 400);
        put_plan(f, "/api/v1/plans/node1", "{}", 400);
        assert_int_equal(store_read_plan(f->reader, NULL, &json, &revision), 0);
        assert_int_equal(revision, 1);
        assert_non_null(strstr(json, "\"5s\""));
        free(json);
}

/* The fsid's facts as stored: -1 not there, 0 told, 1 kept. */
static int kept(struct fixture *f, const char *fsid)
{
        CLEANUP(str) char *text = NULL;
        struct id host;
        json_t *json, *clusters;
        int result = -1;

        id_parse(HOST, &host);
        assert_int_equal(store_read_host_facts(f->reader, &host, &text), 0);
        json = json_loads(text, 0, NULL);
        clusters = json_object_get(json, "clusters");
        for (size_t i = 0; i < json_array_size(clusters); i++) {
                json_t *cluster = json_array_get(clusters, i);

                if (strcmp(json_string_value(json_object_get(cluster, "fsid")), fsid) == 0)
                        result = json_is_true(json_object_get(cluster, "kept"));
        }
        json_decref(json);
        return result;
}

static void put_devices_and_clusters(struct fixture *f, const char *devices, const char *clusters)
{
        f->size = (size_t)snprintf((char *)f->body, BODY_MAX,
                "{\"host_id\":\"" HOST "\",\"hostname\":\"node1\",\"devices\":[%s],"
                "\"clusters\":[%s]}",
                devices, clusters);
        assert_int_equal(send(f, ROUTE_PUT_FACTS, "PUT", "/api/v1/facts/" HOST, NULL), 204);
}

static void put_facts(struct fixture *f, const char *clusters)
{
        put_devices_and_clusters(f, "", clusters);
}

static bool has_device(struct fixture *f, const char *name)
{
        CLEANUP(str) char *text = NULL;
        struct id host;
        json_t *json, *device;
        bool has = false;
        size_t i;

        assert_int_equal(id_parse(HOST, &host), 0);
        assert_int_equal(store_read_host_facts(f->reader, &host, &text), 0);
        json = json_loads(text, 0, NULL);
        json_array_foreach (json_object_get(json, "devices"), i, device)
                has |= strcmp(json_string_value(json_object_get(device, "name")), name) == 0;
        json_decref(json);
        return has;
}

/* Without its devices no OSD has a disk, and the storage layer no number. */
static void keeps_the_devices_while_an_agent_that_starts_has_not_read_them(void **state)
{
#define DEVICE_JSON(name) "{\"name\":\"" name "\",\"major\":8,\"minor\":0,\"kind\":\"disk\"}"
        struct fixture *f = *state;

        put_devices_and_clusters(f, DEVICE_JSON("sda"), "");
        assert_true(has_device(f, "sda"));
        put_facts(f, "");
        assert_true(has_device(f, "sda"));
        put_devices_and_clusters(f, DEVICE_JSON("sdb"), ""); /* it was pulled out */
        assert_false(has_device(f, "sda"));
        assert_true(has_device(f, "sdb"));
}

static void keeps_a_cluster_in_sight_while_its_agent_does_not_tell_it(void **state)
{
#define CLUSTER_JSON(fsid) "{\"fsid\":\"" fsid "\",\"name\":\"ceph\",\"mgr_stats_period\":5}"
        struct fixture *f = *state;

        f->sources = "ceph";
        f->clusters = CLUSTER "," OTHER;
        put_facts(f, CLUSTER_JSON(CLUSTER) "," CLUSTER_JSON(OTHER));
        assert_int_equal(kept(f, CLUSTER), 0);
        put_facts(f, ""); /* it starts */
        assert_int_equal(kept(f, CLUSTER), 1);
        assert_int_equal(kept(f, OTHER), 1);
        put_facts(f, CLUSTER_JSON(CLUSTER)); /* the other one is slower, or dead */
        assert_int_equal(kept(f, CLUSTER), 0);
        assert_int_equal(kept(f, OTHER), 1);
        f->clusters = CLUSTER; /* it is no longer configured */
        put_facts(f, "");
        assert_int_equal(kept(f, CLUSTER), 1);
        assert_int_equal(kept(f, OTHER), -1);
}

/* Of the first cluster in the stored facts: "id/size" of each past pool. */
static void read_past(struct fixture *f, char *ret, size_t size)
{
        struct id host;
        char *text;
        json_t *json, *pool;
        size_t i, used = 0;

        assert_int_equal(id_parse(HOST, &host), 0);
        assert_int_equal(store_read_host_facts(f->reader, &host, &text), 0);
        json = json_loads(text, 0, NULL);
        free(text);
        ret[0] = '\0';
        json_array_foreach (
                json_object_get(json_array_get(json_object_get(json, "clusters"), 0), "past_pools"),
                i, pool)
                used += (size_t)snprintf(ret + used, size - used, "%d/%d ",
                        (int)json_integer_value(json_object_get(pool, "id")),
                        (int)json_integer_value(json_object_get(pool, "size")));
        json_decref(json);
}

static void remembers_pools_that_are_gone_or_changed_and_believes_no_agent_about_them(void **state)
{
#define POOLS_JSON(pools)                                                                          \
        "{\"fsid\":\"" CLUSTER "\",\"name\":\"ceph\",\"mgr_stats_period\":5," pools "}"
#define POOL_JSON(id, size)                                                                        \
        "{\"id\":" id ",\"name\":\"p\",\"type\":\"replicated\",\"size\":" size "}"
        struct fixture *f = *state;
        char past[64];

        f->sources = "ceph";
        f->clusters = CLUSTER;
        put_facts(f, POOLS_JSON("\"pools\":[" POOL_JSON("1", "3") "," POOL_JSON("2", "2") "]"));
        read_past(f, past, sizeof(past));
        assert_string_equal(past, "");
        put_facts(f, POOLS_JSON("\"pools\":[" POOL_JSON("2", "2") "]"));
        read_past(f, past, sizeof(past));
        assert_string_equal(past, "1/3 ");
        put_facts(f, POOLS_JSON("\"pools\":[" POOL_JSON("2", "4") "]"));
        put_facts(f, ""); /* it starts */
        put_facts(f, POOLS_JSON("\"pools\":[" POOL_JSON("2", "4") "]"));
        read_past(f, past, sizeof(past));
        assert_string_equal(past, "1/3 2/2 ");
        f->size = (size_t)snprintf((char *)f->body, BODY_MAX,
                "{\"host_id\":\"" HOST "\",\"hostname\":\"node1\",\"devices\":[],"
                "\"clusters\":[" POOLS_JSON("\"past_pools\":[" POOL_JSON("2", "2") "]") "]}");
        assert_int_equal(send(f, ROUTE_PUT_FACTS, "PUT", "/api/v1/facts/" HOST, NULL), 400);
}

static void stores_facts_of_the_host_in_the_path_only(void **state)
{
        static const char body[] =
                "{\"host_id\":\"" HOST "\",\"hostname\":\"node1\",\"kernel\":\"6.1\","
                "\"agent_version\":\"0.1.0\",\"devices\":[],\"clusters\":[]}";
        struct fixture *f = *state;
        uint64_t version;

        f->size = strlen(body);
        memcpy(f->body, body, f->size);
        assert_int_equal(send(f, ROUTE_PUT_FACTS, "PUT", "/api/v1/facts/" HOST, NULL), 204);
        f->size = strlen(body);
        assert_int_equal(send(f, ROUTE_PUT_FACTS, "PUT", "/api/v1/facts/" OTHER, NULL), 400);
        f->size = strlen(body);
        f->token_host = OTHER;
        assert_int_equal(send(f, ROUTE_PUT_FACTS, "PUT", "/api/v1/facts/" HOST, NULL), 403);
        assert_int_equal(send(f, ROUTE_PUT_FACTS, "PUT", "/api/v1/facts/" OTHER, NULL), 400);
        assert_int_equal(store_read_facts_version(f->reader, &version), 0);
        assert_int_equal(version, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(stores_blocks_once_however_often_they_come),
                TEST(refuses_other_content_under_a_known_name_and_stores_nothing_of_it),
                TEST(counts_gaps_apart),
                TEST(refuses_bytes_that_are_no_block_as_a_whole),
                TEST(refuses_what_belongs_to_another_host),
                TEST(refuses_a_source_and_headers_that_it_does_not_know),
                TEST(refuses_an_interval_that_no_query_could_count_with),
                TEST(keeps_what_an_agent_says_of_itself),
                TEST(does_not_count_with_a_clock_of_another_millennium),
                TEST(sends_the_plan_when_the_agent_has_another),
                TEST(turns_the_ceph_source_on_only_where_it_was_elected),
                TEST(the_plan_names_the_clusters_that_the_agent_is_elected_for),
                TEST(refuses_clusters_that_are_none),
                TEST(notices_two_machines_with_one_host_id),
                TEST(keeps_the_devices_while_an_agent_that_starts_has_not_read_them),
                TEST(keeps_a_cluster_in_sight_while_its_agent_does_not_tell_it),
                TEST(refuses_a_plan_that_does_not_validate_and_keeps_the_old_one),
                TEST(remembers_pools_that_are_gone_or_changed_and_believes_no_agent_about_them),
                TEST(stores_facts_of_the_host_in_the_path_only),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
