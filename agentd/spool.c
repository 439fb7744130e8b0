#include "agentd/spool-private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static uint64_t disk_bytes(const struct spool *spool)
{
        uint64_t bytes = 0;

        for (unsigned i = 0; i < spool->n_segments; i++)
                bytes += spool->segments[i]->end;
        return bytes;
}

void spool_update_counters(struct spool *spool)
{
        uint64_t bytes = spool->memory.bytes, blocks = spool->memory.blocks,
                 rows = spool->memory.rows;

        for (unsigned i = 0; i < spool->n_segments; i++) {
                bytes += spool->segments[i]->end - spool->segments[i]->acked;
                blocks += spool->segments[i]->blocks;
                rows += spool->segments[i]->rows;
        }
        spool->counters->spool_bytes = bytes;
        spool->counters->spool_blocks = blocks;
        spool->counters->spool_rows = rows;
}

void spool_remove_first_segment(struct spool *spool)
{
        segment_unlink(spool->segments[0]);
        segment_free(spool->segments[0]);
        spool->n_segments--;
        memmove(spool->segments, spool->segments + 1, spool->n_segments * sizeof(struct segment *));
}

static void note_drop(struct spool *spool, const struct block_header *header)
{
        gaps_add(&spool->gaps, header);
        if (!(header->flags & BLOCK_FLAG_GAP))
                spool->counters->dropped_rows += header->rows;
}

static void drop_first_segment(struct spool *spool)
{
        const struct segment *segment = spool->segments[0];
        struct segment_record record;
        uint64_t offset = segment->acked;

        while (segment_read_record(segment, offset, &record) > 0) {
                note_drop(spool, &record.header);
                offset += sizeof(record) + record.size;
        }
        spool_remove_first_segment(spool);
}

static int add_segment(struct spool *spool)
{
        int r;

        if (spool->n_segments == SEGMENTS_MAX)
                drop_first_segment(spool);
        r = segment_create(
                spool->folder_fd, spool->next_number, &spool->segments[spool->n_segments]);
        if (r < 0)
                return r;
        spool->next_number++;
        spool->n_segments++;
        return 0;
}

/* Appends to the newest segment, or to a new one when that is full. */
static int append_to_disk(
        struct spool *spool, const struct block_header *header, const uint8_t *bytes, size_t size)
{
        struct segment *last =
                spool->n_segments > 0 ? spool->segments[spool->n_segments - 1] : NULL;
        int r;

        if (spool->folder_fd < 0)
                return -ENOENT;
        if (!last || last->closed ||
                (last->end > SEGMENT_HEAD_BYTES && last->end + size > spool->segment_bytes)) {
                r = add_segment(spool);
                if (r < 0)
                        return r;
                last = spool->segments[spool->n_segments - 1];
        }
        return segment_append(last, header, bytes, size);
}

/* The gaps that drops left; those that the disk does not take wait for another time. */
static int write_gaps(struct spool *spool)
{
        const uint8_t *bytes;
        size_t size;
        int r = 0;

        while (r == 0 && spool->gaps.count > 0) {
                struct block_header header = spool->gaps.headers[spool->gaps.count - 1];

                r = gaps_take(&spool->gaps, spool->encoder, &bytes, &size);
                if (r < 0)
                        return r;
                r = append_to_disk(spool, &header, bytes, size);
                if (r < 0)
                        gaps_add(&spool->gaps, &header);
        }
        return r;
}

static int write_block(
        struct spool *spool, const struct block_header *header, const uint8_t *bytes, size_t size)
{
        while (spool->n_segments > 0 && disk_bytes(spool) + size > spool->bytes_max)
                drop_first_segment(spool);
        return append_to_disk(spool, header, bytes, size);
}

/* Brings what is in memory to the disk, unless it is on its way to the collector. */
static int move_to_disk(struct spool *spool)
{
        struct memory_block *block;
        int r;

        if (spool->memory.first && spool->batch.valid && spool->batch.from_memory)
                return spool->error;
        while ((block = spool->memory.first)) {
                r = write_block(spool, &block->header, block->bytes, block->size);
                if (r < 0)
                        return r;
                memory_queue_drop_first(&spool->memory);
        }
        return 0;
}

static int keep_in_memory(
        struct spool *spool, const struct block_header *header, const uint8_t *bytes, size_t size)
{
        uint64_t most = spool->bytes_max < SPOOL_MEMORY_MAX ? spool->bytes_max : SPOOL_MEMORY_MAX;
        int r;

        while (spool->memory.first && spool->memory.bytes + size > most) {
                note_drop(spool, &spool->memory.first->header);
                memory_queue_drop_first(&spool->memory);
        }
        r = memory_queue_add(&spool->memory, header, bytes, size);
        if (r < 0)
                note_drop(spool, header);
        return r;
}

int spool_append(struct spool *spool, const uint8_t *bytes, size_t size)
{
        struct block_header header;
        size_t own_size;
        int r;

        r = block_peek(bytes, size, &header, &own_size);
        if (r < 0)
                return r;
        if (own_size != size)
                return -EBADMSG;
        r = move_to_disk(spool);
        if (r == 0)
                r = write_block(spool, &header, bytes, size);
        spool->error = r;
        if (r == 0)
                (void)write_gaps(spool);
        else
                r = keep_in_memory(spool, &header, bytes, size);
        spool_update_counters(spool);
        return r;
}

bool spool_is_durable(const struct spool *spool, int *ret_error)
{
        *ret_error = spool->error;
        return spool->error == 0;
}

uint64_t spool_get_damaged(const struct spool *spool)
{
        return spool->damaged;
}

static int is_segment(const struct dirent *entry)
{
        uint64_t number;

        return segment_parse_name(entry->d_name, &number) == 0;
}

/* All names are equally long, so their order is that of the numbers. */
static int compare_names(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

/* One that cannot be read is left where it is: it may be readable another time. One that is no
 * segment (its first write was cut) is removed. */
static void open_segment(struct spool *spool, uint64_t number, uint64_t *damaged)
{
        struct segment *segment = NULL;
        uint64_t cut = 0;
        int r;

        spool->next_number = number + 1;
        r = segment_open(spool->folder_fd, number, &segment, &cut);
        if (r < 0) {
                if (r == -EBADMSG)
                        segment_unlink(
                                &(struct segment){.folder_fd = spool->folder_fd, .number = number});
                ++*damaged;
                return;
        }
        *damaged += cut > 0;
        spool->segments[spool->n_segments++] = segment;
        if (segment->acked == segment->end) {
                segment_unlink(segment);
                segment_free(segment);
                spool->n_segments--;
        }
}

static int open_folder(struct spool *spool, const char *folder, uint64_t *damaged)
{
        struct dirent **entries = NULL;
        uint64_t number;
        int n;

        spool->folder = strdup(folder);
        if (!spool->folder)
                return -ENOMEM;
        if (mkdir(folder, 0700) < 0 && errno != EEXIST)
                return -errno;
        spool->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (spool->folder_fd < 0)
                return -errno;
        n = scandirat(spool->folder_fd, ".", &entries, is_segment, compare_names);
        if (n < 0)
                return -errno;
        for (int i = 0; i < n; i++) {
                /* There are more only when strangers put them there; the newest ones are ours. */
                if (i >= n - (int)SEGMENTS_MAX &&
                        segment_parse_name(entries[i]->d_name, &number) == 0)
                        open_segment(spool, number, damaged);
                free(entries[i]);
        }
        free(entries);
        return 0;
}

int spool_open(const char *folder, uint64_t bytes_max, struct agent_counters *counters,
        struct spool **ret, uint64_t *ret_damaged)
{
        CLEANUP(spool) struct spool *spool = calloc(1, sizeof(*spool));
        uint64_t damaged = 0;
        int r;

        if (!spool)
                return -ENOMEM;
        spool->folder_fd = -1;
        spool->bytes_max = bytes_max;
        spool->segment_bytes = bytes_max / SPOOL_SEGMENTS;
        spool->counters = counters;
        spool->next_number = 1;
        spool->error = folder ? 0 : -ENOENT;
        r = block_encoder_new(&spool->encoder);
        if (r < 0)
                return r;
        r = folder ? open_folder(spool, folder, &damaged) : 0;
        if (r < 0)
                return r;
        spool_update_counters(spool);
        *ret_damaged = damaged;
        *ret = STEAL(spool);
        return 0;
}

struct spool *spool_close(struct spool *spool)
{
        if (!spool)
                return NULL;
        if (spool->error == 0)
                (void)write_gaps(spool);
        for (unsigned i = 0; i < spool->n_segments; i++)
                segment_free(spool->segments[i]);
        memory_queue_done(&spool->memory);
        if (spool->folder_fd >= 0)
                close(spool->folder_fd);
        block_encoder_free(spool->encoder);
        free(spool->buffer);
        free(spool->folder);
        free(spool);
        return NULL;
}
