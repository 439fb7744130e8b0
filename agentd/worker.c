#include "agentd/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>

/* Parsing a large JSON document needs some; the default of 8 MiB is only address space, but
 * under a memory lock it would be real. */
#define WORKER_STACK_BYTES (1024ul * 1024)

enum state { STATE_IDLE, STATE_ASKED, STATE_RUNNING, STATE_DONE };

struct worker {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake;
        enum state state;
        bool quit;
        void (*step)(void *userdata);
        void *userdata;
        int done_fd;
};

static void *worker_main(void *userdata)
{
        struct worker *worker = userdata;

        pthread_mutex_lock(&worker->lock);
        for (;;) {
                while (!worker->quit && worker->state != STATE_ASKED)
                        pthread_cond_wait(&worker->wake, &worker->lock);
                if (worker->state != STATE_ASKED)
                        break;
                worker->state = STATE_RUNNING;
                pthread_mutex_unlock(&worker->lock);
                worker->step(worker->userdata);
                pthread_mutex_lock(&worker->lock);
                worker->state = STATE_DONE;
                /* Fails only at 2^64 - 2 steps that nobody took. */
                (void)eventfd_write(worker->done_fd, 1);
        }
        pthread_mutex_unlock(&worker->lock);
        return NULL;
}

/* Signals are for the loop: the thread is born with all of them blocked. */
static int thread_begin(struct worker *worker)
{
        pthread_attr_t attributes;
        sigset_t all, before;
        int r;

        r = pthread_attr_init(&attributes);
        if (r != 0)
                return -r;
        sigfillset(&all);
        pthread_attr_setstacksize(&attributes, WORKER_STACK_BYTES);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&worker->thread, &attributes, worker_main, worker);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
        return -r;
}

int worker_new(void (*step)(void *userdata), void *userdata, int done_fd, struct worker **ret)
{
        struct worker *worker = calloc(1, sizeof(*worker));
        int r;

        if (!worker)
                return -ENOMEM;
        worker->step = step;
        worker->userdata = userdata;
        worker->done_fd = done_fd;
        pthread_mutex_init(&worker->lock, NULL);
        pthread_cond_init(&worker->wake, NULL);
        r = thread_begin(worker);
        if (r < 0) {
                free(worker);
                return r;
        }
        *ret = worker;
        return 0;
}

struct worker *worker_free(struct worker *worker, uint64_t timeout_us)
{
        struct timespec until;
        uint64_t ns;

        if (!worker)
                return NULL;
        pthread_mutex_lock(&worker->lock);
        worker->quit = true;
        pthread_cond_signal(&worker->wake);
        pthread_mutex_unlock(&worker->lock);
        clock_gettime(CLOCK_MONOTONIC, &until);
        ns = (uint64_t)until.tv_nsec + timeout_us * 1000;
        until.tv_sec += (time_t)(ns / 1000000000);
        until.tv_nsec = (long)(ns % 1000000000);
        if (pthread_clockjoin_np(worker->thread, NULL, CLOCK_MONOTONIC, &until) != 0)
                return worker;
        pthread_cond_destroy(&worker->wake);
        pthread_mutex_destroy(&worker->lock);
        free(worker);
        return NULL;
}

int worker_start(struct worker *worker)
{
        int r = 0;

        pthread_mutex_lock(&worker->lock);
        if (worker->state == STATE_IDLE)
                worker->state = STATE_ASKED;
        else
                r = -EBUSY;
        pthread_mutex_unlock(&worker->lock);
        /* Signalled under the lock, the thread would wake only to wait for it. */
        if (r == 0)
                pthread_cond_signal(&worker->wake);
        return r;
}

bool worker_take(struct worker *worker)
{
        bool done;

        pthread_mutex_lock(&worker->lock);
        done = worker->state == STATE_DONE;
        if (done)
                worker->state = STATE_IDLE;
        pthread_mutex_unlock(&worker->lock);
        return done;
}
