/*
 * Folding the hot log's WAL back into its file, beside the loop: what takes long, writing pages all
 * over the file and waiting for the medium, is done by a connection of another thread while the
 * loop goes on appending. The loop then folds what came meanwhile, a little, and SQLite begins the
 * WAL anew with the next commit.
 */
#include "collectord/store-private.h"

#include <errno.h>
#include <stdlib.h>

#define PASSES 2 /* the second folds what came during the first */

struct store_fold {
        sqlite3 *db;
};

int store_fold_open(const char *folder, struct store_fold **ret)
{
        CLEANUP(store_fold) struct store_fold *fold = calloc(1, sizeof(*fold));
        int r;

        if (!fold)
                return -ENOMEM;
        r = store_open_database(folder, false, &fold->db);
        if (r < 0)
                return r;
        *ret = STEAL(fold);
        return 0;
}

struct store_fold *store_fold_close(struct store_fold *fold)
{
        if (!fold)
                return NULL;
        sqlite3_close(fold->db);
        free(fold);
        return NULL;
}

static int fold_back(sqlite3 *db)
{
        return store_errno(
                db, sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL));
}

int store_fold_run(struct store_fold *fold)
{
        int r = 0;

        for (int i = 0; i < PASSES && r == 0; i++)
                r = fold_back(fold->db);
        return r;
}

int store_fold_finish(struct store *store)
{
        return store->in_transaction ? -EBUSY : fold_back(store->db);
}

int store_wal_pages(const struct store *store)
{
        return store->wal_pages;
}

/* After each commit, in the place of SQLite's own folding. */
int store_on_commit(void *userdata, sqlite3 *db, const char *name, int pages)
{
        struct store *store = userdata;

        (void)name;
        store->wal_pages = pages;
        /* Nobody folds: a tool, or a thread that does not come to it. */
        if (pages >= STORE_WAL_PAGES_MAX)
                (void)fold_back(db);
        return SQLITE_OK;
}
