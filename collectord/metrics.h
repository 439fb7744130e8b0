#pragma once
/*
 * The collector's own counters, one row each: field, kind, help. The loop and the workers count,
 * /metrics reads; relaxed atomics, since no number hangs on another.
 */

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

/* A TIME is counted in microseconds and shown in seconds. */
#define METRICS_ROWS(ROW)                                                                          \
        ROW(blocks, COUNTER, "Blocks stored")                                                      \
        ROW(rows, COUNTER, "Rows of stored blocks")                                                \
        ROW(block_bytes, COUNTER, "Bytes of stored blocks")                                        \
        ROW(duplicates, COUNTER, "Blocks that were there already")                                 \
        ROW(gaps, COUNTER, "Gaps that agents reported")                                            \
        ROW(gap_rows, COUNTER, "Rows that agents dropped")                                         \
        ROW(facts, COUNTER, "Facts received")                                                      \
        ROW(plans, COUNTER, "Changes of plans")                                                    \
        ROW(elections, COUNTER, "Times another agent was elected for a cluster")                   \
        ROW(commits, COUNTER, "Commits of the store")                                              \
        ROW(commit_failures, COUNTER, "Commits that failed")                                       \
        ROW(commit_seconds, TIME, "Time spent storing and committing")                             \
        ROW(retained_blocks, COUNTER, "Blocks removed for their age")                              \
        ROW(retention_failures, COUNTER, "Steps of retention that failed")                         \
        ROW(sealed_blocks, COUNTER, "Blocks moved from the hot log into sealed files")             \
        ROW(upkeep_steps, COUNTER, "Steps of merging, tiers and retention")                        \
        ROW(upkeep_failures, COUNTER, "Steps of merging, tiers and retention that failed")         \
        ROW(requests, COUNTER, "Requests")                                                         \
        ROW(responses_failed, COUNTER, "Answers with a status of 500 or more")                     \
        ROW(queries, COUNTER, "Queries")                                                           \
        ROW(query_seconds, TIME, "Time spent in queries, summed over workers")                     \
        ROW(queries_late, COUNTER, "Queries over their time budget")                               \
        ROW(rotten_blocks, COUNTER, "Times that a query left out a block damaged on the disk")     \
        ROW(queries_refused, COUNTER, "Requests refused because the workers' queue was full")      \
        ROW(evaluations, COUNTER, "Times that the clusters were judged")                           \
        ROW(evaluations_skipped, COUNTER,                                                          \
                "Times that they were not, because the workers were busy")                         \
        ROW(evaluation_failures, COUNTER, "Evaluations that failed")                               \
        ROW(bodies_too_large, COUNTER, "Requests refused for the size of their body")              \
        ROW(bodies_refused, COUNTER, "Requests refused because too much memory held bodies")       \
        ROW(requests_cut, COUNTER, "Connections cut because they were too slow")                   \
        ROW(unauthorized, COUNTER, "Requests without a valid token")                               \
        ROW(forbidden, COUNTER, "Requests that their token does not allow")                        \
        ROW(http_errors, COUNTER, "Connections that the HTTP library gave up")                     \
        ROW(connections_accepted, COUNTER, "Connections accepted")                                 \
        ROW(connections_full, COUNTER, "Times the limit of connections was reached")               \
        ROW(connections, GAUGE, "Connections open")                                                \
        ROW(body_bytes, GAUGE, "Memory that holds bodies of requests")                             \
        ROW(agents, GAUGE, "Agents seen since the start")

/* Why a block was refused: a label of strata_collector_rejected_total. */
#define METRICS_REASONS(REASON)                                                                    \
        REASON(damaged)                                                                            \
        REASON(version)                                                                            \
        REASON(size)                                                                               \
        REASON(host)                                                                               \
        REASON(conflict)                                                                           \
        REASON(invalid)                                                                            \
        REASON(store)

enum metrics_reason {
#define REASON(name) METRICS_REASON_##name,
        METRICS_REASONS(REASON)
#undef REASON
                METRICS_N_REASONS_,
};

struct metrics {
#define ROW(field, kind, help) _Atomic uint64_t field;
        METRICS_ROWS(ROW)
#undef ROW
        _Atomic uint64_t rejected[METRICS_N_REASONS_];
};

#define metrics_add(metrics, field, value)                                                         \
        atomic_fetch_add_explicit(&(metrics)->field, (value), memory_order_relaxed)
#define metrics_sub(metrics, field, value)                                                         \
        atomic_fetch_sub_explicit(&(metrics)->field, (value), memory_order_relaxed)
#define metrics_set(metrics, field, value)                                                         \
        atomic_store_explicit(&(metrics)->field, (value), memory_order_relaxed)
#define metrics_get(metrics, field) atomic_load_explicit(&(metrics)->field, memory_order_relaxed)

/* In OpenMetrics text, without the final "# EOF". */
void metrics_write(struct metrics *metrics, FILE *out);
