#include "agentd/tick.h"

#include <assert.h>

/* NTP slews by at most 500 ppm, and a look at two clocks is not one moment: more than this much
 * difference is a clock that was set. */
#define JUMP_MIN_US 20000

static int64_t next_multiple(int64_t time_us, uint64_t interval_us)
{
        return time_us - time_us % (int64_t)interval_us + (int64_t)interval_us;
}

void tick_start(struct tick *tick, uint64_t interval_us, int64_t start_us, struct moment now)
{
        assert(interval_us > 0);
        tick->interval_us = interval_us;
        tick->start_us = start_us;
        tick->offset_us = now.realtime_us - (int64_t)now.monotonic_us;
        /* A start that is a multiple itself is a tick: step back by one to find it. */
        if (start_us > now.realtime_us)
                tick->due_us = next_multiple(start_us - 1, interval_us);
        else
                tick->due_us = next_multiple(now.realtime_us, interval_us);
}

uint64_t tick_due_monotonic(const struct tick *tick)
{
        int64_t due = tick->due_us - tick->offset_us;

        return due > 0 ? (uint64_t)due : 0;
}

static bool jumped(const struct tick *tick, int64_t offset_us)
{
        int64_t change = offset_us - tick->offset_us;
        int64_t limit = (int64_t)(tick->interval_us / 1000);

        if (limit < JUMP_MIN_US)
                limit = JUMP_MIN_US;
        return change > limit || change < -limit;
}

enum tick_outcome tick_look(
        struct tick *tick, struct moment now, uint64_t *ret_missed, uint64_t *ret_late_us)
{
        int64_t offset = now.realtime_us - (int64_t)now.monotonic_us;
        int64_t late = now.realtime_us - tick->due_us;
        int64_t interval = (int64_t)tick->interval_us;
        bool jump = jumped(tick, offset);

        *ret_missed = 0;
        *ret_late_us = 0;
        tick->offset_us = offset;
        /* Set by so little that the tick ahead is still the next one or just due: go on with it. */
        if (jump && (late >= interval || late < -interval)) {
                tick_start(tick, tick->interval_us, tick->start_us, now);
                return TICK_JUMP;
        }
        if (late < 0)
                return TICK_WAIT;
        *ret_missed = (uint64_t)(late / interval);
        *ret_late_us = (uint64_t)(late % interval);
        tick->due_us = next_multiple(now.realtime_us, tick->interval_us);
        return TICK_SAMPLE;
}
