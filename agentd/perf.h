#pragma once
/*
 * Reads the answer to "perf dump" of an OSD: an object of loggers, each an object of counters,
 * each a number or an average ({"avgcount": 818, "sum": 23.044397852, "avgtime": 0.028171635}).
 * One pass, nothing allocated; the text is checked as JSON as far as it is read. Names differ
 * between releases, so a metric has one or more accepted names.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/cleanup.h"

#define PERF_METRICS_MAX 128u

struct perf_values {
        uint64_t value[PERF_METRICS_MAX]; /* by index of perf_get_metrics */
        bool present[PERF_METRICS_MAX];   /* this OSD has it, and it is a number of our range */
};

/* The names, ready to be looked up. Read-only once made. */
struct perf;
int perf_new(struct perf **ret);
struct perf *perf_free(struct perf *perf);
DEFINE_CLEANUP(perf, struct perf *, perf_free)

/* The metric ids that can be had, ascending. */
const uint16_t *perf_get_metrics(const struct perf *perf, size_t *ret_count);

/* -EBADMSG: not the JSON described above; @ret is undefined then. */
int perf_parse(const struct perf *perf, const char *text, size_t size, struct perf_values *ret);
