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

/*
 * Where the values stood in the dump before, of one process; all zero when there was none. From one
 * dump to the next only numbers change, so a value is found a few bytes from where it was.
 */
struct perf_places {
        uint16_t n; /* 0: nothing is known */
        uint16_t uses;
        struct perf_place {
                uint32_t gap; /* bytes between the value before and this key */
                int16_t slot; /* in the table of names; below 0: ~ of a logger */
        } list[PERF_METRICS_MAX];
};

/* -EBADMSG: not the JSON described above; @ret is undefined then. */
int perf_parse(const struct perf *perf, const char *text, size_t size, struct perf_values *ret);
/*
 * The same, with a tenth of the work while @places fit: what lies between the values is not looked
 * at. When a name is not where it should be, and now and then in any case, all is read anew.
 */
int perf_parse_again(const struct perf *perf, const char *text, size_t size,
        struct perf_places *places, struct perf_values *ret);
