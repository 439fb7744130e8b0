#include "collectord/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 32u
#define FORMAT_MAX 512u

void text_done(struct text *text)
{
        free(text->data);
        *text = (struct text){0};
}

static char *reserve(struct text *text, size_t n)
{
        size_t allocated = text->allocated ? text->allocated : 4096;
        char *data;

        if (text->error)
                return NULL;
        while (allocated - text->size < n + 1)
                allocated *= 2;
        if (allocated != text->allocated) {
                data = realloc(text->data, allocated);
                if (!data) {
                        text->error = -ENOMEM;
                        return NULL;
                }
                text->data = data;
                text->allocated = allocated;
        }
        return text->data + text->size;
}

static void append(struct text *text, const char *bytes, size_t n)
{
        char *to = reserve(text, n);

        if (!to)
                return;
        memcpy(to, bytes, n);
        to[n] = '\0';
        text->size += n;
}

void text_add(struct text *text, const char *literal)
{
        append(text, literal, strlen(literal));
}

void text_format(struct text *text, const char *format, ...)
{
        char *to = reserve(text, FORMAT_MAX);
        va_list arguments;
        int n;

        if (!to)
                return;
        va_start(arguments, format);
        n = vsnprintf(to, FORMAT_MAX, format, arguments);
        va_end(arguments);
        if (n < 0 || (unsigned)n >= FORMAT_MAX)
                text->error = -EOVERFLOW;
        else
                text->size += (size_t)n;
}

void text_number(struct text *text, double value)
{
        char number[NUMBER_MAX];

        if (!isfinite(value)) {
                append(text, "null", 4);
                return;
        }
        /* Most numbers are whole: ten times faster than %g. */
        if (value >= 0 && value < 1e15 && value == (double)(uint64_t)value) {
                char *end = number + sizeof(number), *p = end;
                uint64_t whole = (uint64_t)value;

                do
                        *--p = (char)('0' + whole % 10);
                while ((whole /= 10) > 0);
                append(text, p, (size_t)(end - p));
                return;
        }
        append(text, number, (size_t)snprintf(number, sizeof(number), "%.10g", value));
}

void text_time(struct text *text, int64_t time_us)
{
        char number[NUMBER_MAX];
        int n;

        if (time_us % 1000000 == 0)
                n = snprintf(number, sizeof(number), "%" PRId64, time_us / 1000000);
        else {
                n = snprintf(number, sizeof(number), "%" PRId64 ".%06" PRId64, time_us / 1000000,
                        time_us % 1000000);
                while (number[n - 1] == '0')
                        n--;
        }
        append(text, number, (size_t)n);
}

void text_string(struct text *text, const char *value)
{
        if (!value) {
                append(text, "null", 4);
                return;
        }
        append(text, "\"", 1);
        for (; *value; value++) {
                if (*value == '"' || *value == '\\') {
                        append(text, "\\", 1);
                        append(text, value, 1);
                } else if ((uint8_t)*value < 0x20)
                        text_format(text, "\\u%04x", *value);
                else
                        append(text, value, 1);
        }
        append(text, "\"", 1);
}

int text_take(struct text *text, char **ret, size_t *ret_size)
{
        if (text->error)
                return text->error;
        if (!reserve(text, 0))
                return -ENOMEM;
        text->data[text->size] = '\0';
        *ret_size = text->size;
        *ret = STEAL(text->data);
        text->size = text->allocated = 0;
        return 0;
}
