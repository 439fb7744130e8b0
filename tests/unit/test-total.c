/*
 * Totals against the blocks: whatever comes late, twice, out of order or never, and whoever comes,
 * goes or restarts, a query gives the same with totals and without.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "collectord/query.h"
#include "collectord/store-check.h"
#include "collectord/store.h"
#include "collectord/total.h"
#include "lib/block.h"
#include "lib/metric.h"
#include "tests/unit/folder-fixture.h"

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define START (INT64_C(1796083200) * SECOND)
#define HOSTS 3u
#define DISKS 4u
#define METRICS 4u
#define ROWS_MAX 24u
#define PIECES_MAX 20000u
#define FSID "aaaaaaaa-0000-4000-8000-000000000001"

static const struct store_ages ages = {0};
static const uint16_t metrics[METRICS] = {METRIC_DISK_READ_SECTORS, METRIC_DISK_WRITE_OPS,
        METRIC_DISK_WRITE_SECTORS, METRIC_DISK_WRITE_TIME};

struct piece {
        uint8_t *bytes;
        size_t size;
        bool stored;
};

struct world {
        char folder[64];
        uint64_t seed, sequence;
        struct store *store;
        struct store_keeper *keeper;
        struct total_maker *maker;
        struct store_reader *reader;
        struct block_encoder *encoder;
        struct piece *pieces[HOSTS];
        uint32_t n[HOSTS];
        int64_t now_us;
        uint32_t filled, asked; /* windows from totals, and all */
};

static uint64_t below(struct world *world, uint64_t limit)
{
        world->seed ^= world->seed << 13;
        world->seed ^= world->seed >> 7;
        world->seed ^= world->seed << 17;
        return world->seed % limit;
}

static struct id host_id(uint32_t host)
{
        return (struct id){.bytes = {9, (uint8_t)host}};
}

/* ---- facts ---- */

/* Every fourth OSD is an ssd. */
static void put_facts(struct world *world)
{
        assert_int_equal(store_begin(world->store), 0);
        for (uint32_t host = 0; host < HOSTS; host++) {
                struct id id = host_id(host);
                CLEANUP(str) char *text = NULL;
                char name[ID_TEXT_MAX];
                size_t size;
                FILE *out = open_memstream(&text, &size);

                assert_non_null(out);
                fprintf(out, "{\"host_id\":\"%s\",\"hostname\":\"node%u\",\"devices\":[",
                        id_format(&id, name), host);
                for (uint32_t i = 0; i < DISKS; i++)
                        fprintf(out, "%s{\"name\":\"sd%c\",\"identity\":\"w%u\",\"kind\":\"disk\"}",
                                i ? "," : "", 'a' + (int)i, i);
                fputs("],\"clusters\":[", out);
                if (host == 0) {
                        fputs("{\"fsid\":\"" FSID "\",\"name\":\"ceph\",\"health\":\"HEALTH_OK\","
                              "\"release\":\"16.2.15\",\"mgr_stats_period\":5,\"pools\":[],"
                              "\"osds\":[",
                                out);
                        for (uint32_t i = 0; i < HOSTS * DISKS; i++)
                                fprintf(out,
                                        "%s{\"id\":%u,\"host\":\"node%u\",\"device_class\":\"%s\","
                                        "\"up\":true,\"in\":true,\"block\":[\"sd%c\"]}",
                                        i ? "," : "", i, i / DISKS, i % 4 ? "hdd" : "ssd",
                                        'a' + (int)(i % DISKS));
                        fputs("]}", out);
                }
                fputs("]}", out);
                assert_int_equal(fclose(out), 0);
                assert_int_equal(store_put_facts(world->store, &id, text, START), 0);
        }
        assert_int_equal(store_commit(world->store), 0);
}

static int begin(void **state)
{
        struct world *world = calloc(1, sizeof(*world));
        const char *seed = getenv("STRATA_SEED");
        CLEANUP(str) char *message = NULL;

        assert_true(folder_make(world->folder, "total"));
        world->seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) * 2654435761u | 1;
        print_message("# STRATA_SEED=%llu\n", (unsigned long long)world->seed);
        if (store_open(world->folder, &world->store, &message) < 0)
                fail_msg("%s", message);
        assert_int_equal(store_keeper_open(world->folder, &ages, &world->keeper), 0);
        assert_int_equal(total_maker_new(world->keeper, world->folder, &ages, &world->maker), 0);
        assert_int_equal(store_reader_open(world->folder, &world->reader), 0);
        assert_int_equal(block_encoder_new(&world->encoder), 0);
        put_facts(world);
        *state = world;
        return 0;
}

static void refuse_damage(void *userdata, const struct store_damage *damage)
{
        (void)userdata;
        fail_msg("%s, key %lld: %s", damage->file, (long long)damage->key, damage->what);
}

static void refuse_file(void *userdata, const char *file, const char *what)
{
        (void)userdata;
        fail_msg("%s: %s", file, what);
}

static void ignore_progress(
        void *userdata, const char *file, const struct store_check_counts *counts)
{
        (void)userdata, (void)file, (void)counts;
}

/* Whatever came, the check of the store finds nothing. */
static void expect_whole(const char *folder)
{
        struct store_check_sink sink = {
                .damage = refuse_damage, .unreadable = refuse_file, .progress = ignore_progress};
        struct store_check_counts counts;

        assert_int_equal(store_check(folder, &sink, &counts), 0);
        print_message("# %llu blocks are whole\n", (unsigned long long)counts.blocks);
}

static int end(void **state)
{
        struct world *world = *state;

        for (uint32_t host = 0; host < HOSTS; host++) {
                for (uint32_t i = 0; i < world->n[host]; i++)
                        free(world->pieces[host][i].bytes);
                free(world->pieces[host]);
        }
        store_reader_close(world->reader);
        total_maker_free(world->maker);
        store_keeper_close(world->keeper);
        store_close(world->store);
        expect_whole(world->folder);
        block_encoder_free(world->encoder);
        folder_remove(world->folder);
        free(world);
        return 0;
}

/* ---- histories ---- */

struct history {
        uint64_t values[ROWS_MAX][DISKS * METRICS], last[DISKS * METRICS];
        uint8_t present[ROWS_MAX][DISKS];
        int64_t times[ROWS_MAX];
        uint32_t rows, n_disks, boot, instance;
};

static void flush(struct world *world, uint32_t host, struct history *history, uint64_t interval)
{
        struct block_entity entities[DISKS];
        struct block_column columns[DISKS * METRICS];
        struct block_rows rows = {
                .header = {.host = host_id(host),
                        .boot.bytes = {(uint8_t)history->boot},
                        .source = SOURCE_DISKSTATS,
                        .sequence = ++world->sequence,
                        .interval_us = interval * SECOND,
                        .rows = history->rows},
                .entities = entities,
                .n_entities = history->n_disks,
                .columns = columns,
                .n_columns = history->n_disks * METRICS,
                .times_us = history->times,
                .present = &history->present[0][0],
        };
        uint64_t values[ROWS_MAX * DISKS * METRICS];
        uint8_t present[ROWS_MAX * DISKS];
        static const char *const names[] = {"sda", "sdb", "sdc", "sdd"};
        static const char *const identities[] = {"w0", "w1", "w2", "w3"};
        struct piece *piece = &world->pieces[host][world->n[host]];
        const uint8_t *bytes;

        if (history->rows == 0)
                return;
        for (uint32_t i = 0; i < history->n_disks; i++) {
                entities[i] = (struct block_entity){.name = names[i],
                        .identity = identities[i],
                        .instance = i == 1 ? history->instance : 0};
                for (uint32_t k = 0; k < METRICS; k++)
                        columns[i * METRICS + k] = (struct block_column){i, metrics[k]};
        }
        for (uint32_t row = 0; row < history->rows; row++) {
                memcpy(values + row * rows.n_columns, history->values[row], rows.n_columns * 8);
                memcpy(present + row * history->n_disks, history->present[row], history->n_disks);
        }
        rows.values = values;
        rows.present = present;
        assert_int_equal(block_encode(world->encoder, &rows, &bytes, &piece->size), 0);
        piece->bytes = malloc(piece->size);
        memcpy(piece->bytes, bytes, piece->size);
        world->n[host]++;
        history->rows = 0;
}

static void make_history(struct world *world, uint32_t host, uint64_t interval, int64_t length_us)
{
        struct history history = {.n_disks = DISKS, .boot = 1, .instance = 1};
        int64_t step = (int64_t)interval * SECOND;

        world->pieces[host] = calloc(PIECES_MAX, sizeof(struct piece));
        for (int64_t at = -step * 10; at < length_us; at += step) {
                if (below(world, 500) == 0) {
                        flush(world, host, &history, interval);
                        at += (int64_t)below(world, 60) * step;
                }
                if (below(world, 900) == 0) {
                        flush(world, host, &history, interval);
                        history.boot++;
                        memset(history.last, 0, sizeof(history.last));
                } else if (below(world, 900) == 0) {
                        flush(world, host, &history, interval);
                        history.instance++;
                } else if (below(world, 900) == 0) {
                        flush(world, host, &history, interval);
                        history.n_disks = DISKS - (uint32_t)below(world, 2);
                }
                if (below(world, 900) == 0)
                        history.last[2] /= 2;
                history.times[history.rows] = START + at + (int64_t)below(world, 3000);
                for (uint32_t i = 0; i < DISKS * METRICS; i++) {
                        history.last[i] += below(world, 5) ? below(world, 1000) : 0;
                        history.values[history.rows][i] =
                                i % METRICS == 3 ? (uint32_t)history.last[i] : history.last[i];
                }
                for (uint32_t i = 0; i < DISKS; i++)
                        history.present[history.rows][i] = below(world, 200) > 0;
                history.rows++;
                if (history.rows == ROWS_MAX || below(world, 12) == 0)
                        flush(world, host, &history, interval);
        }
        flush(world, host, &history, interval);
}

static void put(struct world *world, uint32_t host, uint32_t index)
{
        struct piece *piece = &world->pieces[host][index];
        struct block_header header;
        size_t size;

        assert_int_equal(block_peek(piece->bytes, piece->size, &header, &size), 0);
        if (header.last_us > world->now_us)
                world->now_us = header.last_us;
        assert_int_equal(store_begin(world->store), 0);
        assert_int_equal(store_put_block(world->store, &header, piece->bytes, size, world->now_us),
                piece->stored ? STORE_DUPLICATE : 0);
        piece->stored = true;
}

/* One of the first @limit that was not sent yet; when there is none, one that was. */
static void put_late(struct world *world, uint32_t host, uint32_t limit)
{
        uint32_t index = 0;

        for (int tries = 0; tries < 50; tries++) {
                index = (uint32_t)below(world, limit);
                if (!world->pieces[host][index].stored)
                        break;
        }
        put(world, host, index);
}

/* At most @steps of upkeep. */
static void keep(struct world *world, uint32_t steps)
{
        assert_int_equal(store_commit(world->store), 0);
        while (steps-- > 0) {
                CLEANUP(store_step) struct store_step *step = NULL;
                int r = below(world, 2) ? store_keeper_step(world->keeper, world->now_us, &step)
                                        : 0;

                if (r == 0)
                        r = total_maker_step(world->maker, world->now_us, &step);
                if (r == 0)
                        r = store_keeper_step(world->keeper, world->now_us, &step);
                assert_true(r >= 0);
                if (r == 0)
                        return;
                while ((r = store_follow(world->store, step, STORE_SLICE_US)) > 0)
                        ;
                assert_int_equal(r, 0);
        }
}

/* ---- asking ---- */

static const struct rung_term terms[] = {
        {.metric = METRIC_DISK_WRITE_SECTORS, .slot = 0, .scale = 512},
        {.metric = METRIC_DISK_READ_SECTORS, .slot = 0, .scale = 512},
        {.metric = METRIC_DISK_WRITE_OPS, .slot = 1, .scale = 1},
        {.metric = METRIC_DISK_DISCARD_OPS, .slot = 2, .scale = 1, .need = RUNG_NEED_OPTIONAL},
        {.metric = METRIC_DISK_WRITE_TIME, .slot = 2, .scale = 1, .need = RUNG_NEED_OPTIONAL},
        {.metric = METRIC_DISK_FLUSH_OPS, .slot = 3, .scale = 1},
};

static void assert_close(double with, double without, double minutes, const char *key,
        uint32_t slot, uint32_t window)
{
        static const double scales[] = {1024, 1, 1, 1};

        if (isnan(with) && isnan(without))
                return;
        if (!(fabs(with - without) <= scales[slot] / TOTAL_SCALE * (1 + minutes) + 1e-6))
                fail_msg("%s slot %u window %u of %.3f minutes: %f with totals, %f without", key,
                        slot, window, minutes, with, without);
}

static void compare_window(const struct query_spec *spec, const struct query_result *with,
        const struct query_result *without, uint32_t t, uint32_t w)
{
        const struct rung_target *a = &with->table->targets[t], *b = &without->table->targets[t];
        uint32_t n = spec->windows.n;

        assert_string_equal(with->targets[t].key, without->targets[t].key);
        if (a->seen[w] != b->seen[w] || a->reset[w] != b->reset[w])
                fail_msg("%s window %u of %ld us at %ld: seen %u reset %u with totals, %u %u "
                         "without",
                        with->targets[t].key, w, (long)spec->windows.step_us,
                        (long)(spec->windows.from_us - START), a->seen[w], a->reset[w], b->seen[w],
                        b->reset[w]);
        for (uint32_t slot = 0; slot < 4; slot++)
                assert_close(a->sums[slot * n + w], b->sums[slot * n + w],
                        (double)spec->windows.step_us / (60 * SECOND), with->targets[t].key, slot,
                        w);
}

static void compare(struct world *world, const struct query_spec *asked)
{
        CLEANUP(query) struct query *query = NULL;
        CLEANUP(query_result) struct query_result *with = NULL, *without = NULL;
        struct query_spec spec = *asked;
        CLEANUP(mem) bool *open = malloc(spec.windows.n);
        uint32_t n = spec.windows.n;

        assert_int_equal(store_reader_begin(world->reader), 0);
        assert_int_equal(query_open(world->reader, world->now_us, 0, &query), 0);
        assert_int_equal(query_run(query, &spec, &with), 0);
        spec.exact = true;
        assert_int_equal(query_run(query, &spec, &without), 0);
        assert_int_equal(with->table->n_targets, without->table->n_targets);
        memset(open, true, n);
        assert_int_equal(total_fill(query, asked, with, open), 0);
        /* With too many other windows all were read from blocks, and perhaps from tiers. */
        for (uint32_t t = 0; t < with->table->n_targets; t++)
                for (uint32_t w = 0; w < n; w++)
                        if (!open[w])
                                with->table->targets[t].reset[w] = 0;
        for (uint32_t t = 0; t < with->table->n_targets; t++)
                for (uint32_t w = 0; w < n; w++)
                        /* Neither are tiers what is looked at here. */
                        if (!open[w] || spec.windows.step_us % (60 * SECOND) != 0)
                                compare_window(&spec, with, without, t, w);
        store_reader_end(world->reader);
        for (uint32_t w = 0; w < n; w++)
                world->filled += !open[w];
        world->asked += n;
}

static void ask(struct world *world, int64_t length_us)
{
        static const enum query_by groups[] = {QUERY_BY_CLUSTER, QUERY_BY_CLASS, QUERY_BY_HOST};
        static const int64_t steps[] = {10, 20, 30, 60, 120, 300, 600, 3600, 7200, 7};
        int64_t step_us = steps[below(world, 10)] * SECOND;
        uint32_t n = 1 + (uint32_t)below(world, 90);
        struct query_spec spec = {.source = SOURCE_DISKSTATS,
                .by = groups[below(world, 3)],
                .terms = terms,
                .n_terms = sizeof(terms) / sizeof(terms[0])};

        assert_int_equal(store_commit(world->store), 0);
        if (step_us > length_us)
                step_us = 60 * SECOND;
        if (n * step_us > length_us)
                n = (uint32_t)(length_us / step_us);
        spec.windows.n = n;
        spec.windows.step_us = (uint64_t)step_us;
        spec.windows.from_us =
                (START + (int64_t)below(world, (uint64_t)(length_us - n * step_us) + 1)) / step_us *
                step_us;
        compare(world, &spec);
}

static void deliver(struct world *world, int64_t length_us)
{
        for (uint32_t i = 0; i < PIECES_MAX; i++) {
                bool any = false;

                for (uint32_t host = 0; host < HOSTS; host++) {
                        if (i >= world->n[host])
                                continue;
                        any = true;
                        if (below(world, 12) > 0)
                                put(world, host, i);
                        if (below(world, 20) == 0) {
                                put_late(world, host, i + 1);
                                ask(world, length_us);
                        }
                }
                if (!any)
                        break;
                if (below(world, 20) == 0)
                        keep(world, (uint32_t)below(world, 30));
                if (below(world, 12) == 0)
                        ask(world, length_us);
        }
}

static void a_query_gives_the_same_with_totals_and_without_at_any_moment(void **state)
{
        struct world *world = *state;

        for (uint32_t host = 0; host < HOSTS; host++)
                make_history(world, host, host == 1 ? 5 : 10, HOUR);
        deliver(world, HOUR);
        for (int i = 0; i < 50; i++) {
                ask(world, HOUR);
                keep(world, 20);
        }
        assert_true(world->filled > 0);
}

static void totals_of_minutes_and_hours_say_what_the_blocks_say(void **state)
{
        struct world *world = *state;

        for (uint32_t host = 0; host < HOSTS; host++)
                make_history(world, host, 10, 13 * HOUR);
        for (uint32_t host = 0; host < HOSTS; host++)
                for (uint32_t i = world->n[host]; i-- > 0;)
                        if (below(world, 40) > 0)
                                put(world, host, i);
        world->now_us += 31 * 24 * HOUR;
        keep(world, UINT32_MAX);
        for (int i = 0; i < 60; i++)
                ask(world, 13 * HOUR);
        print_message("# %u of %u windows from totals\n", world->filled, world->asked);
        assert_true(world->filled > world->asked / 4);
        for (int i = 0; i < 20; i++) {
                uint32_t host = (uint32_t)below(world, HOSTS);

                put_late(world, host, world->n[host]);
                ask(world, 13 * HOUR);
                keep(world, (uint32_t)below(world, 40));
                ask(world, 13 * HOUR);
        }
}

static void a_quiet_cluster_is_answered_from_totals_alone(void **state)
{
        struct world *world = *state;
        struct query_spec spec = {.source = SOURCE_DISKSTATS,
                .by = QUERY_BY_CLUSTER,
                .windows = {START, 30 * SECOND, 100},
                .terms = terms,
                .n_terms = sizeof(terms) / sizeof(terms[0])};

        for (uint32_t host = 0; host < HOSTS; host++) {
                struct history history = {.n_disks = DISKS, .boot = 1};

                world->pieces[host] = calloc(PIECES_MAX, sizeof(struct piece));
                for (int64_t at = -60; at < 3600; at += 10) {
                        history.times[history.rows] = START + at * SECOND + 100;
                        for (uint32_t i = 0; i < DISKS * METRICS; i++)
                                history.values[history.rows][i] = (uint64_t)(at + 100) * (i + 1);
                        memset(history.present[history.rows], 1, DISKS);
                        if (++history.rows == 6)
                                flush(world, host, &history, 10);
                }
                for (uint32_t i = 0; i < world->n[host]; i++)
                        put(world, host, i);
        }
        keep(world, UINT32_MAX);
        compare(world, &spec);
        assert_int_equal(world->filled, 100);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
                TEST(a_quiet_cluster_is_answered_from_totals_alone),
                TEST(a_query_gives_the_same_with_totals_and_without_at_any_moment),
                TEST(totals_of_minutes_and_hours_say_what_the_blocks_say),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
