#include "collectord/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/gather.h"

struct merge {
        merge_function function;
        void *userdata;
        struct block_decoder *decoder;
        struct gather gather;
        struct merge_piece piece; /* what was gathered; bytes of the only block so far */
        uint8_t *bytes;
        size_t bytes_allocated;
        uint64_t column[BLOCK_ROWS_MAX];
};

int merge_new(merge_function function, void *userdata, struct merge **ret)
{
        CLEANUP(merge) struct merge *merge = calloc(1, sizeof(*merge));
        int r;

        if (!merge)
                return -ENOMEM;
        merge->function = function;
        merge->userdata = userdata;
        r = gather_init(&merge->gather);
        if (r < 0)
                return r;
        r = block_decoder_new(&merge->decoder);
        if (r < 0)
                return r;
        *ret = STEAL(merge);
        return 0;
}

struct merge *merge_free(struct merge *merge)
{
        if (!merge)
                return NULL;
        gather_done(&merge->gather);
        block_decoder_free(merge->decoder);
        free(merge->bytes);
        free(merge);
        return NULL;
}

int merge_finish(struct merge *merge)
{
        struct merge_piece piece = merge->piece;
        int r;

        merge->piece = (struct merge_piece){0};
        if (piece.blocks == 0)
                return 0;
        piece.bytes = merge->bytes;
        if (piece.blocks > 1) {
                r = gather_encode(&merge->gather, &piece.bytes, &piece.size);
                if (r < 0)
                        return r;
        }
        merge->gather.rows = 0;
        return merge->function(merge->userdata, &piece);
}

void merge_reset(struct merge *merge)
{
        merge->piece = (struct merge_piece){0};
        merge->gather.rows = 0;
}

static bool follows(const struct merge *merge, const struct block_header *header)
{
        int64_t distance_us = header->first_us - merge->piece.last_us;

        return merge->piece.blocks > 0 && gather_fits(&merge->gather, header) && distance_us > 0 &&
               (uint64_t)distance_us <= header->interval_us + header->interval_us / 2 &&
               merge->gather.rows + header->rows <=
                       gather_rows_max(merge->gather.n_columns, MERGE_ROWS_MAX);
}

static int gather_block(struct merge *merge, const struct block *block)
{
        struct gather *gather = &merge->gather;
        uint32_t rows = block_get_header(block)->rows, n = gather->n_columns;
        int r;

        r = gather_reserve(gather, rows);
        if (r < 0)
                return r;
        memcpy(gather->times_us + gather->rows, block_get_times(block), rows * sizeof(int64_t));
        for (uint32_t i = 0; i < n; i++) {
                uint64_t *to = gather->values + (size_t)gather->rows * n + i;

                r = block_read_column(block, i, merge->column);
                if (r < 0)
                        return r;
                for (uint32_t row = 0; row < rows; row++, to += n)
                        *to = merge->column[row];
        }
        for (uint32_t row = 0; row < rows; row++)
                for (uint32_t i = 0; i < gather->n_entities; i++) {
                        bool present = block_is_present(block, i, row);

                        gather->present[(size_t)(gather->rows + row) * gather->n_entities + i] =
                                present;
                        gather->absent |= !present;
                }
        gather->rows += rows;
        return 0;
}

/* A single block is passed on as it came. */
static int keep_bytes(struct merge *merge, const struct merge_piece *piece)
{
        if (piece->size > merge->bytes_allocated) {
                uint8_t *bytes = realloc(merge->bytes, piece->size);

                if (!bytes)
                        return -ENOMEM;
                merge->bytes = bytes;
                merge->bytes_allocated = piece->size;
        }
        memcpy(merge->bytes, piece->bytes, piece->size);
        return 0;
}

int merge_add(struct merge *merge, const struct merge_piece *piece)
{
        const struct block *block = NULL;
        const struct block_header *header;
        int r;

        r = block_decode(merge->decoder, piece->bytes, piece->size, &block);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                r = merge_finish(merge);
                return r < 0 ? r : merge->function(merge->userdata, piece);
        }
        header = block_get_header(block);
        if (!follows(merge, header)) {
                r = merge_finish(merge);
                if (r < 0)
                        return r;
                r = gather_begin(&merge->gather, block, block_get_columns(block),
                        block_get_n_columns(block));
                if (r == 0)
                        r = keep_bytes(merge, piece);
                if (r < 0)
                        return r;
                merge->piece = *piece;
                return gather_block(merge, block);
        }
        merge->piece.last_us = piece->last_us;
        merge->piece.rows += piece->rows;
        merge->piece.blocks += piece->blocks;
        return gather_block(merge, block);
}
