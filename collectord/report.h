#pragma once
/*
 * What a cluster is good for: from the curves of a running cluster, how much of the storage layer's
 * ability the filesystem layer gets, per mode (sequential or random, read or write) and request
 * size. Pure.
 *
 * A window tells of one use when nine tenths of the clients' bytes and operations go one way, and
 * the windows before and after it have the same direction and size, and half to double its rates in
 * both layers: pool totals come late, so the first and the last windows of a load divide bytes of
 * different moments. The size is the mean
 * request size at the filesystem layer.
 *
 * The order is told only where it leaves a trace (docs/report.md has what was measured):
 * - deferred writes that lie side by side are joined by BlueStore on their way from the WAL to
 * their place, and those that do not are not;
 * - a device's reads that are larger than the clients' were joined on their way down.
 * The kernel's merges tell nothing: the pages of a WAL write are merged whatever the clients do.
 *
 * What the storage layer could do is never made up:
 * - seen: the highest rate of a window of this use, where the devices were busy for 80 % of the
 * time (mean of all devices) in at least one;
 * - estimated: where they never were, the rate divided by the share of the time in which the
 * devices were busy, from windows in which that was 20 % or more;
 * - otherwise it is not known.
 *
 *     share = filesystem rate / ability = (filesystem / storage) x (storage / ability)
 *                                         1 / (expected x excess)    used
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "collectord/ratio.h"

#define REPORT_ONE_WAY 0.9           /* of bytes and of operations */
#define REPORT_STEADY 2.0            /* times, of the rates of neighbours */
#define REPORT_BUSY_SEEN 0.8         /* as the verdict's saturated_disk */
#define REPORT_BUSY_ESTIMATE 0.2     /* below, an error of the busy time is multiplied too much */
#define REPORT_DEFERRED 0.5          /* of the writes of OSDs: enough to speak for all */
#define REPORT_JOINED_SEQUENTIAL 0.5 /* of the deferred writes */
#define REPORT_JOINED_RANDOM 0.1
#define REPORT_GROWN 1.5 /* a device's read / a client's */
#define REPORT_GOOD 0.7  /* of what redundancy leaves; and of the ability: full */
#define REPORT_POOR 0.4
#define REPORT_SIZE_SURE 0.7   /* of the operations in the class that their mean is in */
#define REPORT_WINDOWS_SURE 3u /* fewer are named */
#define REPORT_SENTENCE_MAX 800u
#define REPORT_SUMMARY_MAX 10u
#define REPORT_NONE UINT16_MAX

enum report_size { REPORT_4K, REPORT_16K, REPORT_64K, REPORT_1M, REPORT_4M, REPORT_SIZES };
enum report_order { REPORT_SEQUENTIAL, REPORT_RANDOM, REPORT_ORDER_UNKNOWN, REPORT_ORDERS };
#define REPORT_DIRECTIONS 2u /* enum ratio_direction */
#define REPORT_USES (REPORT_DIRECTIONS * REPORT_ORDERS * REPORT_SIZES)
#define REPORT_LATENCIES 20u /* METRIC_CELL_LATENCIES */

/* Sums over one window; NaN unknown. */
struct report_side {
        struct ratio_point bytes; /* filesystem to storage, per second */
        double ops;               /* of clients */
        double osd_bytes, osd_ops;
        double device_ops, merges;
};
struct report_window {
        struct report_side sides[REPORT_DIRECTIONS];
        double busy_seconds, waiting_seconds; /* over all devices; waiting: weighted by the queue */
        uint32_t devices;                     /* that told */
        double deferred_submitted, deferred_issued; /* operations */
};

struct report_input {
        double seconds; /* of a window */
        const struct report_window *windows;
        uint32_t n;
        bool parallel;   /* some devices do not rotate: they serve many requests at once */
        bool histograms; /* the OSDs' histograms are sampled */
};

/* Why windows tell of no use, or that they do. */
enum report_fate {
        REPORT_USED,
        REPORT_IDLE,
        REPORT_MIXED,      /* reads and writes at once */
        REPORT_EDGE,       /* not steady: a load began, ended or changed */
        REPORT_DISTURBED,  /* recovery, scrub or snap trim moved bytes */
        REPORT_INCOMPLETE, /* gap, reset or partial */
        REPORT_FATES,
};

enum report_ability { REPORT_UNKNOWN, REPORT_ESTIMATED, REPORT_SEEN };
/*
 * Of what the devices did, how much reached the clients, by what redundancy leaves: 1 / excess.
 * Where that is good and the devices were not full, clients ask for no more or something between
 * holds them back: which of them, the findings tell.
 */
enum report_grade {
        REPORT_NO_GRADE,
        REPORT_IS_POOR,
        REPORT_IS_FAIR,
        REPORT_HAS_ROOM,
        REPORT_IS_GOOD,
};

struct report_use {
        enum ratio_direction direction;
        enum report_order order;
        enum report_size size;
        uint32_t windows;
        double seconds;
        /* Means over these windows, per second. */
        double filesystem_bytes, filesystem_ops, storage_bytes, storage_ops;
        double filesystem_size, osd_size, storage_size; /* mean requests */
        double joined; /* of the deferred writes, share that was joined to another one */
        double merged; /* of the devices' requests, share that the kernel merged with another one */
        double utilisation, queue; /* mean of the devices; of all devices together */
        double expected, amplification, excess;
        enum report_ability ability;
        double ability_bytes, ability_ops, ability_utilisation; /* in the windows it is from */
        double share;                                           /* filesystem / ability */
        double used;                                            /* storage / ability */
        enum report_grade grade;
        double cells[REPORT_LATENCIES],
                other_sizes;           /* operations by latency, of the class's sizes */
        double in_class, p50_s, p99_s; /* from the histograms */
        char detail[RATIO_DETAIL_MAX]; /* why there is no number; "" */
        char sentence[REPORT_SENTENCE_MAX];
};

struct report {
        struct report_use uses[REPORT_USES];
        uint32_t fates[REPORT_FATES];
        uint16_t *use_of; /* [n] index of the use, or REPORT_NONE */
        char summary[REPORT_SUMMARY_MAX][REPORT_SENTENCE_MAX];
        size_t n_summary;
};

/* Uses with their numbers. -ENOMEM. */
int report_compute(const struct report_input *input, struct report **ret);
/* Operations of @size in a bucket of latency (0 is the first) in a window of @use; NaN is none. */
void report_add_cell(struct report_use *use, enum report_size size, uint32_t latency, double ops);
/* Once the cells are there: percentiles, sentences, summary. */
void report_describe(const struct report_input *input, struct report *report);
/* Those that were seen; of a direction and size that was not seen at all, the one without order. */
bool report_is_shown(const struct report *report, size_t use);
struct report *report_free(struct report *report);
DEFINE_CLEANUP(report, struct report *, report_free)

const char *report_size_name(enum report_size size);    /* "4k" */
const char *report_order_name(enum report_order order); /* "sequential", "random", "unknown" */
const char *report_ability_name(enum report_ability ability);
const char *report_grade_name(enum report_grade grade); /* NULL for none */
const char *report_fate_name(enum report_fate fate);
enum report_size report_size_of(double bytes);
