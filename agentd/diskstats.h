#pragma once
/*
 * The text of /proc/diskstats. A line looks like
 *
 *    8       0 sda 36271 9802 3069538 11402 47101 12707 2984432 13880 0 12192 28712 ...
 *
 * and its 11, 15 (Linux 4.18) or 17 (5.5) numbers are the metrics 1 to 17 in that order. What the
 * lines mean (the layout) changes only when a device comes or goes. It is kept as the text with
 * which each line begins, so that a sample is a comparison of memory and a run over digits, and
 * sysfs is read for new devices alone. A line that is the same as in the reading before is not even
 * run over. Devices without size and history (the kernel makes eight
 * loops) are left out: their whole line is the text, so they cost that comparison and appear with
 * their first I/O.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentd/device.h"
#include "agentd/proc-row.h"
#include "lib/block.h"

#define DISKSTATS_FIELDS_MAX 17u /* numbers that we know; a newer kernel's are passed over */
#define DISKSTATS_FIELDS_OF_PARTITION 15u  /* no flushes are counted there, but zeroes printed */
#define DISKSTATS_PADDING PROC_ROW_PADDING /* NULs behind a text */
#define DISKSTATS_NAME_MAX 64u             /* the kernel's own limit is 32 */

enum diskstats_kind {
        DISKSTATS_COUNTED,
        DISKSTATS_IGNORED, /* a RAM disk */
        DISKSTATS_UNUSED,
        DISKSTATS_BROKEN, /* no device, name or numbers to be seen, or a name that was there before
                           */
};

struct diskstats_line {
        enum diskstats_kind kind;
        char *text; /* how it begins; all of it when unused or broken */
        uint32_t length;
        uint32_t size; /* of the whole line in the last reading */
        uint32_t n_fields;
        uint32_t entity, first_column, n_columns; /* of a counted one */
};

struct diskstats_disk {
        struct device device;
        char *identity;    /* the device's, and its name where two devices have the same */
        uint32_t restarts; /* times that the counters went down under the same diskseq */
        uint32_t line;
        bool failed; /* its numbers could not be read the last time */
        bool failed_before;
        bool restarted; /* a counter went down; whoever looks into it clears this */
};

struct diskstats {
        struct diskstats_line *lines;
        struct diskstats_disk *disks; /* [n_entities] */
        struct block_entity *entities;
        struct block_column *columns;
        uint64_t *values;
        uint8_t *present;
        uint32_t n_lines, n_entities, n_columns, n_broken, n_unused;
        const char *before; /* the text of the last reading, or NULL */
        bool noted; /* a disk has failed, is right again or restarted; whoever looks clears this */
};

/*
 * Makes the layout of @text[size], which DISKSTATS_PADDING follows, and puts it in the place of
 * @layout (zero at first). Devices known there keep their facts and last values; the others are
 * read from the tree at @root. -ENOMEM: @layout is empty then.
 */
int diskstats_build(struct diskstats *layout, const char *root, const char *text, size_t size);
void diskstats_done(struct diskstats *layout);

/*
 * Reads all values. DISKSTATS_PADDING follows @text, which stays the caller's and must live until
 * the next reading, which is compared with it. 0, or 1: the text has another layout. Disks whose
 * numbers cannot be read are marked failed and not present.
 */
int diskstats_read(struct diskstats *layout, const char *text, size_t size);

/* Makes names, identities and instances of the entities anew, after a disk has changed. -ENOMEM. */
int diskstats_name_entities(struct diskstats *layout);
