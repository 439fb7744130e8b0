/*
 * Reads a "perf dump" by the places of the one before. Of some 20 KB and 500 numbers about 90 are
 * wanted; the text between them is the same each second but for the digits of a few numbers. So the
 * key of a value is looked for where it was, counted from the value before it, and around there.
 * Each key is compared in full, and the keys of the loggers too; where one is not found, all is
 * read anew.
 */
#include "agentd/perf-private.h"

#include <string.h>

#define NEAR 128u    /* bytes by which numbers between two values may grow or shrink */
#define USES_MAX 60u /* dumps; then all is read, since counters may come later */

struct reader {
        const char *p, *end;
};

static bool literal_skip(struct reader *reader, const char *text)
{
        size_t length = strlen(text);

        if ((size_t)(reader->end - reader->p) < length || memcmp(reader->p, text, length) != 0)
                return false;
        reader->p += length;
        return true;
}

/* To what follows @key, which is some @gap away. */
static bool key_reach(struct reader *reader, const char *key, size_t length, uint32_t gap)
{
        size_t left = (size_t)(reader->end - reader->p);
        const char *from, *to, *found;

        if (left >= gap + length && memcmp(reader->p + gap, key, length) == 0) {
                reader->p += gap + length;
                return true;
        }
        from = reader->p + (gap > NEAR ? gap - NEAR : 0);
        if (from >= reader->end)
                return false;
        to = left > gap + length + NEAR ? reader->p + gap + length + NEAR : reader->end;
        found = memmem(from, (size_t)(to - from), key, length);
        if (!found)
                return false;
        reader->p = found + length;
        return true;
}

/* The text of a number that has others behind it. */
static bool word_take(struct reader *reader, struct perf_token *ret)
{
        const char *end = memchr(reader->p, ',', (size_t)(reader->end - reader->p));

        if (!end)
                return false;
        *ret = (struct perf_token){reader->p, (size_t)(end - reader->p)};
        reader->p = end;
        return true;
}

static bool object_leave(struct reader *reader)
{
        const char *end = memchr(reader->p, '}', (size_t)(reader->end - reader->p));

        if (end)
                reader->p = end + 1;
        return end != NULL;
}

static bool value_take(struct reader *reader, const struct perf_slot *slot, struct perf_values *ret)
{
        uint64_t value = 0;

        if (perf_digits_read(&reader->p, reader->end, &value) < 0 || reader->p >= reader->end ||
                (*reader->p != ',' && *reader->p != '}') || reader->p[-1] == ':')
                return false;
        return perf_value_set(slot, true, value, ret);
}

/* {"avgcount":818,"sum":23.044397852,"avgtime":0.028171635} */
static bool average_take(
        struct reader *reader, const struct perf_slot *slot, struct perf_values *ret)
{
        struct perf_token sum;

        if (!literal_skip(reader, "{\"avgcount\":") || !value_take(reader, slot, ret) ||
                !literal_skip(reader, ",\"sum\":") || !word_take(reader, &sum))
                return false;
        ret->present[slot->index + 1] = perf_seconds_parse(&sum, &ret->value[slot->index + 1]);
        return ret->present[slot->index + 1] && object_leave(reader);
}

static bool place_read(const struct perf *perf, const struct perf_place *place,
        struct reader *reader, struct perf_values *ret)
{
        const struct perf_slot *slot = &perf->table[place->slot];

        if (!key_reach(reader, slot->key, slot->length + PERF_KEY_EXTRA, place->gap))
                return false;
        return slot->name->part == PART_AVERAGE ? average_take(reader, slot, ret)
                                                : value_take(reader, slot, ret);
}

static bool places_read(const struct perf *perf, const char *text, size_t size,
        const struct perf_places *places, struct perf_values *ret)
{
        struct reader reader = {text, text + size};

        while (size > 0 && (text[size - 1] == '\0' || text[size - 1] == '\n'))
                size--;
        if (size < 2 || text[0] != '{' || memcmp(text + size - 2, "}}", 2) != 0)
                return false;
        memset(ret->present, 0, sizeof(ret->present));
        for (uint16_t i = 0; i < places->n; i++) {
                const struct perf_place *place = &places->list[i];

                if (place->slot < 0) {
                        const char *key = perf_logger_key((enum perf_logger) ~place->slot);

                        if (!key_reach(&reader, key, strlen(key), place->gap))
                                return false;
                        reader.p--; /* the bracket belongs to the gap */
                        continue;
                }
                if (!place_read(perf, place, &reader, ret))
                        return false;
        }
        return true;
}

int perf_parse_again(const struct perf *perf, const char *text, size_t size,
        struct perf_places *places, struct perf_values *ret)
{
        if (places->n > 0 && places->uses < USES_MAX &&
                places_read(perf, text, size, places, ret)) {
                places->uses++;
                return 0;
        }
        places->n = places->uses = 0;
        return perf_parse_and_note(perf, text, size, places, ret);
}
