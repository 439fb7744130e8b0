#include "agentd/backfill.h"

#define SECOND_US 1000000u

bool backfill_is_due(const struct backfill *backfill, uint64_t now_us)
{
        return backfill->rate == 0 || now_us >= backfill->next_us;
}

size_t backfill_limit(const struct backfill *backfill, size_t size_max)
{
        return backfill->rate == 0 || backfill->rate > size_max ? size_max : backfill->rate;
}

void backfill_charge(struct backfill *backfill, size_t size, uint64_t now_us)
{
        if (backfill->rate == 0)
                return;
        /* What was not used is not saved up: a burst after a pause is what the rate is against. */
        backfill->next_us = now_us + size * SECOND_US / backfill->rate;
}
