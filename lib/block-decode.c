/*
 * The decoder. It trusts nothing: counts are held against the limits and against the bytes left
 * before anything is allocated, and an entity or a column costs bytes, so that memory stays
 * proportional to the body, and the body to what the header may ask for.
 */

#include "lib/block-format.h"

#include <stdlib.h>
#include <zstd.h>

#include "lib/metric.h"

/* What of the body is not yet read. */
struct cursor {
        const uint8_t *at;
        const uint8_t *end; /* of the bytes */
        const uint8_t *bits;
        uint64_t position;
        uint64_t n_bits;
};

static size_t cursor_left(const struct cursor *cursor)
{
        return (size_t)(cursor->end - cursor->at);
}

static int read_number(struct cursor *cursor, uint64_t *ret)
{
        uint8_t token;

        if (cursor->at == cursor->end)
                return -EBADMSG;
        token = *cursor->at;
        if (token > TOKEN_MAX || token_bits(token) > cursor->n_bits - cursor->position)
                return -EBADMSG;
        cursor->at++;
        *ret = token_read(token, cursor->bits, &cursor->position);
        return 0;
}

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint16_t words8 __attribute__((vector_size(16)));

/* Four tokens' bits fit into a byte, and BLOCK_ROWS_MAX tokens' into 16-bit words. */
#define VECTOR sizeof(bytes16)
#define VECTORS_IN_BYTES 4u
_Static_assert(VECTORS_IN_BYTES * 63u <= UINT8_MAX, "bytes hold their sums");
_Static_assert(BLOCK_ROWS_MAX / 8u * 63u <= UINT16_MAX, "words hold their sums");

/*
 * Steps over @count numbers, at most BLOCK_ROWS_MAX: most of what opening a block costs beside
 * zstd, so sixteen tokens are looked at at a time.
 */
static int skip_numbers(struct cursor *cursor, size_t count)
{
        bytes16 wrong = {0}, some = {0}, tokens;
        words8 sums = {0};
        uint64_t n_bits = 0;
        unsigned held = 0;

        if (cursor_left(cursor) < count)
                return -EBADMSG;
        for (size_t i = 0; i < count; i += VECTOR) {
                if (count - i >= VECTOR)
                        memcpy(&tokens, cursor->at + i, VECTOR);
                else {
                        tokens = (bytes16){0};
                        memcpy(&tokens, cursor->at + i, count - i);
                }
                wrong |= (bytes16)(tokens > TOKEN_MAX);
                /* token_bits() of each. */
                some += (bytes16)(tokens >= TOKEN_LITERALS) &
                        (tokens - (TOKEN_LITERALS - TOKEN_LITERAL_BITS));
                if (++held == VECTORS_IN_BYTES) {
                        sums += ((words8)some & 0xff) + ((words8)some >> 8);
                        some = (bytes16){0};
                        held = 0;
                }
        }
        sums += ((words8)some & 0xff) + ((words8)some >> 8);
        for (size_t i = 0; i < VECTOR; i++)
                if (wrong[i])
                        return -EBADMSG;
        for (size_t i = 0; i < VECTOR / 2; i++)
                n_bits += sums[i];
        if (n_bits > cursor->n_bits - cursor->position)
                return -EBADMSG;
        cursor->at += count;
        cursor->position += n_bits;
        return 0;
}

/* At least @n members; what was in them is lost. */
static int grow(void *array, size_t *allocated, size_t n, size_t size)
{
        void **place = array;

        if (n <= *allocated)
                return 0;
        free(*place);
        *allocated = 0;
        *place = reallocarray(NULL, n, size);
        if (!*place)
                return -ENOMEM;
        *allocated = n;
        return 0;
}

/* Memory for at least one member of each, so that NULL always means no memory. */
static int block_allocate(struct block *block)
{
        size_t n_entities = (size_t)block->n_entities + 1, n_columns = (size_t)block->n_columns + 1;
        struct block_capacity *capacity = &block->capacity;

        if (grow(&block->entities, &capacity->entities, n_entities, sizeof(*block->entities)) < 0 ||
                grow(&block->bitmaps, &capacity->bitmaps, n_entities, sizeof(*block->bitmaps)) <
                        0 ||
                grow(&block->begins, &capacity->begins, n_entities, sizeof(*block->begins)) < 0 ||
                grow(&block->columns, &capacity->columns, n_columns, sizeof(*block->columns)) < 0 ||
                grow(&block->layouts, &capacity->layouts, n_columns, sizeof(*block->layouts)) < 0 ||
                grow(&block->times, &capacity->times, block->header.rows, sizeof(*block->times)) <
                        0)
                return -ENOMEM;
        memset(block->bitmaps, 0, n_entities * sizeof(*block->bitmaps));
        block->begins[0] = 0;
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

        r = read_number(cursor, &which);
        if (r < 0)
                return r;
        switch (which) {
        case BLOCK_CLUSTER_NONE:
                *ret = (struct id){0};
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
                r = read_number(cursor, &entities[i].instance);
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

        r = read_number(cursor, &count);
        if (r < 0)
                return r;
        if (count > block->n_columns - begin)
                return -EBADMSG;
        for (uint32_t k = 0; k < count; k++) {
                r = read_number(cursor, &step);
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

                r = read_number(cursor, &back);
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

        r = read_number(cursor, &order);
        if (r < 0)
                return r;
        if (order > BLOCK_TIME_ORDER_MAX)
                return -EBADMSG;
        block->times[0] = header->first_us;
        for (uint32_t i = 1; i < header->rows; i++) {
                r = read_number(cursor, &value);
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

        r = read_number(cursor, &count);
        if (r < 0)
                return r;
        if (count > block->n_entities)
                return -EBADMSG;
        for (uint64_t i = 0; i < count; i++) {
                r = read_number(cursor, &step);
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

static int read_layout(struct cursor *cursor, uint16_t metric, struct block_layout *ret)
{
        uint64_t kind;
        int r;

        r = read_number(cursor, &kind);
        if (r < 0)
                return r;
        if (kind & ~(uint64_t)BLOCK_KIND_ALL)
                return -EBADMSG;
        if (kind & BLOCK_KIND_RESIDUAL && metric != METRIC_DISK_WEIGHTED_TIME)
                return -EBADMSG;
        ret->kind = (uint8_t)kind;
        ret->divisor = 1;
        r = read_number(cursor, &ret->first);
        if (r < 0)
                return r;
        if (kind & BLOCK_KIND_RESIDUAL)
                ret->first = unzigzag(ret->first);
        if (kind & BLOCK_KIND_CONSTANT || !(kind & BLOCK_KIND_DIVISOR))
                return 0;
        return read_number(cursor, &ret->divisor);
}

/* The data of all columns is what is left, to the last byte and but for padding to the last bit. */
static int read_layouts(struct block *block, struct cursor *cursor)
{
        int r;

        for (uint32_t i = 0; i < block->n_columns; i++) {
                r = read_layout(cursor, block->columns[i].metric, &block->layouts[i]);
                if (r < 0)
                        return r;
        }
        cursor->position = (cursor->position + 7) / 8 * 8;
        for (uint32_t i = 0; i < block->n_columns; i++) {
                struct block_layout *layout = &block->layouts[i];

                if (layout->kind & BLOCK_KIND_CONSTANT)
                        continue;
                layout->tokens = cursor->at;
                layout->position = cursor->position;
                r = skip_numbers(cursor, block->header.rows - 1);
                if (r < 0)
                        return r;
        }
        return cursor_left(cursor) == 0 && cursor->n_bits - cursor->position < 8 ? 0 : -EBADMSG;
}

static int read_body(struct block *block, size_t bytes_size, size_t body_size)
{
        struct cursor cursor = {
                .at = block->body,
                .end = block->body + bytes_size,
                .bits = block->body + bytes_size,
                .n_bits = (uint64_t)(body_size - bytes_size) * 8,
        };
        int r;

        block->bits = cursor.bits;
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

/* As block_parse, into @block; its body stands there already. */
static int parse(struct block *block, const struct block_frame *frame, size_t body_size)
{
        int r;

        if (!block_frame_fits(frame) || frame->bytes_size > body_size)
                return -EBADMSG;
        if ((uint64_t)frame->n_entities * BLOCK_ENTITY_MIN +
                        (uint64_t)frame->n_columns * BLOCK_COLUMN_MIN >
                frame->bytes_size)
                return -EBADMSG;
        block->header = frame->header;
        block->n_entities = frame->n_entities;
        block->n_columns = frame->n_columns;
        if (frame->header.flags & BLOCK_FLAG_GAP)
                return 0;
        r = block_allocate(block);
        return r < 0 ? r : read_body(block, frame->bytes_size, body_size);
}

int block_parse(
        const struct block_frame *frame, uint8_t *body, size_t body_size, struct block **ret)
{
        CLEANUP(mem) uint8_t *owned = body;
        CLEANUP(block) struct block *block = calloc(1, sizeof(*block));
        int r;

        if (!block)
                return -ENOMEM;
        block->body = STEAL(owned);
        r = parse(block, frame, body_size);
        if (r < 0)
                return r;
        *ret = STEAL(block);
        return 0;
}

/* The body into @block's own memory. @zstd NULL: a context for this call only. */
static int unpack(
        struct block *block, ZSTD_DCtx *zstd, const uint8_t *bytes, size_t size, size_t *ret_size)
{
        const uint8_t *frame = bytes + BLOCK_HEADER_BYTES;
        size_t frame_size = size - BLOCK_HEADER_BYTES, done;
        unsigned long long body_size = ZSTD_getFrameContentSize(frame, frame_size);

        /* The two errors of zstd are larger than any size. */
        if (body_size > BLOCK_BODY_MAX ||
                ZSTD_findFrameCompressedSize(frame, frame_size) != frame_size)
                return -EBADMSG;
        if (grow(&block->body, &block->capacity.body, body_size + BLOCK_BODY_SLACK, 1) < 0)
                return -ENOMEM;
        done = zstd ? ZSTD_decompressDCtx(zstd, block->body, body_size, frame, frame_size)
                    : ZSTD_decompress(block->body, body_size, frame, frame_size);
        if (done != body_size)
                return -EBADMSG;
        memset(block->body + body_size, 0, BLOCK_BODY_SLACK);
        *ret_size = body_size;
        return 0;
}

int block_unpack(const uint8_t *bytes, size_t size, uint8_t **ret_body, size_t *ret_size)
{
        struct block block = {0};
        int r;

        r = unpack(&block, NULL, bytes, size, ret_size);
        if (r < 0) {
                free(block.body);
                return r;
        }
        *ret_body = block.body;
        return 0;
}

static int open_into(struct block *block, ZSTD_DCtx *zstd, const uint8_t *bytes, size_t size)
{
        struct block_frame frame;
        size_t body_size = 0;
        bool is_gap;
        int r;

        r = block_frame_read(bytes, size, &frame);
        if (r < 0)
                return r;
        is_gap = frame.header.flags & BLOCK_FLAG_GAP;
        if (frame.size != size || (is_gap && size > BLOCK_HEADER_BYTES))
                return -EBADMSG;
        if (!is_gap) {
                r = unpack(block, zstd, bytes, size, &body_size);
                if (r < 0)
                        return r;
        }
        r = parse(block, &frame, body_size);
        if (r < 0)
                return r;
        return block_schema_hash(block->entities, block->n_entities, block->columns,
                       block->n_columns) == frame.header.schema_hash
                       ? 0
                       : -EBADMSG;
}

int block_open(const uint8_t *bytes, size_t size, struct block **ret)
{
        CLEANUP(block) struct block *block = calloc(1, sizeof(*block));
        int r;

        if (!block)
                return -ENOMEM;
        r = open_into(block, NULL, bytes, size);
        if (r < 0)
                return r;
        *ret = STEAL(block);
        return 0;
}

struct block_decoder {
        ZSTD_DCtx *zstd;
        struct block *block;
};

int block_decoder_new(struct block_decoder **ret)
{
        CLEANUP(block_decoder) struct block_decoder *decoder = calloc(1, sizeof(*decoder));

        if (!decoder)
                return -ENOMEM;
        decoder->zstd = ZSTD_createDCtx();
        decoder->block = calloc(1, sizeof(*decoder->block));
        if (!decoder->zstd || !decoder->block)
                return -ENOMEM;
        *ret = STEAL(decoder);
        return 0;
}

struct block_decoder *block_decoder_free(struct block_decoder *decoder)
{
        if (!decoder)
                return NULL;
        ZSTD_freeDCtx(decoder->zstd);
        block_close(decoder->block);
        free(decoder);
        return NULL;
}

int block_decode(
        struct block_decoder *decoder, const uint8_t *bytes, size_t size, const struct block **ret)
{
        int r = open_into(decoder->block, decoder->zstd, bytes, size);

        if (r == 0)
                *ret = decoder->block;
        return r;
}
