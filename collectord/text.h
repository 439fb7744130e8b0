#pragma once
/*
 * Large answers written by hand: a growing buffer of JSON text. Errors are kept and returned by
 * text_take, so that a writer need not look after every call.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/cleanup.h"

struct text {
        char *data;
        size_t size, allocated;
        int error;
};

void text_done(struct text *text);
DEFINE_CLEANUP(text_object, struct text *, text_done)

void text_add(struct text *text, const char *literal);
__attribute__((format(printf, 2, 3))) void text_format(struct text *text, const char *format, ...);
/* The shortest form with 10 significant digits; null when it is not finite. */
void text_number(struct text *text, double value);
/* Unix seconds with as many decimals as it needs. */
void text_time(struct text *text, int64_t time_us);
/* Quoted and escaped; null for NULL. @value is UTF-8. */
void text_string(struct text *text, const char *value);
/* Hands the text over; -ENOMEM when it is not complete. */
int text_take(struct text *text, char **ret, size_t *ret_size);
