#include "lib/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CLIP_BYTES 64

int message_refuse(char **ret_message, const char *format, ...)
{
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vasprintf(ret_message, format, arguments);
        va_end(arguments);
        if (n < 0) {
                *ret_message = NULL;
                return -ENOMEM;
        }
        return -EINVAL;
}

int message_clip(const char *text)
{
        int length = (int)strnlen(text, CLIP_BYTES + 1);

        if (length <= CLIP_BYTES)
                return length;
        length = CLIP_BYTES;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
                length--;
        return length;
}
