#pragma once
/*
 * Coarser rows made of finer ones. A tier keeps real rows, counters as they were read: of each
 * window the last, and the first and the last of each life, on both sides of a hole. So an increase
 * over any time is exact, whatever the tier, and rows of several tiers follow each other. Beside
 * each metric stand the lowest and the highest rate (of gauges: value) since the row before; both
 * compose over tiers. Pure: no clock, no file.
 */

#include <stdint.h>

#include "collectord/merge.h"

/* Of a metric's columns in a tier: thousandths of its unit a second, of gauges its unit. Lowest
 * above highest: nothing is known (the first row of a life). */
#define TIER_LOWEST 0x4000u
#define TIER_HIGHEST 0x8000u
#define TIER_FLAGS (TIER_LOWEST | TIER_HIGHEST)

struct tier;
/* Windows of @interval_us, whole multiples since the epoch. */
int tier_new(uint64_t interval_us, merge_function function, void *userdata, struct tier **ret);
struct tier *tier_free(struct tier *tier);
DEFINE_CLEANUP(tier, struct tier *, tier_free)

/* The next block of a stream, raw or of the tier below, ascending; what overlaps the rows before is
 * left out. -EBADMSG and the like: the block is damaged, and is left out. Errors of the function,
 * -ENOMEM. */
int tier_add(struct tier *tier, const uint8_t *bytes, size_t size);
int tier_finish(struct tier *tier);
