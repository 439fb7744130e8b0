#pragma once
/* The parts of GET /ladder: the sums of one window, ladders made of them, and their JSON. */

#include "collectord/ladder.h"
#include "collectord/layers.h"
#include "collectord/text.h"

/* One window of every source. */
struct ladder_sums {
        const struct query *query;
        uint32_t cluster;
        struct rung_windows window;
        enum query_by by;
        struct query_result *osd, *devices, *pools;
        struct layers *layers; /* noise, and the counts of who answered */
};

/* All sources over sums->window, by sums->by. Errors as query_run. */
int ladder_sums_read(struct ladder_sums *sums);
void ladder_sums_done(struct ladder_sums *sums);
DEFINE_CLEANUP(ladder_sums, struct ladder_sums *, ladder_sums_done)

/* What a ladder is made of, and the names in it: outlives the ladder. */
struct ladder_members {
        struct ladder_member *pools, *devices;
        char **names;
        size_t n_names;
        char others[48];
};
void ladder_members_done(struct ladder_members *members);
DEFINE_CLEANUP(ladder_members, struct ladder_members *, ladder_members_done)

/* The ladder of one target. -ENOMEM. */
int ladder_sums_compute(const struct ladder_sums *sums, const struct layers_target *of,
        enum ratio_direction direction, struct ladder_members *members, struct ladder **ret);
/* The object of one direction. */
void ladder_write_side(struct text *text, const struct ladder *ladder);
