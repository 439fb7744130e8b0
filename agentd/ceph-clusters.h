#pragma once
/*
 * The clusters that this agent could ask, as configured: for each a ceph.conf, a name and a
 * keyring. Several are separated by colons, in the same order; one name or keyring stands for all.
 */

#include <stddef.h>

#include "lib/id.h"
#include "lib/plan.h"

struct ceph_cluster {
        char *conf, *name, *keyring; /* keyring "": where librados looks by itself */
        struct id fsid;              /* as the ceph.conf has it; zero: it does not say */
};

struct ceph_clusters {
        struct ceph_cluster list[PLAN_CLUSTERS_MAX];
        size_t n;
};

/* Does not read the fsids. -EINVAL: *ret_message (the caller frees) is a sentence. -ENOMEM. On
 * failure, what is in @ret is to be freed too. */
int ceph_clusters_parse(const char *conf, const char *name, const char *keyring,
        struct ceph_clusters *ret, char **ret_message);
/* Reads the fsid of each from its ceph.conf; what cannot be read stays zero. */
void ceph_clusters_read_fsids(struct ceph_clusters *clusters);
/* -EINVAL, with a sentence: two have the same fsid. */
int ceph_clusters_check_fsids(const struct ceph_clusters *clusters, char **ret_message);
void ceph_clusters_done(struct ceph_clusters *clusters);
