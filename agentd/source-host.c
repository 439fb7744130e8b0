/*
 * The node around the disks: CPU, memory, pressure, network interfaces, and the OSD processes. It
 * has a thread of its own for when it searches for processes, since reading another process's
 * command line may wait for its memory; the rest is read on the loop. A number that cannot be
 * understood costs its own column alone.
 */
#include "agentd/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/host-file.h"
#include "agentd/host-nic.h"
#include "agentd/host-process.h"
#include "lib/clock.h"
#include "lib/log.h"

struct source {
        struct source_report report;
        struct host_files *files;
        struct host_values host;
        uint32_t host_present; /* in the layout */
        uint32_t host_broken_told;
        struct host_nics *nics;
        struct host_nic *nic;
        size_t n_nics;
        bool nics_cut_told;
        bool may_wait; /* in this collect */
        struct host_processes *processes;
        struct host_process *process;
        size_t n_processes;
        struct block_entity *entities;
        struct block_column *columns;
        uint64_t *row;
        uint32_t n_entities, n_columns;
        uint64_t generation;
};

/* What has no number at all is not in the row. */
static void entity_add(struct source *source, const struct block_entity *entity,
        uint16_t metric_first, uint32_t present)
{
        if (present == 0)
                return;
        for (unsigned i = 0; present >> i; i++)
                if (present & 1u << i)
                        source->columns[source->n_columns++] =
                                (struct block_column){.entity = source->n_entities,
                                        .metric = (uint16_t)(metric_first + i)};
        source->entities[source->n_entities++] = *entity;
}

static int layout_allocate(struct source *source)
{
        size_t n_entities = 1 + source->n_nics + source->n_processes;
        size_t n_columns = HOST_METRICS + source->n_nics * (HOST_NIC_METRICS + 1) +
                           source->n_processes * (HOST_PROCESS_METRICS + 1);
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
        return 0;
}

static int layout_build(struct source *source)
{
        int r;

        source->n_entities = source->n_columns = 0;
        r = layout_allocate(source);
        if (r < 0)
                return r;
        entity_add(source, &(struct block_entity){.name = "host", .identity = ""},
                HOST_METRIC_FIRST, source->host.present);
        for (size_t i = 0; i < source->n_nics; i++) {
                const struct host_nic *nic = &source->nic[i];

                entity_add(source,
                        &(struct block_entity){.name = nic->name,
                                .identity = "",
                                .instance = nic->index | (uint64_t)nic->restarts << 32},
                        METRIC_NIC_RX_BYTES, nic->present);
                if (nic->present)
                        source->columns[source->n_columns++] = (struct block_column){
                                .entity = source->n_entities - 1, .metric = METRIC_NIC_SPEED};
        }
        for (size_t i = 0; i < source->n_processes; i++) {
                const struct host_process *process = &source->process[i];

                entity_add(source,
                        &(struct block_entity){.name = process->name,
                                .identity = process->identity,
                                .instance = process->start_ticks},
                        METRIC_PROCESS_CPU_USER, process->present);
                if (process->present && process->life >= 0)
                        source->columns[source->n_columns++] = (struct block_column){
                                .entity = source->n_entities - 1,
                                .metric = METRIC_PROCESS_CPU_TIME};
        }
        source->host_present = source->host.present;
        source->generation++;
        return 0;
}

static uint64_t *values_add(uint64_t *to, const uint64_t *values, uint32_t present)
{
        for (unsigned i = 0; present >> i; i++)
                if (present & 1u << i)
                        *to++ = values[i];
        return to;
}

static void row_make(struct source *source)
{
        uint64_t *to = values_add(source->row, source->host.value, source->host.present);

        for (size_t i = 0; i < source->n_nics; i++) {
                to = values_add(to, source->nic[i].values, source->nic[i].present);
                if (source->nic[i].present)
                        *to++ = source->nic[i].speed;
        }
        for (size_t i = 0; i < source->n_processes; i++) {
                to = values_add(to, source->process[i].values, source->process[i].present);
                if (source->process[i].present && source->process[i].life >= 0)
                        *to++ = source->process[i].cpu_ns;
        }
}

/* One line when what is broken changes. The number of broken values. */
static uint32_t broken_tell(struct source *source, const char *name, uint16_t metric_first,
        uint32_t broken, uint32_t *told)
{
        char text[400] = "";
        size_t length = 0;

        if (broken == *told)
                return (uint32_t)__builtin_popcount(broken);
        *told = broken;
        for (unsigned i = 0; broken >> i; i++) {
                const char *metric = metric_get((uint16_t)(metric_first + i))->name;

                if (broken & 1u << i && length + strlen(metric) + 3 < sizeof(text))
                        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
                                length > 0 ? ", " : "", metric);
        }
        if (broken)
                source_report(&source->report, LOG_LEVEL_WARNING,
                        "%s: what /proc has for %s is not a number from 0 to 2^64", name, text);
        else
                source_report(
                        &source->report, LOG_LEVEL_INFO, "%s: its numbers are right again", name);
        return (uint32_t)__builtin_popcount(broken);
}

static uint32_t cut_tell(struct source *source, bool cut)
{
        if (cut != source->nics_cut_told)
                source_report(&source->report, cut ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
                        cut ? "/proc/net/dev is empty or ends within a line"
                            : "/proc/net/dev is complete again");
        source->nics_cut_told = cut;
        return cut;
}

static uint32_t failures_tell(struct source *source, bool nics_cut)
{
        uint32_t n = cut_tell(source, nics_cut);

        n += broken_tell(
                source, "host", HOST_METRIC_FIRST, source->host.broken, &source->host_broken_told);
        for (size_t i = 0; i < source->n_nics; i++)
                n += broken_tell(source, source->nic[i].name, METRIC_NIC_RX_BYTES,
                        source->nic[i].broken, &source->nic[i].broken_told);
        for (size_t i = 0; i < source->n_processes; i++)
                n += broken_tell(source, source->process[i].name, METRIC_PROCESS_CPU_USER,
                        source->process[i].broken, &source->process[i].broken_told);
        return n;
}

static int host_collect(struct source *source, uint64_t deadline_us, struct sample *ret)
{
        int64_t time_us = clock_realtime_us();
        bool nics_changed, nics_cut, processes_changed;
        const char *text;
        int r;

        (void)deadline_us; /* The kernel answers from memory. */
        host_values_read(source->files, &source->host);
        if (host_file_read(source->files, HOST_FILE_NET_DEV, &text, &nics_cut) < 0)
                nics_cut = true;
        host_nics_read(
                source->nics, text, source->may_wait, &source->nic, &source->n_nics, &nics_changed);
        r = host_processes_read(source->processes, clock_monotonic_us(), &source->process,
                &source->n_processes, &processes_changed);
        if (r < 0)
                return r;
        if (nics_changed || processes_changed || source->host.present != source->host_present ||
                source->generation == 0) {
                r = layout_build(source);
                if (r < 0)
                        return r;
        }
        row_make(source);
        *ret = (struct sample){
                .generation = source->generation,
                .entities = source->entities,
                .n_entities = source->n_entities,
                .columns = source->columns,
                .n_columns = source->n_columns,
                .values = source->row,
                .time_us = time_us,
                .failures = failures_tell(source, nics_cut),
        };
        return source->n_columns > 0 ? 0 : -EBADMSG;
}

static bool host_will_wait(struct source *source)
{
        source->may_wait = host_processes_will_search(source->processes, clock_monotonic_us());
        return source->may_wait;
}

static void host_close(struct source *source)
{
        if (!source)
                return;
        host_files_close(source->files);
        host_nics_free(source->nics);
        host_processes_free(source->processes);
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

        if (!source)
                return -ENOMEM;
        source->report = *report;
        source->may_wait = true;
        r = host_files_open(options->root, &source->files);
        if (r < 0)
                return r;
        r = host_nics_new(options->root, &source->nics);
        if (r < 0)
                return r;
        r = host_processes_new(options->root, &source->processes);
        if (r < 0)
                return r;
        *ret = STEAL(source);
        return 0;
}

const struct source_class source_host = {
        .id = SOURCE_HOST,
        .may_wait = true,
        .deadline_us = 1000000,
        .open = host_open,
        .collect = host_collect,
        .will_wait = host_will_wait,
        .close = host_close,
};
