#pragma once
/* Rows by host, source and time: of a list of acknowledged blocks, or of a store. */

#include <stddef.h>
#include <stdint.h>

#include "lib/id.h"

struct row {
        struct id host;
        int64_t time_us;
        uint32_t source;
};

struct row_list {
        struct row *rows;
        size_t n, room;
};

void row_list_done(struct row_list *list);
/* Of load-agents --list. -EBADMSG: a line that is not one. A last line that is cut is left out. */
int row_list_read(struct row_list *list, const char *path);
/* Every row as it was sampled, of the store in @folder. */
int row_list_load(struct row_list *list, const char *folder);

struct row_counts {
        size_t missing; /* listed, not stored */
        size_t doubled; /* stored more than once */
        size_t others;  /* stored, not listed */
};
/* Sorts both. */
struct row_counts row_list_compare(struct row_list *listed, struct row_list *stored);
