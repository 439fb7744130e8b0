/* The pools and both ladders. Pool totals come late, so that they have a window of their own. */
#include "collectord/evidence-private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "collectord/expected.h"
#include "collectord/layers.h"

enum slot { READS, READ_BYTES, WRITES, WRITE_BYTES, STORED };

#define TERM(metric_, slot_)                                                                       \
        {                                                                                          \
                .metric = METRIC_POOL_##metric_, .slot = (slot_), .scale = 1,                      \
                .need = RUNG_NEED_SLOT                                                             \
        }
static const struct rung_term pool_terms[] = {TERM(READ_OPS, READS), TERM(READ_BYTES, READ_BYTES),
        TERM(WRITE_OPS, WRITES), TERM(WRITE_BYTES, WRITE_BYTES), TERM(STORED_BYTES, STORED)};

#define ALL_LAYERS                                                                                 \
        (LAYERS_BIT(LAYER_FILESYSTEM) | LAYERS_BIT(LAYER_OSD) | LAYERS_BIT(LAYER_OBJECTSTORE) |    \
                LAYERS_BIT(LAYER_STORAGE))

static int add_pools(struct evidence_job *job, const struct rung_windows *window)
{
        struct evidence *evidence = job->evidence;
        const struct query_result *result;
        int r;

        r = evidence_query(job, SOURCE_CEPH, QUERY_BY_POOL, window, pool_terms,
                sizeof(pool_terms) / sizeof(pool_terms[0]), &evidence->pools_result);
        if (r < 0)
                return r;
        result = evidence->pools_result;
        evidence->pools = calloc(result->table->n_targets + 1, sizeof(*evidence->pools));
        if (!evidence->pools)
                return -ENOMEM;
        for (uint32_t i = 0; i < result->table->n_targets; i++) {
                const struct facts_pool *facts = topology_find_pool(job->query->topology,
                        job->cluster, result->targets[i].pool, window->from_us);
                struct evidence_pool *pool = &evidence->pools[evidence->n_pools++];

                *pool = (struct evidence_pool){
                        .name = result->targets[i].key,
                        .facts = facts,
                        .erasure = facts && facts->erasure,
                        .k = facts ? facts->k : 0,
                        .stripe_unit = facts ? facts->stripe_unit : 0,
                        .factor = expected_factor(facts),
                        .reads = rung_sum(result->table, i, READS, 0),
                        .read_bytes = rung_sum(result->table, i, READ_BYTES, 0),
                        .writes = rung_sum(result->table, i, WRITES, 0),
                        .write_bytes = rung_sum(result->table, i, WRITE_BYTES, 0),
                        .stored_bytes = rung_sum(result->table, i, STORED, 0) / evidence->seconds,
                };
                if (isnan(pool->factor) && pool->write_bytes > 0)
                        evidence_doubt(evidence,
                                "The redundancy of the pool %s cannot be read: what amplification "
                                "is expected is not known.",
                                pool->name);
        }
        return 0;
}

struct sums {
        struct query_result *osd, *device;
        struct layers *layers;
};

static void sums_done(struct sums *sums)
{
        query_result_free(sums->osd);
        query_result_free(sums->device);
        layers_close(sums->layers);
}
DEFINE_CLEANUP(sums, struct sums *, sums_done)

static int read_sums(
        const struct evidence_job *job, const struct rung_windows *window, struct sums *sums)
{
        struct layers_spec spec = {
                .cluster = job->cluster,
                .windows = *window,
                .by = QUERY_BY_CLUSTER,
                .layers = ALL_LAYERS,
                .directions = 1u << RATIO_WRITE | 1u << RATIO_READ,
                .measures = 1u << RATIO_BYTES,
        };
        int r;

        r = layers_open(job->query, &spec, &sums->layers);
        if (r < 0)
                return r;
        r = evidence_query(job, SOURCE_OSD, QUERY_BY_CLUSTER, window, ladder_terms, ladder_n_terms,
                &sums->osd);
        if (r < 0)
                return r;
        return evidence_query(job, SOURCE_DISKSTATS, QUERY_BY_CLUSTER, window, ladder_device_terms,
                ladder_n_device_terms, &sums->device);
}

static struct ladder_store store_of(const struct evidence_job *job)
{
        struct ladder_store store = {.rotational = NAN};

        for (uint32_t i = 0; i < job->topology->n_osds; i++)
                ladder_store_add(&store,
                        job->query->topology->osds[job->topology->first_osd + i].facts, i + 1);
        return store;
}

static int compute(const struct evidence_job *job, const struct sums *sums,
        enum ratio_direction direction, struct ladder **ret)
{
        CLEANUP(mem)
        struct ladder_member *pools = calloc(job->evidence->n_pools + 1, sizeof(*pools));
        bool write = direction == RATIO_WRITE;
        struct ladder_member device = {
                .name = "devices",
                .bytes = rung_sum(sums->device->table, 0,
                        write ? LADDER_DEVICE_WRITE : LADDER_DEVICE_READ, 0),
                .ops = rung_sum(sums->device->table, 0,
                        write ? LADDER_DEVICE_WRITE_OPS : LADDER_DEVICE_READ_OPS, 0),
                .factor = NAN,
        };
        double osd[LADDER_SLOTS_MAX_];
        struct ladder_input input = {
                .direction = direction,
                .seconds = job->evidence->seconds,
                .store = store_of(job),
                .osd = osd,
                .pools = pools,
                .devices = &device,
                .n_devices = 1,
                .noise = job->evidence->noise,
        };
        size_t n;
        const struct layers_target *target = layers_get_targets(sums->layers, &n);

        if (!pools)
                return -ENOMEM;
        for (size_t i = 0; i < job->evidence->n_pools; i++) {
                const struct evidence_pool *pool = &job->evidence->pools[i];

                pools[input.n_pools++] = (struct ladder_member){
                        .name = pool->name,
                        .bytes = write ? pool->write_bytes : pool->read_bytes,
                        .ops = write ? pool->writes : pool->reads,
                        .factor = pool->factor,
                        .erasure = pool->erasure,
                        .facts = pool->facts,
                };
        }
        for (uint32_t i = 0; i < LADDER_SLOTS_MAX_; i++)
                osd[i] = rung_sum(sums->osd->table, 0, i, 0);
        for (size_t i = 0; i < LADDER_RUNGS; i++)
                layers_rung(sums->layers, target, LAYER_FILESYSTEM + i, direction, RATIO_BYTES, 0,
                        &input.rungs[i]);
        return ladder_compute(&input, ret);
}

int evidence_add_ladders(struct evidence_job *job)
{
        struct rung_windows window = evidence_window(job, layers_sources(ALL_LAYERS));
        struct sums storage = {0};
        CLEANUP(sums) struct sums *sums = &storage;
        size_t n;
        int r;

        r = add_pools(job, &window);
        if (r < 0)
                return r;
        r = read_sums(job, &window, sums);
        if (r < 0)
                return r;
        layers_noise(sums->layers, layers_get_targets(sums->layers, &n), 0, &job->evidence->noise);
        for (unsigned direction = 0; direction < 2; direction++) {
                r = compute(job, sums, direction, &job->evidence->ladders[direction]);
                if (r < 0)
                        return r;
        }
        return 0;
}
