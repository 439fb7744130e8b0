#pragma once
/*
 * Whether a block is among the sealed ones: names are not kept, the rows themselves tell. Two rows
 * of one boot that were read in the same microsecond and hold the same are one. Only
 * collectord/store*.c include this.
 */

#include "collectord/store-sealed.h"

struct late;
int late_new(struct late **ret);
struct late *late_free(struct late *late);
DEFINE_CLEANUP(late, struct late *, late_free)

/* @span_us: the stream's. STORE_DUPLICATE: all rows are there; -EEXIST: some, or with other values;
 * 0: none. */
int late_find(struct late *late, struct sealed *sealed, int64_t stream, int64_t span_us,
        const struct block_header *header, const uint8_t *bytes, size_t size);
