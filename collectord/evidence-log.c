/* The evidence as lines of the log, for who wants to know why a verdict is what it is. */
#include "collectord/evidence.h"

#include "lib/log.h"

static void log_osd(const struct evidence *evidence, const struct evidence_osd *osd)
{
        const double *v = osd->values;
        double s = evidence->seconds;

#define RATE(value) v[EVIDENCE_##value] / s
#define MEAN(time, count) v[EVIDENCE_##time] / v[EVIDENCE_##count] * 1e3
        log_debug(
                "%s: %.0f writes/s of %.2f ms (%.2f without queue), %.0f reads/s of %.2f ms, %.0f "
                "replicas/s of %.2f ms, receiving %.3f, %.0f commits/s of %.2f ms and %.2f ms "
                "flush, %.0f transactions/s of %.2f ms (data %.2f ms, throttle %.2f ms), %.0f "
                "store "
                "reads/s of %.2f ms, threads run %.3f and wait %.3f",
                osd->name, RATE(WRITES), MEAN(WRITE_TIME, WRITES), MEAN(WRITE_PROCESS_TIME, WRITES),
                RATE(READS), MEAN(READ_TIME, READS), RATE(REPLICAS), MEAN(REPLICA_TIME, REPLICAS),
                RATE(RECEIVE_TIME), RATE(COMMITS), MEAN(COMMIT_TIME, COMMITS),
                MEAN(FLUSH_TIME, COMMITS), RATE(TRANSACTIONS), MEAN(TRANSACTION_TIME, TRANSACTIONS),
                MEAN(DATA_WAIT_TIME, TRANSACTIONS), MEAN(THROTTLE_TIME, TRANSACTIONS),
                RATE(STORE_READS), MEAN(STORE_READ_TIME, STORE_READS), RATE(RUN_TIME),
                RATE(WAIT_TIME));
        log_debug("%s: %.3g B/s to clients, cache %.3g hit and %.3g missed, onodes %.0f/s hit and "
                  "%.0f/s missed, WAL %.3g, SST %.3g, prefetch %.3g, pushed %.3g, slow %.3g",
                osd->name, RATE(CLIENT_READ_BYTES), RATE(HIT_BYTES), RATE(MISS_BYTES),
                RATE(ONODE_HITS), RATE(ONODE_MISSES), RATE(WAL_BYTES), RATE(SST_BYTES),
                RATE(PREFETCH_BYTES), RATE(PUSHED_BYTES), v[EVIDENCE_SLOW_USED]);
#undef RATE
#undef MEAN
}

static void log_device(const struct evidence *evidence, const struct evidence_device *device)
{
        const double *v = device->values;
        double s = evidence->seconds;

#define RATE(value) v[EVIDENCE_DISK_##value] / s
#define MEAN(time, count) v[EVIDENCE_DISK_##time] / v[EVIDENCE_DISK_##count] * 1e3
        log_debug(
                "%s (%s %s, %u OSDs): %.0f reads/s of %.2f ms, %.3g B/s, %.0f writes/s of %.2f ms, "
                "%.3g B/s, %.0f flushes/s of %.2f ms, %.0f discards/s, queue %.2f, busy %.2f",
                device->name, device->class, device->role, device->n_osds, RATE(READS),
                MEAN(READ_TIME, READS), RATE(READ_BYTES), RATE(WRITES), MEAN(WRITE_TIME, WRITES),
                RATE(WRITE_BYTES), RATE(FLUSHES), MEAN(FLUSH_TIME, FLUSHES), RATE(DISCARDS),
                RATE(WEIGHTED), RATE(BUSY));
#undef RATE
#undef MEAN
}

void evidence_log(const struct evidence *evidence)
{
        for (size_t i = 0; i < evidence->n_osds; i++)
                log_osd(evidence, &evidence->osds[i]);
        for (size_t i = 0; i < evidence->n_devices; i++)
                log_device(evidence, &evidence->devices[i]);
        for (size_t i = 0; i < evidence->n_hosts; i++) {
                const struct evidence_host *host = &evidence->hosts[i];

                log_debug("%s: %.0f CPUs busy %.2f, stolen %.2f, OSDs %.2f, pressure %.2f, %s %.3g "
                          "B/s of %.3g",
                        host->name, host->cpus, host->busy, host->steal, host->osd_run,
                        host->pressure_cpu, host->nic, host->nic_rate, host->nic_speed);
        }
        for (size_t i = 0; i < evidence->n_pools; i++) {
                const struct evidence_pool *pool = &evidence->pools[i];

                log_debug("pool %s: %.0f reads of %.3g B, %.0f writes of %.3g B, %.3g B stored",
                        pool->name, pool->reads, pool->read_bytes / pool->reads, pool->writes,
                        pool->write_bytes / pool->writes, pool->stored_bytes);
        }
        log_debug("scrubbing %.1f, recovering %.1f placement groups, %.3g B recovered; excess of "
                  "writes %.2f",
                evidence->noise.pgs_scrubbing, evidence->noise.pgs_recovering,
                evidence->noise.recovered_bytes,
                evidence->ladders[0] ? evidence->ladders[0]->point.excess : 0);
}
