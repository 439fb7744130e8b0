/* Appending to the spool, and dropping what is too much or too old. */
#include "agentd/spool-private.h"

#include <errno.h>
#include <string.h>

static struct segment *last_segment(const struct spool *spool)
{
        return spool->n_segments > 0 ? spool->segments[spool->n_segments - 1] : NULL;
}

static struct segment_stamp stamp_now(const struct spool *spool)
{
        struct moment now = spool->options.clock(spool->options.userdata);

        return spool_age_stamp(&spool->epoch, &now);
}

static uint64_t disk_bytes(const struct spool *spool)
{
        uint64_t bytes = 0;

        for (unsigned i = 0; i < spool->n_segments; i++)
                bytes += spool->segments[i]->allocated;
        return bytes;
}

/* Whether a block of @size bytes goes to @last, or to a new segment. Past the bound of segments it
 * grows: better that than to drop some. */
static bool takes(const struct spool *spool, const struct segment *last, size_t size,
        const struct segment_stamp *stamp)
{
        uint64_t age_step_us = spool->options.age_max_us / SPOOL_SEGMENTS;

        if (!last || last->closed)
                return false;
        if (spool->n_segments == SEGMENTS_MAX)
                return true;
        if (last->number < spool->append_from)
                return false;
        if (last->end == SEGMENT_HEAD_BYTES)
                return true;
        if (age_step_us > 0 && stamp->written_us > last->oldest_us + age_step_us)
                return false;
        return last->end + segment_record_bytes(size) <= spool->segment_bytes;
}

static uint64_t new_segment_bytes(const struct spool *spool, size_t size)
{
        uint64_t needed = SEGMENT_HEAD_BYTES + segment_record_bytes(size);

        return needed > spool->segment_bytes ? needed : spool->segment_bytes;
}

/* What one more block takes on the disk. */
static uint64_t growth(const struct spool *spool, size_t size, const struct segment_stamp *stamp)
{
        const struct segment *last = last_segment(spool);
        uint64_t end;

        if (!takes(spool, last, size, stamp))
                return new_segment_bytes(spool, size);
        end = last->end + segment_record_bytes(size);
        return end > last->allocated ? end - last->allocated : 0;
}

static int add_segment(struct spool *spool, size_t size)
{
        struct segment *segment = NULL;
        int r;

        if (spool->n_segments == SEGMENTS_MAX)
                return -EMFILE;
        r = segment_create(spool->folder_fd, spool->next_number, &spool->epoch,
                new_segment_bytes(spool, size), &segment);
        if (r < 0)
                return r;
        if (last_segment(spool))
                segment_finish(last_segment(spool));
        spool->next_number++;
        spool->segments[spool->n_segments++] = segment;
        return 0;
}

static int append_to_disk(struct spool *spool, const struct segment_stamp *stamp,
        const struct block_header *header, const uint8_t *bytes, size_t size)
{
        int r;

        if (spool->folder_fd < 0)
                return -ENOENT;
        if (!takes(spool, last_segment(spool), size, stamp)) {
                r = add_segment(spool, size);
                if (r < 0)
                        return r;
        }
        return segment_append(last_segment(spool), stamp, header, bytes, size);
}

int spool_write_gaps(struct spool *spool)
{
        struct segment_stamp stamp = stamp_now(spool);
        const uint8_t *bytes;
        size_t size;
        int r = 0;

        while (r == 0 && spool->gaps.count > 0) {
                struct block_header header = spool->gaps.headers[spool->gaps.count - 1];

                r = gaps_take(&spool->gaps, spool->encoder, &bytes, &size);
                if (r < 0)
                        return r;
                r = append_to_disk(spool, &stamp, &header, bytes, size);
                if (r < 0)
                        gaps_add(&spool->gaps, &header);
        }
        return r;
}

static void note_drop(struct spool *spool, const struct block_header *header)
{
        gaps_add(&spool->gaps, header);
        if (!(header->flags & BLOCK_FLAG_GAP))
                spool->options.counters->dropped_rows += header->rows;
}

static bool is_in_flight(const struct spool *spool, const struct segment *segment)
{
        return spool->batch.valid && !spool->batch.from_memory &&
               spool->batch.segment == segment->number;
}

/* The gap is on the disk before the rows are gone: killed in between, both are told under the same
 * name when the segment is dropped anew. */
static void drop_segment(struct spool *spool, unsigned index)
{
        const struct segment *segment = spool->segments[index];
        uint64_t offset = SEGMENT_HEAD_BYTES, next;
        struct segment_record record;

        while (segment_read_record(segment, offset, segment->end, &record, &next) > 0) {
                if (!segment_is_done(&record))
                        note_drop(spool, &record.header);
                offset = next;
        }
        if (index + 1 < spool->n_segments && spool->error == 0)
                (void)spool_write_gaps(spool);
        spool_remove_segment(spool, index);
}

/* The oldest one. What is on its way to the collector stays, unless there is nothing else. */
static void drop_oldest_segment(struct spool *spool)
{
        drop_segment(spool, spool->n_segments > 1 && is_in_flight(spool, spool->segments[0]));
}

static bool is_too_old(const struct spool *spool, const struct segment_stamp *stamp, uint64_t now)
{
        return spool->options.age_max_us > 0 && stamp->written_us <= now &&
               now - stamp->written_us > spool->options.age_max_us;
}

static void drop_first_in_memory(struct spool *spool)
{
        note_drop(spool, &spool->memory.first->header);
        memory_queue_remove(&spool->memory, spool->memory.first);
}

void spool_drop_old(struct spool *spool)
{
        uint64_t now_us = stamp_now(spool).written_us;

        while (spool->n_segments > 0 && spool->segments[0]->blocks > 0 &&
                !is_in_flight(spool, spool->segments[0]) &&
                is_too_old(spool, &spool->segments[0]->newest, now_us))
                drop_segment(spool, 0);
        while (spool->memory.first && !spool->batch.valid &&
                is_too_old(spool, &spool->memory.first->stamp, now_us))
                drop_first_in_memory(spool);
}

static int write_block(struct spool *spool, const struct segment_stamp *stamp,
        const struct block_header *header, const uint8_t *bytes, size_t size)
{
        if (spool->n_segments == SEGMENTS_MAX && last_segment(spool)->closed)
                drop_oldest_segment(spool);
        while (spool->n_segments > 0 &&
                disk_bytes(spool) + growth(spool, size, stamp) > spool->options.bytes_max)
                drop_oldest_segment(spool);
        return append_to_disk(spool, stamp, header, bytes, size);
}

/* Brings what is in memory to the disk, unless it is on its way to the collector. */
static int move_to_disk(struct spool *spool)
{
        struct memory_block *block;
        int r;

        if (spool->memory.first && spool->batch.valid && spool->batch.from_memory)
                return spool->error;
        while ((block = spool->memory.first)) {
                r = write_block(spool, &block->stamp, &block->header, block->bytes, block->size);
                if (r < 0)
                        return r;
                memory_queue_remove(&spool->memory, block);
        }
        return 0;
}

static int keep_in_memory(struct spool *spool, const struct segment_stamp *stamp,
        const struct block_header *header, const uint8_t *bytes, size_t size)
{
        uint64_t most = spool->options.bytes_max < SPOOL_MEMORY_MAX ? spool->options.bytes_max
                                                                    : SPOOL_MEMORY_MAX;
        int r;

        while (spool->memory.first && spool->memory.bytes + size > most)
                drop_first_in_memory(spool);
        r = memory_queue_add(&spool->memory, stamp, header, bytes, size);
        if (r < 0)
                note_drop(spool, header);
        return r;
}

int spool_append(struct spool *spool, const uint8_t *bytes, size_t size)
{
        struct segment_stamp stamp = stamp_now(spool);
        struct block_header header;
        size_t own_size;
        int r;

        r = block_peek(bytes, size, &header, &own_size);
        if (r < 0)
                return r;
        if (own_size != size)
                return -EBADMSG;
        spool_drop_old(spool);
        r = move_to_disk(spool);
        if (r == 0)
                r = write_block(spool, &stamp, &header, bytes, size);
        spool->error = r;
        if (r == 0)
                (void)spool_write_gaps(spool);
        else
                r = keep_in_memory(spool, &stamp, &header, bytes, size);
        spool_update_counters(spool);
        return r;
}
