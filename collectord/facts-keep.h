#pragma once
/*
 * An agent that starts, fails or is no longer elected does not tell the cluster: what it told is
 * kept and marked, so that no restart takes a cluster out of sight. One that is told is believed
 * before one that is kept.
 *
 * The same with its devices: an agent tells none before its first sample of them, or when its plan
 * has none, and without them no OSD has a disk. A host without any disk has nothing to tell.
 *
 * Windows of the past keep what was expected in them: a pool that is deleted, or gets other copies
 * or another profile, stays among the past pools of its cluster, until @now_us. Ceph gives no pool
 * id twice.
 */

#include "lib/facts.h"
#include "collectord/election.h"
#include "collectord/store.h"

/*
 * Adds to @facts the devices that the same host told before, when it tells none now, and the clusters
 * that it told before, could still ask (@voice) and does not tell now. @reader NULL: none. -ENOMEM,
 * or what reading the store gives.
 */
int facts_keep(struct store_reader *reader, const struct election_voice *voice, int64_t now_us,
        struct facts *facts);
