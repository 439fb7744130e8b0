/* The loop's half of upkeep: what a keeper sealed leaves the hot log, in small transactions. */
#include "collectord/store-private.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/clock.h"

#define STREAMS_MAX 100u /* in one statement */

static int run_numbers(
        struct store *store, enum write_statement which, const int64_t *values, int n)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = store->statements[which];

        for (int i = 0; i < n; i++)
                sqlite3_bind_int64(statement, i + 1, values[i]);
        return store_run(store, statement);
}

#define RUN(store, which, ...)                                                                     \
        run_numbers(store, which, (const int64_t[]){__VA_ARGS__},                                  \
                sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Nothing is left of the time that the file covers. 1: more streams have to hear of it. */
static int forget(struct store *store, const struct store_step *step)
{
        int64_t end_us = (step->period + 1) * sealed_layouts[step->tier].period_us;
        int r;

        if (step->tier != SEALED_HOUR)
                return 0;
        r = RUN(store, WRITE_FORGET_STREAMS, end_us, STREAMS_MAX);
        return r < 0 ? r : sqlite3_changes(store->db) > 0;
}

static int take_off(struct store *store, const struct store_step *step, size_t i)
{
        const struct sealed_kept *kept = &step->kept[i];
        int r;

        r = RUN(store, WRITE_EXPIRE_STREAM, kept->stream, kept->blocks, kept->rows);
        /* A kill in the midst: what is taken off is not taken off again. */
        return r < 0 ? r : RUN(store, WRITE_EXPIRE, step->tier, step->period, kept->stream);
}

/*
 * The step's changes, one after the other, in an order that is right wherever it ends: marks come
 * before the blocks that they stand for go, and the id up to which blocks have marked after them.
 * 1: the same once more.
 */
static int follow_one(struct store *store, const struct store_step *step, size_t i)
{
        if (i < step->n_moved)
                return RUN(store, WRITE_MOVE_STREAM, step->moved[i].stream, step->moved[i].last_us,
                        step->moved[i].span_us);
        i -= step->n_moved;
        /* A slot that was marked once more since stays marked. */
        if (i < step->n_clean)
                return RUN(store, WRITE_CLEAR_DIRTY, step->clean[i].tier, step->clean[i].slot,
                        step->clean[i].stream, step->clean[i].version);
        i -= step->n_clean;
        if (i < step->n_dirty) {
                int r = i == 0 ? store_run_plain(store, WRITE_NEXT_DIRTY) : 0;

                return r < 0 ? r
                             : RUN(store, WRITE_ADD_DIRTY, step->dirty[i].tier, step->dirty[i].slot,
                                       step->dirty[i].stream);
        }
        i -= step->n_dirty;
        if (i < step->n_blocks)
                return RUN(store, WRITE_REMOVE_BLOCK, step->blocks[i]);
        i -= step->n_blocks;
        if (i < step->n_kept)
                return take_off(store, step, i);
        i -= step->n_kept;
        if (i == 0)
                return step->scanned_id > 0 ? RUN(store, WRITE_SCANNED, step->scanned_id) : 0;
        if (i == 1)
                return step->expire ? forget(store, step) : 0;
        return step->expire ? RUN(store, WRITE_EXPIRE, step->tier, step->period, INT64_MAX) : 0;
}

#define LAST_CHANGES 3u /* of follow_one that are not in a list */

/* Until the time is over; *@done grows. */
static int follow(struct store *store, const struct store_step *step, size_t n, uint64_t slice_us,
        size_t *done)
{
        uint64_t end_us = clock_monotonic_us() + slice_us;

        while (*done < n) {
                int r = follow_one(store, step, *done);

                if (r < 0)
                        return r;
                *done += r == 0;
                if (clock_monotonic_us() >= end_us)
                        return 0;
        }
        return 0;
}

int store_follow(struct store *store, struct store_step *step, uint64_t slice_us)
{
        size_t n = step->n_moved + step->n_clean + step->n_dirty + step->n_blocks + step->n_kept +
                   LAST_CHANGES;
        size_t done = step->done;
        int r;

        assert(!store->in_transaction);
        r = store_begin(store);
        if (r < 0)
                return r;
        r = follow(store, step, n, slice_us, &done);
        if (r == 0)
                r = store_commit(store);
        if (r < 0) {
                store_rollback(store);
                return r;
        }
        step->done = done;
        return done < n ? 1 : store_set_limit(store, store->limit);
}

static bool is_store_file(const char *name, bool sealed)
{
        for (enum sealed_tier tier = SEALED_RAW; tier < SEALED_KINDS; tier++) {
                size_t n = strlen(sealed_layouts[tier].name);

                if (strncmp(name, sealed_layouts[tier].name, n) == 0 && name[n] == '-')
                        return true;
        }
        return !sealed && strncmp(name, STORE_FILE, strlen(STORE_FILE)) == 0;
}

uint64_t store_files_size(const char *folder, bool sealed)
{
        DIR *open = opendir(folder);
        struct dirent *entry;
        uint64_t bytes = 0;

        while (open && (entry = readdir(open))) {
                struct stat status;

                if (is_store_file(entry->d_name, sealed) &&
                        fstatat(dirfd(open), entry->d_name, &status, 0) == 0)
                        bytes += (uint64_t)status.st_size;
        }
        if (open)
                closedir(open);
        return bytes;
}
