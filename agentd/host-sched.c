#include "agentd/host-sched.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "agentd/text-file.h"

#define SCHEDSTAT_MAX 96u /* "25836071 1286071 93\n": nanoseconds run, waited, slices */

/* A thread that ended takes its time out of the sum: that reading adds nothing. */
static void add(uint64_t sum, uint64_t *before, uint64_t *total)
{
        if (sum > *before)
                *total += sum - *before;
        *before = sum;
}

void host_sched_read(const char *root, uint32_t pid, uint64_t now_us, struct host_sched *sched)
{
        uint64_t run_sum = 0, wait_sum = 0;
        struct dirent *entry;
        char path[PATH_MAX];
        unsigned n = 0;
        DIR *folder;

        if (sched->read_us != 0 && now_us - sched->read_us < HOST_SCHED_INTERVAL_US)
                return;
        snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/task", root, pid);
        folder = opendir(path);
        if (!folder)
                return;
        while (n < HOST_SCHED_THREADS_MAX && (entry = readdir(folder))) {
                char text[SCHEDSTAT_MAX];
                uint64_t run_ns, wait_ns;

                if (entry->d_name[0] == '.')
                        continue;
                snprintf(path, sizeof(path), "%.32s/schedstat", entry->d_name);
                if (text_file_read(dirfd(folder), path, text, sizeof(text)) <= 0 ||
                        sscanf(text, "%" SCNu64 " %" SCNu64, &run_ns, &wait_ns) != 2)
                        continue;
                run_sum += run_ns;
                wait_sum += wait_ns;
                n++;
        }
        closedir(folder);
        sched->read_us = now_us;
        if (n == 0)
                return;
        add(run_sum, &sched->run_sum, &sched->run_ns);
        add(wait_sum, &sched->wait_sum, &sched->wait_ns);
}
