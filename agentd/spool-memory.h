#pragma once
/* The part of the spool that is in memory while the disk takes no writes. */

#include <stdint.h>

#include "agentd/spool-segment.h"

struct memory_block {
        struct memory_block *next, *previous;
        uint64_t serial;
        struct segment_stamp stamp;
        struct block_header header;
        size_t size;
        uint8_t bytes[];
};

struct memory_queue {
        struct memory_block *first, *last;
        uint64_t serial; /* of the last one ever added */
        uint64_t bytes, blocks, rows;
};

/* Copies. -ENOMEM. */
int memory_queue_add(struct memory_queue *queue, const struct segment_stamp *stamp,
        const struct block_header *header, const uint8_t *bytes, size_t size);
void memory_queue_remove(struct memory_queue *queue, struct memory_block *block);
void memory_queue_done(struct memory_queue *queue);
