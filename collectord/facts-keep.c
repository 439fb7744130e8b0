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

int facts_keep(struct store_reader *reader, const struct election_voice *voice, struct facts *facts)
{
        CLEANUP(facts) struct facts *old = NULL;
        struct facts_cluster *clusters;
        int r;

        for (size_t i = 0; i < facts->n_clusters; i++)
                facts->clusters[i].kept = false;
        if (!reader)
                return 0;
        r = read_old_facts(reader, &facts->host_id, &old);
        if (r < 0 || !old || old->n_clusters == 0)
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
