#pragma once
/*
 * Keeps the store dense, on a thread of its own: the keeper's steps one after the other, and what
 * each leaves for the loop in slices of a few milliseconds, with a pause between them, so that no
 * acknowledgement waits for longer.
 */

#include <systemd/sd-event.h>

#include "collectord/metrics.h"
#include "collectord/store.h"

struct upkeep;
/* All but @folder outlive it. */
int upkeep_new(sd_event *event, const char *folder, const struct store_ages *ages,
        struct store *store, struct metrics *metrics, struct upkeep **ret);
/* Waits for the step under way; what it did is found again at the next start. */
struct upkeep *upkeep_free(struct upkeep *upkeep);
DEFINE_CLEANUP(upkeep, struct upkeep *, upkeep_free)
