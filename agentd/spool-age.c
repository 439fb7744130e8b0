#include "agentd/spool-age.h"

/* How long the machine was away, as far as the wall clock is believed. */
static uint64_t away(int64_t then_us, int64_t now_us)
{
        if (now_us <= then_us)
                return 0;
        return (uint64_t)(now_us - then_us) < SPOOL_AWAY_MAX_US ? (uint64_t)(now_us - then_us)
                                                                : SPOOL_AWAY_MAX_US;
}

struct segment_epoch spool_age_begin(const struct segment_epoch *last,
        const struct segment_stamp *newest, const struct id *boot, const struct moment *now)
{
        struct segment_epoch epoch = {.boot = *boot};
        uint64_t at_us;

        if (last && id_equal(&last->boot, boot) &&
                (!newest || spool_age_stamp(last, now).written_us >= newest->written_us))
                return *last;
        if (!newest)
                return epoch;
        at_us = newest->written_us + away(newest->wall_us, now->realtime_us);
        epoch.base_us = (int64_t)(at_us - now->boot_us);
        return epoch;
}

struct segment_stamp spool_age_stamp(const struct segment_epoch *epoch, const struct moment *now)
{
        return (struct segment_stamp){
                .written_us = (uint64_t)epoch->base_us + now->boot_us,
                .wall_us = now->realtime_us,
        };
}
