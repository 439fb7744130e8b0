#include "agentd/spool-private.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "agentd/rejected.h"

/* Enough for good times; what a backlog needs is given back. */
#define BUFFER_KEEP_BYTES (64u << 10)

static int reserve(struct spool *spool, size_t size)
{
        uint8_t *buffer;

        if (size <= spool->buffer_size)
                return 0;
        buffer = realloc(spool->buffer, size);
        if (!buffer)
                return -ENOMEM;
        spool->buffer = buffer;
        spool->buffer_size = size;
        return 0;
}

static bool batch_is_full(const struct spool *spool, size_t size, size_t size_max)
{
        const struct batch *batch = &spool->batch;

        return batch->blocks > 0 &&
               (batch->size + size > size_max || batch->blocks == spool->batch_limit);
}

/* The block of @size bytes that stands at the batch's end joins it; the next one is at @end. */
static void batch_add(
        struct batch *batch, const struct block_header *header, size_t size, uint64_t end)
{
        if (batch->blocks == 0) {
                batch->first = *header;
                batch->first_size = size;
                batch->first_end = end;
        }
        batch->blocks++;
        batch->size += size;
        batch->end = end;
}

static bool block_is_whole(const uint8_t *bytes, size_t size)
{
        struct block_header header;
        size_t own_size;

        return block_peek(bytes, size, &header, &own_size) == 0 && own_size == size;
}

/* Reads whole blocks from @segment; damaged ones are passed over. */
static int read_segment(struct spool *spool, const struct segment *segment, size_t size_max)
{
        struct batch *batch = &spool->batch;
        struct segment_record record;
        uint64_t offset = segment->acked;
        int r;

        batch->segment = segment->number;
        batch->end = offset;
        while ((r = segment_read_record(segment, offset, &record)) > 0 &&
                !batch_is_full(spool, record.size, size_max)) {
                r = reserve(spool, batch->size + record.size);
                if (r < 0)
                        return r;
                r = segment_read_block(segment, offset, &record, spool->buffer + batch->size);
                offset += sizeof(record) + record.size;
                if (r == 0 && block_is_whole(spool->buffer + batch->size, record.size)) {
                        batch_add(batch, &record.header, record.size, offset);
                } else {
                        spool->damaged++;
                        batch->end = offset;
                }
        }
        if (r < 0 && batch->blocks == 0) {
                /* The chain is broken: what follows cannot be found any more. */
                spool->damaged++;
                batch->end = segment->end;
        }
        return 0;
}

static int read_memory(struct spool *spool, size_t size_max)
{
        struct batch *batch = &spool->batch;
        int r;

        batch->from_memory = true;
        for (const struct memory_block *block = spool->memory.first;
                block && !batch_is_full(spool, block->size, size_max); block = block->next) {
                r = reserve(spool, batch->size + block->size);
                if (r < 0)
                        return r;
                memcpy(spool->buffer + batch->size, block->bytes, block->size);
                batch_add(batch, &block->header, block->size, block->serial);
        }
        return 0;
}

/* Gaps of blocks dropped from memory, once everything else is gone. */
static void gaps_to_memory(struct spool *spool)
{
        const uint8_t *bytes;
        size_t size;

        while (spool->gaps.count > 0) {
                struct block_header header = spool->gaps.headers[spool->gaps.count - 1];

                if (gaps_take(&spool->gaps, spool->encoder, &bytes, &size) < 0)
                        return;
                header.flags |= BLOCK_FLAG_GAP;
                if (memory_queue_add(&spool->memory, &header, bytes, size) < 0)
                        return;
        }
}

static struct segment *find_segment(const struct spool *spool, uint64_t number)
{
        for (unsigned i = 0; i < spool->n_segments; i++)
                if (spool->segments[i]->number == number)
                        return spool->segments[i];
        return NULL;
}

static void acknowledge_segment(struct spool *spool, uint64_t number, uint64_t end)
{
        struct segment *segment = find_segment(spool, number);

        /* Dropped meanwhile. */
        if (!segment)
                return;
        segment_acknowledge(segment, end);
        while (spool->n_segments > 1 && spool->segments[0]->acked == spool->segments[0]->end)
                spool_remove_first_segment(spool);
        segment = spool->segments[spool->n_segments - 1];
        if (segment->acked == segment->end)
                segment_empty(segment);
}

static void acknowledge_to(struct spool *spool, uint64_t end)
{
        if (!spool->batch.from_memory)
                acknowledge_segment(spool, spool->batch.segment, end);
        while (spool->batch.from_memory && spool->memory.first &&
                spool->memory.first->serial <= end)
                memory_queue_drop_first(&spool->memory);
        spool->batch = (struct batch){0};
        spool->batch_limit = 0;
        if (spool->buffer_size > BUFFER_KEEP_BYTES) {
                free(spool->buffer);
                spool->buffer = NULL;
                spool->buffer_size = 0;
        }
        spool_update_counters(spool);
}

/* The oldest segment that has something, past what is damaged. Each round gets on. */
static int read_disk(struct spool *spool, size_t size_max)
{
        unsigned i = 0;
        int r;

        while (i < spool->n_segments && spool->batch.blocks == 0) {
                const struct segment *segment = spool->segments[i];

                if (segment->acked == segment->end) {
                        i++;
                        continue;
                }
                spool->batch = (struct batch){0};
                r = read_segment(spool, segment, size_max);
                if (r < 0)
                        return r;
                if (spool->batch.blocks == 0) {
                        acknowledge_to(spool, spool->batch.end);
                        i = 0;
                }
        }
        return 0;
}

int spool_read(struct spool *spool, size_t size_max, struct spool_batch *ret)
{
        int r;

        spool->batch = (struct batch){0};
        r = read_disk(spool, size_max);
        if (r < 0)
                return r;
        if (spool->batch.blocks == 0) {
                spool->batch = (struct batch){0};
                if (!spool->memory.first)
                        gaps_to_memory(spool);
                r = read_memory(spool, size_max);
                if (r < 0)
                        return r;
        }
        spool->batch.valid = spool->batch.blocks > 0;
        *ret = (struct spool_batch){
                .bytes = spool->buffer,
                .size = spool->batch.size,
                .blocks = spool->batch.blocks,
        };
        return spool->batch.valid;
}

void spool_acknowledge(struct spool *spool)
{
        assert(spool->batch.valid);
        acknowledge_to(spool, spool->batch.end);
}

int spool_refuse(struct spool *spool, uint32_t index, bool gap, struct block_header *ret)
{
        struct batch *batch = &spool->batch;
        char *path = NULL;

        assert(batch->valid);
        if (index >= batch->blocks)
                return -EINVAL;
        if (index > 0) {
                spool->batch_limit = index;
                batch->valid = false;
                return 0;
        }
        *ret = batch->first;
        spool->counters->rejected_blocks++;
        /* What cannot be kept aside is still named in the gap and in the log. */
        if (spool->folder && asprintf(&path, "%s/rejected", spool->folder) >= 0) {
                (void)rejected_store(path, ret, spool->buffer, batch->first_size);
                free(path);
        }
        acknowledge_to(spool, batch->first_end);
        if (gap && !(ret->flags & BLOCK_FLAG_GAP))
                gaps_add(&spool->gaps, ret);
        return 1;
}
