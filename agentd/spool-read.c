/* Reading the spool from its newest end, and what the collector's answers mean for it. */
#include "agentd/spool-private.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "agentd/rejected.h"

/* Enough for good times; what a backlog needs is given back. */
#define BUFFER_KEEP_BYTES (64u << 10)
#define BUFFER_STEP_BYTES (16u << 10)

static int reserve(struct spool *spool, size_t size)
{
        uint8_t *buffer;

        if (size <= spool->buffer_size)
                return 0;
        size = (size + BUFFER_STEP_BYTES - 1) / BUFFER_STEP_BYTES * BUFFER_STEP_BYTES;
        buffer = realloc(spool->buffer, size);
        if (!buffer)
                return -ENOMEM;
        spool->buffer = buffer;
        spool->buffer_size = size;
        return 0;
}

static void give_back_buffer(struct spool *spool)
{
        if (spool->buffer_size <= BUFFER_KEEP_BYTES)
                return;
        free(spool->buffer);
        spool->buffer = NULL;
        spool->buffer_size = 0;
}

static uint64_t rows_of(const struct block_header *header)
{
        return header->flags & BLOCK_FLAG_GAP ? 0 : header->rows;
}

static bool block_is_whole(const uint8_t *bytes, size_t size)
{
        struct block_header header;
        size_t own_size;

        return block_peek(bytes, size, &header, &own_size) == 0 && own_size == size;
}

/* Steps back over as many records as fit. -EBADMSG: the chain is broken. */
static int find_begin(const struct segment *segment, size_t size_max, uint64_t *ret)
{
        uint64_t begin = segment->end, offset, size = 0;
        struct segment_record record;
        int r;

        while ((r = segment_step_back(segment, begin, &record, &offset)) > 0) {
                if (!segment_is_done(&record)) {
                        if (size > 0 && size + record.size > size_max)
                                break;
                        size += record.size;
                }
                begin = offset;
        }
        /* What is behind the break is whole. */
        if (r < 0 && begin == segment->end)
                return r;
        *ret = begin;
        return 0;
}

/* The record's block joins the batch, unless it is damaged: then it is done with. */
static int take_record(struct spool *spool, struct segment *segment, uint64_t offset,
        const struct segment_record *record)
{
        struct batch *batch = &spool->batch;
        int r;

        r = reserve(spool, batch->size + record->size);
        if (r < 0)
                return r;
        r = segment_read_block(segment, offset, record, spool->buffer + batch->size);
        if (r < 0 && r != -EBADMSG)
                return r;
        if (r < 0 || !block_is_whole(spool->buffer + batch->size, record->size)) {
                spool->damaged++;
                segment_mark_done(segment, offset, record);
                return 0;
        }
        batch->blocks++;
        batch->rows += rows_of(&record->header);
        batch->size += record->size;
        return 0;
}

static int read_segment(struct spool *spool, struct segment *segment, size_t size_max)
{
        struct batch *batch = &spool->batch;
        struct segment_record record;
        uint64_t offset, next;
        int r;

        *batch = (struct batch){.segment = segment->number, .end = segment->end};
        r = find_begin(segment, size_max, &batch->begin);
        for (offset = batch->begin; r == 0 && offset < batch->end; offset = next) {
                r = segment_read_record(segment, offset, batch->end, &record, &next);
                if (r <= 0)
                        break;
                r = segment_is_done(&record) ? 0 : take_record(spool, segment, offset, &record);
        }
        if (r == -EBADMSG) {
                /* The file changed under us: what stands before the damage can still be had. */
                spool->damaged++;
                batch->blocks = 0;
                segment_rescan(segment);
                return 0;
        }
        if (r == 0 && batch->blocks == 0 && batch->begin < batch->end)
                segment_cut(segment, batch->begin, 0, 0);
        else if (r == 0 && batch->blocks == 0)
                segment_rescan(segment);
        return r;
}

/* The newest segment that has something, past what is damaged. Each round gets on. */
static int read_disk(struct spool *spool, size_t size_max)
{
        int r;

        for (unsigned i = spool->n_segments; i-- > 0;)
                while (spool->segments[i]->blocks > 0) {
                        r = read_segment(spool, spool->segments[i], size_max);
                        if (r < 0 || spool->batch.blocks > 0)
                                return r;
                }
        return 0;
}

static int read_memory(struct spool *spool, size_t size_max)
{
        const struct memory_block *first = spool->memory.last, *block;
        struct batch *batch = &spool->batch;
        uint64_t size;
        int r;

        if (!first)
                return 0;
        for (size = first->size; first->previous && size + first->previous->size <= size_max;
                first = first->previous)
                size += first->previous->size;
        r = reserve(spool, size);
        if (r < 0)
                return r;
        batch->from_memory = true;
        batch->begin = first->serial;
        batch->end = spool->memory.last->serial;
        for (block = first; block; block = block->next) {
                memcpy(spool->buffer + batch->size, block->bytes, block->size);
                batch->size += block->size;
                batch->blocks++;
        }
        return 0;
}

/* Gaps of blocks dropped from memory, once everything else is gone. */
static void gaps_to_memory(struct spool *spool)
{
        struct moment now = spool->options.clock(spool->options.userdata);
        struct segment_stamp stamp = spool_age_stamp(&spool->epoch, &now);
        const uint8_t *bytes;
        size_t size;

        while (spool->gaps.count > 0) {
                struct block_header header = spool->gaps.headers[spool->gaps.count - 1];

                if (gaps_take(&spool->gaps, spool->encoder, &bytes, &size) < 0)
                        return;
                header.flags |= BLOCK_FLAG_GAP;
                if (memory_queue_add(&spool->memory, &stamp, &header, bytes, size) < 0)
                        return;
        }
}

void spool_go_live(struct spool *spool)
{
        const struct segment *last =
                spool->n_segments > 0 ? spool->segments[spool->n_segments - 1] : NULL;

        spool->live_serial = spool->memory.serial + 1;
        spool->live_from =
                last && last->blocks == 0 && !last->closed ? last->number : spool->next_number;
        spool->append_from = spool->live_from;
}

void spool_go_away(struct spool *spool)
{
        spool->live_from = spool->live_serial = UINT64_MAX;
}

static enum spool_next class_of(bool live)
{
        return live ? SPOOL_LIVE : SPOOL_BACKLOG;
}

enum spool_next spool_look(struct spool *spool)
{
        spool_drop_old(spool);
        if (spool->options.counters->spool_blocks == 0 && !spool->memory.first)
                gaps_to_memory(spool);
        spool_update_counters(spool);
        if (spool->memory.last)
                return class_of(spool->memory.last->serial >= spool->live_serial);
        for (unsigned i = spool->n_segments; i-- > 0;)
                if (spool->segments[i]->blocks > 0)
                        return class_of(spool->segments[i]->number >= spool->live_from);
        return SPOOL_EMPTY;
}

int spool_read(struct spool *spool, size_t size_max, struct spool_batch *ret)
{
        int r;

        spool->batch = (struct batch){0};
        if (spool_look(spool) == SPOOL_EMPTY)
                return 0;
        r = read_memory(spool, size_max);
        if (r == 0 && spool->batch.blocks == 0)
                r = read_disk(spool, size_max);
        spool_update_counters(spool);
        if (r < 0)
                return r;
        spool->batch.valid = spool->batch.blocks > 0;
        *ret = (struct spool_batch){
                .bytes = spool->buffer,
                .size = spool->batch.size,
                .blocks = spool->batch.blocks,
        };
        return spool->batch.valid;
}

static struct segment *find_segment(const struct spool *spool, uint64_t number)
{
        for (unsigned i = 0; i < spool->n_segments; i++)
                if (spool->segments[i]->number == number)
                        return spool->segments[i];
        return NULL;
}

/* Blocks were appended meanwhile: they stay where they are, behind the others. */
static void mark_batch(const struct spool *spool, struct segment *segment)
{
        uint64_t offset = spool->batch.begin, next;
        struct segment_record record;

        while (segment_read_record(segment, offset, spool->batch.end, &record, &next) > 0) {
                if (!segment_is_done(&record))
                        segment_mark_done(segment, offset, &record);
                offset = next;
        }
}

static void acknowledge_disk(struct spool *spool)
{
        const struct batch *batch = &spool->batch;
        struct segment *segment = find_segment(spool, batch->segment);

        /* Dropped meanwhile. */
        if (!segment)
                return;
        if (segment->end == batch->end)
                segment_cut(segment, batch->begin, batch->blocks, batch->rows);
        else
                mark_batch(spool, segment);
}

static void acknowledge_memory(struct spool *spool)
{
        struct memory_block *block, *next;

        for (block = spool->memory.first; block; block = next) {
                next = block->next;
                if (block->serial >= spool->batch.begin && block->serial <= spool->batch.end)
                        memory_queue_remove(&spool->memory, block);
        }
}

void spool_acknowledge(struct spool *spool)
{
        assert(spool->batch.valid);
        if (spool->batch.from_memory)
                acknowledge_memory(spool);
        else
                acknowledge_disk(spool);
        spool->batch = (struct batch){0};
        give_back_buffer(spool);
        spool_update_counters(spool);
}

static void forget_on_disk(const struct spool *spool, uint32_t index)
{
        struct segment *segment = find_segment(spool, spool->batch.segment);
        uint64_t offset = spool->batch.begin, next;
        struct segment_record record;

        while (segment &&
                segment_read_record(segment, offset, spool->batch.end, &record, &next) > 0) {
                if (!segment_is_done(&record) && index-- == 0) {
                        segment_mark_done(segment, offset, &record);
                        /* It may be the last one. */
                        segment_cut(segment, segment->end, 0, 0);
                        return;
                }
                offset = next;
        }
}

static void forget_in_memory(struct spool *spool, uint32_t index)
{
        struct memory_block *block = spool->memory.first;

        while (block && block->serial < spool->batch.begin)
                block = block->next;
        while (block && index-- > 0)
                block = block->next;
        if (block)
                memory_queue_remove(&spool->memory, block);
}

/* Keeps a copy of the batch's block @index aside. */
static int put_aside(struct spool *spool, uint32_t index, struct block_header *ret)
{
        const uint8_t *bytes = spool->buffer;
        const uint8_t *end = bytes + spool->batch.size;
        char *path = NULL;
        size_t size;
        int r;

        while ((r = block_peek(bytes, (size_t)(end - bytes), ret, &size)) == 0 && index-- > 0)
                bytes += size;
        if (r < 0)
                return -EINVAL;
        /* What cannot be kept aside is still named in the gap and in the log. */
        if (spool->folder && asprintf(&path, "%s/rejected", spool->folder) >= 0) {
                (void)rejected_store(path, ret, bytes, size);
                free(path);
        }
        return 0;
}

int spool_refuse(struct spool *spool, uint32_t index, bool gap, struct block_header *ret)
{
        int r;

        assert(spool->batch.valid);
        if (index >= spool->batch.blocks)
                return -EINVAL;
        r = put_aside(spool, index, ret);
        if (r < 0)
                return r;
        spool->options.counters->rejected_blocks++;
        if (gap && !(ret->flags & BLOCK_FLAG_GAP)) {
                gaps_add(&spool->gaps, ret);
                /* Before the block is gone, so that a kill does not lose both. */
                if (spool->error == 0)
                        (void)spool_write_gaps(spool);
        }
        if (spool->batch.from_memory)
                forget_in_memory(spool, index);
        else
                forget_on_disk(spool, index);
        spool->batch = (struct batch){0};
        spool_update_counters(spool);
        return 0;
}
