#include "agentd/source.h"

#include <time.h>

int source_wait(const struct source_class *class, struct source *source, int r, struct sample *ret)
{
        while (r == SOURCE_PENDING) {
                struct timespec until = {
                        .tv_sec = (time_t)(ret->again_us / 1000000),
                        .tv_nsec = (long)(ret->again_us % 1000000 * 1000),
                };

                /* A signal only makes the look earlier. */
                (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
                r = class->proceed(source, ret);
        }
        return r;
}
