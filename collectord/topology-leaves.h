#pragma once
/*
 * Which devices count: the step of building a topology that finds its leaves. Private to
 * collectord/topology*.c.
 */

#include "collectord/topology.h"

/* Those of the OSDs, whose hosts are known by now. -ENOMEM. */
int topology_build_leaves(struct topology *topology);
/* The pseudo-cluster "none", where a host has no OSD. */
void topology_build_none(struct topology *topology);
