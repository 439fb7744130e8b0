#pragma once
/*
 * What the two readers of "perf dump" share: agentd/perf.c, which reads all of it, and
 * agentd/perf-again.c, which looks where the values stood before.
 */

#include "agentd/perf.h"

#define PERF_KEY_MAX 48u
#define PERF_KEY_EXTRA 3u
#define PERF_TABLE_SIZE 512u /* a power of two, four times the names */

enum perf_logger { LOGGER_OSD, LOGGER_BLUESTORE, LOGGER_BLUEFS, LOGGER_OTHER };

enum perf_part {
        PART_VALUE,
        PART_AVERAGE, /* the metric is the count, the one after it the time */
};

struct perf_name {
        enum perf_logger logger;
        const char *name;
        uint16_t metric;
        enum perf_part part;
};

struct perf_slot {
        const struct perf_name *name; /* NULL when free */
        size_t length;                /* of the name */
        const char *key;              /* the name with its quotes and colon: PERF_KEY_EXTRA more */
        uint16_t index;               /* in struct perf_values */
        bool gauge;
};

struct perf {
        uint16_t metrics[PERF_METRICS_MAX];
        size_t n_metrics;
        char keys[PERF_METRICS_MAX][PERF_KEY_MAX];
        size_t n_keys;
        struct perf_slot table[PERF_TABLE_SIZE];
};

/* A string of the text: not unescaped, for no name that we want has a backslash. */
struct perf_token {
        const char *text;
        size_t length;
};

/* Digits from @p; stops at the first byte that is none. -ERANGE above UINT64_MAX. */
int perf_digits_read(const char **p, const char *end, uint64_t *ret);
/* False: it is no whole number of our range. */
bool perf_whole_parse(const struct perf_token *token, uint64_t *ret);
/* Seconds with a fraction to nanoseconds; an exponent is legal, though the OSD prints none. */
bool perf_seconds_parse(const struct perf_token *token, uint64_t *ret);

/* As it stands in the dump: "osd":{ */
const char *perf_logger_key(enum perf_logger logger);

/*
 * A gauge that went below zero is printed as a number near 2^64 (ceph#37744); it is absent, as what
 * is no whole number.
 */
static inline bool perf_value_set(
        const struct perf_slot *slot, bool whole, uint64_t value, struct perf_values *ret)
{
        bool present = whole && !(slot->gauge && value > INT64_MAX);

        ret->present[slot->index] = present;
        ret->value[slot->index] = value;
        return present;
}

/* Reads all, and notes the places of what was found. */
int perf_parse_and_note(const struct perf *perf, const char *text, size_t size,
        struct perf_places *places, struct perf_values *ret);
