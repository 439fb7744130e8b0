#pragma once
/* Why a ladder's amplification exceeds what redundancy explains; part of ladder.c. */

#include "collectord/ladder.h"

/*
 * Fills the reasons of @ladder, largest first. The excess over the expected amplification is made
 * of disjoint parts (object data beyond the copies, deferred copies, metadata, padding, what no
 * counter explains), so that they and the expected value add up to the measured amplification.
 */
void ladder_explain(struct ladder *ladder, const struct ladder_input *input);
