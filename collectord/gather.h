#pragma once
/*
 * Rows of several blocks of one schema, gathered to be encoded as one block: what merging and the
 * coarser tiers have in common. Pure: no clock, no file.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/block.h"
#include "lib/cleanup.h"

struct gather {
        struct block_encoder *encoder;
        struct block_header header; /* of the first block */
        struct block_entity *entities;
        char *texts; /* their names and identities */
        struct block_column *columns;
        uint32_t n_entities, n_columns, rows;
        bool absent; /* some entity in some row */
        int64_t times_us[BLOCK_ROWS_MAX];
        uint64_t *values; /* [rows][columns] */
        uint8_t *present; /* [rows][entities] */
        size_t values_allocated, present_allocated;
};

int gather_init(struct gather *gather);
void gather_done(struct gather *gather);

/* Begins anew, without rows, with the entities of @block and @columns. -ENOMEM. */
int gather_begin(struct gather *gather, const struct block *block,
        const struct block_column *columns, uint32_t n_columns);
/* Whether rows of @header's block may stand beside those that are there. */
bool gather_fits(const struct gather *gather, const struct block_header *header);
/* Room for @rows more. -ENOMEM. The caller fills times_us, values, present and counts them. */
int gather_reserve(struct gather *gather, uint32_t rows);
/* As many as a block of @n_columns may have, at most @rows. */
uint32_t gather_rows_max(uint32_t n_columns, uint32_t rows);
/* As block_encode. */
int gather_encode(struct gather *gather, const uint8_t **ret_bytes, size_t *ret_size);
