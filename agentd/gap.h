#pragma once
/* Dropped blocks, summed up so that the collector can be told: one gap per host, boot and source,
 * named by the first block dropped, whose name nobody else will use. */

#include <stdbool.h>

#include "lib/block.h"

#define GAPS_MAX 32u /* each source of six boots */

struct gaps {
        struct block_header headers[GAPS_MAX];
        unsigned count;
};

/* Adds a dropped block, or a dropped gap. False: no room, the drop will not be told. */
bool gaps_add(struct gaps *gaps, const struct block_header *header);
/* Takes the last one off and makes its block; bytes belong to @encoder. Errors as block_encode. */
int gaps_take(struct gaps *gaps, struct block_encoder *encoder, const uint8_t **ret_bytes,
        size_t *ret_size);
