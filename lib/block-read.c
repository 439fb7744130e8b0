/* What a block hands out. All was checked when it was opened. */

#include "lib/block-format.h"

#include <stdlib.h>

struct block *block_close(struct block *block)
{
        if (!block)
                return NULL;
        free(block->body);
        free(block->entities);
        free(block->bitmaps);
        free(block->begins);
        free(block->columns);
        free(block->layouts);
        free(block->times);
        free(block);
        return NULL;
}

const struct block_header *block_get_header(const struct block *block)
{
        return &block->header;
}

uint32_t block_get_n_entities(const struct block *block)
{
        return block->n_entities;
}

const struct block_entity *block_get_entity(const struct block *block, uint32_t index)
{
        return index < block->n_entities ? &block->entities[index] : NULL;
}

uint32_t block_get_n_columns(const struct block *block)
{
        return block->n_columns;
}

const struct block_column *block_get_columns(const struct block *block)
{
        return block->columns;
}

const int64_t *block_get_times(const struct block *block)
{
        return block->header.flags & BLOCK_FLAG_GAP ? NULL : block->times;
}

int block_find_column(
        const struct block *block, uint32_t entity, uint16_t metric, uint32_t *ret_column)
{
        if (entity >= block->n_entities)
                return -ENOENT;
        for (uint32_t i = block->begins[entity]; i < block->begins[entity + 1]; i++)
                if (block->columns[i].metric == metric) {
                        *ret_column = i;
                        return 0;
                }
        return -ENOENT;
}

bool block_is_present(const struct block *block, uint32_t entity, uint32_t row)
{
        if (entity >= block->n_entities || row >= block->header.rows)
                return false;
        if (!block->bitmaps[entity])
                return true;
        return block->bitmaps[entity][row / 8] >> row % 8 & 1;
}

/* Adds the first @rows values of a column, as they are stored, to @ret. */
static void add_stored(
        const struct block *block, const struct block_layout *layout, uint32_t rows, uint64_t *ret)
{
        uint64_t value = layout->first, base = layout->first, position = layout->position;
        bool is_signed = layout->kind & BLOCK_KIND_SIGNED;
        bool is_direct = layout->kind & BLOCK_KIND_DIRECT;

        if (layout->kind & BLOCK_KIND_CONSTANT) {
                for (uint32_t row = 0; row < rows; row++)
                        ret[row] += value;
                return;
        }
        ret[0] += value;
        for (uint32_t row = 1; row < rows; row++) {
                uint64_t difference = token_read(layout->tokens[row - 1], block->bits, &position);

                if (is_signed)
                        difference = unzigzag(difference);
                value = base + difference * layout->divisor;
                if (!is_direct)
                        base = value;
                ret[row] += value;
        }
}

/* A residual becomes the weighted time by the columns that it was taken from. */
static void add_parts(const struct block *block, uint32_t entity, uint32_t rows, uint64_t *ret)
{
        uint32_t column;

        for (uint32_t part = 0; part < BLOCK_PARTS_MAX; part++)
                if (block_find_column(block, entity, block_weighted_parts[part], &column) >= 0)
                        add_stored(block, &block->layouts[column], rows, ret);
        for (uint32_t row = 0; row < rows; row++)
                ret[row] = (uint32_t)ret[row];
}

int block_read_column(const struct block *block, uint32_t column, uint64_t *ret)
{
        return block_read_column_rows(block, column, block->header.rows, ret);
}

int block_read_column_rows(const struct block *block, uint32_t column, uint32_t rows, uint64_t *ret)
{
        const struct block_layout *layout;

        if (column >= block->n_columns)
                return -ENOENT;
        if (rows > block->header.rows)
                rows = block->header.rows;
        if (rows == 0)
                return 0;
        layout = &block->layouts[column];
        memset(ret, 0, rows * sizeof(*ret));
        add_stored(block, layout, rows, ret);
        if (layout->kind & BLOCK_KIND_RESIDUAL)
                add_parts(block, block->columns[column].entity, rows, ret);
        return 0;
}
