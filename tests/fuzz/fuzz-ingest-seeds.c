/* fuzz-ingest-seeds FOLDER: one good input of each kind that fuzz-ingest knows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/block.h"
#include "lib/metric.h"

#define HOST "01000000-0000-0000-0000-000000000000"

static int write_seed(
        const char *folder, const char *name, char kind, const void *bytes, size_t size)
{
        char path[4096];
        FILE *file;
        bool ok;

        snprintf(path, sizeof(path), "%s/ingest-%s", folder, name);
        file = fopen(path, "we");
        if (!file)
                return -1;
        ok = fputc(kind, file) == kind && fwrite(bytes, 1, size, file) == size;
        return fclose(file) == 0 && ok ? 0 : -1;
}

static int write_block_seed(const char *folder)
{
        static const struct block_entity entity = {.name = "sda", .identity = "wwn:0x5"};
        static const struct block_column column = {0, METRIC_DISK_WRITE_OPS};
        static const int64_t times_us[] = {1796027570000000, 1796027571000000};
        static const uint64_t values[] = {5, 9};
        const struct block_rows rows = {
                .header = {.host.bytes = {1},
                        .boot.bytes = {2},
                        .source = SOURCE_DISKSTATS,
                        .sequence = 1,
                        .interval_us = 1000000,
                        .rows = 2},
                .entities = &entity,
                .n_entities = 1,
                .columns = &column,
                .n_columns = 1,
                .times_us = times_us,
                .values = values,
        };
        CLEANUP(block_encoder) struct block_encoder *encoder = NULL;
        const uint8_t *bytes;
        size_t size;

        if (block_encoder_new(&encoder) < 0 || block_encode(encoder, &rows, &bytes, &size) < 0)
                return -1;
        return write_seed(folder, "blocks", 0, bytes, size);
}

int main(int argc, char **argv)
{
        static const char facts[] =
                "{\"host_id\":\"" HOST "\",\"hostname\":\"n\",\"kernel\":\"6.1\",\"agent_version\":"
                "\"0.1\",\"devices\":[{\"name\":\"sda\",\"alias\":\"\",\"identity\":\"wwn:0x5\","
                "\"model\":"
                "\"\",\"serial\":\"\",\"wwn\":\"\",\"kind\":\"disk\",\"major\":8,\"minor\":0,"
                "\"rotational\":"
                "true,\"size_bytes\":1,\"parents\":[]}],\"clusters\":[{\"fsid\":\"" HOST
                "\",\"name\":"
                "\"ceph\",\"health\":\"HEALTH_OK\",\"release\":\"16\",\"mgr_stats_period\":5.0,"
                "\"osds\":[{"
                "\"id\":0,\"host\":\"n\",\"device_class\":\"hdd\",\"up\":true,\"in\":true,"
                "\"rotational\":"
                "true,\"min_alloc_size\":4096,\"release\":\"16\",\"block\":[\"sda\"],\"db\":[],"
                "\"wal\":[]}],"
                "\"pools\":[{\"id\":2,\"name\":\"rbd\",\"type\":\"replicated\",\"size\":3,\"k\":0,"
                "\"m\":0,"
                "\"stripe_unit\":0}]}]}";
        static const char plan[] =
                "{\"sources\":{\"diskstats\":{\"enabled\":true,\"interval\":\"1s\","
                "\"count\":5,\"start\":0,\"metrics\":[\"read_ops\"]}}}";
        static const char query[] =
                "2026-11-30T10:00:00Z&now-5s&10s&100&0b0e4b64-5a3c-4d2c-9f8e-2f1b3a6c7d8e&cluster";

        if (argc != 2 || write_block_seed(argv[1]) < 0 ||
                write_seed(argv[1], "facts", 1, facts, strlen(facts)) < 0 ||
                write_seed(argv[1], "plan", 2, plan, strlen(plan)) < 0 ||
                write_seed(argv[1], "query", 3, query, strlen(query)) < 0)
                return EXIT_FAILURE;
        return EXIT_SUCCESS;
}
