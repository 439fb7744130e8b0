#include "agentd/host-file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "agentd/proc-number.h"

#define TEXT_BYTES_MAX (256u << 10) /* /proc/stat of a machine with 1,000 CPUs has about 150 KB */
#define CPU_TIMES 8u
/* A read gives whole lines of net/dev, as many as fit into a page; a line has 400 bytes at most, so
 * that less than this is the end. */
#define SHORT_READ_BYTES 3072

static const char *const names[HOST_FILE_MAX_] = {
        [HOST_FILE_STAT] = "stat",
        [HOST_FILE_MEMINFO] = "meminfo",
        [HOST_FILE_NET_DEV] = "net/dev",
        [HOST_FILE_PRESSURE_CPU] = "pressure/cpu",
        [HOST_FILE_PRESSURE_IO] = "pressure/io",
        [HOST_FILE_PRESSURE_MEMORY] = "pressure/memory",
};

/* Of the line that begins with @label, the number after @key. In the order of the file. */
static const struct label {
        enum host_file file;
        const char *label, *key;
        uint16_t metric;
} labels[] = {
        {HOST_FILE_MEMINFO, "MemTotal:", "", METRIC_HOST_MEMORY_TOTAL},
        {HOST_FILE_MEMINFO, "MemAvailable:", "", METRIC_HOST_MEMORY_AVAILABLE},
        {HOST_FILE_PRESSURE_CPU, "some", "total=", METRIC_HOST_PRESSURE_CPU_SOME},
        {HOST_FILE_PRESSURE_IO, "some", "total=", METRIC_HOST_PRESSURE_IO_SOME},
        {HOST_FILE_PRESSURE_IO, "full", "total=", METRIC_HOST_PRESSURE_IO_FULL},
        {HOST_FILE_PRESSURE_MEMORY, "some", "total=", METRIC_HOST_PRESSURE_MEMORY_SOME},
        {HOST_FILE_PRESSURE_MEMORY, "full", "total=", METRIC_HOST_PRESSURE_MEMORY_FULL},
};

struct host_files {
        int fds[HOST_FILE_MAX_];
        char text[TEXT_BYTES_MAX];
};

struct host_files *host_files_close(struct host_files *files)
{
        if (!files)
                return NULL;
        for (size_t i = 0; i < HOST_FILE_MAX_; i++)
                fd_cleanup(&files->fds[i]);
        free(files);
        return NULL;
}

int host_files_open(const char *root, struct host_files **ret)
{
        CLEANUP(host_files) struct host_files *files = malloc(sizeof(*files));

        if (!files)
                return -ENOMEM;
        for (size_t i = 0; i < HOST_FILE_MAX_; i++) {
                char path[PATH_MAX];

                snprintf(path, sizeof(path), "%s/proc/%s", root, names[i]);
                files->fds[i] = open(path, O_RDONLY | O_CLOEXEC);
        }
        if (files->fds[HOST_FILE_STAT] < 0)
                return -ENOENT;
        *ret = STEAL(files);
        return 0;
}

int host_file_read(struct host_files *files, enum host_file file, const char **ret, bool *ret_cut)
{
        size_t length = 0;

        *ret_cut = false;
        *ret = "";
        if (files->fds[file] < 0)
                return 0;
        do {
                ssize_t n = pread(files->fds[file], files->text + length,
                        TEXT_BYTES_MAX - 1 - length, (off_t)length);

                if (n < 0)
                        return -errno;
                length += (size_t)n;
                if (n < SHORT_READ_BYTES)
                        break;
                /* The kernel makes all but this one as a whole; of this a line at a time. */
        } while (file == HOST_FILE_NET_DEV && length < TEXT_BYTES_MAX - 1);
        files->text[length] = '\0';
        *ret_cut = length == 0 || files->text[length - 1] != '\n';
        *ret = files->text;
        return 0;
}

/* The line after the one at @line, or NULL at the end. */
static const char *line_next(const char *line)
{
        const char *newline = strchr(line, '\n');

        return newline && newline[1] ? newline + 1 : NULL;
}

static void value_set(struct host_values *values, uint16_t metric, bool good, uint64_t value)
{
        uint32_t bit = 1u << (metric - HOST_METRIC_FIRST);

        values->value[metric - HOST_METRIC_FIRST] = value;
        *(good ? &values->present : &values->broken) |= bit;
}

/* The sum of those @times that have a bit in @wanted. */
static void times_add(struct host_values *values, uint16_t metric, const uint64_t *times,
        uint32_t good, uint32_t wanted)
{
        bool fine = (good & wanted) == wanted;
        uint64_t sum = 0;

        for (unsigned i = 0; i < CPU_TIMES; i++)
                if (wanted & 1u << i)
                        fine &= !__builtin_add_overflow(sum, times[i], &sum);
        value_set(values, metric, fine, sum);
}

/* "cpu  user nice system idle iowait irq softirq steal guest guest_nice", "cpu0 ...", "ctxt 7". */
static void stat_take(const char *text, struct host_values *values)
{
        uint64_t times[CPU_TIMES] = {0}, n_cpus = 0;
        const char *line = text;
        uint32_t good = 0;

        if (strncmp(line, "cpu ", 4) == 0)
                good = proc_numbers_parse(line + 4, CPU_TIMES, times);
        while ((line = line_next(line)) && strncmp(line, "cpu", 3) == 0)
                n_cpus++;
        times_add(values, METRIC_HOST_CPU_USER, times, good, 1u << 0 | 1u << 1);
        times_add(values, METRIC_HOST_CPU_SYSTEM, times, good, 1u << 2 | 1u << 5 | 1u << 6);
        times_add(values, METRIC_HOST_CPU_IDLE, times, good, 1u << 3);
        times_add(values, METRIC_HOST_CPU_IOWAIT, times, good, 1u << 4);
        times_add(values, METRIC_HOST_CPU_STEAL, times, good, 1u << 7);
        /* Without a line behind them there may have been more. */
        value_set(values, METRIC_HOST_CPU_COUNT, line && n_cpus > 0, n_cpus);
}

static void label_take(const char *text, const struct label *label, struct host_values *values)
{
        size_t length = strlen(label->label);
        uint64_t number = 0;
        bool good = false;

        for (const char *line = text; line; line = line_next(line)) {
                const char *value, *newline;

                if (strncmp(line, label->label, length) != 0)
                        continue;
                newline = strchr(line, '\n');
                value = strstr(line + length, label->key);
                good = newline && value && value < newline &&
                       proc_numbers_parse(value + strlen(label->key), 1, &number) == 1;
                break;
        }
        value_set(values, label->metric, good, number);
}

void host_values_read(struct host_files *files, struct host_values *ret)
{
        enum host_file file = HOST_FILE_MAX_;
        const char *text = "";
        bool cut;
        int r;

        ret->present = ret->broken = 0;
        r = host_file_read(files, HOST_FILE_STAT, &text, &cut);
        stat_take(r < 0 ? "" : text, ret);
        for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
                const struct label *label = &labels[i];

                if (label->file != file) {
                        file = label->file;
                        text = "";
                        r = host_file_read(files, file, &text, &cut);
                }
                /* With psi=0 the file is there, but cannot be read. */
                if (files->fds[file] >= 0 && r != -EOPNOTSUPP)
                        label_take(text, label, ret);
        }
}
