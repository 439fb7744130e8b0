#include "cli/device-table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/format.h"
#include "cli/json.h"
#include "cli/table.h"

/* " osd." and a number of 64 bits */
#define OSD_BYTES_MAX 25u

enum {
        READ_OPS,
        WRITE_OPS,
        READ_BYTES,
        WRITE_BYTES,
        READ_AWAIT,
        WRITE_AWAIT,
        QUEUE,
        UTILISATION,
        N_METRICS
};
static const char *const metric_names[N_METRICS] = {"read_ops", "write_ops", "read_bytes",
        "write_bytes", "read_await", "write_await", "queue", "utilisation"};

struct device_row {
        const char *host, *name; /* of the answer */
        double values[N_METRICS];
};

static int metric_index(const char *name)
{
        for (int i = 0; i < N_METRICS; i++)
                if (strcmp(metric_names[i], name) == 0)
                        return i;
        return -ENOENT;
}

/* An answer lists all devices of a metric, or all metrics of a device, in the same order: @hint is
 * the row found before, and the next is most often it or its neighbour. */
static struct device_row *find_row(
        struct device_row *rows, size_t *n, size_t hint, const char *host, const char *name)
{
        for (size_t i = 0; i < *n; i++) {
                struct device_row *row = &rows[(hint + i) % *n];

                if (strcmp(row->name, name) == 0 && strcmp(row->host, host) == 0)
                        return row;
        }
        rows[*n] = (struct device_row){.host = host, .name = name};
        for (int i = 0; i < N_METRICS; i++)
                rows[*n].values[i] = NAN;
        return &rows[(*n)++];
}

static int compare_rows(const void *a, const void *b)
{
        const struct device_row *x = a, *y = b;
        double first = isfinite(x->values[UTILISATION]) ? x->values[UTILISATION] : -1;
        double second = isfinite(y->values[UTILISATION]) ? y->values[UTILISATION] : -1;
        int order = strcmp(x->host, y->host);

        if (first != second)
                return first < second ? 1 : -1;
        return order ? order : strcmp(x->name, y->name);
}

/* The answer has a series for each device and metric; a row has all metrics of one device. */
static size_t gather_rows(const json_t *all_series, struct device_row *rows)
{
        const json_t *series;
        size_t i, n = 0, hint = 0;

        json_array_foreach (all_series, i, series) {
                int metric = metric_index(json_get_text(series, "metric"));
                const json_t *values = json_object_get(series, "value");
                struct device_row *row;

                if (metric < 0)
                        continue;
                row = find_row(rows, &n, hint, json_get_text(series, "host"),
                        json_get_text(series, "key"));
                hint = (size_t)(row - rows);
                row->values[metric] = json_number_at(values, json_array_size(values) - 1);
        }
        qsort(rows, n, sizeof(*rows), compare_rows);
        return n;
}

/* "osd.3 osd.4 (db)" */
static void add_osds(const json_t *devices, struct table *table, const struct device_row *row)
{
        char text[96] = "";
        const json_t *device, *osd;
        size_t i, k, length = 0;

        json_array_foreach (devices, i, device) {
                const char *role = json_get_text(device, "role");

                if (strcmp(json_get_text(device, "name"), row->name) != 0 ||
                        strcmp(json_get_text(device, "hostname"), row->host) != 0)
                        continue;
                json_array_foreach (json_object_get(device, "osds"), k, osd)
                        if (length + OSD_BYTES_MAX < sizeof(text))
                                length += snprintf(text + length, sizeof(text) - length,
                                        "%sosd.%" JSON_INTEGER_FORMAT, length ? " " : "",
                                        json_integer_value(osd));
                if (length && *role && strcmp(role, "block") != 0)
                        snprintf(text + length, sizeof(text) - length, " (%s)", role);
                break;
        }
        table_add(table, COLOUR_NONE, "%s", text);
}

static void add_device(const json_t *devices, struct table *table, const struct device_row *row)
{
        const double *values = row->values;
        char text[FORMAT_MAX];

        table_add(table, COLOUR_NONE, "%s%s%s", row->host, *row->host ? "/" : "", row->name);
        add_osds(devices, table, row);
        table_add(table, COLOUR_NONE, "%s", format_count(values[WRITE_OPS], text));
        table_add(table, COLOUR_NONE, "%s", format_byte_rate(values[WRITE_BYTES], text));
        table_add(table, COLOUR_NONE, "%s", format_latency(values[WRITE_AWAIT], false, text));
        table_add(table, COLOUR_NONE, "%s", format_count(values[READ_OPS], text));
        table_add(table, COLOUR_NONE, "%s", format_byte_rate(values[READ_BYTES], text));
        table_add(table, COLOUR_NONE, "%s", format_latency(values[READ_AWAIT], false, text));
        table_add(table, COLOUR_NONE, "%s", format_factor(values[QUEUE], text));
        table_add(table, values[UTILISATION] > 0.9 ? COLOUR_NOTICE : COLOUR_NONE, "%s",
                format_percent(values[UTILISATION], text));
}

int device_table_print(
        const json_t *series, const json_t *devices, size_t shown, struct output *output)
{
        static const struct table_column columns[] = {{"DEVICE"}, {"OSD"}, {"WRITE IOPS", true},
                {"BYTES", true}, {"AWAIT", true}, {"READ IOPS", true}, {"BYTES", true},
                {"AWAIT", true}, {"QUEUE", true}, {"BUSY", true}, {NULL}};
        const json_t *all_series = json_object_get(series, "series");
        CLEANUP(mem)
        struct device_row *rows = calloc(json_array_size(all_series) + 1, sizeof(*rows));
        CLEANUP(table) struct table *table = NULL;
        size_t n;
        int r;

        if (!rows)
                return -ENOMEM;
        n = gather_rows(all_series, rows);
        if (n == 0)
                return 0;
        r = table_new(columns, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n && i < shown; i++)
                add_device(devices, table, &rows[i]);
        fputc('\n', output->stream);
        r = table_print(table, output);
        if (r == 0 && shown < n)
                fprintf(output->stream, "(%zu less busy devices not shown: --all)\n", n - shown);
        return r;
}
