#include "cli/table.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define GAP "  "

struct cell {
        char *text;
        enum colour colour;
        size_t width;
};

struct table {
        const struct table_column *columns;
        size_t n_columns;
        struct cell *cells;
        size_t n_cells, capacity;
        bool failed;
};

int table_new(const struct table_column *columns, struct table **ret)
{
        struct table *table = calloc(1, sizeof(*table));

        if (!table)
                return -ENOMEM;
        table->columns = columns;
        while (columns[table->n_columns].header)
                table->n_columns++;
        assert(table->n_columns > 0);
        *ret = table;
        return 0;
}

struct table *table_free(struct table *table)
{
        if (!table)
                return NULL;
        for (size_t i = 0; i < table->n_cells; i++)
                free(table->cells[i].text);
        free(table->cells);
        free(table);
        return NULL;
}

/* Display columns; bytes that are no text of this locale count as one each. */
static size_t display_width(const char *text)
{
        mbstate_t state = {0};
        size_t width = 0;
        wchar_t character;

        while (*text) {
                size_t n = mbrtowc(&character, text, MB_CUR_MAX, &state);
                int w;

                if (n == (size_t)-1 || n == (size_t)-2) {
                        /* Outside a UTF-8 locale each character is shown as one '?'. */
                        memset(&state, 0, sizeof(state));
                        width += ((unsigned char)*text & 0xc0) != 0x80;
                        text++;
                        continue;
                }
                w = wcwidth(character);
                width += w > 0 ? (size_t)w : 0;
                text += n;
        }
        return width;
}

static int reserve(struct table *table)
{
        size_t capacity = table->capacity ? table->capacity * 2 : 64;
        struct cell *cells;

        if (table->n_cells < table->capacity)
                return 0;
        cells = reallocarray(table->cells, capacity, sizeof(*cells));
        if (!cells)
                return -ENOMEM;
        table->cells = cells;
        table->capacity = capacity;
        return 0;
}

void table_add(struct table *table, enum colour colour, const char *format, ...)
{
        va_list arguments;
        char *text = NULL;
        int n;

        if (table->failed || reserve(table) < 0) {
                table->failed = true;
                return;
        }
        va_start(arguments, format);
        n = vasprintf(&text, format, arguments);
        va_end(arguments);
        if (n < 0) {
                table->failed = true;
                return;
        }
        table->cells[table->n_cells++] =
                (struct cell){.text = text, .colour = colour, .width = display_width(text)};
}

static size_t column_width(const struct table *table, size_t column)
{
        size_t width = display_width(table->columns[column].header);

        for (size_t i = column; i < table->n_cells; i += table->n_columns)
                if (table->cells[i].width > width)
                        width = table->cells[i].width;
        return width;
}

static void print_cell(const struct table_column *column, const struct cell *cell, size_t width,
        bool last, struct output *output)
{
        int blanks = (int)(width - cell->width);
        const char *on = "", *off = "";

        if (cell->colour != COLOUR_NONE && *cell->text) {
                on = output_colour(output, cell->colour);
                off = output_plain(output);
        }
        if (column->right)
                fprintf(output->stream, "%*s%s%s%s", blanks, "", on, cell->text, off);
        else
                fprintf(output->stream, "%s%s%s%*s", on, cell->text, off, last ? 0 : blanks, "");
        fputs(last ? "\n" : GAP, output->stream);
}

/* Cells after this one are empty: nothing more is printed in this line. */
static size_t last_of_row(const struct cell *cells, size_t n)
{
        while (n > 1 && !*cells[n - 1].text)
                n--;
        return n - 1;
}

static void print_row(const struct table *table, const struct cell *cells, const size_t *widths,
        struct output *output)
{
        size_t last = last_of_row(cells, table->n_columns);

        for (size_t i = 0; i <= last; i++)
                print_cell(&table->columns[i], &cells[i], widths[i], i == last, output);
}

int table_print(struct table *table, struct output *output)
{
        CLEANUP(mem) size_t *widths = calloc(table->n_columns, sizeof(*widths));
        CLEANUP(mem) struct cell *headers = calloc(table->n_columns, sizeof(*headers));

        while (!table->failed && table->n_cells % table->n_columns != 0)
                table_add(table, COLOUR_NONE, "%s", "");
        if (table->failed || !widths || !headers)
                return -ENOMEM;

        for (size_t i = 0; i < table->n_columns; i++) {
                widths[i] = column_width(table, i);
                headers[i] = (struct cell){(char *)table->columns[i].header, COLOUR_BOLD,
                        display_width(table->columns[i].header)};
        }
        print_row(table, headers, widths, output);
        for (size_t i = 0; i < table->n_cells; i += table->n_columns)
                print_row(table, table->cells + i, widths, output);
        return 0;
}
