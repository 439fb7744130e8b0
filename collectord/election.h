#pragma once
/*
 * Which agent samples a cluster. Asking for pool totals costs the mgr, so exactly one agent of
 * those that can does it. There is one seat a cluster; who sits there stays until it is silent for
 * longer than its patience, no longer names the cluster, or fails while another does not: then the
 * next that speaks takes the seat.
 *
 * An agent says in every request which clusters it could ask, by fsid. One whose fsid it does not
 * know yet is zero. The seat of zero lets one agent at a time connect and find out; until it names
 * the fsid, nothing of what it reads is kept.
 *
 * Agents speak at least every half interval. The patience is one and a quarter, so that another is
 * elected within one and three quarters of the last word of the one that went: a busy machine has
 * the rest of two.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "lib/id.h"
#include "lib/plan.h"

/* A loaded host may be late by a second, whatever its interval. */
#define ELECTION_INTERVAL_MIN_US 1000000ull
#define ELECTION_INTERVAL_MAX_US 600000000ull
#define ELECTION_INTERVAL_DEFAULT_US 10000000ull /* of an agent that does not say */

/* What an agent says of itself. */
struct election_voice {
        struct id host;
        struct id clusters[PLAN_CLUSTERS_MAX]; /* zero: the fsid is not known yet */
        bool failing[PLAN_CLUSTERS_MAX];       /* it has asked, and got no answer */
        uint32_t n_clusters;                   /* 0: it has no `ceph` source */
        uint64_t interval_us;                  /* between its uploads */
};

/* What it is to do. */
struct election_result {
        struct id clusters[PLAN_CLUSTERS_MAX];
        uint32_t n_clusters;
};

struct election;

int election_new(struct election **ret);
struct election *election_free(struct election *election);
DEFINE_CLEANUP(election, struct election *, election_free)

/* An agent spoke at @now_us (CLOCK_MONOTONIC). */
void election_hear(struct election *election, const struct election_voice *voice, uint64_t now_us,
        struct election_result *ret);
/* Who sits for @cluster, or NULL. */
const struct id *election_get_seat(const struct election *election, const struct id *cluster);
/* Seats that went to another agent. */
uint64_t election_count_changes(const struct election *election);
