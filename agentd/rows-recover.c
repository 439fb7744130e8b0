#include "agentd/rows-layout.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* The shape may take space beside the rows: 16,384 entities with two texts of 255 bytes. */
#define FILE_BYTES_MAX ((off_t)ROWS_BYTES_MAX + (32 << 20))

/* The size that the file had before a power loss cut it; its own if that cannot be. */
static off_t whole_size(int fd, off_t size)
{
        struct layout layout;

        if (pread(fd, &layout, sizeof(layout), 0) != sizeof(layout) ||
                layout.end_at > (uint64_t)FILE_BYTES_MAX || (off_t)layout.end_at < size)
                return size;
        return (off_t)layout.end_at;
}

static int map_left_over(struct rows *rows)
{
        CLEANUP(fd) int fd = -1;
        struct stat status;
        off_t size;
        void *map;

        fd = open(rows->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode) || status.st_size < (off_t)sizeof(struct layout) ||
                status.st_size > FILE_BYTES_MAX)
                return -EBADMSG;
        size = whole_size(fd, status.st_size);
        /* What was cut off reads as zeros, and its rows fail their check. */
        if (size > status.st_size && ftruncate(fd, size) < 0)
                return -errno;
        map = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return -errno;
        rows->map = map;
        rows->map_size = (size_t)size;
        return 0;
}

/* Every offset and count, so that the readers need no check of their own. */
static bool layout_is_sane(const struct rows *rows)
{
        const struct layout *layout = layout_of(rows);
        struct layout expected = {
                .capacity = layout->capacity,
                .n_entities = layout->n_entities,
                .n_columns = layout->n_columns,
        };

        if (memcmp(layout->magic, ROWS_MAGIC, sizeof(layout->magic)) != 0 ||
                layout->source != rows->source || layout->capacity > BLOCK_ROWS_MAX ||
                layout->n_entities > BLOCK_ENTITIES_MAX || layout->n_columns > BLOCK_COLUMNS_MAX ||
                layout->times_at > rows->map_size || layout->times_at % 8 != 0)
                return false;
        layout_plan(&expected, 0);
        if (layout->times_at < expected.texts_at)
                return false;
        layout_plan(&expected, layout->times_at - expected.texts_at);
        return expected.columns_at == layout->columns_at && expected.texts_at == layout->texts_at &&
               expected.times_at == layout->times_at && expected.checks_at == layout->checks_at &&
               expected.values_at == layout->values_at &&
               expected.present_at == layout->present_at && expected.end_at == layout->end_at &&
               layout->end_at <= rows->map_size && layout->check == layout_check(rows);
}

static bool text_is_sane(const struct rows *rows, uint32_t offset)
{
        const struct layout *layout = layout_of(rows);
        uint64_t left = layout->times_at - layout->texts_at;

        return offset < left &&
               memchr(rows_at(rows, layout->texts_at + offset), '\0', left - offset) != NULL;
}

static bool shape_is_sane(const struct rows *rows)
{
        const struct layout *layout = layout_of(rows);
        const struct stored_entity *stored = rows_at(rows, sizeof(*layout));
        const struct block_column *columns = rows_at(rows, layout->columns_at);

        for (uint32_t i = 0; i < layout->n_entities; i++)
                if (!text_is_sane(rows, stored[i].name) || !text_is_sane(rows, stored[i].identity))
                        return false;
        for (uint32_t i = 0; i < layout->n_columns; i++)
                if (columns[i].entity >= layout->n_entities)
                        return false;
        return true;
}

/* Rows up to the first one that is broken. */
static uint32_t count_whole_rows(const struct rows *rows)
{
        const struct layout *layout = layout_of(rows);
        const int64_t *times = rows_at(rows, layout->times_at);
        const uint64_t *checks = rows_at(rows, layout->checks_at);
        uint32_t committed = rows_get_count(rows), row;

        if (committed > layout->capacity)
                committed = layout->capacity;
        for (row = 0; row < committed; row++)
                if (checks[row] != layout_row_check(rows, row) ||
                        (row > 0 && times[row] <= times[row - 1]))
                        break;
        return row;
}

int rows_recover(struct rows *rows)
{
        uint32_t count;

        if (!rows->path || map_left_over(rows) < 0)
                return 0;
        count = layout_is_sane(rows) && shape_is_sane(rows) ? count_whole_rows(rows) : 0;
        if (count == 0 || rows_load_entities(rows) < 0) {
                rows_unmap(rows);
                return 0;
        }
        atomic_store(&layout_of(rows)->committed, count);
        return 1;
}
