#pragma once
/*
 * The sealed part of the store: blocks that were merged, one SQLite file per tier and period (raw:
 * a day), so that retention is an unlink. Only collectord/store*.c include this.
 *
 * A row is a part: some rows of one stream. Its key is made of the slot (a fixed time: of raw
 * blocks five minutes), the stream and a number, so that parts that are written together stand
 * together, and one stream's part is found without an index. Pages are 64 KiB: most parts fit into
 * one.
 */

#include <sqlite3.h>

#include "collectord/store.h"

#define SEALED_FILES_MAX 64u   /* open at a time; a store of two years has 30 */
#define SEALED_PARTS_MAX 4096u /* of a stream in a slot */
#define SEALED_STREAMS_MAX (1u << 26)

enum sealed_tier {
        SEALED_RAW,
        SEALED_MINUTE,
        SEALED_HOUR,
        SEALED_TIERS,
        /* Totals: their streams are no hosts, see store-total.c. */
        SEALED_TOTAL = SEALED_TIERS,
        SEALED_TOTAL_MINUTE,
        SEALED_TOTAL_HOUR,
        SEALED_KINDS,
};

struct sealed_layout {
        const char *name;
        int64_t interval_us; /* of rows; 0: as they came */
        int64_t slot_us;
        int64_t period_us; /* of a file */
};
extern const struct sealed_layout sealed_layouts[SEALED_KINDS];

/* How long raw blocks of an interval are gathered: a multiple of the slot, at most 512 rows. */
int64_t sealed_chunk_us(uint64_t interval_us);

static inline int64_t sealed_slot(enum sealed_tier tier, int64_t time_us)
{
        return time_us < 0 ? 0 : time_us / sealed_layouts[tier].slot_us;
}

enum sealed_statement {
        SEALED_FIND,
        SEALED_DATA,
        SEALED_LAST,
        SEALED_ADD,
        SEALED_REMOVE,
        SEALED_COUNT,
        SEALED_KEPT,
        SEALED_HAS,
        SEALED_STATEMENTS,
};

struct sealed_file {
        enum sealed_tier tier;
        int64_t period;
        uint64_t used; /* when, for choosing whom to close */
        sqlite3 *db;
        sqlite3_stmt *statements[SEALED_STATEMENTS];
};

/* The files that one thread has open. */
struct sealed {
        char *folder;
        bool write;
        uint64_t uses;
        struct sealed_file *files[SEALED_FILES_MAX]; /* each stays where it is while it is open */
        size_t n;
};

int sealed_init(struct sealed *sealed, const char *folder, bool write);
void sealed_done(struct sealed *sealed);
/* Closes files that were removed since. */
void sealed_refresh(struct sealed *sealed);
void sealed_close_file(struct sealed *sealed, enum sealed_tier tier, int64_t period);
/* "raw-20261130.db"; freed by the caller, NULL without memory. */
char *sealed_path(const char *folder, enum sealed_tier tier, int64_t period);
/* -ENOENT when there is none, unless it may be written: then it is made. Errors as in store.h. */
int sealed_get(
        struct sealed *sealed, enum sealed_tier tier, int64_t period, struct sealed_file **ret);

/* An empty file becomes one of ours if @write; another program's (-EBADMSG), or a newer one
 * (-EPROTONOSUPPORT), is left alone. */
int sealed_check_version(sqlite3 *db, bool write);
/* What a part's key says. */
int64_t sealed_key_stream(int64_t id);
int64_t sealed_key_period(enum sealed_tier tier, int64_t id);

struct sealed_part {
        enum sealed_tier tier;
        int64_t id;
        int64_t first_us, last_us;
};
struct sealed_parts {
        struct sealed_part *list;
        size_t n, allocated;
};
void sealed_parts_done(struct sealed_parts *parts);
DEFINE_CLEANUP(sealed_parts_object, struct sealed_parts *, sealed_parts_done)

/* Adds the parts of @stream in slots @first to @last. A file that cannot be read is left out, and
 * counted in *ret_broken. */
int sealed_find(struct sealed *sealed, enum sealed_tier tier, int64_t stream, int64_t first,
        int64_t last, struct sealed_parts *parts, uint64_t *ret_broken);
/* Valid until the next call for a part of the same file. -ENOENT: it is no longer there. */
int sealed_load(struct sealed *sealed, const struct sealed_part *part, const uint8_t **ret_bytes,
        size_t *ret_size);

/* After sealed_find and the last sealed_load: lets go of the files' states, so that what is newer
 * is seen. */
void sealed_release(struct sealed *sealed);

/* ---- writing: one transaction a file ---- */

int sealed_begin(struct sealed_file *file);
int sealed_commit(struct sealed_file *file);
void sealed_rollback(struct sealed_file *file);
struct sealed_row {
        int64_t first_us, last_us, blocks, rows;
        const uint8_t *bytes;
        size_t size;
};
/* -EFBIG: the slot has all parts that it may have. */
int sealed_add(
        struct sealed_file *file, int64_t slot, int64_t stream, const struct sealed_row *row);
/* All parts of the stream in the slot. */
int sealed_remove(struct sealed_file *file, int64_t slot, int64_t stream);

/* What of each stream is in the file. */
struct sealed_kept {
        int64_t stream, blocks, rows;
};
typedef int (*sealed_kept_function)(void *userdata, const struct sealed_kept *kept);
int sealed_read_kept(struct sealed_file *file, sealed_kept_function function, void *userdata);
