#include "collectord/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 32u
#define SIGNIFICANT 10u
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

/* The digits of @number before @end; returns the first. */
static char *write_digits(char *end, uint64_t number)
{
        do
                *--end = (char)('0' + number % 10);
        while ((number /= 10) > 0);
        return end;
}

/*
 * As "%.10g" does, for what curves are mostly made of, in a tenth of its time. The last digit may
 * be another one where the eleventh and all behind are 5 and zeros. 0: not such a number.
 */
static size_t write_fraction(char *to, double value)
{
        static const double powers[] = {
                1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12};
        unsigned whole = 1, decimals;
        uint64_t digits;
        char *p = to;

        if (!(value >= 0.1 && value < 1e9))
                return 0;
        while (value >= powers[whole])
                whole++;
        decimals = SIGNIFICANT - (value < 1 ? 0 : whole);
        digits = (uint64_t)(value * powers[decimals] + 0.5);
        for (; decimals > 0 && digits % 10 == 0; decimals--)
                digits /= 10;
        for (char *end = to + NUMBER_MAX, *from = write_digits(end, digits); from < end; from++) {
                /* Of 0.012 there are two digits: what is before them is made here. */
                if (p == to && (unsigned)(end - from) <= decimals) {
                        *p++ = '0';
                        *p++ = '.';
                        for (unsigned i = (unsigned)(end - from); i < decimals; i++)
                                *p++ = '0';
                } else if ((unsigned)(end - from) == decimals)
                        *p++ = '.';
                *p++ = *from;
        }
        return (size_t)(p - to);
}

void text_number(struct text *text, double value)
{
        char number[2 * NUMBER_MAX], *end = number + NUMBER_MAX;
        size_t n;

        if (!isfinite(value)) {
                append(text, "null", 4);
                return;
        }
        if (value >= 0 && value < 1e15 && value == (double)(uint64_t)value) {
                char *p = write_digits(end, (uint64_t)value);

                append(text, p, (size_t)(end - p));
                return;
        }
        n = write_fraction(number, value);
        if (n == 0)
                n = (size_t)snprintf(number, sizeof(number), "%.10g", value);
        append(text, number, n);
}

void text_time(struct text *text, int64_t time_us)
{
        char number[NUMBER_MAX], *end = number + sizeof(number), *p;
        int n;

        if (time_us >= 0 && time_us % 1000000 == 0) {
                p = write_digits(end, (uint64_t)time_us / 1000000);
                append(text, p, (size_t)(end - p));
                return;
        }
        n = snprintf(number, sizeof(number), "%" PRId64 ".%06" PRId64, time_us / 1000000,
                time_us % 1000000);
        while (number[n - 1] == '0')
                n--;
        n -= number[n - 1] == '.';
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
