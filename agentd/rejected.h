#pragma once
/*
 * Blocks that the collector refused for good, kept for a look at them: files SOURCE-SEQUENCE.block
 * in one folder, bounded in number and bytes; the oldest make room.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/block.h"

#define REJECTED_FILES_MAX 64u
#define REJECTED_BYTES_MAX (32u << 20) /* two blocks of the largest size */

/* Makes the folder when it is missing. -errno: the block is not kept. */
int rejected_store(
        const char *folder, const struct block_header *header, const uint8_t *bytes, size_t size);
