/* The loop's half of upkeep: what a keeper sealed leaves the hot log, in small transactions. */
#include "collectord/store-private.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SLICE_BLOCKS 200u /* a few milliseconds */

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

static int next_version(struct store *store, int64_t *ret)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = store->statements[WRITE_NEXT_DIRTY];
        int code = sqlite3_step(statement);

        if (code != SQLITE_ROW)
                return code == SQLITE_DONE ? -EBADMSG : store_errno(store->db, code);
        *ret = sqlite3_column_int64(statement, 0);
        return store_errno(store->db, sqlite3_step(statement));
}

static int mark(struct store *store, const struct store_step *step)
{
        int64_t version = 0;
        int r = 0;

        if (step->n_dirty > 0)
                r = next_version(store, &version);
        /* A slot that was marked once more since stays marked. */
        for (size_t i = 0; i < step->n_clean && r == 0; i++)
                r = RUN(store, WRITE_CLEAR_DIRTY, step->clean[i].tier, step->clean[i].slot,
                        step->clean[i].stream, step->clean[i].version);
        for (size_t i = 0; i < step->n_dirty && r == 0; i++)
                r = RUN(store, WRITE_ADD_DIRTY, step->dirty[i].tier, step->dirty[i].slot,
                        step->dirty[i].stream, version);
        return r;
}

static int expire(struct store *store, const struct store_step *step)
{
        int64_t end_us = (step->period + 1) * sealed_layouts[step->tier].period_us;
        int r;

        r = RUN(store, WRITE_EXPIRE, step->tier, step->period);
        for (size_t i = 0; i < step->n_kept && r == 0; i++)
                r = RUN(store, WRITE_EXPIRE_STREAM, step->kept[i].stream, step->kept[i].blocks,
                        step->kept[i].rows);
        /* Now nothing at all is left of that time. */
        if (r == 0 && step->tier == SEALED_HOUR)
                r = RUN(store, WRITE_FORGET_STREAMS, end_us);
        return r;
}

static int begin_step(struct store *store, const struct store_step *step)
{
        int r = 0;

        for (size_t i = 0; i < step->n_moved && r == 0; i++)
                r = RUN(store, WRITE_MOVE_STREAM, step->moved[i].stream, step->moved[i].last_us,
                        step->moved[i].span_us);
        if (r == 0)
                r = mark(store, step);
        if (r == 0 && step->expire)
                r = expire(store, step);
        if (r == 0 && step->scanned_id > 0)
                r = RUN(store, WRITE_SCANNED, step->scanned_id);
        return r;
}

static int follow(struct store *store, const struct store_step *step, size_t end)
{
        int r;

        if (!step->begun) {
                r = begin_step(store, step);
                if (r < 0)
                        return r;
        }
        for (size_t i = step->removed; i < end; i++) {
                r = RUN(store, WRITE_REMOVE_BLOCK, step->blocks[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

int store_follow(struct store *store, struct store_step *step)
{
        size_t end = step->removed + SLICE_BLOCKS < step->n_blocks ? step->removed + SLICE_BLOCKS
                                                                   : step->n_blocks;
        int r;

        assert(!store->in_transaction);
        r = store_begin(store);
        if (r < 0)
                return r;
        r = follow(store, step, end);
        if (r == 0)
                r = store_commit(store);
        if (r < 0) {
                store_rollback(store);
                return r;
        }
        step->begun = true;
        step->removed = end;
        if (end < step->n_blocks)
                return 1;
        return store_set_limit(store, store->limit);
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
