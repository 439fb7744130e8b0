/* From stored rows and facts to the evidence and the verdict: four hosts with an OSD each, of which
 * the last has a slow disk. Something is wrong with the first one; the verdict about the last must
 * stay, and what is left out must be said. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "collectord/verdict.h"
#include "lib/block.h"

#define FSID "aaaaaaaa-0000-4000-8000-000000000001"
#define HOST "11111111-0000-4000-8000-00000000000%u"
#define HOSTS 4u
#define T0 INT64_C(1796027520)
#define SECOND INT64_C(1000000)
#define SECONDS 60u
#define NOW ((T0 + (int64_t)SECONDS) * SECOND)
#define WINDOW (20 * SECOND)
#define COLUMNS_MAX 32u

struct world {
        char folder[64];
        struct store *store;
        struct store_reader *reader;
        struct block_encoder *encoder;
        struct query *query;
        struct evidence *evidence;
        struct verdict *verdict;
        uint64_t sequence;
        /* What is wrong. */
        unsigned osd_restarts_at;   /* second in which the first OSD's counters begin anew */
        const char *first_osd_host; /* by the facts */
        const char *first_osd_block;
        const char *second_osd_host, *second_osd_block;
        const char *pool;
        int64_t first_clock_us;
        bool deferring; /* writes of 16 KiB, deferred, beside which the BlueFS journal is compacted
                         */
};

static struct id make_id(const char *text)
{
        struct id id;

        assert_int_equal(id_parse(text, &id), 0);
        return id;
}

static struct id host_id(unsigned host)
{
        char text[64];

        snprintf(text, sizeof(text), HOST, host);
        return make_id(text);
}

static int setup(void **state)
{
        struct world *world = calloc(1, sizeof(*world));
        char *message = NULL;

        if (!world)
                return -1;
        strcpy(world->folder, "/tmp/strata-test-XXXXXX");
        if (!mkdtemp(world->folder) || store_open(world->folder, &world->store, &message) < 0 ||
                block_encoder_new(&world->encoder) < 0)
                return -1;
        world->first_osd_host = "h0";
        world->first_osd_block = world->second_osd_block = "sda";
        world->second_osd_host = "h1";
        world->pool = "\"type\":\"replicated\",\"size\":3,\"k\":0,\"m\":0,\"stripe_unit\":0";
        *state = world;
        return 0;
}

static int teardown(void **state)
{
        struct world *world = *state;
        char command[128];

        verdict_free(world->verdict);
        evidence_free(world->evidence);
        query_close(world->query);
        store_reader_close(world->reader);
        store_close(world->store);
        block_encoder_free(world->encoder);
        snprintf(command, sizeof(command), "rm -r '%s'", world->folder);
        if (system(command) != 0)
                return -1;
        free(world);
        return 0;
}

/* ---- rows ---- */

struct stream {
        unsigned host;
        enum source_id source;
        struct block_entity entity;
        struct block_column columns[COLUMNS_MAX];
        uint64_t rate[COLUMNS_MAX];
        uint32_t n;
};

static void add(struct stream *stream, uint16_t metric, uint64_t per_second)
{
        stream->columns[stream->n] = (struct block_column){0, metric};
        stream->rate[stream->n++] = per_second;
}

/* A row a second from @first on; the counters are nought at the second @zero. */
static void put_rows(struct world *world, const struct stream *stream, unsigned first,
        unsigned last, unsigned zero)
{
        uint64_t values[SECONDS * COLUMNS_MAX];
        int64_t times[SECONDS + 1];
        struct block_rows rows = {
                .header = {.cluster = stream->entity.cluster,
                        .host = host_id(stream->host),
                        .boot = host_id(stream->host),
                        .source = stream->source,
                        .sequence = ++world->sequence,
                        .interval_us = SECOND,
                        .rows = last - first},
                .entities = &stream->entity,
                .n_entities = 1,
                .columns = stream->columns,
                .n_columns = stream->n,
                .times_us = times,
                .values = values,
        };
        struct block_header header;
        const uint8_t *bytes;
        size_t size;

        for (unsigned i = first; i < last; i++) {
                times[i - first] = (T0 + i + 1) * SECOND;
                for (uint32_t k = 0; k < stream->n; k++)
                        values[(i - first) * stream->n + k] = stream->rate[k] * (i - zero + 1);
        }
        assert_int_equal(block_encode(world->encoder, &rows, &bytes, &size), 0);
        assert_int_equal(block_peek(bytes, size, &header, &size), 0);
        assert_int_equal(store_put_block(world->store, &header, bytes, size, NOW), 0);
}

static void put_disk(struct world *world, unsigned host)
{
        struct stream stream = {.host = host,
                .source = SOURCE_DISKSTATS,
                .entity = {.name = "sda", .identity = "wwn-a", .instance = 1}};
        bool slow = host == HOSTS - 1;

        add(&stream, METRIC_DISK_READ_OPS, 0);
        add(&stream, METRIC_DISK_READ_SECTORS, 0);
        add(&stream, METRIC_DISK_READ_TIME, 0);
        add(&stream, METRIC_DISK_WRITE_OPS, slow ? 70 : 100);
        add(&stream, METRIC_DISK_WRITE_SECTORS, 100 * 128);
        add(&stream, METRIC_DISK_WRITE_TIME, slow ? 70 * 380 : 100);
        add(&stream, METRIC_DISK_BUSY_TIME, slow ? 990 : 100);
        add(&stream, METRIC_DISK_WEIGHTED_TIME, slow ? 25000 : 100);
        put_rows(world, &stream, 0, SECONDS, 0);
}

static void put_osd(struct world *world, unsigned host)
{
        static const char *const names[] = {"osd.0", "osd.1", "osd.2", "osd.3"};
        struct stream stream = {.host = host,
                .source = SOURCE_OSD,
                .entity = {.name = names[host],
                        .identity = names[host],
                        .cluster = make_id(FSID),
                        .instance = 1}};
        uint64_t ms = 1000000, store_ms = host == HOSTS - 1 ? 370 : 5;

        add(&stream, METRIC_OSD_OP_W_LATENCY_COUNT, 15);
        add(&stream, METRIC_OSD_OP_W_LATENCY_TIME, 15 * 400 * ms);
        add(&stream, METRIC_OSD_OP_W_PROCESS_LATENCY_TIME, 15 * 399 * ms);
        add(&stream, METRIC_OSD_SUBOP_W_LATENCY_COUNT, 30);
        add(&stream, METRIC_OSD_SUBOP_W_LATENCY_TIME, 30 * store_ms * ms);
        add(&stream, METRIC_BLUESTORE_KV_COMMIT_COUNT, 8);
        add(&stream, METRIC_BLUESTORE_KV_COMMIT_TIME, 8 * store_ms * ms / 2);
        add(&stream, METRIC_BLUESTORE_COMMIT_COUNT, 45);
        add(&stream, METRIC_BLUESTORE_COMMIT_TIME, 45 * store_ms * ms);
        if (world->deferring) {
                add(&stream, METRIC_OSD_OP_R_OUT_BYTES, 0);
                add(&stream, METRIC_OSD_OP_W_IN_BYTES, 15 * 16384);
                add(&stream, METRIC_BLUESTORE_WRITE_BIG_BYTES, 45 * 16384);
                add(&stream, METRIC_BLUESTORE_WRITE_SMALL_BYTES, 0);
                add(&stream, METRIC_BLUESTORE_DEFERRED_BYTES, 45 * 16384);
                add(&stream, METRIC_BLUESTORE_DEFERRED_SUBMITTED_BYTES, 45 * 16384);
                add(&stream, METRIC_BLUEFS_WAL_BYTES, 45 * 16384);
                add(&stream, METRIC_BLUEFS_LOG_COMPACTIONS, 1);
                add(&stream, METRIC_OSD_SUBOP_W_IN_BYTES, 30 * 16384);
                add(&stream, METRIC_BLUESTORE_BUFFER_MISS_BYTES, 0);
                add(&stream, METRIC_BLUEFS_SST_BYTES, 0);
                add(&stream, METRIC_BLUEFS_LOG_BYTES, 0);
        }
        if (host != 0 || world->osd_restarts_at == 0) {
                put_rows(world, &stream, 0, SECONDS, 0);
                return;
        }
        put_rows(world, &stream, 0, world->osd_restarts_at, 0);
        put_rows(world, &stream, world->osd_restarts_at, SECONDS, world->osd_restarts_at);
}

static void put_pools(struct world *world)
{
        struct stream stream = {.host = 0,
                .source = SOURCE_CEPH,
                .entity = {
                        .name = "rbd", .identity = "1", .cluster = make_id(FSID), .instance = 1}};

        add(&stream, METRIC_POOL_READ_OPS, 0);
        add(&stream, METRIC_POOL_READ_BYTES, 0);
        add(&stream, METRIC_POOL_WRITE_OPS, 60);
        add(&stream, METRIC_POOL_WRITE_BYTES, world->deferring ? 60 * 16384 : 60 * 65536);
        put_rows(world, &stream, 0, SECONDS, 0);
}

/* ---- facts ---- */

static void put_facts(struct world *world)
{
        for (unsigned host = 0; host < HOSTS; host++) {
                struct store_agent_update agent = {.host = host_id(host),
                        .now_us = NOW,
                        .clock_offset_us = host == 0 ? world->first_clock_us : 0};
                char json[4096], text[64], clusters[3072] = "";
                struct id id = host_id(host);

                if (host == 0) {
                        int n = snprintf(clusters, sizeof(clusters),
                                "{\"fsid\":\"" FSID "\",\"name\":\"ceph\",\"health\":\"HEALTH_OK\","
                                "\"release\":\"16.2.15\",\"mgr_stats_period\":5.0,\"pools\":[{"
                                "\"id\":1,"
                                "\"name\":\"rbd\",%s}],\"osds\":[",
                                world->pool);

                        for (unsigned i = 0; i < HOSTS; i++) {
                                char name[8];

                                snprintf(name, sizeof(name), "h%u", i);
                                n += snprintf(clusters + n, sizeof(clusters) - (size_t)n,
                                        "%s{\"id\":%u,\"host\":\"%s\",\"device_class\":\"hdd\","
                                        "\"up\":true,\"in\":true,\"rotational\":true,"
                                        "\"min_alloc_size\":4096,\"release\":\"16.2.15\","
                                        "\"block\":[\"%s\"],\"db\":[],\"wal\":[]}",
                                        i ? "," : "", i,
                                        i == 0   ? world->first_osd_host
                                        : i == 1 ? world->second_osd_host
                                                 : name,
                                        i == 0   ? world->first_osd_block
                                        : i == 1 ? world->second_osd_block
                                                 : "sda");
                        }
                        snprintf(clusters + n, sizeof(clusters) - (size_t)n, "]}");
                }
                snprintf(json, sizeof(json),
                        "{\"host_id\":\"%s\",\"hostname\":\"h%u\",\"kernel\":\"6.1.0\","
                        "\"agent_version\":\"0.1.0\",\"devices\":[{\"name\":\"sda\",\"alias\":\"\","
                        "\"identity\":\"wwn-a\",\"model\":\"\",\"serial\":\"\",\"wwn\":\"\","
                        "\"kind\":\"disk\",\"major\":8,\"minor\":0,\"rotational\":true,"
                        "\"size_bytes\":4000787030016,\"parents\":[]}],\"clusters\":[%s]}",
                        id_format(&id, text), host, clusters);
                assert_int_equal(store_put_facts(world->store, &id, json, NOW), 0);
                assert_int_equal(store_put_agent(world->store, &agent), 0);
        }
}

/* Stores all, gathers, judges. */
static void judge(struct world *world)
{
        uint32_t cluster;
        struct id fsid = make_id(FSID);

        assert_int_equal(store_begin(world->store), 0);
        put_facts(world);
        for (unsigned host = 0; host < HOSTS; host++) {
                put_disk(world, host);
                put_osd(world, host);
        }
        put_pools(world);
        assert_int_equal(store_commit(world->store), 0);
        assert_int_equal(store_reader_open(world->folder, &world->reader), 0);
        assert_int_equal(query_open(world->reader, NOW, 0, &world->query), 0);
        assert_int_equal(topology_find_cluster(world->query->topology, &fsid, &cluster), 0);
        assert_int_equal(evidence_gather(world->query, cluster, WINDOW, &world->evidence), 0);
        assert_int_equal(verdict_judge(world->evidence, &world->verdict), 0);
}

static void must_name_the_slow_disk(struct world *world)
{
        if (!world->verdict->bottleneck)
                fail_msg("no bottleneck: %s", world->verdict->sentence);
        assert_string_equal(world->verdict->findings[0].rule, "slow_disk");
        assert_string_equal(world->verdict->findings[0].entity, "h3/sda");
}

static void must_doubt(struct world *world, const char *words)
{
        for (uint32_t i = 0; i < world->evidence->n_doubts; i++)
                if (strstr(world->evidence->doubts[i], words))
                        return;
        fail_msg("%u doubts, none says '%s' (%s)", world->evidence->n_doubts, words,
                world->evidence->doubts[0]);
}

static void the_slow_disk_is_found_in_stored_rows(void **state)
{
        struct world *world = *state;

        judge(world);
        must_name_the_slow_disk(world);
        assert_int_equal(world->evidence->n_doubts, 0);
        assert_float_equal(world->evidence->osds[0].values[EVIDENCE_WRITES], 15 * 20, 1e-6);
        assert_float_equal(
                world->evidence->devices[3].values[EVIDENCE_DISK_WRITE_TIME], 70 * .38 * 20, 1e-3);
        assert_int_equal(world->evidence->osds[3].data, 3);
        assert_float_equal(world->evidence->pools[0].writes, 60 * 20, 1e-6);
}

static void a_counter_that_goes_backwards_silences_its_osd_alone(void **state)
{
        struct world *world = *state;

        world->osd_restarts_at = SECONDS - 10;
        judge(world);
        assert_true(world->evidence->osds[0].silent);
        assert_true(isnan(world->evidence->osds[0].values[EVIDENCE_WRITES]));
        must_doubt(world, "osd.0 started again");
        must_name_the_slow_disk(world);
}

static void an_osd_that_moved_has_the_devices_of_its_new_host(void **state)
{
        struct world *world = *state;

        world->first_osd_host = "h1";
        world->first_osd_block = "sdz";
        judge(world);
        assert_string_equal(world->evidence->osds[0].host, "h1");
        assert_int_equal(world->evidence->osds[0].data, EVIDENCE_NONE);
        assert_int_equal(world->evidence->n_devices, 3);
        must_name_the_slow_disk(world);
}

static void a_profile_that_cannot_be_read_is_said(void **state)
{
        struct world *world = *state;

        world->pool = "\"type\":\"erasure\",\"size\":3,\"k\":0,\"m\":0,\"stripe_unit\":0";
        judge(world);
        must_doubt(world, "redundancy of the pool rbd");
        must_name_the_slow_disk(world);
}

static void a_device_that_two_osds_claim_is_said_and_counted_once(void **state)
{
        struct world *world = *state;

        world->second_osd_host = "h0";
        judge(world);
        must_doubt(world, "2 OSDs claim h0/sda");
        assert_int_equal(world->evidence->osds[0].data, world->evidence->osds[1].data);
        assert_int_equal(world->evidence->n_devices, 3);
        must_name_the_slow_disk(world);
}

static void a_host_whose_clock_is_ten_minutes_off_is_left_out(void **state)
{
        struct world *world = *state;

        world->first_clock_us = 600 * SECOND;
        judge(world);
        must_doubt(world, "clock of h0 is 600 s ahead");
        assert_true(world->evidence->osds[0].silent);
        assert_true(world->evidence->devices[0].silent);
        assert_false(world->evidence->osds[1].silent);
        must_name_the_slow_disk(world);
}

static void a_clock_that_nobody_has_compared_is_believed(void **state)
{
        struct world *world = *state;

        world->first_clock_us = INT64_MIN;
        judge(world);
        assert_false(world->evidence->osds[0].silent);
        assert_int_equal(world->evidence->n_doubts, 0);
        must_name_the_slow_disk(world);
}

/* What one write costs by configuration, and what a compaction writes, are facts of OSDs and pools.
 */
static void the_ladder_knows_what_the_osds_stand_on(void **state)
{
        struct world *world = *state;
        const struct ladder *ladder;
        const struct ladder_reason *deferred = NULL;
        const struct ladder_part *compaction = NULL;
        const struct ladder_rung *store;

        world->deferring = true;
        judge(world);
        ladder = world->evidence->ladders[RATIO_WRITE];
        store = &ladder->rungs[LAYER_OBJECTSTORE - LAYER_FILESYSTEM];
        for (size_t i = 0; i < ladder->n_explained; i++)
                if (strcmp(ladder->explained[i].part, "deferred") == 0)
                        deferred = &ladder->explained[i];
        for (size_t i = 0; i < store->n_parts; i++)
                if (strcmp(store->parts[i].name, "log_compaction") == 0)
                        compaction = &store->parts[i];
        assert_non_null(deferred);
        assert_float_equal(deferred->amplification, 3, 1e-6);
        assert_true(fabs(deferred->configured - 3) < 1e-6); /* and so it is a number */
        assert_string_equal(ladder->explained[0].sentence, "3 copies of each byte.");
        assert_non_null(compaction);
        assert_float_equal(compaction->bytes, HOSTS * 20 * LADDER_COMPACTION_SHARED, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(the_slow_disk_is_found_in_stored_rows),
                TEST(a_counter_that_goes_backwards_silences_its_osd_alone),
                TEST(an_osd_that_moved_has_the_devices_of_its_new_host),
                TEST(a_profile_that_cannot_be_read_is_said),
                TEST(a_device_that_two_osds_claim_is_said_and_counted_once),
                TEST(a_host_whose_clock_is_ten_minutes_off_is_left_out),
                TEST(the_ladder_knows_what_the_osds_stand_on),
                TEST(a_clock_that_nobody_has_compared_is_believed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
