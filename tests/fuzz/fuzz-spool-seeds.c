/* Writes a small corpus for fuzz-spool: fuzz-spool-seeds FOLDER. Real blocks, as pieces to be put
 * into records; see fuzz-spool.c. */

#include "lib/block.h"
#include "tests/unit/sample-fixture.h"

#define SEEDS 8u
#define ROWS_MAX 16u

static int encode(
        struct block_encoder *encoder, uint32_t rows, const uint8_t **ret, size_t *ret_size)
{
        uint64_t values[ROWS_MAX * FIXTURE_COLUMNS];
        int64_t times[ROWS_MAX];
        struct fixture fixture;
        struct block_rows block = {0};

        fixture_init(&fixture);
        for (uint32_t row = 0; row < rows; row++) {
                fixture_set(&fixture, row);
                memcpy(values + row * FIXTURE_COLUMNS, fixture.values, sizeof(fixture.values));
                times[row] = fixture.sample.time_us;
        }
        block.header.source = SOURCE_DISKSTATS;
        block.header.sequence = rows;
        block.header.rows = rows;
        block.entities = fixture.entities;
        block.n_entities = FIXTURE_ENTITIES;
        block.columns = fixture.columns;
        block.n_columns = FIXTURE_COLUMNS;
        block.times_us = times;
        block.values = values;
        return block_encode(encoder, &block, ret, ret_size);
}

static void write_seed(FILE *file, struct block_encoder *encoder, uint32_t blocks)
{
        const uint8_t *bytes;
        size_t size;

        fputc(2, file);
        for (uint32_t i = 1; i <= blocks; i++) {
                if (encode(encoder, i, &bytes, &size) < 0)
                        abort();
                fputc((int)(size & 0xff), file);
                fputc((int)(size >> 8), file);
                fwrite(bytes, 1, size, file);
        }
}

int main(int argc, char **argv)
{
        CLEANUP(block_encoder) struct block_encoder *encoder = NULL;
        char path[4096];

        if (argc != 2 || block_encoder_new(&encoder) < 0)
                return EXIT_FAILURE;
        for (uint32_t i = 1; i <= SEEDS; i++) {
                CLEANUP(file) FILE *file = NULL;

                snprintf(path, sizeof(path), "%s/seed-%03u", argv[1], i);
                file = fopen(path, "we");
                if (!file)
                        return EXIT_FAILURE;
                write_seed(file, encoder, i);
        }
        return EXIT_SUCCESS;
}
