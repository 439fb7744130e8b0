#pragma once
/*
 * The open block: the rows of one source that are not sealed yet. They live in a file mapped in
 * memory (FOLDER/rows-SOURCE), so every row appended survives SIGKILL at once and at no cost: the
 * page cache has it. The number of rows is stored last. Blocks of the file are allocated before,
 * so a full disk is an error here and never a SIGBUS; then the rows live in plain memory.
 *
 * A kill between sealing and rows_begin leaves the rows here and in the spool, under the same
 * sequence: the collector accepts and ignores the repeat. After a power loss pages may be missing:
 * each row carries a check, and rows from the first broken one on are dropped.
 */

#include <stdbool.h>
#include <stdint.h>

#include "agentd/source.h"
#include "lib/block.h"
#include "lib/cleanup.h"
#include "lib/plan.h"

struct rows;

/* @folder may be NULL: memory only. */
int rows_new(const char *folder, enum source_id source, struct rows **ret);
/* The file stays. */
struct rows *rows_free(struct rows *rows);
DEFINE_CLEANUP(rows, struct rows *, rows_free)

/*
 * Begins an empty block for rows shaped as @sample, of the metrics that @plan wants, with room for
 * @capacity rows (fewer when they are very wide). @header gives cluster (ignored), host, boot,
 * sequence and interval. -ENODATA: the plan wants none of the columns. -EINVAL: @sample exceeds
 * lib/block.h's limits. -ENOMEM.
 */
int rows_begin(struct rows *rows, const struct block_header *header, const struct sample *sample,
        const struct plan_source *plan, uint32_t capacity);
/* As rows_begin, keeping the shape of the block before. Never allocates. */
void rows_begin_again(struct rows *rows, uint64_t sequence);

/* Whether another row of that shape fits: there is room, and time has not gone back. */
bool rows_can_append(const struct rows *rows, int64_t time_us);
void rows_append(struct rows *rows, const struct sample *sample);

uint32_t rows_get_count(const struct rows *rows);
/* False when the file could not be made: rows do not outlive the process. errno-style reason in
 * *ret_error. */
bool rows_is_durable(const struct rows *rows, int *ret_error);

/* What block_encode wants; pointers belong to @rows until its next use. */
void rows_get_block(const struct rows *rows, struct block_rows *ret);

/*
 * Reads what a killed agent left in the file. 1: there are rows, rows_get_block gives them, and the
 * caller must bring them to the spool before the next rows_begin. 0: none, or nothing usable.
 */
int rows_recover(struct rows *rows);
