#pragma once
/*
 * An aligned table: cells are formatted as they come, widths are found at the end. Widths are
 * display columns of UTF-8 text.
 */

#include <stdbool.h>
#include <stddef.h>

#include "cli/output.h"
#include "lib/cleanup.h"

struct table_column {
        const char *header; /* NULL ends the list */
        bool right;         /* numbers */
};

struct table;

/* @columns outlives the table. -ENOMEM. */
int table_new(const struct table_column *columns, struct table **ret);
struct table *table_free(struct table *table);
DEFINE_CLEANUP(table, struct table *, table_free)

/* The next cell; the row is full after the last column, and the next cell begins another row. A
 * lack of memory is remembered and returned by table_print. */
__attribute__((format(printf, 3, 4))) void table_add(
        struct table *table, enum colour colour, const char *format, ...);

/* A row that is not full is filled with empty cells. Blanks at a line's end are left out. -ENOMEM.
 */
int table_print(struct table *table, struct output *output);
