/*
 * Writes encoded blocks to standard output, for tests that send them to the collector by hand:
 *     make-blocks HOST SEQUENCE COUNT [ROWS [VALUE]]
 * COUNT blocks of the source diskstats, one device, ROWS (10) rows each second, ending now; equal
 * arguments except for the time give other bytes only when VALUE differs: the time is whole
 * minutes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/block.h"
#include "lib/metric.h"

#define SECOND INT64_C(1000000)

struct arguments {
        struct id host;
        uint64_t sequence, count, value;
        uint32_t rows;
};

static int write_block(
        struct block_encoder *encoder, const struct arguments *arguments, uint64_t sequence)
{
        static const struct block_entity entity = {.name = "sda", .identity = "wwn:0x5000"};
        static const struct block_column columns[] = {{0, METRIC_DISK_READ_OPS},
                {0, METRIC_DISK_WRITE_OPS}, {0, METRIC_DISK_WRITE_SECTORS}};
        int64_t times_us[BLOCK_ROWS_MAX];
        uint64_t values[BLOCK_ROWS_MAX][3];
        int64_t minute = (int64_t)time(NULL) / 60 * 60;
        struct block_rows rows = {
                .header = {.host = arguments->host,
                        .boot.bytes = {1, 2, 3},
                        .source = SOURCE_DISKSTATS,
                        .sequence = sequence,
                        .interval_us = SECOND,
                        .rows = arguments->rows},
                .entities = &entity,
                .n_entities = 1,
                .columns = columns,
                .n_columns = 3,
                .times_us = times_us,
                .values = &values[0][0],
        };
        const uint8_t *bytes;
        size_t size;
        int r;

        for (uint32_t i = 0; i < arguments->rows; i++) {
                times_us[i] = (minute - 3600 + (int64_t)(sequence % 360) * 10) * SECOND +
                              (int64_t)i * SECOND * 10 / arguments->rows;
                values[i][0] = i;
                values[i][1] = arguments->value + sequence * 10 + i;
                values[i][2] = values[i][1] * 8;
        }
        r = block_encode(encoder, &rows, &bytes, &size);
        if (r < 0)
                return r;
        return fwrite(bytes, 1, size, stdout) == size ? 0 : -EIO;
}

int main(int argc, char **argv)
{
        CLEANUP(block_encoder) struct block_encoder *encoder = NULL;
        struct arguments arguments = {.rows = 10};
        int r;

        if (argc < 4 || argc > 6 || id_parse(argv[1], &arguments.host) < 0) {
                fprintf(stderr, "usage: make-blocks HOST SEQUENCE COUNT [ROWS [VALUE]]\n");
                return EXIT_FAILURE;
        }
        arguments.sequence = strtoull(argv[2], NULL, 10);
        arguments.count = strtoull(argv[3], NULL, 10);
        if (argc > 4)
                arguments.rows = (uint32_t)strtoul(argv[4], NULL, 10);
        if (argc > 5)
                arguments.value = strtoull(argv[5], NULL, 10);
        if (arguments.rows == 0 || arguments.rows > BLOCK_ROWS_MAX)
                return EXIT_FAILURE;
        r = block_encoder_new(&encoder);
        for (uint64_t i = 0; i < arguments.count && r >= 0; i++)
                r = write_block(encoder, &arguments, arguments.sequence + i);
        if (r < 0)
                fprintf(stderr, "make-blocks: %s\n", strerror(-r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
