#pragma once
/* The step that a table of windows has when none was asked for. */

#include <stdint.h>

#define WINDOW_ROWS 20u /* fits a terminal of 24 lines */

/* The shortest round duration that cuts @span_us into at most WINDOW_ROWS windows; never below 10
 * s, two periods in which OSDs report the pools' totals. */
uint64_t window_choose_step(uint64_t span_us);
