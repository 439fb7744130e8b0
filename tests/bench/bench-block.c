/*
 * Density and speed of the block codec on a recorded /proc/diskstats trace: "#" and Unix
 * milliseconds, then the file as the kernel printed it, again and again.
 *
 *     zcat diskstats-1s.txt.gz | bench-block
 *     bench-block diskstats-1s.txt
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/block.h"
#include "lib/metric.h"

#define METRICS 17u /* fields of a line, in the order of the metrics' numbers */
#define DEVICES_MAX 64u
#define READINGS_MAX 8192u
#define SECONDS_OF_TIMING 0.4
#define FAR_DEVICES 24u /* of the synthetic node whose disks are all busy */

struct trace {
        uint32_t n_devices;
        uint32_t n_readings;
        char names[DEVICES_MAX][64];
        int64_t times_us[READINGS_MAX];
        uint64_t *values; /* [READINGS_MAX][DEVICES_MAX][METRICS] */
};

static uint64_t *trace_values(const struct trace *trace, uint32_t reading, uint32_t device)
{
        return trace->values + ((size_t)reading * DEVICES_MAX + device) * METRICS;
}

/* Devices are those of the first reading; -ENOENT for one that came later and went again. */
static int trace_device(struct trace *trace, const char *name, uint32_t *ret)
{
        for (uint32_t i = 0; i < trace->n_devices; i++)
                if (strcmp(trace->names[i], name) == 0) {
                        *ret = i;
                        return 0;
                }
        if (trace->n_readings > 1)
                return -ENOENT;
        if (trace->n_devices == DEVICES_MAX)
                return -E2BIG;
        snprintf(trace->names[trace->n_devices], sizeof(trace->names[0]), "%s", name);
        *ret = trace->n_devices++;
        return 0;
}

/* "   8       0 sda 86457 12412 ...": major, minor, name, fields. */
static int trace_line(struct trace *trace, const char *line)
{
        char name[64];
        uint32_t device;
        uint64_t *values;
        int used, r;

        if (trace->n_readings == 0 || sscanf(line, "%*u %*u %63s%n", name, &used) != 1)
                return -EINVAL;
        r = trace_device(trace, name, &device);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        values = trace_values(trace, trace->n_readings - 1, device);
        line += used;
        for (uint32_t i = 0; i < METRICS; i++) {
                char *end;

                values[i] = strtoull(line, &end, 10);
                if (end == line)
                        return -EINVAL;
                line = end;
        }
        return 0;
}

static int trace_read(struct trace *trace, FILE *file)
{
        char line[512];
        int r;

        trace->values = calloc((size_t)READINGS_MAX * DEVICES_MAX * METRICS, sizeof(uint64_t));
        if (!trace->values)
                return -ENOMEM;
        while (fgets(line, sizeof(line), file)) {
                if (line[0] == '#') {
                        if (trace->n_readings == READINGS_MAX)
                                break;
                        trace->times_us[trace->n_readings++] = 1000 * atoll(line + 1);
                        continue;
                }
                r = trace_line(trace, line);
                if (r < 0)
                        return r;
        }
        return trace->n_readings > 1 ? 0 : -ENODATA;
}

/* What one measurement takes out of the trace. */
struct selection {
        const char *name;
        const char *device; /* NULL: all */
        uint32_t stride;    /* every so many readings */
        uint32_t rows;      /* a block */
        bool all_busy;      /* FAR_DEVICES devices, each the busy one at another time */
        double goal;        /* bytes a value; 0 when there is none */
};

struct table {
        uint32_t n_rows;
        uint32_t n_entities;
        char names[DEVICES_MAX][64];
        char identities[DEVICES_MAX][64];
        struct block_entity entities[DEVICES_MAX];
        struct block_column columns[DEVICES_MAX * METRICS];
        int64_t times_us[READINGS_MAX];
        uint64_t *values;
};

static void table_schema(struct table *table)
{
        for (uint32_t i = 0; i < table->n_entities; i++) {
                struct block_entity *entity = &table->entities[i];

                snprintf(table->identities[i], sizeof(table->identities[i]), "wwn:0x5000c500%08x",
                        (i + 1) * 2654435761u);
                *entity = (struct block_entity){
                        .name = table->names[i], .identity = table->identities[i], .instance = i};
                for (uint32_t k = 0; k < METRICS; k++)
                        table->columns[i * METRICS + k] =
                                (struct block_column){i, (uint16_t)(METRIC_DISK_READ_OPS + k)};
        }
}

static int table_make(
        struct table *table, const struct trace *trace, const struct selection *selection)
{
        uint32_t devices[DEVICES_MAX], shifts[DEVICES_MAX] = {}, n = 0, span = trace->n_readings;

        for (uint32_t i = 0; i < trace->n_devices; i++)
                if (!selection->device || strcmp(trace->names[i], selection->device) == 0)
                        devices[n++] = i;
        if (n == 0)
                return -ENOENT;
        for (; selection->all_busy && n < FAR_DEVICES; n++) {
                devices[n] = devices[0];
                shifts[n] = n * span / 2 / FAR_DEVICES;
        }
        if (selection->all_busy)
                span /= 2;
        table->n_entities = n;
        table->values = calloc((size_t)span * n * METRICS, sizeof(uint64_t));
        if (!table->values)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                snprintf(table->names[i], sizeof(table->names[i]), "%s%.0u",
                        trace->names[devices[i]], shifts[i]);
        table_schema(table);
        for (uint32_t reading = 0; reading < span; reading += selection->stride) {
                table->times_us[table->n_rows] = trace->times_us[reading];
                for (uint32_t i = 0; i < n; i++)
                        memcpy(table->values + ((size_t)table->n_rows * n + i) * METRICS,
                                trace_values(trace, reading + shifts[i], devices[i]),
                                METRICS * sizeof(uint64_t));
                table->n_rows++;
        }
        return 0;
}

static struct block_rows table_rows(const struct table *table, uint32_t begin, uint32_t count)
{
        uint32_t n_columns = table->n_entities * METRICS;

        return (struct block_rows){
                .header = {.source = SOURCE_DISKSTATS,
                        .sequence = begin,
                        .interval_us = 1000000,
                        .host = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
                        .boot = {{16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}},
                        .rows = count},
                .entities = table->entities,
                .n_entities = table->n_entities,
                .columns = table->columns,
                .n_columns = n_columns,
                .times_us = table->times_us + begin,
                .values = table->values + (size_t)begin * n_columns,
        };
}

static double now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int check_block(const uint8_t *bytes, size_t size, const struct block_rows *rows)
{
        CLEANUP(block) struct block *block = NULL;
        static uint64_t column[BLOCK_ROWS_MAX];
        int r;

        r = block_open(bytes, size, &block);
        for (uint32_t k = 0; r >= 0 && k < rows->n_columns; k++) {
                r = block_read_column(block, k, column);
                for (uint32_t row = 0; r >= 0 && row < rows->header.rows; row++)
                        if (column[row] != rows->values[(size_t)row * rows->n_columns + k])
                                return -EBADMSG;
        }
        return r;
}

static int decode_block(const uint8_t *bytes, size_t size)
{
        CLEANUP(block) struct block *block = NULL;
        static uint64_t column[BLOCK_ROWS_MAX];
        int r;

        r = block_open(bytes, size, &block);
        for (uint32_t k = 0; r >= 0 && k < block_get_n_columns(block); k++)
                r = block_read_column(block, k, column);
        return r;
}

static int time_encode(
        struct block_encoder *encoder, const struct table *table, uint32_t rows, double *ret_ns)
{
        double begin = now(), seconds = 0, values = 0;

        while (seconds < SECONDS_OF_TIMING) {
                for (uint32_t row = 0; row < table->n_rows; row += rows) {
                        uint32_t left = table->n_rows - row;
                        struct block_rows block = table_rows(table, row, left < rows ? left : rows);
                        const uint8_t *bytes;
                        size_t size;
                        int r;

                        r = block_encode(encoder, &block, &bytes, &size);
                        if (r < 0)
                                return r;
                        values += (double)block.header.rows * block.n_columns;
                }
                seconds = now() - begin;
        }
        *ret_ns = seconds / values * 1e9;
        return 0;
}

static int time_decode(
        struct block_encoder *encoder, const struct table *table, uint32_t rows, double *ret_ns)
{
        struct block_rows block = table_rows(table, 0, table->n_rows < rows ? table->n_rows : rows);
        double begin, seconds = 0, values = 0;
        const uint8_t *bytes;
        size_t size;
        int r;

        r = block_encode(encoder, &block, &bytes, &size);
        if (r < 0)
                return r;
        for (begin = now(); seconds < SECONDS_OF_TIMING; seconds = now() - begin) {
                r = decode_block(bytes, size);
                if (r < 0)
                        return r;
                values += (double)block.header.rows * block.n_columns;
        }
        *ret_ns = seconds / values * 1e9;
        return 0;
}

static int measure(
        struct block_encoder *encoder, const struct trace *trace, const struct selection *selection)
{
        CLEANUP(mem) struct table *table = calloc(1, sizeof(*table));
        CLEANUP(mem) uint64_t *values = NULL;
        double encode_ns, decode_ns, bytes_total = 0, values_total = 0;
        int r;

        if (!table)
                return -ENOMEM;
        r = table_make(table, trace, selection);
        values = table->values;
        if (r < 0)
                return r;
        for (uint32_t row = 0; row < table->n_rows; row += selection->rows) {
                uint32_t left = table->n_rows - row;
                struct block_rows rows =
                        table_rows(table, row, left < selection->rows ? left : selection->rows);
                const uint8_t *bytes;
                size_t size;

                r = block_encode(encoder, &rows, &bytes, &size);
                if (r < 0)
                        return r;
                r = check_block(bytes, size, &rows);
                if (r < 0)
                        return r;
                bytes_total += (double)size;
                values_total += (double)rows.header.rows * rows.n_columns;
        }
        r = time_encode(encoder, table, selection->rows, &encode_ns);
        if (r < 0)
                return r;
        r = time_decode(encoder, table, selection->rows, &decode_ns);
        if (r < 0)
                return r;
        printf("%-30s %5u %9.0f %8.3f ", selection->name, selection->rows, values_total,
                bytes_total / values_total);
        if (selection->goal > 0)
                printf("%5.2f", selection->goal);
        else
                printf("%5s", "");
        printf(" %9.1f %9.1f\n", encode_ns, decode_ns);
        return 0;
}

static const struct selection selections[] = {
        {"busy disk, 1 s", "vda", 1, 300, false, 0.45},
        {"busy disk, 10 s", "vda", 10, 300, false, 1.1},
        {"all devices, 1 s", NULL, 1, 300, false, 0.13},
        {"all devices, 10 s", NULL, 10, 300, false, 0},
        {"all devices, 1 s (wire)", NULL, 1, 10, false, 0.75},
        {"all devices, 1 s (wire)", NULL, 1, 5, false, 0},
        {"24 busy disks, 1 s (wire)", "vda", 1, 10, true, 0},
};

int main(int argc, char **argv)
{
        CLEANUP(block_encoder) struct block_encoder *encoder = NULL;
        CLEANUP(mem) struct trace *trace = calloc(1, sizeof(*trace));
        CLEANUP(mem) uint64_t *values = NULL;
        CLEANUP(file) FILE *file = argc > 1 ? fopen(argv[1], "re") : fdopen(dup(0), "r");
        int r;

        if (!file || !trace) {
                fprintf(stderr, "%s: %s\n", argc > 1 ? argv[1] : "standard input", strerror(errno));
                return EXIT_FAILURE;
        }
        r = trace_read(trace, file);
        values = trace->values;
        if (r >= 0)
                r = block_encoder_new(&encoder);
        if (r < 0) {
                fprintf(stderr, "not a diskstats trace: %s\n", strerror(-r));
                return EXIT_FAILURE;
        }
        printf("%-30s %5s %9s %8s %5s %9s %9s\n", "", "rows", "values", "bytes/v", "goal",
                "encode ns", "decode ns");
        for (size_t i = 0; i < sizeof(selections) / sizeof(selections[0]); i++) {
                r = measure(encoder, trace, &selections[i]);
                if (r < 0)
                        fprintf(stderr, "%s: %s\n", selections[i].name, strerror(-r));
        }
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
