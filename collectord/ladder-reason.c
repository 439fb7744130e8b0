#include "collectord/ladder-reason.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/expected.h"
#include "collectord/ladder-parts.h"

#define SIZE_TEXT_MAX 32u

static double known(double value)
{
        return isnan(value) ? 0 : value;
}

/* "16.0 KiB" */
static const char *format_size(double bytes, char *ret)
{
        static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
        size_t unit = 0;

        while (bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
                bytes /= 1024;
                unit++;
        }
        snprintf(ret, SIZE_TEXT_MAX, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
        return ret;
}

/* Beside a reason's amplification the one that the configuration gives. */
__attribute__((format(printf, 5, 6))) static void add_item(struct ladder *ladder, const char *part,
        double amplification, double configured, const char *format, ...)
{
        struct ladder_reason *item = &ladder->explained[ladder->n_explained];
        va_list arguments;

        if (!(fabs(amplification) >= LADDER_ITEM_MIN) || ladder->n_explained == LADDER_ITEMS_MAX)
                return;
        item->part = part;
        item->amplification = amplification;
        item->configured = configured;
        va_start(arguments, format);
        vsnprintf(item->sentence, sizeof(item->sentence), format, arguments);
        va_end(arguments);
        ladder->n_explained++;
}

static int compare_items(const void *a, const void *b)
{
        const struct ladder_reason *x = a, *y = b;

        return (y->amplification > x->amplification) - (y->amplification < x->amplification);
}

static double base_bytes(const struct ladder *ladder)
{
        return ladder->rungs[ladder->base - LAYER_FILESYSTEM].bytes;
}

/* ---- what the configuration says ---- */

static double erasure_share(const struct ladder_input *input)
{
        double erasure = 0, all = 0;

        for (size_t i = 0; i < input->n_pools; i++) {
                all += known(input->pools[i].bytes);
                if (input->pools[i].erasure)
                        erasure += known(input->pools[i].bytes);
        }
        return all > 0 ? erasure / all : 0;
}

/* Of the mix of pools: each with writes of its mean size, weighted by its bytes. */
static void itemise(
        const struct ladder *ladder, const struct ladder_input *input, struct expected_items *ret)
{
        /* What reaches an OSD has its copies made already. */
        const struct facts_pool once = {.size = 1};
        const struct ladder_rung *base = &ladder->rungs[ladder->base - LAYER_FILESYSTEM];
        struct expected_items sum = {0}, one;
        struct expected_request request = {
                .rotational = input->store.rotational,
                .min_alloc_size = input->store.min_alloc_size,
        };
        double all = 0;

        if (input->of == LADDER_OF_OSDS) {
                request.bytes = base->bytes / base->ops;
                request.pool = &once;
                expected_itemise(&request, ret);
                return;
        }
        for (size_t i = 0; i < input->n_pools; i++) {
                double bytes = known(input->pools[i].bytes);

                if (bytes <= 0)
                        continue;
                request.bytes = bytes / input->pools[i].ops;
                request.pool = input->pools[i].facts;
                expected_itemise(&request, &one);
                all += bytes;
                sum.stripe += bytes * one.stripe;
                sum.padding += bytes * one.padding;
                sum.deferred += bytes * one.deferred;
        }
        *ret = (struct expected_items){
                .stripe = sum.stripe / all,
                .padding = sum.padding / all,
                .deferred = sum.deferred / all,
        };
}

/* The one pool that took the writes, or NULL. */
static const struct ladder_member *only_pool(const struct ladder_input *input)
{
        const struct ladder_member *found = NULL;

        for (size_t i = 0; i < input->n_pools; i++)
                if (input->pools[i].bytes > 0.01 * input->pools[0].bytes || i == 0) {
                        if (!(input->pools[i].bytes > 0))
                                continue;
                        if (found)
                                return NULL;
                        found = &input->pools[i];
                }
        return found;
}

static void explain_redundancy(struct ladder *ladder, const struct ladder_input *input)
{
        const struct ladder_member *pool = only_pool(input);
        const struct facts_pool *facts = pool ? pool->facts : NULL;
        double expected = ladder->point.expected;
        char unit[SIZE_TEXT_MAX];

        if (input->of == LADDER_OF_OSDS)
                add_item(ladder, "received", expected, expected,
                        "Every byte that the OSDs received, client and replica writes, written "
                        "once.");
        else if (!facts)
                add_item(ladder, "copies", expected, expected,
                        "Copies and parity of the pools, weighted by the bytes that each took.");
        else if (facts->erasure)
                add_item(ladder, "copies", expected, expected,
                        "Erasure coding %u+%u with a stripe unit of %s: %.2f bytes for each.",
                        facts->k, facts->m, format_size(facts->stripe_unit, unit), expected);
        else
                add_item(ladder, "copies", expected, expected, "%u cop%s of each byte.",
                        facts->size, facts->size == 1 ? "y" : "ies");
}

/* ---- what was measured beyond it ---- */

static void explain_deferred(struct ladder *ladder, const struct ladder_input *input,
        const struct expected_items *configured, double deferred)
{
        double ops = input->osd[LADDER_SUBMITTED_OPS];
        char size[SIZE_TEXT_MAX], mean[SIZE_TEXT_MAX] = "small", below[SIZE_TEXT_MAX];
        char known_share[128] = "";

        if (ops > 0)
                format_size(deferred / ops, mean);
        if (input->store.rotational > 0)
                snprintf(known_share, sizeof(known_share),
                        " By default rotational devices (%.0f %% here) defer below %s.",
                        100 * input->store.rotational,
                        format_size(EXPECTED_DEFERRED_BELOW_HDD, below));
        add_item(ladder, "deferred", deferred / base_bytes(ladder), configured->deferred,
                "Deferred writes: %s in writes of %s, below bluestore_prefer_deferred_size%s; each "
                "such byte goes to the RocksDB WAL and later to its place.%s",
                format_size(deferred, size), mean,
                erasure_share(input) > 0.5 ? " (a shard is smaller than the client's write)" : "",
                known_share);
}

/* @wal: its bytes beside the deferred data. */
static void explain_metadata(struct ladder *ladder, const struct ladder_input *input, double wal)
{
        double sst = known(input->osd[LADDER_SST]),
               log = known(input->osd[LADDER_LOG]) + ladder_compaction_bytes(input);
        double ops = known(ladder->rungs[ladder->base - LAYER_FILESYSTEM].ops);
        char a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX], c[SIZE_TEXT_MAX], each[SIZE_TEXT_MAX];

        add_item(ladder, "metadata", (wal + sst + log) / base_bytes(ladder), NAN,
                "Metadata of BlueStore and the PG log: %s in the WAL beside deferred data, %s in "
                "RocksDB tables, %s in the BlueFS journal; %s for each client write.",
                format_size(wal, a), format_size(sst, b), format_size(log, c),
                ops > 0 ? format_size((wal + sst + log) / ops, each) : "unknown");
}

static void explain_data(struct ladder *ladder, const struct ladder_input *input,
        const struct expected_items *configured)
{
        double base = base_bytes(ladder), pushed = known(ladder_recovery_bytes(input));
        double data = ladder_data(input->osd) - known(ladder->point.expected) * base - pushed;
        char size[SIZE_TEXT_MAX];

        format_size(fabs(data), size);
        if (isnan(ladder->point.expected))
                add_item(ladder, "data", data / base, NAN,
                        "Object data: %s; the redundancy of a pool is not known, so that copies "
                        "cannot be told from the rest.",
                        size);
        else if (data < 0)
                add_item(ladder, "data", data / base, NAN,
                        "Object data short of the copies: %s, for example writes that the pool "
                        "statistics count in another window, or copies that are missing.",
                        size);
        else if (erasure_share(input) > 0)
                add_item(ladder, "erasure", data / base, configured->stripe,
                        "Erasure coding: an overwrite of part of a stripe rewrites whole shards "
                        "and keeps what it replaces until all have it: %s beyond (k + m) / k.",
                        size);
        else
                add_item(ladder, "data", data / base, NAN,
                        "Object data beyond the copies: %s, for example objects copied whole at "
                        "the first write after a snapshot, or writes that the pool statistics "
                        "count in another window.",
                        size);
        add_item(ladder, "recovery", pushed / base, NAN,
                "Recovery and backfill wrote %s that no client asked for.",
                format_size(pushed, size));
}

static void explain_write(struct ladder *ladder, const struct ladder_input *input)
{
        double padding = known(ladder_padding(input->osd)), wal = known(input->osd[LADDER_WAL]);
        double deferred = known(input->osd[LADDER_SUBMITTED]);
        struct expected_items configured;
        char size[SIZE_TEXT_MAX];

        /* Copies in the WAL may belong to writes that an earlier window counted. */
        deferred = deferred < wal ? deferred : wal;
        itemise(ladder, input, &configured);
        explain_redundancy(ladder, input);
        explain_deferred(ladder, input, &configured, deferred);
        explain_metadata(ladder, input, wal - deferred);
        explain_data(ladder, input, &configured);
        add_item(ladder, "padding", padding / base_bytes(ladder), configured.padding,
                "Padding: %.0f writes smaller than a device block of %.0f bytes cost a block each, "
                "%s more than their bytes.",
                known(input->osd[LADDER_SMALL_OPS]), LADDER_BLOCK_BYTES,
                format_size(padding, size));
}

static void explain_read(struct ladder *ladder, const struct ladder_input *input)
{
        double base = base_bytes(ladder);
        double bluefs = known(input->osd[LADDER_BLUEFS_READ]);
        double data = known(input->osd[LADDER_MISS]) - base;
        char size[SIZE_TEXT_MAX];

        add_item(ladder, "copies", 1, 1, "One copy of each byte that clients asked for.");
        add_item(ladder, "bluefs", bluefs / base, NAN,
                "RocksDB read %s (metadata look-ups, compaction and prefetch).",
                format_size(bluefs, size));
        if (data < 0)
                add_item(ladder, "cache_hit", data / base, NAN,
                        "BlueStore read %s less than the clients asked for: its cache had the "
                        "rest, or there was nothing to read.",
                        format_size(-data, size));
        else
                add_item(ladder, "cache_miss", data / base, NAN,
                        "BlueStore read %s more than the clients asked for (read-modify-write, "
                        "scrub, recovery or read-ahead).",
                        format_size(data, size));
}

/* What the devices moved beside the counters: nobody's bytes, or what compression saved. */
static void explain_rest(struct ladder *ladder, const struct ladder_input *input)
{
        double base = base_bytes(ladder);
        double rest = ladder->rungs[3].bytes - ladder->rungs[2].bytes;
        double original = input->osd[LADDER_COMPRESSED_ORIGINAL] / ladder->seconds;
        double allocated = input->osd[LADDER_COMPRESSED_ALLOCATED] / ladder->seconds;
        char size[SIZE_TEXT_MAX], a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX];

        if (rest < 0 && ladder->direction == RATIO_WRITE && ladder_is_compressing(input))
                add_item(ladder, "compression", rest / base, NAN,
                        "Compression: the devices wrote %s less than BlueStore was given. What is "
                        "kept compressed, %s, takes %s.",
                        format_size(-rest, size), format_size(original, a),
                        format_size(known(allocated), b));
        else
                add_item(ladder, "unattributed", rest / base, NAN,
                        rest < 0 ? "The devices moved %s less than Ceph's counters say."
                                 : "The devices moved %s that no counter of Ceph explains: "
                                   "something else uses them.",
                        format_size(fabs(rest), size));
}

static void take_reasons(struct ladder *ladder)
{
        if (!(ladder->point.excess >= LADDER_REASON_EXCESS))
                return;
        for (size_t i = 0; i < ladder->n_explained && ladder->n_reasons < LADDER_REASONS_MAX; i++) {
                const struct ladder_reason *item = &ladder->explained[i];

                if (strcmp(item->part, "copies") != 0 && strcmp(item->part, "received") != 0 &&
                        item->amplification >= LADDER_REASON_MIN)
                        ladder->reasons[ladder->n_reasons++] = *item;
        }
}

void ladder_explain(struct ladder *ladder, const struct ladder_input *input)
{
        size_t first;

        if (isnan(ladder->point.amplification) || ladder->rungs[2].state == RUNG_GAP)
                return;
        if (ladder->direction == RATIO_WRITE)
                explain_write(ladder, input);
        else
                explain_read(ladder, input);
        explain_rest(ladder, input);
        first = ladder->n_explained > 0 &&
                ladder->explained[0].amplification == ladder->point.expected;
        qsort(ladder->explained + first, ladder->n_explained - first, sizeof(ladder->explained[0]),
                compare_items);
        take_reasons(ladder);
}
