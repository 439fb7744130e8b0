#include "agentd/proc-row.h"

#include <endian.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "agentd/proc-number.h"

#define EACH_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline uint64_t word_read(const char *p)
{
        uint64_t word;

        memcpy(&word, p, sizeof(word));
        return le64toh(word);
}

/* What @n digits say, 1 to 8. */
static inline uint64_t digits_convert(const char *p, unsigned n)
{
        uint64_t x = (word_read(p) ^ EACH_BYTE('0')) << (64 - 8 * n); /* zeros in front */

        /* Neighbours make a number of two digits each, those of four, those of eight. */
        x = (x * 10 + (x >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
        x = (x * 100 + (x >> 16)) & UINT64_C(0x0000ffff0000ffff);
        return (x * 10000 + (x >> 32)) & UINT32_MAX;
}

/* Which of the next 64 characters are no digits, a bit each. */
static inline uint64_t no_digits(const char *p)
{
        uint64_t mask = 0;

#ifdef __SSE2__
        for (unsigned i = 0; i < 64; i += 16) {
                __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
                /* '0' becomes -128, '9' -119: what is below -118 is a digit. */
                __m128i digits = _mm_cmplt_epi8(
                        _mm_add_epi8(x, _mm_set1_epi8(128 - '0')), _mm_set1_epi8(-118));

                mask |= (uint64_t)(uint16_t)~_mm_movemask_epi8(digits) << i;
        }
#else
        for (unsigned i = 0; i < 64; i += 8) {
                uint64_t x = word_read(p + i) ^ EACH_BYTE('0');

                x = (((x & EACH_BYTE(0x7f)) + EACH_BYTE(0x80 - 10)) | x) & EACH_BYTE(0x80);
                /* The top bits of eight bytes side by side. */
                mask |= (x >> 7) * UINT64_C(0x0102040810204080) >> 56 << i;
        }
#endif
        return mask;
}

/* What @n digits say, 1 to 16. */
static inline uint64_t number_convert(const char *p, unsigned n)
{
        static const uint32_t powers[] = {
                1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

        if (n <= 8)
                return digits_convert(p, n);
        return digits_convert(p, 8) * powers[n - 8] + digits_convert(p + 8, n - 8);
}

static const char *parse_slowly(const char *p, uint32_t n, uint64_t *ret)
{
        for (uint32_t i = 0; i < n; i++) {
                while (*p == ' ')
                        p++;
                p = proc_number_parse(p, &ret[i]);
                if (!p || (*p != ' ' && *p != '\n'))
                        return NULL;
        }
        return p;
}

/*
 * Where each number ends is seen before any is converted, so that the processor converts several at
 * once. That there is one blank between, as the kernel prints them, is what is quick; anything else
 * is read slowly from there on.
 */
const char *proc_row_parse(const char *p, uint32_t n, uint64_t *ret)
{
        uint64_t mask = no_digits(p);
        unsigned at = 0;

        for (uint32_t i = 0; i < n; i++) {
                unsigned end;

                if (at > 64 - 24 || mask == 0) {
                        p += at;
                        at = 0;
                        mask = no_digits(p);
                }
                end = mask ? (unsigned)__builtin_ctzll(mask) : 0;
                /* All but the last must have a blank behind, or else another number is missing. */
                if (end - at - 1 >= 16 || (p[end] != ' ' && (p[end] != '\n' || i + 1 < n)))
                        return parse_slowly(p + at, n - i, ret + i);
                ret[i] = number_convert(p + at, end - at);
                at = end + 1;
                mask &= mask - 1;
        }
        return p + at - 1;
}
