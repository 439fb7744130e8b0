#pragma once
/* Reads the blocks of a query and feeds the members' cursors; part of query.c. */

#include "collectord/query-members.h"

/* Errors as query_run. */
int query_read(struct query_members *members);
