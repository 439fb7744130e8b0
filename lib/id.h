#pragma once
/*
 * A 16-byte identity: cluster fsid, host id, boot id. All zero means none. Text form is the
 * lower-case RFC 9562 UUID, 36 characters.
 */

#include <stdbool.h>
#include <stdint.h>

#define ID_TEXT_MAX 37u /* with the terminating NUL */

struct id {
        uint8_t bytes[16];
};

/* Accepts 36 characters with hyphens or 32 without, either case. -EINVAL for anything else. */
int id_parse(const char *text, struct id *ret);
/* Writes the 36-character form and a NUL into @ret[ID_TEXT_MAX]; returns @ret. */
char *id_format(const struct id *id, char *ret);
bool id_equal(const struct id *a, const struct id *b);
bool id_is_zero(const struct id *id);
