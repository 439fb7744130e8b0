#pragma once
/*
 * Where a command writes: text is gathered in memory and shown at once, so that a live view does
 * not flicker and a failure leaves no half table. Colours and UTF-8 only where they are understood.
 */

#include <stdbool.h>
#include <stdio.h>

enum colour {
        COLOUR_NONE,
        COLOUR_BOLD,   /* headings */
        COLOUR_DIM,    /* what supports another line */
        COLOUR_GOOD,   /* green */
        COLOUR_NOTICE, /* yellow: look at it */
        COLOUR_BAD,    /* red: act */
};

struct output {
        FILE *stream; /* write here */
        bool terminal, colour, utf8;
        unsigned lines; /* of the terminal; 0 when unknown */
        char *text;
        size_t size;
};

/* -ENOMEM. */
int output_init(struct output *output);
void output_done(struct output *output);
static inline void output_cleanup(struct output *output)
{
        output_done(output);
}

/* Shows what was written since. With @in_place a terminal is cleared and overwritten. -errno when
 * standard output refuses. */
int output_show(struct output *output, bool in_place);

/* The escape sequence that begins @colour, or ends any; "" where colours are off. */
const char *output_colour(const struct output *output, enum colour colour);
const char *output_plain(const struct output *output);
