#pragma once
/*
 * One file of the spool: a head, then records, each a block behind a copy of its header and before
 * a trailer that has its size, so that one can step backwards without an index. Appended to and
 * read at the end: what is acknowledged there is cut off. A record that is acknowledged while
 * others stand behind it is marked as done in its place. In host byte order: it never leaves the
 * machine.
 *
 * The file's blocks are allocated before, so that a full disk is an error when the segment is made.
 * What lies behind the last record is of no account: eight zero bytes end the chain, and a record
 * whose trailer does not fit its header was torn and ends it, too.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/block.h"
#include "lib/cleanup.h"

#define SEGMENT_HEAD_BYTES 64u

/* When a record was written: by the spool's own clock (spool-age.h) and by the wall clock. */
struct segment_stamp {
        uint64_t written_us;
        int64_t wall_us;
};

/* Stands before each block. */
struct segment_record {
        uint32_t magic;
        uint32_t size; /* of the block */
        struct segment_stamp stamp;
        struct block_header header;
        uint64_t check; /* of the fields above */
        uint64_t done;  /* the same when it is acknowledged, else 0 */
};

/* Stands behind each block. */
struct segment_trailer {
        uint32_t size;  /* of the block */
        uint32_t check; /* the record's, the lower half */
};

/* Which boot appended to it last, and the spool's clock minus the boot clock then. */
struct segment_epoch {
        struct id boot;
        int64_t base_us;
};

struct segment {
        uint64_t number;
        int folder_fd; /* the spool's */
        int fd;
        uint64_t end;                /* of the last record that counts */
        uint64_t allocated;          /* bytes taken on the disk, whether written or not */
        uint64_t blocks, rows;       /* not done; dropped rows of gaps are not rows */
        uint64_t oldest_us;          /* written_us of the first record; no matter when empty */
        struct segment_stamp newest; /* of the last record ever seen in it */
        struct segment_epoch epoch;  /* zero when the head's does not check */
        bool closed;                 /* takes no writes: append no more */
};

/* An empty file FOLDER/NUMBER.spool with @bytes allocated. -EEXIST, -ENOSPC, other -errno. */
int segment_create(int folder_fd, uint64_t number, const struct segment_epoch *epoch,
        uint64_t bytes, struct segment **ret);
/* -EBADMSG: not a segment. One that can only be read is closed. *ret_cut: a torn tail was cut. */
int segment_open(int folder_fd, uint64_t number, struct segment **ret, bool *ret_cut);
/* The file stays. */
struct segment *segment_free(struct segment *segment);
DEFINE_CLEANUP(segment, struct segment *, segment_free)

/* Makes an opened segment one to append to in this boot. */
int segment_resume(struct segment *segment, const struct segment_epoch *epoch, uint64_t bytes);
/* Nothing will be appended any more: gives back what is allocated behind the end. */
void segment_finish(struct segment *segment);

/* What a block of @size bytes takes. */
uint64_t segment_record_bytes(size_t size);
/* All or nothing. -ENOSPC and other -errno. */
int segment_append(struct segment *segment, const struct segment_stamp *stamp,
        const struct block_header *header, const uint8_t *bytes, size_t size);

/* The record at @offset, before @end; its block is at offset + sizeof(record). 0 at the end, 1 with
 * a record and the offset of the next one. -EBADMSG: no whole record there. */
int segment_read_record(const struct segment *segment, uint64_t offset, uint64_t end,
        struct segment_record *ret, uint64_t *ret_next);
/* The record that ends at @end, and where it begins. 0, 1 and errors as above. */
int segment_step_back(const struct segment *segment, uint64_t end, struct segment_record *ret,
        uint64_t *ret_offset);
int segment_read_block(const struct segment *segment, uint64_t offset,
        const struct segment_record *record, uint8_t *ret);
bool segment_is_done(const struct segment_record *record);

/* The one record at @offset is done with. */
void segment_mark_done(
        struct segment *segment, uint64_t offset, const struct segment_record *record);
/* The records from @begin to the end are done with: @blocks with @rows of them were not yet. Done
 * ones before them go, too. */
void segment_cut(struct segment *segment, uint64_t begin, uint64_t blocks, uint64_t rows);
/* Looks at the file anew: after damage, what can still be found from the front. */
void segment_rescan(struct segment *segment);
void segment_unlink(const struct segment *segment);

/* Sets magic, size and check of a record whose other fields are set; and its trailer. */
void segment_seal_record(
        struct segment_record *record, uint32_t size, struct segment_trailer *ret_trailer);
/* NUMBER of a file name, or -EINVAL. */
int segment_parse_name(const char *name, uint64_t *ret);
