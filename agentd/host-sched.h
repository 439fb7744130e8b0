#pragma once
/*
 * How long the threads of a process ran and how long they were ready to run but had no CPU, from
 * /proc/PID/task/TID/schedstat. Under a CPU quota the second one grows while the machine idles, and
 * no other number of the kernel tells that about a process.
 */

#include <stdint.h>

/* An OSD has some 60 threads, each a file to open: 0.3 ms a reading. */
#define HOST_SCHED_INTERVAL_US 5000000u
#define HOST_SCHED_THREADS_MAX 4096u

struct host_sched {
        uint64_t run_ns, wait_ns;   /* since it was seen first; never go down */
        uint64_t run_sum, wait_sum; /* over its threads as they were read last */
        uint64_t read_us;
};

/* Between two intervals nothing is read and nothing changes. Without the files (a process that is
 * gone, a kernel without CONFIG_SCHED_INFO) both stay as they are. */
void host_sched_read(const char *root, uint32_t pid, uint64_t now_us, struct host_sched *sched);
