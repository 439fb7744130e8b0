#pragma once
/*
 * Small blocks of one stream become larger ones of the same format. Only what follows each other
 * without a hole is joined: a block that comes late, and fills the hole, then stands between two
 * blocks and never inside one. Pure: no clock, no file.
 */

#include <stdint.h>

#include "lib/block.h"
#include "lib/cleanup.h"

#define MERGE_ROWS_MAX 512u /* density gains end here */

struct merge_piece {
        int64_t first_us, last_us;
        uint32_t rows, blocks;
        const uint8_t *bytes; /* valid during the call */
        size_t size;
};
typedef int (*merge_function)(void *userdata, const struct merge_piece *piece);

struct merge;
int merge_new(merge_function function, void *userdata, struct merge **ret);
struct merge *merge_free(struct merge *merge);
DEFINE_CLEANUP(merge, struct merge *, merge_free)

/*
 * The next block, ascending by first_us; @piece says what the store knows of it. Calls the function
 * for what is complete. A block that cannot be decoded is passed on as it is. Errors of the
 * function, -ENOMEM.
 */
int merge_add(struct merge *merge, const struct merge_piece *piece);
/* Passes on the rest; the next block begins anew. */
int merge_finish(struct merge *merge);
/* Forgets what was gathered. */
void merge_reset(struct merge *merge);
