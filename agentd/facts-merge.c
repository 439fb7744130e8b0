#include "agentd/facts-merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

static void json_cleanup(json_t **json)
{
        json_decref(*json);
}

static int append(void **list, size_t *count, const void *more, size_t n_more, size_t size)
{
        char *longer;

        if (n_more == 0)
                return 0;
        longer = reallocarray(*list, *count + n_more, size);
        if (!longer)
                return -ENOMEM;
        memcpy(longer + *count * size, more, n_more * size);
        *list = longer;
        *count += n_more;
        return 0;
}

static int borrow(const struct facts *facts, struct facts *merged)
{
        int r;

        if (!facts)
                return 0;
        r = append((void **)&merged->devices, &merged->n_devices, facts->devices, facts->n_devices,
                sizeof(*facts->devices));
        if (r < 0)
                return r;
        return append((void **)&merged->clusters, &merged->n_clusters, facts->clusters,
                facts->n_clusters, sizeof(*facts->clusters));
}

/* Borrows: the elements stay the sources', only the two arrays are ours. */
static int borrow_all(const struct sampler *sampler, struct facts *merged)
{
        int r = 0;

        for (int id = SOURCE_NONE + 1; id < SOURCE_MAX_ && r >= 0; id++)
                r = borrow(sampler_get_facts(sampler, (enum source_id)id, 0), merged);
        for (uint32_t i = 1; i < PLAN_CLUSTERS_MAX && r >= 0; i++)
                r = borrow(sampler_get_facts(sampler, SOURCE_CEPH, i), merged);
        return r;
}

int facts_merge(const struct id *host, const struct sampler *sampler, char **ret)
{
        CLEANUP(json) json_t *json = NULL;
        char version[] = STRATA_VERSION;
        struct utsname name;
        struct facts merged = {.host_id = *host, .agent_version = version};
        int r;

        if (uname(&name) < 0)
                return -errno;
        merged.hostname = name.nodename;
        merged.kernel = name.release;
        r = borrow_all(sampler, &merged);
        if (r >= 0)
                r = facts_to_json(&merged, &json);
        free(merged.devices);
        free(merged.clusters);
        if (r < 0)
                return r;
        *ret = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
        return *ret ? 0 : -ENOMEM;
}
