#include "collectord/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

struct queue {
        struct job *first, **last;
        size_t n;
};

struct thread {
        pthread_t thread;
        struct workers *workers;
        void *state;
};

struct workers {
        pthread_mutex_t lock;
        pthread_cond_t wake;
        struct queue waiting, finished;
        size_t waiting_max;
        bool hurry, stop;
        int event_fd, niceness;
        size_t n_threads; /* that were started */
        struct thread threads[];
};

static void queue_init(struct queue *queue)
{
        *queue = (struct queue){.last = &queue->first};
}

static void queue_push(struct queue *queue, struct job *job)
{
        job->next = NULL;
        *queue->last = job;
        queue->last = &job->next;
        queue->n++;
}

static struct job *queue_pop(struct queue *queue)
{
        struct job *job = queue->first;

        queue->first = job->next;
        if (!queue->first)
                queue->last = &queue->first;
        queue->n--;
        return job;
}

static void *work(void *argument)
{
        struct thread *thread = argument;
        struct workers *workers = thread->workers;

        /* Of this thread alone, on Linux. */
        if (workers->niceness > 0)
                (void)setpriority(PRIO_PROCESS, (id_t)gettid(), workers->niceness);
        pthread_mutex_lock(&workers->lock);
        for (;;) {
                struct job *job;
                bool hurry;

                while (!workers->stop && workers->waiting.n == 0)
                        pthread_cond_wait(&workers->wake, &workers->lock);
                if (workers->waiting.n == 0)
                        break;
                job = queue_pop(&workers->waiting);
                hurry = workers->hurry;
                pthread_mutex_unlock(&workers->lock);

                job->run(job, thread->state, hurry);

                pthread_mutex_lock(&workers->lock);
                queue_push(&workers->finished, job);
                if (workers->finished.n == 1)
                        (void)eventfd_write(workers->event_fd, 1);
        }
        pthread_mutex_unlock(&workers->lock);
        return NULL;
}

/* Signals are the loop's: its threads take none. */
static int start_thread(struct workers *workers, void *state)
{
        struct thread *thread = &workers->threads[workers->n_threads];
        sigset_t all, before;
        int r;

        *thread = (struct thread){.workers = workers, .state = state};
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&thread->thread, NULL, work, thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r == 0)
                workers->n_threads++;
        return -r;
}

int workers_new(size_t n, void *const *states, size_t queue_max, int niceness, struct workers **ret)
{
        CLEANUP(workers)
        struct workers *workers = calloc(1, sizeof(*workers) + n * sizeof(workers->threads[0]));

        if (!workers)
                return -ENOMEM;
        pthread_mutex_init(&workers->lock, NULL);
        pthread_cond_init(&workers->wake, NULL);
        queue_init(&workers->waiting);
        queue_init(&workers->finished);
        workers->waiting_max = queue_max;
        workers->niceness = niceness;
        workers->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (workers->event_fd < 0)
                return -errno;
        for (size_t i = 0; i < n; i++) {
                int r = start_thread(workers, states ? states[i] : NULL);

                if (r < 0)
                        return r;
        }
        *ret = STEAL(workers);
        return 0;
}

void workers_stop(struct workers *workers)
{
        pthread_mutex_lock(&workers->lock);
        workers->stop = true;
        workers->hurry = true;
        pthread_cond_broadcast(&workers->wake);
        pthread_mutex_unlock(&workers->lock);
        for (; workers->n_threads > 0; workers->n_threads--)
                pthread_join(workers->threads[workers->n_threads - 1].thread, NULL);
}

struct workers *workers_free(struct workers *workers)
{
        if (!workers)
                return NULL;
        workers_stop(workers);
        if (workers->event_fd >= 0)
                close(workers->event_fd);
        pthread_cond_destroy(&workers->wake);
        pthread_mutex_destroy(&workers->lock);
        free(workers);
        return NULL;
}

int workers_add(struct workers *workers, struct job *job)
{
        int r = 0;

        pthread_mutex_lock(&workers->lock);
        if (workers->waiting.n >= workers->waiting_max) {
                r = -EBUSY;
        } else {
                queue_push(&workers->waiting, job);
                pthread_cond_signal(&workers->wake);
        }
        pthread_mutex_unlock(&workers->lock);
        return r;
}

int workers_get_fd(const struct workers *workers)
{
        return workers->event_fd;
}

void workers_dispatch(struct workers *workers)
{
        struct queue finished;
        eventfd_t count;

        (void)eventfd_read(workers->event_fd, &count);
        pthread_mutex_lock(&workers->lock);
        finished = workers->finished;
        queue_init(&workers->finished);
        pthread_mutex_unlock(&workers->lock);

        /* done() may free its job. */
        for (struct job *job = finished.first, *next; job; job = next) {
                next = job->next;
                job->done(job);
        }
}

void workers_hurry(struct workers *workers)
{
        pthread_mutex_lock(&workers->lock);
        workers->hurry = true;
        pthread_mutex_unlock(&workers->lock);
}
