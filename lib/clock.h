#pragma once
/*
 * The clocks of this machine, in microseconds. Only programs, their event loops and sources look at
 * them; code that decides by the time takes it as an argument, so that a test can choose it.
 */

#include <stdint.h>
#include <time.h>

static inline int64_t clock_read_us(clockid_t clock)
{
        struct timespec now;

        clock_gettime(clock, &now);
        return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Unix time. */
static inline int64_t clock_realtime_us(void)
{
        return clock_read_us(CLOCK_REALTIME);
}

/* Stands still while the machine sleeps; for deadlines and pauses. */
static inline uint64_t clock_monotonic_us(void)
{
        return (uint64_t)clock_read_us(CLOCK_MONOTONIC);
}

/* Since the machine started. */
static inline uint64_t clock_boot_us(void)
{
        return (uint64_t)clock_read_us(CLOCK_BOOTTIME);
}

/* One look at all clocks. */
struct moment {
        int64_t realtime_us;
        uint64_t monotonic_us;
        uint64_t boot_us;
};

static inline struct moment clock_look(void)
{
        return (struct moment){
                .realtime_us = clock_realtime_us(),
                .monotonic_us = clock_monotonic_us(),
                .boot_us = clock_boot_us(),
        };
}
