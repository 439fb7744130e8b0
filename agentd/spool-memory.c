#include "agentd/spool-memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rows_of(const struct memory_block *block)
{
        return block->header.flags & BLOCK_FLAG_GAP ? 0 : block->header.rows;
}

int memory_queue_add(struct memory_queue *queue, const struct segment_stamp *stamp,
        const struct block_header *header, const uint8_t *bytes, size_t size)
{
        struct memory_block *block = malloc(sizeof(*block) + size);

        if (!block)
                return -ENOMEM;
        block->next = NULL;
        block->previous = queue->last;
        block->serial = ++queue->serial;
        block->stamp = *stamp;
        block->header = *header;
        block->size = size;
        memcpy(block->bytes, bytes, size);
        if (queue->last)
                queue->last->next = block;
        else
                queue->first = block;
        queue->last = block;
        queue->bytes += size;
        queue->blocks++;
        queue->rows += rows_of(block);
        return 0;
}

void memory_queue_remove(struct memory_queue *queue, struct memory_block *block)
{
        if (block->previous)
                block->previous->next = block->next;
        else
                queue->first = block->next;
        if (block->next)
                block->next->previous = block->previous;
        else
                queue->last = block->previous;
        queue->bytes -= block->size;
        queue->blocks--;
        queue->rows -= rows_of(block);
        free(block);
}

void memory_queue_done(struct memory_queue *queue)
{
        while (queue->first)
                memory_queue_remove(queue, queue->first);
}
