#pragma once
/*
 * Makes the facts of a cluster, as docs/api.md has them, out of the monitor's JSON. Pure: no
 * librados here.
 */

#include <stdint.h>

#include <jansson.h>

#include "agentd/ceph-stats.h"
#include "lib/facts.h"

/* What the monitor answered; borrowed. What it did not want to say is NULL. */
struct ceph_documents {
        const struct ceph_status *status;
        const char *name;        /* of the cluster */
        const char *release;     /* of the monitor, "16.2.15" */
        double mgr_stats_period; /* seconds */
        const json_t *osd_dump;
        const json_t *osd_metadata;
        const json_t *osd_tree;
        const json_t *profiles; /* an object: name to erasure code profile */
};

/* A new reference to one element of "clusters". -EBADMSG: a document lacks its list. -ENOMEM. */
int ceph_facts_make(const struct ceph_documents *documents, json_t **ret);

/* Adds that element to @facts. -EINVAL: it is not as it must be. -ENOMEM. */
int ceph_facts_add(const json_t *cluster, struct facts *facts);
