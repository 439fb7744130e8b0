/*
 * The control beside the agent's ticks: a loop of one timerfd that at whole multiples of an
 * interval looks at the clock. So a test can tell the agent's lateness from the machine's.
 *
 *     tick-control INTERVAL_US SECONDS        prints a line a tick: LATE_US
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/clock.h"

#define TICKS_MAX 100000

static struct control {
        int64_t n;
        int64_t late_us[TICKS_MAX];
} control;

static int loop(int fd, int64_t due_us, int64_t interval_us)
{
        for (int64_t i = 0; i < control.n; i++, due_us += interval_us) {
                struct itimerspec timer = {0};
                uint64_t ignored;

                timer.it_value.tv_sec = due_us / 1000000;
                timer.it_value.tv_nsec = due_us % 1000000 * 1000;
                if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &timer, NULL) < 0 ||
                        read(fd, &ignored, sizeof(ignored)) != sizeof(ignored))
                        return -errno;
                control.late_us[i] = clock_realtime_us();
        }
        return 0;
}

int main(int argc, char **argv)
{
        int64_t interval_us = argc == 3 ? atoll(argv[1]) : 0, first_us;
        int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC);

        control.n = interval_us > 0 ? atoll(argv[2]) * 1000000 / interval_us : 0;
        if (control.n <= 0 || control.n > TICKS_MAX || fd < 0)
                return 2;
        first_us = clock_realtime_us() / interval_us * interval_us + interval_us;
        if (loop(fd, first_us, interval_us) < 0)
                return 1;
        for (int64_t i = 0; i < control.n; i++)
                printf("%" PRId64 "\n", control.late_us[i] - first_us - i * interval_us);
        return 0;
}
