#include "agentd/answer.h"

#include <stdio.h>
#include <string.h>

static void json_cleanup(json_t **json)
{
        json_decref(*json);
}

void answer_done(struct answer *answer)
{
        json_decref(answer->plan);
        answer->plan = NULL;
}

/* The problem document's sentence; from outside, so without control characters. */
static void take_detail(const json_t *document, struct answer *ret)
{
        const char *detail = json_string_value(json_object_get(document, "detail"));

        snprintf(ret->detail, sizeof(ret->detail), "%s", detail ? detail : "");
        for (char *c = ret->detail; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 127)
                        *c = ' ';
}

static bool get_count(const json_t *object, const char *key, uint64_t *ret)
{
        const json_t *value = json_object_get(object, key);

        if (!json_is_integer(value) || json_integer_value(value) < 0)
                return false;
        *ret = (uint64_t)json_integer_value(value);
        return true;
}

/* Only the collector's own words count: a proxy's or a portal's 200 acknowledges nothing. */
static bool says_stored(const json_t *document, uint32_t blocks)
{
        uint64_t accepted, duplicates;

        return get_count(document, "accepted", &accepted) &&
               get_count(document, "duplicates", &duplicates) && accepted <= blocks &&
               duplicates <= blocks && accepted + duplicates == blocks;
}

static bool can_refuse(int status)
{
        return status == 400 || status == 409 || status == 413 || status == 415;
}

void answer_read_blocks(
        int status, const char *body, size_t size, uint32_t blocks, struct answer *ret)
{
        CLEANUP(json) json_t *document = json_loadb(body, size, 0, NULL);
        uint64_t index;

        *ret = (struct answer){.verdict = ANSWER_RETRY};
        take_detail(document, ret);
        if (status == 200 && says_stored(document, blocks)) {
                ret->verdict = ANSWER_STORED;
                ret->plan = json_incref(json_object_get(document, "plan"));
        } else if (can_refuse(status) && get_count(document, "block", &index) && index < blocks) {
                ret->verdict = ANSWER_REFUSED;
                ret->block = (uint32_t)index;
                /* 409: another block of that name is stored. */
                ret->gap = status != 409;
        } else if (status == 413) {
                ret->verdict = ANSWER_SMALLER;
        } else if (status == 200) {
                snprintf(ret->detail, sizeof(ret->detail), "not an answer of a collector");
        }
}

void answer_read_plan(int status, const char *body, size_t size, struct answer *ret)
{
        CLEANUP(json) json_t *document = json_loadb(body, size, 0, NULL);

        *ret = (struct answer){.verdict = ANSWER_RETRY};
        take_detail(document, ret);
        if (status != 200 || !json_is_object(json_object_get(document, "sources")))
                return;
        ret->verdict = ANSWER_STORED;
        ret->plan = json_incref(document);
}

void answer_read_facts(int status, const char *body, size_t size, struct answer *ret)
{
        CLEANUP(json) json_t *document = json_loadb(body, size, 0, NULL);

        *ret = (struct answer){.verdict = ANSWER_RETRY};
        take_detail(document, ret);
        if (status == 204)
                ret->verdict = ANSWER_STORED;
        else if (can_refuse(status))
                ret->verdict = ANSWER_REFUSED;
}

uint64_t backoff_next(struct backoff *backoff, uint64_t random, uint64_t asked_us)
{
        uint64_t most = BACKOFF_MAX_US;

        if (backoff->failures < 6)
                most = BACKOFF_MIN_US << backoff->failures;
        if (most > BACKOFF_MAX_US)
                most = BACKOFF_MAX_US;
        backoff->failures++;
        if (asked_us > BACKOFF_ASKED_MAX_US)
                asked_us = BACKOFF_ASKED_MAX_US;
        /* Jitter on top of what the peer asked for, so that not all come back at once. */
        return asked_us + random % (most + 1);
}
