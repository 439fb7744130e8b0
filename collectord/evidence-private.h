#pragma once
/* What the files of the evidence share. */

#include "collectord/evidence.h"

/* A clock that is further off puts other moments' rows into the window. */
#define EVIDENCE_CLOCK_MAX_US INT64_C(5000000)

struct evidence_job {
        const struct query *query;
        uint32_t cluster;
        const struct topology_cluster *topology; /* the cluster */
        struct rung_windows window;              /* of OSDs and devices */
        struct evidence *evidence;
        bool *host_silent; /* [topology hosts] its clock is wrong */
};

/* The window of the same length that ends where @sources have delivered. */
struct rung_windows evidence_window(const struct evidence_job *job, unsigned sources);
int evidence_query(const struct evidence_job *job, enum source_id source, enum query_by by,
        const struct rung_windows *window, const struct rung_term *terms, uint32_t n_terms,
        struct query_result **ret);
/* The target of @key on @host (NULL: any); UINT32_MAX when there is none. *hint: where to begin. */
uint32_t evidence_target(
        const struct query_result *result, const char *key, const char *host, uint32_t *hint);

int evidence_add_devices(struct evidence_job *job);
int evidence_add_osds(struct evidence_job *job);  /* after the devices */
int evidence_add_hosts(struct evidence_job *job); /* after the OSDs */
int evidence_add_ladders(struct evidence_job *job);
