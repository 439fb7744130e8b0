#pragma once
/* The inside of the spool, shared by spool.c (opens), spool-write.c (appends, drops) and
 * spool-read.c (reads, acknowledges). */

#include "agentd/gap.h"
#include "agentd/spool-age.h"
#include "agentd/spool-memory.h"
#include "agentd/spool-segment.h"
#include "agentd/spool.h"

/* Half-filled ones counted, twice SPOOL_SEGMENTS; and those that another bound left. Past it the
 * last one grows. */
#define SEGMENTS_MAX 256u

/* What was read last, so that it can be acknowledged. */
struct batch {
        bool valid;
        bool from_memory;
        uint64_t segment;    /* number */
        uint64_t begin, end; /* offsets, or the first serial in memory and the last */
        uint32_t blocks;
        uint64_t rows;
        size_t size;
};

struct spool {
        struct spool_options options;
        char *folder; /* NULL: memory only */
        int folder_fd;
        uint64_t segment_bytes;
        struct segment_epoch epoch;
        struct segment *segments[SEGMENTS_MAX]; /* oldest first; the last one is appended to */
        unsigned n_segments;
        uint64_t next_number;
        /* Of segments and of blocks in memory: the first that is live; to the ones before
         * append_from nothing is appended. */
        uint64_t live_from, append_from, live_serial;
        struct memory_queue memory;
        struct gaps gaps; /* not written yet */
        struct block_encoder *encoder;
        int error; /* why blocks are in memory */
        uint8_t *buffer;
        size_t buffer_size;
        struct batch batch;
        uint64_t damaged;
};

/* Also moves segments that have nothing left out of the way. */
void spool_update_counters(struct spool *spool);
void spool_remove_segment(struct spool *spool, unsigned index);
void spool_drop_old(struct spool *spool);
/* Brings gaps that drops left to the disk; those that it does not take wait for another time. */
int spool_write_gaps(struct spool *spool);
