#pragma once
/*
 * The rungs of a cluster side by side over windows: every layer that a ratio needs, in one pass
 * over each source, with what is expected and what disturbs. Between the query and the pure
 * functions.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collectord/query.h"
#include "collectord/ratio.h"
#include "collectord/series.h"

#define LAYERS_BIT(layer) (1u << (layer))

struct layers_spec {
        uint32_t cluster;
        struct rung_windows windows;
        enum query_by by; /* cluster, class, host, osd, device; pool: the filesystem layer only */
        unsigned layers;  /* LAYERS_BIT of each that is asked for */
        unsigned directions; /* 1 << enum ratio_direction */
        unsigned measures;   /* 1 << enum ratio_measure */
};

/* A target over all sources; an index is TOPOLOGY_NONE where the source has no such target. By
 * device several OSDs may stand on it, and some of them on others as well. */
struct layers_target {
        const char *key, *host; /* host: by device, else NULL */
        uint32_t osd, devices, pool;
        uint32_t first_osd, n_osds; /* by device; private */
        bool split;
};

struct layers;
/* Errors as query_run. */
int layers_open(const struct query *query, const struct layers_spec *spec, struct layers **ret);
struct layers *layers_close(struct layers *layers);
DEFINE_CLEANUP(layers, struct layers *, layers_close)

const struct layers_target *layers_get_targets(const struct layers *layers, size_t *ret_count);
/* The rung of @layer in window @window; must have been asked for. */
void layers_rung(const struct layers *layers, const struct layers_target *target, enum layer layer,
        enum ratio_direction direction, enum ratio_measure measure, uint32_t window,
        struct ratio_rung *ret);
void layers_noise(const struct layers *layers, const struct layers_target *target, uint32_t window,
        struct ratio_noise *ret);
/* Of the mix of pools in that window, or of the target's pool. *ret_unknown: the pool whose
 * redundancy is not known, or NULL. */
double layers_expected_write(const struct layers *layers, const struct layers_target *target,
        uint32_t window, const char **ret_unknown);
/* Everything that ratio_compute wants. */
void layers_ratio(const struct layers *layers, const struct layers_target *target, enum layer upper,
        enum layer lower, enum ratio_direction direction, enum ratio_measure measure,
        uint32_t window, struct ratio_input *ret);
/* LAYERS_BITs to bits of their sources, for query_frontier. */
unsigned layers_sources(unsigned layers);
