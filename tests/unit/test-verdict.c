#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "collectord/verdict.h"

#define SECONDS 20.0
#define OSDS 4u
#define MS 1e-3

/* Four OSDs on two hosts with a disk each, under a load that fills none: as measured, 64 KiB
 * random writes from a depth of 16. A test changes what it is about. */
struct cluster {
        struct evidence *evidence;
        struct verdict *verdict;
};

static void set_rate(double *value, double per_second)
{
        *value = per_second * SECONDS;
}

/* @count per second, of @seconds each. */
static void set_mean(
        double *values, unsigned count, unsigned time, double per_second, double seconds)
{
        set_rate(&values[count], per_second);
        set_rate(&values[time], per_second * seconds);
}

static void set_writes(struct evidence_osd *osd, double per_second, double seconds)
{
        set_mean(osd->values, EVIDENCE_WRITES, EVIDENCE_WRITE_TIME, per_second, seconds);
        set_rate(&osd->values[EVIDENCE_WRITE_PROCESS_TIME], per_second * seconds * 0.97);
}

static void set_transactions(struct evidence_osd *osd, double per_second, double seconds)
{
        set_mean(
                osd->values, EVIDENCE_TRANSACTIONS, EVIDENCE_TRANSACTION_TIME, per_second, seconds);
        set_rate(&osd->values[EVIDENCE_DATA_WAIT_TIME], per_second * seconds / 4);
        set_mean(osd->values, EVIDENCE_COMMITS, EVIDENCE_COMMIT_TIME, per_second / 6, seconds / 2);
        set_rate(&osd->values[EVIDENCE_FLUSH_TIME], per_second / 6 * seconds / 6);
        set_mean(
                osd->values, EVIDENCE_REPLICAS, EVIDENCE_REPLICA_TIME, per_second * 2 / 3, seconds);
}

static void set_disk(struct evidence_device *device, double writes, double await, double busy)
{
        set_mean(device->values, EVIDENCE_DISK_WRITES, EVIDENCE_DISK_WRITE_TIME, writes, await);
        set_rate(&device->values[EVIDENCE_DISK_WEIGHTED], writes * await);
        set_rate(&device->values[EVIDENCE_DISK_BUSY], busy);
}

static void fill_osd(struct evidence *evidence, uint32_t i)
{
        static const char *const hosts[] = {"north", "south"};
        struct evidence_osd *osd = &evidence->osds[i];
        struct evidence_device *device = &evidence->devices[i];

        *osd = (struct evidence_osd){
                .id = i, .host = hosts[i / 2], .class = "hdd", .data = i, .journal = i};
        snprintf(osd->name, sizeof(osd->name), "osd.%u", i);
        set_writes(osd, 200, 20 * MS);
        set_transactions(osd, 600, 12 * MS);
        set_rate(&osd->values[EVIDENCE_RUN_TIME], 0.3);
        set_rate(&osd->values[EVIDENCE_WAIT_TIME], 0.3);
        *device = (struct evidence_device){
                .host = osd->host, .class = "hdd", .role = "block", .n_osds = 1, .osd = i};
        snprintf(device->name, sizeof(device->name), "%s/sd%c", osd->host, 'a' + (int)i);
        set_disk(device, 1200, 1.2 * MS, 0.6);
        set_rate(&device->values[EVIDENCE_DISK_WRITE_BYTES], 40e6);
        set_mean(device->values, EVIDENCE_DISK_FLUSHES, EVIDENCE_DISK_FLUSH_TIME, 100, 1 * MS);
}

static int setup(void **state)
{
        struct cluster *cluster = calloc(1, sizeof(*cluster));
        struct evidence *evidence;

        if (!cluster || evidence_new(&cluster->evidence) < 0)
                return -1;
        evidence = cluster->evidence;
        evidence->seconds = SECONDS;
        evidence->noise = (struct ratio_noise){0};
        evidence->osds = calloc(OSDS, sizeof(*evidence->osds));
        evidence->devices = calloc(2 * OSDS, sizeof(*evidence->devices));
        evidence->hosts = calloc(2, sizeof(*evidence->hosts));
        evidence->pools = calloc(2, sizeof(*evidence->pools));
        evidence->n_osds = evidence->n_devices = OSDS;
        evidence->n_hosts = 2;
        evidence->n_pools = 1;
        for (uint32_t i = 0; i < OSDS; i++)
                fill_osd(evidence, i);
        for (uint32_t i = 0; i < 2; i++)
                evidence->hosts[i] = (struct evidence_host){
                        .name = i ? "south" : "north", .cpus = 8, .busy = 0.4, .nic_speed = NAN};
        evidence->pools[0] = (struct evidence_pool){.name = "rbd",
                .factor = 3,
                .writes = 800 * SECONDS,
                .write_bytes = 800 * SECONDS * 65536,
                .stored_bytes = 1e12};
        *state = cluster;
        return 0;
}

static int teardown(void **state)
{
        struct cluster *cluster = *state;

        evidence_free(cluster->evidence);
        verdict_free(cluster->verdict);
        free(cluster);
        return 0;
}

static const struct verdict *judge(struct cluster *cluster)
{
        verdict_free(cluster->verdict);
        cluster->verdict = NULL;
        assert_int_equal(verdict_judge(cluster->evidence, &cluster->verdict), 0);
        return cluster->verdict;
}

static const struct verdict_finding *find(const struct verdict *verdict, const char *rule)
{
        for (uint32_t i = 0; i < verdict->n; i++)
                if (strcmp(verdict->findings[i].rule, rule) == 0)
                        return &verdict->findings[i];
        return NULL;
}

/* The bottleneck, with its entity, a sentence with numbers, advice and curves. */
static void must_be(
        struct cluster *cluster, enum verdict_layer layer, const char *rule, const char *entity)
{
        const struct verdict *verdict = judge(cluster);
        const struct verdict_finding *first = &verdict->findings[0];

        if (!verdict->bottleneck)
                fail_msg("no bottleneck: %s", verdict->sentence);
        assert_string_equal(first->rule, rule);
        assert_string_equal(first->entity, entity);
        assert_string_equal(verdict_layer_name(first->layer), verdict_layer_name(layer));
        assert_non_null(strpbrk(first->sentence, "0123456789"));
        assert_null(strstr(first->sentence, "nan"));
        assert_null(strstr(first->sentence, "inf"));
        assert_int_equal(first->sentence[strlen(first->sentence) - 1], '.');
        assert_true(strlen(first->advice) > 0);
        assert_true(first->n_curves > 0);
        assert_true(first->share > 0 && first->share <= 1);
}

static void must_be_calm(struct cluster *cluster)
{
        const struct verdict *verdict = judge(cluster);

        if (verdict->n > 0)
                fail_msg("%s: %s", verdict->findings[0].rule, verdict->findings[0].sentence);
        assert_false(verdict->bottleneck);
        assert_true(strlen(verdict->sentence) > 0);
}

/* ---- storage ---- */

static void a_healthy_cluster_under_load_has_no_finding(void **state)
{
        must_be_calm(*state);
}

static void a_cluster_without_operations_is_idle_and_not_slow(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++) {
                memset(cluster->evidence->osds[i].values, 0,
                        sizeof(cluster->evidence->osds[i].values));
                memset(cluster->evidence->devices[i].values, 0,
                        sizeof(cluster->evidence->devices[i].values));
        }
        cluster->evidence->pools[0].writes = cluster->evidence->pools[0].write_bytes = 0;
        must_be_calm(cluster);
        assert_string_equal(cluster->verdict->sentence, "Clients ask for nothing.");
}

static void fill_disk(struct evidence *evidence, uint32_t i)
{
        set_disk(&evidence->devices[i], 80, 100 * MS, 0.98);
        set_writes(&evidence->osds[i], 12, 350 * MS);
        set_transactions(&evidence->osds[i], 36, 250 * MS);
}

static void disks_that_are_all_full_are_a_finding_of_their_class(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++)
                fill_disk(cluster->evidence, i);
        must_be(cluster, VERDICT_STORAGE, "saturated_disk", "hdd");
        assert_int_equal(cluster->verdict->findings[0].kind, VERDICT_CLASS);
}

static void disks_that_are_nearly_full_beside_a_full_one_have_it_in_common(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++) {
                fill_disk(cluster->evidence, i);
                set_disk(&cluster->evidence->devices[i], i == 0 ? 80 : 35, 45 * MS, 0.93);
                set_transactions(&cluster->evidence->osds[i], 36, 90 * MS);
        }
        must_be(cluster, VERDICT_STORAGE, "saturated_disk", "hdd");
}

static void a_disk_that_is_busy_all_the_time_is_not_full_when_nothing_waits_for_it(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++)
                set_disk(&cluster->evidence->devices[i], 8000, 0.1 * MS, 1.0);
        must_be_calm(cluster);
}

static void a_parallel_disk_with_a_long_queue_is_not_full_when_it_answers_at_once(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++)
                set_disk(&cluster->evidence->devices[i], 40000, 0.2 * MS, 1.0);
        must_be_calm(cluster);
}

static void one_slow_disk_among_healthy_ones_is_named(void **state)
{
        struct cluster *cluster = *state;

        fill_disk(cluster->evidence, 2);
        must_be(cluster, VERDICT_STORAGE, "slow_disk", "south/sdc");
        assert_null(find(cluster->verdict, "saturated_disk"));
}

static void of_two_disks_none_can_be_called_the_slow_one(void **state)
{
        struct cluster *cluster = *state;

        cluster->evidence->n_osds = cluster->evidence->n_devices = 2;
        fill_disk(cluster->evidence, 1);
        must_be(cluster, VERDICT_STORAGE, "saturated_disk", "north/sdb");
}

static void disks_of_another_class_are_no_peers(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < 2; i++) {
                cluster->evidence->devices[i].class = "ssd";
                set_disk(&cluster->evidence->devices[i], 1200, 0.1 * MS, 0.3);
        }
        set_disk(&cluster->evidence->devices[3], 300, 6 * MS, 0.7);
        judge(cluster);
        assert_null(find(cluster->verdict, "slow_disk"));
}

static void a_db_disk_that_osds_share_is_named(void **state)
{
        struct cluster *cluster = *state;
        struct evidence *evidence = cluster->evidence;
        struct evidence_device *db = &evidence->devices[OSDS];

        *db = (struct evidence_device){.name = "north/nvme0n1",
                .host = "north",
                .class = "hdd",
                .role = "db",
                .n_osds = OSDS};
        evidence->n_devices = OSDS + 1;
        set_disk(db, 200, 60 * MS, 0.97);
        for (uint32_t i = 0; i < OSDS; i++) {
                evidence->osds[i].journal = OSDS;
                set_disk(&evidence->devices[i], 100, 1 * MS, 0.1);
                set_writes(&evidence->osds[i], 30, 250 * MS);
                set_transactions(&evidence->osds[i], 90, 150 * MS);
        }
        must_be(cluster, VERDICT_STORAGE, "saturated_disk", "north/nvme0n1");
        assert_non_null(strstr(cluster->verdict->findings[0].sentence, "share"));
}

/* Each OSD's journal lies on a partition; of one disk, or of one for each host. A commit at a time is
 * under way on each, and what waits for it waits in the OSD. */
static void part_journals(struct evidence *evidence, bool one_disk, double await)
{
        evidence->n_devices = 2 * OSDS;
        for (uint32_t i = 0; i < OSDS; i++) {
                struct evidence_device *db = &evidence->devices[OSDS + i];
                const char *host = one_disk ? "north" : evidence->osds[i].host;

                *db = (struct evidence_device){
                        .host = host, .class = "hdd", .role = "db", .n_osds = 1, .osd = i};
                snprintf(db->name, sizeof(db->name), "%s/sdx%u", host, i + 1);
                snprintf(db->disk, sizeof(db->disk), "%s/sdx", host);
                set_disk(db, 0.9 / await, await, 0.9);
                evidence->osds[i].journal = OSDS + i;
                set_disk(&evidence->devices[i], 100, 1 * MS, 0.1);
                set_writes(&evidence->osds[i], 30, 250 * MS);
                set_transactions(&evidence->osds[i], 90, 150 * MS);
        }
}

/* As measured: a commit is four writes, one after the other. */
static void a_commit_waits_for_all_its_writes_on_a_disk_for_journals(void **state)
{
        struct cluster *cluster = *state;
        struct evidence *evidence = cluster->evidence;

        part_journals(evidence, true, 22 * MS);
        for (uint32_t i = 0; i < OSDS; i++) {
                struct evidence_osd *osd = &evidence->osds[i];

                set_transactions(osd, 77, 178 * MS);
                set_mean(osd->values, EVIDENCE_COMMITS, EVIDENCE_COMMIT_TIME, 10, 92 * MS);
                set_rate(&osd->values[EVIDENCE_FLUSH_TIME], 10 * 7 * MS);
        }
        must_be(cluster, VERDICT_STORAGE, "saturated_disk", "north/sdx");
        /* Tables are written behind the commits' back. */
        for (uint32_t i = 0; i < OSDS; i++) {
                set_rate(&evidence->osds[i].values[EVIDENCE_WAL_BYTES], 1e5);
                set_rate(&evidence->osds[i].values[EVIDENCE_SST_BYTES], 9e5);
        }
        judge(cluster);
        assert_null(find(cluster->verdict, "saturated_disk"));
}

static void the_disk_of_full_partitions_is_named_and_not_each_of_them(void **state)
{
        struct cluster *cluster = *state;

        part_journals(cluster->evidence, true, 60 * MS);
        must_be(cluster, VERDICT_STORAGE, "saturated_disk", "north/sdx");
        assert_int_equal(cluster->verdict->n, 1);
        assert_non_null(strstr(cluster->verdict->findings[0].sentence, "share"));
        assert_non_null(strstr(cluster->verdict->findings[0].sentence, "3.6 requests"));
}

static void full_partitions_of_most_disks_are_a_finding_of_their_class(void **state)
{
        struct cluster *cluster = *state;

        part_journals(cluster->evidence, false, 60 * MS);
        must_be(cluster, VERDICT_STORAGE, "saturated_disk", "hdd");
        assert_non_null(strstr(cluster->verdict->findings[0].sentence, "2 of 2"));
}

static void partitions_of_a_disk_that_is_slower_than_others_are_one_slow_disk(void **state)
{
        struct cluster *cluster = *state;

        part_journals(cluster->evidence, false, 1 * MS);
        for (uint32_t i = 2; i < OSDS; i++) {
                set_disk(&cluster->evidence->devices[OSDS + i], 15, 60 * MS, 0.9);
                set_transactions(&cluster->evidence->osds[i], 90, 400 * MS);
        }
        for (uint32_t i = 0; i < 2; i++) {
                set_disk(&cluster->evidence->devices[OSDS + i], 60, 1 * MS, 0.06);
                set_transactions(&cluster->evidence->osds[i], 90, 12 * MS);
        }
        must_be(cluster, VERDICT_STORAGE, "slow_disk", "south/sdx");
        assert_null(find(cluster->verdict, "saturated_disk"));
        assert_int_equal(cluster->verdict->n, 1);
}

static void a_disk_for_one_journal_is_full_when_commits_wait_in_the_osd(void **state)
{
        struct cluster *cluster = *state;
        struct evidence *evidence = cluster->evidence;

        part_journals(evidence, true, 60 * MS);
        for (uint32_t i = 0; i < OSDS; i++) {
                evidence->devices[OSDS + i].disk[0] = '\0';
                if (i == 1)
                        continue;
                set_disk(&evidence->devices[OSDS + i], 600, 1 * MS, 0.5);
                set_transactions(&evidence->osds[i], 90, 12 * MS);
        }
        evidence->n_osds = 2; /* of two none is the slow one */
        evidence->n_devices = OSDS + 2;
        must_be(cluster, VERDICT_STORAGE, "saturated_disk", "north/sdx2");
        set_transactions(&evidence->osds[1], 10, 150 * MS);
        judge(cluster);
        assert_null(find(cluster->verdict, "saturated_disk"));
}

static void flushes_that_take_longer_than_writes_are_a_storm(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++)
                set_mean(cluster->evidence->devices[i].values, EVIDENCE_DISK_FLUSHES,
                        EVIDENCE_DISK_FLUSH_TIME, 100, 6 * MS);
        must_be(cluster, VERDICT_STORAGE, "flush_storm", "hdd");
}

static void discards_that_keep_a_disk_are_named(void **state)
{
        struct cluster *cluster = *state;
        double *v = cluster->evidence->devices[1].values;

        set_mean(v, EVIDENCE_DISK_DISCARDS, EVIDENCE_DISK_DISCARD_TIME, 50, 60 * MS);
        v[EVIDENCE_DISK_WEIGHTED] += v[EVIDENCE_DISK_DISCARD_TIME];
        must_be(cluster, VERDICT_STORAGE, "discards", "north/sdb");
}

/* ---- OSDs ---- */

static void starve(struct evidence *evidence, uint32_t i)
{
        set_rate(&evidence->osds[i].values[EVIDENCE_RUN_TIME], 0.05);
        set_rate(&evidence->osds[i].values[EVIDENCE_WAIT_TIME], 4.5);
        set_disk(&evidence->devices[i], 200, 1 * MS, 0.05);
        set_writes(&evidence->osds[i], 30, 140 * MS);
        set_transactions(&evidence->osds[i], 90, 75 * MS);
}

static void an_osd_that_waits_for_a_cpu_is_named(void **state)
{
        struct cluster *cluster = *state;

        starve(cluster->evidence, 3);
        must_be(cluster, VERDICT_OSD, "osd_cpu", "osd.3");
}

static void osds_of_a_host_that_all_wait_for_a_cpu_are_one_finding(void **state)
{
        struct cluster *cluster = *state;

        starve(cluster->evidence, 0);
        starve(cluster->evidence, 1);
        must_be(cluster, VERDICT_OSD, "osd_cpu", "north");
        assert_int_equal(cluster->verdict->n, 1);
}

static void an_osd_whose_waiting_is_its_disk_is_not_short_of_cpu(void **state)
{
        struct cluster *cluster = *state;

        starve(cluster->evidence, 3);
        fill_disk(cluster->evidence, 3);
        must_be(cluster, VERDICT_STORAGE, "slow_disk", "south/sdd");
}

static void a_host_full_of_osd_work_is_short_of_cpu(void **state)
{
        struct cluster *cluster = *state;

        cluster->evidence->hosts[1].busy = 0.99;
        cluster->evidence->hosts[1].osd_run = 0.8;
        for (uint32_t i = 0; i < OSDS; i++)
                set_disk(&cluster->evidence->devices[i], 2000, 0.1 * MS, 0.2);
        for (uint32_t i = 0; i < OSDS; i++)
                set_mean(cluster->evidence->devices[i].values, EVIDENCE_DISK_FLUSHES,
                        EVIDENCE_DISK_FLUSH_TIME, 100, 0.1 * MS);
        must_be(cluster, VERDICT_OSD, "host_cpu", "south");
}

static void recovery_that_moves_most_bytes_is_the_cause_of_full_disks(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++) {
                fill_disk(cluster->evidence, i);
                set_rate(&cluster->evidence->devices[i].values[EVIDENCE_DISK_READ_BYTES], 30e6);
                set_rate(&cluster->evidence->osds[i].values[EVIDENCE_PUSHED_BYTES], 30e6);
        }
        cluster->evidence->noise.pgs_recovering = 5;
        must_be(cluster, VERDICT_OSD, "recovery", "cluster");
        assert_non_null(find(cluster->verdict, "saturated_disk"));
}

static void a_scrub_that_reads_more_than_clients_move_is_named(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++) {
                set_rate(&cluster->evidence->devices[i].values[EVIDENCE_DISK_READ_BYTES], 60e6);
                set_rate(&cluster->evidence->osds[i].values[EVIDENCE_MISS_BYTES], 60e6);
        }
        cluster->evidence->noise.pgs_scrubbing = 2;
        must_be(cluster, VERDICT_OSD, "scrub", "cluster");
}

static void reads_of_clients_are_no_scrub(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++) {
                set_rate(&cluster->evidence->devices[i].values[EVIDENCE_DISK_READ_BYTES], 60e6);
                set_rate(&cluster->evidence->osds[i].values[EVIDENCE_MISS_BYTES], 60e6);
                set_rate(&cluster->evidence->osds[i].values[EVIDENCE_CLIENT_READ_BYTES], 60e6);
        }
        cluster->evidence->noise.pgs_scrubbing = 2;
        must_be_calm(cluster);
}

static void an_osd_with_twice_the_load_of_its_peers_is_named_and_its_disk_is_not_called_slow(
        void **state)
{
        struct cluster *cluster = *state;

        set_disk(&cluster->evidence->devices[0], 3000, 5 * MS, 0.95);
        set_transactions(&cluster->evidence->osds[0], 1500, 20 * MS);
        judge(cluster);
        assert_non_null(find(cluster->verdict, "uneven_load"));
        assert_string_equal(find(cluster->verdict, "uneven_load")->entity, "osd.0");
        assert_null(find(cluster->verdict, "slow_disk"));
}

/* ---- network, clients ---- */

static void requests_that_arrive_slowly_are_the_networks(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++) {
                struct evidence_osd *osd = &cluster->evidence->osds[i];

                set_writes(osd, 20, 30 * MS);
                set_rate(&osd->values[EVIDENCE_WRITE_PROCESS_TIME], 20 * 4 * MS);
                set_rate(&osd->values[EVIDENCE_RECEIVE_TIME], 20 * 25 * MS);
                set_transactions(osd, 60, 3 * MS);
        }
        must_be(cluster, VERDICT_NETWORK, "network_clients", "cluster");
}

/* As measured: the network takes as long as the disks, which are not full. */
static void requests_that_arrive_as_slowly_as_disks_write_are_the_networks(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++) {
                struct evidence_osd *osd = &cluster->evidence->osds[i];

                set_writes(osd, 25, 57 * MS);
                set_rate(&osd->values[EVIDENCE_WRITE_PROCESS_TIME], 25 * 30 * MS);
                set_rate(&osd->values[EVIDENCE_RECEIVE_TIME], 25 * 26.5 * MS);
                set_transactions(osd, 76, 22 * MS);
        }
        must_be(cluster, VERDICT_NETWORK, "network_clients", "cluster");
        for (uint32_t i = 0; i < OSDS; i++)
                set_transactions(&cluster->evidence->osds[i], 76, 28 * MS);
        judge(cluster);
        assert_null(find(cluster->verdict, "network_clients"));
}

/* As measured: messages between OSDs arrive slowly, too. */
static void slow_arrival_between_osds_is_not_the_clients_network(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++) {
                struct evidence_osd *osd = &cluster->evidence->osds[i];

                set_writes(osd, 12, 430 * MS);
                set_transactions(osd, 37, 30 * MS);
                set_rate(&osd->values[EVIDENCE_RECEIVE_TIME], 12 * 95 * MS);
        }
        must_be(cluster, VERDICT_NETWORK, "network_replicas", "cluster");
        assert_null(find(cluster->verdict, "network_clients"));
}

static void a_write_that_neither_store_nor_replica_holds_is_on_the_network(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++) {
                set_writes(&cluster->evidence->osds[i], 10, 430 * MS);
                set_transactions(&cluster->evidence->osds[i], 30, 5 * MS);
        }
        must_be(cluster, VERDICT_NETWORK, "network_replicas", "cluster");
}

static void shards_that_nobody_counts_are_no_network(void **state)
{
        struct cluster *cluster = *state;

        cluster->evidence->pools[0].erasure = true;
        for (uint32_t i = 0; i < OSDS; i++) {
                set_writes(&cluster->evidence->osds[i], 10, 430 * MS);
                set_transactions(&cluster->evidence->osds[i], 30, 5 * MS);
        }
        must_be_calm(cluster);
}

static void a_link_at_its_speed_is_named(void **state)
{
        struct cluster *cluster = *state;
        struct evidence_host *host = &cluster->evidence->hosts[0];

        host->nic_rate = 1.18e9;
        host->nic_speed = 1.25e9;
        strcpy(host->nic, "eth1");
        must_be(cluster, VERDICT_NETWORK, "network_interface", "north");
        host->nic_speed = 3.125e9;
        must_be_calm(cluster);
}

static void few_operations_in_flight_while_nothing_waits_are_the_clients(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++) {
                set_writes(&cluster->evidence->osds[i], 60, 4 * MS);
                set_transactions(&cluster->evidence->osds[i], 180, 3 * MS);
                set_disk(&cluster->evidence->devices[i], 500, 0.5 * MS, 0.2);
        }
        must_be(cluster, VERDICT_CLIENT, "low_concurrency", "cluster");
}

static void few_operations_in_flight_on_a_slow_disk_are_the_disks(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++) {
                set_writes(&cluster->evidence->osds[i], 3, 130 * MS);
                set_transactions(&cluster->evidence->osds[i], 9, 100 * MS);
                set_disk(&cluster->evidence->devices[i], 40, 60 * MS, 0.95);
        }
        must_be(cluster, VERDICT_STORAGE, "saturated_disk", "hdd");
}

/* ---- what is multiplied ---- */

/* A ladder whose parts are amplifications. */
static void set_ladder(struct cluster *cluster, double expected, double data, double wal,
        double deferred, double log, double sst, double padding)
{
        double client = cluster->evidence->pools[0].write_bytes;
        double osd[LADDER_SLOTS_MAX_];
        struct ladder_member pool = {"rbd", client, cluster->evidence->pools[0].writes, expected,
                cluster->evidence->pools[0].erasure};
        struct ladder_member device = {
                "devices", client * (data + wal + sst + log + padding), 1, NAN, false};
        struct ladder_input input = {
                .direction = RATIO_WRITE,
                .seconds = SECONDS,
                .pools = &pool,
                .devices = &device,
                .n_pools = 1,
                .n_devices = 1,
                .osd = osd,
                .noise = cluster->evidence->noise,
        };
        struct ladder *ladder;

        for (uint32_t i = 0; i < LADDER_SLOTS_MAX_; i++)
                osd[i] = 0;
        osd[LADDER_BIG] = client * data;
        osd[LADDER_ISSUED] = osd[LADDER_SUBMITTED] = client * deferred;
        osd[LADDER_SUBMITTED_OPS] = client * deferred / 16384;
        osd[LADDER_WAL] = client * wal;
        osd[LADDER_SST] = client * sst;
        osd[LADDER_LOG] = client * log;
        osd[LADDER_PAD] = client * padding;
        for (size_t i = 0; i < LADDER_RUNGS; i++)
                input.rungs[i] = (struct ratio_rung){
                        .layer = LAYER_FILESYSTEM + (enum layer)i, .seen = 1, .expected = 1};
        assert_int_equal(ladder_compute(&input, &ladder), 0);
        ladder_free(cluster->evidence->ladders[RATIO_WRITE]);
        cluster->evidence->ladders[RATIO_WRITE] = ladder;
}

static void set_size(struct cluster *cluster, double bytes)
{
        cluster->evidence->pools[0].write_bytes = cluster->evidence->pools[0].writes * bytes;
}

static void large_writes_as_they_should_be_are_no_finding(void **state)
{
        set_ladder(*state, 3, 3, 0.14, 0, 0.05, 0, 0);
        must_be_calm(*state);
}

static void writes_that_go_to_the_wal_first_are_deferred(void **state)
{
        set_size(*state, 16384);
        set_ladder(*state, 3, 3, 3.6, 3, 0.25, 0, 0);
        must_be(*state, VERDICT_OBJECTSTORE, "deferred_writes", "cluster");
}

static void a_full_disk_is_the_bottleneck_and_deferral_a_finding_beside_it(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++)
                fill_disk(cluster->evidence, i);
        set_size(cluster, 16384);
        set_ladder(cluster, 3, 3, 3.6, 3, 0.25, 0, 0);
        must_be(cluster, VERDICT_STORAGE, "saturated_disk", "hdd");
        assert_non_null(find(cluster->verdict, "deferred_writes"));
}

static void small_blocks_are_named_with_their_pool(void **state)
{
        set_size(*state, 2048);
        set_ladder(*state, 3, 3, 4, 0, 2, 0, 0);
        must_be(*state, VERDICT_FILESYSTEM, "small_blocks", "rbd");
}

static void writes_below_a_stripe_of_an_erasure_coded_pool_are_named(void **state)
{
        struct cluster *cluster = *state;
        struct evidence_pool *pool = &cluster->evidence->pools[0];

        pool->erasure = true;
        pool->k = 2;
        pool->stripe_unit = 4096;
        pool->factor = 1.5;
        set_size(cluster, 4096);
        set_ladder(cluster, 1.5, 3, 6, 3, 3, 0, 0);
        must_be(cluster, VERDICT_FILESYSTEM, "small_writes_ec", "rbd");
}

static void padding_is_named(void **state)
{
        set_ladder(*state, 3, 3, 0.2, 0, 0, 0, 2);
        must_be(*state, VERDICT_OBJECTSTORE, "padding", "cluster");
}

static void compaction_is_named(void **state)
{
        set_ladder(*state, 3, 3, 0.2, 0, 0, 3, 0);
        must_be(*state, VERDICT_OBJECTSTORE, "compaction", "cluster");
}

static void a_db_on_the_slow_device_is_worth_a_note_and_never_the_bottleneck(void **state)
{
        struct cluster *cluster = *state;

        cluster->evidence->osds[2].journal = 3;
        cluster->evidence->osds[2].values[EVIDENCE_SLOW_USED] = 5e9;
        judge(cluster);
        assert_false(cluster->verdict->bottleneck);
        assert_non_null(find(cluster->verdict, "spillover"));
        assert_string_equal(find(cluster->verdict, "spillover")->entity, "osd.2");
}

static void prefetch_that_is_most_of_what_devices_read_is_named(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++) {
                set_rate(&cluster->evidence->osds[i].values[EVIDENCE_PREFETCH_BYTES], 20e6);
                set_rate(&cluster->evidence->devices[i].values[EVIDENCE_DISK_READ_BYTES], 22e6);
        }
        must_be(cluster, VERDICT_OBJECTSTORE, "prefetch", "cluster");
}

static void data_that_is_read_again_from_the_devices_means_a_small_cache(void **state)
{
        struct cluster *cluster = *state;

        cluster->evidence->pools[0].read_bytes = 4e9;
        cluster->evidence->pools[0].stored_bytes = 1e9;
        for (uint32_t i = 0; i < OSDS; i++) {
                set_rate(&cluster->evidence->osds[i].values[EVIDENCE_CLIENT_READ_BYTES], 50e6);
                set_rate(&cluster->evidence->osds[i].values[EVIDENCE_MISS_BYTES], 45e6);
                set_rate(&cluster->evidence->devices[i].values[EVIDENCE_DISK_READ_BYTES], 45e6);
        }
        must_be(cluster, VERDICT_OBJECTSTORE, "small_cache", "cluster");
        cluster->evidence->pools[0].stored_bytes =
                100e9; /* nobody can tell that it is read again */
        must_be_calm(cluster);
}

/* ---- bad inputs ---- */

static void forget_osd(struct evidence *evidence, uint32_t i)
{
        evidence->osds[i].silent = true;
        for (uint32_t k = 0; k < EVIDENCE_OSD_MAX_; k++)
                evidence->osds[i].values[k] = NAN;
}

static void an_osd_that_is_not_known_says_nothing_and_the_others_stay(void **state)
{
        struct cluster *cluster = *state;

        forget_osd(cluster->evidence, 0); /* a counter went backwards, or it began anew */
        must_be_calm(cluster);
        fill_disk(cluster->evidence, 2);
        must_be(cluster, VERDICT_STORAGE, "slow_disk", "south/sdc");
}

static void a_device_that_is_not_known_says_nothing_and_the_others_stay(void **state)
{
        struct cluster *cluster = *state;
        struct evidence_device *device = &cluster->evidence->devices[1];

        device->silent = true; /* its host's clock is wrong */
        for (uint32_t k = 0; k < EVIDENCE_DEVICE_MAX_; k++)
                device->values[k] = NAN;
        must_be_calm(cluster);
        fill_disk(cluster->evidence, 2);
        must_be(cluster, VERDICT_STORAGE, "slow_disk", "south/sdc");
}

static void an_osd_whose_devices_are_elsewhere_is_judged_without_them(void **state)
{
        struct cluster *cluster = *state;

        cluster->evidence->osds[3].data = cluster->evidence->osds[3].journal = EVIDENCE_NONE;
        cluster->evidence->osds[3].host = "moved";
        must_be_calm(cluster);
        starve(cluster->evidence, 3);
        must_be(cluster, VERDICT_OSD, "osd_cpu", "osd.3");
}

static void without_an_expected_amplification_nothing_is_multiplied_and_the_rest_stays(void **state)
{
        struct cluster *cluster = *state;

        cluster->evidence->pools[0].erasure = true;
        set_size(cluster, 16384);
        set_ladder(cluster, NAN, 3, 3.6, 3, 0.25, 0, 0);
        must_be_calm(cluster);
        fill_disk(cluster->evidence, 2);
        must_be(cluster, VERDICT_STORAGE, "slow_disk", "south/sdc");
}

static void a_device_of_two_osds_is_judged_as_one(void **state)
{
        struct cluster *cluster = *state;

        cluster->evidence->osds[2].data = cluster->evidence->osds[2].journal = 1;
        cluster->evidence->devices[1].n_osds = 2;
        fill_disk(cluster->evidence, 1);
        must_be(cluster, VERDICT_STORAGE, "slow_disk", "north/sdb");
}

static void nothing_known_at_all_is_said(void **state)
{
        struct cluster *cluster = *state;

        for (uint32_t i = 0; i < OSDS; i++) {
                forget_osd(cluster->evidence, i);
                for (uint32_t k = 0; k < EVIDENCE_DEVICE_MAX_; k++)
                        cluster->evidence->devices[i].values[k] = NAN;
        }
        must_be_calm(cluster);
        assert_string_equal(cluster->verdict->sentence, "No OSD has told enough to judge.");
}

/* Whatever the numbers are: no crash, no endless sentence, at most one bottleneck. */
static void random_numbers_do_no_harm(void **state)
{
        struct cluster *cluster = *state;
        unsigned seed = (unsigned)time(NULL);

        print_message("# seed %u\n", seed);
        srandom(seed);
        for (unsigned round = 0; round < 2000; round++) {
                const struct verdict *verdict;

                for (uint32_t i = 0; i < OSDS; i++) {
                        for (uint32_t k = 0; k < EVIDENCE_OSD_MAX_; k++)
                                cluster->evidence->osds[i].values[k] =
                                        random() % 4 ? exp((double)(random() % 60) - 20) : NAN;
                        for (uint32_t k = 0; k < EVIDENCE_DEVICE_MAX_; k++)
                                cluster->evidence->devices[i].values[k] =
                                        random() % 4 ? exp((double)(random() % 60) - 20) : 0;
                }
                verdict = judge(cluster);
                assert_true(verdict->n <= VERDICT_FINDINGS_MAX);
                for (uint32_t i = 0; i < verdict->n; i++)
                        assert_true(
                                verdict->findings[i].share >= 0 && verdict->findings[i].share <= 1);
        }
}

static void more_findings_than_there_is_room_for_are_counted(void **state)
{
        struct cluster *cluster = *state;
        struct evidence *evidence = cluster->evidence;
        const uint32_t n = 300;

        evidence->osds = realloc(evidence->osds, n * sizeof(*evidence->osds));
        evidence->devices = realloc(evidence->devices, n * sizeof(*evidence->devices));
        evidence->n_osds = evidence->n_devices = n;
        for (uint32_t i = 0; i < n; i++) {
                fill_osd(evidence, i % OSDS);
                evidence->osds[i] = evidence->osds[i % OSDS];
                evidence->devices[i] = evidence->devices[i % OSDS];
                evidence->osds[i].data = evidence->osds[i].journal = i;
                evidence->devices[i].osd = i;
                snprintf(evidence->devices[i].name, sizeof(evidence->devices[i].name), "north/d%u",
                        i);
        }
        for (uint32_t i = 0; i < 100; i++)
                fill_disk(evidence, i);
        judge(cluster);
        assert_int_equal(cluster->verdict->n, VERDICT_FINDINGS_MAX);
        /* By the rule about slow ones, and those again by the rule about full ones. */
        assert_true(cluster->verdict->left_out >= 100 - VERDICT_FINDINGS_MAX);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_healthy_cluster_under_load_has_no_finding),
                TEST(a_cluster_without_operations_is_idle_and_not_slow),
                TEST(disks_that_are_all_full_are_a_finding_of_their_class),
                TEST(disks_that_are_nearly_full_beside_a_full_one_have_it_in_common),
                TEST(a_disk_that_is_busy_all_the_time_is_not_full_when_nothing_waits_for_it),
                TEST(a_parallel_disk_with_a_long_queue_is_not_full_when_it_answers_at_once),
                TEST(one_slow_disk_among_healthy_ones_is_named),
                TEST(of_two_disks_none_can_be_called_the_slow_one),
                TEST(disks_of_another_class_are_no_peers),
                TEST(a_db_disk_that_osds_share_is_named),
                TEST(a_commit_waits_for_all_its_writes_on_a_disk_for_journals),
                TEST(the_disk_of_full_partitions_is_named_and_not_each_of_them),
                TEST(full_partitions_of_most_disks_are_a_finding_of_their_class),
                TEST(partitions_of_a_disk_that_is_slower_than_others_are_one_slow_disk),
                TEST(a_disk_for_one_journal_is_full_when_commits_wait_in_the_osd),
                TEST(flushes_that_take_longer_than_writes_are_a_storm),
                TEST(discards_that_keep_a_disk_are_named),
                TEST(an_osd_that_waits_for_a_cpu_is_named),
                TEST(osds_of_a_host_that_all_wait_for_a_cpu_are_one_finding),
                TEST(an_osd_whose_waiting_is_its_disk_is_not_short_of_cpu),
                TEST(a_host_full_of_osd_work_is_short_of_cpu),
                TEST(recovery_that_moves_most_bytes_is_the_cause_of_full_disks),
                TEST(a_scrub_that_reads_more_than_clients_move_is_named),
                TEST(reads_of_clients_are_no_scrub),
                TEST(an_osd_with_twice_the_load_of_its_peers_is_named_and_its_disk_is_not_called_slow),
                TEST(requests_that_arrive_slowly_are_the_networks),
                TEST(requests_that_arrive_as_slowly_as_disks_write_are_the_networks),
                TEST(slow_arrival_between_osds_is_not_the_clients_network),
                TEST(a_write_that_neither_store_nor_replica_holds_is_on_the_network),
                TEST(shards_that_nobody_counts_are_no_network),
                TEST(a_link_at_its_speed_is_named),
                TEST(few_operations_in_flight_while_nothing_waits_are_the_clients),
                TEST(few_operations_in_flight_on_a_slow_disk_are_the_disks),
                TEST(large_writes_as_they_should_be_are_no_finding),
                TEST(writes_that_go_to_the_wal_first_are_deferred),
                TEST(a_full_disk_is_the_bottleneck_and_deferral_a_finding_beside_it),
                TEST(small_blocks_are_named_with_their_pool),
                TEST(writes_below_a_stripe_of_an_erasure_coded_pool_are_named),
                TEST(padding_is_named),
                TEST(compaction_is_named),
                TEST(a_db_on_the_slow_device_is_worth_a_note_and_never_the_bottleneck),
                TEST(prefetch_that_is_most_of_what_devices_read_is_named),
                TEST(data_that_is_read_again_from_the_devices_means_a_small_cache),
                TEST(an_osd_that_is_not_known_says_nothing_and_the_others_stay),
                TEST(a_device_that_is_not_known_says_nothing_and_the_others_stay),
                TEST(an_osd_whose_devices_are_elsewhere_is_judged_without_them),
                TEST(without_an_expected_amplification_nothing_is_multiplied_and_the_rest_stays),
                TEST(a_device_of_two_osds_is_judged_as_one),
                TEST(nothing_known_at_all_is_said),
                TEST(random_numbers_do_no_harm),
                TEST(more_findings_than_there_is_room_for_are_counted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
