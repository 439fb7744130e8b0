#pragma once
/* What store-check.c (files) and store-check-rows.c (their tables) share. */

#include <sys/stat.h>

#include "collectord/store-check.h"
#include "collectord/store-keeper.h"

#define CHECK_HOT SEALED_KINDS /* the kind of the hot log */

struct known_stream {
        int64_t id;
        struct id host;
        enum source_id source;
};

struct check_file {
        char *name;
        enum sealed_tier kind;
        int64_t period;
};

struct check {
        const char *folder;
        const struct store_check_sink *sink;
        struct store_check_counts counts;
        /* By id; not known when the hot log cannot be read. */
        struct known_stream *streams;
        size_t n_streams, streams_allocated;
        bool streams_known;
        uint32_t reloads;
        struct check_file *files;
        size_t n_files, files_allocated;
        struct block_decoder *decoder;
        uint64_t *column;
        /* The file that is read. */
        const struct check_file *file;
        char *path;
        sqlite3 *db;
        bool immutable;
        struct stat before;
};

static inline void check_statement_cleanup(sqlite3_stmt **statement)
{
        sqlite3_finalize(*statement);
}

/* -ESTALE: the file was read while somebody wrote, and may be whole: nothing was told. */
int check_tell(struct check *check, const struct store_damage *damage);
/* No collector lives, and no log lies beside the file: it may be opened as immutable. */
bool check_is_still(const char *folder, const char *path);
/* Only to read. Errors as in store.h. */
int check_open_database(const char *path, bool immutable, sqlite3 **ret);
/* The streams, from the hot log. */
int check_load_streams(struct check *check);
/* NULL: there is no such stream, now that the hot log was read again. */
const struct known_stream *check_find_stream(struct check *check, int64_t id);
/* All rows of a table of the file. What is damaged is told; errors are -ESTALE, -ENOMEM, and those
 * that say nothing of the rows. */
int check_table(struct check *check, const char *table);
