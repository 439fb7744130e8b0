#include "collectord/ladder-reason.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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

__attribute__((format(printf, 4, 5))) static void add_reason(
        struct ladder *ladder, const char *part, double amplification, const char *format, ...)
{
        struct ladder_reason *reason = &ladder->reasons[ladder->n_reasons];
        va_list arguments;

        if (isnan(amplification) || amplification < LADDER_REASON_MIN ||
                ladder->n_reasons == LADDER_REASONS_MAX)
                return;
        reason->part = part;
        reason->amplification = amplification;
        va_start(arguments, format);
        vsnprintf(reason->sentence, sizeof(reason->sentence), format, arguments);
        va_end(arguments);
        ladder->n_reasons++;
}

static int compare_reasons(const void *a, const void *b)
{
        const struct ladder_reason *x = a, *y = b;

        return (y->amplification > x->amplification) - (y->amplification < x->amplification);
}

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

static void explain_deferred(
        struct ladder *ladder, const struct ladder_input *input, double filesystem)
{
        double bytes = known(input->osd[LADDER_SUBMITTED]);
        double ops = input->osd[LADDER_SUBMITTED_OPS];
        char size[SIZE_TEXT_MAX], mean[SIZE_TEXT_MAX] = "small";

        if (ops > 0)
                format_size(bytes / ops, mean);
        add_reason(ladder, "deferred", bytes / filesystem,
                "Deferred writes: %s in writes of %s, below bluestore_prefer_deferred_size%s; each "
                "such byte goes to the RocksDB WAL and later to its place.",
                format_size(bytes, size), mean,
                erasure_share(input) > 0.5 ? " (a shard is smaller than the client's write)" : "");
}

static void explain_metadata(
        struct ladder *ladder, const struct ladder_input *input, double filesystem)
{
        double wal = known(input->osd[LADDER_WAL]) - known(input->osd[LADDER_SUBMITTED]);
        double sst = known(input->osd[LADDER_SST]), log = known(input->osd[LADDER_LOG]);
        double ops = known(ladder->rungs[0].ops);
        char a[SIZE_TEXT_MAX], b[SIZE_TEXT_MAX], c[SIZE_TEXT_MAX], each[SIZE_TEXT_MAX];

        /* Copies in the WAL may belong to writes that an earlier window counted. */
        wal = wal > 0 ? wal : 0;
        add_reason(ladder, "metadata", (wal + sst + log) / filesystem,
                "Metadata of BlueStore and the PG log: %s in the WAL beside deferred data, %s in "
                "RocksDB tables, %s in the BlueFS journal; %s for each client write.",
                format_size(wal, a), format_size(sst, b), format_size(log, c),
                ops > 0 ? format_size((wal + sst + log) / ops, each) : "unknown");
}

static void explain_data(struct ladder *ladder, const struct ladder_input *input, double filesystem)
{
        double pushed = known(input->osd[LADDER_PUSH]);
        double data = ladder_data(input->osd) - ladder->point.expected * filesystem - pushed;
        char size[SIZE_TEXT_MAX];

        add_reason(ladder, "recovery", pushed / filesystem,
                "Recovery and backfill wrote %s that no client asked for.",
                format_size(pushed, size));
        if (erasure_share(input) > 0)
                add_reason(ladder, "erasure", data / filesystem,
                        "Erasure coding: an overwrite of part of a stripe rewrites whole shards "
                        "and "
                        "keeps what it replaces until all have it: %s beyond (k + m) / k.",
                        format_size(data, size));
        else
                add_reason(ladder, "data", data / filesystem,
                        "Object data beyond the copies: %s, for example objects copied whole at "
                        "the "
                        "first write after a snapshot, or writes that the pool statistics count in "
                        "another window.",
                        format_size(data, size));
}

static void explain_write(struct ladder *ladder, const struct ladder_input *input)
{
        double filesystem = ladder->rungs[0].bytes;
        double padding = known(ladder_padding(input->osd));
        char size[SIZE_TEXT_MAX];

        explain_deferred(ladder, input, filesystem);
        explain_metadata(ladder, input, filesystem);
        explain_data(ladder, input, filesystem);
        add_reason(ladder, "padding", padding / filesystem,
                "Padding: %.0f writes smaller than a device block of %.0f bytes cost a block each, "
                "%s more than their bytes.",
                known(input->osd[LADDER_SMALL_OPS]), LADDER_BLOCK_BYTES,
                format_size(padding, size));
}

static void explain_read(struct ladder *ladder, const struct ladder_input *input)
{
        double filesystem = ladder->rungs[0].bytes;
        double bluefs = known(input->osd[LADDER_BLUEFS_READ]);
        double data = known(input->osd[LADDER_MISS]) - filesystem;
        char size[SIZE_TEXT_MAX];

        add_reason(ladder, "bluefs", bluefs / filesystem,
                "RocksDB read %s (metadata look-ups, compaction and prefetch).",
                format_size(bluefs, size));
        add_reason(ladder, "cache_miss", data / filesystem,
                "BlueStore read %s more than the clients asked for (read-modify-write, scrub, "
                "recovery or read-ahead).",
                format_size(data, size));
}

void ladder_explain(struct ladder *ladder, const struct ladder_input *input)
{
        char size[SIZE_TEXT_MAX];

        if (!(ladder->point.excess >= LADDER_REASON_EXCESS))
                return;
        if (ladder->rungs[2].state != RUNG_GAP) {
                if (ladder->direction == RATIO_WRITE)
                        explain_write(ladder, input);
                else
                        explain_read(ladder, input);
        }
        add_reason(ladder, "unattributed", ladder->unattributed_bytes / ladder->rungs[0].bytes,
                "The devices moved %s that no counter of Ceph explains: something else uses them.",
                format_size(known(ladder->unattributed_bytes), size));
        qsort(ladder->reasons, ladder->n_reasons, sizeof(ladder->reasons[0]), compare_reasons);
}
