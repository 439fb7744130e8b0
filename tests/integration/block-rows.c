/*
 * Lists the rows of encoded blocks, so that a test can count them without the collector's help.
 * Reads blocks, one after the other, from standard input; prints a line a row:
 *     HOST BOOT SOURCE SEQUENCE TIME_US INTERVAL_US COUNT
 * COUNT is the metric that the argument names, of the block's first entity; without an argument it
 * is the number of ticks that the agent counted as missed so far. 0 in blocks that do not have it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/block.h"
#include "lib/cleanup.h"
#include "lib/metric.h"

#define INPUT_MAX (1u << 30) /* a test's whole store */

static int read_all(FILE *file, uint8_t **ret, size_t *ret_size)
{
        size_t size = 0, room = 1u << 20, n;
        uint8_t *bytes = malloc(room), *more;

        if (!bytes)
                return -ENOMEM;
        while ((n = fread(bytes + size, 1, room - size, file)) > 0) {
                size += n;
                if (size < room)
                        continue;
                more = room < INPUT_MAX ? realloc(bytes, room * 2) : NULL;
                if (!more) {
                        free(bytes);
                        return -EFBIG;
                }
                bytes = more;
                room *= 2;
        }
        *ret = bytes;
        *ret_size = size;
        return 0;
}

static int read_count(const struct block *block, const char *name, uint64_t *ret)
{
        const struct block_header *header = block_get_header(block);
        const struct metric *metric = metric_find((enum source_id)header->source, name);
        uint32_t column;

        if (!metric || block_find_column(block, 0, metric->id, &column) < 0)
                return 0;
        return block_read_column(block, column, ret);
}

static int print_rows(const uint8_t *bytes, size_t size, const char *name)
{
        CLEANUP(block) struct block *block = NULL;
        const struct block_header *header;
        char host[ID_TEXT_MAX], boot[ID_TEXT_MAX];
        uint64_t counts[BLOCK_ROWS_MAX] = {0};
        int r;

        r = block_open(bytes, size, &block);
        if (r < 0)
                return r;
        header = block_get_header(block);
        if (header->flags & BLOCK_FLAG_GAP)
                return 0;
        r = read_count(block, name, counts);
        if (r < 0)
                return r;
        id_format(&header->host, host);
        id_format(&header->boot, boot);
        for (uint32_t row = 0; row < header->rows; row++)
                printf("%s %s %u %" PRIu64 " %" PRId64 " %" PRIu64 " %" PRIu64 "\n", host, boot,
                        header->source, header->sequence, block_get_times(block)[row],
                        header->interval_us, counts[row]);
        return 0;
}

int main(int argc, char **argv)
{
        const char *name = argc > 1 ? argv[1] : "ticks_missed";
        uint8_t *bytes = NULL;
        size_t size = 0, at = 0, one;
        struct block_header header;
        int r;

        r = read_all(stdin, &bytes, &size);
        while (r == 0 && at < size) {
                r = block_peek(bytes + at, size - at, &header, &one);
                if (r == 0)
                        r = print_rows(bytes + at, one, name);
                at += one;
        }
        if (r < 0)
                fprintf(stderr, "block at byte %zu: %s\n", at, strerror(-r));
        free(bytes);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
