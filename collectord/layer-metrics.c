#include "collectord/layer-metrics.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/layers.h"

#define MINUTE_US 60000000
#define ALL_LAYERS                                                                                 \
        (LAYERS_BIT(LAYER_FILESYSTEM) | LAYERS_BIT(LAYER_OSD) | LAYERS_BIT(LAYER_OBJECTSTORE) |    \
                LAYERS_BIT(LAYER_STORAGE))

/* The lines of a metric stand together, so each has a buffer of its own until all clusters are in.
 */
enum family { BYTES, OPERATIONS, RATIO, AMPLIFICATION, EXPECTED, FAMILIES };

static const struct {
        const char *name, *help;
} families[FAMILIES] = {
        [BYTES] = {"strata_layer_bytes_per_second",
                "Bytes that a layer moved, mean of the last complete minute."},
        [OPERATIONS] = {"strata_layer_operations_per_second",
                "Operations of a layer, mean of the last complete minute."},
        [RATIO] = {"strata_ratio", "Upper layer divided by lower layer, last complete minute."},
        [AMPLIFICATION] = {"strata_amplification",
                "Lower layer divided by upper layer, last complete minute."},
        [EXPECTED] = {"strata_expected_amplification",
                "The amplification that replication or erasure coding alone explains."},
};

static const char *const direction_names[] = {[RATIO_WRITE] = "write", [RATIO_READ] = "read"};
static const char *const measure_names[] = {[RATIO_BYTES] = "bytes", [RATIO_OPS] = "ops"};

struct writer {
        FILE *out[FAMILIES];
        char *text[FAMILIES];
        size_t size[FAMILIES];
};

static void writer_done(struct writer *writer)
{
        for (int i = 0; i < FAMILIES; i++) {
                if (writer->out[i])
                        fclose(writer->out[i]);
                free(writer->text[i]);
        }
}
DEFINE_CLEANUP(writer, struct writer *, writer_done)

/* A number that does not exist has no line: a scraper would keep NaN. */
__attribute__((format(printf, 4, 5))) static void line(
        struct writer *writer, enum family family, double value, const char *labels, ...)
{
        FILE *out = writer->out[family];
        va_list arguments;

        if (!isfinite(value))
                return;
        fprintf(out, "%s{", families[family].name);
        va_start(arguments, labels);
        vfprintf(out, labels, arguments);
        va_end(arguments);
        fprintf(out, "} %.10g\n", value);
}

static void write_rungs(struct writer *writer, const struct layers *layers,
        const struct layers_target *target, const char *fsid, enum ratio_direction direction,
        enum ratio_measure measure)
{
        for (enum layer layer = LAYER_FILESYSTEM; layer < LAYER_MAX_; layer++) {
                struct ratio_rung rung;

                layers_rung(layers, target, layer, direction, measure, 0, &rung);
                if (ratio_rung_state(&rung) == RUNG_GAP)
                        continue;
                line(writer, measure == RATIO_BYTES ? BYTES : OPERATIONS, rung.sum / 60,
                        "cluster=\"%s\",layer=\"%s\",direction=\"%s\"", fsid, layer_name(layer),
                        direction_names[direction]);
        }
}

static void write_ratios(struct writer *writer, const struct layers *layers,
        const struct layers_target *target, const char *fsid, enum ratio_direction direction,
        enum ratio_measure measure)
{
        static const enum layer pairs[][2] = {{LAYER_FILESYSTEM, LAYER_OSD},
                {LAYER_FILESYSTEM, LAYER_STORAGE}, {LAYER_OSD, LAYER_OBJECTSTORE},
                {LAYER_OSD, LAYER_STORAGE}, {LAYER_OBJECTSTORE, LAYER_STORAGE}};

        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
                struct ratio_input input;
                struct ratio_point point;
                char labels[192];

                layers_ratio(
                        layers, target, pairs[i][0], pairs[i][1], direction, measure, 0, &input);
                ratio_compute(&input, &point);
                snprintf(labels, sizeof(labels),
                        "cluster=\"%s\",upper=\"%s\",lower=\"%s\",direction=\"%s\",measure=\"%s\"",
                        fsid, layer_name(pairs[i][0]), layer_name(pairs[i][1]),
                        direction_names[direction], measure_names[measure]);
                line(writer, RATIO, point.ratio, "%s", labels);
                line(writer, AMPLIFICATION, point.amplification, "%s", labels);
                line(writer, EXPECTED, point.expected, "%s", labels);
        }
}

static int write_cluster(struct writer *writer, const struct query *query, uint32_t cluster)
{
        /* A minute of the clock, so that everybody who asks within it sees the same. */
        int64_t end_us = query_frontier(query, cluster, layers_sources(ALL_LAYERS));
        struct layers_spec spec = {
                .cluster = cluster,
                .by = QUERY_BY_CLUSTER,
                .layers = ALL_LAYERS,
                .directions = 1u << RATIO_WRITE | 1u << RATIO_READ,
                .measures = 1u << RATIO_BYTES | 1u << RATIO_OPS,
        };
        const struct id *id = &query->topology->clusters[cluster].fsid;
        CLEANUP(layers) struct layers *layers = NULL;
        const struct layers_target *target;
        char fsid[ID_TEXT_MAX] = "none";
        size_t n;
        int r;

        end_us -= end_us % MINUTE_US;
        spec.windows = (struct rung_windows){end_us - MINUTE_US, MINUTE_US, 1};
        r = layers_open(query, &spec, &layers);
        if (r < 0)
                return r;
        if (!id_is_zero(id))
                id_format(id, fsid);
        target = layers_get_targets(layers, &n);
        for (unsigned direction = 0; direction < 2; direction++)
                for (unsigned measure = 0; measure < 2; measure++) {
                        write_rungs(writer, layers, target, fsid, direction, measure);
                        write_ratios(writer, layers, target, fsid, direction, measure);
                }
        return 0;
}

int layer_metrics_write(struct store_reader *reader, int64_t now_us, FILE *out)
{
        CLEANUP(query) struct query *query = NULL;
        struct writer storage = {0};
        CLEANUP(writer) struct writer *writer = &storage;
        int r;

        r = query_open(reader, now_us, 0, &query);
        if (r < 0)
                return r;
        for (int i = 0; i < FAMILIES; i++) {
                writer->out[i] = open_memstream(&writer->text[i], &writer->size[i]);
                if (!writer->out[i])
                        return -ENOMEM;
        }
        for (uint32_t i = 0; i < query->topology->n_clusters; i++) {
                r = write_cluster(writer, query, i);
                if (r < 0)
                        return r;
        }
        for (int i = 0; i < FAMILIES; i++) {
                fprintf(out, "# TYPE %s gauge\n# HELP %s %s\n", families[i].name, families[i].name,
                        families[i].help);
                fflush(writer->out[i]);
                fwrite(writer->text[i], 1, writer->size[i], out);
        }
        return ferror(out) ? -EIO : 0;
}
