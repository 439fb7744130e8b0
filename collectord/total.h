#pragma once
/*
 * Totals: the counters of a source summed over a cluster's entities, per cluster, device class and
 * host, for each aligned step. Increases are kept, not counters: they know of resets already, and
 * add up over time and over whatever comes and goes. So a cluster's curve costs the same with 3 and
 * with 3,000 OSDs.
 *
 * They are made of the same windows as a query's (rung.h), and are used only where the sum over
 * steps is what a query over the blocks gives: the same entities in all steps of a window, and no
 * new life among them. The keys of the entities are added up beside the counters to tell. Other
 * windows, and those that a late block touched, are answered from the blocks.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collectord/query.h"
#include "collectord/store.h"

#define TOTAL_SCALE 16.0    /* increases are kept in sixteenths */
#define TOTAL_GIVEN 0x4000u /* of a metric: how many entities told it */
#define TOTAL_SEEN 0x3ff0u
#define TOTAL_RESET 0x3ff1u /* entities with a new life; or the step is not one sum, but torn */
#define TOTAL_MARK 0x3ff2u
#define TOTAL_TORN UINT32_MAX
#define TOTAL_COLUMNS_MAX RUNG_COLUMNS_MAX

/* What has totals: cluster, class and host of these sources. */
bool total_is_kept(enum source_id source, enum query_by by);
/* All counters of @source, a slot each. */
uint32_t total_terms(enum source_id source, struct rung_term terms[RUNG_COLUMNS_MAX]);

/* Sums over windows, gathered from blocks of totals. */
struct total_target {
        char *name;
        uint64_t *sums;  /* [metric][window] in sixteenths */
        uint32_t *given; /* [metric][window] */
        uint32_t *seen;  /* [window] */
        uint32_t *reset; /* [window] TOTAL_TORN: not a sum that can be used */
        uint64_t *marks; /* [window] */
        uint32_t *steps; /* [window] that were added */
};
struct total_table {
        struct rung_windows windows;
        uint32_t n_metrics;
        uint16_t metrics[TOTAL_COLUMNS_MAX];
        uint64_t *covered_us; /* [window] by blocks */
        uint32_t *steps;      /* [window] */
        struct total_target *targets;
        uint32_t n, allocated;
        struct block_decoder *decoder;
        uint64_t *column;
        bool lacking; /* a block did not have all metrics: nothing can be used */
};
int total_table_init(struct total_table *table, const struct rung_windows *windows,
        const uint16_t *metrics, uint32_t n_metrics);
void total_table_done(struct total_table *table);
DEFINE_CLEANUP(total_table, struct total_table *, total_table_done)
/* Adds a block of the cluster's totals; its steps must divide the windows. @skip[window], or NULL:
 * not these. A damaged one is left out: *ret_broken. */
int total_table_add(struct total_table *table, const struct store_total *total, const bool *skip,
        bool *ret_broken);
/* Whether the window's steps are all there. */
bool total_table_is_whole(const struct total_table *table, uint32_t window);
/* Whether the window of the target is one sum: then seen, sums and given are right. */
bool total_target_is_exact(
        const struct total_table *table, const struct total_target *target, uint32_t window);

/* Fills @result's windows that totals are right for, and clears their @open. */
int total_fill(const struct query *query, const struct query_spec *spec,
        struct query_result *result, bool *open);

/* ---- making ---- */

struct total_maker;
int total_maker_new(struct store_keeper *keeper, const char *folder, const struct store_ages *ages,
        struct total_maker **ret);
/* Its reader joins @share; before the first step. See query.h. */
int total_maker_share(struct total_maker *maker, struct query_share *share);
struct total_maker *total_maker_free(struct total_maker *maker);
DEFINE_CLEANUP(total_maker, struct total_maker *, total_maker_free)
/* As store_keeper_step, on the same thread. */
int total_maker_step(struct total_maker *maker, int64_t now_us, struct store_step **ret);
