#pragma once
/* The inside of the spool, shared by spool.c (writes) and spool-read.c (reads, acknowledges). */

#include "agentd/gap.h"
#include "agentd/spool-memory.h"
#include "agentd/spool-segment.h"
#include "agentd/spool.h"

/* Half-filled ones counted, twice SPOOL_SEGMENTS; and those that another bound left. */
#define SEGMENTS_MAX 256u

/* What was read last: up to where, so that it can be acknowledged. */
struct batch {
        bool valid;
        bool from_memory;
        uint64_t segment;   /* number */
        uint64_t end;       /* offset, or serial in memory */
        uint64_t first_end; /* the same of the first block alone */
        struct block_header first;
        size_t first_size;
        uint32_t blocks;
        size_t size;
};

struct spool {
        char *folder; /* NULL: memory only */
        int folder_fd;
        uint64_t bytes_max, segment_bytes;
        struct agent_counters *counters;
        struct segment *segments[SEGMENTS_MAX]; /* oldest first; the last one is appended to */
        unsigned n_segments;
        uint64_t next_number;
        struct memory_queue memory;
        struct gaps gaps; /* not written yet */
        struct block_encoder *encoder;
        int error; /* why blocks are in memory */
        uint8_t *buffer;
        size_t buffer_size;
        struct batch batch;
        uint32_t batch_limit; /* blocks; 0: no limit */
        uint64_t damaged;
};

void spool_update_counters(struct spool *spool);
void spool_remove_first_segment(struct spool *spool);
