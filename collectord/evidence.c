#include "collectord/evidence-private.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int evidence_new(struct evidence **ret)
{
        struct evidence *evidence = calloc(1, sizeof(*evidence));

        if (!evidence)
                return -ENOMEM;
        evidence->noise = (struct ratio_noise){NAN, NAN, NAN, NAN};
        *ret = evidence;
        return 0;
}

struct evidence *evidence_free(struct evidence *evidence)
{
        if (!evidence)
                return NULL;
        for (size_t i = 0; i < 2; i++)
                ladder_free(evidence->ladders[i]);
        query_result_free(evidence->devices_result);
        query_result_free(evidence->pools_result);
        free(evidence->osds);
        free(evidence->devices);
        free(evidence->hosts);
        free(evidence->pools);
        free(evidence);
        return NULL;
}

void evidence_doubt(struct evidence *evidence, const char *format, ...)
{
        va_list arguments;

        if (evidence->n_doubts < EVIDENCE_DOUBTS_MAX) {
                va_start(arguments, format);
                vsnprintf(evidence->doubts[evidence->n_doubts], EVIDENCE_DOUBT_MAX, format,
                        arguments);
                va_end(arguments);
        }
        evidence->n_doubts++;
}

struct rung_windows evidence_window(const struct evidence_job *job, unsigned sources)
{
        int64_t end_us = query_frontier(job->query, job->cluster, sources);
        struct rung_windows window = job->window;

        window.from_us = end_us - (int64_t)window.step_us;
        return window;
}

int evidence_query(const struct evidence_job *job, enum source_id source, enum query_by by,
        const struct rung_windows *window, const struct rung_term *terms, uint32_t n_terms,
        struct query_result **ret)
{
        struct query_spec spec = {
                .cluster = job->cluster,
                .source = source,
                .windows = *window,
                .by = by,
                .terms = terms,
                .n_terms = n_terms,
        };

        return query_run(job->query, &spec, ret);
}

uint32_t evidence_target(
        const struct query_result *result, const char *key, const char *host, uint32_t *hint)
{
        uint32_t n = result->table->n_targets;

        for (uint32_t i = 0; i < n; i++) {
                uint32_t at = (*hint + i) % n;
                const struct query_target *target = &result->targets[at];

                if (strcmp(target->key, key) != 0 ||
                        (host && (!target->host || strcmp(target->host, host) != 0)))
                        continue;
                *hint = at + 1;
                return at;
        }
        return UINT32_MAX;
}

/* A host whose clock is wrong tells of other moments. */
static int see_agent(void *userdata, const struct store_agent *agent)
{
        struct evidence_job *job = userdata;
        const struct topology *topology = job->query->topology;
        double offset = (double)agent->clock_offset_us / 1e6;
        uint32_t host;

        /* A clock that nobody has compared is believed. */
        if (agent->clock_offset_us == INT64_MIN ||
                topology_find_host(topology, &agent->host, &host) < 0 ||
                !topology_host_in(topology, host, job->cluster) ||
                llabs(agent->clock_offset_us) <= EVIDENCE_CLOCK_MAX_US)
                return 0;
        job->host_silent[host] = true;
        evidence_doubt(job->evidence,
                "The clock of %s is %.0f s %s: its samples stand at other times and are left out.",
                topology->hosts[host].facts->hostname, fabs(offset),
                offset > 0 ? "ahead" : "behind");
        return 0;
}

static int gather(struct evidence_job *job)
{
        int r;

        r = store_read_agents(job->query->reader, see_agent, job);
        if (r < 0)
                return r;
        r = evidence_add_devices(job);
        if (r < 0)
                return r;
        r = evidence_add_osds(job);
        if (r < 0)
                return r;
        r = evidence_add_hosts(job);
        if (r < 0)
                return r;
        return evidence_add_ladders(job);
}

int evidence_gather(
        const struct query *query, uint32_t cluster, uint64_t window_us, struct evidence **ret)
{
        const unsigned sources = 1u << SOURCE_OSD | 1u << SOURCE_DISKSTATS;
        CLEANUP(evidence) struct evidence *evidence = NULL;
        CLEANUP(mem) bool *silent = calloc(query->topology->n_hosts + 1, sizeof(*silent));
        struct evidence_job job = {
                .query = query,
                .cluster = cluster,
                .topology = &query->topology->clusters[cluster],
                .window = {.step_us = window_us, .n = 1},
                .host_silent = silent,
        };
        int r;

        if (!silent)
                return -ENOMEM;
        r = evidence_new(&evidence);
        if (r < 0)
                return r;
        job.evidence = evidence;
        job.window = evidence_window(&job, sources);
        evidence->from_us = job.window.from_us;
        evidence->to_us = job.window.from_us + (int64_t)window_us;
        evidence->seconds = (double)window_us / 1e6;
        r = gather(&job);
        if (r < 0)
                return r;
        *ret = STEAL(evidence);
        return 0;
}
