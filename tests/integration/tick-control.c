/*
 * The control beside the agent's ticks: a loop of one timerfd that at whole multiples of an
 * interval looks at the clock and wakes a thread, which looks at it too. So a test can tell the
 * agent's lateness from the machine's.
 *
 *     tick-control INTERVAL_US SECONDS        prints a line a tick: LOOP_LATE_US THREAD_LATE_US
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/clock.h"

#define TICKS_MAX 100000

static struct control {
        int64_t n;
        sem_t wake;
        int64_t loop_us[TICKS_MAX], thread_us[TICKS_MAX];
} control;

static void *thread_main(void *unused)
{
        (void)unused;
        for (int64_t i = 0; i < control.n; i++) {
                while (sem_wait(&control.wake) < 0 && errno == EINTR)
                        ;
                control.thread_us[i] = clock_realtime_us();
        }
        return NULL;
}

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
                control.loop_us[i] = clock_realtime_us();
                sem_post(&control.wake);
        }
        return 0;
}

int main(int argc, char **argv)
{
        int64_t interval_us = argc == 3 ? atoll(argv[1]) : 0, first_us;
        int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC);
        pthread_t thread;

        control.n = interval_us > 0 ? atoll(argv[2]) * 1000000 / interval_us : 0;
        if (control.n <= 0 || control.n > TICKS_MAX || fd < 0)
                return 2;
        sem_init(&control.wake, 0, 0);
        if (pthread_create(&thread, NULL, thread_main, NULL) != 0)
                return 1;
        first_us = clock_realtime_us() / interval_us * interval_us + interval_us;
        if (loop(fd, first_us, interval_us) < 0)
                return 1;
        pthread_join(thread, NULL);
        for (int64_t i = 0; i < control.n; i++) {
                int64_t due_us = first_us + i * interval_us;

                printf("%" PRId64 " %" PRId64 "\n", control.loop_us[i] - due_us,
                        control.thread_us[i] - due_us);
        }
        return 0;
}
