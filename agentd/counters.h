#pragma once
/* What the agent counts of itself: written by its parts on the loop, sampled by source-agent.c. */

#include <stdint.h>

struct agent_counters {
        uint64_t ticks;           /* samples asked for at their time */
        uint64_t ticks_missed;    /* the loop came an interval or more too late */
        uint64_t skips;           /* the source was still busy with the sample before */
        uint64_t failures;        /* samples that gave no row */
        uint64_t failed_parts;    /* what was left out of those that did */
        uint64_t lateness_max_us; /* largest since the last row of the agent source */
        uint64_t sample_time_us;  /* in sources that read files */
        uint64_t socket_time_us;  /* in sources that ask other programs, waits included */
        uint64_t rows;
        uint64_t spool_bytes;
        uint64_t spool_blocks;
        uint64_t spool_rows;
        uint64_t dropped_rows;
        uint64_t uploads;
        uint64_t upload_failures;
        uint64_t rejected_blocks;
};
