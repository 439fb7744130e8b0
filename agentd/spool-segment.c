#include "agentd/spool-segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define HEAD_MAGIC "STRSPL01"
#define RECORD_MAGIC 0x52545331u
#define NAME_MAX_BYTES 32

struct head {
        char magic[8];
        uint64_t acked;
        uint64_t reserved[2];
};

_Static_assert(sizeof(struct head) == SEGMENT_HEAD_BYTES, "the head's size is part of the format");
_Static_assert(sizeof(struct segment_record) % 8 == 0, "the check goes by words");

static uint64_t record_check(const struct segment_record *record)
{
        uint64_t words[offsetof(struct segment_record, check) / 8], check = RECORD_MAGIC;

        memcpy(words, record, sizeof(words));
        for (size_t i = 0; i < sizeof(words) / 8; i++) {
                check = (check ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
                check ^= check >> 29;
        }
        return check;
}

void segment_seal_record(struct segment_record *record, uint32_t size)
{
        record->magic = RECORD_MAGIC;
        record->size = size;
        record->check = record_check(record);
}

static void format_name(uint64_t number, char *ret)
{
        snprintf(ret, NAME_MAX_BYTES, "%016" PRIx64 ".spool", number);
}

int segment_parse_name(const char *name, uint64_t *ret)
{
        char expected[NAME_MAX_BYTES];
        uint64_t number;

        if (sscanf(name, "%16" SCNx64, &number) != 1)
                return -EINVAL;
        format_name(number, expected);
        if (strcmp(name, expected) != 0)
                return -EINVAL;
        *ret = number;
        return 0;
}

static int open_file(int folder_fd, uint64_t number, int flags, struct segment **ret)
{
        CLEANUP(segment) struct segment *segment = calloc(1, sizeof(*segment));
        char name[NAME_MAX_BYTES];

        if (!segment)
                return -ENOMEM;
        format_name(number, name);
        segment->number = number;
        segment->folder_fd = folder_fd;
        segment->end = segment->acked = SEGMENT_HEAD_BYTES;
        segment->fd = openat(folder_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
        if (segment->fd < 0)
                return -errno;
        *ret = STEAL(segment);
        return 0;
}

struct segment *segment_free(struct segment *segment)
{
        if (!segment)
                return NULL;
        if (segment->fd >= 0)
                close(segment->fd);
        free(segment);
        return NULL;
}

static int write_whole(int fd, const struct iovec *parts, int n_parts, uint64_t offset)
{
        size_t size = 0;
        ssize_t n;

        for (int i = 0; i < n_parts; i++)
                size += parts[i].iov_len;
        n = pwritev(fd, parts, n_parts, (off_t)offset);
        if (n < 0)
                return -errno;
        /* A disk that fills up takes a part first. */
        return (size_t)n == size ? 0 : -ENOSPC;
}

int segment_create(int folder_fd, uint64_t number, struct segment **ret)
{
        CLEANUP(segment) struct segment *segment = NULL;
        struct head head = {.magic = HEAD_MAGIC, .acked = SEGMENT_HEAD_BYTES};
        struct iovec part = {&head, sizeof(head)};
        int r;

        r = open_file(folder_fd, number, O_CREAT | O_EXCL, &segment);
        if (r < 0)
                return r;
        assert(segment);
        r = write_whole(segment->fd, &part, 1, 0);
        if (r < 0) {
                segment_unlink(segment);
                return r;
        }
        *ret = STEAL(segment);
        return 0;
}

static int read_whole(int fd, void *ret, size_t size, uint64_t offset)
{
        ssize_t n = pread(fd, ret, size, (off_t)offset);

        if (n < 0)
                return -errno;
        return (size_t)n == size ? 0 : -EBADMSG;
}

int segment_read_record(const struct segment *segment, uint64_t offset, struct segment_record *ret)
{
        uint64_t left = segment->end - offset;
        int r;

        if (left == 0)
                return 0;
        if (left < sizeof(*ret))
                return -EBADMSG;
        r = read_whole(segment->fd, ret, sizeof(*ret), offset);
        if (r < 0)
                return r;
        if (ret->magic != RECORD_MAGIC || ret->check != record_check(ret) ||
                ret->size > BLOCK_BYTES_MAX || ret->size > left - sizeof(*ret))
                return -EBADMSG;
        return 1;
}

int segment_read_block(const struct segment *segment, uint64_t offset,
        const struct segment_record *record, uint8_t *ret)
{
        return read_whole(segment->fd, ret, record->size, offset + sizeof(*record));
}

static uint64_t rows_of(const struct block_header *header)
{
        return header->flags & BLOCK_FLAG_GAP ? 0 : header->rows;
}

/* Finds the end of the whole records, and what of them is not acknowledged. An offset that is no
 * record's begin acknowledges nothing: a repeat does no harm, a skipped block would. */
static int find_end(struct segment *segment, uint64_t acked)
{
        uint64_t offset = SEGMENT_HEAD_BYTES, blocks = 0, rows = 0;
        struct segment_record record;
        int r;

        while ((r = segment_read_record(segment, offset, &record)) > 0) {
                if (offset == acked) {
                        segment->acked = acked;
                        blocks = rows = 0;
                }
                blocks++;
                rows += rows_of(&record.header);
                offset += sizeof(record) + record.size;
        }
        if (r < 0 && r != -EBADMSG)
                return r;
        if (offset == acked) {
                segment->acked = acked;
                blocks = rows = 0;
        }
        segment->end = offset;
        segment->blocks = blocks;
        segment->rows = rows;
        return 0;
}

int segment_open(int folder_fd, uint64_t number, struct segment **ret, uint64_t *ret_cut)
{
        CLEANUP(segment) struct segment *segment = NULL;
        struct stat status;
        struct head head;
        int r;

        r = open_file(folder_fd, number, 0, &segment);
        if (r < 0)
                return r;
        assert(segment);
        if (fstat(segment->fd, &status) < 0)
                return -errno;
        r = read_whole(segment->fd, &head, sizeof(head), 0);
        if (r < 0)
                return r;
        if (memcmp(head.magic, HEAD_MAGIC, sizeof(head.magic)) != 0)
                return -EBADMSG;
        segment->end = (uint64_t)status.st_size;
        r = find_end(segment, head.acked);
        if (r < 0)
                return r;
        *ret_cut = (uint64_t)status.st_size - segment->end;
        if (*ret_cut > 0 && ftruncate(segment->fd, (off_t)segment->end) < 0)
                segment->closed = true;
        *ret = STEAL(segment);
        return 0;
}

int segment_append(struct segment *segment, const struct block_header *header, const uint8_t *bytes,
        size_t size)
{
        struct segment_record record;
        struct iovec parts[2] = {{&record, sizeof(record)}, {(void *)bytes, size}};
        int r;

        if (segment->closed)
                return -EIO;
        memset(&record, 0, sizeof(record));
        record.header = *header;
        segment_seal_record(&record, (uint32_t)size);
        r = write_whole(segment->fd, parts, 2, segment->end);
        if (r < 0) {
                if (ftruncate(segment->fd, (off_t)segment->end) < 0)
                        segment->closed = true;
                return r;
        }
        segment->end += sizeof(record) + size;
        segment->blocks++;
        segment->rows += rows_of(header);
        return 0;
}

static int write_acked(const struct segment *segment, uint64_t acked)
{
        struct iovec part = {&acked, sizeof(acked)};

        return write_whole(segment->fd, &part, 1, offsetof(struct head, acked));
}

void segment_acknowledge(struct segment *segment, uint64_t offset)
{
        struct segment_record record;
        uint64_t at = segment->acked;

        while (at < offset && segment_read_record(segment, at, &record) > 0) {
                segment->blocks--;
                segment->rows -= rows_of(&record.header);
                at += sizeof(record) + record.size;
        }
        if (offset == segment->end)
                segment->blocks = segment->rows = 0;
        segment->acked = offset;
        /* If it fails, these blocks are sent again after a restart. */
        (void)write_acked(segment, offset);
}

void segment_empty(struct segment *segment)
{
        /* The order matters: an offset left behind in a shorter file would skip blocks. */
        if (write_acked(segment, SEGMENT_HEAD_BYTES) < 0 ||
                ftruncate(segment->fd, SEGMENT_HEAD_BYTES) < 0)
                return;
        segment->end = segment->acked = SEGMENT_HEAD_BYTES;
        segment->closed = false;
}

void segment_unlink(const struct segment *segment)
{
        char name[NAME_MAX_BYTES];

        format_name(segment->number, name);
        (void)unlinkat(segment->folder_fd, name, 0);
}
