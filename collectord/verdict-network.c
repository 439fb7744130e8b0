/* Rules about what is between the machines, and about how much the clients ask for. */
#include "collectord/verdict-private.h"

#include <math.h>
#include <string.h>

#define NIC_SHARE 0.9          /* of the link's speed; frames and acknowledgements need the rest */
/* Of the time that operations spend in OSDs. Measured: 0.43 to 0.47 behind a slow network to clients
 * on slow disks, up to 0.23 between OSDs (their messages are counted, too), else below 0.1. */
#define RECEIVE_SHARE 0.35
#define REPLICA_SHARE 0.6      /* of a write's time */
#define NETWORK_TIME 0.005     /* seconds; a healthy network takes less for any request */
#define CLIENT_IN_FLIGHT 2.0   /* fewer: mostly one request waits for the other */
#define CLIENT_PER_OSD 0.25    /* operations in flight for each OSD */
#define CLIENT_OPERATIONS 10.0 /* per second, or ... */
#define CLIENT_BYTES (1024.0 * 1024) /* ... per second: fewer are idle, not slow */

void verdict_network_interface(struct verdict_bench *bench)
{
        for (size_t i = 0; i < bench->evidence->n_hosts; i++) {
                const struct evidence_host *host = &bench->evidence->hosts[i];
                double share = host->nic_rate / host->nic_speed;
                struct verdict_finding *finding;

                if (!(share >= NIC_SHARE))
                        continue;
                finding = verdict_add(bench, VERDICT_HOST, host->name, share,
                        "%s of %s moves %.0f MB/s, %.0f %% of its link's speed.", host->nic,
                        host->name, host->nic_rate / 1e6, share * 100);
                verdict_curve(finding,
                        "/series?layer=host&metric=rx_bytes,tx_bytes&entity=%s&host=%s", host->nic,
                        host->name);
                verdict_curve(finding, "/series?layer=osd&metric=write_await,read_await&by=host");
        }
}

/* Seconds of a transaction or a read; 0 where nobody tells. */
static double store_mean(const struct verdict_bench *bench)
{
        double writes = verdict_sum(bench, EVIDENCE_TRANSACTIONS);
        double reads = verdict_sum(bench, EVIDENCE_STORE_READS);
        double time = fmax(0, verdict_sum(bench, EVIDENCE_TRANSACTION_TIME)) +
                      fmax(0, verdict_sum(bench, EVIDENCE_STORE_READ_TIME));
        double n = fmax(0, writes) + fmax(0, reads);

        return n > 0 ? time / n : 0;
}

/*
 * An OSD counts a message's time from its first byte. What it takes until the message is complete
 * is the network's, unless the OSD has no CPU to read it.
 */
void verdict_network_clients(struct verdict_bench *bench)
{
        double receive = verdict_sum(bench, EVIDENCE_RECEIVE_TIME);
        double seconds = bench->evidence->seconds;
        double in_osds = bench->in_flight * seconds;
        double operations = (bench->writes + bench->reads) * seconds;
        double store = store_mean(bench);
        struct verdict_finding *finding;

        if (verdict_has(bench, VERDICT_RANK_SATURATED) || !(operations >= seconds) ||
                !(receive >= RECEIVE_SHARE * in_osds) ||
                !(receive >= fmax(NETWORK_TIME, store) * operations))
                return;
        finding = verdict_add(bench, VERDICT_CLUSTER, "cluster", receive / in_osds,
                "Requests arrive slowly: from the first byte to the last one it takes %.1f ms for "
                "each "
                "client operation, %.0f %% of the time that they spend in OSDs, while no "
                "device and no OSD is full (%.1f operations in flight).",
                receive / operations * 1e3, receive / in_osds * 100, bench->in_flight);
        verdict_curve(finding, "/series?layer=osd&metric=op_before_queue_op_lat_time,op_before_"
                               "queue_op_lat_count");
        verdict_curve(finding, "/series?layer=osd&metric=write_await");
        verdict_curve(finding, "/series?layer=host&metric=rx_bytes,tx_bytes&by=host");
}

/* Of the OSDs' mean times for a replica, the longest: one that is slow explains the waiting. */
static double slowest_replica(const struct verdict_bench *bench)
{
        double slowest = 0;

        for (size_t i = 0; i < bench->evidence->n_osds; i++) {
                const double *v = bench->evidence->osds[i].values;

                if (v[EVIDENCE_REPLICAS] > 0)
                        slowest = fmax(slowest, v[EVIDENCE_REPLICA_TIME] / v[EVIDENCE_REPLICAS]);
        }
        return slowest;
}

/* Shards of erasure-coded pools are not counted by all releases. */
static bool is_replicated(const struct verdict_bench *bench)
{
        double replicated = 0, erasure = 0;

        for (size_t i = 0; i < bench->evidence->n_pools; i++) {
                const struct evidence_pool *pool = &bench->evidence->pools[i];

                if (pool->writes > 0)
                        *(pool->erasure ? &erasure : &replicated) += pool->writes;
        }
        return erasure <= replicated;
}

/* A write that the primary works on and neither its own store nor any replica does. */
void verdict_network_replicas(struct verdict_bench *bench)
{
        double writes = bench->writes * bench->evidence->seconds;
        double process = verdict_sum(bench, EVIDENCE_WRITE_PROCESS_TIME) / writes;
        double store = verdict_sum(bench, EVIDENCE_TRANSACTION_TIME) /
                       verdict_sum(bench, EVIDENCE_TRANSACTIONS);
        double replica = slowest_replica(bench);
        double rest = process - fmax(store, replica);
        struct verdict_finding *finding;

        if (verdict_has(bench, VERDICT_RANK_SATURATED) || !(replica > 0) || !is_replicated(bench) ||
                !(rest >= REPLICA_SHARE * bench->write_latency) || !(rest >= NETWORK_TIME))
                return;
        finding = verdict_add(bench, VERDICT_CLUSTER, "cluster", rest / bench->write_latency,
                "Writes wait for the network between OSDs: the primary waits %.1f ms, a replica "
                "takes at most %.1f ms and the object store %.1f ms, so that %.1f ms (%.0f %% of a "
                "write) are on the way.",
                process * 1e3, replica * 1e3, store * 1e3, rest * 1e3,
                rest / bench->write_latency * 100);
        verdict_curve(finding, "/series?layer=osd&metric=write_await");
        verdict_curve(
                finding, "/series?layer=osd&metric=subop_w_latency_time,subop_w_latency_count");
        verdict_curve(finding, "/series?layer=host&metric=rx_bytes,tx_bytes&by=host");
}

static double client_bytes(const struct verdict_bench *bench)
{
        double bytes = 0;

        for (size_t i = 0; i < bench->evidence->n_pools; i++) {
                const struct evidence_pool *pool = &bench->evidence->pools[i];

                if (!isnan(pool->read_bytes) && !isnan(pool->write_bytes))
                        bytes += pool->read_bytes + pool->write_bytes;
        }
        return bytes / bench->evidence->seconds;
}

/* Little's law: operations in flight = operations/s x latency. */
void verdict_low_concurrency(struct verdict_bench *bench)
{
        double limit = fmax(CLIENT_IN_FLIGHT, CLIENT_PER_OSD * (double)bench->evidence->n_osds);
        double operations = bench->writes + bench->reads;
        double busiest = 0;
        struct verdict_finding *finding;

        if (verdict_has(bench, VERDICT_RANK_SATURATED) || !(operations >= 1) ||
                !(bench->in_flight < limit) ||
                (!(operations >= CLIENT_OPERATIONS) && !(client_bytes(bench) >= CLIENT_BYTES)))
                return;
        for (size_t i = 0; i < bench->evidence->n_devices; i++)
                busiest = fmax(busiest, bench->devices[i].queue);
        finding = verdict_add(bench, VERDICT_CLUSTER, "cluster", 1 - bench->in_flight / limit,
                "The clients keep only %.2f operations in flight (%.0f/s of %.1f ms), and nothing "
                "waits for a device, a CPU or the network: the longest queue of a device is %.1f.",
                bench->in_flight, operations, bench->in_flight / operations * 1e3, busiest);
        verdict_curve(finding, "/series?layer=osd&metric=op_w_latency_time,op_r_latency_time");
        verdict_curve(finding, "/series?layer=filesystem&metric=write_ops,read_ops");
        verdict_curve(finding, "/series?layer=storage&metric=queue&by=device&top=12");
}
