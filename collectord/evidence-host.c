/* The nodes: CPU, pressure, network. */
#include "collectord/evidence-private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum slot {
        CPU_USED,
        CPU_IDLE,
        CPU_STEAL,
        CPU_COUNT,
        PRESSURE_CPU,
        RECEIVED,
        SENT,
        SPEED,
};

#define TERM(metric_, slot_, scale_)                                                               \
        {                                                                                          \
                .metric = METRIC_##metric_, .slot = (slot_), .scale = (scale_),                    \
                .need = RUNG_NEED_SLOT                                                             \
        }

static const struct rung_term terms[] = {
        TERM(HOST_CPU_USER, CPU_USED, 1), TERM(HOST_CPU_SYSTEM, CPU_USED, 1),
        TERM(HOST_CPU_IDLE, CPU_IDLE, 1), TERM(HOST_CPU_IOWAIT, CPU_IDLE, 1),
        TERM(HOST_CPU_STEAL, CPU_STEAL, 1), TERM(HOST_CPU_COUNT, CPU_COUNT, 1),
        TERM(HOST_PRESSURE_CPU_SOME, PRESSURE_CPU, 1e-6), TERM(NIC_RX_BYTES, RECEIVED, 1),
        TERM(NIC_TX_BYTES, SENT, 1), TERM(NIC_SPEED, SPEED, 125000), /* Mbit/s */
};

static void fill_cpu(const struct evidence *evidence, const struct query_result *result,
        uint32_t target, struct evidence_host *host)
{
        double used = rung_sum(result->table, target, CPU_USED, 0);
        double steal = rung_sum(result->table, target, CPU_STEAL, 0);
        double all = used + rung_sum(result->table, target, CPU_IDLE, 0);

        if (!isnan(steal))
                all += steal;
        /* A gauge comes as its integral over the window. */
        host->cpus = rung_sum(result->table, target, CPU_COUNT, 0) / evidence->seconds;
        host->busy = used / all;
        host->steal = steal / all;
        host->pressure_cpu = rung_sum(result->table, target, PRESSURE_CPU, 0) / evidence->seconds;
}

/* The interface that is nearest to its speed, or the busiest of those whose speed nobody knows. */
static void fill_nic(const struct evidence *evidence, const struct query_result *result,
        uint32_t target, struct evidence_host *host)
{
        double received = rung_sum(result->table, target, RECEIVED, 0) / evidence->seconds;
        double sent = rung_sum(result->table, target, SENT, 0) / evidence->seconds;
        double speed = rung_sum(result->table, target, SPEED, 0) / evidence->seconds;
        double rate = fmax(received, sent);

        if (!(speed > 0))
                speed = NAN;
        if (isnan(rate) || (rate / speed < host->nic_rate / host->nic_speed) ||
                (isnan(speed) && rate <= host->nic_rate))
                return;
        host->nic_rate = rate;
        host->nic_speed = speed;
        snprintf(host->nic, sizeof(host->nic), "%.31s", result->targets[target].key);
}

static void fill_host(const struct evidence *evidence, const struct query_result *result,
        struct evidence_host *host)
{
        for (uint32_t i = 0; i < result->table->n_targets; i++) {
                const struct query_target *target = &result->targets[i];

                if (target->host != host->name) /* of one topology */
                        continue;
                if (strcmp(target->key, "host") == 0)
                        fill_cpu(evidence, result, i, host);
                else if (strncmp(target->key, "osd.", 4) != 0) /* a process of an OSD */
                        fill_nic(evidence, result, i, host);
        }
}

static void fill_osd_run(struct evidence *evidence, struct evidence_host *host)
{
        double run = 0;

        for (size_t i = 0; i < evidence->n_osds; i++)
                if (evidence->osds[i].host == host->name &&
                        !isnan(evidence->osds[i].values[EVIDENCE_RUN_TIME]))
                        run += evidence->osds[i].values[EVIDENCE_RUN_TIME];
        host->osd_run = run > 0 ? run / evidence->seconds / host->cpus : NAN;
}

int evidence_add_hosts(struct evidence_job *job)
{
        const struct topology *topology = job->query->topology;
        /* Sampled less often: its own window, else its last row would hold back all. */
        struct rung_windows window = evidence_window(job, 1u << SOURCE_HOST);
        CLEANUP(query_result) struct query_result *result = NULL;
        struct evidence *evidence = job->evidence;
        int r;

        if (window.from_us > job->window.from_us)
                window.from_us = job->window.from_us;
        r = evidence_query(job, SOURCE_HOST, QUERY_BY_ENTITY, &window, terms,
                sizeof(terms) / sizeof(terms[0]), &result);
        if (r < 0)
                return r;
        evidence->hosts = calloc(topology->n_hosts + 1, sizeof(*evidence->hosts));
        if (!evidence->hosts)
                return -ENOMEM;
        for (uint32_t i = 0; i < topology->n_hosts; i++) {
                struct evidence_host *host = &evidence->hosts[evidence->n_hosts];

                if (!topology_host_in(topology, i, job->cluster) || job->host_silent[i])
                        continue;
                *host = (struct evidence_host){
                        .name = topology->hosts[i].facts->hostname,
                        .cpus = NAN,
                        .busy = NAN,
                        .steal = NAN,
                        .pressure_cpu = NAN,
                        .nic_speed = NAN,
                };
                fill_host(evidence, result, host);
                fill_osd_run(evidence, host);
                evidence->n_hosts++;
        }
        return 0;
}
