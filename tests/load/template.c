#include "tests/load/template.h"

#include <errno.h>
#include <string.h>

#define METRICS_MAX 256u
/* That of the facts in tests/bench/world.c. */
static const struct id cluster = {
        {0x0b, 0x0e, 0x8d, 0x54, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 1}};

/* Sources that are not block devices have the trace's numbers under their own metrics. */
static uint64_t value_of(const struct metric *metric, uint32_t index, const uint64_t *disk)
{
        uint64_t value = disk[index % WORLD_METRICS];

        if (metric->kind == METRIC_GAUGE)
                return disk[8]; /* requests in flight */
        if (metric->unit == UNIT_BYTES)
                value = disk[strstr(metric->name, "read") || strstr(metric->name, "_r_") ? 2 : 6] *
                        512;
        return metric->width == 32 ? (uint32_t)value : value;
}

struct schema {
        enum source_id source;
        char names[WORLD_DEVICES_MAX][16];
        struct block_entity entities[WORLD_DEVICES_MAX];
        struct block_column columns[WORLD_DEVICES_MAX * METRICS_MAX];
        const struct metric *metrics[METRICS_MAX];
        uint32_t n_entities, n_metrics;
};

static void schema_make(struct schema *schema, enum source_id source, uint32_t n_devices)
{
        bool many = source == SOURCE_OSD;
        const struct metric *all;
        size_t n;

        all = metric_all(&n);
        schema->source = source;
        schema->n_entities = many ? n_devices : 1;
        for (size_t i = 0; i < n && schema->n_metrics < METRICS_MAX; i++)
                if (all[i].source == source)
                        schema->metrics[schema->n_metrics++] = &all[i];
        for (uint32_t i = 0; i < schema->n_entities; i++) {
                snprintf(schema->names[i], sizeof(schema->names[i]), many ? "osd.%u" : "%.0unode",
                        i);
                schema->entities[i] = (struct block_entity){.name = schema->names[i],
                        .identity = "",
                        .cluster = many ? cluster : (struct id){},
                        .instance = 1};
                for (uint32_t k = 0; k < schema->n_metrics; k++)
                        schema->columns[i * schema->n_metrics + k] =
                                (struct block_column){i, schema->metrics[k]->id};
        }
}

static int encode_schema(struct template_set *set, const struct schema *schema, int64_t from_us,
        const uint8_t **ret_bytes, size_t *ret_size)
{
        uint32_t n_columns = schema->n_entities * schema->n_metrics;
        CLEANUP(mem) uint64_t *values = calloc((size_t)set->rows * n_columns, sizeof(*values));
        int64_t times_us[WORLD_ROWS_MAX];
        struct block_rows rows = {
                .header = {.cluster = schema->source == SOURCE_OSD ? cluster : (struct id){},
                        .host = {{1}},
                        .source = (uint16_t)schema->source,
                        .interval_us = set->interval_us,
                        .rows = set->rows},
                .entities = schema->entities,
                .n_entities = schema->n_entities,
                .columns = schema->columns,
                .n_columns = n_columns,
                .times_us = times_us,
                .values = values,
        };

        if (!values)
                return -ENOMEM;
        for (uint32_t row = 0; row < set->rows; row++) {
                int64_t tick_us = from_us + (int64_t)(row * set->interval_us);

                times_us[row] = tick_us + 400 + tick_us / SECOND * 13 % 50;
                for (uint32_t column = 0; column < n_columns; column++) {
                        uint32_t metric = column % schema->n_metrics;
                        uint64_t disk[WORLD_METRICS];

                        world_read_disk(&set->world,
                                (uint64_t)(tick_us / SECOND) +
                                        (uint64_t)rows.columns[column].entity * 7919,
                                disk);
                        values[(size_t)row * n_columns + column] =
                                value_of(schema->metrics[metric], metric, disk);
                }
        }
        return block_encode(set->world.encoder, &rows, ret_bytes, ret_size);
}

static int make_template(
        struct template_set *set, const struct schema *schema, uint32_t index, struct template *ret)
{
        int64_t from_us = (int64_t)(index * set->rows * set->interval_us);
        CLEANUP(block) struct block *block = NULL;
        struct block_frame *frame = &ret->frame;
        const uint8_t *bytes;
        size_t size;
        int r;

        r = schema->source == SOURCE_DISKSTATS ? world_encode(&set->world, 0, from_us,
                                                         set->interval_us, set->rows, &bytes, &size)
                                               : encode_schema(set, schema, from_us, &bytes, &size);
        if (r < 0)
                return r;
        r = block_frame_read(bytes, size, frame);
        if (r < 0)
                return r;
        r = block_open(bytes, size, &block);
        if (r < 0)
                return r;
        ret->bytes = malloc(size);
        ret->times_us = calloc(set->rows, sizeof(*ret->times_us));
        if (!ret->bytes || !ret->times_us)
                return -ENOMEM;
        memcpy(ret->bytes, bytes, size);
        for (uint32_t row = 0; row < set->rows; row++)
                ret->times_us[row] = block_get_times(block)[row] - from_us;
        frame->header.first_us -= from_us;
        frame->header.last_us -= from_us;
        return 0;
}

static int add_source(struct template_set *set, const char *name)
{
        CLEANUP(mem) struct schema *schema = calloc(1, sizeof(*schema));
        enum source_id source;
        int r;

        if (!schema)
                return -ENOMEM;
        if (set->n_sources == SOURCE_MAX_ || source_parse(name, &source) < 0)
                return -EINVAL;
        schema_make(schema, source, set->world.n_devices);
        for (uint32_t i = 0; i < TEMPLATE_COUNT; i++) {
                r = make_template(set, schema, i, &set->templates[set->n_sources][i]);
                if (r < 0)
                        return r;
        }
        set->sources[set->n_sources++] = source;
        return 0;
}

int template_set_open(struct template_set *set, FILE *trace, const char *sources, uint32_t n_hosts,
        uint32_t n_devices, uint32_t rows, uint64_t interval_us)
{
        CLEANUP(str) char *names = strdup(sources);
        char *rest = names;
        int r;

        *set = (struct template_set){.interval_us = interval_us, .rows = rows};
        if (!names)
                return -ENOMEM;
        r = world_open(&set->world, trace, n_hosts, n_devices);
        while (r == 0 && rest)
                r = add_source(set, strsep(&rest, ","));
        return r;
}

void template_set_done(struct template_set *set)
{
        for (uint32_t i = 0; i < SOURCE_MAX_; i++)
                for (uint32_t k = 0; k < TEMPLATE_COUNT; k++) {
                        free(set->templates[i][k].bytes);
                        free(set->templates[i][k].times_us);
                }
        world_done(&set->world);
}

static const struct template *find_template(
        const struct template_set *set, uint32_t agent, uint32_t source, uint64_t sequence)
{
        return &set->templates[source][(sequence + agent * 7) % TEMPLATE_COUNT];
}

struct block_header template_header(const struct template_set *set, uint32_t agent, uint32_t source,
        uint64_t sequence, int64_t tick_us)
{
        struct block_header header = find_template(set, agent, source, sequence)->frame.header;
        uint64_t round = htole64((sequence + agent * 7) / TEMPLATE_COUNT + 1);

        header.host = world_host(agent);
        memcpy(header.boot.bytes, &round, sizeof(round));
        header.sequence = sequence;
        header.first_us += tick_us;
        header.last_us += tick_us;
        return header;
}

const int64_t *template_times(
        const struct template_set *set, uint32_t agent, uint32_t source, uint64_t sequence)
{
        return find_template(set, agent, source, sequence)->times_us;
}

size_t template_write(const struct template_set *set, uint32_t agent, uint32_t source,
        uint64_t sequence, int64_t tick_us, uint8_t *ret)
{
        const struct template *template = find_template(set, agent, source, sequence);
        struct block_frame frame = template->frame;

        frame.header = template_header(set, agent, source, sequence, tick_us);
        memcpy(ret + BLOCK_HEADER_BYTES, template->bytes + BLOCK_HEADER_BYTES,
                frame.size - BLOCK_HEADER_BYTES);
        block_frame_write(&frame, ret);
        return frame.size;
}

size_t template_set_size(const struct template_set *set)
{
        size_t size = 0;

        for (uint32_t i = 0; i < set->n_sources; i++) {
                size_t largest = 0;

                for (uint32_t k = 0; k < TEMPLATE_COUNT; k++)
                        if (set->templates[i][k].frame.size > largest)
                                largest = set->templates[i][k].frame.size;
                size += largest;
        }
        return size;
}
