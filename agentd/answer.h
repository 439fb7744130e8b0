#pragma once
/* What an answer of the collector means for what was sent. Pure: no curl, no loop. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "lib/cleanup.h"

enum answer_verdict {
        ANSWER_STORED,  /* acknowledged: forget it */
        ANSWER_REFUSED, /* one block can never be stored: put it aside, the others go on */
        ANSWER_SMALLER, /* the body is too large for whoever stands in between: send less */
        ANSWER_RETRY,   /* everything else, garbage too: keep all and try again later */
};

struct answer {
        enum answer_verdict verdict;
        uint32_t block; /* index of the refused one */
        bool gap;       /* it is not stored under its name: leaves a gap */
        json_t *plan;   /* a new reference, or NULL */
        char detail[200];
};

void answer_done(struct answer *answer);

/* Of a POST of @blocks blocks. @status is HTTP's, or negative. */
void answer_read_blocks(
        int status, const char *body, size_t size, uint32_t blocks, struct answer *ret);
/* Of GET plans/{host}. */
void answer_read_plan(int status, const char *body, size_t size, struct answer *ret);
/* Of PUT facts/{host}: REFUSED when this content will never be taken. */
void answer_read_facts(int status, const char *body, size_t size, struct answer *ret);

/* Exponential back-off with full jitter. */
#define BACKOFF_MIN_US 1000000ull
#define BACKOFF_MAX_US 60000000ull
#define BACKOFF_ASKED_MAX_US 600000000ull /* Retry-After above this is not believed */

struct backoff {
        unsigned failures; /* in a row */
};

/* The delay before the next try after one more failure; @random is any number, @asked_us what the
 * peer said (0: nothing). */
uint64_t backoff_next(struct backoff *backoff, uint64_t random, uint64_t asked_us);
