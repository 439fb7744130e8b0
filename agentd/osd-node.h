#pragma once
/*
 * The OSDs of this node, through their admin sockets: what the sources share that ask them for
 * counters. All sockets are asked at once and answer as they can until the deadline, so that a dead
 * one costs its own samples alone, and no OSD has a thread. Being woken costs more than an answer,
 * so they are not waited for one by one: all are read when the slowest should be done, which is
 * learned from those before; what is missing then is looked for again and again, until its
 * deadline.
 */

#include "agentd/osd.h"
#include "agentd/source.h"

#define OSD_NODE_DEADLINE_US 800000u /* of one row: below the shortest usual interval */

/* The functions of a source; @reader outlives it. */
int osd_node_open(const struct source_options *options, const struct source_report *report,
        const struct osd_reader *reader, struct source **ret);
int osd_node_collect(struct source *source, uint64_t deadline_us, struct sample *ret);
int osd_node_proceed(struct source *source, struct sample *ret);
void osd_node_close(struct source *source);
