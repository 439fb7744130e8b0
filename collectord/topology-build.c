#include "collectord/topology-leaves.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int compare_id(const struct id *a, const struct id *b)
{
        return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static int compare_inputs(const void *a, const void *b)
{
        const struct topology_input *x = a, *y = b;

        return compare_id(&x->facts->host_id, &y->facts->host_id);
}

static int compare_devices(const void *a, const void *b)
{
        const struct topology_device *x = a, *y = b;

        if (x->host != y->host)
                return x->host < y->host ? -1 : 1;
        return strcmp(x->facts->name, y->facts->name);
}

static int compare_identities(const void *a, const void *b, void *userdata)
{
        const struct topology *topology = userdata;
        const struct topology_device *x = &topology->devices[*(const uint32_t *)a];
        const struct topology_device *y = &topology->devices[*(const uint32_t *)b];

        if (x->host != y->host)
                return x->host < y->host ? -1 : 1;
        return strcmp(x->facts->identity, y->facts->identity);
}

static int build_hosts(struct topology *topology)
{
        size_t n_devices = 0, n = 0;

        for (size_t i = 0; i < topology->n_hosts; i++)
                n_devices += topology->inputs[i].facts->n_devices;
        topology->hosts = calloc(topology->n_hosts + 1, sizeof(*topology->hosts));
        topology->devices = calloc(n_devices + 1, sizeof(*topology->devices));
        topology->by_identity = calloc(n_devices + 1, sizeof(*topology->by_identity));
        if (!topology->hosts || !topology->devices || !topology->by_identity)
                return -ENOMEM;
        for (size_t i = 0; i < topology->n_hosts; i++) {
                const struct facts *facts = topology->inputs[i].facts;

                topology->hosts[i] = (struct topology_host){
                        .id = facts->host_id,
                        .facts = facts,
                        .first_device = n,
                        .n_devices = facts->n_devices,
                };
                for (size_t k = 0; k < facts->n_devices; k++, n++) {
                        topology->devices[n].host = i;
                        topology->devices[n].facts = &facts->devices[k];
                        topology->by_identity[n] = n;
                }
        }
        topology->n_devices = n;
        qsort(topology->devices, n, sizeof(*topology->devices), compare_devices);
        qsort_r(topology->by_identity, n, sizeof(*topology->by_identity), compare_identities,
                topology);
        return 0;
}

/* A cluster as one host's facts tell it. */
struct candidate {
        const struct facts_cluster *facts;
        int64_t ceph_last_us, updated_us;
};

/* By fsid, the most believable first. */
static int compare_candidates(const void *a, const void *b)
{
        const struct candidate *x = a, *y = b;
        int order = compare_id(&x->facts->fsid, &y->facts->fsid);

        if (order != 0)
                return order;
        if (x->facts->kept != y->facts->kept)
                return x->facts->kept ? 1 : -1;
        if (x->ceph_last_us != y->ceph_last_us)
                return x->ceph_last_us > y->ceph_last_us ? -1 : 1;
        return (y->updated_us > x->updated_us) - (y->updated_us < x->updated_us);
}

static int compare_osds(const void *a, const void *b)
{
        const struct topology_osd *x = a, *y = b;

        if (x->cluster != y->cluster)
                return x->cluster < y->cluster ? -1 : 1;
        return (x->id > y->id) - (x->id < y->id);
}

static int collect_clusters(struct topology *topology)
{
        CLEANUP(mem) struct candidate *candidates = NULL;
        size_t n = 0, n_osds = 0, n_candidates = 0;

        for (size_t i = 0; i < topology->n_hosts; i++)
                n_candidates += topology->inputs[i].facts->n_clusters;
        candidates = calloc(n_candidates + 1, sizeof(*candidates));
        topology->clusters = calloc(n_candidates + 2, sizeof(*topology->clusters));
        if (!candidates || !topology->clusters)
                return -ENOMEM;
        for (size_t i = 0; i < topology->n_hosts; i++)
                for (size_t k = 0; k < topology->inputs[i].facts->n_clusters; k++)
                        candidates[n++] = (struct candidate){
                                .facts = &topology->inputs[i].facts->clusters[k],
                                .ceph_last_us = topology->inputs[i].ceph_last_us,
                                .updated_us = topology->inputs[i].updated_us,
                        };
        qsort(candidates, n, sizeof(*candidates), compare_candidates);
        for (size_t i = 0; i < n; i++) {
                if (id_is_zero(&candidates[i].facts->fsid))
                        continue;
                if (i > 0 && id_equal(&candidates[i].facts->fsid, &candidates[i - 1].facts->fsid))
                        continue;
                topology->clusters[topology->n_clusters++] = (struct topology_cluster){
                        .fsid = candidates[i].facts->fsid,
                        .facts = candidates[i].facts,
                        .n_osds = candidates[i].facts->n_osds,
                };
                n_osds += candidates[i].facts->n_osds;
        }
        topology->osds = calloc(n_osds + 1, sizeof(*topology->osds));
        return topology->osds ? 0 : -ENOMEM;
}

static int compare_labels(const char *a, const char *b)
{
        size_t n_a = strcspn(a, "."), n_b = strcspn(b, ".");
        int order = strncasecmp(a, b, n_a < n_b ? n_a : n_b);

        return order != 0 ? order : (n_a > n_b) - (n_a < n_b);
}

/* Hosts by name, for OSDs to find theirs: full names stand beside the short one. */
static int compare_names(const void *a, const void *b, void *userdata)
{
        const struct topology *topology = userdata;
        const char *x = topology->hosts[*(const uint32_t *)a].facts->hostname;
        const char *y = topology->hosts[*(const uint32_t *)b].facts->hostname;

        int order = compare_labels(x, y);

        return order != 0 ? order : strcasecmp(x, y);
}

/* The equal name, else the only host that is the same up to the first dot. */
static uint32_t match_host(
        const struct topology *topology, const uint32_t *by_name, const char *name)
{
        uint32_t low = 0, high = topology->n_hosts, found = TOPOLOGY_NONE;

        while (low < high) {
                uint32_t middle = (low + high) / 2;
                const char *other = topology->hosts[by_name[middle]].facts->hostname;

                if (compare_labels(other, name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (; low < topology->n_hosts; low++) {
                const char *other = topology->hosts[by_name[low]].facts->hostname;

                if (compare_labels(other, name) != 0)
                        break;
                if (strcasecmp(other, name) == 0)
                        return by_name[low];
                if (topology_same_host(other, name))
                        found = found == TOPOLOGY_NONE ? by_name[low] : TOPOLOGY_NONE - 1;
        }
        return found >= topology->n_hosts ? TOPOLOGY_NONE : found;
}

static int build_osds(struct topology *topology)
{
        CLEANUP(mem) uint32_t *by_name = calloc(topology->n_hosts + 1, sizeof(*by_name));
        CLEANUP(mem) uint32_t *counted = calloc(topology->n_hosts + 1, sizeof(*counted));

        if (!by_name || !counted)
                return -ENOMEM;
        for (size_t i = 0; i < topology->n_hosts; i++)
                by_name[i] = i;
        qsort_r(by_name, topology->n_hosts, sizeof(*by_name), compare_names, topology);
        for (size_t c = 0; c < topology->n_clusters; c++) {
                struct topology_cluster *cluster = &topology->clusters[c];

                cluster->first_osd = topology->n_osds;
                for (size_t k = 0; k < cluster->n_osds; k++) {
                        const struct facts_osd *facts = &cluster->facts->osds[k];
                        uint32_t host = match_host(topology, by_name, facts->host);

                        topology->osds[topology->n_osds++] = (struct topology_osd){
                                .cluster = c, .id = facts->id, .facts = facts, .host = host};
                        if (host == TOPOLOGY_NONE)
                                continue;
                        topology->hosts[host].has_osds = true;
                        cluster->n_hosts += counted[host] != c + 1;
                        counted[host] = c + 1;
                }
        }
        qsort(topology->osds, topology->n_osds, sizeof(*topology->osds), compare_osds);
        return 0;
}

/* Of two facts of one host (there should be none) the newer one stays. */
static void take_inputs(struct topology *topology, const struct topology_input *inputs, size_t n)
{
        for (size_t i = 0; i < n; i++)
                topology->inputs[i] = inputs[i];
        qsort(topology->inputs, n, sizeof(*inputs), compare_inputs);
        for (size_t i = 0; i < n; i++) {
                struct topology_input *last, input = topology->inputs[i];

                last = topology->n_hosts ? &topology->inputs[topology->n_hosts - 1] : NULL;
                if (!last || !id_equal(&last->facts->host_id, &input.facts->host_id)) {
                        topology->inputs[topology->n_hosts++] = input;
                        continue;
                }
                if (input.updated_us < last->updated_us) {
                        facts_free(input.facts);
                        continue;
                }
                facts_free(last->facts);
                *last = input;
        }
}

int topology_new(const struct topology_input *inputs, size_t n, struct topology **ret)
{
        CLEANUP(topology) struct topology *topology = calloc(1, sizeof(*topology));
        int r = -ENOMEM;

        if (topology)
                topology->inputs = calloc(n + 1, sizeof(*topology->inputs));
        if (!topology || !topology->inputs) {
                for (size_t i = 0; i < n; i++)
                        facts_free(inputs[i].facts);
                return r;
        }
        take_inputs(topology, inputs, n);
        r = build_hosts(topology);
        if (r < 0)
                return r;
        r = collect_clusters(topology);
        if (r < 0)
                return r;
        r = build_osds(topology);
        if (r < 0)
                return r;
        r = topology_build_leaves(topology);
        if (r < 0)
                return r;
        topology_build_none(topology);
        *ret = STEAL(topology);
        return 0;
}

struct topology *topology_free(struct topology *topology)
{
        if (!topology)
                return NULL;
        for (size_t i = 0; i < topology->n_hosts; i++)
                facts_free(topology->inputs[i].facts);
        free(topology->inputs);
        free(topology->hosts);
        free(topology->devices);
        free(topology->osds);
        free(topology->clusters);
        free(topology->osd_of);
        free(topology->by_identity);
        free(topology);
        return NULL;
}
