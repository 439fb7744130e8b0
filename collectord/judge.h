#pragma once
/*
 * Judges every cluster again and again: a timer on the loop, the evaluation on a query worker, what
 * comes of it stored on the loop. An evaluation that is due while the one before still runs, or
 * while the workers' queue is full, is skipped and counted.
 */

#include <stdint.h>

#include <systemd/sd-event.h>

#include "lib/cleanup.h"
#include "collectord/metrics.h"
#include "collectord/store.h"
#include "collectord/worker.h"

struct judge;

struct judge_options {
        sd_event *event;
        struct workers *workers; /* whose threads have a store_reader */
        struct store *store;
        struct store_reader *reader; /* only during judge_new */
        struct metrics *metrics;
        uint64_t interval_us, window_us; /* interval 0: never */
        uint64_t timeout_us;             /* of one evaluation of all clusters */
};

int judge_new(const struct judge_options *options, struct judge **ret);
/* After the workers. */
struct judge *judge_free(struct judge *judge);
DEFINE_CLEANUP(judge, struct judge *, judge_free)
