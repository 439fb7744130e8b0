/* GET /report: how much of the storage layer's ability clients get, by mode and request size. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "collectord/api-report.h"
#include "collectord/layers.h"

#define WINDOWS_WANTED 8640u /* 10 s over a day */
#define PERIOD_DEFAULT_US 5000000u
#define LAYERS (LAYERS_BIT(LAYER_FILESYSTEM) | LAYERS_BIT(LAYER_OSD) | LAYERS_BIT(LAYER_STORAGE))

#define TERM(metric_, slot_, scale_)                                                               \
        {                                                                                          \
                .metric = METRIC_##metric_, .slot = (slot_), .scale = (scale_),                    \
                .need = RUNG_NEED_SLOT                                                             \
        }
enum { READ_MERGES, WRITE_MERGES, BUSY, WAITING };
static const struct rung_term device_terms[] = {TERM(DISK_READ_MERGES, READ_MERGES, 1),
        TERM(DISK_WRITE_MERGES, WRITE_MERGES, 1), TERM(DISK_BUSY_TIME, BUSY, 1e-3),
        TERM(DISK_WEIGHTED_TIME, WAITING, 1e-3)};
enum { SUBMITTED, ISSUED };
static const struct rung_term deferred_terms[] = {
        TERM(BLUESTORE_DEFERRED_SUBMITTED, SUBMITTED, 1), TERM(BLUESTORE_DEFERRED_OPS, ISSUED, 1)};

static void answer_done(struct report_answer *answer)
{
        free(answer->list);
        report_free(answer->report);
}
DEFINE_CLEANUP(report_answer, struct report_answer *, answer_done)

static int run(const struct report_answer *answer, enum source_id source,
        const struct rung_term *terms, uint32_t n_terms, struct query_result **ret)
{
        struct query_spec spec = {
                .cluster = answer->cluster,
                .source = source,
                .windows = answer->windows,
                .by = QUERY_BY_CLUSTER,
                .terms = terms,
                .n_terms = n_terms,
        };

        return query_run(answer->query, &spec, ret);
}

/* NaN without such a target. */
static double sum_of(const struct query_result *result, uint32_t slot, uint32_t window)
{
        return result->table->n_targets > 0 ? rung_sum(result->table, 0, slot, window) : NAN;
}

static void fill_side(
        const struct layers *layers, unsigned direction, uint32_t window, struct report_side *ret)
{
        size_t n;
        const struct layers_target *target = layers_get_targets(layers, &n);
        struct ratio_input input;
        struct ratio_rung rung;

        layers_ratio(layers, target, LAYER_FILESYSTEM, LAYER_STORAGE, direction, RATIO_BYTES,
                window, &input);
        ratio_compute(&input, &ret->bytes);
        layers_rung(layers, target, LAYER_FILESYSTEM, direction, RATIO_OPS, window, &rung);
        ret->ops = rung.sum;
        layers_rung(layers, target, LAYER_STORAGE, direction, RATIO_OPS, window, &rung);
        ret->device_ops = rung.sum;
        layers_rung(layers, target, LAYER_OSD, direction, RATIO_BYTES, window, &rung);
        ret->osd_bytes = rung.sum;
        layers_rung(layers, target, LAYER_OSD, direction, RATIO_OPS, window, &rung);
        ret->osd_ops = rung.sum;
}

static int fill_windows(struct report_answer *answer)
{
        struct layers_spec spec = {
                .cluster = answer->cluster,
                .windows = answer->windows,
                .by = QUERY_BY_CLUSTER,
                .layers = LAYERS,
                .directions = 1u << RATIO_WRITE | 1u << RATIO_READ,
                .measures = 1u << RATIO_BYTES | 1u << RATIO_OPS,
        };
        CLEANUP(layers) struct layers *layers = NULL;
        CLEANUP(query_result) struct query_result *devices = NULL;
        CLEANUP(query_result) struct query_result *deferred = NULL;
        int r;

        r = layers_open(answer->query, &spec, &layers);
        if (r < 0)
                return r;
        r = run(answer, SOURCE_DISKSTATS, device_terms,
                sizeof(device_terms) / sizeof(device_terms[0]), &devices);
        if (r < 0)
                return r;
        r = run(answer, SOURCE_OSD, deferred_terms,
                sizeof(deferred_terms) / sizeof(deferred_terms[0]), &deferred);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < answer->windows.n; i++) {
                struct report_window *window = &answer->list[i];

                fill_side(layers, RATIO_WRITE, i, &window->sides[RATIO_WRITE]);
                fill_side(layers, RATIO_READ, i, &window->sides[RATIO_READ]);
                window->sides[RATIO_READ].merges = sum_of(devices, READ_MERGES, i);
                window->sides[RATIO_WRITE].merges = sum_of(devices, WRITE_MERGES, i);
                window->busy_seconds = sum_of(devices, BUSY, i);
                window->waiting_seconds = sum_of(devices, WAITING, i);
                window->devices =
                        devices->table->n_targets > 0 ? devices->table->targets[0].seen[i] : 0;
                window->deferred_submitted = sum_of(deferred, SUBMITTED, i);
                window->deferred_issued = sum_of(deferred, ISSUED, i);
        }
        return 0;
}

/* ---- the OSDs' histograms, where a plan asks for them ---- */

#define LATENCIES_AT_ONCE 4u /* of 16 sizes: 64 of RUNG_COLUMNS_MAX */

static int add_cells(struct report_answer *answer, uint32_t histogram, uint32_t first_latency)
{
        struct rung_term terms[LATENCIES_AT_ONCE * METRIC_CELL_SIZES];
        CLEANUP(query_result) struct query_result *result = NULL;
        enum ratio_direction direction = histogram == 0 ? RATIO_READ : RATIO_WRITE;
        uint32_t n = 0;
        int r;

        for (uint32_t latency = 0; latency < LATENCIES_AT_ONCE; latency++)
                for (uint32_t size = 0; size < METRIC_CELL_SIZES; size++) {
                        uint32_t id =
                                METRIC_CELL_FIRST +
                                (histogram * METRIC_CELL_LATENCIES + first_latency + latency) *
                                        METRIC_CELL_SIZES +
                                size;
                        struct metric_cell cell;

                        r = metric_cell_get((uint16_t)id, &cell);
                        if (r < 0)
                                return r;
                        terms[n++] = (struct rung_term){
                                .metric = (uint16_t)id,
                                .slot = (uint16_t)(latency * REPORT_SIZES +
                                                   report_size_of((double)cell.size_from_bytes)),
                                .scale = 1,
                                .need = RUNG_NEED_OPTIONAL,
                        };
                }
        r = run(answer, SOURCE_OSD_HISTOGRAM, terms, n, &result);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < answer->windows.n; i++) {
                uint16_t use = answer->report->use_of[i];

                if (use == REPORT_NONE || answer->report->uses[use].direction != direction)
                        continue;
                for (uint32_t slot = 0; slot < LATENCIES_AT_ONCE * REPORT_SIZES; slot++)
                        report_add_cell(&answer->report->uses[use], slot % REPORT_SIZES,
                                first_latency + slot / REPORT_SIZES, sum_of(result, slot, i));
        }
        return 0;
}

static bool has_histograms(const struct report_answer *answer)
{
        const struct query *query = answer->query;
        int64_t from_us = answer->windows.from_us;
        uint32_t host;

        for (size_t i = 0; i < query->n_streams; i++)
                if (query->streams[i].source == SOURCE_OSD_HISTOGRAM &&
                        query->streams[i].last_us > from_us &&
                        topology_find_host(query->topology, &query->streams[i].host, &host) == 0 &&
                        topology_host_in(query->topology, host, answer->cluster))
                        return true;
        return false;
}

static int fill_histograms(struct report_answer *answer)
{
        answer->input.histograms = has_histograms(answer);
        if (!answer->input.histograms || answer->report->fates[REPORT_USED] == 0)
                return 0;
        /* Reads, writes, and the bytes written by read-modify-writes. */
        for (uint32_t histogram = 0; histogram < 3; histogram++)
                for (uint32_t latency = 0; latency < METRIC_CELL_LATENCIES;
                        latency += LATENCIES_AT_ONCE) {
                        int r = add_cells(answer, histogram, latency);

                        if (r < 0)
                                return r;
                }
        return 0;
}

/* ---- the request ---- */

static const struct facts_cluster *facts_of(const struct report_answer *answer)
{
        return answer->query->topology->clusters[answer->cluster].facts;
}

static bool is_parallel(const struct report_answer *answer)
{
        const struct topology *topology = answer->query->topology;
        const struct topology_cluster *cluster = &topology->clusters[answer->cluster];

        for (uint32_t i = 0; i < cluster->n_osds; i++)
                if (!topology->osds[cluster->first_osd + i].facts->rotational)
                        return true;
        return false;
}

/* Short windows, so that a load has several, but never below two periods of the pool statistics. */
static void choose_step(const struct report_answer *answer, struct api_window *window)
{
        static const uint32_t seconds[] = {
                10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400};
        const size_t n = sizeof(seconds) / sizeof(seconds[0]);
        const struct facts_cluster *facts = facts_of(answer);
        uint64_t period_us = facts && facts->mgr_stats_period_us ? facts->mgr_stats_period_us
                                                                 : PERIOD_DEFAULT_US;
        uint64_t range_us = (uint64_t)(window->to_us - window->from_us);
        size_t i = 0;

        while (i + 1 < n && (seconds[i] * 1000000ull < 2 * period_us ||
                                    range_us > seconds[i] * 1000000ull * WINDOWS_WANTED))
                i++;
        window->step_us = seconds[i] * 1000000ull;
        window->from_us -= window->from_us % (int64_t)window->step_us;
        window->n = (uint32_t)((uint64_t)(window->to_us - window->from_us) / window->step_us);
        window->to_us = window->from_us + (int64_t)(window->n * window->step_us);
}

static int parse(
        const struct api_request *request, struct api_response *response, struct api_window *ret)
{
        return api_parameter(request, "step") ? api_parse_window(request, response, "-1d", ret)
                                              : api_parse_range(request, response, "-1d", ret);
}

static int compute(struct report_answer *answer)
{
        int r;

        answer->list = calloc(answer->windows.n + 1, sizeof(*answer->list));
        if (!answer->list)
                return -ENOMEM;
        if (answer->windows.n > 0) {
                r = fill_windows(answer);
                if (r < 0)
                        return r;
        }
        answer->input = (struct report_input){
                .seconds = (double)answer->windows.step_us / 1e6,
                .windows = answer->list,
                .n = answer->windows.n,
                .parallel = is_parallel(answer),
        };
        r = report_compute(&answer->input, &answer->report);
        if (r < 0)
                return r;
        r = fill_histograms(answer);
        if (r < 0)
                return r;
        report_describe(&answer->input, answer->report);
        return 0;
}

int api_report(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        CLEANUP(query) struct query *query = NULL;
        struct report_answer storage = {0};
        CLEANUP(report_answer) struct report_answer *answer = &storage;
        struct text text_storage = {0};
        CLEANUP(text_object) struct text *text = &text_storage;
        size_t size;
        char *body;
        int r;

        r = parse(request, response, &answer->window);
        if (r != 0)
                return r < 0 ? r : 0;
        r = query_open(reader, request->now_us, request->deadline_us, &query);
        if (r < 0)
                return api_query_problem(request, response, r);
        answer->query = query;
        r = api_query_cluster(query, request, response, &answer->cluster);
        if (r != 0)
                return r < 0 ? r : 0;
        if (!api_parameter(request, "step"))
                choose_step(answer, &answer->window);
        api_query_trim(
                query, answer->cluster, layers_sources(LAYERS), &answer->window, &answer->windows);
        r = compute(answer);
        if (r == 0)
                r = report_write(answer, text);
        if (r == 0)
                r = text_take(text, &body, &size);
        if (r < 0)
                return api_query_problem(request, response, r);
        return api_text(response, 200, body, size);
}
