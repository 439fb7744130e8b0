#include "world.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define READINGS_MAX 8192u
#define BUSY_DISK "vda"
#define FSID "0b0e8d54-0000-4000-8000-000000000001"

static uint64_t *reading_of(const struct world *world, uint32_t trace, uint32_t reading)
{
        return world->trace[(size_t)trace * READINGS_MAX + reading];
}

/* Devices as the first reading has them, in its order. */
static int read_trace(struct world *world, FILE *file, bool all)
{
        char names[WORLD_DEVICES_MAX][64], line[512];

        world->trace = calloc((size_t)WORLD_DEVICES_MAX * READINGS_MAX, sizeof(*world->trace));
        if (!world->trace)
                return -ENOMEM;
        while (fgets(line, sizeof(line), file) && world->n_readings < READINGS_MAX) {
                char name[64], *at = line;
                uint32_t i = 0;
                uint64_t *values;
                int used;

                if (line[0] == '#') {
                        world->n_readings++;
                        continue;
                }
                if (sscanf(line, "%*u %*u %63s%n", name, &used) != 1 ||
                        (!all && strcmp(name, BUSY_DISK) != 0))
                        continue;
                while (i < world->n_traces && strcmp(names[i], name) != 0)
                        i++;
                if (i == world->n_traces && (world->n_readings > 1 || i == WORLD_DEVICES_MAX))
                        continue;
                world->n_traces += i == world->n_traces;
                strcpy(names[i], name);
                at += used;
                values = reading_of(world, i, world->n_readings - 1);
                for (uint32_t k = 0; k < WORLD_METRICS; k++)
                        values[k] = strtoull(at, &at, 10);
        }
        return world->n_readings > 1 && world->n_traces > 0 ? 0 : -ENODATA;
}

static int open_world(
        struct world *world, FILE *trace, bool all, uint32_t n_hosts, uint32_t n_devices)
{
        int r;

        *world = (struct world){.n_hosts = n_hosts, .n_devices = n_devices};
        r = read_trace(world, trace, all);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < n_devices; i++) {
                snprintf(world->names[i], sizeof(world->names[i]), "sd%c%c", 'a' + i / 26,
                        'a' + i % 26);
                snprintf(world->identities[i], sizeof(world->identities[i]),
                        "wwn:0x5000c500%08" PRIx32, (i + 1) * 2654435761u);
                world->entities[i] = (struct block_entity){.name = world->names[i],
                        .identity = world->identities[i],
                        .instance = i + 1};
                for (uint16_t k = 0; k < WORLD_METRICS; k++)
                        world->columns[i * WORLD_METRICS + k] =
                                (struct block_column){i, METRIC_DISK_READ_OPS + k};
        }
        world->values = calloc((size_t)WORLD_ROWS_MAX * n_devices * WORLD_METRICS, 8);
        return world->values ? block_encoder_new(&world->encoder) : -ENOMEM;
}

int world_open(struct world *world, FILE *trace, uint32_t n_hosts, uint32_t n_devices)
{
        return open_world(world, trace, false, n_hosts, n_devices);
}

int world_open_all(struct world *world, FILE *trace, uint32_t n_hosts, uint32_t n_devices)
{
        return open_world(world, trace, true, n_hosts, n_devices);
}

void world_done(struct world *world)
{
        free(world->trace);
        free(world->values);
        block_encoder_free(world->encoder);
}

struct id world_host(uint32_t host)
{
        return (struct id){.bytes = {0xb0, 0x57, host >> 24, host >> 16, host >> 8, host}};
}

static void print_devices(const struct world *world, FILE *out)
{
        for (uint32_t i = 0; i < world->n_devices; i++)
                fprintf(out, "%s{\"name\":\"%s\",\"identity\":\"%s\",\"kind\":\"disk\"}",
                        i ? "," : "", world->names[i], world->identities[i]);
}

static void print_cluster(const struct world *world, FILE *out)
{
        uint32_t n = world->n_hosts * world->n_devices;

        fprintf(out, "{\"fsid\":\"" FSID "\",\"name\":\"ceph\",\"health\":\"HEALTH_OK\","
                     "\"release\":\"16.2.15\",\"mgr_stats_period\":5,\"pools\":[],\"osds\":[");
        for (uint32_t i = 0; i < n && i < WORLD_OSDS_MAX; i++)
                fprintf(out,
                        "%s{\"id\":%u,\"host\":\"node%u\",\"device_class\":\"%s\",\"up\":true,"
                        "\"in\":true,\"block\":[\"%s\"]}",
                        i ? "," : "", i, i / world->n_devices, i % 4 ? "hdd" : "ssd",
                        world->names[i % world->n_devices]);
        fputs("]}", out);
}

char *world_make_facts(const struct world *world, uint32_t host)
{
        CLEANUP(str) char *text = NULL;
        struct id id = world_host(host);
        char id_text[ID_TEXT_MAX];
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        fprintf(out, "{\"host_id\":\"%s\",\"hostname\":\"node%u\",\"devices\":[",
                id_format(&id, id_text), host);
        print_devices(world, out);
        fputs("],\"clusters\":[", out);
        if (host == 0)
                print_cluster(world, out);
        fputs("]}", out);
        return fclose(out) == 0 ? STEAL(text) : NULL;
}

int world_put_facts(struct world *world, struct store *store, int64_t now_us)
{
        int r = 0;

        for (uint32_t i = 0; i < world->n_hosts && r == 0; i++) {
                CLEANUP(str) char *text = world_make_facts(world, i);
                struct id host = world_host(i);

                r = text ? store_put_facts(store, &host, text, now_us) : -ENOMEM;
        }
        return r;
}

static void read_disk(const struct world *world, uint32_t trace, uint64_t tick, uint64_t *ret)
{
        uint64_t round = tick / (world->n_readings - 1), at = tick % (world->n_readings - 1);
        const uint64_t *first = reading_of(world, trace, 0);
        const uint64_t *last = reading_of(world, trace, world->n_readings - 1);
        const uint64_t *values = reading_of(world, trace, (uint32_t)at);

        for (uint32_t i = 0; i < WORLD_METRICS; i++) {
                const struct metric *metric = metric_get(METRIC_DISK_READ_OPS + i);

                ret[i] = values[i];
                if (metric->kind == METRIC_COUNTER)
                        ret[i] += round * (last[i] - first[i]);
                if (metric->width == 32)
                        ret[i] = (uint32_t)ret[i];
        }
}

int64_t world_time_us(uint32_t host, int64_t tick_us)
{
        return tick_us + 60 + (host * 37 + tick_us / SECOND * 13) % 50;
}

void world_read_disk(const struct world *world, uint64_t tick, uint64_t *ret)
{
        read_disk(world, 0, tick, ret);
}

int world_encode(struct world *world, uint32_t host, int64_t from_us, uint64_t interval_us,
        uint32_t rows, const uint8_t **ret_bytes, size_t *ret_size)
{
        struct block_rows block = {
                .header = {.host = world_host(host),
                        .boot.bytes = {7},
                        .source = SOURCE_DISKSTATS,
                        .sequence = (uint64_t)from_us,
                        .interval_us = interval_us,
                        .rows = rows},
                .entities = world->entities,
                .n_entities = world->n_devices,
                .columns = world->columns,
                .n_columns = world->n_devices * WORLD_METRICS,
                .times_us = world->times_us,
                .values = world->values,
        };

        for (uint32_t row = 0; row < rows; row++) {
                int64_t tick_us = from_us + (int64_t)(row * interval_us);

                world->times_us[row] = world_time_us(host, tick_us);
                for (uint32_t i = 0; i < world->n_devices; i++) {
                        uint64_t phase = ((uint64_t)host * world->n_devices + i) * 7919;
                        uint64_t tick = (uint64_t)(tick_us / SECOND) % 100000000 + phase;

                        read_disk(world, i % world->n_traces, tick,
                                world->values +
                                        ((size_t)row * world->n_devices + i) * WORLD_METRICS);
                }
        }
        return block_encode(world->encoder, &block, ret_bytes, ret_size);
}

int world_put(struct world *world, struct store *store, uint32_t host, int64_t from_us,
        uint64_t interval_us, uint32_t rows)
{
        struct block_header header;
        const uint8_t *bytes;
        size_t size;
        int r;

        r = world_encode(world, host, from_us, interval_us, rows, &bytes, &size);
        if (r < 0)
                return r;
        r = block_peek(bytes, size, &header, &size);
        if (r < 0)
                return r;
        return store_put_block(store, &header, bytes, size, header.last_us);
}
