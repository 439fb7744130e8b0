#pragma once
/*
 * Threads that do what would hold up the loop. A job belongs to who added it and is embedded in
 * the caller's object; it must stay until its done() was called, on the loop thread, by
 * workers_dispatch.
 */

#include <stdbool.h>
#include <stddef.h>

#include "lib/cleanup.h"

struct job {
        /* On a worker thread; @state is the thread's. @hurry: the program stops, do not begin. */
        void (*run)(struct job *job, void *state, bool hurry);
        void (*done)(struct job *job);
        struct job *next;
};

struct workers;

/*
 * Starts @n threads; @states[i] is given to the jobs of thread i. At most @queue_max jobs wait.
 * @niceness: how far the threads stand back where the loop wants the CPU (0..19), if the kernel
 * lets them.
 */
int workers_new(
        size_t n, void *const *states, size_t queue_max, int niceness, struct workers **ret);
/* Runs what still waits with hurry set, and ends the threads; workers_dispatch once more after. */
void workers_stop(struct workers *workers);
/* As workers_stop; no done() is called. */
struct workers *workers_free(struct workers *workers);
DEFINE_CLEANUP(workers, struct workers *, workers_free)

/* -EBUSY: the queue is full. */
int workers_add(struct workers *workers, struct job *job);
/* Readable when jobs are done: call workers_dispatch. */
int workers_get_fd(const struct workers *workers);
void workers_dispatch(struct workers *workers);
/* From now on jobs run with hurry set. */
void workers_hurry(struct workers *workers);
