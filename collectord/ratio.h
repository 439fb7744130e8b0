#pragma once
/*
 * The ratio of two rungs in one window, the amplification that the configuration explains, and how
 * far the numbers can be trusted. Pure functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectord/rung.h"
#include "lib/metric.h"

/*
 * Below these an upper rung is idle: what RocksDB, heartbeats and PG logs write by themselves would
 * be divided by almost nothing. A window needs one of the two.
 */
#define RATIO_FLOOR_BYTES (1024.0 * 1024)
#define RATIO_FLOOR_BYTES_PER_SECOND (16.0 * 1024)
#define RATIO_FLOOR_OPS 100.0
#define RATIO_FLOOR_OPS_PER_SECOND 10.0

#define RATIO_DETAIL_MAX 320u

enum ratio_direction { RATIO_WRITE, RATIO_READ };
enum ratio_measure { RATIO_BYTES, RATIO_OPS };

struct ratio_rung {
        enum layer layer;
        double sum; /* bytes or operations in the window; NaN when nobody told */
        uint32_t seen, reset, expected; /* entities: that cover the window, of those restarted, that
                                           should answer */
        bool lagging;                   /* pool statistics over less than two report periods */
        bool erasure;                   /* OSD counters without the shards of EC pools */
        bool shared; /* a device of several OSDs that cannot be split is left out */
};

/* What moved bytes on the devices without a client asking. NaN is unknown and says nothing. */
struct ratio_noise {
        double recovered_bytes;
        double pgs_recovering, pgs_scrubbing, pgs_snaptrim; /* means over the window */
};

struct ratio_input {
        struct ratio_rung upper, lower;
        enum ratio_direction direction;
        enum ratio_measure measure;
        double seconds;           /* of the window */
        double expected;          /* amplification, NaN unknown */
        const char *unknown_pool; /* the reason why, or NULL */
        struct ratio_noise noise;
};

struct ratio_point {
        double upper, lower;                           /* per second */
        double ratio, amplification, expected, excess; /* NaN where there is no number */
        enum rung_state state;
};

enum rung_state ratio_rung_state(const struct ratio_rung *rung);
/* Whether something else than clients moved bytes of @layer in @direction. */
bool ratio_is_contaminated(
        const struct ratio_noise *noise, enum ratio_direction direction, enum layer layer);
bool ratio_is_idle(double sum, double seconds, enum ratio_measure measure);
void ratio_compute(const struct ratio_input *input, struct ratio_point *ret);

/* Sentences for @state into @text[size]; false when there is nothing to say. */
bool ratio_detail(const struct ratio_input *input, enum rung_state state, char *text, size_t size);
bool ratio_rung_detail(const struct ratio_rung *rung, char *text, size_t size);
bool ratio_noise_detail(
        const struct ratio_noise *noise, enum ratio_direction direction, char *text, size_t size);
/* "OSDs", "devices", ...: what a layer's entities are called. */
const char *ratio_entities_name(enum layer layer);
