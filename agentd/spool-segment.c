#include "agentd/spool-segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define HEAD_MAGIC "STRSPL02"
#define RECORD_MAGIC 0x52545332u
#define NAME_MAX_BYTES 32

struct head {
        char magic[8];
        struct segment_epoch epoch;
        uint64_t check; /* of the epoch */
        uint64_t reserved[3];
};

_Static_assert(sizeof(struct head) == SEGMENT_HEAD_BYTES, "the head's size is part of the format");
_Static_assert(sizeof(struct segment_record) % 8 == 0, "the check goes by words");
_Static_assert(sizeof(struct segment_epoch) % 8 == 0, "the check goes by words");

/* Behind the last record; shorter than any magic and what a file that ends reads as, too. */
static const uint64_t terminator = 0;

/* @size is a multiple of 8. */
static uint64_t check_words(const void *data, size_t size)
{
        const uint8_t *bytes = data;
        uint64_t check = RECORD_MAGIC, word;

        for (size_t i = 0; i < size; i += sizeof(word)) {
                memcpy(&word, bytes + i, sizeof(word));
                check = (check ^ word) * UINT64_C(0x9e3779b97f4a7c15);
                check ^= check >> 29;
        }
        return check;
}

static uint64_t record_check(const struct segment_record *record)
{
        return check_words(record, offsetof(struct segment_record, check));
}

void segment_seal_record(
        struct segment_record *record, uint32_t size, struct segment_trailer *ret_trailer)
{
        record->magic = RECORD_MAGIC;
        record->size = size;
        record->check = record_check(record);
        *ret_trailer = (struct segment_trailer){size, (uint32_t)record->check};
}

bool segment_is_done(const struct segment_record *record)
{
        return record->done == record->check;
}

uint64_t segment_record_bytes(size_t size)
{
        return sizeof(struct segment_record) + size + sizeof(struct segment_trailer);
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
        segment->end = SEGMENT_HEAD_BYTES;
        segment->fd = openat(folder_fd, name, O_CLOEXEC | O_NOFOLLOW | flags, 0600);
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

static int write_terminator(const struct segment *segment)
{
        struct iovec part = {(void *)&terminator, sizeof(terminator)};

        return write_whole(segment->fd, &part, 1, segment->end);
}

/* Without it the disk may be full later instead of now: no reason to do without the disk. */
static int allocate(struct segment *segment, uint64_t bytes)
{
        if (fallocate(segment->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) < 0) {
                if (errno != EOPNOTSUPP && errno != ENOSYS)
                        return -errno;
                return 0;
        }
        segment->allocated = bytes;
        return 0;
}

static int write_head(struct segment *segment, const struct segment_epoch *epoch)
{
        struct head head = {.magic = HEAD_MAGIC, .epoch = *epoch};
        struct iovec part = {&head, sizeof(head)};

        head.check = check_words(epoch, sizeof(*epoch));
        segment->epoch = *epoch;
        return write_whole(segment->fd, &part, 1, 0);
}

int segment_create(int folder_fd, uint64_t number, const struct segment_epoch *epoch,
        uint64_t bytes, struct segment **ret)
{
        CLEANUP(segment) struct segment *segment = NULL;
        int r;

        r = open_file(folder_fd, number, O_RDWR | O_CREAT | O_EXCL, &segment);
        if (r < 0)
                return r;
        assert(segment);
        r = allocate(segment, bytes);
        if (r == 0)
                r = write_head(segment, epoch);
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

static bool record_is_sane(const struct segment_record *record, uint64_t left)
{
        return record->magic == RECORD_MAGIC && record->check == record_check(record) &&
               record->size <= BLOCK_BYTES_MAX && segment_record_bytes(record->size) <= left;
}

int segment_read_record(const struct segment *segment, uint64_t offset, uint64_t end,
        struct segment_record *ret, uint64_t *ret_next)
{
        struct segment_trailer trailer;
        uint64_t next;
        int r;

        if (offset == end)
                return 0;
        if (end - offset < sizeof(*ret))
                return -EBADMSG;
        r = read_whole(segment->fd, ret, sizeof(*ret), offset);
        if (r < 0)
                return r;
        if (!record_is_sane(ret, end - offset))
                return -EBADMSG;
        next = offset + segment_record_bytes(ret->size);
        r = read_whole(segment->fd, &trailer, sizeof(trailer), next - sizeof(trailer));
        if (r < 0)
                return r;
        if (trailer.size != ret->size || trailer.check != (uint32_t)ret->check)
                return -EBADMSG;
        *ret_next = next;
        return 1;
}

int segment_step_back(const struct segment *segment, uint64_t end, struct segment_record *ret,
        uint64_t *ret_offset)
{
        struct segment_trailer trailer;
        uint64_t next;
        int r;

        if (end == SEGMENT_HEAD_BYTES)
                return 0;
        r = read_whole(segment->fd, &trailer, sizeof(trailer), end - sizeof(trailer));
        if (r < 0)
                return r;
        if (segment_record_bytes(trailer.size) > end - SEGMENT_HEAD_BYTES)
                return -EBADMSG;
        *ret_offset = end - segment_record_bytes(trailer.size);
        return segment_read_record(segment, *ret_offset, end, ret, &next);
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

static void count_record(struct segment *segment, const struct segment_record *record)
{
        if (segment->end == SEGMENT_HEAD_BYTES)
                segment->oldest_us = record->stamp.written_us;
        segment->newest = record->stamp;
        if (segment_is_done(record))
                return;
        segment->blocks++;
        segment->rows += rows_of(&record->header);
}

/* Finds the end of the whole records, and what of them is not done. */
static int find_end(struct segment *segment, uint64_t size)
{
        struct segment_record record;
        uint64_t next;
        int r;

        segment->end = SEGMENT_HEAD_BYTES;
        segment->blocks = segment->rows = 0;
        while ((r = segment_read_record(segment, segment->end, size, &record, &next)) > 0) {
                count_record(segment, &record);
                segment->end = next;
        }
        return r < 0 && r != -EBADMSG ? r : 0;
}

/* Whether what follows the end is anything but the end of the chain. */
static bool is_torn(const struct segment *segment, uint64_t size)
{
        uint64_t word = 0, left = size - segment->end;

        if (left == 0)
                return false;
        return read_whole(segment->fd, &word, left < 8 ? left : 8, segment->end) < 0 || word != 0;
}

static void read_epoch(struct segment *segment, const struct head *head)
{
        if (head->check == check_words(&head->epoch, sizeof(head->epoch)))
                segment->epoch = head->epoch;
}

/* A disk that takes no writes can still be read. */
static int open_to_write_or_read(int folder_fd, uint64_t number, struct segment **ret)
{
        int r = open_file(folder_fd, number, O_RDWR, ret);

        if (r != -EROFS && r != -EACCES)
                return r;
        r = open_file(folder_fd, number, O_RDONLY, ret);
        if (r == 0)
                (*ret)->closed = true;
        return r;
}

int segment_open(int folder_fd, uint64_t number, struct segment **ret, bool *ret_cut)
{
        CLEANUP(segment) struct segment *segment = NULL;
        struct stat status;
        struct head head;
        int r;

        r = open_to_write_or_read(folder_fd, number, &segment);
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
        read_epoch(segment, &head);
        r = find_end(segment, (uint64_t)status.st_size);
        if (r < 0)
                return r;
        *ret_cut = is_torn(segment, (uint64_t)status.st_size);
        segment_finish(segment);
        *ret = STEAL(segment);
        return 0;
}

int segment_resume(struct segment *segment, const struct segment_epoch *epoch, uint64_t bytes)
{
        int r;

        r = allocate(segment, bytes);
        if (r == 0)
                r = write_head(segment, epoch);
        segment->closed = r < 0;
        return r;
}

void segment_finish(struct segment *segment)
{
        segment->allocated = segment->end;
        if (ftruncate(segment->fd, (off_t)segment->end) < 0)
                segment->closed = true;
}

int segment_append(struct segment *segment, const struct segment_stamp *stamp,
        const struct block_header *header, const uint8_t *bytes, size_t size)
{
        struct segment_record record;
        struct segment_trailer trailer;
        struct iovec parts[] = {
                {&record, sizeof(record)},
                {(void *)bytes, size},
                {&trailer, sizeof(trailer)},
                {(void *)&terminator, sizeof(terminator)},
        };
        int r;

        if (segment->closed)
                return -EIO;
        memset(&record, 0, sizeof(record));
        record.stamp = *stamp;
        record.header = *header;
        segment_seal_record(&record, (uint32_t)size, &trailer);
        r = write_whole(segment->fd, parts, 4, segment->end);
        if (r < 0) {
                if (write_terminator(segment) < 0)
                        segment_finish(segment);
                return r;
        }
        count_record(segment, &record);
        segment->end += segment_record_bytes(size);
        if (segment->allocated < segment->end)
                segment->allocated = segment->end;
        return 0;
}

void segment_mark_done(
        struct segment *segment, uint64_t offset, const struct segment_record *record)
{
        uint64_t done = record->check;
        struct iovec part = {&done, sizeof(done)};

        segment->blocks--;
        segment->rows -= rows_of(&record->header);
        /* If it fails, it is sent again, as it may be after a power loss: it is not stored twice.
         */
        (void)write_whole(segment->fd, &part, 1, offset + offsetof(struct segment_record, done));
}

void segment_cut(struct segment *segment, uint64_t begin, uint64_t blocks, uint64_t rows)
{
        bool finished = segment->allocated == segment->end;
        struct segment_record record;
        uint64_t offset;

        segment->blocks -= blocks;
        segment->rows -= rows;
        segment->end = begin;
        while (segment_step_back(segment, segment->end, &record, &offset) > 0 &&
                segment_is_done(&record))
                segment->end = offset;
        /* What was allocated to append to stays. If neither succeeds they are sent again. */
        if (finished || write_terminator(segment) < 0)
                segment_finish(segment);
}

void segment_rescan(struct segment *segment)
{
        uint64_t end = segment->end;

        if (find_end(segment, end) < 0 || segment->end == end) {
                segment->end = SEGMENT_HEAD_BYTES;
                segment->blocks = segment->rows = 0;
        }
        segment_finish(segment);
}

void segment_unlink(const struct segment *segment)
{
        char name[NAME_MAX_BYTES];

        format_name(segment->number, name);
        (void)unlinkat(segment->folder_fd, name, 0);
}
