#include "agentd/host-process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>

#include "agentd/proc-number.h"
#include "agentd/text-file.h"

#define SEARCH_US 30000000u /* between searches */
/*
 * Most searches look at new processes only. One in ten looks at all, since a process may have been
 * seen between fork and exec.
 */
#define SEARCHES_FULL 10u
#define PROCESS_NAME "ceph-osd"
#define PIDS_MAX (4u << 20) /* PID_MAX_LIMIT */
#define COMMAND_MAX 4096u   /* the id stands among the first arguments */
#define STAT_MAX 1024u      /* 52 numbers */
#define READ_SLACK_US 100000u /* so that a tick of the very interval reads each time */

struct host_processes {
        char *root;
        struct host_process *items;
        size_t n;
        struct pollfd *lives; /* [HOST_PROCESSES_MAX], made anew for each look */
        bool have_clocks;
        uint32_t *seen; /* process ids of the last search, ascending */
        size_t n_seen;
        uint64_t searched_us;
        unsigned searches;
        bool to_search;
        bool gone; /* one, since the last search */
};

/* Clocks go by this process's own namespace; /proc may be that of another. */
static bool ids_are_ours(const char *root)
{
        char text[16] = "";

        return *root == '\0' && readlink("/proc/self", text, sizeof(text) - 1) > 0 &&
               strtoul(text, NULL, 10) == (unsigned long)getpid();
}

int host_processes_new(const char *root, struct host_processes **ret)
{
        CLEANUP(host_processes) struct host_processes *processes = calloc(1, sizeof(*processes));

        if (!processes)
                return -ENOMEM;
        processes->root = strdup(root);
        processes->items = calloc(HOST_PROCESSES_MAX, sizeof(*processes->items));
        processes->lives = calloc(HOST_PROCESSES_MAX, sizeof(*processes->lives));
        if (!processes->root || !processes->items || !processes->lives)
                return -ENOMEM;
        processes->have_clocks = ids_are_ours(root);
        processes->to_search = true;
        *ret = STEAL(processes);
        return 0;
}

static void process_close(struct host_process *process)
{
        fd_cleanup(&process->file);
        fd_cleanup(&process->life);
        process->file = process->life = -1;
}

struct host_processes *host_processes_free(struct host_processes *processes)
{
        if (!processes)
                return NULL;
        for (size_t i = 0; i < processes->n; i++)
                process_close(&processes->items[i]);
        free(processes->items);
        free(processes->lives);
        free(processes->seen);
        free(processes->root);
        free(processes);
        return NULL;
}

/* The value of "-i 3", "-i3", "--id 3" or "--id=3" when @argument is that option. */
static const char *option_value(const char *argument, const char *next, const char *name)
{
        size_t length = strlen(name);

        if (strncmp(argument, name, length) != 0)
                return NULL;
        if (argument[length] == '\0')
                return next;
        if (name[1] != '-')
                return argument + length;
        return argument[length] == '=' ? argument + length + 1 : NULL;
}

static void id_note(struct host_process *process, const char *value)
{
        if (strncmp(value, "osd.", 4) == 0)
                value += 4;
        if (isdigit((unsigned char)*value) && strspn(value, "0123456789") == strlen(value) &&
                strlen(value) <= 10)
                snprintf(process->name, sizeof(process->name), "osd.%s", value);
}

/* Arguments, each with a NUL behind it, as in "ceph-osd -f --cluster ceph --id 3". */
static int command_parse(const char *command, size_t size, struct host_process *process)
{
        static const char *const id_options[] = {"-i", "--id", "-n", "--name"};
        static const char *const cluster_options[] = {"--fsid", "--cluster"};
        const char *end = command + size, *value;

        for (const char *argument = command; argument < end; argument += strlen(argument) + 1) {
                const char *next = argument + strlen(argument) + 1;

                next = next < end ? next : "";
                for (size_t i = 0; i < sizeof(id_options) / sizeof(id_options[0]); i++) {
                        value = option_value(argument, next, id_options[i]);
                        if (value)
                                id_note(process, value);
                }
                for (size_t i = 0; i < sizeof(cluster_options) / sizeof(cluster_options[0]); i++) {
                        value = option_value(argument, next, cluster_options[i]);
                        if (value && strcmp(value, "ceph") != 0)
                                snprintf(process->identity, sizeof(process->identity), "%.63s",
                                        value);
                }
        }
        return process->name[0] ? 0 : -ENOENT;
}

/* What a field of /proc/PID/stat is, counted from the state, the first one behind the name. */
enum {
        FIELD_USER = 11,
        FIELD_SYSTEM = 12,
        FIELD_THREADS = 17,
        FIELD_START = 19,
        FIELD_PAGES = 21,
        FIELD_MAX_,
};

static void value_set(struct host_process *process, unsigned i, bool good, uint64_t value)
{
        process->values[i] = value;
        *(good ? &process->present : &process->broken) |= 1u << i;
}

/*
 * "5845 (ceph-osd) S 1 ...": the name may hold anything, so that fields count from the last ')'.
 * The start time, once known, stays: the descriptor is that process's.
 */
static void stat_parse(const char *text, struct host_process *process)
{
        static const uint8_t fields[HOST_PROCESS_METRICS] = {
                FIELD_USER, FIELD_SYSTEM, FIELD_PAGES, FIELD_THREADS};
        uint64_t numbers[FIELD_MAX_], kibibytes;
        const char *name_end = strrchr(text, ')');
        uint32_t good = proc_numbers_parse(name_end ? name_end + 1 : "", FIELD_MAX_, numbers);

        process->present = process->broken = 0;
        if (__builtin_mul_overflow(
                    numbers[FIELD_PAGES], (uint64_t)sysconf(_SC_PAGESIZE) / 1024, &kibibytes))
                good &= ~(1u << FIELD_PAGES);
        numbers[FIELD_PAGES] = kibibytes;
        for (unsigned i = 0; i < HOST_PROCESS_METRICS; i++)
                value_set(process, i, good & 1u << fields[i], numbers[fields[i]]);
        if (good & 1u << FIELD_START)
                process->start_ticks = numbers[FIELD_START];
}

/* -errno when the process is gone. */
static int process_read(struct host_process *process)
{
        char text[STAT_MAX];
        ssize_t n = text_file_read_again(process->file, text, sizeof(text));

        if (n < 0)
                return (int)n;
        stat_parse(text, process);
        return 0;
}

/* Of all its threads, the ended ones too. The form of the id is the kernel's: see
 * clock_getcpuclockid(3), which asks for the same clock once more. */
static int clock_read(struct host_process *process)
{
        clockid_t id = (clockid_t)((~process->pid << 3) | 2);
        struct timespec time;

        if (clock_gettime(id, &time) < 0)
                return -errno;
        process->cpu_ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
        return 0;
}

/* -errno when the process is gone. With a clock, what is read may be the next one's of the same id:
 * its life tells. */
static int process_look(struct host_process *process, uint64_t now_us)
{
        int r = process->life >= 0 ? clock_read(process) : 0;

        if (r < 0 || (process->life >= 0 && now_us - process->read_us <
                                                    HOST_PROCESS_INTERVAL_US - READ_SLACK_US))
                return r;
        process->read_us = now_us;
        return process_read(process);
}

/* So that the processes of a node are not all read in the same row. */
static uint64_t phase(uint32_t pid)
{
        return pid * 2654435761u % HOST_PROCESS_INTERVAL_US;
}

int host_process_read_start(const char *root, uint32_t pid, uint64_t *ret_ticks)
{
        struct host_process process = {.pid = pid, .file = -1, .life = -1};
        char path[PATH_MAX];
        int r;

        snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/stat", root, pid);
        process.file = open(path, O_RDONLY | O_CLOEXEC);
        if (process.file < 0)
                return -errno;
        r = process_read(&process);
        close(process.file);
        if (r < 0)
                return r;
        /* No process that has a command is as old as the machine. */
        if (process.start_ticks == 0)
                return -EBADMSG;
        *ret_ticks = process.start_ticks;
        return 0;
}

static bool is_known(const struct host_processes *processes, uint32_t pid)
{
        for (size_t i = 0; i < processes->n; i++)
                if (processes->items[i].pid == pid)
                        return true;
        return false;
}

/* 1 when @pid is an OSD that was not known. */
static int process_add(struct host_processes *processes, int proc, uint32_t pid, uint64_t now_us)
{
        struct host_process process = {.pid = pid, .file = -1, .life = -1};
        char path[64], text[COMMAND_MAX] = "";
        ssize_t n;

        if (processes->n >= HOST_PROCESSES_MAX)
                return 0;
        snprintf(path, sizeof(path), "%" PRIu32 "/comm", pid);
        n = text_file_read(proc, path, text, sizeof(text));
        if (n <= 0 || strcmp(text, PROCESS_NAME "\n") != 0 || is_known(processes, pid))
                return 0;
        snprintf(path, sizeof(path), "%" PRIu32 "/cmdline", pid);
        n = text_file_read(proc, path, text, sizeof(text));
        if (n <= 0 || command_parse(text, (size_t)n, &process) < 0)
                return 0;
        snprintf(path, sizeof(path), "%" PRIu32 "/stat", pid);
        process.file = openat(proc, path, O_RDONLY | O_CLOEXEC);
        if (process.file < 0)
                return 0;
        process.life = processes->have_clocks ? pidfd_open((pid_t)pid, 0) : -1;
        /* The file can be read: so what was opened behind it is the same process's. */
        if (process_read(&process) < 0 || (process.life >= 0 && clock_read(&process) < 0)) {
                process_close(&process);
                return 0;
        }
        process.read_us = now_us - phase(pid);
        processes->items[processes->n++] = process;
        return 1;
}

static bool seen_before(const struct host_processes *processes, uint32_t pid, size_t *hint)
{
        while (*hint < processes->n_seen && processes->seen[*hint] < pid)
                (*hint)++;
        return *hint < processes->n_seen && processes->seen[*hint] == pid;
}

static int pid_note(uint32_t **pids, size_t *n, uint32_t pid)
{
        if ((*n & (*n - 1)) == 0) {
                uint32_t *grown = reallocarray(*pids, *n ? *n * 2 : 1, sizeof(**pids));

                if (!grown)
                        return -ENOMEM;
                *pids = grown;
        }
        (*pids)[(*n)++] = pid;
        return 0;
}

/* /proc lists processes in the order of their ids. 1 when a new OSD is there. */
static int search(struct host_processes *processes, bool full, uint64_t now_us)
{
        CLEANUP(mem) uint32_t *pids = NULL;
        size_t n = 0, hint = 0;
        char path[PATH_MAX];
        struct dirent *entry;
        int r = 0, found = 0;
        DIR *folder;

        snprintf(path, sizeof(path), "%s/proc", processes->root);
        folder = opendir(path);
        if (!folder)
                return 0;
        while (r == 0 && n < PIDS_MAX && (entry = readdir(folder))) {
                uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);

                if (pid == 0)
                        continue;
                r = pid_note(&pids, &n, pid);
                if (r == 0 && (full || !seen_before(processes, pid, &hint)))
                        found |= process_add(processes, dirfd(folder), pid, now_us);
        }
        closedir(folder);
        if (r < 0)
                return r;
        free(processes->seen);
        processes->seen = STEAL(pids);
        processes->n_seen = n;
        return found;
}

static int compare_processes(const void *a, const void *b)
{
        const struct host_process *x = a, *y = b;
        int order = strverscmp(x->name, y->name);

        return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Two clusters may have an osd.0 each and no word about it in the command line. */
static void names_tell_apart(struct host_processes *processes)
{
        struct host_process *items = processes->items;

        for (size_t i = 1; i < processes->n; i++)
                if (strcmp(items[i].name, items[i - 1].name) == 0 &&
                        strcmp(items[i].identity, items[i - 1].identity) == 0)
                        snprintf(items[i].identity, sizeof(items[i].identity), "pid %" PRIu32,
                                items[i].pid);
}

bool host_processes_will_search(struct host_processes *processes, uint64_t now_us)
{
        processes->to_search |= processes->gone || now_us - processes->searched_us >= SEARCH_US;
        return processes->to_search;
}

/* 1 when they are not those from before. */
static int search_anew(struct host_processes *processes, uint64_t now_us)
{
        bool full = processes->searches++ % SEARCHES_FULL == 0 || processes->gone;
        int r;

        r = search(processes, full, now_us);
        if (r < 0)
                return r;
        processes->searched_us = now_us;
        processes->to_search = processes->gone = false;
        qsort(processes->items, processes->n, sizeof(*processes->items), compare_processes);
        names_tell_apart(processes);
        return r;
}

/* Those that have ended since; the clock that was read may have been another process's. */
static void ended_close(struct host_processes *processes)
{
        for (size_t i = 0; i < processes->n; i++)
                processes->lives[i] =
                        (struct pollfd){.fd = processes->items[i].life, .events = POLLIN};
        if (poll(processes->lives, processes->n, 0) <= 0)
                return;
        for (size_t i = 0; i < processes->n; i++)
                if (processes->lives[i].revents)
                        process_close(&processes->items[i]);
}

/* Leaves out those that are closed. Whether there were any. */
static bool closed_drop(struct host_processes *processes)
{
        size_t n = 0;
        bool gone;

        for (size_t i = 0; i < processes->n; i++) {
                if (processes->items[i].file < 0)
                        continue;
                if (n != i)
                        processes->items[n] = processes->items[i];
                n++;
        }
        gone = n != processes->n;
        processes->n = n;
        processes->gone |= gone;
        return gone;
}

int host_processes_read(struct host_processes *processes, uint64_t now_us,
        struct host_process **ret, size_t *ret_n, bool *ret_changed)
{
        bool changed = false;
        int r = 0;

        for (size_t i = 0; i < processes->n; i++) {
                struct host_process *process = &processes->items[i];
                uint64_t start_ticks = process->start_ticks;
                uint32_t present = process->present;

                if (process_look(process, now_us) < 0)
                        process_close(process);
                changed |= process->start_ticks != start_ticks || process->present != present;
        }
        ended_close(processes);
        changed |= closed_drop(processes);
        if (processes->to_search) {
                r = search_anew(processes, now_us);
                if (r < 0)
                        return r;
        }
        *ret = processes->items;
        *ret_n = processes->n;
        *ret_changed = changed || r > 0;
        return 0;
}
