/* Retention: old blocks and gaps go in small steps, so that the loop is never held up for long. */
#include "collectord/store-private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct removed {
        int64_t stream;
        int64_t blocks, rows;
};

/* *ret_removed: a row for each block, freed by the caller. */
static int remove_blocks(struct store *store, int64_t before_us, uint32_t limit,
        struct removed **ret_removed, uint32_t *ret_n)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = store->statements[WRITE_RETAIN_BLOCKS];
        CLEANUP(mem) struct removed *removed = calloc(limit, sizeof(*removed));
        uint32_t n = 0;
        int code;

        if (!removed)
                return -ENOMEM;
        sqlite3_bind_int64(statement, 1, before_us);
        sqlite3_bind_int64(statement, 2, limit);
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                if (n == limit)
                        return -EBADMSG;
                removed[n++] = (struct removed){
                        .stream = sqlite3_column_int64(statement, 0),
                        .blocks = 1,
                        .rows = sqlite3_column_int64(statement, 1),
                };
        }
        if (code != SQLITE_DONE)
                return store_errno(store->db, code);
        *ret_removed = STEAL(removed);
        *ret_n = n;
        return 0;
}

static int compare_stream(const void *a, const void *b)
{
        const struct removed *left = a, *right = b;

        return (left->stream > right->stream) - (left->stream < right->stream);
}

static int discount(struct store *store, const struct removed *removed)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = store->statements[WRITE_DISCOUNT_STREAM];

        sqlite3_bind_int64(statement, 1, removed->stream);
        sqlite3_bind_int64(statement, 2, removed->blocks);
        sqlite3_bind_int64(statement, 3, removed->rows);
        return store_run(store, statement);
}

static int discount_streams(struct store *store, struct removed *removed, uint32_t n)
{
        qsort(removed, n, sizeof(*removed), compare_stream);
        for (uint32_t i = 0; i < n; i++) {
                int r;

                if (i + 1 < n && removed[i + 1].stream == removed[i].stream) {
                        removed[i + 1].blocks += removed[i].blocks;
                        removed[i + 1].rows += removed[i].rows;
                        continue;
                }
                r = discount(store, &removed[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int retain(struct store *store, int64_t before_us, uint32_t limit, uint32_t *ret_removed)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = store->statements[WRITE_RETAIN_GAPS];
        CLEANUP(mem) struct removed *removed = NULL;
        int r;

        r = remove_blocks(store, before_us, limit, &removed, ret_removed);
        if (r < 0)
                return r;
        r = discount_streams(store, removed, *ret_removed);
        if (r < 0)
                return r;
        sqlite3_bind_int64(statement, 1, before_us);
        sqlite3_bind_int64(statement, 2, limit);
        return store_run(store, statement);
}

int store_retain(struct store *store, int64_t before_us, uint32_t limit, uint32_t *ret_removed)
{
        uint32_t removed = 0;
        int r;

        assert(!store->in_transaction && limit > 0);
        r = store_begin(store);
        if (r < 0)
                return r;
        r = retain(store, before_us, limit, &removed);
        if (r == 0)
                r = store_commit(store);
        if (r < 0) {
                store_rollback(store);
                return r;
        }
        *ret_removed = removed;
        return 0;
}
