#include "agentd/perf-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 64u /* bytes of a number with an exponent */
#define NANOSECONDS 1000000000u

/* Digits from @p; stops at the first byte that is none. -ERANGE above UINT64_MAX. */
int perf_digits_read(const char **p, const char *end, uint64_t *ret)
{
        uint64_t value = 0;

        for (unsigned digit; *p < end && (digit = (unsigned)**p - '0') < 10; (*p)++)
                if (__builtin_mul_overflow(value, 10u, &value) ||
                        __builtin_add_overflow(value, digit, &value))
                        return -ERANGE;
        *ret = value;
        return 0;
}

bool perf_whole_parse(const struct perf_token *token, uint64_t *ret)
{
        const char *p = token->text, *end = p + token->length;

        return perf_digits_read(&p, end, ret) == 0 && p == end;
}

/* Seconds with a fraction to nanoseconds; an exponent is legal, though the OSD prints none. */
bool perf_seconds_parse(const struct perf_token *token, uint64_t *ret)
{
        const char *p = token->text, *end = p + token->length;
        uint64_t seconds, nanoseconds = 0;
        char copy[NUMBER_MAX], *rest;
        double number;

        if (perf_digits_read(&p, end, &seconds) < 0)
                return false;
        if (p < end && *p == '.') {
                uint64_t scale = NANOSECONDS / 10;

                for (p++; p < end && (unsigned)(*p - '0') < 10; p++, scale /= 10)
                        nanoseconds += (uint64_t)(*p - '0') * scale;
        }
        if (p == end)
                return !__builtin_mul_overflow(seconds, (uint64_t)NANOSECONDS, &seconds) &&
                       !__builtin_add_overflow(seconds, nanoseconds, ret);
        if (token->length >= sizeof(copy))
                return false;
        memcpy(copy, token->text, token->length);
        copy[token->length] = '\0';
        number = strtod(copy, &rest) * NANOSECONDS;
        if (*rest != '\0' || !(number >= 0) || number >= 0x1p63)
                return false;
        *ret = (uint64_t)(number + 0.5);
        return true;
}
