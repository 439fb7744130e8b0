#include "collectord/series.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "collectord/ladder.h"

#define SECTOR 512.0
#define MILLI 1e-3
#define NANO 1e-9

#define TERM(metric_, slot_, scale_)                                                               \
        {                                                                                          \
                .metric = METRIC_##metric_, .slot = (slot_), .scale = (scale_),                    \
                .need = RUNG_NEED_ENTITY                                                           \
        }
#define OPTIONAL(metric_, slot_, scale_)                                                           \
        {                                                                                          \
                .metric = METRIC_##metric_, .slot = (slot_), .scale = (scale_),                    \
                .need = RUNG_NEED_OPTIONAL                                                         \
        }

#define SLOT_COMPACTIONS LADDER_WRITTEN_MAX_
_Static_assert(SLOT_COMPACTIONS < SERIES_SLOTS_MAX, "a slot is left");

/* clang-format off */
static const struct series_definition definitions[] = {
        {SOURCE_CEPH, LAYER_FILESYSTEM, "read_bytes", "bytes/s", SERIES_RATE, .terms = {TERM(POOL_READ_BYTES, 0, 1)}},
        {SOURCE_CEPH, LAYER_FILESYSTEM, "write_bytes", "bytes/s", SERIES_RATE, .terms = {TERM(POOL_WRITE_BYTES, 0, 1)}},
        {SOURCE_CEPH, LAYER_FILESYSTEM, "read_ops", "operations/s", SERIES_RATE, .terms = {TERM(POOL_READ_OPS, 0, 1)}},
        {SOURCE_CEPH, LAYER_FILESYSTEM, "write_ops", "operations/s", SERIES_RATE, .terms = {TERM(POOL_WRITE_OPS, 0, 1)}},
        {SOURCE_CEPH, LAYER_FILESYSTEM, "read_size", "bytes", SERIES_QUOTIENT, .terms = {TERM(POOL_READ_BYTES, 0, 1), TERM(POOL_READ_OPS, 1, 1)}},
        {SOURCE_CEPH, LAYER_FILESYSTEM, "write_size", "bytes", SERIES_QUOTIENT, .terms = {TERM(POOL_WRITE_BYTES, 0, 1), TERM(POOL_WRITE_OPS, 1, 1)}},

        {SOURCE_OSD, LAYER_OSD, "read_bytes", "bytes/s", SERIES_RATE, .terms = {TERM(OSD_OP_R_OUT_BYTES, 0, 1), OPTIONAL(OSD_OP_RW_OUT_BYTES, 0, 1)}},
        {SOURCE_OSD, LAYER_OSD, "write_bytes", "bytes/s", SERIES_RATE,
                .terms = {TERM(OSD_OP_W_IN_BYTES, 0, 1), OPTIONAL(OSD_OP_RW_IN_BYTES, 0, 1), TERM(OSD_SUBOP_W_IN_BYTES, 0, 1)}},
        {SOURCE_OSD, LAYER_OSD, "read_ops", "operations/s", SERIES_RATE, .terms = {TERM(OSD_OP_R, 0, 1)}},
        {SOURCE_OSD, LAYER_OSD, "write_ops", "operations/s", SERIES_RATE,
                .terms = {TERM(OSD_OP_W, 0, 1), OPTIONAL(OSD_OP_RW, 0, 1), TERM(OSD_SUBOP_W, 0, 1)}},
        {SOURCE_OSD, LAYER_OSD, "read_size", "bytes", SERIES_QUOTIENT,
                .terms = {TERM(OSD_OP_R_OUT_BYTES, 0, 1), TERM(OSD_OP_R, 1, 1)}},
        {SOURCE_OSD, LAYER_OSD, "write_size", "bytes", SERIES_QUOTIENT,
                .terms = {TERM(OSD_OP_W_IN_BYTES, 0, 1), TERM(OSD_SUBOP_W_IN_BYTES, 0, 1), TERM(OSD_OP_W, 1, 1), TERM(OSD_SUBOP_W, 1, 1)}},
        {SOURCE_OSD, LAYER_OSD, "read_await", "seconds", SERIES_QUOTIENT,
                .terms = {TERM(OSD_OP_R_LATENCY_TIME, 0, NANO), TERM(OSD_OP_R_LATENCY_COUNT, 1, 1)}},
        {SOURCE_OSD, LAYER_OSD, "write_await", "seconds", SERIES_QUOTIENT,
                .terms = {TERM(OSD_OP_W_LATENCY_TIME, 0, NANO), TERM(OSD_OP_W_LATENCY_COUNT, 1, 1)}},

        {SOURCE_OSD, LAYER_OBJECTSTORE, "read_bytes", "bytes/s", SERIES_RATE,
                .terms = {TERM(BLUESTORE_BUFFER_MISS_BYTES, 0, 1), OPTIONAL(BLUEFS_READ_RANDOM_DISK_BYTES, 0, 1), OPTIONAL(BLUEFS_READ_BYTES, 0, 1)}},
        {SOURCE_OSD, LAYER_OBJECTSTORE, "write_bytes", "bytes/s", SERIES_OBJECTSTORE,
                .terms = {TERM(BLUESTORE_WRITE_BIG_BYTES, LADDER_BIG, 1), TERM(BLUESTORE_WRITE_SMALL_BYTES, LADDER_SMALL, 1),
                        OPTIONAL(BLUESTORE_WRITE_SMALL, LADDER_SMALL_OPS, 1), OPTIONAL(BLUESTORE_PAD_BYTES, LADDER_PAD, 1),
                        OPTIONAL(BLUESTORE_DEFERRED_BYTES, LADDER_ISSUED, 1), OPTIONAL(BLUESTORE_DEFERRED_SUBMITTED_BYTES, LADDER_SUBMITTED, 1),
                        TERM(BLUEFS_WAL_BYTES, LADDER_WAL, 1), TERM(BLUEFS_SST_BYTES, LADDER_SST, 1), TERM(BLUEFS_LOG_BYTES, LADDER_LOG, 1),
                        OPTIONAL(BLUEFS_LOG_COMPACTIONS, SLOT_COMPACTIONS, 1)}},
        {SOURCE_OSD, LAYER_OBJECTSTORE, "read_ops", "operations/s", SERIES_RATE, .terms = {TERM(BLUESTORE_READ_COUNT, 0, 1)}},
        {SOURCE_OSD, LAYER_OBJECTSTORE, "write_ops", "operations/s", SERIES_RATE,
                .terms = {TERM(BLUESTORE_WRITE_BIG, 0, 1), TERM(BLUESTORE_WRITE_SMALL, 0, 1)}},
        {SOURCE_OSD, LAYER_OBJECTSTORE, "write_size", "bytes", SERIES_QUOTIENT,
                .terms = {TERM(BLUESTORE_WRITE_BIG_BYTES, 0, 1), TERM(BLUESTORE_WRITE_SMALL_BYTES, 0, 1), TERM(BLUESTORE_WRITE_BIG, 1, 1), TERM(BLUESTORE_WRITE_SMALL, 1, 1)}},
        {SOURCE_OSD, LAYER_OBJECTSTORE, "read_await", "seconds", SERIES_QUOTIENT,
                .terms = {TERM(BLUESTORE_READ_TIME, 0, NANO), TERM(BLUESTORE_READ_COUNT, 1, 1)}},
        {SOURCE_OSD, LAYER_OBJECTSTORE, "write_await", "seconds", SERIES_QUOTIENT,
                .terms = {TERM(BLUESTORE_COMMIT_TIME, 0, NANO), TERM(BLUESTORE_COMMIT_COUNT, 1, 1)}},

        {SOURCE_DISKSTATS, LAYER_STORAGE, "read_bytes", "bytes/s", SERIES_RATE, .terms = {TERM(DISK_READ_SECTORS, 0, SECTOR)}},
        {SOURCE_DISKSTATS, LAYER_STORAGE, "write_bytes", "bytes/s", SERIES_RATE, .terms = {TERM(DISK_WRITE_SECTORS, 0, SECTOR)}},
        {SOURCE_DISKSTATS, LAYER_STORAGE, "read_ops", "operations/s", SERIES_RATE, .terms = {TERM(DISK_READ_OPS, 0, 1)}},
        {SOURCE_DISKSTATS, LAYER_STORAGE, "write_ops", "operations/s", SERIES_RATE, .terms = {TERM(DISK_WRITE_OPS, 0, 1)}},
        {SOURCE_DISKSTATS, LAYER_STORAGE, "read_size", "bytes", SERIES_QUOTIENT, .terms = {TERM(DISK_READ_SECTORS, 0, SECTOR), TERM(DISK_READ_OPS, 1, 1)}},
        {SOURCE_DISKSTATS, LAYER_STORAGE, "write_size", "bytes", SERIES_QUOTIENT, .terms = {TERM(DISK_WRITE_SECTORS, 0, SECTOR), TERM(DISK_WRITE_OPS, 1, 1)}},
        {SOURCE_DISKSTATS, LAYER_STORAGE, "read_await", "seconds", SERIES_QUOTIENT, .terms = {TERM(DISK_READ_TIME, 0, MILLI), TERM(DISK_READ_OPS, 1, 1)}},
        {SOURCE_DISKSTATS, LAYER_STORAGE, "write_await", "seconds", SERIES_QUOTIENT, .terms = {TERM(DISK_WRITE_TIME, 0, MILLI), TERM(DISK_WRITE_OPS, 1, 1)}},
        {SOURCE_DISKSTATS, LAYER_STORAGE, "utilisation", "fraction", SERIES_FRACTION, .terms = {TERM(DISK_BUSY_TIME, 0, MILLI)}},
        {SOURCE_DISKSTATS, LAYER_STORAGE, "queue", "requests", SERIES_RATE, .terms = {TERM(DISK_WEIGHTED_TIME, 0, MILLI)}},
        {SOURCE_DISKSTATS, LAYER_STORAGE, "discard_bytes", "bytes/s", SERIES_RATE, .terms = {TERM(DISK_DISCARD_SECTORS, 0, SECTOR)}},
        {SOURCE_DISKSTATS, LAYER_STORAGE, "discard_ops", "operations/s", SERIES_RATE, .terms = {TERM(DISK_DISCARD_OPS, 0, 1)}},
        {SOURCE_DISKSTATS, LAYER_STORAGE, "flush_ops", "operations/s", SERIES_RATE, .terms = {TERM(DISK_FLUSH_OPS, 0, 1)}},
        {SOURCE_DISKSTATS, LAYER_STORAGE, "flush_await", "seconds", SERIES_QUOTIENT, .terms = {TERM(DISK_FLUSH_TIME, 0, MILLI), TERM(DISK_FLUSH_OPS, 1, 1)}},
};
/* clang-format on */

static enum source_id source_of(enum layer layer)
{
        switch (layer) {
        case LAYER_FILESYSTEM:
                return SOURCE_CEPH;
        case LAYER_OSD:
        case LAYER_OBJECTSTORE:
                return SOURCE_OSD;
        case LAYER_STORAGE:
                return SOURCE_DISKSTATS;
        default:
                return SOURCE_HOST;
        }
}

static const char *raw_unit(const struct metric *metric)
{
        static const char *const rates[] = {
                [UNIT_OPERATIONS] = "operations/s",
                [UNIT_BYTES] = "bytes/s",
                [UNIT_SECTORS] = "sectors/s",
                [UNIT_KIBIBYTES] = "kibibytes/s",
                [UNIT_MILLISECONDS] = "milliseconds/s",
                [UNIT_MICROSECONDS] = "microseconds/s",
                [UNIT_NANOSECONDS] = "nanoseconds/s",
                [UNIT_TICKS] = "ticks/s",
                [UNIT_COUNT] = "1/s",
                [UNIT_HUNDREDTHS_PERCENT] = "hundredths_percent/s",
                [UNIT_FLAG] = "1/s",
        };

        if (metric->kind == METRIC_GAUGE)
                return metric_unit_name(metric->unit);
        return rates[metric->unit];
}

static void count_terms(struct series_definition *definition)
{
        while (definition->n_terms < SERIES_TERMS_MAX &&
                definition->terms[definition->n_terms].metric != 0) {
                uint16_t slot = definition->terms[definition->n_terms++].slot;

                if (slot >= definition->n_slots)
                        definition->n_slots = slot + 1u;
        }
        assert(definition->n_slots <= SERIES_SLOTS_MAX);
}

int series_find(enum layer layer, const char *name, struct series_definition *ret)
{
        const struct metric *metric;

        for (size_t i = 0; i < sizeof(definitions) / sizeof(definitions[0]); i++)
                if (definitions[i].layer == layer && strcmp(definitions[i].name, name) == 0) {
                        *ret = definitions[i];
                        count_terms(ret);
                        return 0;
                }
        metric = metric_find(source_of(layer), name);
        if (!metric && layer == LAYER_OSD)
                metric = metric_find(SOURCE_OSD_HISTOGRAM, name);
        if (!metric && layer == LAYER_NONE)
                metric = metric_find(SOURCE_AGENT, name);
        if (!metric)
                return -ENOENT;
        *ret = (struct series_definition){
                .source = metric->source,
                .layer = layer,
                .name = metric->name,
                .unit = raw_unit(metric),
                .kind = SERIES_RATE,
                .terms = {{.metric = metric->id, .scale = 1, .need = RUNG_NEED_ENTITY}},
        };
        count_terms(ret);
        return 0;
}

double series_total(
        const struct series_definition *definition, const double *sums, double compaction_bytes)
{
        double compactions;

        if (definition->kind != SERIES_OBJECTSTORE)
                return sums[0];
        compactions = sums[SLOT_COMPACTIONS];
        return ladder_written_bytes(sums) +
               (isnan(compactions) ? 0 : compactions * compaction_bytes);
}

double series_value(const struct series_definition *definition, const double *sums, double seconds,
        uint32_t seen, double compaction_bytes)
{
        switch (definition->kind) {
        case SERIES_QUOTIENT:
                return sums[1] > 0 ? sums[0] / sums[1] : NAN;
        case SERIES_FRACTION:
                return seen > 0 ? sums[0] / seconds / seen : NAN;
        case SERIES_RATE:
        case SERIES_OBJECTSTORE:
                break;
        }
        return series_total(definition, sums, compaction_bytes) / seconds;
}
