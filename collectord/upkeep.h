#pragma once
/*
 * Keeps the store dense, on a thread of its own: the keeper's steps one after the other, and what
 * each leaves for the loop in slices of a few milliseconds, with a pause between them, so that no
 * acknowledgement waits for longer.
 */

#include <systemd/sd-event.h>

#include "collectord/metrics.h"
#include "collectord/query.h"
#include "collectord/store.h"

struct upkeep;
/* All but @folder and @ages outlive it; its queries share with those of @share. */
int upkeep_new(sd_event *event, const char *folder, const struct store_ages *ages,
        struct store *store, struct query_share *share, struct metrics *metrics,
        struct upkeep **ret);
/* To be called after each commit: folds the WAL back when it is large, on a thread. */
void upkeep_after_commit(struct upkeep *upkeep);
/* Waits for the step under way; what it did is found again at the next start. */
struct upkeep *upkeep_free(struct upkeep *upkeep);
DEFINE_CLEANUP(upkeep, struct upkeep *, upkeep_free)
