#include "tests/load/row-list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/store.h"

void row_list_done(struct row_list *list)
{
        free(list->rows);
        *list = (struct row_list){0};
}

static int add(struct row_list *list, const struct id *host, uint32_t source, int64_t time_us)
{
        if (list->n == list->room) {
                size_t room = list->room ? 2 * list->room : 4096;
                struct row *rows = realloc(list->rows, room * sizeof(*rows));

                if (!rows)
                        return -ENOMEM;
                list->rows = rows;
                list->room = room;
        }
        list->rows[list->n++] = (struct row){.host = *host, .source = source, .time_us = time_us};
        return 0;
}

/* "HOST BOOT SOURCE SEQUENCE TIME_US...\n" */
static int read_line(struct row_list *list, const char *line)
{
        char host_text[ID_TEXT_MAX];
        struct id host;
        uint32_t source;
        int used, r = 0;

        if (sscanf(line, "%36s %*s %" SCNu32 " %*u%n", host_text, &source, &used) != 2 ||
                id_parse(host_text, &host) < 0)
                return -EBADMSG;
        for (line += used; *line == ' ' && r == 0;) {
                char *end;

                r = add(list, &host, source, strtoll(line, &end, 10));
                line = end;
        }
        if (r == 0 && *line != '\n')
                return -EBADMSG;
        return r;
}

int row_list_read(struct row_list *list, const char *path)
{
        CLEANUP(file) FILE *file = fopen(path, "re");
        CLEANUP(str) char *line = NULL;
        size_t room = 0;
        ssize_t n;
        int r = 0;

        if (!file)
                return -errno;
        while (r == 0 && (n = getline(&line, &room, file)) > 0 && line[n - 1] == '\n')
                r = read_line(list, line);
        return r;
}

static int add_block(void *userdata, const struct store_block *stored)
{
        CLEANUP(block) struct block *block = NULL;
        const struct block_header *header;
        int r;

        r = block_open(stored->bytes, stored->size, &block);
        if (r < 0)
                return r;
        header = block_get_header(block);
        if (header->flags & BLOCK_FLAG_GAP)
                return 0;
        for (uint32_t row = 0; row < header->rows && r == 0; row++)
                r = add(userdata, &header->host, header->source, block_get_times(block)[row]);
        return r;
}

int row_list_load(struct row_list *list, const char *folder)
{
        CLEANUP(store_reader) struct store_reader *reader = NULL;
        int r;

        r = store_reader_open(folder, &reader);
        if (r < 0)
                return r;
        r = store_reader_begin(reader);
        for (enum source_id source = SOURCE_NONE + 1; source < SOURCE_MAX_ && r == 0; source++)
                r = store_read_blocks(reader, source, NULL, 0, INT64_MAX / 2, 0, add_block, list);
        store_reader_end(reader);
        return r;
}

static int compare(const void *a, const void *b)
{
        const struct row *x = a, *y = b;
        int order = memcmp(&x->host, &y->host, sizeof(x->host));

        if (order != 0)
                return order;
        if (x->source != y->source)
                return x->source < y->source ? -1 : 1;
        return (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

/* Of what stands in @list at @at and is the same. */
static size_t count_same(const struct row_list *list, size_t at)
{
        size_t n = 1;

        while (at + n < list->n && compare(&list->rows[at], &list->rows[at + n]) == 0)
                n++;
        return n;
}

struct row_counts row_list_compare(struct row_list *listed, struct row_list *stored)
{
        struct row_counts counts = {0};
        size_t i = 0, k = 0;

        if (listed->n > 0)
                qsort(listed->rows, listed->n, sizeof(*listed->rows), compare);
        if (stored->n > 0)
                qsort(stored->rows, stored->n, sizeof(*stored->rows), compare);
        while (i < listed->n || k < stored->n) {
                int order = i == listed->n   ? 1
                            : k == stored->n ? -1
                                             : compare(&listed->rows[i], &stored->rows[k]);

                counts.missing += order < 0;
                counts.others += order > 0;
                if (order >= 0) {
                        size_t same = count_same(stored, k);

                        counts.doubled += same > 1;
                        k += same;
                }
                if (order <= 0)
                        i += count_same(listed, i);
        }
        return counts;
}
