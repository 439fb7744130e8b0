#include "agentd/perf-private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/metric.h"

#define DEPTH_MAX 16u /* a dump has 3 levels */

static const struct perf_name names[] = {
#define VALUE(logger, name, metric)                                                                \
        {                                                                                          \
                LOGGER_##logger, name, METRIC_##metric, PART_VALUE                                 \
        }
#define AVERAGE(logger, name, metric)                                                              \
        {                                                                                          \
                LOGGER_##logger, name, METRIC_##metric##_COUNT, PART_AVERAGE                       \
        }
#include "agentd/perf-names.h"
#undef AVERAGE
#undef VALUE
};

#define NAMES_COUNT (sizeof(names) / sizeof(names[0]))

static const char *const logger_keys[] = {[LOGGER_OSD] = "\"osd\":{",
        [LOGGER_BLUESTORE] = "\"bluestore\":{",
        [LOGGER_BLUEFS] = "\"bluefs\":{"};

const char *perf_logger_key(enum perf_logger logger)
{
        return logger_keys[logger];
}

struct scan {
        const char *p, *end;
        const char *noted;          /* the end of the value noted last */
        struct perf_places *places; /* or NULL */
};

/* Length and both ends tell most names apart without a look at the middle. */
static uint32_t name_hash(enum perf_logger logger, const char *text, size_t length)
{
        uint32_t hash = (uint32_t)length * 31u + (uint32_t)logger * 7u;

        for (size_t i = 0; i < 4 && i < length; i++)
                hash = hash * 33u + (unsigned char)text[length - 1 - i];
        hash = hash * 33u + (unsigned char)text[length / 2];
        return (hash * 33u + (unsigned char)text[0]) * 2654435761u >> 16;
}

static const struct perf_slot *name_find(
        const struct perf *perf, enum perf_logger logger, const struct perf_token *token)
{
        if (token->length == 0)
                return NULL;
        for (uint32_t i = name_hash(logger, token->text, token->length);; i++) {
                const struct perf_slot *slot = &perf->table[i % PERF_TABLE_SIZE];

                if (!slot->name)
                        return NULL;
                if (slot->name->logger == logger && slot->length == token->length &&
                        memcmp(slot->name->name, token->text, token->length) == 0)
                        return slot;
        }
}

static void name_add(struct perf *perf, const struct perf_name *name)
{
        size_t length = strlen(name->name);
        uint32_t i = name_hash(name->logger, name->name, length);
        unsigned parts = name->part == PART_AVERAGE ? 2 : 1;

        if (perf->n_metrics == 0 ||
                perf->metrics[perf->n_metrics - 1] != name->metric + parts - 1) {
                assert(perf->n_metrics + parts <= PERF_METRICS_MAX);
                for (unsigned part = 0; part < parts; part++)
                        perf->metrics[perf->n_metrics++] = (uint16_t)(name->metric + part);
        }
        while (perf->table[i % PERF_TABLE_SIZE].name)
                i++;
        assert(length + sizeof("\"\":") <= PERF_KEY_MAX && perf->n_keys < PERF_METRICS_MAX);
        snprintf(perf->keys[perf->n_keys], PERF_KEY_MAX, "\"%s\":", name->name);
        perf->table[i % PERF_TABLE_SIZE] = (struct perf_slot){.name = name,
                .length = length,
                .key = perf->keys[perf->n_keys++],
                .index = (uint16_t)(perf->n_metrics - parts),
                .gauge = metric_get(name->metric)->kind == METRIC_GAUGE};
}

int perf_new(struct perf **ret)
{
        struct perf *perf = calloc(1, sizeof(*perf));

        if (!perf)
                return -ENOMEM;
        for (size_t i = 0; i < NAMES_COUNT; i++)
                name_add(perf, &names[i]);
        *ret = perf;
        return 0;
}

struct perf *perf_free(struct perf *perf)
{
        free(perf);
        return NULL;
}

const uint16_t *perf_get_metrics(const struct perf *perf, size_t *ret_count)
{
        *ret_count = perf->n_metrics;
        return perf->metrics;
}

static inline void blanks_skip(struct scan *scan)
{
        while (scan->p < scan->end &&
                (*scan->p == ' ' || *scan->p == '\n' || *scan->p == '\t' || *scan->p == '\r'))
                scan->p++;
}

/* The next byte that is no blank; 0 at the end. */
static inline char peek(struct scan *scan)
{
        blanks_skip(scan);
        if (scan->p >= scan->end)
                return '\0';
        return *scan->p;
}

static inline int expect(struct scan *scan, char c)
{
        if (peek(scan) != c)
                return -EBADMSG;
        scan->p++;
        return 0;
}

static int string_read(struct scan *scan, struct perf_token *ret)
{
        const char *p;

        if (expect(scan, '"') < 0)
                return -EBADMSG;
        p = memchr(scan->p, '"', (size_t)(scan->end - scan->p));
        if (p && p > scan->p && p[-1] == '\\')
                for (p = scan->p; p < scan->end && *p != '"'; p++)
                        if (*p == '\\' && ++p == scan->end)
                                break;
        if (!p || p >= scan->end)
                return -EBADMSG;
        *ret = (struct perf_token){scan->p, (size_t)(p - scan->p)};
        scan->p = p + 1;
        return 0;
}

/* A number, true, false, null. */
static int word_read(struct scan *scan, struct perf_token *ret)
{
        const char *begin = scan->p;

        while (scan->p < scan->end &&
                ((unsigned)(*scan->p - '0') < 10 || (unsigned)((*scan->p | 32) - 'a') < 26 ||
                        *scan->p == '.' || *scan->p == '-' || *scan->p == '+'))
                scan->p++;
        *ret = (struct perf_token){begin, (size_t)(scan->p - begin)};
        return ret->length > 0 ? 0 : -EBADMSG;
}

/* Passes over an object or array at @scan, whatever is in it: brackets must match in number. */
static int nest_skip(struct scan *scan)
{
        unsigned depth = 0;
        struct perf_token string;

        while (scan->p < scan->end) {
                char c = *scan->p;

                if (c == '"') {
                        if (string_read(scan, &string) < 0)
                                return -EBADMSG;
                        continue;
                }
                scan->p++;
                if ((c == '{' || c == '[') && ++depth > DEPTH_MAX)
                        return -EBADMSG;
                if ((c == '}' || c == ']') && --depth == 0)
                        return 0;
        }
        return -EBADMSG;
}

static int value_skip(struct scan *scan)
{
        struct perf_token token;
        char c = peek(scan);

        if (c == '{' || c == '[')
                return nest_skip(scan);
        if (c == '"')
                return string_read(scan, &token);
        return word_read(scan, &token);
}

/* After a member: 1 when another follows, 0 at the end of the object. */
static inline int member_next(struct scan *scan)
{
        char c = peek(scan);

        if (c != ',' && c != '}')
                return -EBADMSG;
        scan->p++;
        return c == ',';
}

/* Enters the object: 1 when it has members. */
static inline int object_enter(struct scan *scan)
{
        if (expect(scan, '{') < 0)
                return -EBADMSG;
        if (peek(scan) != '}')
                return 1;
        scan->p++;
        return 0;
}

static inline int key_read(struct scan *scan, struct perf_token *ret)
{
        if (peek(scan) != '"' || string_read(scan, ret) < 0)
                return -EBADMSG;
        return expect(scan, ':');
}

static bool token_is(const struct perf_token *token, const char *text)
{
        return token->length == strlen(text) && memcmp(token->text, text, token->length) == 0;
}

static int average_read(struct scan *scan, uint16_t index, struct perf_values *ret)
{
        int r = object_enter(scan);

        while (r > 0) {
                struct perf_token key, word = {"", 0};

                r = key_read(scan, &key);
                if (r < 0)
                        return r;
                if (peek(scan) != '{' && peek(scan) != '[' && peek(scan) != '"')
                        r = word_read(scan, &word);
                else
                        r = value_skip(scan);
                if (r < 0)
                        return r;
                if (word.length > 0 && token_is(&key, "avgcount"))
                        ret->present[index] = perf_whole_parse(&word, &ret->value[index]);
                else if (word.length > 0 && token_is(&key, "sum"))
                        ret->present[index + 1] = perf_seconds_parse(&word, &ret->value[index + 1]);
                r = member_next(scan);
        }
        return r;
}

static int counter_read(struct scan *scan, const struct perf_slot *slot, struct perf_values *ret)
{
        char c = peek(scan);
        struct perf_token word;
        uint64_t value = 0;
        bool whole;
        int r;

        if (slot && slot->name->part == PART_AVERAGE && c == '{')
                return average_read(scan, slot->index, ret);
        if (!slot || slot->name->part == PART_AVERAGE || c == '{' || c == '[' || c == '"')
                return value_skip(scan);
        r = word_read(scan, &word);
        if (r < 0)
                return r;
        whole = perf_whole_parse(&word, &value);
        perf_value_set(slot, whole, value, ret);
        return 0;
}

/* @key is its opening quote, @end where the gap to the next one begins. */
static void place_note(struct scan *scan, const char *key, const char *end, int slot)
{
        struct perf_places *places = scan->places;

        if (!places || places->n == PERF_METRICS_MAX)
                return;
        places->list[places->n++] =
                (struct perf_place){.gap = (uint32_t)(key - scan->noted), .slot = (int16_t)slot};
        scan->noted = end;
}

/* A dump with a number that is out of range is read in full each time. */
static void counter_note(struct scan *scan, const struct perf *perf, const struct perf_slot *slot,
        const struct perf_token *key, const struct perf_values *values)
{
        bool present = values->present[slot->index] &&
                       (slot->name->part == PART_VALUE || values->present[slot->index + 1]);

        if (present) {
                place_note(scan, key->text - 1, scan->p, (int)(slot - perf->table));
        } else if (scan->places) {
                scan->places->n = 0;
                scan->places = NULL;
        }
}

static int logger_read(const struct perf *perf, struct scan *scan, enum perf_logger logger,
        struct perf_values *ret)
{
        int r = object_enter(scan);

        while (r > 0) {
                const struct perf_slot *slot;
                struct perf_token key;

                r = key_read(scan, &key);
                if (r < 0)
                        return r;
                slot = name_find(perf, logger, &key);
                r = counter_read(scan, slot, ret);
                if (r < 0)
                        return r;
                if (slot)
                        counter_note(scan, perf, slot, &key, ret);
                r = member_next(scan);
        }
        return r;
}

static enum perf_logger logger_find(const struct perf_token *key)
{
        for (enum perf_logger logger = LOGGER_OSD; logger < LOGGER_OTHER; logger++)
                if (strncmp(logger_keys[logger] + 1, key->text, key->length) == 0 &&
                        logger_keys[logger][key->length + 1] == '"')
                        return logger;
        return LOGGER_OTHER;
}

int perf_parse_and_note(const struct perf *perf, const char *text, size_t size,
        struct perf_places *places, struct perf_values *ret)
{
        struct scan scan = {text, text + size, text, places};
        int r;

        memset(ret->present, 0, sizeof(ret->present));
        r = object_enter(&scan);
        while (r > 0) {
                enum perf_logger logger;
                struct perf_token key;

                r = key_read(&scan, &key);
                if (r < 0)
                        return r;
                logger = logger_find(&key);
                if (logger == LOGGER_OTHER || peek(&scan) != '{') {
                        r = value_skip(&scan);
                } else {
                        place_note(&scan, key.text - 1, scan.p, ~(int)logger);
                        r = logger_read(perf, &scan, logger, ret);
                }
                if (r < 0)
                        return r;
                r = member_next(&scan);
        }
        if (r < 0)
                return r;
        /* Blanks and the terminating NUL may follow, nothing else. */
        while (scan.p < scan.end && (*scan.p == '\0' || *scan.p == ' ' || *scan.p == '\n'))
                scan.p++;
        return scan.p == scan.end ? 0 : -EBADMSG;
}

int perf_parse(const struct perf *perf, const char *text, size_t size, struct perf_values *ret)
{
        return perf_parse_and_note(perf, text, size, NULL, ret);
}
