/*
 * The node around the disks: CPU, memory, pressure, network interfaces, and the OSD processes. It
 * has a thread of its own, since reading another process's command line may wait for its memory.
 */
#include "agentd/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/host-process.h"
#include "agentd/text-file.h"
#include "lib/clock.h"

#define TEXT_BYTES_MAX (256u << 10) /* /proc/stat of a machine with 1,000 CPUs has about 150 KB */
#define NICS_MAX 4096u              /* each container may have one */
#define NIC_NAME_MAX 16u            /* IFNAMSIZ */
#define HOST_METRICS_MAX 16u
#define NIC_METRICS 6u

enum host_file {
        FILE_STAT,
        FILE_MEMINFO,
        FILE_NET_DEV,
        FILE_PRESSURE_CPU,
        FILE_PRESSURE_IO,
        FILE_PRESSURE_MEMORY,
        FILE_MAX_,
};

static const char *const file_names[FILE_MAX_] = {
        [FILE_STAT] = "stat",
        [FILE_MEMINFO] = "meminfo",
        [FILE_NET_DEV] = "net/dev",
        [FILE_PRESSURE_CPU] = "pressure/cpu", /* absent without CONFIG_PSI, or with psi=0 */
        [FILE_PRESSURE_IO] = "pressure/io",
        [FILE_PRESSURE_MEMORY] = "pressure/memory",
};

/* Of a line that begins with @label, the number after @key. */
static const struct {
        enum host_file file;
        const char *label, *key;
        uint16_t metric;
} labelled[] = {
        {FILE_MEMINFO, "MemTotal:", "", METRIC_HOST_MEMORY_TOTAL},
        {FILE_MEMINFO, "MemAvailable:", "", METRIC_HOST_MEMORY_AVAILABLE},
        {FILE_PRESSURE_CPU, "some", "total=", METRIC_HOST_PRESSURE_CPU_SOME},
        {FILE_PRESSURE_IO, "some", "total=", METRIC_HOST_PRESSURE_IO_SOME},
        {FILE_PRESSURE_IO, "full", "total=", METRIC_HOST_PRESSURE_IO_FULL},
        {FILE_PRESSURE_MEMORY, "some", "total=", METRIC_HOST_PRESSURE_MEMORY_SOME},
        {FILE_PRESSURE_MEMORY, "full", "total=", METRIC_HOST_PRESSURE_MEMORY_FULL},
};

static const uint16_t nic_metrics[NIC_METRICS] = {METRIC_NIC_RX_BYTES, METRIC_NIC_RX_PACKETS,
        METRIC_NIC_RX_DROPPED, METRIC_NIC_TX_BYTES, METRIC_NIC_TX_PACKETS, METRIC_NIC_TX_DROPPED};
/* Where they stand among the 16 numbers of a line. */
static const uint8_t nic_fields[NIC_METRICS] = {0, 1, 3, 8, 9, 11};

struct nic {
        char name[NIC_NAME_MAX];
        uint32_t index;    /* ifindex: another number is another interface of the same name */
        uint32_t restarts; /* some drivers begin at zero again */
        uint64_t values[NIC_METRICS];
};

struct source {
        char *root;
        int files[FILE_MAX_];
        char *text;
        size_t text_length;
        uint16_t metrics[HOST_METRICS_MAX]; /* of the entity "host": what this kernel has */
        uint16_t metrics_before[HOST_METRICS_MAX];
        uint64_t values[HOST_METRICS_MAX];
        uint32_t n_metrics;
        struct nic *nics, *nics_before;
        uint32_t n_nics, n_nics_before;
        struct host_processes *processes;
        const struct host_process *process;
        size_t n_processes;
        struct block_entity *entities;
        struct block_column *columns;
        uint64_t *row;
        uint32_t n_entities, n_columns, n_metrics_before;
        uint64_t generation;
};

/* 0 and no text when this kernel has no such file. What does not fit into the buffer is left. */
static int file_read(struct source *source, enum host_file file)
{
        source->text_length = 0;
        source->text[0] = '\0';
        if (source->files[file] < 0)
                return 0;
        while (source->text_length < TEXT_BYTES_MAX - 1) {
                ssize_t n = pread(source->files[file], source->text + source->text_length,
                        TEXT_BYTES_MAX - 1 - source->text_length, (off_t)source->text_length);

                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                source->text_length += (size_t)n;
        }
        source->text[source->text_length] = '\0';
        return 0;
}

/* The line after the one at @line, or NULL at the end. */
static const char *line_next(const char *line)
{
        const char *newline = strchr(line, '\n');

        return newline && newline[1] ? newline + 1 : NULL;
}

/* Up to @n numbers that follow each other; returns how many there are. */
static size_t numbers_parse(const char *text, size_t n, uint64_t *ret)
{
        size_t i;

        for (i = 0; i < n; i++) {
                char *end;

                text += strspn(text, " ");
                if (*text < '0' || *text > '9')
                        break;
                ret[i] = strtoull(text, &end, 10);
                text = end;
        }
        return i;
}

static void value_add(struct source *source, uint16_t metric, uint64_t value)
{
        source->metrics[source->n_metrics] = metric;
        source->values[source->n_metrics++] = value;
}

/* "cpu  user nice system idle iowait irq softirq steal guest guest_nice", then "cpu0 ...". */
static int stat_collect(struct source *source)
{
        uint64_t times[8] = {0}, n_cpus = 0;
        const char *line;
        size_t n;
        int r;

        r = file_read(source, FILE_STAT);
        if (r < 0)
                return r;
        line = source->text;
        if (strncmp(line, "cpu ", 4) != 0)
                return -EBADMSG;
        n = numbers_parse(line + 4, 8, times);
        if (n < 4)
                return -EBADMSG;
        while ((line = line_next(line)) && strncmp(line, "cpu", 3) == 0)
                n_cpus++;
        value_add(source, METRIC_HOST_CPU_USER, times[0] + times[1]);
        value_add(source, METRIC_HOST_CPU_SYSTEM, times[2] + times[5] + times[6]);
        value_add(source, METRIC_HOST_CPU_IDLE, times[3]);
        if (n > 4)
                value_add(source, METRIC_HOST_CPU_IOWAIT, times[4]);
        if (n > 7)
                value_add(source, METRIC_HOST_CPU_STEAL, times[7]);
        value_add(source, METRIC_HOST_CPU_COUNT, n_cpus);
        return 0;
}

static void label_collect(struct source *source, size_t index)
{
        const char *label = labelled[index].label, *key = labelled[index].key;

        for (const char *line = source->text; line; line = line_next(line)) {
                const char *newline = strchr(line, '\n'), *value;
                uint64_t number;

                if (strncmp(line, label, strlen(label)) != 0)
                        continue;
                value = strstr(line + strlen(label), key);
                if (value && newline && value < newline &&
                        numbers_parse(value + strlen(key), 1, &number) == 1)
                        value_add(source, labelled[index].metric, number);
                return;
        }
}

static int labels_collect(struct source *source)
{
        enum host_file file = FILE_MAX_;

        for (size_t i = 0; i < sizeof(labelled) / sizeof(labelled[0]); i++) {
                int r;

                if (labelled[i].file != file) {
                        file = labelled[i].file;
                        r = file_read(source, file);
                        if (r == -EOPNOTSUPP) /* psi=0: the file is there, but cannot be read */
                                source->text[0] = '\0';
                        else if (r < 0)
                                return r;
                }
                label_collect(source, i);
        }
        return 0;
}

static uint32_t nic_index_read(const struct source *source, const char *name)
{
        char path[PATH_MAX], text[16];

        snprintf(path, sizeof(path), "%s/sys/class/net/%s/ifindex", source->root, name);
        if (text_file_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
                return 0;
        return (uint32_t)strtoul(text, NULL, 10);
}

/* "  eth0: 238065206 6668 ..."; 1 for a line that is no interface or not of interest. */
static int nic_parse(const char *line, struct nic *ret)
{
        const char *colon = strchr(line, ':');
        uint64_t numbers[16];
        size_t length;

        line += strspn(line, " ");
        length = colon && colon > line ? (size_t)(colon - line) : 0;
        if (length == 0 || length >= NIC_NAME_MAX || memchr(line, '\n', length) ||
                memchr(line, '/', length))
                return 1;
        *ret = (struct nic){0};
        memcpy(ret->name, line, length);
        if (strcmp(ret->name, "lo") == 0 || numbers_parse(colon + 1, 16, numbers) != 16)
                return 1;
        for (size_t i = 0; i < NIC_METRICS; i++)
                ret->values[i] = numbers[nic_fields[i]];
        return 0;
}

static bool nic_went_down(const struct nic *nic, const struct nic *before)
{
        return nic->values[0] < before->values[0] || nic->values[3] < before->values[3];
}

/* Takes over what is known of @nic, or reads it. 1 when it is another interface than before. */
static int nic_know(struct source *source, struct nic *nic, const struct nic *before)
{
        bool same = before && strcmp(nic->name, before->name) == 0;

        if (same && !nic_went_down(nic, before)) {
                nic->index = before->index;
                nic->restarts = before->restarts;
                return 0;
        }
        nic->index = nic_index_read(source, nic->name);
        if (same)
                nic->restarts = before->restarts + (nic->index == before->index);
        return 1;
}

static int nics_collect(struct source *source, bool *changed)
{
        struct nic *nics = source->nics_before;
        int r;

        r = file_read(source, FILE_NET_DEV);
        if (r < 0)
                return r;
        source->nics_before = source->nics;
        source->nics = nics;
        source->n_nics_before = source->n_nics;
        source->n_nics = 0;
        for (const char *line = source->text; line && source->n_nics < NICS_MAX;
                line = line_next(line)) {
                uint32_t i = source->n_nics;

                if (nic_parse(line, &nics[i]) > 0)
                        continue;
                *changed |= nic_know(source, &nics[i],
                        i < source->n_nics_before ? &source->nics_before[i] : NULL);
                source->n_nics++;
        }
        *changed |= source->n_nics != source->n_nics_before;
        return 0;
}

static void column_add(struct source *source, uint16_t metric)
{
        source->columns[source->n_columns++] =
                (struct block_column){.entity = source->n_entities - 1, .metric = metric};
}

static void entity_add(
        struct source *source, const char *name, const char *identity, uint64_t instance)
{
        source->entities[source->n_entities++] =
                (struct block_entity){.name = name, .identity = identity, .instance = instance};
}

static int layout_build(struct source *source)
{
        size_t n_entities = 1 + source->n_nics + source->n_processes;
        size_t n_columns = source->n_metrics + source->n_nics * NIC_METRICS +
                           source->n_processes * HOST_PROCESS_METRICS;
        void *memory;

        memory = reallocarray(source->entities, n_entities, sizeof(*source->entities));
        if (!memory)
                return -ENOMEM;
        source->entities = memory;
        memory = reallocarray(source->columns, n_columns, sizeof(*source->columns));
        if (!memory)
                return -ENOMEM;
        source->columns = memory;
        memory = reallocarray(source->row, n_columns, sizeof(*source->row));
        if (!memory)
                return -ENOMEM;
        source->row = memory;
        memcpy(source->metrics_before, source->metrics, sizeof(source->metrics));
        source->n_metrics_before = source->n_metrics;
        source->generation++;
        return 0;
}

/* The names lie in arrays that swap, so that entities are made for each row. */
static void entities_make(struct source *source)
{
        source->n_entities = source->n_columns = 0;
        entity_add(source, "host", "", 0);
        for (uint32_t i = 0; i < source->n_metrics; i++)
                column_add(source, source->metrics[i]);
        for (uint32_t i = 0; i < source->n_nics; i++) {
                const struct nic *nic = &source->nics[i];

                entity_add(source, nic->name, "", nic->index | (uint64_t)nic->restarts << 32);
                for (size_t j = 0; j < NIC_METRICS; j++)
                        column_add(source, nic_metrics[j]);
        }
        for (size_t i = 0; i < source->n_processes; i++) {
                const struct host_process *process = &source->process[i];

                entity_add(source, process->name, process->identity, process->start_ticks);
                for (uint16_t j = 0; j < HOST_PROCESS_METRICS; j++)
                        column_add(source, METRIC_PROCESS_CPU_USER + j);
        }
}

static void values_make(struct source *source)
{
        uint64_t *value = source->row;

        for (uint32_t i = 0; i < source->n_metrics; i++)
                *value++ = source->values[i];
        for (uint32_t i = 0; i < source->n_nics; i++)
                for (size_t j = 0; j < NIC_METRICS; j++)
                        *value++ = source->nics[i].values[j];
        for (size_t i = 0; i < source->n_processes; i++)
                for (size_t j = 0; j < HOST_PROCESS_METRICS; j++)
                        *value++ = source->process[i].values[j];
}

static int host_collect(struct source *source, uint64_t deadline_us, struct sample *ret)
{
        int64_t time_us = clock_realtime_us();
        bool changed = false, processes_changed;
        int r;

        (void)deadline_us; /* The kernel answers from memory. */
        source->n_metrics = 0;
        r = stat_collect(source);
        if (r < 0)
                return r;
        r = labels_collect(source);
        if (r < 0)
                return r;
        r = nics_collect(source, &changed);
        if (r < 0)
                return r;
        r = host_processes_read(source->processes, clock_monotonic_us(), &source->process,
                &source->n_processes, &processes_changed);
        if (r < 0)
                return r;
        changed |= source->n_metrics != source->n_metrics_before ||
                   memcmp(source->metrics, source->metrics_before, sizeof(source->metrics)) != 0;
        if (changed || processes_changed) {
                r = layout_build(source);
                if (r < 0)
                        return r;
        }
        entities_make(source);
        values_make(source);
        *ret = (struct sample){
                .generation = source->generation,
                .entities = source->entities,
                .n_entities = source->n_entities,
                .columns = source->columns,
                .n_columns = source->n_columns,
                .values = source->row,
                .time_us = time_us,
        };
        return 0;
}

static void host_close(struct source *source)
{
        if (!source)
                return;
        for (size_t i = 0; i < FILE_MAX_; i++)
                fd_cleanup(&source->files[i]);
        host_processes_free(source->processes);
        free(source->root);
        free(source->text);
        free(source->nics);
        free(source->nics_before);
        free(source->entities);
        free(source->columns);
        free(source->row);
        free(source);
}
DEFINE_CLEANUP(source, struct source *, host_close)

static int host_open(const struct source_options *options, const struct source_report *report,
        struct source **ret)
{
        CLEANUP(source) struct source *source = calloc(1, sizeof(*source));
        int r;

        (void)report; /* What fails here fails as a whole. */
        if (!source)
                return -ENOMEM;
        for (size_t i = 0; i < FILE_MAX_; i++)
                source->files[i] = -1;
        source->root = strdup(options->root);
        source->text = malloc(TEXT_BYTES_MAX);
        source->nics = calloc(NICS_MAX, sizeof(*source->nics));
        source->nics_before = calloc(NICS_MAX, sizeof(*source->nics));
        if (!source->root || !source->text || !source->nics || !source->nics_before)
                return -ENOMEM;
        r = host_processes_new(source->root, &source->processes);
        if (r < 0)
                return r;
        for (size_t i = 0; i < FILE_MAX_; i++) {
                char path[PATH_MAX];

                snprintf(path, sizeof(path), "%s/proc/%s", source->root, file_names[i]);
                source->files[i] = open(path, O_RDONLY | O_CLOEXEC);
        }
        if (source->files[FILE_STAT] < 0)
                return -ENOENT;
        *ret = STEAL(source);
        return 0;
}

const struct source_class source_host = {
        .id = SOURCE_HOST,
        .may_wait = true,
        .deadline_us = 1000000,
        .open = host_open,
        .collect = host_collect,
        .close = host_close,
};
