#pragma once
/*
 * Which agent samples a cluster. Pool totals cost the mgr, so exactly one agent of those that have
 * the `ceph` source asks for them: who sits there stays until it is silent for longer than its
 * patience, then the next that speaks takes the seat. An agent whose cluster nobody knows yet may
 * belong to any: it takes a seat only when nobody else holds one.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "lib/id.h"

struct election;

int election_new(struct election **ret);
struct election *election_free(struct election *election);
DEFINE_CLEANUP(election, struct election *, election_free)

/*
 * @host spoke at @now_us (CLOCK_MONOTONIC); @able: it has the `ceph` source; it counts as alive for
 * @patience_us from now. *ret_elected: it is to sample its cluster. -ENOSPC: too many agents.
 */
int election_hear(struct election *election, const struct id *host, bool able, uint64_t now_us,
        uint64_t patience_us, bool *ret_elected);
/* @host belongs to @cluster. */
int election_learn(struct election *election, const struct id *host, const struct id *cluster);
bool election_has_seat(const struct election *election, const struct id *host);
uint32_t election_count_agents(const struct election *election);
/* Seats that went to another agent. */
uint64_t election_count_changes(const struct election *election);
