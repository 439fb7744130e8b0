#pragma once
/*
 * How long the threads of an OSD that handle operations ran, and how long they were ready to run
 * but had no CPU, from /proc/PID/task/TID/schedstat. Under a CPU quota the second one grows while
 * the machine idles, and no other number of the kernel tells that about a process.
 */

#include <stdint.h>

/* An OSD has 60 threads and more, each a file to open; those on the way of an operation are 12
 * (hdd) to 23 (ssd), and together 0.06 to 0.12 ms a reading. */
#define HOST_SCHED_INTERVAL_US 5000000u
#define HOST_SCHED_THREADS_MAX 64u /* more are left out */

struct host_sched {
        uint64_t run_ns, wait_ns;   /* since it was seen first; never go down */
        uint64_t run_sum, wait_sum; /* over its threads as they were read last */
        uint64_t read_us;
        uint32_t threads[HOST_SCHED_THREADS_MAX];
        uint32_t n_threads, uses; /* readings since the threads were looked up */
};

/* Between two intervals nothing is read and nothing changes. Without the files (a process that is
 * gone, a kernel without CONFIG_SCHED_INFO) both stay as they are. */
void host_sched_read(const char *root, uint32_t pid, uint64_t now_us, struct host_sched *sched);
