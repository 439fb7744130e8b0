#include "lib/id.h"

#include <errno.h>
#include <string.h>

static int hex_value(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -EINVAL;
}

/* A hyphen stands before these bytes: 8-4-4-4-12 digits. */
static bool hyphen_before(size_t byte)
{
        return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

int id_parse(const char *text, struct id *ret)
{
        size_t length = strnlen(text, ID_TEXT_MAX);
        bool hyphens = length == 36;
        struct id id;

        if (length != 36 && length != 32)
                return -EINVAL;

        for (size_t i = 0; i < sizeof(id.bytes); i++) {
                int high, low;

                if (hyphens && hyphen_before(i) && *text++ != '-')
                        return -EINVAL;
                high = hex_value(text[0]);
                if (high < 0)
                        return high;
                low = hex_value(text[1]);
                if (low < 0)
                        return low;
                id.bytes[i] = (uint8_t)(high << 4 | low);
                text += 2;
        }
        *ret = id;
        return 0;
}

char *id_format(const struct id *id, char *ret)
{
        static const char digits[] = "0123456789abcdef";
        char *p = ret;

        for (size_t i = 0; i < sizeof(id->bytes); i++) {
                if (hyphen_before(i))
                        *p++ = '-';
                *p++ = digits[id->bytes[i] >> 4];
                *p++ = digits[id->bytes[i] & 15];
        }
        *p = '\0';
        return ret;
}

bool id_equal(const struct id *a, const struct id *b)
{
        return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool id_is_zero(const struct id *id)
{
        static const struct id zero;

        return id_equal(id, &zero);
}
