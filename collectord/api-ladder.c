/* GET /ladder: what each layer made of the clients' bytes in one window. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/api-query.h"
#include "collectord/expected.h"
#include "collectord/ladder.h"
#include "collectord/layers.h"

#define DEVICES_SHOWN 64u /* the largest; the others are one part */

enum { DIRECTION_WRITE, DIRECTION_READ, DIRECTION_BOTH };

static const char *const direction_names[] = {[RATIO_WRITE] = "write", [RATIO_READ] = "read"};

/* One window of every source. */
struct sums {
        const struct query *query;
        uint32_t cluster;
        struct rung_windows window;
        struct query_result *osd, *devices, *pools;
        struct layers *layers; /* noise, and the counts of who answered */
};

static void sums_done(struct sums *sums)
{
        query_result_free(sums->osd);
        query_result_free(sums->devices);
        query_result_free(sums->pools);
        layers_close(sums->layers);
}
DEFINE_CLEANUP(sums, struct sums *, sums_done)

enum { POOL_READ, POOL_READ_OPS, POOL_WRITE, POOL_WRITE_OPS };
static const struct rung_term pool_terms[] = {
        {.metric = METRIC_POOL_READ_BYTES, .slot = POOL_READ, .scale = 1},
        {.metric = METRIC_POOL_READ_OPS, .slot = POOL_READ_OPS, .scale = 1},
        {.metric = METRIC_POOL_WRITE_BYTES, .slot = POOL_WRITE, .scale = 1},
        {.metric = METRIC_POOL_WRITE_OPS, .slot = POOL_WRITE_OPS, .scale = 1},
};

static int run(struct sums *sums, enum source_id source, enum query_by by,
        const struct rung_term *terms, uint32_t n_terms, struct query_result **ret)
{
        struct query_spec spec = {
                .cluster = sums->cluster,
                .source = source,
                .windows = sums->window,
                .by = by,
                .terms = terms,
                .n_terms = n_terms,
        };

        return query_run(sums->query, &spec, ret);
}

static int read_sums(struct sums *sums)
{
        struct layers_spec spec = {
                .cluster = sums->cluster,
                .windows = sums->window,
                .by = QUERY_BY_CLUSTER,
                .layers = LAYERS_BIT(LAYER_FILESYSTEM) | LAYERS_BIT(LAYER_OSD) |
                          LAYERS_BIT(LAYER_OBJECTSTORE) | LAYERS_BIT(LAYER_STORAGE),
                .directions = 1u << RATIO_WRITE | 1u << RATIO_READ,
                .measures = 1u << RATIO_BYTES,
        };
        int r;

        r = layers_open(sums->query, &spec, &sums->layers);
        if (r < 0)
                return r;
        r = run(sums, SOURCE_OSD, QUERY_BY_CLUSTER, ladder_terms, ladder_n_terms, &sums->osd);
        if (r < 0)
                return r;
        r = run(sums, SOURCE_DISKSTATS, QUERY_BY_DEVICE, ladder_device_terms, ladder_n_device_terms,
                &sums->devices);
        if (r < 0)
                return r;
        return run(sums, SOURCE_CEPH, QUERY_BY_POOL, pool_terms,
                sizeof(pool_terms) / sizeof(pool_terms[0]), &sums->pools);
}

/* ---- from sums to the ladder's input ---- */

struct members {
        struct ladder_member *pools, *devices;
        char **names;
        size_t n_names;
        char others[48];
};

static void members_done(struct members *members)
{
        for (size_t i = 0; i < members->n_names; i++)
                free(members->names[i]);
        free(members->names);
        free(members->pools);
        free(members->devices);
}
DEFINE_CLEANUP(members, struct members *, members_done)

static size_t fill_pools(
        const struct sums *sums, enum ratio_direction direction, struct ladder_member *ret)
{
        const struct facts_cluster *facts = sums->query->topology->clusters[sums->cluster].facts;
        uint32_t bytes = direction == RATIO_WRITE ? POOL_WRITE : POOL_READ;
        size_t n = 0;

        for (uint32_t i = 0; i < sums->pools->table->n_targets; i++) {
                const struct facts_pool *pool = NULL;
                double sum = rung_sum(sums->pools->table, i, bytes, 0);

                for (size_t k = 0; facts && k < facts->n_pools && !pool; k++)
                        if (facts->pools[k].id == sums->pools->targets[i].pool)
                                pool = &facts->pools[k];
                /* A pool that is gone since and said nothing in this window is no part of it. */
                if (!pool && isnan(sum))
                        continue;
                ret[n++] = (struct ladder_member){
                        .name = sums->pools->targets[i].key,
                        .bytes = sum,
                        .ops = rung_sum(sums->pools->table, i, bytes + 1, 0),
                        .factor = expected_factor(pool),
                        .erasure = pool && pool->erasure,
                };
        }
        return n;
}

static int compare_members(const void *a, const void *b)
{
        const struct ladder_member *x = a, *y = b;
        double left = isnan(x->bytes) ? -1 : x->bytes, right = isnan(y->bytes) ? -1 : y->bytes;

        if (left != right)
                return left < right ? 1 : -1;
        return strcmp(x->name, y->name);
}

static size_t fold_devices(struct members *members, size_t n)
{
        struct ladder_member *others = &members->devices[DEVICES_SHOWN];

        qsort(members->devices, n, sizeof(*members->devices), compare_members);
        if (n <= DEVICES_SHOWN + 1)
                return n;
        for (size_t i = DEVICES_SHOWN + 1; i < n; i++) {
                if (isnan(members->devices[i].bytes))
                        continue;
                others->bytes += members->devices[i].bytes;
                others->ops += members->devices[i].ops;
        }
        snprintf(members->others, sizeof(members->others), "%zu others", n - DEVICES_SHOWN);
        others->name = members->others;
        return DEVICES_SHOWN + 1;
}

static int fill_devices(const struct sums *sums, enum ratio_direction direction,
        struct members *members, size_t *ret)
{
        uint32_t bytes = direction == RATIO_WRITE ? LADDER_DEVICE_WRITE : LADDER_DEVICE_READ;
        uint32_t n = sums->devices->table->n_targets;

        for (uint32_t i = 0; i < n; i++) {
                const struct query_target *target = &sums->devices->targets[i];

                if (asprintf(&members->names[i], "%s/%s", target->host ? target->host : "",
                            target->key) < 0) {
                        members->names[i] = NULL;
                        return -ENOMEM;
                }
                members->devices[i] = (struct ladder_member){
                        .name = members->names[i],
                        .bytes = rung_sum(sums->devices->table, i, bytes, 0),
                        .ops = rung_sum(sums->devices->table, i, bytes + 1, 0),
                        .factor = NAN,
                };
        }
        *ret = fold_devices(members, n);
        return 0;
}

static int compute(const struct sums *sums, enum ratio_direction direction, struct members *members,
        struct ladder **ret)
{
        double osd[LADDER_SLOTS_MAX_];
        size_t n_targets, n_names = sums->devices->table->n_targets;
        const struct layers_target *target = layers_get_targets(sums->layers, &n_targets);
        struct ladder_input input = {
                .direction = direction,
                .seconds = (double)sums->window.step_us / 1e6,
                .osd = osd,
        };
        int r;

        members->pools = calloc(sums->pools->table->n_targets + 1, sizeof(*members->pools));
        members->devices = calloc(n_names + 1, sizeof(*members->devices));
        members->names = calloc(n_names + 1, sizeof(*members->names));
        if (!members->pools || !members->devices || !members->names)
                return -ENOMEM;
        members->n_names = n_names;
        for (uint32_t i = 0; i < LADDER_SLOTS_MAX_; i++)
                osd[i] = rung_sum(sums->osd->table, 0, i, 0);
        input.n_pools = fill_pools(sums, direction, members->pools);
        r = fill_devices(sums, direction, members, &input.n_devices);
        if (r < 0)
                return r;
        input.pools = members->pools;
        input.devices = members->devices;
        for (size_t i = 0; i < LADDER_RUNGS; i++)
                layers_rung(sums->layers, target, LAYER_FILESYSTEM + i, direction, RATIO_BYTES, 0,
                        &input.rungs[i]);
        layers_noise(sums->layers, target, 0, &input.noise);
        return ladder_compute(&input, ret);
}

/* ---- writing ---- */

static void member(struct text *text, const char *name, double value)
{
        text_format(text, "\"%s\":", name);
        text_number(text, value);
        text_add(text, ",");
}

static void text_member(struct text *text, const char *name, const char *value)
{
        text_format(text, "\"%s\":", name);
        text_string(text, value && *value ? value : NULL);
        text_add(text, ",");
}

static void write_part(struct text *text, const struct ladder_part *part)
{
        text_add(text, "{");
        text_member(text, "name", part->name);
        text_member(text, "kind", part->kind);
        member(text, "bytes", part->bytes);
        member(text, "ops", part->ops);
        member(text, "amplification", part->amplification);
        if (part->included_in)
                text_member(text, "included_in", part->included_in);
        text_format(text, "\"counted\":%s,\"help\":", part->counted ? "true" : "false");
        text_string(text, part->help);
        text_add(text, "}");
}

static void write_rung(struct text *text, const struct ladder_rung *rung, double seconds)
{
        text_add(text, "{");
        text_member(text, "layer", layer_name(rung->layer));
        text_member(text, "state", rung_state_name(rung->state));
        text_member(text, "detail", rung->detail);
        member(text, "bytes", rung->bytes);
        member(text, "ops", rung->ops);
        member(text, "bytes_per_second", rung->bytes / seconds);
        member(text, "ops_per_second", rung->ops / seconds);
        member(text, "mean_size", rung->ops > 0 ? rung->bytes / rung->ops : NAN);
        member(text, "amplification", rung->amplification);
        text_member(text, "note", rung->note);
        text_add(text, "\"parts\":[");
        for (size_t i = 0; i < rung->n_parts; i++) {
                if (i > 0)
                        text_add(text, ",");
                write_part(text, &rung->parts[i]);
        }
        text_add(text, "]}");
}

static void write_side(struct text *text, const struct ladder *ladder)
{
        text_add(text, "{");
        text_member(text, "state", rung_state_name(ladder->point.state));
        text_member(text, "detail", ladder->detail);
        text_add(text, "\"rungs\":[");
        for (size_t i = 0; i < LADDER_RUNGS; i++) {
                if (i > 0)
                        text_add(text, ",");
                write_rung(text, &ladder->rungs[i], ladder->seconds);
        }
        text_add(text, "],\"unattributed\":{");
        member(text, "bytes", ladder->unattributed_bytes);
        text_add(text, "\"share\":");
        text_number(text, ladder->unattributed_share);
        text_add(text, "},");
        member(text, "ratio", ladder->point.ratio);
        member(text, "amplification", ladder->point.amplification);
        member(text, "expected", ladder->point.expected);
        member(text, "excess", ladder->point.excess);
        text_add(text, "\"reasons\":[");
        for (size_t i = 0; i < ladder->n_reasons; i++) {
                text_add(text, i > 0 ? ",{" : "{");
                text_member(text, "part", ladder->reasons[i].part);
                member(text, "amplification", ladder->reasons[i].amplification);
                text_add(text, "\"sentence\":");
                text_string(text, ladder->reasons[i].sentence);
                text_add(text, "}");
        }
        text_add(text, "]}");
}

static int write_answer(struct text *text, const struct sums *sums, unsigned direction)
{
        struct members lists[2] = {0};
        CLEANUP(members) struct members *write_members = &lists[0];
        CLEANUP(members) struct members *read_members = &lists[1];
        CLEANUP(ladder) struct ladder *write = NULL;
        CLEANUP(ladder) struct ladder *read = NULL;
        const struct ladder *worst;
        const struct rung_windows *window = &sums->window;
        bool none = id_is_zero(&sums->query->topology->clusters[sums->cluster].fsid);
        char fsid[ID_TEXT_MAX];
        int r;

        r = compute(sums, RATIO_WRITE, write_members, &write);
        if (r < 0)
                return r;
        r = compute(sums, RATIO_READ, read_members, &read);
        if (r < 0)
                return r;
        /* Nobody reading is no flaw of a window in which somebody writes. */
        worst = direction == DIRECTION_READ ||
                                (direction == DIRECTION_BOTH && write->point.state == RUNG_IDLE)
                        ? read
                        : write;
        text_add(text, "{");
        text_member(text, "cluster", api_query_fsid(sums->query, sums->cluster, fsid));
        text_add(text, "\"from\":");
        text_time(text, window->from_us);
        text_add(text, ",\"to\":");
        text_time(text, window->from_us + (int64_t)window->step_us);
        text_add(text, ",");
        text_member(text, "state", rung_state_name(worst->point.state));
        text_add(text, "\"detail\":");
        text_string(text, none ? "These hosts have no Ceph cluster: there is only a storage layer."
                          : *worst->detail ? worst->detail
                                           : NULL);
        if (direction != DIRECTION_READ) {
                text_format(text, ",\"%s\":", direction_names[RATIO_WRITE]);
                write_side(text, write);
        }
        if (direction != DIRECTION_WRITE) {
                text_format(text, ",\"%s\":", direction_names[RATIO_READ]);
                write_side(text, read);
        }
        text_add(text, "}");
        return 0;
}

static bool is_relative(const struct api_request *request, const char *name)
{
        const char *text = api_parameter(request, name);

        return !text || *text == '-' || *text == '+' || *text == 'n';
}

/*
 * "The last minute" ends where the live sources have delivered: the window moves back and keeps its
 * length. A range that was named by absolute times stays what it is, but for an end of "now".
 */
static void move_back(
        struct sums *sums, const struct api_request *request, const struct api_window *window)
{
        const unsigned all =
                LAYERS_BIT(LAYER_FILESYSTEM) | LAYERS_BIT(LAYER_OSD) | LAYERS_BIT(LAYER_STORAGE);
        int64_t frontier_us = query_frontier(sums->query, sums->cluster, layers_sources(all));
        int64_t late_us = window->to_us - frontier_us;

        sums->window = (struct rung_windows){window->from_us, window->step_us, 1};
        if (late_us <= 0 || !is_relative(request, "to"))
                return;
        if (is_relative(request, "from"))
                sums->window.from_us -= late_us;
        else if (frontier_us > window->from_us)
                sums->window.step_us -= (uint64_t)late_us;
}

int api_ladder(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        CLEANUP(query) struct query *query = NULL;
        struct sums storage = {0};
        CLEANUP(sums) struct sums *sums = &storage;
        struct text buffer = {0};
        CLEANUP(text_object) struct text *text = &buffer;
        unsigned direction = DIRECTION_BOTH;
        struct api_window window;
        size_t size = 0;
        char *body = NULL;
        int r;

        r = api_parse_range(request, response, "-1m", &window);
        if (r == 0 && api_parameter(request, "direction"))
                r = api_parse_choice(
                        request, response, "direction", "write read", NULL, &direction);
        if (r != 0)
                return r < 0 ? r : 0;
        r = query_open(reader, request->now_us, request->deadline_us, &query);
        if (r < 0)
                return api_query_problem(request, response, r);
        sums->query = query;
        r = api_query_cluster(query, request, response, &sums->cluster);
        if (r != 0)
                return r < 0 ? r : 0;
        move_back(sums, request, &window);
        r = read_sums(sums);
        if (r == 0)
                r = write_answer(text, sums, direction);
        if (r == 0)
                r = text_take(text, &body, &size);
        if (r < 0)
                return api_query_problem(request, response, r);
        return api_text(response, 200, body, size);
}
