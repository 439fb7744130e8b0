#pragma once
/*
 * The OSD processes of this node, found by their name in /proc and told apart by the id in their
 * command line. The search is rare and may wait, since another process's command line is in its
 * memory; a sample looks at each process's CPU clock and does not wait. /proc/PID/stat, for which
 * the kernel adds up the threads, too, and prints 52 numbers, is kept open and read less often.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/cleanup.h"

#define HOST_PROCESS_METRICS 4u /* user, system, resident, threads: METRIC_PROCESS_CPU_USER ff. */
#define HOST_PROCESSES_MAX 1024u
/* Between two readings of what has no clock. Where there is no clock at all (a replayed tree, a
 * kernel before 5.3) each sample reads. */
#define HOST_PROCESS_INTERVAL_US 5000000u

struct host_process {
        uint32_t pid;
        int file;             /* /proc/PID/stat; it fails when the process is gone */
        int life;             /* a pidfd, readable when it has ended; -1: it has no clock here */
        char name[24];        /* "osd.3" */
        char identity[64];    /* the cluster in the command line, or "" */
        uint64_t start_ticks; /* since boot; 0 until it could be read */
        uint32_t present, broken, broken_told; /* bit i: values[i] */
        uint64_t values[HOST_PROCESS_METRICS];
        uint64_t read_us; /* CLOCK_MONOTONIC: the values */
        uint64_t cpu_ns;  /* of its clock: each time */
};

/* When a process started, in ticks since boot. -errno when it is not to be seen. */
int host_process_read_start(const char *root, uint32_t pid, uint64_t *ret_ticks);

struct host_processes;
int host_processes_new(const char *root, struct host_processes **ret);
struct host_processes *host_processes_free(struct host_processes *processes);
DEFINE_CLEANUP(host_processes, struct host_processes *, host_processes_free)

/* Whether the next read has to search: never yet, one is gone, or it is time to. */
bool host_processes_will_search(struct host_processes *processes, uint64_t now_us);
/*
 * Reads all, and searches when host_processes_will_search has said so or never did. *ret_changed:
 * they, their start or what is present of them are not as before. The array is valid until the next
 * call. -ENOMEM.
 */
int host_processes_read(struct host_processes *processes, uint64_t now_us,
        struct host_process **ret, size_t *ret_n, bool *ret_changed);
