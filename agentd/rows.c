#include "agentd/rows-layout.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static uint64_t align8(uint64_t offset)
{
        return (offset + 7) & ~UINT64_C(7);
}

/* Finds pages that never reached the disk; not meant against an enemy. @size is a multiple of 8. */
static uint64_t check_word(uint64_t check, uint64_t word)
{
        check = (check ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        return check ^ check >> 29;
}

/* In four lanes: a multiplication need not wait for the one before. */
static uint64_t check_words(uint64_t check, const void *data, size_t size)
{
        const uint64_t *words = data;
        uint64_t lanes[4] = {check, check ^ 1, check ^ 2, check ^ 3};
        size_t n = size / 8, i = 0;

        for (; i + 4 <= n; i += 4)
                for (int k = 0; k < 4; k++)
                        lanes[k] = check_word(lanes[k], words[i + k]);
        for (; i < n; i++)
                lanes[0] = check_word(lanes[0], words[i]);
        for (int k = 1; k < 4; k++)
                lanes[0] = check_word(lanes[0], lanes[k]);
        return lanes[0];
}

uint64_t layout_check(const struct rows *rows)
{
        const struct layout *layout = layout_of(rows);
        uint64_t check;

        check = check_words(1, &layout->host,
                offsetof(struct layout, committed) - offsetof(struct layout, host));
        return check_words(check, layout + 1, layout->times_at - sizeof(*layout));
}

uint64_t layout_row_check(const struct rows *rows, uint32_t row)
{
        const struct layout *layout = layout_of(rows);
        const uint64_t *times = rows_at(rows, layout->times_at);
        const uint64_t *values = rows_at(rows, layout->values_at);
        const uint8_t *present = rows_at(rows, layout->present_at);
        uint64_t check, absent = 0;

        check = check_words(layout->sequence ^ row, &times[row], 8);
        check = check_words(
                check, &values[(size_t)row * layout->n_columns], (size_t)layout->n_columns * 8);
        present += (size_t)row * layout->n_entities;
        for (uint32_t i = 0; i < layout->n_entities; i++)
                if (present[i] != 1)
                        absent = (absent ^ ((uint64_t)present[i] << 32) ^ (i + 1)) *
                                 UINT64_C(0x9e3779b97f4a7c15);
        return check_words(check, &absent, 8);
}

int rows_new(const char *folder, enum source_id source, struct rows **ret)
{
        CLEANUP(rows) struct rows *rows = calloc(1, sizeof(*rows));

        if (!rows)
                return -ENOMEM;
        rows->source = source;
        if (folder && asprintf(&rows->path, "%s/rows-%s", folder, source_name(source)) < 0) {
                rows->path = NULL;
                return -ENOMEM;
        }
        *ret = STEAL(rows);
        return 0;
}

void rows_unmap(struct rows *rows)
{
        if (rows->map)
                munmap(rows->map, rows->map_size);
        rows->map = NULL;
        rows->map_size = 0;
}

struct rows *rows_free(struct rows *rows)
{
        if (!rows)
                return NULL;
        rows_unmap(rows);
        free(rows->entities);
        free(rows->picks);
        free(rows->path);
        free(rows);
        return NULL;
}

/* An empty file of @size bytes with all its blocks allocated. */
static int map_file(struct rows *rows, size_t size)
{
        CLEANUP(fd) int fd = -1;
        void *map;
        int r;

        if (!rows->path)
                return -ENOENT;
        fd = open(rows->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        r = posix_fallocate(fd, 0, (off_t)size);
        if (r != 0) {
                /* Gives back what was allocated; what is written next makes it anew. */
                (void)unlink(rows->path);
                return -r;
        }
        map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return -errno;
        rows->map = map;
        rows->map_size = size;
        return 0;
}

static int map_new(struct rows *rows, size_t size)
{
        void *map;

        rows_unmap(rows);
        rows->error = map_file(rows, size);
        if (rows->error == 0)
                return 0;
        map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED)
                return -ENOMEM;
        rows->map = map;
        rows->map_size = size;
        return 0;
}

/* The columns of @sample that the plan wants; ascending, so still grouped by entity. */
static int pick_columns(struct rows *rows, const struct sample *sample,
        const struct plan_source *plan, uint32_t *ret_count)
{
        uint32_t *picks, count = 0;

        picks = reallocarray(rows->picks, sample->n_columns + 1, sizeof(*picks));
        if (!picks)
                return -ENOMEM;
        rows->picks = picks;
        rows->n_sample_columns = sample->n_columns;
        for (uint32_t i = 0; i < sample->n_columns; i++)
                if (plan_wants(plan, sample->columns[i].metric))
                        picks[count++] = i;
        if (count == 0)
                return -ENODATA;
        *ret_count = count;
        return 0;
}

static uint64_t texts_size(const struct sample *sample)
{
        uint64_t size = 0;

        for (uint32_t i = 0; i < sample->n_entities; i++)
                size += strlen(sample->entities[i].name) + strlen(sample->entities[i].identity) + 2;
        return size;
}

static uint32_t fit_capacity(uint32_t capacity, uint32_t n_entities, uint32_t n_columns)
{
        uint64_t row_bytes = 16 + 8 * (uint64_t)n_columns + n_entities;
        uint64_t most = ROWS_BYTES_MAX / row_bytes;

        if (most > BLOCK_VALUES_MAX / n_columns)
                most = BLOCK_VALUES_MAX / n_columns;
        if (most > BLOCK_ROWS_MAX)
                most = BLOCK_ROWS_MAX;
        if (capacity > most)
                capacity = (uint32_t)most;
        return capacity > 0 ? capacity : 1;
}

void layout_plan(struct layout *layout, uint64_t texts)
{
        uint64_t rows = layout->capacity;

        layout->columns_at = sizeof(*layout) + layout->n_entities * sizeof(struct stored_entity);
        layout->texts_at =
                align8(layout->columns_at + layout->n_columns * sizeof(struct block_column));
        layout->times_at = align8(layout->texts_at + texts);
        layout->checks_at = layout->times_at + rows * 8;
        layout->present_at = layout->checks_at + rows * 8;
        layout->values_at = align8(layout->present_at + rows * layout->n_entities);
        layout->end_at = layout->values_at + rows * layout->n_columns * 8;
}

static uint32_t store_text(struct rows *rows, uint64_t *offset, const char *text)
{
        uint64_t begin = *offset;
        size_t size = strlen(text) + 1;

        memcpy(rows_at(rows, begin), text, size);
        *offset += size;
        return (uint32_t)(begin - layout_of(rows)->texts_at);
}

static void store_shape(struct rows *rows, const struct sample *sample)
{
        struct layout *layout = layout_of(rows);
        struct stored_entity *stored = rows_at(rows, sizeof(*layout));
        struct block_column *columns = rows_at(rows, layout->columns_at);
        uint64_t offset = layout->texts_at;

        for (uint32_t i = 0; i < layout->n_entities; i++) {
                const struct block_entity *entity = &sample->entities[i];

                stored[i].cluster = entity->cluster;
                stored[i].instance = entity->instance;
                stored[i].name = store_text(rows, &offset, entity->name);
                stored[i].identity = store_text(rows, &offset, entity->identity);
        }
        for (uint32_t i = 0; i < layout->n_columns; i++)
                columns[i] = sample->columns[rows->picks[i]];
}

/* Makes the entities that block_encode wants from what is stored. */
int rows_load_entities(struct rows *rows)
{
        const struct layout *layout = layout_of(rows);
        const struct stored_entity *stored = rows_at(rows, sizeof(*layout));
        const char *texts = rows_at(rows, layout->texts_at);
        struct block_entity *entities;

        entities = reallocarray(rows->entities, layout->n_entities + 1, sizeof(*entities));
        if (!entities)
                return -ENOMEM;
        rows->entities = entities;
        for (uint32_t i = 0; i < layout->n_entities; i++)
                entities[i] = (struct block_entity){
                        .name = texts + stored[i].name,
                        .identity = texts + stored[i].identity,
                        .cluster = stored[i].cluster,
                        .instance = stored[i].instance,
                };
        return 0;
}

/* The one cluster of all entities, else zero. */
static struct id common_cluster(const struct sample *sample)
{
        struct id none = {0};

        for (uint32_t i = 1; i < sample->n_entities; i++)
                if (!id_equal(&sample->entities[0].cluster, &sample->entities[i].cluster))
                        return none;
        return sample->n_entities > 0 ? sample->entities[0].cluster : none;
}

int rows_begin(struct rows *rows, const struct block_header *header, const struct sample *sample,
        const struct plan_source *plan, uint32_t capacity)
{
        struct layout layout = {0};
        int r;

        if (sample->n_entities > BLOCK_ENTITIES_MAX || sample->n_columns > BLOCK_COLUMNS_MAX)
                return -EINVAL;
        r = pick_columns(rows, sample, plan, &layout.n_columns);
        if (r < 0)
                return r;
        memcpy(layout.magic, ROWS_MAGIC, sizeof(layout.magic));
        layout.host = header->host;
        layout.boot = header->boot;
        layout.cluster = common_cluster(sample);
        layout.sequence = header->sequence;
        layout.interval_us = header->interval_us;
        layout.source = rows->source;
        layout.n_entities = sample->n_entities;
        layout.capacity = fit_capacity(capacity, layout.n_entities, layout.n_columns);
        layout_plan(&layout, texts_size(sample));
        r = map_new(rows, layout.end_at);
        if (r < 0)
                return r;
        assert(rows->map);
        memcpy(rows->map, &layout, sizeof(layout));
        store_shape(rows, sample);
        layout_of(rows)->check = layout_check(rows);
        r = rows_load_entities(rows);
        if (r < 0)
                rows_unmap(rows);
        return r;
}

void rows_begin_again(struct rows *rows, uint64_t sequence)
{
        struct layout *layout = layout_of(rows);

        /* Killed in between: no rows, or no rows under a header that does not check. Fine both. */
        atomic_store_explicit(&layout->committed, 0, memory_order_release);
        layout->sequence = sequence;
        layout->check = layout_check(rows);
}

bool rows_can_append(const struct rows *rows, int64_t time_us)
{
        uint32_t count = rows_get_count(rows);
        const int64_t *times;

        if (!rows->map || count >= layout_of(rows)->capacity)
                return false;
        times = rows_at(rows, layout_of(rows)->times_at);
        return count == 0 || time_us > times[count - 1];
}

void rows_append(struct rows *rows, const struct sample *sample)
{
        struct layout *layout = layout_of(rows);
        uint32_t row = rows_get_count(rows);
        int64_t *times = rows_at(rows, layout->times_at);
        uint64_t *checks = rows_at(rows, layout->checks_at);
        uint64_t *values = rows_at(rows, layout->values_at);
        uint8_t *present = rows_at(rows, layout->present_at);

        assert(rows->map && row < layout->capacity && sample->n_columns == rows->n_sample_columns &&
                sample->n_entities == layout->n_entities);
        values += (size_t)row * layout->n_columns;
        present += (size_t)row * layout->n_entities;
        times[row] = sample->time_us;
        if (layout->n_columns == sample->n_columns)
                memcpy(values, sample->values, layout->n_columns * sizeof(*values));
        else
                for (uint32_t i = 0; i < layout->n_columns; i++)
                        values[i] = sample->values[rows->picks[i]];
        if (sample->present)
                memcpy(present, sample->present, layout->n_entities);
        else
                memset(present, 1, layout->n_entities);
        checks[row] = layout_row_check(rows, row);
        atomic_store_explicit(&layout->committed, row + 1, memory_order_release);
}

uint32_t rows_get_count(const struct rows *rows)
{
        return rows->map ? atomic_load_explicit(&layout_of(rows)->committed, memory_order_acquire)
                         : 0;
}

bool rows_is_durable(const struct rows *rows, int *ret_error)
{
        *ret_error = rows->error;
        return rows->error == 0;
}

void rows_get_block(const struct rows *rows, struct block_rows *ret)
{
        const struct layout *layout = layout_of(rows);
        uint32_t count = rows_get_count(rows);
        const uint8_t *present = rows_at(rows, layout->present_at);

        *ret = (struct block_rows){
                .header =
                        {
                                .cluster = layout->cluster,
                                .host = layout->host,
                                .boot = layout->boot,
                                .source = (uint16_t)layout->source,
                                .sequence = layout->sequence,
                                .interval_us = layout->interval_us,
                                .rows = count,
                        },
                .entities = rows->entities,
                .n_entities = layout->n_entities,
                .columns = rows_at(rows, layout->columns_at),
                .n_columns = layout->n_columns,
                .times_us = rows_at(rows, layout->times_at),
                .values = rows_at(rows, layout->values_at),
                .present = memchr(present, 0, (size_t)count * layout->n_entities) ? present : NULL,
        };
}
