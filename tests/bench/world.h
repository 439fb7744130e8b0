#pragma once
/*
 * A cluster made of a recorded trace, for benchmarks: every disk is the busy disk of the trace at a
 * moment of its own, and goes on from the beginning with higher counters when the trace ends. Host
 * i carries OSDs i x devices to (i + 1) x devices - 1, one on each of its disks.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "collectord/store.h"
#include "lib/block.h"
#include "lib/metric.h"

#define WORLD_METRICS 17u /* fields of a line of /proc/diskstats, as the metrics are numbered */
#define WORLD_DEVICES_MAX 64u
#define WORLD_ROWS_MAX 512u
#define WORLD_OSDS_MAX 3000u /* of its cluster; hosts beyond belong to none */
#define SECOND INT64_C(1000000)

struct world {
        uint32_t n_hosts, n_devices; /* devices of a host */
        uint32_t n_readings;
        uint32_t n_traces;                /* 1: the busy disk, else all devices of the trace */
        uint64_t (*trace)[WORLD_METRICS]; /* [traces][readings] */
        char names[WORLD_DEVICES_MAX][16], identities[WORLD_DEVICES_MAX][32];
        struct block_entity entities[WORLD_DEVICES_MAX];
        struct block_column columns[WORLD_DEVICES_MAX * WORLD_METRICS];
        int64_t times_us[WORLD_ROWS_MAX];
        uint64_t *values;
        struct block_encoder *encoder;
};

/* @trace: "#" and Unix milliseconds, then /proc/diskstats, again and again. -errno. */
int world_open(struct world *world, FILE *trace, uint32_t n_hosts, uint32_t n_devices);
/* Device i of a host is the i-th of the trace, not the busy one. */
int world_open_all(struct world *world, FILE *trace, uint32_t n_hosts, uint32_t n_devices);
void world_done(struct world *world);

struct id world_host(uint32_t host);
/* Timers are late by some tens of microseconds, each host's a little differently. */
int64_t world_time_us(uint32_t host, int64_t tick_us);
/* Reading @tick of a disk whose trace never ends. */
void world_read_disk(const struct world *world, uint64_t tick, uint64_t *ret);
/* The facts of a host, those of the cluster with the first one's. NULL: no memory. */
char *world_make_facts(const struct world *world, uint32_t host);
int world_put_facts(struct world *world, struct store *store, int64_t now_us);
/* Rows of @host at @from_us, + interval, ...; *ret_bytes is valid until the next call. */
int world_encode(struct world *world, uint32_t host, int64_t from_us, uint64_t interval_us,
        uint32_t rows, const uint8_t **ret_bytes, size_t *ret_size);
/* As one block, into the open transaction. */
int world_put(struct world *world, struct store *store, uint32_t host, int64_t from_us,
        uint64_t interval_us, uint32_t rows);
