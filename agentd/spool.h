#pragma once
/*
 * Sealed blocks between the sampler and the collector, oldest first: segment files in one folder,
 * bounded in bytes. When it is full the oldest segment is dropped, and a gap block takes its place,
 * so that the collector learns what is missing. What is acknowledged is forgotten; once all is, the
 * file is cut to nothing, so that in good times the blocks hardly ever reach the disk.
 *
 * Appending is a small write into the page cache, inline on the loop. Nothing is ever fsynced: a
 * block survives the death of the process at once, and a power loss after the kernel's own
 * write-back (30 s by default). What a power loss tears is found by the checksums, never sent.
 *
 * When the disk fails or is full, blocks are kept in memory, bounded, and moved to the disk as soon
 * as it takes writes again.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agentd/counters.h"
#include "lib/block.h"
#include "lib/cleanup.h"

#define SPOOL_BYTES_MIN (1ull << 20)
#define SPOOL_BYTES_MAX (1ull << 40)
#define SPOOL_SEGMENTS 64u             /* the bound is kept in steps of a 64th */
#define SPOOL_MEMORY_MAX (16ull << 20) /* while the disk does not take writes */

struct spool;

/* Blocks one after the other, as they go on the wire; valid until the next spool_read,
 * spool_acknowledge or spool_refuse. */
struct spool_batch {
        const uint8_t *bytes;
        size_t size;
        uint32_t blocks;
};

/*
 * @folder may be NULL: memory only. @counters (spool_*, dropped_rows, rejected_blocks) outlive the
 * spool. -errno: the folder cannot be used; open it again with NULL. *ret_damaged: files and torn
 * tails that had to be given up.
 */
int spool_open(const char *folder, uint64_t bytes_max, struct agent_counters *counters,
        struct spool **ret, uint64_t *ret_damaged);
struct spool *spool_close(struct spool *spool);
DEFINE_CLEANUP(spool, struct spool *, spool_close)

/* Takes a copy of one block. -EBADMSG: it is none. -ENOMEM: dropped (and counted). */
int spool_append(struct spool *spool, const uint8_t *bytes, size_t size);
/* False while blocks are held in memory; *ret_error is the disk's. */
bool spool_is_durable(const struct spool *spool, int *ret_error);

/*
 * The oldest blocks, at least one, otherwise at most @size_max bytes. 1, or 0 when there is none.
 * -errno: the disk does not give them now.
 */
int spool_read(struct spool *spool, size_t size_max, struct spool_batch *ret);
/* The blocks of the batch read last are stored. */
void spool_acknowledge(struct spool *spool);
/*
 * Block @index of the batch read last is refused for good; nothing of the batch is stored. The
 * blocks before it come alone in the next batch; when @index is 0 it is moved to FOLDER/rejected
 * and leaves a gap if @gap. 1: moved, *ret is its header. 0: the next batch is shorter.
 * -EINVAL: no such block.
 */
int spool_refuse(struct spool *spool, uint32_t index, bool gap, struct block_header *ret);
/* Blocks that turned out damaged when read, so far; they were skipped. */
uint64_t spool_get_damaged(const struct spool *spool);
