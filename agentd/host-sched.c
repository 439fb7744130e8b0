#include "agentd/host-sched.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/proc-number.h"
#include "agentd/text-file.h"
#include "lib/cleanup.h"

#define ENTRIES_BYTES 4096u
#define SCHEDSTAT_MAX 96u /* "25836071 1286071 93\n": nanoseconds run, waited, slices */
#define USES_MAX 60u      /* an OSD's threads stay, but for a change of its configuration */

/* On the way of an operation; the others are timers, logs and statistics. */
static const char *const names[] = {
        "tp_osd_tp", "msgr-worker-", "bstore_kv_sync", "bstore_kv_final", "bstore_aio", "reactor-"};

static bool is_of_operations(int folder, const char *thread)
{
        char path[64], name[32];

        snprintf(path, sizeof(path), "%.32s/comm", thread);
        if (text_file_read(folder, path, name, sizeof(name)) <= 0)
                return false;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strncmp(name, names[i], strlen(names[i])) == 0)
                        return true;
        return false;
}

static void thread_add(
        int folder, const char *thread, uint32_t *files_left, struct host_sched *sched)
{
        uint32_t i = sched->n_threads++;
        char path[64];

        sched->threads[i] = (uint32_t)strtoul(thread, NULL, 10);
        sched->files[i] = -1;
        if (*files_left == 0)
                return;
        snprintf(path, sizeof(path), "%.32s/schedstat", thread);
        sched->files[i] = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        *files_left -= sched->files[i] >= 0;
}

static void entries_take(int folder, const char *entries, ssize_t size, uint32_t *files_left,
        struct host_sched *sched)
{
        const struct dirent64 *entry;

        for (ssize_t at = 0; at < size; at += entry->d_reclen) {
                entry = (const struct dirent64 *)(entries + at);
                if (entry->d_name[0] != '.' && sched->n_threads < HOST_SCHED_THREADS_MAX &&
                        is_of_operations(folder, entry->d_name))
                        thread_add(folder, entry->d_name, files_left, sched);
        }
}

static void threads_forget(struct host_sched *sched, uint32_t *files_left)
{
        for (uint32_t i = 0; i < sched->n_threads; i++) {
                *files_left += sched->files[i] >= 0;
                fd_cleanup(&sched->files[i]);
        }
        sched->n_threads = sched->uses = 0;
}

/* Not by readdir, which allocates. */
static void look_up(const char *path, uint32_t *files_left, struct host_sched *sched)
{
        _Alignas(struct dirent64) char entries[ENTRIES_BYTES];
        CLEANUP(fd) int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ssize_t size;

        threads_forget(sched, files_left);
        if (folder < 0)
                return;
        while (sched->n_threads < HOST_SCHED_THREADS_MAX &&
                (size = getdents64(folder, entries, sizeof(entries))) > 0)
                entries_take(folder, entries, size, files_left, sched);
}

/* *folder, where @path lies, is opened when it is needed. */
static int thread_read(const struct host_sched *sched, uint32_t i, const char *path, int *folder,
        uint64_t ret[static 2])
{
        char text[SCHEDSTAT_MAX], name[32];
        ssize_t n;

        if (sched->files[i] >= 0) {
                n = text_file_read_again(sched->files[i], text, sizeof(text));
        } else {
                if (*folder < 0)
                        *folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                snprintf(name, sizeof(name), "%" PRIu32 "/schedstat", sched->threads[i]);
                n = text_file_read(*folder, name, text, sizeof(text));
        }
        return n > 0 && proc_numbers_parse(text, 2, ret) == 3 ? 0 : -1;
}

/* A thread that ended takes its time out of the sum: that reading adds nothing. */
static void add(uint64_t sum, uint64_t *before, uint64_t *total)
{
        if (sum > *before)
                *total += sum - *before;
        *before = sum;
}

/* So that the OSDs of a node are not all read in the same row. */
static uint64_t phase(uint32_t pid)
{
        return pid * 2654435761u % HOST_SCHED_INTERVAL_US;
}

void host_sched_read(const char *root, uint32_t pid, uint64_t now_us, uint32_t *files_left,
        struct host_sched *sched)
{
        uint64_t run_sum = 0, wait_sum = 0, times[2];
        uint32_t n_read = 0;
        char path[PATH_MAX];
        CLEANUP(fd) int folder = -1;

        if (sched->read_us != 0 && now_us - sched->read_us < HOST_SCHED_INTERVAL_US)
                return;
        sched->read_us = sched->read_us == 0 ? now_us - phase(pid) : now_us;
        snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/task", root, pid);
        if (sched->n_threads == 0 || ++sched->uses == USES_MAX)
                look_up(path, files_left, sched);
        for (uint32_t i = 0; i < sched->n_threads; i++) {
                if (thread_read(sched, i, path, &folder, times) < 0)
                        continue;
                run_sum += times[0];
                wait_sum += times[1];
                n_read++;
        }
        if (n_read < sched->n_threads)
                sched->uses = USES_MAX - 1; /* look again */
        if (n_read == 0)
                return;
        add(run_sum, &sched->run_sum, &sched->run_ns);
        add(wait_sum, &sched->wait_sum, &sched->wait_ns);
}

void host_sched_done(struct host_sched *sched, uint32_t *files_left)
{
        threads_forget(sched, files_left);
        *sched = (struct host_sched){0};
}
