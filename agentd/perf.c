#include "agentd/perf.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/metric.h"

#define DEPTH_MAX 16u   /* a dump has 3 levels */
#define TABLE_SIZE 512u /* a power of two, four times the names */
#define NUMBER_MAX 64u  /* bytes of a number with an exponent */
#define NANOSECONDS 1000000000u

enum logger { LOGGER_OSD, LOGGER_BLUESTORE, LOGGER_BLUEFS, LOGGER_OTHER };

enum part {
        PART_VALUE,
        PART_AVERAGE, /* the metric is the count, the one after it the time */
};

struct name {
        enum logger logger;
        const char *name;
        uint16_t metric;
        enum part part;
};

static const struct name names[] = {
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

static const char *const logger_names[] = {
        [LOGGER_OSD] = "osd", [LOGGER_BLUESTORE] = "bluestore", [LOGGER_BLUEFS] = "bluefs"};

struct slot {
        const struct name *name; /* NULL when free */
        size_t length;
        uint16_t index; /* in struct perf_values */
};

struct perf {
        uint16_t metrics[PERF_METRICS_MAX];
        size_t n_metrics;
        struct slot table[TABLE_SIZE];
};

/* A string of the text: not unescaped, for no name that we want has a backslash. */
struct token {
        const char *text;
        size_t length;
};

struct scan {
        const char *p, *end;
};

/* Length and both ends tell most names apart without a look at the middle. */
static uint32_t name_hash(enum logger logger, const char *text, size_t length)
{
        uint32_t hash = (uint32_t)length * 31u + (uint32_t)logger * 7u;

        for (size_t i = 0; i < 4 && i < length; i++)
                hash = hash * 33u + (unsigned char)text[length - 1 - i];
        hash = hash * 33u + (unsigned char)text[length / 2];
        return (hash * 33u + (unsigned char)text[0]) * 2654435761u >> 16;
}

static const struct slot *name_find(
        const struct perf *perf, enum logger logger, const struct token *token)
{
        if (token->length == 0)
                return NULL;
        for (uint32_t i = name_hash(logger, token->text, token->length);; i++) {
                const struct slot *slot = &perf->table[i % TABLE_SIZE];

                if (!slot->name)
                        return NULL;
                if (slot->name->logger == logger && slot->length == token->length &&
                        memcmp(slot->name->name, token->text, token->length) == 0)
                        return slot;
        }
}

static void name_add(struct perf *perf, const struct name *name)
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
        while (perf->table[i % TABLE_SIZE].name)
                i++;
        perf->table[i % TABLE_SIZE] = (struct slot){
                .name = name, .length = length, .index = (uint16_t)(perf->n_metrics - parts)};
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

static int string_read(struct scan *scan, struct token *ret)
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
        *ret = (struct token){scan->p, (size_t)(p - scan->p)};
        scan->p = p + 1;
        return 0;
}

/* A number, true, false, null. */
static int word_read(struct scan *scan, struct token *ret)
{
        const char *begin = scan->p;

        while (scan->p < scan->end &&
                ((unsigned)(*scan->p - '0') < 10 || (unsigned)((*scan->p | 32) - 'a') < 26 ||
                        *scan->p == '.' || *scan->p == '-' || *scan->p == '+'))
                scan->p++;
        *ret = (struct token){begin, (size_t)(scan->p - begin)};
        return ret->length > 0 ? 0 : -EBADMSG;
}

/* Passes over an object or array at @scan, whatever is in it: brackets must match in number. */
static int nest_skip(struct scan *scan)
{
        unsigned depth = 0;
        struct token string;

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
        struct token token;
        char c = peek(scan);

        if (c == '{' || c == '[')
                return nest_skip(scan);
        if (c == '"')
                return string_read(scan, &token);
        return word_read(scan, &token);
}

/* Digits from @p; stops at the first byte that is none. -ERANGE above UINT64_MAX. */
static int digits_read(const char **p, const char *end, uint64_t *ret)
{
        uint64_t value = 0;

        for (unsigned digit; *p < end && (digit = (unsigned)**p - '0') < 10; (*p)++)
                if (__builtin_mul_overflow(value, 10u, &value) ||
                        __builtin_add_overflow(value, digit, &value))
                        return -ERANGE;
        *ret = value;
        return 0;
}

static bool whole_parse(const struct token *token, uint64_t *ret)
{
        const char *p = token->text, *end = p + token->length;

        return digits_read(&p, end, ret) == 0 && p == end;
}

/* Seconds with a fraction to nanoseconds; an exponent is legal, though the OSD prints none. */
static bool seconds_parse(const struct token *token, uint64_t *ret)
{
        const char *p = token->text, *end = p + token->length;
        uint64_t seconds, nanoseconds = 0;
        char copy[NUMBER_MAX], *rest;
        double number;

        if (digits_read(&p, end, &seconds) < 0)
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

static inline int key_read(struct scan *scan, struct token *ret)
{
        if (peek(scan) != '"' || string_read(scan, ret) < 0)
                return -EBADMSG;
        return expect(scan, ':');
}

static bool token_is(const struct token *token, const char *text)
{
        return token->length == strlen(text) && memcmp(token->text, text, token->length) == 0;
}

static int average_read(struct scan *scan, uint16_t index, struct perf_values *ret)
{
        int r = object_enter(scan);

        while (r > 0) {
                struct token key, word = {"", 0};

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
                        ret->present[index] = whole_parse(&word, &ret->value[index]);
                else if (word.length > 0 && token_is(&key, "sum"))
                        ret->present[index + 1] = seconds_parse(&word, &ret->value[index + 1]);
                r = member_next(scan);
        }
        return r;
}

static int counter_read(struct scan *scan, const struct slot *slot, struct perf_values *ret)
{
        char c = peek(scan);
        struct token word;
        int r;

        if (slot && slot->name->part == PART_AVERAGE && c == '{')
                return average_read(scan, slot->index, ret);
        if (!slot || slot->name->part == PART_AVERAGE || c == '{' || c == '[' || c == '"')
                return value_skip(scan);
        r = word_read(scan, &word);
        if (r < 0)
                return r;
        ret->present[slot->index] = whole_parse(&word, &ret->value[slot->index]);
        return 0;
}

static int logger_read(
        const struct perf *perf, struct scan *scan, enum logger logger, struct perf_values *ret)
{
        int r = object_enter(scan);

        while (r > 0) {
                struct token key;

                r = key_read(scan, &key);
                if (r < 0)
                        return r;
                r = counter_read(scan, name_find(perf, logger, &key), ret);
                if (r < 0)
                        return r;
                r = member_next(scan);
        }
        return r;
}

static enum logger logger_find(const struct token *key)
{
        for (enum logger logger = LOGGER_OSD; logger < LOGGER_OTHER; logger++)
                if (token_is(key, logger_names[logger]))
                        return logger;
        return LOGGER_OTHER;
}

int perf_parse(const struct perf *perf, const char *text, size_t size, struct perf_values *ret)
{
        struct scan scan = {text, text + size};
        int r;

        memset(ret->present, 0, sizeof(ret->present));
        r = object_enter(&scan);
        while (r > 0) {
                enum logger logger;
                struct token key;

                r = key_read(&scan, &key);
                if (r < 0)
                        return r;
                logger = logger_find(&key);
                if (logger == LOGGER_OTHER || peek(&scan) != '{')
                        r = value_skip(&scan);
                else
                        r = logger_read(perf, &scan, logger, ret);
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
