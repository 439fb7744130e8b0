#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "collectord/api.h"
#include "collectord/ladder.h"
#include "collectord/layer-metrics.h"
#include "collectord/query.h"
#include "collectord/store.h"
#include "lib/block.h"
#include "tests/unit/folder-fixture.h"

/*
 * Blocks through the real store and the handlers: a cluster of two hosts with an OSD each and one
 * client that writes 1 MiB a second. Time 0 is T0; now is 100 s later.
 */
#define FSID "aaaaaaaa-0000-4000-8000-000000000001"
#define HOST_1 "11111111-0000-4000-8000-000000000001"
#define HOST_2 "22222222-0000-4000-8000-000000000002"
#define T0 INT64_C(1796027520)
#define SECOND INT64_C(1000000)
#define NOW ((T0 + 100) * SECOND)
#define MIB 1048576u

struct world {
        char folder[32];
        struct store *store;
        struct store_reader *reader;
        struct block_encoder *encoder;
        uint64_t sequence, rotten; /* the block of this sequence is stored with a changed byte */
};

static struct id make_id(const char *text)
{
        struct id id = {0};

        if (text)
                assert_int_equal(id_parse(text, &id), 0);
        return id;
}

static int begin(void **state)
{
        struct world *world = calloc(1, sizeof(*world));
        char *message = NULL;

        strcpy(world->folder, "/tmp/strata-query-XXXXXX");
        assert_non_null(mkdtemp(world->folder));
        if (store_open(world->folder, &world->store, &message) < 0)
                fail_msg("%s", message);
        assert_int_equal(block_encoder_new(&world->encoder), 0);
        *state = world;
        return 0;
}

static int end(void **state)
{
        struct world *world = *state;

        store_reader_close(world->reader);
        store_close(world->store);
        block_encoder_free(world->encoder);
        folder_remove(world->folder);
        free(world);
        return 0;
}

/* ---- writing ---- */

/* What a stream's columns are and what they grow by a second. */
struct stream {
        const char *host;
        enum source_id source;
        uint64_t interval; /* seconds */
        struct block_entity entities[3];
        uint32_t n_entities;
        struct block_column columns[48];
        uint64_t begin[48], rate[48];
        uint32_t n_columns;
};

static void add_entity(struct stream *stream, const char *name, const char *identity)
{
        stream->entities[stream->n_entities++] = (struct block_entity){
                .name = name,
                .identity = identity,
                .cluster = make_id(
                        source_is_of_osds(stream->source) || stream->source == SOURCE_CEPH ? FSID
                                                                                           : NULL),
                .instance = 1,
        };
}

static void add_column(struct stream *stream, uint16_t metric, uint64_t begin_value, uint64_t rate)
{
        uint32_t i = stream->n_columns++;

        stream->columns[i] = (struct block_column){stream->n_entities - 1, metric};
        stream->begin[i] = begin_value;
        stream->rate[i] = rate;
}

/* Rows at T0 + first, ..., T0 + last, every interval seconds, a block of at most 30 rows each. */
static void write_rows(struct world *world, const struct stream *stream, int first, int last)
{
        uint64_t values[30 * 48];
        int64_t times[30];

        assert_int_equal(store_begin(world->store), 0);
        for (int t = first; t <= last;) {
                struct block_rows rows = {
                        .header = {.cluster = stream->entities[0].cluster,
                                .host = make_id(stream->host),
                                .boot = make_id(stream->host),
                                .source = stream->source,
                                .sequence = ++world->sequence,
                                .interval_us = stream->interval * SECOND},
                        .entities = stream->entities,
                        .n_entities = stream->n_entities,
                        .columns = stream->columns,
                        .n_columns = stream->n_columns,
                        .times_us = times,
                        .values = values,
                };
                struct block_header header;
                const uint8_t *bytes;
                uint32_t n = 0;
                size_t size;

                for (; n < 30 && t <= last; n++, t += (int)stream->interval) {
                        times[n] = (T0 + t) * SECOND;
                        for (uint32_t i = 0; i < stream->n_columns; i++) {
                                uint64_t *value = &values[n * stream->n_columns + i];

                                *value = stream->begin[i] + stream->rate[i] * (uint64_t)t;
                                if (metric_get(stream->columns[i].metric)->width == 32)
                                        *value = (uint32_t)*value;
                        }
                }
                rows.header.rows = n;
                assert_int_equal(block_encode(world->encoder, &rows, &bytes, &size), 0);
                assert_int_equal(block_peek(bytes, size, &header, &size), 0);
                if (world->sequence == world->rotten)
                        ((uint8_t *)bytes)[size - 1] ^= 1;
                assert_int_equal(store_put_block(world->store, &header, bytes, size, NOW), 0);
        }
        assert_int_equal(store_commit(world->store), 0);
}

/* A write of 1 MiB is 1024 sectors of data and as much as @extra besides on each device. */
static struct stream disk_stream(const char *host, uint64_t extra)
{
        struct stream stream = {.host = host, .source = SOURCE_DISKSTATS, .interval = 1};

        add_entity(&stream, "sda", "wwn-a");
        add_column(&stream, METRIC_DISK_READ_OPS, 5, 0);
        add_column(&stream, METRIC_DISK_READ_SECTORS, 100, 0);
        add_column(&stream, METRIC_DISK_WRITE_OPS, 7, 10);
        add_column(&stream, METRIC_DISK_WRITE_SECTORS, 1000, 2048 + extra);
        add_column(&stream, METRIC_DISK_WRITE_TIME, 4294966000u, 50);
        /* The system's disk is nobody's leaf. */
        add_entity(&stream, "sdb", "wwn-b");
        add_column(&stream, METRIC_DISK_READ_OPS, 5, 1000);
        add_column(&stream, METRIC_DISK_READ_SECTORS, 100, 1000000);
        add_column(&stream, METRIC_DISK_WRITE_OPS, 7, 1000);
        add_column(&stream, METRIC_DISK_WRITE_SECTORS, 1000, 1000000);
        return stream;
}

static struct stream osd_stream(const char *host, const char *name)
{
        struct stream stream = {.host = host, .source = SOURCE_OSD, .interval = 1};

        add_entity(&stream, name, name);
        add_column(&stream, METRIC_OSD_OP_R, 0, 0);
        add_column(&stream, METRIC_OSD_OP_R_OUT_BYTES, 0, 0);
        add_column(&stream, METRIC_OSD_OP_W, 0, 8);
        add_column(&stream, METRIC_OSD_OP_W_IN_BYTES, 0, MIB / 4);
        add_column(&stream, METRIC_OSD_SUBOP_W, 0, 8);
        add_column(&stream, METRIC_OSD_SUBOP_W_IN_BYTES, 0, MIB / 2);
        add_column(&stream, METRIC_OSD_RECOVERY_BYTES, 0, 0);
        add_column(&stream, METRIC_OSD_OP_RW_IN_BYTES, 0, MIB / 4);
        add_column(&stream, METRIC_BLUESTORE_WRITE_BIG, 0, 16);
        add_column(&stream, METRIC_BLUESTORE_WRITE_BIG_BYTES, 0, MIB);
        add_column(&stream, METRIC_BLUESTORE_WRITE_SMALL, 0, 0);
        add_column(&stream, METRIC_BLUESTORE_WRITE_SMALL_BYTES, 0, 0);
        add_column(&stream, METRIC_BLUESTORE_DEFERRED_BYTES, 0, 0);
        add_column(&stream, METRIC_BLUESTORE_DEFERRED_SUBMITTED_BYTES, 0, 0);
        add_column(&stream, METRIC_BLUESTORE_BUFFER_MISS_BYTES, 0, 0);
        add_column(&stream, METRIC_BLUESTORE_READ_COUNT, 0, 0);
        add_column(&stream, METRIC_BLUEFS_WAL_BYTES, 0, MIB / 4);
        add_column(&stream, METRIC_BLUEFS_SST_BYTES, 0, 0);
        add_column(&stream, METRIC_BLUEFS_LOG_BYTES, 0, 0);
        return stream;
}

static struct stream pool_stream(const char *host)
{
        struct stream stream = {.host = host, .source = SOURCE_CEPH, .interval = 5};

        add_entity(&stream, "rbd", "2");
        add_column(&stream, METRIC_POOL_READ_OPS, 0, 0);
        add_column(&stream, METRIC_POOL_READ_BYTES, 0, 0);
        add_column(&stream, METRIC_POOL_WRITE_OPS, 0, 16);
        add_column(&stream, METRIC_POOL_WRITE_BYTES, 0, MIB);
        add_entity(&stream, "cluster", "");
        add_column(&stream, METRIC_POOL_PGS_SCRUBBING, 0, 0);
        add_column(&stream, METRIC_POOL_PGS_RECOVERING, 0, 0);
        add_column(&stream, METRIC_POOL_PGS_SNAPTRIM, 0, 0);
        return stream;
}

#define DISKS                                                                                      \
        "\"devices\":[{\"name\":\"sda\",\"identity\":\"wwn-a\",\"kind\":\"disk\"},"                \
        "{\"name\":\"sdb\",\"identity\":\"wwn-b\",\"kind\":\"disk\"}]"
#define POOLS(size) "[{\"id\":2,\"name\":\"rbd\",\"type\":\"replicated\",\"size\":" size "}]"
#define CLUSTERS(pools)                                                                            \
        "\"clusters\":[{\"fsid\":\"" FSID "\",\"name\":\"ceph\",\"health\":\"HEALTH_OK\","         \
        "\"release\":\"16.2.15\",\"mgr_stats_period\":5,\"osds\":["                                \
        "{\"id\":0,\"host\":\"node1\",\"device_class\":\"hdd\",\"up\":true,\"in\":true,"           \
        "\"block\":[\"sda\"]},"                                                                    \
        "{\"id\":1,\"host\":\"node2\",\"device_class\":\"ssd\",\"up\":true,\"in\":true,"           \
        "\"block\":[\"sda\"]}],\"pools\":" pools "}]"

static void put_facts(struct world *world, const char *host, const char *json)
{
        struct id id = make_id(host);

        assert_int_equal(store_begin(world->store), 0);
        assert_int_equal(store_put_facts(world->store, &id, json, NOW), 0);
        assert_int_equal(store_commit(world->store), 0);
}

static void put_two_hosts(struct world *world)
{
        put_facts(world, HOST_1,
                "{\"host_id\":\"" HOST_1 "\",\"hostname\":\"node1\"," DISKS
                "," CLUSTERS(POOLS("2")) "}");
        put_facts(world, HOST_2,
                "{\"host_id\":\"" HOST_2 "\",\"hostname\":\"node2\"," DISKS ",\"clusters\":[]}");
}

static void write_disks(struct world *world, uint64_t extra, int last)
{
        struct stream first = disk_stream(HOST_1, extra), second = disk_stream(HOST_2, extra);

        write_rows(world, &first, -5, last);
        write_rows(world, &second, -5, last);
}

static void write_osds(struct world *world, int last)
{
        struct stream first = osd_stream(HOST_1, "osd.0"), second = osd_stream(HOST_2, "osd.1");

        write_rows(world, &first, -5, last);
        write_rows(world, &second, -5, last);
}

static void write_pools(struct world *world, int last)
{
        struct stream pools = pool_stream(HOST_1);

        write_rows(world, &pools, -5, last);
}

static void make_usual(struct world *world)
{
        put_two_hosts(world);
        write_disks(world, 512, 100);
        write_osds(world, 100);
        write_pools(world, 100);
}

/* ---- asking ---- */

static struct api_response call(struct world *world, api_read_function function, const char *query)
{
        struct api_parameter parameters[16];
        char text[512], *save = NULL;
        struct api_request request = {
                .method = "GET", .path = "/api/v1/test", .parameters = parameters, .now_us = NOW};
        struct api_response response = {0};

        snprintf(text, sizeof(text), "%s", query);
        for (char *p = strtok_r(text, "&", &save); p; p = strtok_r(NULL, "&", &save)) {
                char *value = strchr(p, '=');

                *value = '\0';
                parameters[request.n_parameters++] = (struct api_parameter){p, value + 1};
        }
        if (!world->reader)
                assert_int_equal(store_reader_open(world->folder, &world->reader), 0);
        assert_int_equal(function(world->reader, &request, &response), 0);
        return response;
}

static json_t *ask(struct world *world, api_read_function function, const char *query)
{
        struct api_response response = call(world, function, query);
        json_t *json;

        if (response.status != 200)
                fail_msg("%u: %.*s", response.status, (int)response.body_size, response.body);
        json = json_loadb(response.body, response.body_size, 0, NULL);
        if (!json)
                fail_msg("no JSON: %.*s", (int)response.body_size, response.body);
        api_response_done(&response);
        return json;
}

static unsigned refused(
        struct world *world, api_read_function function, const char *query, const char *word)
{
        struct api_response response = call(world, function, query);
        unsigned status = response.status;
        json_t *json = json_loadb(response.body, response.body_size, 0, NULL);
        const char *detail = json_string_value(json_object_get(json, "detail"));

        if (!detail || !strstr(detail, word))
                fail_msg("'%s' does not say '%s'", detail, word);
        json_decref(json);
        api_response_done(&response);
        return status;
}

static json_t *one_series(json_t *answer, const char *key)
{
        json_t *series;
        size_t i;

        json_array_foreach (json_object_get(answer, "series"), i, series)
                if (strcmp(json_string_value(json_object_get(series, "key")), key) == 0)
                        return series;
        fail_msg("no series %s", key);
        return NULL;
}

static double number(json_t *series, const char *name, size_t i)
{
        json_t *value = json_array_get(json_object_get(series, name), i);

        return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *word(json_t *series, const char *name, size_t i)
{
        const char *text = json_string_value(json_array_get(json_object_get(series, name), i));

        return text ? text : "";
}

static size_t length(json_t *series)
{
        return json_array_size(json_object_get(series, "t"));
}

static void assert_close(double a, double b)
{
        if (!(fabs(a - b) < 1e-6 * (1 + fabs(b))))
                fail_msg("%.12g is not %.12g", a, b);
}

#define FROM_TO "from=1796027520&to=1796027620"

static void the_ratio_of_pools_and_leaf_devices_is_what_was_written(void **state)
{
        struct world *world = *state;
        json_t *answer, *series;

        make_usual(world);
        answer = ask(world, api_ratio, FROM_TO "&step=10s");
        series = one_series(answer, "cluster");
        assert_int_equal(length(series), 10);
        for (size_t i = 0; i < 10; i++) {
                assert_close(number(series, "t", i), (double)(T0 + 10 * (int64_t)i));
                assert_close(number(series, "upper", i), MIB);
                assert_close(number(series, "lower", i), 2.5 * MIB);
                assert_close(number(series, "ratio", i), 0.4);
                assert_close(number(series, "amplification", i), 2.5);
                assert_close(number(series, "expected", i), 2);
                assert_close(number(series, "excess", i), 1.25);
                assert_string_equal(word(series, "state", i), "ok");
                assert_true(json_is_null(json_array_get(json_object_get(series, "detail"), i)));
        }
        json_decref(answer);
}

static void a_step_below_two_report_periods_is_short(void **state)
{
        struct world *world = *state;
        json_t *answer, *series;

        make_usual(world);
        answer = ask(world, api_ratio, FROM_TO "&step=5s");
        series = one_series(answer, "cluster");
        assert_string_equal(word(series, "state", 3), "short");
        assert_close(number(series, "amplification", 3), 2.5);
        json_decref(answer);
        answer = ask(world, api_ratio, FROM_TO "&step=5s&upper=osd");
        assert_string_equal(word(one_series(answer, "cluster"), "state", 3), "ok");
        json_decref(answer);
}

static void windows_that_are_not_delivered_yet_are_left_out(void **state)
{
        struct world *world = *state;
        json_t *answer;

        put_two_hosts(world);
        write_disks(world, 512, 93);
        write_osds(world, 100);
        write_pools(world, 100);
        answer = ask(world, api_ratio, "from=-100s&step=10s");
        assert_int_equal(length(one_series(answer, "cluster")), 9);
        assert_string_equal(word(one_series(answer, "cluster"), "state", 8), "ok");
        json_decref(answer);
}

static void a_host_that_is_silent_for_long_makes_it_partial_with_how_many(void **state)
{
        struct world *world = *state;
        struct stream first = disk_stream(HOST_1, 512), second = disk_stream(HOST_2, 512);
        json_t *answer, *series;

        put_two_hosts(world);
        write_osds(world, 100);
        write_pools(world, 100);
        write_rows(world, &first, -5, 100);
        write_rows(world, &second, -5, 50);
        answer = ask(world, api_ratio, FROM_TO "&step=10s");
        series = one_series(answer, "cluster");
        assert_int_equal(length(series), 10);
        assert_string_equal(word(series, "state", 4), "ok");
        assert_string_equal(word(series, "state", 5), "partial");
        assert_string_equal(word(series, "detail", 5), "1 of 2 devices did not answer.");
        assert_close(number(series, "lower", 5), 1.25 * MIB);
        json_decref(answer);
}

static void a_rotten_block_is_a_gap_and_hides_nothing_else(void **state)
{
        struct world *world = *state;
        struct stream first = disk_stream(HOST_1, 512), second = disk_stream(HOST_2, 512);
        json_t *answer, *series;

        put_two_hosts(world);
        write_osds(world, 100);
        write_pools(world, 100);
        write_rows(world, &first, -5, 100);
        world->rotten = world->sequence + 2; /* 25 to 54 s */
        write_rows(world, &second, -5, 100);
        answer = ask(world, api_ratio, FROM_TO "&step=10s");
        series = one_series(answer, "cluster");
        assert_string_equal(word(series, "state", 1), "ok");
        assert_string_equal(word(series, "state", 3), "partial");
        assert_close(number(series, "lower", 3), 1.25 * MIB);
        assert_string_equal(word(series, "state", 6), "ok");
        json_decref(answer);
        assert_true(store_reader_take_rotten(world->reader) > 0);
        assert_int_equal(store_reader_take_rotten(world->reader), 0);
}

static void no_samples_are_a_gap_and_null(void **state)
{
        struct world *world = *state;
        json_t *answer, *series;

        put_two_hosts(world);
        write_disks(world, 512, 100);
        answer = ask(world, api_ratio, FROM_TO "&step=10s");
        series = one_series(answer, "cluster");
        assert_string_equal(word(series, "state", 0), "gap");
        assert_true(isnan(number(series, "upper", 0)));
        assert_true(isnan(number(series, "ratio", 0)));
        assert_close(number(series, "lower", 0), 2.5 * MIB);
        json_decref(answer);
}

/* An election, and 15 s in which both hosts deliver. */
static void check_election(struct world *world, const char *before, const char *after)
{
        struct stream pools = pool_stream(before), others = pool_stream(after);
        json_t *answer, *series;

        put_two_hosts(world);
        write_disks(world, 512, 100);
        write_osds(world, 100);
        write_rows(world, &pools, -5, 60);
        write_rows(world, &others, 45, 100);
        answer = ask(world, api_ratio, FROM_TO "&step=10s");
        series = one_series(answer, "cluster");
        assert_int_equal(length(series), 10);
        for (size_t i = 0; i < 10; i++) {
                assert_close(number(series, "upper", i), MIB);
                assert_string_equal(word(series, "state", i), "ok");
        }
        json_decref(answer);
}

static void two_hosts_that_deliver_the_pools_are_not_added(void **state)
{
        check_election(*state, HOST_1, HOST_2);
}

static void pools_go_on_with_a_host_that_the_store_lists_first(void **state)
{
        check_election(*state, HOST_2, HOST_1);
}

static void an_osd_that_restarts_is_a_reset_and_gives_what_was_seen(void **state)
{
        struct world *world = *state;
        struct stream stream = osd_stream(HOST_1, "osd.0"), other = osd_stream(HOST_2, "osd.1");
        json_t *answer, *series;

        put_two_hosts(world);
        write_disks(world, 512, 100);
        write_pools(world, 100);
        write_rows(world, &other, -5, 100);
        write_rows(world, &stream, -5, 54);
        stream.entities[0].instance = 2;
        write_rows(world, &stream, 55, 100); /* values go on: only the instance tells */
        answer = ask(world, api_ratio, FROM_TO "&step=10s&upper=osd&lower=storage&by=osd");
        series = one_series(answer, "osd.0");
        assert_string_equal(word(series, "state", 4), "ok");
        assert_close(number(series, "upper", 4), MIB);
        assert_string_equal(word(series, "state", 5), "reset");
        assert_close(number(series, "upper", 5), 0.9 * MIB);
        assert_string_equal(word(one_series(answer, "osd.1"), "state", 5), "ok");
        json_decref(answer);
}

static void recovery_contaminates_with_how_many_bytes(void **state)
{
        struct world *world = *state;
        struct stream first = osd_stream(HOST_1, "osd.0"), second = osd_stream(HOST_2, "osd.1");
        json_t *answer, *series;

        put_two_hosts(world);
        write_disks(world, 512, 100);
        write_pools(world, 100);
        first.rate[6] = 1000;
        write_rows(world, &first, -5, 100);
        write_rows(world, &second, -5, 100);
        answer = ask(world, api_ratio, FROM_TO "&step=10s");
        series = one_series(answer, "cluster");
        assert_string_equal(word(series, "state", 2), "contaminated");
        assert_string_equal(word(series, "detail", 2), "Recovery or backfill moved 10000 bytes.");
        json_decref(answer);
}

static void groups_have_a_series_each(void **state)
{
        struct world *world = *state;
        json_t *answer;

        make_usual(world);
        answer = ask(world, api_ratio, FROM_TO "&step=10s&upper=osd&lower=storage&by=class");
        assert_close(number(one_series(answer, "hdd"), "amplification", 0), 1.25);
        assert_close(number(one_series(answer, "ssd"), "expected", 0), 1);
        json_decref(answer);
        answer = ask(world, api_ratio, FROM_TO "&step=10s&upper=objectstore&lower=storage&by=host");
        assert_close(number(one_series(answer, "node2"), "amplification", 0), 1);
        json_decref(answer);
        answer = ask(world, api_ratio, FROM_TO "&step=10s&by=pool");
        assert_close(number(one_series(answer, "rbd"), "upper", 0), MIB);
        assert_close(number(one_series(answer, "rbd"), "expected", 0), 2);
        assert_true(isnan(number(one_series(answer, "rbd"), "lower", 0)));
        assert_string_equal(word(one_series(answer, "rbd"), "state", 0), "ok");
        json_decref(answer);
        answer = ask(world, api_ratio, FROM_TO "&step=10s&measure=ops");
        assert_close(number(one_series(answer, "cluster"), "ratio", 0), 16.0 / 20);
        assert_true(isnan(number(one_series(answer, "cluster"), "expected", 0)));
        json_decref(answer);
}

static void a_device_of_two_osds_is_counted_once_and_not_split(void **state)
{
        struct world *world = *state;
        struct stream disks = disk_stream(HOST_1, 512), osds = osd_stream(HOST_1, "osd.0");
        json_t *answer, *series;

        put_facts(world, HOST_1,
                "{\"host_id\":\"" HOST_1 "\",\"hostname\":\"node1\"," DISKS
                ",\"clusters\":[{\"fsid\":\"" FSID "\",\"name\":\"ceph\",\"mgr_stats_period\":5,"
                "\"osds\":[{\"id\":0,\"host\":\"node1\",\"up\":true,\"block\":[\"sda\"]},"
                "{\"id\":1,\"host\":\"node1\",\"up\":true,\"block\":[\"sda\"]}],\"pools\":[]}]}");
        write_rows(world, &disks, -5, 100);
        write_rows(world, &osds, -5, 100);
        answer = ask(world, api_ratio, FROM_TO "&step=10s&upper=osd&by=osd");
        series = one_series(answer, "osd.0");
        assert_string_equal(word(series, "state", 0), "gap");
        assert_non_null(strstr(word(series, "detail", 0), "cannot be split"));
        assert_true(isnan(number(series, "lower", 0)));
        json_decref(answer);
        answer = ask(world, api_ratio, FROM_TO "&step=10s&upper=osd&by=host");
        assert_close(number(one_series(answer, "node1"), "lower", 0), 1.25 * MIB);
        json_decref(answer);
        /* One of the two OSDs has an agent's samples: the other one is missing. */
        answer = ask(world, api_ratio, FROM_TO "&step=10s&upper=osd&by=device");
        series = one_series(answer, "node1/sda");
        assert_close(number(series, "lower", 0), 1.25 * MIB);
        assert_close(number(series, "upper", 0), MIB);
        assert_string_equal(word(series, "state", 0), "partial");
        json_decref(answer);
}

static void a_device_has_the_ratio_of_what_stands_on_it(void **state)
{
        struct world *world = *state;
        json_t *answer, *series;

        make_usual(world);
        answer = ask(world, api_ratio, FROM_TO "&step=10s&upper=osd&by=device");
        assert_int_equal(json_array_size(json_object_get(answer, "series")), 2);
        series = one_series(answer, "node2/sda");
        assert_string_equal(word(series, "state", 0), "ok");
        assert_close(number(series, "upper", 0), MIB);
        assert_close(number(series, "amplification", 0), 1.25);
        assert_close(number(series, "expected", 0), 1);
        json_decref(answer);
        answer = ask(
                world, api_ratio, FROM_TO "&step=10s&upper=osd&by=device&limit=1&cursor=node1/sda");
        assert_non_null(one_series(answer, "node2/sda"));
        json_decref(answer);
        assert_int_equal(refused(world, api_ratio, FROM_TO "&by=device", "by=device"), 400);
        assert_int_equal(refused(world, api_ratio, FROM_TO "&upper=osd&lower=objectstore&by=device",
                                 "storage"),
                400);
}

/* Which share of the OSD's bytes is meant for which of its devices, nobody configures. */
static void a_device_beside_another_of_its_osd_has_no_expected_value(void **state)
{
        struct world *world = *state;
        struct stream disks = disk_stream(HOST_1, 512), osds = osd_stream(HOST_1, "osd.0");
        json_t *answer;

        put_facts(world, HOST_1,
                "{\"host_id\":\"" HOST_1 "\",\"hostname\":\"node1\"," DISKS
                ",\"clusters\":[{\"fsid\":\"" FSID "\",\"name\":\"ceph\",\"mgr_stats_period\":5,"
                "\"osds\":[{\"id\":0,\"host\":\"node1\",\"up\":true,\"block\":[\"sda\"],"
                "\"db\":[\"sdb\"]}],\"pools\":[]}]}");
        write_rows(world, &disks, -5, 100);
        write_rows(world, &osds, -5, 100);
        answer = ask(world, api_ratio, FROM_TO "&step=10s&upper=osd&by=device");
        assert_close(number(one_series(answer, "node1/sda"), "amplification", 0), 1.25);
        assert_true(isnan(number(one_series(answer, "node1/sda"), "expected", 0)));
        assert_close(number(one_series(answer, "node1/sdb"), "lower", 0), 512000000);
        json_decref(answer);
}

static void what_the_store_wrote_has_the_compactions_of_its_journal_in_it(void **state)
{
        struct world *world = *state;
        struct stream osds = osd_stream(HOST_1, "osd.0");
        const double compaction = LADDER_COMPACTION_SHARED;
        json_t *answer;

        add_column(&osds, METRIC_BLUEFS_LOG_COMPACTIONS, 0, 2);
        put_two_hosts(world);
        write_disks(world, 512, 100);
        write_rows(world, &osds, -5, 100);
        write_pools(world, 100);
        answer = ask(world, api_series,
                "layer=objectstore&metric=write_bytes&by=osd&" FROM_TO "&step=10s");
        assert_close(number(one_series(answer, "osd.0"), "value", 0), 1.25 * MIB + 2 * compaction);
        json_decref(answer);
        answer = ask(world, api_ratio, FROM_TO "&step=10s&upper=osd&lower=objectstore&by=osd");
        assert_close(number(one_series(answer, "osd.0"), "lower", 0), 1.25 * MIB + 2 * compaction);
        json_decref(answer);
}

static void extremes_are_of_one_counter_of_one_entity(void **state)
{
        struct world *world = *state;
        struct stream slow = disk_stream(HOST_1, 0), fast = disk_stream(HOST_1, 0);
        json_t *answer, *series;

        /* From second 45 on twice as fast. */
        for (uint32_t i = 0; i < fast.n_columns; i++) {
                fast.begin[i] = slow.begin[i] - slow.rate[i] * 45;
                fast.rate[i] = 2 * slow.rate[i];
        }
        put_two_hosts(world);
        write_rows(world, &slow, -5, 45);
        write_rows(world, &fast, 46, 100);
        answer = ask(world, api_series,
                "layer=storage&metric=write_bytes,write_size&entity=node1/sda&extremes=yes&" FROM_TO
                "&step=10s");
        series = json_array_get(json_object_get(answer, "series"), 0);
        assert_close(number(series, "min", 3), MIB);
        assert_close(number(series, "max", 3), MIB);
        assert_close(number(series, "value", 4), 1.5 * MIB);
        assert_close(number(series, "min", 4), MIB);
        assert_close(number(series, "max", 4), 2 * MIB);
        assert_close(number(series, "min", 5), 2 * MIB);
        /* Not of a mean size. */
        series = json_array_get(json_object_get(answer, "series"), 1);
        assert_true(isnan(number(series, "min", 4)));
        json_decref(answer);
}

static void an_osd_0_of_another_cluster_is_not_ours(void **state)
{
        struct world *world = *state;
        struct stream other = osd_stream(HOST_1, "osd.0");
        json_t *answer;

        make_usual(world);
        other.entities[0].cluster = make_id("bbbbbbbb-0000-4000-8000-000000000002");
        for (uint32_t i = 0; i < other.n_columns; i++)
                other.rate[i] *= 100;
        write_rows(world, &other, -5, 100);
        answer = ask(world, api_series, "layer=osd&metric=write_bytes&" FROM_TO "&step=10s");
        assert_close(number(one_series(answer, "cluster"), "value", 0), 2 * MIB);
        json_decref(answer);
}

static void a_pool_that_was_deleted_keeps_its_bytes_and_nobody_knows_its_copies(void **state)
{
        struct world *world = *state;
        json_t *answer, *series;

        put_facts(world, HOST_1,
                "{\"host_id\":\"" HOST_1 "\",\"hostname\":\"node1\"," DISKS "," CLUSTERS("[]") "}");
        put_facts(world, HOST_2,
                "{\"host_id\":\"" HOST_2 "\",\"hostname\":\"node2\"," DISKS ",\"clusters\":[]}");
        write_disks(world, 512, 100);
        write_osds(world, 100);
        write_pools(world, 100);
        answer = ask(world, api_ratio, FROM_TO "&step=10s");
        series = one_series(answer, "cluster");
        assert_close(number(series, "amplification", 0), 2.5);
        assert_true(isnan(number(series, "expected", 0)));
        assert_string_equal(word(series, "detail", 0), "The redundancy of pool rbd is not known.");
        json_decref(answer);
}

static json_t *ladder_of(json_t *answer, const char *key)
{
        json_t *ladder;
        size_t i;

        json_array_foreach (json_object_get(answer, "ladders"), i, ladder)
                if (strcmp(json_string_value(json_object_get(ladder, "key")), key) == 0)
                        return json_object_get(ladder, "write");
        fail_msg("no ladder of %s", key);
        return NULL;
}

static double rung_bytes(json_t *side, size_t rung)
{
        json_t *bytes =
                json_object_get(json_array_get(json_object_get(side, "rungs"), rung), "bytes");

        return json_is_null(bytes) ? NAN : json_number_value(bytes);
}

#define PAST(pool) "[],\"past_pools\":[" pool "]"

static void a_pool_that_is_gone_since_keeps_what_was_expected_of_it(void **state)
{
        struct world *world = *state;
        json_t *answer, *series, *side;

        /* Deleted half way through the windows that are asked for. */
        put_facts(world, HOST_1,
                "{\"host_id\":\"" HOST_1 "\",\"hostname\":\"node1\"," DISKS
                "," CLUSTERS(PAST("{\"id\":2,\"name\":\"rbd\",\"type\":\"replicated\",\"size\":2,"
                                  "\"until_us\":1796027570000000}")) "}");
        put_facts(world, HOST_2,
                "{\"host_id\":\"" HOST_2 "\",\"hostname\":\"node2\"," DISKS ",\"clusters\":[]}");
        write_disks(world, 512, 100);
        write_osds(world, 100);
        write_pools(world, 100);
        answer = ask(world, api_ratio, FROM_TO "&step=10s");
        series = one_series(answer, "cluster");
        assert_close(number(series, "expected", 0), 2);
        assert_close(number(series, "expected", 4), 2);
        assert_true(isnan(number(series, "expected", 5)));
        json_decref(answer);
        answer = ask(world, api_ladder, FROM_TO);
        side = json_object_get(answer, "write");
        assert_close(json_number_value(json_object_get(side, "expected")), 2);
        json_decref(answer);
}

static void a_pool_whose_copies_changed_keeps_those_of_then(void **state)
{
        struct world *world = *state;
        json_t *answer, *series;

        make_usual(world);
        put_facts(world, HOST_1,
                "{\"host_id\":\"" HOST_1 "\",\"hostname\":\"node1\"," DISKS "," CLUSTERS(POOLS(
                        "3") ",\"past_pools\":[{\"id\":2,\"name\":\"rbd\",\"type\":"
                             "\"replicated\",\"size\":2,\"until_us\":1796027570000000}]") "}");
        answer = ask(world, api_ratio, FROM_TO "&step=10s");
        series = one_series(answer, "cluster");
        assert_close(number(series, "expected", 4), 2);
        assert_close(number(series, "expected", 5), 3);
        json_decref(answer);
}

/* ---- bad input: what is touched says so, the rest stays ---- */

static void a_profile_that_cannot_be_read_takes_only_what_is_expected(void **state)
{
        struct world *world = *state;
        json_t *answer, *side;

        make_usual(world);
        put_facts(world, HOST_1,
                "{\"host_id\":\"" HOST_1 "\",\"hostname\":\"node1\"," DISKS
                "," CLUSTERS("[{\"id\":2,\"name\":\"rbd\",\"type\":\"erasure\",\"size\":3}]") "}");
        answer = ask(world, api_ladder, FROM_TO);
        side = json_object_get(answer, "write");
        assert_close(json_number_value(json_object_get(side, "amplification")), 2.5);
        assert_true(json_is_null(json_object_get(side, "expected")));
        assert_true(json_is_null(json_object_get(side, "excess")));
        assert_non_null(strstr(json_string_value(json_object_get(side, "detail")),
                "The redundancy of pool rbd is not known."));
        assert_close(
                json_number_value(json_object_get(json_object_get(side, "unattributed"), "bytes")),
                0);
        json_decref(answer);
}

static void a_counter_that_goes_backwards_is_a_reset_of_its_osd_only(void **state)
{
        struct world *world = *state;
        struct stream first = osd_stream(HOST_1, "osd.0"), second = osd_stream(HOST_2, "osd.1");
        json_t *answer, *side;

        put_two_hosts(world);
        write_disks(world, 512, 100);
        write_pools(world, 100);
        write_rows(world, &second, -5, 100);
        write_rows(world, &first, -5, 49);
        /* As if it began anew without a new process: everything starts below where it was. */
        for (uint32_t i = 0; i < first.n_columns; i++)
                first.begin[i] = -first.rate[i] * 50;
        write_rows(world, &first, 50, 100);
        answer = ask(world, api_ladder, FROM_TO "&by=osd");
        side = ladder_of(answer, "osd.0");
        assert_string_equal(json_string_value(json_object_get(side, "state")), "reset");
        assert_non_null(strstr(json_string_value(json_object_get(side, "detail")),
                "Counters of 1 of 1 OSDs restarted in this window."));
        /* Only the second in which it happened is not known. */
        assert_close(rung_bytes(side, 1), 99.0 * MIB);
        assert_string_equal(
                json_string_value(json_object_get(ladder_of(answer, "osd.1"), "state")), "ok");
        assert_close(rung_bytes(ladder_of(answer, "osd.1"), 1), 100.0 * MIB);
        json_decref(answer);
}

static void an_osd_that_moved_is_where_it_is_now_and_its_old_device_is_nobodys(void **state)
{
        struct world *world = *state;
        struct stream first = osd_stream(HOST_1, "osd.0"), moved = osd_stream(HOST_2, "osd.0");
        json_t *answer, *side;

        put_facts(world, HOST_1,
                "{\"host_id\":\"" HOST_1 "\",\"hostname\":\"node1\"," DISKS
                ",\"clusters\":[{\"fsid\":\"" FSID "\",\"name\":\"ceph\",\"mgr_stats_period\":5,"
                "\"osds\":[{\"id\":0,\"host\":\"node2\",\"up\":true,\"block\":[\"sda\"]}],"
                "\"pools\":" POOLS("1") "}]}");
        put_facts(world, HOST_2,
                "{\"host_id\":\"" HOST_2 "\",\"hostname\":\"node2\"," DISKS ",\"clusters\":[]}");
        write_disks(world, 512, 100);
        write_pools(world, 100);
        write_rows(world, &first, -5, 49);
        write_rows(world, &moved, 52, 100);
        answer = ask(world, api_ladder, FROM_TO "&by=host");
        side = ladder_of(answer, "node2");
        assert_string_equal(json_string_value(json_object_get(side, "state")), "reset");
        assert_close(rung_bytes(side, 3), 125.0 * MIB);
        assert_int_equal(json_array_size(json_object_get(answer, "ladders")), 1);
        json_decref(answer);
}

static void a_clock_ten_minutes_off_leaves_the_other_host_alone(void **state)
{
        struct world *world = *state;
        struct stream disks = disk_stream(HOST_1, 512), other = disk_stream(HOST_2, 512);
        struct stream first = osd_stream(HOST_1, "osd.0"), second = osd_stream(HOST_2, "osd.1");
        json_t *answer, *side;

        put_two_hosts(world);
        write_pools(world, 100);
        write_rows(world, &disks, -5, 100);
        write_rows(world, &first, -5, 100);
        /* Its rows of these seconds carry times ten minutes earlier. */
        write_rows(world, &other, -605, -500);
        write_rows(world, &second, -605, -500);
        answer = ask(world, api_ladder, FROM_TO "&by=host");
        side = ladder_of(answer, "node1");
        assert_string_equal(json_string_value(json_object_get(side, "state")), "ok");
        assert_close(rung_bytes(side, 3), 125.0 * MIB);
        assert_string_equal(
                json_string_value(json_object_get(ladder_of(answer, "node2"), "state")), "gap");
        json_decref(answer);
        answer = ask(world, api_ladder, FROM_TO);
        side = json_object_get(answer, "write");
        assert_string_equal(json_string_value(json_object_get(side, "state")), "partial");
        assert_non_null(strstr(json_string_value(json_object_get(side, "detail")),
                "1 of 2 devices did not answer."));
        json_decref(answer);
}

static void a_host_without_a_cluster_has_a_storage_layer_only(void **state)
{
        struct world *world = *state;
        json_t *answer, *series;

        put_facts(world, HOST_1,
                "{\"host_id\":\"" HOST_1 "\",\"hostname\":\"node1\"," DISKS ",\"clusters\":[]}");
        write_disks(world, 0, 100);
        answer = ask(world, api_ratio, FROM_TO "&step=10s");
        assert_string_equal(json_string_value(json_object_get(answer, "cluster")), "none");
        series = one_series(answer, "cluster");
        assert_string_equal(word(series, "state", 0), "gap");
        assert_string_equal(word(series, "detail", 0),
                "These hosts have no Ceph cluster: there is only a storage layer.");
        assert_close(number(series, "lower", 0), (2048 + 1000000) * 512.0);
        json_decref(answer);
}

static void the_ladder_goes_down_from_pools_to_devices(void **state)
{
        struct world *world = *state;
        json_t *answer, *write, *rungs, *parts;
        const double bytes[] = {100.0 * MIB, 200.0 * MIB, 250.0 * MIB, 250.0 * MIB};

        make_usual(world);
        answer = ask(world, api_ladder, FROM_TO);
        write = json_object_get(answer, "write");
        rungs = json_object_get(write, "rungs");
        assert_int_equal(json_array_size(rungs), 4);
        for (size_t i = 0; i < 4; i++) {
                json_t *rung = json_array_get(rungs, i);

                assert_close(json_number_value(json_object_get(rung, "bytes")), bytes[i]);
                assert_close(json_number_value(json_object_get(rung, "bytes_per_second")),
                        bytes[i] / 100);
                assert_string_equal(json_string_value(json_object_get(rung, "state")), "ok");
        }
        parts = json_object_get(json_array_get(rungs, 3), "parts");
        assert_int_equal(json_array_size(parts), 2);
        assert_string_equal(
                json_string_value(json_object_get(json_array_get(parts, 0), "name")), "node1/sda");
        assert_close(
                json_number_value(json_object_get(json_object_get(write, "unattributed"), "bytes")),
                0);
        assert_close(json_number_value(json_object_get(write, "excess")), 1.25);
        assert_string_equal(json_string_value(json_object_get(
                                    json_array_get(json_object_get(write, "reasons"), 0), "part")),
                "metadata");
        assert_string_equal(
                json_string_value(json_object_get(json_object_get(answer, "read"), "state")),
                "idle");
        json_decref(answer);
}

static void ladders_are_apart_by_what_was_asked(void **state)
{
        static const struct {
                const char *by, *key;
        } groups[] = {{"class", "ssd"}, {"host", "node2"}, {"osd", "osd.1"}};
        struct world *world = *state;
        char query[128];
        json_t *answer, *side;

        make_usual(world);
        for (size_t i = 0; i < 3; i++) {
                snprintf(query, sizeof(query), FROM_TO "&by=%s", groups[i].by);
                answer = ask(world, api_ladder, query);
                assert_int_equal(json_array_size(json_object_get(answer, "ladders")), 2);
                side = ladder_of(answer, groups[i].key);
                assert_true(isnan(rung_bytes(side, 0)));
                assert_close(rung_bytes(side, 1), 100.0 * MIB);
                assert_close(rung_bytes(side, 2), 125.0 * MIB);
                assert_close(rung_bytes(side, 3), 125.0 * MIB);
                assert_close(json_number_value(json_object_get(side, "amplification")), 1.25);
                assert_close(json_number_value(json_object_get(side, "expected")), 1);
                assert_string_equal(json_string_value(json_object_get(side, "state")), "ok");
                json_decref(answer);
        }
        answer = ask(world, api_ladder, FROM_TO "&by=pool");
        side = ladder_of(answer, "rbd");
        assert_close(rung_bytes(side, 0), 100.0 * MIB);
        assert_true(isnan(rung_bytes(side, 3)));
        json_decref(answer);
}

static void ladders_come_in_pages(void **state)
{
        struct world *world = *state;
        json_t *answer;

        make_usual(world);
        answer = ask(world, api_ladder, FROM_TO "&by=osd&limit=1");
        ladder_of(answer, "osd.0");
        assert_string_equal(json_string_value(json_object_get(answer, "cursor")), "osd.0");
        json_decref(answer);
        answer = ask(world, api_ladder, FROM_TO "&by=osd&limit=1&cursor=osd.0");
        ladder_of(answer, "osd.1");
        assert_true(json_is_null(json_object_get(answer, "cursor")));
        json_decref(answer);
}

static void a_shared_device_is_in_no_osds_ladder_and_in_the_hosts(void **state)
{
        struct world *world = *state;
        struct stream disks = disk_stream(HOST_1, 512), osds = osd_stream(HOST_1, "osd.0");
        json_t *answer, *side;

        put_facts(world, HOST_1,
                "{\"host_id\":\"" HOST_1 "\",\"hostname\":\"node1\"," DISKS
                ",\"clusters\":[{\"fsid\":\"" FSID "\",\"name\":\"ceph\",\"mgr_stats_period\":5,"
                "\"osds\":[{\"id\":0,\"host\":\"node1\",\"up\":true,\"block\":[\"sda\"]},"
                "{\"id\":1,\"host\":\"node1\",\"up\":true,\"block\":[\"sda\"]}],\"pools\":[]}]}");
        write_rows(world, &disks, -5, 100);
        write_rows(world, &osds, -5, 100);
        answer = ask(world, api_ladder, FROM_TO "&by=osd");
        side = ladder_of(answer, "osd.0");
        assert_true(isnan(rung_bytes(side, 3)));
        assert_non_null(
                strstr(json_string_value(json_object_get(side, "detail")), "cannot be split"));
        assert_close(rung_bytes(side, 1), 100.0 * MIB);
        json_decref(answer);
        answer = ask(world, api_ladder, FROM_TO "&by=host");
        assert_close(rung_bytes(ladder_of(answer, "node1"), 3), 125.0 * MIB);
        json_decref(answer);
}

static void the_ladder_of_the_last_minute_ends_where_samples_do(void **state)
{
        struct world *world = *state;
        json_t *answer;

        put_two_hosts(world);
        write_disks(world, 512, 93);
        write_osds(world, 95);
        write_pools(world, 90);
        answer = ask(world, api_ladder, "direction=write");
        assert_close(json_number_value(json_object_get(answer, "from")), (double)(T0 + 30));
        assert_close(json_number_value(json_object_get(answer, "to")), (double)(T0 + 90));
        assert_string_equal(json_string_value(json_object_get(answer, "state")), "ok");
        assert_null(json_object_get(answer, "read"));
        json_decref(answer);
        /* A range that somebody named is answered as named. */
        answer = ask(world, api_ladder, FROM_TO);
        assert_close(json_number_value(json_object_get(answer, "to")), (double)(T0 + 100));
        assert_string_equal(json_string_value(json_object_get(answer, "state")), "gap");
        json_decref(answer);
}

static void curves_are_rates_sizes_and_latencies(void **state)
{
        struct world *world = *state;
        json_t *answer, *list;

        make_usual(world);
        answer = ask(world, api_series,
                "layer=storage&metric=write_bytes,write_size,write_await,flush_ops&" FROM_TO
                "&step=10s");
        list = json_object_get(answer, "series");
        assert_int_equal(json_array_size(list), 4);
        assert_close(number(json_array_get(list, 0), "value", 2), 2.5 * MIB);
        assert_close(number(json_array_get(list, 1), "value", 2), 2.5 * MIB / 20);
        /* 50 ms in 10 requests; in this window the 32-bit time wraps. */
        assert_close(number(json_array_get(list, 2), "value", 2), 0.005);
        /* Nobody tells about flushes here: no number. */
        assert_true(isnan(number(json_array_get(list, 3), "value", 2)));
        json_decref(answer);
}

static void cells_of_histograms_are_curves_of_the_osd_layer(void **state)
{
        struct world *world = *state;
        json_t *answer, *series;

        put_two_hosts(world);
        for (unsigned i = 0; i < 2; i++) {
                struct stream stream = {.host = i == 0 ? HOST_1 : HOST_2,
                        .source = SOURCE_OSD_HISTOGRAM,
                        .interval = 10};

                add_entity(&stream, i == 0 ? "osd.0" : "osd.1", i == 0 ? "osd.0" : "osd.1");
                add_column(&stream, METRIC_CELL_W_IN_SIZE_7_LATENCY_6, 100, 3 + i);
                add_column(&stream, METRIC_CELL_W_IN_SIZE_7_LATENCY_7, 100, 100);
                write_rows(world, &stream, 0, 100);
        }
        answer = ask(world, api_series,
                "layer=osd&metric=op_w_in_size_7_latency_6&" FROM_TO "&step=20s");
        series = one_series(answer, "cluster");
        assert_string_equal(json_string_value(json_object_get(series, "unit")), "operations/s");
        assert_true(length(series) > 2);
        assert_close(number(series, "value", 1), 7);
        json_decref(answer);
        answer = ask(world, api_series,
                "layer=osd&metric=op_w_in_size_7_latency_6&by=osd&" FROM_TO "&step=20s");
        assert_close(number(one_series(answer, "osd.0"), "value", 1), 3);
        assert_close(number(one_series(answer, "osd.1"), "value", 1), 4);
        json_decref(answer);
}

static void an_entity_is_found_by_name_or_with_its_host(void **state)
{
        struct world *world = *state;
        json_t *answer;

        make_usual(world);
        answer = ask(world, api_series,
                "layer=storage&metric=write_ops&entity=node2/sdb&" FROM_TO "&step=10s");
        assert_int_equal(json_array_size(json_object_get(answer, "series")), 1);
        assert_close(number(one_series(answer, "sdb"), "value", 0), 1000);
        assert_string_equal(
                json_string_value(json_object_get(one_series(answer, "sdb"), "host")), "node2");
        json_decref(answer);
        answer = ask(world, api_series,
                "layer=storage&metric=write_ops&entity=sda&" FROM_TO "&step=10s");
        assert_int_equal(json_array_size(json_object_get(answer, "series")), 2);
        json_decref(answer);
        answer = ask(world, api_series, "layer=osd&metric=op_w&entity=osd.1&" FROM_TO "&step=10s");
        assert_close(number(one_series(answer, "osd.1"), "value", 9), 8);
        json_decref(answer);
        assert_int_equal(refused(world, api_series,
                                 "layer=storage&metric=write_ops&entity=sdz&" FROM_TO, "'sdz'"),
                404);
}

static void the_largest_come_first(void **state)
{
        struct world *world = *state;
        struct stream first = disk_stream(HOST_1, 0), second = disk_stream(HOST_2, 4096);
        json_t *answer, *list;

        put_two_hosts(world);
        write_rows(world, &first, -5, 100);
        write_rows(world, &second, -5, 100);
        answer = ask(world, api_series,
                "layer=storage&metric=write_bytes&by=device&top=1&" FROM_TO "&step=10s");
        list = json_object_get(answer, "series");
        assert_int_equal(json_array_size(list), 1);
        assert_string_equal(
                json_string_value(json_object_get(json_array_get(list, 0), "host")), "node2");
        json_decref(answer);
}

static const char *text_of(const json_t *device, const char *key)
{
        return json_string_value(json_object_get(device, key));
}

static void a_device_is_listed_with_its_queue_and_what_stands_on_it(void **state)
{
        struct world *world = *state;
        json_t *answer, *devices, *device;

        put_facts(world, HOST_1,
                "{\"host_id\":\"" HOST_1 "\",\"hostname\":\"node1\",\"devices\":["
                "{\"name\":\"bcache0\",\"kind\":\"bcache\",\"parents\":[\"nvme0n1\",\"sda\"],"
                "\"caches\":[\"nvme0n1\"]},"
                "{\"name\":\"nvme0n1\",\"kind\":\"disk\",\"type\":\"nvme\",\"serial\":\"S1\","
                "\"scheduler\":\"none\",\"write_cache\":\"write through\"},"
                "{\"name\":\"sda\",\"kind\":\"disk\"}]," CLUSTERS("[]") "}");
        answer = ask(world, api_devices, "cluster=" FSID);
        devices = json_object_get(answer, "devices");
        assert_int_equal(json_array_size(devices), 3);
        device = json_array_get(devices, 0);
        assert_string_equal(
                json_string_value(json_array_get(json_object_get(device, "caches"), 0)), "nvme0n1");
        assert_int_equal(json_array_size(json_object_get(device, "children")), 0);
        device = json_array_get(devices, 1);
        assert_string_equal(text_of(device, "type"), "nvme");
        assert_string_equal(text_of(device, "serial"), "S1");
        assert_string_equal(text_of(device, "scheduler"), "none");
        assert_string_equal(text_of(device, "write_cache"), "write through");
        assert_string_equal(
                json_string_value(json_array_get(json_object_get(device, "children"), 0)),
                "bcache0");
        assert_true(json_is_false(json_object_get(device, "shared")));
        /* An older agent does not tell. */
        assert_string_equal(text_of(json_array_get(devices, 2), "scheduler"), "");
        json_decref(answer);
}

static void lists_are_paged_and_join_the_facts(void **state)
{
        struct world *world = *state;
        json_t *answer, *device;
        char query[256];

        make_usual(world);
        answer = ask(world, api_devices, "limit=1");
        device = json_array_get(json_object_get(answer, "devices"), 0);
        assert_string_equal(json_string_value(json_object_get(device, "name")), "sda");
        assert_true(json_is_true(json_object_get(device, "leaf")));
        assert_string_equal(json_string_value(json_object_get(device, "role")), "block");
        assert_string_equal(json_string_value(json_object_get(device, "cluster")), FSID);
        snprintf(query, sizeof(query), "limit=3&cursor=%s",
                json_string_value(json_object_get(answer, "cursor")));
        json_decref(answer);
        answer = ask(world, api_devices, query);
        assert_int_equal(json_array_size(json_object_get(answer, "devices")), 3);
        assert_true(json_is_null(json_object_get(answer, "cursor")));
        device = json_array_get(json_object_get(answer, "devices"), 0);
        assert_string_equal(json_string_value(json_object_get(device, "name")), "sdb");
        assert_false(json_is_true(json_object_get(device, "leaf")));
        json_decref(answer);

        answer = ask(world, api_clusters, "");
        device = json_array_get(json_object_get(answer, "clusters"), 0);
        assert_int_equal(json_integer_value(json_object_get(device, "hosts")), 2);
        assert_int_equal(json_integer_value(json_object_get(device, "osds_up")), 2);
        assert_close(json_number_value(json_object_get(device, "age")), 0);
        json_decref(answer);
        answer = ask(world, api_osds, "cluster=" FSID);
        assert_int_equal(json_array_size(json_object_get(answer, "osds")), 2);
        json_decref(answer);
        answer = ask(world, api_pools, "");
        device = json_array_get(json_object_get(answer, "pools"), 0);
        assert_close(json_number_value(json_object_get(device, "expected")), 2);
        json_decref(answer);
}

static void bad_questions_get_a_sentence_that_names_the_thing(void **state)
{
        struct world *world = *state;

        assert_int_equal(refused(world, api_ratio, "from=-1m", "no agent has sent facts"), 404);
        make_usual(world);
        assert_int_equal(refused(world, api_ratio, "upper=disk", "upper"), 400);
        assert_int_equal(refused(world, api_ratio, "upper=storage&lower=osd", "above lower"), 400);
        assert_int_equal(refused(world, api_ratio, "by=host", "by=host"), 400);
        assert_int_equal(refused(world, api_ratio, "upper=osd&by=pool", "by=pool"), 400);
        assert_int_equal(refused(world, api_ratio, "step=0s", "step"), 400);
        assert_int_equal(refused(world, api_ratio, "from=now&to=-1m", "from"), 400);
        assert_int_equal(refused(world, api_ratio, "cluster=bbbbbbbb-0000-4000-8000-000000000002",
                                 "bbbbbbbb-0000-4000-8000-000000000002"),
                404);
        assert_int_equal(refused(world, api_ratio, "cluster=x", "cluster"), 400);
        assert_int_equal(refused(world, api_series, "metric=write_bytes", "layer"), 400);
        assert_int_equal(refused(world, api_series, "layer=storage", "metric"), 400);
        assert_int_equal(refused(world, api_series, "layer=storage&metric=op_w", "'op_w'"), 400);
        assert_int_equal(
                refused(world, api_series, "layer=osd&metric=op_w&by=device", "by=device"), 400);
}

static void a_query_past_its_deadline_is_refused_as_busy(void **state)
{
        struct world *world = *state;
        struct api_request request = {
                .method = "GET", .path = "/api/v1/ratio", .now_us = NOW, .deadline_us = 1};
        struct api_response response = {0};
        int r;

        make_usual(world);
        assert_int_equal(store_reader_open(world->folder, &world->reader), 0);
        r = api_ratio(world->reader, &request, &response);
        if (r != -ETIME)
                assert_int_equal(response.status, 503);
        api_response_done(&response);
}

static void metrics_give_the_last_complete_minute(void **state)
{
        struct world *world = *state;
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        make_usual(world);
        assert_int_equal(store_reader_open(world->folder, &world->reader), 0);
        assert_int_equal(layer_metrics_write(world->reader, NOW, out), 0);
        fclose(out);
        assert_non_null(strstr(text, "strata_layer_bytes_per_second{cluster=\"" FSID
                                     "\",layer=\"storage\",direction=\"write\"} 2621440\n"));
        assert_non_null(strstr(text,
                "strata_ratio{cluster=\"" FSID "\",upper=\"filesystem\",lower=\"storage\","
                "direction=\"write\",measure=\"bytes\"} 0.4\n"));
        assert_non_null(
                strstr(text, "strata_expected_amplification{cluster=\"" FSID
                             "\",upper=\"filesystem\",lower=\"storage\",direction=\"write\","
                             "measure=\"bytes\"} 2\n"));
        assert_null(strstr(text, "nan"));
        free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        static const struct CMUnitTest tests[] = {
                TEST(the_ratio_of_pools_and_leaf_devices_is_what_was_written),
                TEST(a_step_below_two_report_periods_is_short),
                TEST(windows_that_are_not_delivered_yet_are_left_out),
                TEST(a_host_that_is_silent_for_long_makes_it_partial_with_how_many),
                TEST(a_rotten_block_is_a_gap_and_hides_nothing_else),
                TEST(no_samples_are_a_gap_and_null),
                TEST(two_hosts_that_deliver_the_pools_are_not_added),
                TEST(pools_go_on_with_a_host_that_the_store_lists_first),
                TEST(an_osd_that_restarts_is_a_reset_and_gives_what_was_seen),
                TEST(recovery_contaminates_with_how_many_bytes),
                TEST(groups_have_a_series_each),
                TEST(a_device_of_two_osds_is_counted_once_and_not_split),
                TEST(a_device_has_the_ratio_of_what_stands_on_it),
                TEST(a_device_beside_another_of_its_osd_has_no_expected_value),
                TEST(what_the_store_wrote_has_the_compactions_of_its_journal_in_it),
                TEST(extremes_are_of_one_counter_of_one_entity),
                TEST(an_osd_0_of_another_cluster_is_not_ours),
                TEST(a_pool_that_was_deleted_keeps_its_bytes_and_nobody_knows_its_copies),
                TEST(a_pool_that_is_gone_since_keeps_what_was_expected_of_it),
                TEST(a_pool_whose_copies_changed_keeps_those_of_then),
                TEST(a_profile_that_cannot_be_read_takes_only_what_is_expected),
                TEST(a_counter_that_goes_backwards_is_a_reset_of_its_osd_only),
                TEST(an_osd_that_moved_is_where_it_is_now_and_its_old_device_is_nobodys),
                TEST(a_clock_ten_minutes_off_leaves_the_other_host_alone),
                TEST(a_host_without_a_cluster_has_a_storage_layer_only),
                TEST(the_ladder_goes_down_from_pools_to_devices),
                TEST(the_ladder_of_the_last_minute_ends_where_samples_do),
                TEST(ladders_are_apart_by_what_was_asked),
                TEST(ladders_come_in_pages),
                TEST(a_shared_device_is_in_no_osds_ladder_and_in_the_hosts),
                TEST(curves_are_rates_sizes_and_latencies),
                TEST(cells_of_histograms_are_curves_of_the_osd_layer),
                TEST(an_entity_is_found_by_name_or_with_its_host),
                TEST(the_largest_come_first),
                TEST(a_device_is_listed_with_its_queue_and_what_stands_on_it),
                TEST(lists_are_paged_and_join_the_facts),
                TEST(bad_questions_get_a_sentence_that_names_the_thing),
                TEST(a_query_past_its_deadline_is_refused_as_busy),
                TEST(metrics_give_the_last_complete_minute),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
