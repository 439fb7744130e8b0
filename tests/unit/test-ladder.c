#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "collectord/expected.h"
#include "collectord/ladder.h"

#define MB 1e6

static void assert_close(double a, double b)
{
        if (!(fabs(a - b) < 1e-6 * (1 + fabs(b))))
                fail_msg("%.12g is not %.12g", a, b);
}

/*
 * Measured: a real cluster of three OSDs on loop devices, 16.2.15, size 3. Bytes written on the
 * devices, then the OSDs' counters in the order of enum ladder_written, all over the same window.
 */
static const struct {
        const char *load;
        double device;
        double written[LADDER_WRITTEN_MAX_];
        double unexplained; /* at compaction of the BlueFS log, 33 blocks an OSD that nobody counts
                             */
} measured[] = {
        {"idle", 18903040, {5738496, 12552, 12, 36600, 5902336, 5787648, 10199040, 0, 2801664}, 0},
        {"fresh 4k", 142295040, {42467328, 0, 0, 0, 42500096, 42467328, 80474112, 0, 19320832}, 0},
        {"fresh 16k", 321974272, {138510336, 0, 0, 0, 138510336, 138510336, 168452096, 0, 15011840},
                0},
        {"fresh 64k", 546361344, {503906304, 0, 0, 0, 0, 0, 27664384, 0, 14385152}, 405504},
        {"fresh 1m", 1453305856, {1440743424, 0, 0, 0, 0, 0, 9027584, 0, 3534848}, 0},
        {"over 4k", 129474560, {37724160, 0, 0, 0, 37724160, 37724160, 72916992, 0, 18833408}, 0},
        {"over 16k", 240586752, {104792064, 0, 0, 0, 104792064, 104792064, 125976576, 0, 9818112},
                0},
        {"over 64k", 425357312, {394002432, 0, 0, 0, 0, 0, 20807680, 0, 10141696}, 405504},
        {"over 1m", 887668736, {880803840, 0, 0, 0, 0, 0, 4603904, 0, 2260992}, 0},
        {"over 2k", 81797120, {0, 12920832, 6309, 0, 25829376, 25841664, 46497792, 0, 9469952}, 0},
        {"fresh 2k", 87670784,
                {0, 13676544, 6678, 13584384, 27353088, 27353088, 49405952, 0, 10911744}, 0},
        {"over 6k, not aligned", 119517184,
                {11464704, 17657856, 8439, 0, 45961216, 46030848, 64077824, 0, 9478144}, 0},
        {"over 100k, not aligned", 427638784,
                {231788544, 8441856, 4122, 0, 165957632, 168849408, 177750016, 0, 4108288}, 0},
};

static void what_bluestore_counts_is_what_the_devices_wrote(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
                double rest = measured[i].device - ladder_written_bytes(measured[i].written);

                if (rest != measured[i].unexplained)
                        fail_msg("%s: %.0f bytes are not explained", measured[i].load, rest);
        }
}

static void a_release_without_a_counter_still_has_a_sum(void **state)
{
        double written[LADDER_WRITTEN_MAX_] = {100, 10, NAN, NAN, 40, NAN, 50, 5, 5};
        (void)state;

        /* Issued bytes alone cannot be moved between windows: they are in big already. */
        assert_close(ladder_written_bytes(written), 170);
        for (size_t i = 0; i < LADDER_WRITTEN_MAX_; i++)
                written[i] = NAN;
        assert_true(isnan(ladder_written_bytes(written)));
}

/* The 16k cell of the table that the design was made from: bytes in MB over 12 s. */
static double osd_16k[LADDER_SLOTS_MAX_];
static const struct ladder_member pool_16k[] = {{"rbd", 254.5 * MB, 15533, 3, false}};
static const struct ladder_member devices_16k[] = {{"node1/sda", 580.3 * MB, 9000, NAN, false},
        {"node1/sdb", 580.3 * MB, 9000, NAN, false}, {"node1/sdc", 580.3 * MB, 9000, NAN, false}};

static struct ladder_input usual(void)
{
        struct ladder_input input = {
                .direction = RATIO_WRITE,
                .seconds = 12,
                .pools = pool_16k,
                .n_pools = 1,
                .devices = devices_16k,
                .n_devices = 3,
                .osd = osd_16k,
                .rungs = {{.seen = 1, .expected = 1}, {.seen = 3, .expected = 3},
                        {.seen = 3, .expected = 3}, {.seen = 3, .expected = 3}},
                .noise = {NAN, NAN, NAN, NAN},
        };

        memset(osd_16k, 0, sizeof(osd_16k));
        osd_16k[LADDER_CLIENT_WRITE] = 254.5 * MB;
        osd_16k[LADDER_CLIENT_WRITE_OPS] = 15533;
        osd_16k[LADDER_REPLICA] = 532.3 * MB;
        osd_16k[LADDER_REPLICA_OPS] = 31066;
        osd_16k[LADDER_BIG] = osd_16k[LADDER_ISSUED] = osd_16k[LADDER_SUBMITTED] = 763.4 * MB;
        osd_16k[LADDER_BIG_OPS] = osd_16k[LADDER_SUBMITTED_OPS] = 46594;
        osd_16k[LADDER_WAL] = 911.9 * MB;
        osd_16k[LADDER_LOG] = 65 * MB;
        return input;
}

static struct ladder *compute(struct ladder_input input)
{
        struct ladder *ladder;

        assert_int_equal(ladder_compute(&input, &ladder), 0);
        return ladder;
}

static const struct ladder_part *part(const struct ladder_rung *rung, const char *name)
{
        for (size_t i = 0; i < rung->n_parts; i++)
                if (strcmp(rung->parts[i].name, name) == 0)
                        return &rung->parts[i];
        fail_msg("no part %s", name);
        return NULL;
}

static void the_rungs_of_small_writes_are_what_was_measured(void **state)
{
        CLEANUP(ladder) struct ladder *ladder = compute(usual());
        (void)state;

        assert_int_equal(ladder->point.state, RUNG_OK);
        assert_close(ladder->rungs[0].bytes, 254.5 * MB);
        assert_close(ladder->rungs[1].bytes, 786.8 * MB);
        assert_close(ladder->rungs[1].ops, 15533 * 3);
        assert_close(ladder->rungs[2].bytes, 1740.3 * MB);
        assert_close(ladder->rungs[3].bytes, 1740.9 * MB);
        assert_close(ladder->point.amplification, 1740.9 / 254.5);
        assert_close(ladder->point.expected, 3);
        assert_close(ladder->unattributed_bytes, 0.6 * MB);
        assert_close(ladder->unattributed_share, 0.6 / 1740.9);
        assert_close(part(&ladder->rungs[3], "node1/sdb")->amplification, 580.3 / 254.5);
}

static void the_parts_of_a_rung_add_up_to_it(void **state)
{
        CLEANUP(ladder) struct ladder *ladder = compute(usual());
        (void)state;

        for (size_t i = 0; i < LADDER_RUNGS; i++) {
                double bytes = 0;

                for (size_t k = 0; k < ladder->rungs[i].n_parts; k++)
                        if (ladder->rungs[i].parts[k].counted)
                                bytes += ladder->rungs[i].parts[k].bytes;
                assert_close(bytes, ladder->rungs[i].bytes);
        }
        assert_string_equal(part(&ladder->rungs[2], "deferred")->included_in, "wal");
        assert_false(part(&ladder->rungs[2], "deferred")->counted);
}

static void the_ladder_names_deferred_writes_first(void **state)
{
        CLEANUP(ladder) struct ladder *ladder = compute(usual());
        (void)state;

        assert_int_equal(ladder->n_reasons, 2);
        assert_string_equal(ladder->reasons[0].part, "deferred");
        assert_close(ladder->reasons[0].amplification, 763.4 / 254.5);
        assert_string_equal(ladder->reasons[0].sentence,
                "Deferred writes: 728.0 MiB in writes of 16.0 KiB, below "
                "bluestore_prefer_deferred_size; each such byte goes to the RocksDB WAL and later "
                "to its place.");
        assert_string_equal(ladder->reasons[1].part, "metadata");
}

static void the_reasons_and_the_expected_value_add_up_to_the_amplification(void **state)
{
        struct ladder_input input = usual();
        double all = 3;
        (void)state;

        /* Something of everything, all of it large enough to be named. */
        osd_16k[LADDER_SMALL] = 40 * MB;
        osd_16k[LADDER_SMALL_OPS] = 20000;
        osd_16k[LADDER_BIG] += 60 * MB;
        osd_16k[LADDER_SUBMITTED] -= 300 * MB;
        osd_16k[LADDER_ISSUED] -= 300 * MB;
        osd_16k[LADDER_SST] = 30 * MB;
        CLEANUP(ladder) struct ladder *ladder = compute(input);

        for (size_t i = 0; i < ladder->n_reasons; i++)
                all += ladder->reasons[i].amplification;
        assert_int_equal(ladder->n_reasons, 4);
        /* Unattributed is negative here and is no reason. */
        assert_close(all + ladder->unattributed_bytes / (254.5 * MB), ladder->point.amplification);
        for (size_t i = 1; i < ladder->n_reasons; i++)
                assert_true(
                        ladder->reasons[i - 1].amplification >= ladder->reasons[i].amplification);
}

static void a_small_excess_needs_no_reason(void **state)
{
        static const struct ladder_member pool[] = {{"rbd", 1700 * MB / 3, 9000, 3, false}};
        struct ladder_input input = usual();
        (void)state;

        input.pools = pool;
        CLEANUP(ladder) struct ladder *ladder = compute(input);

        assert_true(ladder->point.excess < 1.2);
        assert_int_equal(ladder->n_reasons, 0);
}

static void devices_that_others_use_too_are_unattributed(void **state)
{
        static const struct ladder_member devices[] = {{"node1/sda", 3000 * MB, 1, NAN, false}};
        struct ladder_input input = usual();
        (void)state;

        input.devices = devices;
        input.n_devices = 1;
        CLEANUP(ladder) struct ladder *ladder = compute(input);

        assert_close(ladder->unattributed_bytes, (3000 - 1740.3) * MB);
        assert_string_equal(ladder->reasons[0].part, "unattributed");
}

static void an_erasure_coded_pool_leaves_the_osd_rung_partial_and_says_why(void **state)
{
        /* 64k over an EC 2+1 pool: 476.5 MB asked, 1614.5 MB on the devices. */
        static const struct ladder_member pool[] = {{"ec", 476.5 * MB, 7270, 1.5, true}};
        static const struct ladder_member devices[] = {{"node1/sda", 1614.5 * MB, 1, NAN, false}};
        struct ladder_input input = usual();
        (void)state;

        osd_16k[LADDER_CLIENT_WRITE] = 476.5 * MB;
        osd_16k[LADDER_REPLICA] = 0;
        osd_16k[LADDER_BIG] = 720.6 * MB;
        osd_16k[LADDER_ISSUED] = osd_16k[LADDER_SUBMITTED] = 712.6 * MB;
        osd_16k[LADDER_SUBMITTED_OPS] = 21746;
        osd_16k[LADDER_WAL] = 844.9 * MB;
        osd_16k[LADDER_LOG] = 44.3 * MB;
        input.pools = pool;
        input.devices = devices;
        input.n_devices = 1;
        CLEANUP(ladder) struct ladder *ladder = compute(input);

        assert_int_equal(ladder->point.state, RUNG_OK);
        assert_close(ladder->point.expected, 1.5);
        assert_close(ladder->point.amplification, 1614.5 / 476.5);
        assert_int_equal(ladder->rungs[1].state, RUNG_PARTIAL);
        assert_non_null(ladder->rungs[1].note);
        assert_non_null(strstr(ladder->rungs[1].detail, "Erasure-coded pools took writes"));
        assert_string_equal(ladder->reasons[0].part, "deferred");
        assert_non_null(strstr(ladder->reasons[0].sentence, "writes of 32.0 KiB"));
        assert_non_null(strstr(ladder->reasons[0].sentence, "a shard is smaller"));
}

static void an_idle_window_has_bytes_but_no_amplification(void **state)
{
        static const struct ladder_member pool[] = {{"rbd", 4096, 1, 3, false}};
        struct ladder_input input = usual();
        (void)state;

        input.pools = pool;
        CLEANUP(ladder) struct ladder *ladder = compute(input);

        assert_int_equal(ladder->point.state, RUNG_IDLE);
        assert_true(isnan(ladder->rungs[3].amplification));
        assert_close(ladder->rungs[3].bytes, 1740.9 * MB);
        assert_int_equal(ladder->n_reasons, 0);
}

static void unknown_osds_are_a_gap_and_their_bytes_null(void **state)
{
        struct ladder_input input = usual();
        (void)state;

        for (size_t i = 0; i < LADDER_SLOTS_MAX_; i++)
                osd_16k[i] = NAN;
        input.rungs[1].seen = input.rungs[2].seen = 0;
        CLEANUP(ladder) struct ladder *ladder = compute(input);

        assert_int_equal(ladder->rungs[1].state, RUNG_GAP);
        assert_int_equal(ladder->rungs[2].state, RUNG_GAP);
        assert_true(isnan(ladder->rungs[1].bytes));
        assert_true(isnan(ladder->rungs[2].bytes));
        assert_true(isnan(part(&ladder->rungs[2], "data")->bytes));
        assert_true(isnan(ladder->unattributed_bytes));
        assert_close(ladder->point.amplification, 1740.9 / 254.5);
        assert_int_equal(ladder->n_reasons, 0);
}

static void reads_tell_cache_from_device(void **state)
{
        static const struct ladder_member pool[] = {{"rbd", 638.5 * MB, 9742, 3, false}};
        static const struct ladder_member devices[] = {{"node1/sda", 606.9 * MB, 1, NAN, false}};
        struct ladder_input input = usual();
        (void)state;

        input.direction = RATIO_READ;
        input.pools = pool;
        input.devices = devices;
        input.n_devices = 1;
        osd_16k[LADDER_CLIENT_READ] = 638.7 * MB;
        osd_16k[LADDER_HIT] = 31.6 * MB;
        osd_16k[LADDER_MISS] = 606.9 * MB;
        CLEANUP(ladder) struct ladder *ladder = compute(input);

        assert_close(ladder->point.expected, 1);
        assert_close(ladder->rungs[2].bytes, 606.9 * MB);
        assert_close(ladder->unattributed_bytes, 0);
        assert_false(part(&ladder->rungs[2], "cache_hit")->counted);
        assert_close(part(&ladder->rungs[2], "cache_hit")->bytes, 31.6 * MB);
}

static double sum_explained(const struct ladder *ladder)
{
        double sum = 0;

        for (size_t i = 0; i < ladder->n_explained; i++)
                sum += ladder->explained[i].amplification;
        return sum;
}

static const struct ladder_reason *item(const struct ladder *ladder, const char *name)
{
        for (size_t i = 0; i < ladder->n_explained; i++)
                if (strcmp(ladder->explained[i].part, name) == 0)
                        return &ladder->explained[i];
        fail_msg("nothing is explained by %s", name);
        return NULL;
}

static void an_amplification_reads_as_copies_and_what_is_added_to_them(void **state)
{
        static char name[] = "rbd";
        static const struct facts_pool facts = {.id = 1, .name = name, .size = 3};
        static const struct ladder_member pool[] = {
                {"rbd", 254.5 * MB, 254.5 * MB / 16384, 3, false, &facts}};
        struct ladder_input input = usual();
        (void)state;

        input.pools = pool;
        input.store = (struct ladder_store){1, 4096};
        CLEANUP(ladder) struct ladder *ladder = compute(input);

        assert_int_equal(ladder->n_explained, 3);
        assert_string_equal(ladder->explained[0].part, "copies");
        assert_string_equal(ladder->explained[0].sentence, "3 copies of each byte.");
        assert_close(ladder->explained[0].amplification, 3);
        assert_string_equal(ladder->explained[1].part, "deferred");
        assert_close(ladder->explained[1].configured, 3);
        assert_non_null(strstr(ladder->explained[1].sentence, "(100 % here) defer below 64.0 KiB"));
        assert_string_equal(ladder->explained[2].part, "metadata");
        assert_true(isnan(ladder->explained[2].configured));
        /* 0.6 MB are unattributed, which is less than LADDER_ITEM_MIN. */
        assert_true(fabs(sum_explained(ladder) - ladder->point.amplification) < LADDER_ITEM_MIN);
}

static void what_is_explained_adds_up_whatever_the_counters_say(void **state)
{
        static const struct ladder_member pools[] = {
                {"rbd", 254.5 * MB, 15533, NAN, false}, {"other", 10 * MB, 100, 2, false}};
        struct ladder_input input = usual();
        (void)state;

        for (unsigned i = 0; i < 4; i++) {
                input.n_pools = 1 + i % 2;
                input.pools = i % 2 ? pools : pool_16k;
                /* More deferred data was submitted than reached the WAL in this window. */
                if (i >= 2)
                        osd_16k[LADDER_SUBMITTED] = 1000 * MB;
                osd_16k[LADDER_PUSH] = 50 * MB;
                CLEANUP(ladder) struct ladder *ladder = compute(input);

                assert_true(fabs(sum_explained(ladder) - ladder->point.amplification) <
                            2 * LADDER_ITEM_MIN);
                /* No more of the WAL is deferred data than there is. */
                assert_close(item(ladder, "deferred")->amplification,
                        (i >= 2 ? 911.9 : 763.4) * MB / ladder->rungs[0].bytes);
                assert_close(
                        item(ladder, "recovery")->amplification, 50 * MB / ladder->rungs[0].bytes);
        }
}

static void without_a_reason_the_amplification_is_still_explained(void **state)
{
        static const struct ladder_member pool[] = {{"rbd", 1700 * MB / 3, 9000, 3, false}};
        struct ladder_input input = usual();
        (void)state;

        input.pools = pool;
        CLEANUP(ladder) struct ladder *ladder = compute(input);

        assert_int_equal(ladder->n_reasons, 0);
        assert_close(item(ladder, "copies")->amplification, 3);
        assert_true(item(ladder, "data")->amplification < 0);
}

static void what_compression_saves_is_no_unattributed_byte(void **state)
{
        static const struct ladder_member devices[] = {{"node1/sda", 1300 * MB, 1, NAN, false}};
        struct ladder_input input = usual();
        (void)state;

        input.devices = devices;
        input.n_devices = 1;
        CLEANUP(ladder) struct ladder *without = compute(input);
        assert_close(without->unattributed_bytes, (1300 - 1740.3) * MB);
        assert_close(item(without, "unattributed")->amplification, (1300 - 1740.3) / 254.5);

        osd_16k[LADDER_COMPRESSED_ORIGINAL] = 12 * 100 * MB;
        osd_16k[LADDER_COMPRESSED_ALLOCATED] = 12 * 40 * MB;
        CLEANUP(ladder) struct ladder *with = compute(input);
        assert_true(isnan(with->unattributed_bytes));
        assert_non_null(with->rungs[2].note);
        assert_close(item(with, "compression")->amplification, (1300 - 1740.3) / 254.5);
        assert_non_null(strstr(item(with, "compression")->sentence,
                "What is kept compressed, 95.4 MiB, takes 38.1 MiB."));
}

static void a_compaction_of_the_journal_is_a_part_of_its_own(void **state)
{
        /* Measured: fresh objects of 64 KiB, one compaction in each of three OSDs. */
        static const struct ladder_member devices[] = {{"node1/sda", 546361344, 1, NAN, false}};
        struct ladder_input input = usual();
        (void)state;

        memset(osd_16k, 0, sizeof(osd_16k));
        memcpy(osd_16k, measured[3].written, sizeof(measured[3].written));
        osd_16k[LADDER_COMPACTIONS] = 3;
        input.devices = devices;
        input.n_devices = 1;
        input.store.compaction_bytes = LADDER_COMPACTION_SHARED;
        CLEANUP(ladder) struct ladder *ladder = compute(input);

        assert_close(ladder->unattributed_bytes, 0);
        assert_close(part(&ladder->rungs[2], "log_compaction")->bytes, 405504);
}

static void recovery_is_what_was_sent_where_nobody_counts_what_was_received(void **state)
{
        struct ladder_input input = usual();
        (void)state;

        osd_16k[LADDER_RECOVERED] = 50 * MB;
        CLEANUP(ladder) struct ladder *whole = compute(input);
        assert_close(part(&whole->rungs[1], "recovery")->bytes, 50 * MB);
        assert_close(item(whole, "recovery")->amplification, 50 / 254.5);
        input.of = LADDER_OF_OSDS;
        CLEANUP(ladder) struct ladder *some = compute(input);
        assert_close(part(&some->rungs[1], "recovery")->bytes, 0);
}

static void each_rung_is_compared_with_the_one_above(void **state)
{
        CLEANUP(ladder) struct ladder *ladder = compute(usual());
        (void)state;

        assert_close(ladder->rungs[1].bytes_step.amplification, 786.8 / 254.5);
        assert_close(ladder->rungs[1].bytes_step.expected, 3);
        assert_close(ladder->rungs[2].bytes_step.ratio, 786.8 / 1740.3);
        assert_close(ladder->rungs[2].bytes_step.expected, 1);
        assert_close(ladder->rungs[2].bytes_step.excess, 1740.3 / 786.8);
        assert_close(ladder->rungs[1].ops_step.amplification, 3);
        assert_true(isnan(ladder->rungs[1].ops_step.expected));
        assert_close(ladder->ops.amplification, 27000.0 / 15533);
}

static void the_ladder_of_some_osds_begins_with_what_they_received(void **state)
{
        struct ladder_input input = usual();
        (void)state;

        input.of = LADDER_OF_OSDS;
        input.store = (struct ladder_store){1, 4096};
        CLEANUP(ladder) struct ladder *ladder = compute(input);

        assert_int_equal(ladder->base, LAYER_OSD);
        assert_true(isnan(ladder->rungs[0].bytes));
        assert_non_null(ladder->rungs[0].note);
        assert_string_equal(ladder->rungs[0].detail, "");
        assert_close(ladder->point.amplification, 1740.9 / 786.8);
        assert_close(ladder->point.expected, 1);
        assert_int_equal(ladder->point.state, RUNG_OK);
        assert_string_equal(ladder->explained[0].part, "received");
        assert_string_equal(ladder->reasons[0].part, "deferred");
}

static void the_ladder_of_a_pool_ends_with_what_was_asked_of_it(void **state)
{
        struct ladder_input input = usual();
        (void)state;

        input.of = LADDER_OF_POOL;
        CLEANUP(ladder) struct ladder *ladder = compute(input);

        assert_close(ladder->rungs[0].bytes, 254.5 * MB);
        for (size_t i = 1; i < LADDER_RUNGS; i++) {
                assert_true(isnan(ladder->rungs[i].bytes));
                assert_int_equal(ladder->rungs[i].n_parts, 0);
                assert_non_null(ladder->rungs[i].note);
        }
        assert_true(isnan(ladder->point.amplification));
}

static void scrub_and_snap_trim_stand_apart_without_a_number(void **state)
{
        struct ladder_input input = usual();
        (void)state;

        input.noise.pgs_snaptrim = 2;
        input.noise.pgs_scrubbing = 1;
        CLEANUP(ladder) struct ladder *write = compute(input);
        assert_true(isnan(part(&write->rungs[1], "snap_trim")->bytes));
        assert_false(part(&write->rungs[1], "snap_trim")->counted);
        input.direction = RATIO_READ;
        CLEANUP(ladder) struct ladder *read = compute(input);
        assert_true(isnan(part(&read->rungs[1], "scrub")->bytes));
}

static struct expected_items itemise(
        double bytes, const struct facts_pool *pool, double rotational, uint64_t min_alloc_size)
{
        struct expected_request request = {bytes, pool, rotational, min_alloc_size};
        struct expected_items items;

        expected_itemise(&request, &items);
        return items;
}

static void the_configuration_tells_what_a_write_of_a_size_costs(void **state)
{
        static const struct facts_pool three = {.size = 3};
        static const struct facts_pool parity = {
                .erasure = true, .size = 3, .k = 2, .m = 1, .stripe_unit = 4096};
        static const struct facts_pool wide = {
                .erasure = true, .size = 6, .k = 4, .m = 2, .stripe_unit = 65536};
        static const struct facts_pool unread = {.erasure = true, .size = 3};
        struct expected_items items;
        (void)state;

        items = itemise(16384, &three, 1, 4096);
        assert_close(items.copies, 3);
        assert_close(items.stripe + items.padding, 0);
        assert_close(items.deferred, 3);
        assert_close(itemise(65536, &three, 1, 4096).deferred, 0);
        assert_close(itemise(65536 - 4096, &three, 1, 4096).deferred, 3);
        /* Half of the OSDs are on flash with an allocation unit of 16 KiB. */
        assert_close(itemise(8192, &three, 0.5, 16384).deferred, 3);
        assert_close(itemise(16384, &three, 0.5, 16384).deferred, 1.5);
        assert_close(itemise(2048, &three, 0, 4096).padding, 3);
        /* 64 KiB over 2 + 1: shards of 32 KiB. */
        items = itemise(65536, &parity, 1, 4096);
        assert_close(items.copies, 1.5);
        assert_close(items.stripe, 0);
        assert_close(items.piece, 32768);
        assert_close(items.deferred, 1.5);
        /* 16 KiB of a stripe of 256 KiB: 16 times (4 + 2) / 4. */
        items = itemise(16384, &wide, 0, 4096);
        assert_close(items.copies + items.stripe, 24);
        assert_close(items.deferred, 0);
        assert_true(isnan(itemise(16384, &unread, 1, 4096).stripe));
        assert_true(isnan(itemise(16384, NULL, 1, 4096).copies));
        assert_true(isnan(itemise(NAN, &three, 1, 4096).deferred));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_bluestore_counts_is_what_the_devices_wrote),
                cmocka_unit_test(a_release_without_a_counter_still_has_a_sum),
                cmocka_unit_test(the_rungs_of_small_writes_are_what_was_measured),
                cmocka_unit_test(the_parts_of_a_rung_add_up_to_it),
                cmocka_unit_test(the_ladder_names_deferred_writes_first),
                cmocka_unit_test(the_reasons_and_the_expected_value_add_up_to_the_amplification),
                cmocka_unit_test(a_small_excess_needs_no_reason),
                cmocka_unit_test(devices_that_others_use_too_are_unattributed),
                cmocka_unit_test(an_erasure_coded_pool_leaves_the_osd_rung_partial_and_says_why),
                cmocka_unit_test(an_idle_window_has_bytes_but_no_amplification),
                cmocka_unit_test(unknown_osds_are_a_gap_and_their_bytes_null),
                cmocka_unit_test(reads_tell_cache_from_device),
                cmocka_unit_test(an_amplification_reads_as_copies_and_what_is_added_to_them),
                cmocka_unit_test(what_is_explained_adds_up_whatever_the_counters_say),
                cmocka_unit_test(without_a_reason_the_amplification_is_still_explained),
                cmocka_unit_test(what_compression_saves_is_no_unattributed_byte),
                cmocka_unit_test(a_compaction_of_the_journal_is_a_part_of_its_own),
                cmocka_unit_test(recovery_is_what_was_sent_where_nobody_counts_what_was_received),
                cmocka_unit_test(each_rung_is_compared_with_the_one_above),
                cmocka_unit_test(the_ladder_of_some_osds_begins_with_what_they_received),
                cmocka_unit_test(the_ladder_of_a_pool_ends_with_what_was_asked_of_it),
                cmocka_unit_test(scrub_and_snap_trim_stand_apart_without_a_number),
                cmocka_unit_test(the_configuration_tells_what_a_write_of_a_size_costs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
