#pragma once
/*
 * Rows of several clusters in one block: a row a tick that has the entities of all. Each cluster is
 * asked on a thread of its own and gives its row when it can, so the others wait for it a moment,
 * and only when it was there the time before: one that is slow or dead delays nothing twice. Who
 * comes later has a row of its own, in which the others are absent. Pure; the clock is an argument.
 *
 * The time of a joined row is that of the last read in it; the others were read at most
 * ROW_JOIN_HOLD_US before, in practice a few milliseconds.
 */

#include "agentd/sampler.h"

/* Or a quarter of the interval, when that is less. */
#define ROW_JOIN_HOLD_US 250000u

struct row_join;

/* @keep is given each row; what it points to stays until it returns. */
int row_join_new(void (*keep)(void *userdata, const struct sampler_row *row), void *userdata,
        struct row_join **ret);
/* Forgets what it holds. */
struct row_join *row_join_free(struct row_join *join);
DEFINE_CLEANUP(row_join, struct row_join *, row_join_free)

/* The row of one instance, at @now_us of a clock that goes on evenly. A cluster that is alone keeps
 * its row as it is. -ENOMEM: the row is lost. */
int row_join_add(struct row_join *join, const struct sampler_row *row, uint64_t now_us);
/* Lets nobody wait for longer than the hold. */
void row_join_run(struct row_join *join, uint64_t now_us);
/* When to run next; UINT64_MAX: nobody waits. */
uint64_t row_join_due(const struct row_join *join);
/* Gives what it holds, and forgets the clusters seen so far: another plan may name others. */
void row_join_clear(struct row_join *join);
