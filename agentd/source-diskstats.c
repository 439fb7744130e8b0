/*
 * Every block device's counters, from /proc/diskstats: one descriptor, kept open.
 */
#include "agentd/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agentd/diskstats.h"
#include "lib/clock.h"
#include "lib/log.h"

#define FILE_BYTES_FIRST 16384u   /* about 150 devices; grows */
#define FILE_BYTES_MAX (8u << 20) /* 16,384 devices take 3 MB */
#define READ_BYTES 4096u          /* one read gives at most about this, however large the buffer */
#define SHORT_READ_BYTES 3072     /* a line has 500 at most, so that one more would have fitted */
#define REVIEW_US 10000000u       /* how often sysfs is asked whether one device has changed */

struct source {
        char *root;
        struct source_report report;
        int fd;
        char *buffer; /* ends with DISKSTATS_PADDING */
        size_t size, used;
        char *spare; /* of the same size: the text before, which the next is compared with */
        struct diskstats layout;
        uint32_t n_broken, n_failed; /* as last reported */
        uint64_t generation, facts_generation;
        uint64_t reviewed_us; /* CLOCK_MONOTONIC */
        uint32_t review_next;
};

static int buffer_grow(struct source *source)
{
        size_t size = source->size ? source->size * 2 : FILE_BYTES_FIRST;
        char *buffer;

        if (size > FILE_BYTES_MAX)
                return -EFBIG;
        buffer = realloc(source->buffer, size);
        if (!buffer)
                return -ENOMEM;
        source->buffer = buffer;
        /* What is in the spare one is not worth copying. */
        source->layout.before = NULL;
        free(source->spare);
        source->spare = malloc(size);
        if (!source->spare) {
                source->size = 0;
                return -ENOMEM;
        }
        source->size = size;
        return 0;
}

/*
 * A read of /proc gives whole lines, as many as fit into a page. So a short one is the last, and
 * the call that would return 0 is saved while the lines are the known ones: @whole asks for it.
 */
static int file_read(struct source *source, bool whole)
{
        source->used = 0;
        for (;;) {
                ssize_t n;
                int r;

                if (source->size - source->used <= READ_BYTES) {
                        r = buffer_grow(source);
                        if (r < 0)
                                return r;
                }
                n = pread(source->fd, source->buffer + source->used,
                        source->size - source->used - DISKSTATS_PADDING, (off_t)source->used);
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                source->used += (size_t)n;
                if (n < SHORT_READ_BYTES && !whole)
                        break;
        }
        memset(source->buffer + source->used, 0, DISKSTATS_PADDING);
        return 0;
}

static int layout_build(struct source *source)
{
        int r;

        r = diskstats_build(&source->layout, source->root, source->buffer, source->used);
        if (r < 0)
                return r;
        source->generation++;
        source->facts_generation++;
        source->review_next = 0;
        return 0;
}

/* Tells what has changed since the last row; the number of failures now. */
static uint32_t failures_report(struct source *source)
{
        struct diskstats *layout = &source->layout;
        uint32_t n = layout->n_broken;

        if (layout->n_broken != source->n_broken)
                source_report(&source->report,
                        layout->n_broken ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
                        "/proc/diskstats: %u lines cannot be understood", layout->n_broken);
        source->n_broken = layout->n_broken;
        if (!layout->noted)
                return n + source->n_failed;
        layout->noted = false;
        source->n_failed = 0;
        for (uint32_t i = 0; i < layout->n_entities; i++) {
                struct diskstats_disk *disk = &layout->disks[i];

                source->n_failed += disk->failed;
                if (disk->failed == disk->failed_before)
                        continue;
                disk->failed_before = disk->failed;
                if (disk->failed)
                        source_report(&source->report, LOG_LEVEL_WARNING,
                                "%s: a counter in /proc/diskstats is not a number from 0 to 2^64",
                                disk->device.facts.name);
                else
                        source_report(&source->report, LOG_LEVEL_INFO,
                                "%s: its counters are right again", disk->device.facts.name);
        }
        return n + source->n_failed;
}

/* Reads the sysfs of one disk again, and notes what it says. */
static int disk_review(struct source *source, struct diskstats_disk *disk)
{
        const struct facts_device *facts = &disk->device.facts;
        CLEANUP(device) struct device device = {0};
        struct device before;
        bool renamed, restarted;
        int r;

        r = device_read(source->root, facts->name, facts->major, facts->minor, &device);
        if (r < 0)
                return r;
        renamed = disk->device.sequence != device.sequence ||
                  strcmp(disk->device.facts.identity, device.facts.identity) != 0;
        /* Counters that go down within one life of the device are a new life to the reader. */
        restarted = STEAL_LEAVING(disk->restarted, false);
        disk->restarts += restarted && !renamed;
        if (device_equal(&device, &disk->device) && !restarted)
                return 0;
        before = disk->device;
        disk->device = device;
        device = before;
        source->facts_generation++;
        source->generation++;
        return diskstats_name_entities(&source->layout);
}

/* A device of no size has got one: it is in use now, though it has no I/O yet. */
static bool unused_has_size(const struct source *source, const struct diskstats_line *line)
{
        char name[DISKSTATS_NAME_MAX];
        uint64_t size_bytes;

        return sscanf(line->text, "%*u %*u %63s", name) == 1 &&
               device_read_size(source->root, name, &size_bytes) == 0 && size_bytes > 0;
}

/* A loop device keeps its line when its file goes, and when it gets another. */
static int loops_review(struct source *source)
{
        struct diskstats *layout = &source->layout;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < layout->n_entities; i++) {
                struct diskstats_disk *disk = &layout->disks[i];

                if (disk->device.facts.kind == DEVICE_LOOP &&
                        device_is_another(source->root, &disk->device))
                        r = disk_review(source, disk);
        }
        return r;
}

/* What the text of /proc/diskstats does not tell: a few files of sysfs, every ten seconds. */
static int layout_review(struct source *source)
{
        struct diskstats *layout = &source->layout;
        uint64_t now = clock_monotonic_us();
        int r;

        if (now - source->reviewed_us < REVIEW_US)
                return 0;
        source->reviewed_us = now;
        for (uint32_t i = 0; layout->n_unused && i < layout->n_lines; i++)
                if (layout->lines[i].kind == DISKSTATS_UNUSED &&
                        unused_has_size(source, &layout->lines[i]))
                        return layout_build(source);
        if (layout->n_entities == 0)
                return 0;
        r = loops_review(source);
        if (r < 0)
                return r;
        source->review_next = (source->review_next + 1) % layout->n_entities;
        return disk_review(source, &layout->disks[source->review_next]);
}

static int values_read(struct source *source)
{
        struct diskstats *layout = &source->layout;
        int r;

        r = diskstats_read(layout, source->buffer, source->used);
        if (r > 0) {
                r = file_read(source, true);
                if (r == 0)
                        r = layout_build(source);
                if (r == 0)
                        r = diskstats_read(layout, source->buffer, source->used);
                if (r > 0)
                        return -EBADMSG;
        }
        for (uint32_t i = 0; r == 0 && layout->noted && i < layout->n_entities; i++)
                if (layout->disks[i].restarted)
                        r = disk_review(source, &layout->disks[i]);
        return r;
}

/* The text of the last reading stays, to be compared with. */
static void buffer_choose(struct source *source)
{
        char *buffer = source->buffer;

        if (source->layout.before != buffer)
                return;
        source->buffer = source->spare;
        source->spare = buffer;
}

static int diskstats_collect(struct source *source, uint64_t deadline_us, struct sample *ret)
{
        struct diskstats *layout = &source->layout;
        int64_t time_us;
        int r;

        (void)deadline_us; /* Nothing here waits. */
        r = layout_review(source);
        if (r < 0)
                return r;
        time_us = clock_realtime_us();
        buffer_choose(source);
        r = file_read(source, false);
        if (r < 0)
                return r;
        r = values_read(source);
        if (r < 0)
                return r;
        *ret = (struct sample){
                .generation = source->generation,
                .entities = layout->entities,
                .n_entities = layout->n_entities,
                .columns = layout->columns,
                .n_columns = layout->n_columns,
                .values = layout->values,
                .present = layout->present,
                .time_us = time_us,
                .facts_generation = source->facts_generation,
                .failures = failures_report(source),
        };
        if (layout->n_entities == 0)
                return ret->failures > 0 ? -EBADMSG : -EAGAIN;
        return 0;
}

static int diskstats_add_facts(struct source *source, struct facts *facts)
{
        const struct diskstats *layout = &source->layout;
        struct facts_device *devices;

        if (facts->n_devices + layout->n_entities > FACTS_DEVICES_MAX)
                return -E2BIG;
        devices = reallocarray(
                facts->devices, facts->n_devices + layout->n_entities + 1, sizeof(*devices));
        if (!devices)
                return -ENOMEM;
        facts->devices = devices;
        for (uint32_t i = 0; i < layout->n_entities; i++) {
                CLEANUP(device) struct device copy = {0};
                int r;

                r = device_copy_facts(&layout->disks[i].device, &copy.facts);
                if (r < 0)
                        return r;
                free(copy.facts.identity);
                copy.facts.identity = strdup(layout->disks[i].identity);
                if (!copy.facts.identity)
                        return -ENOMEM;
                devices[facts->n_devices++] = STEAL_LEAVING(copy, (struct device){0}).facts;
        }
        return 0;
}

static void diskstats_close(struct source *source)
{
        if (!source)
                return;
        diskstats_done(&source->layout);
        if (source->fd >= 0)
                close(source->fd);
        free(source->buffer);
        free(source->spare);
        free(source->root);
        free(source);
}
DEFINE_CLEANUP(source, struct source *, diskstats_close)

static int diskstats_open(const struct source_options *options, const struct source_report *report,
        struct source **ret)
{
        CLEANUP(source) struct source *source = calloc(1, sizeof(*source));
        char path[PATH_MAX];

        if (!source)
                return -ENOMEM;
        source->fd = -1;
        source->report = *report;
        source->root = strdup(options->root);
        if (!source->root)
                return -ENOMEM;
        if (snprintf(path, sizeof(path), "%s/proc/diskstats", source->root) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        source->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (source->fd < 0)
                return -errno;
        source->reviewed_us = clock_monotonic_us();
        *ret = STEAL(source);
        return 0;
}

const struct source_class source_diskstats = {
        .id = SOURCE_DISKSTATS,
        .open = diskstats_open,
        .collect = diskstats_collect,
        .add_facts = diskstats_add_facts,
        .close = diskstats_close,
};
