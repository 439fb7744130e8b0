/*
 * Writes a small corpus for fuzz-block: fuzz-block-seeds FOLDER. Each random block is written as a
 * whole block and as a small header with its body; see fuzz-block.c.
 */

#include <stdlib.h>

#include "tests/unit/block-fixture.h"

#define SEEDS 40u

static int write_file(const char *folder, unsigned number, const void *a, size_t size_a,
        const void *b, size_t size_b)
{
        CLEANUP(file) FILE *file = NULL;
        char path[4096];

        if ((size_t)snprintf(path, sizeof(path), "%s/seed-%03u", folder, number) >= sizeof(path))
                return -ENAMETOOLONG;
        file = fopen(path, "we");
        if (!file)
                return -errno;
        if (fwrite(a, 1, size_a, file) != size_a || fwrite(b, 1, size_b, file) != size_b)
                return -EIO;
        return 0;
}

static int write_seed(const char *folder, unsigned number, const uint8_t *bytes, size_t size)
{
        CLEANUP(mem) uint8_t *body = NULL;
        struct block_frame frame;
        uint8_t head[21] = {(uint8_t)(1 + number % 2)};
        uint16_t counts[4];
        uint32_t interval;
        int64_t last_us;
        size_t body_size;
        int r;

        r = write_file(folder, number, "\0", 1, bytes, size);
        if (r < 0)
                return r;
        r = block_frame_read(bytes, size, &frame);
        if (r < 0)
                return r;
        r = block_unpack(bytes, size, &body, &body_size);
        if (r < 0)
                return r;
        counts[0] = (uint16_t)frame.header.rows;
        counts[1] = (uint16_t)frame.n_entities;
        counts[2] = (uint16_t)frame.n_columns;
        counts[3] = (uint16_t)frame.bytes_size;
        interval = (uint32_t)frame.header.interval_us;
        last_us = frame.header.last_us - frame.header.first_us;
        memcpy(head + 1, counts, sizeof(counts));
        memcpy(head + 9, &interval, sizeof(interval));
        memcpy(head + 13, &last_us, sizeof(last_us));
        return write_file(folder, SEEDS + number, head, sizeof(head), body, body_size);
}

int main(int argc, char **argv)
{
        CLEANUP(block_encoder) struct block_encoder *encoder = NULL;
        uint64_t seed = 1;
        int r;

        if (argc != 2) {
                fprintf(stderr, "usage: fuzz-block-seeds FOLDER\n");
                return EXIT_FAILURE;
        }
        r = block_encoder_new(&encoder);
        for (unsigned i = 0; r >= 0 && i < SEEDS; i++) {
                struct fixture fixture __attribute__((cleanup(fixture_cleanup))) = {};
                uint32_t n_entities = (uint32_t)below(&seed, 4);
                const uint8_t *bytes;
                size_t size;

                random_fixture(&fixture, &seed, 1 + (uint32_t)below(&seed, 12), n_entities,
                        n_entities * (uint32_t)below(&seed, 12));
                r = block_encode(encoder, &fixture.rows, &bytes, &size);
                if (r >= 0)
                        r = write_seed(argv[1], i, bytes, size);
        }
        if (r < 0)
                fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
