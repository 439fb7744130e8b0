#pragma once
/*
 * How long the threads of an OSD that handle operations ran, and how long they were ready to run
 * but had no CPU, from /proc/PID/task/TID/schedstat. Under a CPU quota the second one grows while
 * the machine idles, and no other number of the kernel tells that about a process.
 */

#include <stdint.h>

/* An OSD has 60 threads and more; those on the way of an operation are 12 (hdd) to 23 (ssd). */
#define HOST_SCHED_INTERVAL_US 5000000u
#define HOST_SCHED_THREADS_MAX 64u /* more are left out */
/*
 * To open a file costs five times what it costs to read an open one, so that they stay open: of 20
 * to 40 OSDs, since the kernel keeps a page for each. Those of more OSDs are opened each time.
 */
#define HOST_SCHED_FILES_MAX 512u

/* All zero before the first reading. */
struct host_sched {
        uint64_t run_ns, wait_ns;   /* since it was seen first; never go down */
        uint64_t run_sum, wait_sum; /* over its threads as they were read last */
        uint64_t read_us;
        uint32_t threads[HOST_SCHED_THREADS_MAX];
        int files[HOST_SCHED_THREADS_MAX]; /* -1: is opened each time */
        uint32_t n_threads, uses;          /* readings since the threads were looked up */
};

/* Between two intervals nothing is read and nothing changes. Without the files (a process that is
 * gone, a kernel without CONFIG_SCHED_INFO) both times stay as they are. *files_left: how many more
 * may stay open, over all OSDs. */
void host_sched_read(const char *root, uint32_t pid, uint64_t now_us, uint32_t *files_left,
        struct host_sched *sched);
/* Closes what is open; all is zero again. */
void host_sched_done(struct host_sched *sched, uint32_t *files_left);
