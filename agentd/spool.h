#pragma once
/*
 * Sealed blocks between the sampler and the collector: segment files in one folder, bounded in
 * bytes and in age. What was sealed last is read first, so that after an outage the dashboard is
 * live at once; what is acknowledged is cut off. When it is full, or its oldest blocks are too old,
 * the oldest segment is dropped, and a gap block takes its place, so that the collector learns what
 * is missing.
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
#include "lib/clock.h"

#define SPOOL_BYTES_MIN (1ull << 20)
#define SPOOL_BYTES_MAX (1ull << 40)
#define SPOOL_SEGMENTS 64u             /* both bounds are kept in steps of a 64th */
#define SPOOL_MEMORY_MAX (16ull << 20) /* while the disk does not take writes */

struct spool_options {
        const char *folder;  /* NULL: memory only */
        uint64_t bytes_max;  /* taken on the disk, what is allocated before included */
        uint64_t age_max_us; /* 0: no bound */
        struct id boot;      /* of this machine now */
        struct moment (*clock)(void *userdata);
        void *userdata;
        struct agent_counters *counters; /* spool_*, dropped_rows, rejected_blocks; outlives it */
};

struct spool;

/* Blocks one after the other, oldest first, as they go on the wire; valid until the next
 * spool_read, spool_acknowledge or spool_refuse. */
struct spool_batch {
        const uint8_t *bytes;
        size_t size;
        uint32_t blocks;
};

enum spool_next {
        SPOOL_EMPTY,
        SPOOL_LIVE,    /* sealed since spool_go_live */
        SPOOL_BACKLOG, /* older: there is no hurry */
};

/*
 * -errno: the folder cannot be used; open it again without. *ret_damaged: files and torn tails that
 * had to be given up.
 */
int spool_open(const struct spool_options *options, struct spool **ret, uint64_t *ret_damaged);
struct spool *spool_close(struct spool *spool);
DEFINE_CLEANUP(spool, struct spool *, spool_close)

/* Takes a copy of one block. -EBADMSG: it is none. -ENOMEM: dropped (and counted). */
int spool_append(struct spool *spool, const uint8_t *bytes, size_t size);
/* False while blocks are held in memory; *ret_error is the disk's. */
bool spool_is_durable(const struct spool *spool, int *ret_error);

/* The collector answers, after it did not: what is here now is the backlog. */
void spool_go_live(struct spool *spool);
/* It answers no more: what is here and what comes is backlog. */
void spool_go_away(struct spool *spool);
/* What spool_read would give; also drops what is too old. */
enum spool_next spool_look(struct spool *spool);
/*
 * The newest blocks, at least one, otherwise at most @size_max bytes. 1, or 0 when there is none.
 * -errno: the disk does not give them now. Blocks may be appended before the answer.
 */
int spool_read(struct spool *spool, size_t size_max, struct spool_batch *ret);
/* The blocks of the batch read last are stored. */
void spool_acknowledge(struct spool *spool);
/*
 * Block @index of the batch read last is refused for good; nothing of the batch is stored. It is
 * moved to FOLDER/rejected and leaves a gap if @gap; *ret is its header. The others are read again.
 * -EINVAL: no such block.
 */
int spool_refuse(struct spool *spool, uint32_t index, bool gap, struct block_header *ret);
/* Blocks that turned out damaged when read, so far; they were skipped. */
uint64_t spool_get_damaged(const struct spool *spool);
