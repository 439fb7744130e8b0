#include "agentd/diskstats.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/proc-number.h"
#include "agentd/proc-row.h"
#include "agentd/sysfs.h"
#include "lib/metric.h"

/* These two stand for "has the device restarted": 64 bits wide, they never wrap. */
#define FIELD_READ_OPS 0u
#define FIELD_WRITE_OPS 4u

/* The part of a line before its numbers. */
struct head {
        uint32_t major, minor;
        char name[DISKSTATS_NAME_MAX];
        size_t length; /* with the blank after the name */
        uint32_t n_fields;
        bool idle; /* all numbers are zero */
};

static inline const char *blanks_skip(const char *p)
{
        while (*p == ' ')
                p++;
        return p;
}

static uint32_t fields_count(const char *p, const char *end)
{
        uint32_t n = 0;

        for (bool blank = true; p < end; p++) {
                if (*p != ' ' && blank)
                        n++;
                blank = *p == ' ';
        }
        return n < DISKSTATS_FIELDS_MAX ? n : DISKSTATS_FIELDS_MAX;
}

static int name_parse(const char *name, const char *end, char *ret)
{
        size_t length = 0;

        while (name + length < end && name[length] > ' ' && name[length] < 0x7f)
                length++;
        if (length == 0 || length >= DISKSTATS_NAME_MAX || name[length] != ' ')
                return -EBADMSG;
        memcpy(ret, name, length);
        ret[length] = '\0';
        return (int)length;
}

static int head_parse(const char *line, const char *end, struct head *ret)
{
        uint64_t major, minor;
        const char *p;
        int r;

        p = proc_number_parse(blanks_skip(line), &major);
        if (!p || *p != ' ')
                return -EBADMSG;
        p = proc_number_parse(blanks_skip(p), &minor);
        if (!p || *p != ' ' || major > UINT32_MAX || minor > UINT32_MAX)
                return -EBADMSG;
        p = blanks_skip(p);
        r = name_parse(p, end, ret->name);
        if (r < 0)
                return r;
        p += r + 1;
        ret->major = (uint32_t)major;
        ret->minor = (uint32_t)minor;
        ret->length = (size_t)(p - line);
        ret->n_fields = fields_count(p, end);
        ret->idle = strspn(p, " 0") == (size_t)(end - p);
        return ret->n_fields > 0 ? 0 : -EBADMSG;
}

/* What is under way in diskstats_build. */
struct build {
        struct diskstats *layout, *old;
        const char *root;
        uint32_t hint;
        void *names; /* tree of the disks so far */
};

static void disk_done(struct diskstats_disk *disk)
{
        device_done(&disk->device);
        free(disk->identity);
        *disk = (struct diskstats_disk){0};
}

void diskstats_done(struct diskstats *layout)
{
        for (uint32_t i = 0; i < layout->n_lines; i++)
                free(layout->lines[i].text);
        for (uint32_t i = 0; i < layout->n_entities; i++)
                disk_done(&layout->disks[i]);
        free(layout->lines);
        free(layout->disks);
        free(layout->entities);
        free(layout->columns);
        free(layout->values);
        free(layout->present);
        *layout = (struct diskstats){0};
}

static inline void layout_cleanup(struct diskstats *layout)
{
        diskstats_done(layout);
}

static int layout_allocate(struct diskstats *layout, size_t n)
{
        layout->lines = calloc(n, sizeof(*layout->lines));
        layout->disks = calloc(n, sizeof(*layout->disks));
        layout->entities = calloc(n, sizeof(*layout->entities));
        layout->columns = calloc(n, DISKSTATS_FIELDS_MAX * sizeof(*layout->columns));
        layout->values = calloc(n, DISKSTATS_FIELDS_MAX * sizeof(*layout->values));
        layout->present = calloc(n, sizeof(*layout->present));
        if (!layout->lines || !layout->disks || !layout->entities || !layout->columns ||
                !layout->values || !layout->present)
                return -ENOMEM;
        return 0;
}

/* Lines keep their order, so that the search begins after the last one found. */
static struct diskstats_disk *disk_find(
        struct diskstats *layout, const struct head *head, uint32_t *hint)
{
        for (uint32_t i = 0; i < layout->n_entities; i++) {
                uint32_t index = (*hint + i) % layout->n_entities;
                struct facts_device *facts = &layout->disks[index].device.facts;

                if (!facts->name || facts->major != head->major || facts->minor != head->minor ||
                        strcmp(facts->name, head->name) != 0)
                        continue;
                *hint = index + 1;
                return &layout->disks[index];
        }
        return NULL;
}

static void columns_add(struct diskstats *layout, struct diskstats_line *line, uint32_t n)
{
        line->entity = layout->n_entities;
        line->first_column = layout->n_columns;
        line->n_columns = n;
        for (uint32_t i = 0; i < n; i++)
                layout->columns[layout->n_columns++] = (struct block_column){
                        .entity = line->entity, .metric = (uint16_t)(METRIC_DISK_READ_OPS + i)};
}

/* Takes the disk out of the layout of before, with its last values, or reads its sysfs. */
static int disk_add(struct build *build, const struct head *head, struct diskstats_line *line)
{
        struct diskstats *layout = build->layout, *old = build->old;
        struct diskstats_disk *disk = &layout->disks[layout->n_entities];
        struct diskstats_disk *known = disk_find(old, head, &build->hint);
        struct diskstats_line *line_before;
        bool partition;
        int r;

        if (known && device_is_another(build->root, &known->device))
                known = NULL;
        line_before = known ? &old->lines[known->line] : NULL;
        if (known) {
                *disk = *known;
                known->device = (struct device){0};
                known->identity = NULL;
        } else {
                r = device_read(build->root, head->name, head->major, head->minor, &disk->device);
                if (r < 0)
                        return r;
        }
        disk->line = layout->n_lines;
        partition = disk->device.facts.kind == DEVICE_PARTITION &&
                    head->n_fields > DISKSTATS_FIELDS_OF_PARTITION;
        columns_add(layout, line, partition ? DISKSTATS_FIELDS_OF_PARTITION : head->n_fields);
        if (known && line_before->n_columns == line->n_columns) {
                memcpy(layout->values + line->first_column, old->values + line_before->first_column,
                        line->n_columns * sizeof(uint64_t));
                layout->present[line->entity] = old->present[line_before->entity];
        }
        layout->n_entities++;
        return 0;
}

static enum diskstats_kind line_classify(const char *root, const struct head *head)
{
        uint64_t size_bytes;
        int r;

        if (strncmp(head->name, "ram", 3) == 0)
                return DISKSTATS_IGNORED;
        if (!head->idle)
                return DISKSTATS_COUNTED;
        r = device_read_size(root, head->name, &size_bytes);
        if (r < 0)
                return strncmp(head->name, "loop", 4) == 0 ? DISKSTATS_UNUSED : DISKSTATS_COUNTED;
        return size_bytes == 0 ? DISKSTATS_UNUSED : DISKSTATS_COUNTED;
}

static int disk_compare_names(const void *a, const void *b)
{
        const struct diskstats_disk *x = a, *y = b;

        return strcmp(x->device.facts.name, y->device.facts.name);
}

static int disk_compare_identities(const void *a, const void *b)
{
        const struct diskstats_disk *x = a, *y = b;

        return strcmp(x->device.facts.identity, y->device.facts.identity);
}

/* The disk itself, or one before it that is equal; NULL when memory is short. */
static struct diskstats_disk *tree_add(
        void **tree, struct diskstats_disk *disk, int (*compare)(const void *, const void *))
{
        struct diskstats_disk **node = tsearch(disk, tree, compare);

        return node ? *node : NULL;
}

static void tree_keep(void *key)
{
        (void)key; /* The tree does not own its disks. */
}

/* A name that was there before: the kernel prints a line twice when devices come or go meanwhile.
 */
static int duplicate_remove(struct build *build, struct diskstats_line *line)
{
        struct diskstats *layout = build->layout;
        struct diskstats_disk *disk = &layout->disks[line->entity], *first;

        first = tree_add(&build->names, disk, disk_compare_names);
        if (!first)
                return -ENOMEM;
        if (first == disk)
                return 0;
        line->kind = DISKSTATS_BROKEN;
        layout->n_columns = line->first_column;
        layout->n_entities--;
        disk_done(disk);
        layout->present[line->entity] = 0;
        return 0;
}

/* @end is the newline, or the end of a text that is cut. */
static int line_add(struct build *build, const char *text, const char *end)
{
        struct diskstats *layout = build->layout;
        struct diskstats_line *line = &layout->lines[layout->n_lines];
        struct head head = {0};
        int r;

        line->kind = DISKSTATS_BROKEN;
        if (*end == '\n' && head_parse(text, end, &head) == 0 &&
                layout->n_entities < BLOCK_ENTITIES_MAX &&
                layout->n_columns + DISKSTATS_FIELDS_MAX <= BLOCK_COLUMNS_MAX) {
                line->kind = line_classify(build->root, &head);
                line->n_fields = head.n_fields;
        }
        if (line->kind == DISKSTATS_COUNTED) {
                r = disk_add(build, &head, line);
                if (r < 0)
                        return r;
                r = duplicate_remove(build, line);
                if (r < 0)
                        return r;
        }
        line->length = line->kind == DISKSTATS_COUNTED || line->kind == DISKSTATS_IGNORED
                               ? head.length
                               : (size_t)(end - text) + (*end == '\n');
        line->text = malloc(line->length + 1);
        if (!line->text)
                return -ENOMEM;
        memcpy(line->text, text, line->length);
        line->text[line->length] = '\0';
        layout->n_lines++;
        layout->n_broken += line->kind == DISKSTATS_BROKEN;
        layout->n_unused += line->kind == DISKSTATS_UNUSED;
        return 0;
}

static size_t lines_count(const char *text, const char *end)
{
        size_t n = 1;

        for (; text < end; text++)
                n += *text == '\n';
        return n;
}

static int lines_add(struct build *build, const char *text, const char *end)
{
        while (text < end) {
                const char *newline = memchr(text, '\n', (size_t)(end - text));
                int r;

                newline = newline ? newline : end;
                r = line_add(build, text, newline);
                if (r < 0)
                        return r;
                text = newline + 1;
        }
        return 0;
}

int diskstats_build(struct diskstats *layout, const char *root, const char *text, size_t size)
{
        CLEANUP(layout) struct diskstats old = *layout;
        struct build build = {.layout = layout, .old = &old, .root = root};
        int r;

        *layout = (struct diskstats){0};
        r = layout_allocate(layout, lines_count(text, text + size));
        if (r == 0)
                r = lines_add(&build, text, text + size);
        if (r == 0)
                r = diskstats_name_entities(layout);
        tdestroy(build.names, tree_keep);
        layout->noted = true; /* those that failed may be gone */
        if (r < 0)
                diskstats_done(layout);
        return r;
}

/* Two paths to one disk have the same WWN, but are two counters. */
static int identities_make(struct diskstats *layout, bool *shared)
{
        void *tree = NULL;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < layout->n_entities; i++) {
                struct diskstats_disk *disk = &layout->disks[i];
                struct diskstats_disk *first = tree_add(&tree, disk, disk_compare_identities);

                if (!first)
                        r = -ENOMEM;
                else if (first != disk)
                        shared[i] = shared[first - layout->disks] = true;
        }
        tdestroy(tree, tree_keep);
        for (uint32_t i = 0; r == 0 && i < layout->n_entities; i++) {
                struct diskstats_disk *disk = &layout->disks[i];
                const struct facts_device *facts = &disk->device.facts;
                char text[BLOCK_NAME_MAX + 1];

                snprintf(text, sizeof(text), shared[i] ? "%.190s@%s" : "%s", facts->identity,
                        facts->name);
                free(disk->identity);
                disk->identity = strdup(text);
                r = disk->identity ? 0 : -ENOMEM;
        }
        return r;
}

int diskstats_name_entities(struct diskstats *layout)
{
        CLEANUP(mem) bool *shared = calloc(layout->n_entities + 1, sizeof(*shared));
        int r;

        if (!shared)
                return -ENOMEM;
        r = identities_make(layout, shared);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < layout->n_entities; i++) {
                struct diskstats_disk *disk = &layout->disks[i];

                layout->entities[i] = (struct block_entity){.name = disk->device.facts.name,
                        .identity = disk->identity,
                        .instance = disk->device.sequence | (uint64_t)disk->restarts << 40};
        }
        return 0;
}

/* What there is to tell of a disk; rare, and kept away from the memory that each tick goes through.
 */
static void disk_note(struct diskstats *layout, uint32_t entity, bool failed, bool restarted)
{
        struct diskstats_disk *disk = &layout->disks[entity];

        layout->noted |= disk->failed != failed || restarted;
        layout->present[entity] = !failed;
        disk->failed = failed;
        disk->restarted |= restarted;
}

/* The end of the line, or NULL when it has another number of numbers than it had. */
static const char *values_read(
        struct diskstats *layout, const struct diskstats_line *line, const char *p, const char *end)
{
        uint64_t *values = layout->values + line->first_column;
        bool present = layout->present[line->entity];
        bool comparable = present && line->n_columns > FIELD_WRITE_OPS;
        uint64_t reads = values[FIELD_READ_OPS];
        uint64_t writes = comparable ? values[FIELD_WRITE_OPS] : 0;
        const char *rest = proc_row_parse(p, line->n_columns, values);
        bool restarted = rest && comparable &&
                         (values[FIELD_READ_OPS] < reads || values[FIELD_WRITE_OPS] < writes);

        if (!rest || !present || restarted)
                disk_note(layout, line->entity, !rest, restarted);
        if (rest && *rest == '\n')
                return rest;
        end = memchr(p, '\n', (size_t)(end - p)) ?: end;
        /* Numbers that we do not know, and flushes of a partition, are passed over. */
        if (rest && line->n_fields == DISKSTATS_FIELDS_MAX)
                return end;
        return fields_count(p, end) == line->n_fields ? end : NULL;
}

/* The beginning of the next line, or NULL when this is another line than it was. */
static const char *line_read(struct diskstats *layout, const struct diskstats_line *line,
        const char *p, const char *end, const char *before)
{
        const char *head = before ? before : line->text; /* the text before is at hand */

        if ((size_t)(end - p) < line->length || memcmp(p, head, line->length) != 0)
                return NULL;
        p += line->length;
        if (line->kind == DISKSTATS_COUNTED)
                p = values_read(layout, line, p, end);
        else if (line->kind == DISKSTATS_IGNORED)
                p = memchr(p, '\n', (size_t)(end - p));
        else
                return p;
        return p && p < end ? p + 1 : NULL;
}

int diskstats_read(struct diskstats *layout, const char *text, size_t size)
{
        const char *p = text, *end = text + size, *before = STEAL(layout->before);

        for (uint32_t i = 0; i < layout->n_lines; i++) {
                struct diskstats_line *line = &layout->lines[i];
                const char *begin = p, *same = before;

                if (before)
                        before += line->size;
                if (same && (size_t)(end - p) >= line->size && memcmp(p, same, line->size) == 0) {
                        p += line->size;
                        continue;
                }
                p = line_read(layout, line, p, end, same);
                if (!p)
                        return 1;
                line->size = (uint32_t)(p - begin);
        }
        if (p != end)
                return 1;
        layout->before = text;
        return 0;
}
