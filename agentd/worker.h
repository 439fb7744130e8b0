#pragma once
/*
 * One thread that runs one step at a time for a source that may wait. The loop starts a step, the
 * thread says "done" through the eventfd the loop watches. What a step reads and writes belongs to
 * the thread between worker_start and worker_take, and to the loop otherwise.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/cleanup.h"

struct worker;

/* @step runs on the thread with @userdata; @done_fd, an eventfd, stays the caller's. */
int worker_new(void (*step)(void *userdata), void *userdata, int done_fd, struct worker **ret);
/*
 * Waits up to @timeout_us for the step under way, then NULL. When the thread does not come back in
 * time, returns the worker: it and its userdata must then stay allocated for ever.
 */
struct worker *worker_free(struct worker *worker, uint64_t timeout_us);

/* -EBUSY while a step is under way or not taken yet. */
int worker_start(struct worker *worker);
/* Whether a step has ended since worker_start; true once a step. */
bool worker_take(struct worker *worker);
