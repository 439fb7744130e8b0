#pragma once
/*
 * The spool's own clock, by which blocks grow old: it goes on with the boot clock, so nobody who
 * sets the wall clock makes a block older or younger. Across a boot only the wall clock can tell
 * how long the machine was away, and a machine may start with a wrong one: it is believed for a day
 * at most, so that a mistake drops no more than a day's blocks too early. Pure arithmetic.
 */

#include "agentd/spool-segment.h"
#include "lib/clock.h"

#define SPOOL_AWAY_MAX_US (86400ull * 1000000)

/*
 * The clock that goes on where another left off: @last is the epoch of the segment appended to
 * last,
 * @newest the stamp of the newest record. Both NULL: there is none.
 */
struct segment_epoch spool_age_begin(const struct segment_epoch *last,
        const struct segment_stamp *newest, const struct id *boot, const struct moment *now);
struct segment_stamp spool_age_stamp(const struct segment_epoch *epoch, const struct moment *now);
