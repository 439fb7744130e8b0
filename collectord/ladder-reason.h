#pragma once
/* Why a ladder's amplification exceeds what redundancy explains; part of ladder.c. */

#include "collectord/ladder.h"

/*
 * Fills @ladder's explained and reasons. The amplification is made of disjoint parts (redundancy,
 * object data beyond it, deferred copies, metadata, padding, what no counter explains); parts below
 * LADDER_ITEM_MIN are left out. Nothing where there is no amplification, or no OSD answered.
 */
void ladder_explain(struct ladder *ladder, const struct ladder_input *input);
