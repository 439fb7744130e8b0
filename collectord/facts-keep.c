#include "collectord/facts-keep.h"

#include <errno.h>
#include <stdlib.h>

/* The facts of @host that the store has; NULL when there are none that can be read. */
static int read_old_facts(struct store_reader *reader, const struct id *host, struct facts **ret)
{
        CLEANUP(str) char *text = NULL;
        CLEANUP(str) char *message = NULL;
        json_t *json;
        int r;

        *ret = NULL;
        r = store_reader_begin(reader);
        if (r == 0)
                r = store_read_host_facts(reader, host, &text);
        store_reader_end(reader);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        json = json_loads(text, 0, NULL);
        r = facts_from_json(json, ret, &message);
        json_decref(json);
        return r == -EINVAL ? 0 : r;
}

static bool tells_cluster(const struct facts *facts, const struct id *fsid)
{
        for (size_t i = 0; i < facts->n_clusters; i++)
                if (id_equal(&facts->clusters[i].fsid, fsid))
                        return true;
        return false;
}

/* Whether the agent could still ask the cluster; one that does not say may. */
static bool could_tell(const struct election_voice *voice, const struct id *fsid)
{
        for (uint32_t i = 0; i < voice->n_clusters; i++)
                if (id_is_zero(&voice->clusters[i]) || id_equal(&voice->clusters[i], fsid))
                        return true;
        return false;
}

/* ---- pools of the past ---- */

static bool is_same_redundancy(const struct facts_pool *a, const struct facts_pool *b)
{
        return a->erasure == b->erasure && a->size == b->size && a->k == b->k && a->m == b->m &&
               a->stripe_unit == b->stripe_unit;
}

static bool still_has(const struct facts_cluster *cluster, const struct facts_pool *pool)
{
        for (size_t i = 0; i < cluster->n_pools; i++)
                if (cluster->pools[i].id == pool->id)
                        return is_same_redundancy(&cluster->pools[i], pool);
        return false;
}

/* Moves it, unless it is one of the @skip first that there is no room for. */
static void move_pool(struct facts_cluster *cluster, struct facts_pool *pool, size_t *skip)
{
        if (*skip > 0) {
                (*skip)--;
                return;
        }
        cluster->past_pools[cluster->n_past_pools++] = *pool;
        *pool = (struct facts_pool){0};
}

static int keep_pools(struct facts_cluster *cluster, struct facts_cluster *old, int64_t now_us)
{
        size_t n = old->n_past_pools, skip;

        for (size_t i = 0; i < old->n_pools; i++)
                n += !still_has(cluster, &old->pools[i]);
        if (n == 0)
                return 0;
        cluster->past_pools = calloc(n, sizeof(*cluster->past_pools));
        if (!cluster->past_pools)
                return -ENOMEM;
        skip = n > FACTS_PAST_POOLS_MAX ? n - FACTS_PAST_POOLS_MAX : 0;
        for (size_t i = 0; i < old->n_past_pools; i++)
                move_pool(cluster, &old->past_pools[i], &skip);
        for (size_t i = 0; i < old->n_pools; i++) {
                if (still_has(cluster, &old->pools[i]))
                        continue;
                old->pools[i].until_us = (uint64_t)now_us;
                move_pool(cluster, &old->pools[i], &skip);
        }
        return 0;
}

static int keep_past(struct facts *facts, struct facts *old, int64_t now_us)
{
        for (size_t i = 0; i < facts->n_clusters; i++)
                for (size_t k = 0; k < old->n_clusters; k++) {
                        int r = 0;

                        if (id_equal(&facts->clusters[i].fsid, &old->clusters[k].fsid))
                                r = keep_pools(&facts->clusters[i], &old->clusters[k], now_us);
                        if (r < 0)
                                return r;
                }
        return 0;
}

/* Moved, not copied. */
static void keep_devices(struct facts *facts, struct facts *old)
{
        if (facts->n_devices > 0)
                return;
        free(facts->devices);
        facts->devices = old->devices;
        facts->n_devices = old->n_devices;
        old->devices = NULL;
        old->n_devices = 0;
}

int facts_keep(struct store_reader *reader, const struct election_voice *voice, int64_t now_us,
        struct facts *facts)
{
        CLEANUP(facts) struct facts *old = NULL;
        struct facts_cluster *clusters;
        int r;

        for (size_t i = 0; i < facts->n_clusters; i++)
                facts->clusters[i].kept = false;
        if (!reader)
                return 0;
        r = read_old_facts(reader, &facts->host_id, &old);
        if (r < 0 || !old)
                return r;
        keep_devices(facts, old);
        if (old->n_clusters == 0)
                return 0;
        r = keep_past(facts, old, now_us);
        if (r < 0)
                return r;
        clusters = reallocarray(
                facts->clusters, facts->n_clusters + old->n_clusters, sizeof(*clusters));
        if (!clusters)
                return -ENOMEM;
        facts->clusters = clusters;
        for (size_t i = 0; i < old->n_clusters && facts->n_clusters < FACTS_CLUSTERS_MAX; i++) {
                const struct id *fsid = &old->clusters[i].fsid;

                if (tells_cluster(facts, fsid) || !could_tell(voice, fsid))
                        continue;
                clusters[facts->n_clusters] = old->clusters[i];
                clusters[facts->n_clusters++].kept = true;
                /* Moved, not copied. */
                old->clusters[i] = (struct facts_cluster){0};
        }
        return 0;
}
