/*
 * The decoder. It trusts nothing: counts are held against the limits and against the bytes left
 * before anything is allocated, and an entity or a column costs bytes, so that memory stays
 * proportional to the body, and the body to what the header may ask for.
 */

#include "lib/block-format.h"

#include <stdlib.h>
#include <zstd.h>

#include "lib/metric.h"

struct layout {
        uint64_t first;
        uint64_t divisor;
        const uint8_t *data;
        uint32_t size;
        uint8_t kind;
};

struct block {
        struct block_header header;
        uint32_t n_entities;
        uint32_t n_columns;
        uint8_t *body; /* names and identities point into it */
        struct block_entity *entities;
        const uint8_t **bitmaps; /* of an entity's presence; NULL when always present */
        uint32_t *begins;        /* [n_entities + 1], first column of each */
        struct block_column *columns;
        struct layout *layouts; /* [n_columns] */
        int64_t *times;
};

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

/* Allocates at least one member, so that NULL always means no memory. */
static int block_allocate(struct block *block)
{
        size_t n_entities = block->n_entities, n_columns = block->n_columns;

        block->entities = calloc(n_entities + 1, sizeof(*block->entities));
        block->bitmaps = calloc(n_entities + 1, sizeof(*block->bitmaps));
        block->begins = calloc(n_entities + 1, sizeof(*block->begins));
        block->columns = calloc(n_columns + 1, sizeof(*block->columns));
        block->layouts = calloc(n_columns + 1, sizeof(*block->layouts));
        block->times = calloc(block->header.rows, sizeof(*block->times));
        if (!block->entities || !block->bitmaps || !block->begins || !block->columns ||
                !block->layouts || !block->times)
                return -ENOMEM;
        return 0;
}

static int read_text(struct cursor *cursor, const char **ret)
{
        size_t left = cursor_left(cursor);
        size_t reach = left < BLOCK_NAME_MAX + 1 ? left : BLOCK_NAME_MAX + 1;
        const uint8_t *end = memchr(cursor->at, '\0', reach);

        if (!end)
                return -EBADMSG;
        *ret = (const char *)cursor->at;
        cursor->at = end + 1;
        return 0;
}

static int read_bytes(struct cursor *cursor, size_t size, const uint8_t **ret)
{
        if (cursor_left(cursor) < size)
                return -EBADMSG;
        *ret = cursor->at;
        cursor->at += size;
        return 0;
}

static int read_cluster(struct cursor *cursor, const struct id *header_cluster, struct id *ret)
{
        const uint8_t *bytes;
        uint64_t which;
        int r;

        r = cursor_varint(cursor, &which);
        if (r < 0)
                return r;
        switch (which) {
        case BLOCK_CLUSTER_NONE:
                return 0;
        case BLOCK_CLUSTER_HEADER:
                *ret = *header_cluster;
                return 0;
        case BLOCK_CLUSTER_OWN:
                r = read_bytes(cursor, sizeof(ret->bytes), &bytes);
                if (r < 0)
                        return r;
                memcpy(ret->bytes, bytes, sizeof(ret->bytes));
                return 0;
        default:
                return -EBADMSG;
        }
}

static int read_entities(struct block *block, struct cursor *cursor)
{
        struct block_entity *entities = block->entities;
        int r;

        for (uint32_t i = 0; i < block->n_entities; i++) {
                r = read_text(cursor, &entities[i].name);
                if (r < 0)
                        return r;
        }
        for (uint32_t i = 0; i < block->n_entities; i++) {
                r = read_text(cursor, &entities[i].identity);
                if (r < 0)
                        return r;
        }
        for (uint32_t i = 0; i < block->n_entities; i++) {
                r = read_cluster(cursor, &block->header.cluster, &entities[i].cluster);
                if (r < 0)
                        return r;
        }
        for (uint32_t i = 0; i < block->n_entities; i++) {
                r = cursor_varint(cursor, &entities[i].instance);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_new_list(
        struct block *block, struct cursor *cursor, uint32_t entity, uint32_t begin)
{
        uint64_t count, step, metric = 0;
        int r;

        r = cursor_varint(cursor, &count);
        if (r < 0)
                return r;
        if (count > block->n_columns - begin)
                return -EBADMSG;
        for (uint32_t k = 0; k < count; k++) {
                r = cursor_varint(cursor, &step);
                if (r < 0)
                        return r;
                metric += unzigzag(step);
                if (metric > UINT16_MAX)
                        return -EBADMSG;
                block->columns[begin + k].entity = entity;
                block->columns[begin + k].metric = (uint16_t)metric;
        }
        block->begins[entity + 1] = begin + (uint32_t)count;
        return 0;
}

static int read_lists(struct block *block, struct cursor *cursor)
{
        uint32_t *begins = block->begins;
        int r;

        for (uint32_t i = 0; i < block->n_entities; i++) {
                uint32_t from, count;
                uint64_t back;

                r = cursor_varint(cursor, &back);
                if (r < 0)
                        return r;
                if (back == 0) {
                        r = read_new_list(block, cursor, i, begins[i]);
                        if (r < 0)
                                return r;
                        continue;
                }
                if (back > i)
                        return -EBADMSG;
                from = begins[i - back];
                count = begins[i - back + 1] - from;
                if (count > block->n_columns - begins[i])
                        return -EBADMSG;
                for (uint32_t k = 0; k < count; k++) {
                        block->columns[begins[i] + k].entity = i;
                        block->columns[begins[i] + k].metric = block->columns[from + k].metric;
                }
                begins[i + 1] = begins[i] + count;
        }
        return begins[block->n_entities] == block->n_columns ? 0 : -EBADMSG;
}

static int read_times(struct block *block, struct cursor *cursor)
{
        const struct block_header *header = &block->header;
        uint64_t order, value, sum = 0, slope = 0;
        int r;

        r = cursor_varint(cursor, &order);
        if (r < 0)
                return r;
        if (order > BLOCK_TIME_ORDER_MAX)
                return -EBADMSG;
        block->times[0] = header->first_us;
        for (uint32_t i = 1; i < header->rows; i++) {
                r = cursor_varint(cursor, &value);
                if (r < 0)
                        return r;
                value = unzigzag(value);
                slope = order == 2 ? slope + value : value;
                sum = order >= 1 ? sum + slope : value;
                block->times[i] =
                        (int64_t)((uint64_t)header->first_us + sum + i * header->interval_us);
                if (block->times[i] <= block->times[i - 1])
                        return -EBADMSG;
        }
        return block->times[header->rows - 1] == header->last_us ? 0 : -EBADMSG;
}

static int read_presence(struct block *block, struct cursor *cursor)
{
        size_t bitmap_size = (block->header.rows + 7) / 8;
        uint64_t count, step, entity = 0;
        int r;

        r = cursor_varint(cursor, &count);
        if (r < 0)
                return r;
        if (count > block->n_entities)
                return -EBADMSG;
        for (uint64_t i = 0; i < count; i++) {
                r = cursor_varint(cursor, &step);
                if (r < 0)
                        return r;
                if ((i > 0 && step == 0) || step >= block->n_entities - entity)
                        return -EBADMSG;
                entity += step;
                r = read_bytes(cursor, bitmap_size, &block->bitmaps[entity]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_layout(struct cursor *cursor, uint32_t rows, uint16_t metric, struct layout *ret)
{
        uint64_t kind, excess;
        int r;

        r = cursor_varint(cursor, &kind);
        if (r < 0)
                return r;
        if (kind & ~(uint64_t)BLOCK_KIND_ALL)
                return -EBADMSG;
        if (kind & BLOCK_KIND_RESIDUAL && metric != METRIC_DISK_WEIGHTED_TIME)
                return -EBADMSG;
        ret->kind = (uint8_t)kind;
        ret->divisor = 1;
        r = cursor_varint(cursor, &ret->first);
        if (r < 0)
                return r;
        if (kind & BLOCK_KIND_RESIDUAL)
                ret->first = unzigzag(ret->first);
        if (kind & BLOCK_KIND_CONSTANT)
                return 0;
        if (kind & BLOCK_KIND_DIVISOR) {
                r = cursor_varint(cursor, &ret->divisor);
                if (r < 0)
                        return r;
        }
        r = cursor_varint(cursor, &excess);
        if (r < 0)
                return r;
        if (excess > (uint64_t)(rows - 1) * (VARINT_MAX - 1))
                return -EBADMSG;
        ret->size = rows - 1 + (uint32_t)excess;
        return 0;
}

/* The data of all columns is what is left, to the last byte. */
static int read_layouts(struct block *block, struct cursor *cursor)
{
        int r;

        for (uint32_t i = 0; i < block->n_columns; i++) {
                r = read_layout(
                        cursor, block->header.rows, block->columns[i].metric, &block->layouts[i]);
                if (r < 0)
                        return r;
        }
        for (uint32_t i = 0; i < block->n_columns; i++) {
                r = read_bytes(cursor, block->layouts[i].size, &block->layouts[i].data);
                if (r < 0)
                        return r;
        }
        return cursor_left(cursor) == 0 ? 0 : -EBADMSG;
}

static int read_body(struct block *block, size_t body_size)
{
        struct cursor cursor = {block->body, block->body + body_size};
        int r;

        r = read_entities(block, &cursor);
        if (r < 0)
                return r;
        r = read_lists(block, &cursor);
        if (r < 0)
                return r;
        r = read_times(block, &cursor);
        if (r < 0)
                return r;
        r = read_presence(block, &cursor);
        if (r < 0)
                return r;
        return read_layouts(block, &cursor);
}

int block_parse(const struct block_frame *frame, uint8_t *body, struct block **ret)
{
        CLEANUP(mem) uint8_t *owned = body;
        CLEANUP(block) struct block *block = NULL;
        int r;

        if (!block_frame_fits(frame))
                return -EBADMSG;
        if ((uint64_t)frame->n_entities * BLOCK_ENTITY_MIN +
                        (uint64_t)frame->n_columns * BLOCK_COLUMN_MIN >
                frame->body_size)
                return -EBADMSG;
        block = calloc(1, sizeof(*block));
        if (!block)
                return -ENOMEM;
        block->header = frame->header;
        block->body = STEAL(owned);
        if (!(frame->header.flags & BLOCK_FLAG_GAP)) {
                block->n_entities = frame->n_entities;
                block->n_columns = frame->n_columns;
                r = block_allocate(block);
                if (r < 0)
                        return r;
                r = read_body(block, frame->body_size);
                if (r < 0)
                        return r;
        }
        *ret = STEAL(block);
        return 0;
}

/* One frame that fills what it is given and says the same size as the header. */
static int decompress(
        const uint8_t *bytes, size_t size, const struct block_frame *frame, uint8_t **ret)
{
        CLEANUP(mem) uint8_t *body = NULL;

        if (size == 0 && frame->body_size == 0) {
                *ret = NULL;
                return 0;
        }
        if (ZSTD_getFrameContentSize(bytes, size) != frame->body_size ||
                ZSTD_findFrameCompressedSize(bytes, size) != size)
                return -EBADMSG;
        body = malloc(frame->body_size + 1);
        if (!body)
                return -ENOMEM;
        if (ZSTD_decompress(body, frame->body_size, bytes, size) != frame->body_size)
                return -EBADMSG;
        *ret = STEAL(body);
        return 0;
}

int block_open(const uint8_t *bytes, size_t size, struct block **ret)
{
        CLEANUP(block) struct block *block = NULL;
        struct block_frame frame;
        uint8_t *body;
        int r;

        r = block_frame_read(bytes, size, &frame);
        if (r < 0)
                return r;
        if (frame.size != size)
                return -EBADMSG;
        r = decompress(bytes + BLOCK_HEADER_BYTES, size - BLOCK_HEADER_BYTES, &frame, &body);
        if (r < 0)
                return r;
        r = block_parse(&frame, body, &block);
        if (r < 0)
                return r;
        if (block_schema_hash(block->entities, block->n_entities, block->columns,
                    block->n_columns) != frame.header.schema_hash)
                return -EBADMSG;
        *ret = STEAL(block);
        return 0;
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
        return block->times;
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

/* Adds the values of a column, as they are stored, to @ret[rows]. */
static int add_stored(const struct layout *layout, uint32_t rows, uint64_t *ret)
{
        struct cursor cursor = {layout->data, layout->data + layout->size};
        uint64_t value = layout->first, base = layout->first, difference;
        int r;

        if (layout->kind & BLOCK_KIND_CONSTANT) {
                for (uint32_t row = 0; row < rows; row++)
                        ret[row] += value;
                return 0;
        }
        ret[0] += value;
        for (uint32_t row = 1; row < rows; row++) {
                r = cursor_varint(&cursor, &difference);
                if (r < 0)
                        return r;
                if (layout->kind & BLOCK_KIND_SIGNED)
                        difference = unzigzag(difference);
                value = base + difference * layout->divisor;
                if (!(layout->kind & BLOCK_KIND_DIRECT))
                        base = value;
                ret[row] += value;
        }
        return cursor_left(&cursor) == 0 ? 0 : -EBADMSG;
}

/* A residual becomes the weighted time by the columns that it was taken from. */
static int add_parts(const struct block *block, uint32_t entity, uint64_t *ret)
{
        uint32_t rows = block->header.rows, column;
        int r;

        for (uint32_t part = 0; part < BLOCK_PARTS_MAX; part++) {
                if (block_find_column(block, entity, block_weighted_parts[part], &column) < 0)
                        continue;
                r = add_stored(&block->layouts[column], rows, ret);
                if (r < 0)
                        return r;
        }
        for (uint32_t row = 0; row < rows; row++)
                ret[row] = (uint32_t)ret[row];
        return 0;
}

int block_read_column(const struct block *block, uint32_t column, uint64_t *ret)
{
        int r;

        if (column >= block->n_columns)
                return -ENOENT;
        memset(ret, 0, block->header.rows * sizeof(*ret));
        r = add_stored(&block->layouts[column], block->header.rows, ret);
        if (r < 0 || !(block->layouts[column].kind & BLOCK_KIND_RESIDUAL))
                return r;
        return add_parts(block, block->columns[column].entity, ret);
}
