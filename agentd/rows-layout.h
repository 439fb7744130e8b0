#pragma once
/* The file of agentd/rows.h, shared by rows.c (writes it) and rows-recover.c (trusts nothing in
 * it). In host byte order: it never leaves the machine. */

#include <stdatomic.h>

#include "agentd/rows.h"

/* Bound of one file: 300 rows of 1,000 devices with 17 metrics each are 41 MB. */
#define ROWS_BYTES_MAX (64u << 20)
#define ROWS_MAGIC "STRROWS2"

/* Offsets are from the begin of the file. The values, which are most of it, come last and row by
 * row: what a power loss takes from the end costs the rows that stood there and no others. */
struct layout {
        char magic[8];
        uint64_t check; /* of all that follows here and of the entities, columns and texts */
        struct id host, boot, cluster;
        uint64_t sequence;
        uint64_t interval_us;
        uint32_t source;
        uint32_t capacity;
        uint32_t n_entities;
        uint32_t n_columns;
        uint64_t columns_at, texts_at, times_at, checks_at, present_at, values_at, end_at;
        _Atomic uint32_t committed; /* stored last; not under the check */
        uint32_t reserved;
};

/* Follows the layout; name and identity are offsets into the texts. */
struct stored_entity {
        struct id cluster;
        uint64_t instance;
        uint32_t name, identity;
};

struct rows {
        enum source_id source;
        char *path; /* NULL: memory only */
        int error;  /* why the mapping is not the file's */
        uint8_t *map;
        size_t map_size;
        struct block_entity *entities; /* texts point into the map */
        uint32_t *picks;               /* of each column: its index in the sample */
        uint32_t n_sample_columns;
};

static inline struct layout *layout_of(const struct rows *rows)
{
        return (struct layout *)rows->map;
}

static inline void *rows_at(const struct rows *rows, uint64_t offset)
{
        return rows->map + offset;
}

/* Fills the offsets from the counts; @texts is the size of the texts. */
void layout_plan(struct layout *layout, uint64_t texts);
uint64_t layout_check(const struct rows *rows);
uint64_t layout_row_check(const struct rows *rows, uint32_t row);
int rows_load_entities(struct rows *rows);
void rows_unmap(struct rows *rows);
