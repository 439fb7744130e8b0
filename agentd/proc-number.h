#pragma once
/* Numbers in the text of /proc: the kernel's, but checked like any that comes from outside. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Digits only, up to UINT64_MAX; NULL for anything else. The text ends with a NUL. */
static inline const char *proc_number_parse(const char *p, uint64_t *ret)
{
        const char *begin = p;
        uint64_t value = 0;
        size_t digits;

        for (unsigned digit; (digit = (unsigned)*p - '0') < 10; p++)
                value = value * 10 + digit;
        digits = (size_t)(p - begin);
        if (digits - 1 >= 19) {
                /* Twenty digits may fit; none, or more, do not. */
                if (digits != 20)
                        return NULL;
                errno = 0;
                value = strtoull(begin, NULL, 10);
                if (errno != 0)
                        return NULL;
        }
        *ret = value;
        return p;
}

/*
 * Up to 32 words of a line that should be numbers, with blanks between. Bit i of the result: word i
 * is one, and the text goes on behind it; at the very end of a text it may have been cut. Values of
 * other words are 0.
 */
static inline uint32_t proc_numbers_parse(const char *p, unsigned n, uint64_t *ret)
{
        uint32_t good = 0;

        for (unsigned i = 0; i < n; i++) {
                const char *end;

                ret[i] = 0;
                while (*p == ' ')
                        p++;
                end = proc_number_parse(p, &ret[i]);
                if (end && (*end == ' ' || *end == '\n')) {
                        good |= 1u << i;
                        p = end;
                        continue;
                }
                ret[i] = 0;
                while (*p && *p != ' ' && *p != '\n')
                        p++;
        }
        return good;
}
