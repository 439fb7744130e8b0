#pragma once
/*
 * How fast the backlog of an outage goes to the collector, so that it takes neither the link nor
 * the collector from the samples of now. Pure arithmetic; the monotonic clock is an argument.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct backfill {
        uint64_t rate;    /* bytes per second; 0: no limit */
        uint64_t next_us; /* when the next batch may go; 0: at once */
};

/* Whether a batch may go now. */
bool backfill_is_due(const struct backfill *backfill, uint64_t now_us);
/* At most so many bytes at once: what a second allows, so that live samples need not wait for
 * longer behind it. */
size_t backfill_limit(const struct backfill *backfill, size_t size_max);
/* A batch of @size bytes goes. */
void backfill_charge(struct backfill *backfill, size_t size, uint64_t now_us);
