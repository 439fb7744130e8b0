#pragma once
/*
 * Rows of several clusters in one block. Each cluster is asked on a thread of its own and gives its
 * rows when it likes, each with the time at which its totals were read. A joined row has the
 * entities of all clusters, of which only those of one are present. Pure.
 */

#include "agentd/sampler.h"

struct row_join;

int row_join_new(struct row_join **ret);
struct row_join *row_join_free(struct row_join *join);
DEFINE_CLEANUP(row_join, struct row_join *, row_join_free)

/* Forgets the clusters seen so far: another plan may name others. */
void row_join_clear(struct row_join *join);
/* Makes *ret of the row of one instance; it is @join's until the next call. A cluster that is alone
 * keeps its row as it is. -ENOMEM. */
int row_join_add(struct row_join *join, const struct sampler_row *row, struct sampler_row *ret);
