#pragma once
/*
 * A row of numbers in a file of /proc, such as those of a line of diskstats: seventeen of them for
 * each of a thousand devices, each second.
 */

#include <stdint.h>

#define PROC_ROW_PADDING 72u /* NULs behind the text: it is looked at by so many characters */

/*
 * Reads @n numbers from @p on, with one or more blanks between, each 0 to 2^64 - 1. The blank or
 * newline behind the last; NULL when one is missing or is no number.
 */
const char *proc_row_parse(const char *p, uint32_t n, uint64_t *ret);
