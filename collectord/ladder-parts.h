#pragma once
/* What each rung of a ladder is made of; part of ladder.c. */

#include "collectord/ladder.h"

#define LADDER_PARTS_MAX 12u /* of the fixed ones: a rung's own kinds of bytes */

/* @rung->parts has room for LADDER_PARTS_MAX and all members. */
void ladder_fill_rung(struct ladder_rung *rung, const struct ladder_input *input);
/* BlueStore keeps something compressed: what it was given is more than what it wrote. */
bool ladder_is_compressing(const struct ladder_input *input);
/* What compactions of the BlueFS journal wrote; 0 when they are not counted. */
double ladder_compaction_bytes(const struct ladder_input *input);
/* 16.2 counts what primaries sent, and not what backfill pushed: of a cluster the larger. */
double ladder_recovery_bytes(const struct ladder_input *input);
/* Their shards are no sub-operations: the OSD rung misses them. */
bool ladder_erasure_took_writes(const struct ladder_input *input);
