/*
 * The fuzzer of the reader of /proc/diskstats. The input is two texts, cut at its first NUL: the
 * layout is made of the first and must fit it, and the second is what the file says later.
 */

#include <stdlib.h>
#include <string.h>

#include "agentd/diskstats.h"

#define ROOT "/nonexistent" /* no sysfs: devices are known by their lines alone */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
        if (!condition)
                abort();
}

/* A copy with its padding, in memory of just its size. */
static char *text_copy(const uint8_t *data, size_t size)
{
        char *text = calloc(1, size + DISKSTATS_PADDING);

        check(text != NULL);
        memcpy(text, data, size);
        return text;
}

static void layout_check(const struct diskstats *layout)
{
        for (uint32_t i = 0; i < layout->n_columns; i++) {
                check(layout->columns[i].entity < layout->n_entities);
                check(i == 0 || layout->columns[i - 1].entity <= layout->columns[i].entity);
        }
        for (uint32_t i = 0; i < layout->n_entities; i++) {
                check(layout->entities[i].name[0] != '\0');
                for (uint32_t j = 0; j < i; j++)
                        check(strcmp(layout->entities[i].name, layout->entities[j].name) != 0);
        }
}

static void text_take(struct diskstats *layout, const char *text, size_t size)
{
        if (diskstats_read(layout, text, size) == 0)
                return;
        check(diskstats_build(layout, ROOT, text, size) == 0);
        layout_check(layout);
        check(diskstats_read(layout, text, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const uint8_t *nul = memchr(data, '\0', size);
        size_t first = nul ? (size_t)(nul - data) : size;
        size_t second = nul ? size - first - 1 : 0;
        char *texts[] = {text_copy(data, first), text_copy(nul ? nul + 1 : data, second)};
        struct diskstats layout = {0};

        text_take(&layout, texts[0], first);
        text_take(&layout, texts[1], second);
        text_take(&layout, texts[0], first);
        diskstats_done(&layout);
        free(texts[0]);
        free(texts[1]);
        return 0;
}
