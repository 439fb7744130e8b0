#pragma once
/*
 * Counters of Ceph that do not count what their name says, by release: what strata leaves out, and
 * what it keeps because the error is known and bounded. docs/osd-counters.md tells the same to
 * people, and tests/unit/test-perf.c holds the two together.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 16.2.15 */
#define PERF_RELEASE(major, minor, patch) ((major)*1000000u + (minor)*1000u + (patch))
#define PERF_RELEASE_ANY UINT32_MAX /* not mended in any release so far */

struct perf_fault {
        uint16_t metric;
        uint32_t from, until; /* releases; @until is the first one that is right */
        bool left_out;        /* not in the samples of these releases */
        const char *origin;   /* where Ceph's developers discussed it, or where it was seen */
        const char *reason;   /* a sentence's end: "op_w counts ..." */
};

const struct perf_fault *perf_faults_get(size_t *ret_count);

/* "16.2.15", "18.2.7-1.el9", "19.3.0-dev" to PERF_RELEASE; 0 when it is none. */
uint32_t perf_release_parse(const char *text);
bool perf_fault_applies(const struct perf_fault *fault, uint32_t release);
