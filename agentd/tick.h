#pragma once
/*
 * When to sample: at whole multiples of the interval since the epoch, so that the rows of all hosts
 * line up, but waited for on the monotonic clock. Pure arithmetic; both clocks are arguments.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/clock.h"

struct tick {
        uint64_t interval_us;
        int64_t start_us;  /* no tick before; 0: no matter */
        int64_t due_us;    /* Unix time, a multiple of the interval */
        int64_t offset_us; /* Unix time minus monotonic time when due_us was last looked at */
};

enum tick_outcome {
        TICK_WAIT,   /* not due yet */
        TICK_SAMPLE, /* due: sample now; the tick stands at the one after */
        TICK_JUMP,   /* the wall clock was set: aligned anew, nothing to sample */
};

/* The first multiple of @interval_us after @now that is not before @start_us (0: no matter). */
void tick_start(struct tick *tick, uint64_t interval_us, int64_t start_us, struct moment now);

/* The monotonic time at which to look again. */
uint64_t tick_due_monotonic(const struct tick *tick);

/*
 * Looks at the clocks. On TICK_SAMPLE *ret_late_us is how late this sample is (below one interval)
 * and *ret_missed how many whole ticks were slept over; both are 0 otherwise.
 */
enum tick_outcome tick_look(
        struct tick *tick, struct moment now, uint64_t *ret_missed, uint64_t *ret_late_us);
