#pragma once
/*
 * One file of the spool: a head, then records, each a block behind a copy of its header. Appended
 * to, read from the front, and acknowledged up to an offset that stands in the head. A torn tail is
 * cut off when it is opened. In host byte order: it never leaves the machine.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/block.h"
#include "lib/cleanup.h"

#define SEGMENT_HEAD_BYTES 32u

/* Stands before each block. */
struct segment_record {
        uint32_t magic;
        uint32_t size; /* of the block */
        struct block_header header;
        uint64_t check; /* of the fields above */
};

struct segment {
        uint64_t number;
        int folder_fd; /* the spool's */
        int fd;
        uint64_t end;          /* of the last whole record */
        uint64_t acked;        /* a record's begin, or end */
        uint64_t blocks, rows; /* not acknowledged; dropped rows of gaps are not rows */
        bool closed;           /* a failed write could not be taken back: append no more */
};

/* An empty file FOLDER/NUMBER.spool. -EEXIST, other -errno. */
int segment_create(int folder_fd, uint64_t number, struct segment **ret);
/* -EBADMSG: not a segment. *ret_cut: bytes of a torn tail that were cut off. */
int segment_open(int folder_fd, uint64_t number, struct segment **ret, uint64_t *ret_cut);
/* The file stays. */
struct segment *segment_free(struct segment *segment);
DEFINE_CLEANUP(segment, struct segment *, segment_free)

/* All or nothing. -ENOSPC and other -errno. */
int segment_append(struct segment *segment, const struct block_header *header, const uint8_t *bytes,
        size_t size);
/* The record at @offset; the block's bytes are at offset + sizeof(record). 0 at the end, 1 with a
 * record. -EBADMSG: no record there. */
int segment_read_record(const struct segment *segment, uint64_t offset, struct segment_record *ret);
int segment_read_block(const struct segment *segment, uint64_t offset,
        const struct segment_record *record, uint8_t *ret);
/* Everything before @offset, a record's begin or the end, is done with. */
void segment_acknowledge(struct segment *segment, uint64_t offset);
/* Forgets the acknowledged records of a segment that has no others. */
void segment_empty(struct segment *segment);
void segment_unlink(const struct segment *segment);

/* Sets magic, size and check of a record whose header is set and whose rest is zero. */
void segment_seal_record(struct segment_record *record, uint32_t size);
/* NUMBER of a file name, or -EINVAL. */
int segment_parse_name(const char *name, uint64_t *ret);
