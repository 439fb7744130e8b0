#pragma once
/*
 * Findings over time: what evaluation after evaluation says, made into findings with a begin and an
 * end and into one verdict for each cluster that does not flap. Belongs to the loop thread; no
 * clock.
 *
 * A finding begins when two evaluations in a row have it (at the first of them), and ends when
 * three in a row do not (at the last that had it). Another bottleneck takes the verdict's place
 * when it is the bottleneck of two evaluations in a row.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "lib/id.h"
#include "collectord/store.h"
#include "collectord/verdict.h"

#define FINDING_BEGINS_AFTER 2u
#define FINDING_ENDS_AFTER 3u
#define FINDING_CLUSTERS_MAX 64u /* as many as facts may have; more are not judged */
#define FINDING_OPEN_MAX 256u    /* of one cluster; more are left out */
/* Ended findings are kept so long, and so many. */
#define FINDING_KEEP_US (INT64_C(365) * 86400 * 1000000)
#define FINDING_KEEP 100000u

/* One evaluation of one cluster. */
struct finding_evaluation {
        struct id cluster;
        int64_t now_us, from_us, to_us; /* the window that it looked at */
        struct verdict *verdict;
        char (*doubts)[EVIDENCE_DOUBT_MAX];
        uint32_t n_doubts; /* at most EVIDENCE_DOUBTS_MAX */
};
void finding_evaluation_done(struct finding_evaluation *evaluation);

struct findings;
int findings_new(struct findings **ret);
struct findings *findings_free(struct findings *findings);
DEFINE_CLEANUP(findings, struct findings *, findings_free)

/* Goes on with what was open when the collector ended. */
int findings_load(struct findings *findings, struct store_reader *reader);
/* Takes what one evaluation says into account. -ENOSPC: too many clusters. -ENOMEM. */
int findings_update(struct findings *findings, const struct finding_evaluation *evaluation);
/* A cluster that is not judged any more keeps nothing open. */
void findings_forget(struct findings *findings, const struct id *const *clusters, size_t n);
/* Puts all that changed into the open transaction; after a failure it is put again. */
int findings_put(struct findings *findings, struct store *store, int64_t now_us);
/* The transaction is committed. */
void findings_stored(struct findings *findings);

/* The verdict of a cluster as it is shown (docs/api.md), or NULL; valid until the next update. */
const char *findings_get_verdict(const struct findings *findings, const struct id *cluster);
/* Whether the last update changed the cluster's verdict: a sentence for the log, or NULL. */
const char *findings_get_news(const struct findings *findings, const struct id *cluster);
