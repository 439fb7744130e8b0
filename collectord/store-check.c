/*
 * Which files there are, and each as a whole. Where no log lies beside a file and no collector
 * lives, it is opened as immutable: SQLite then makes no files of its own. Should the file change
 * all the same, it is read again without that.
 */
#include "collectord/store-check-private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRUCTURE_MAX 10 /* of SQLite's own complaints a file */
#define FILES_MAX 4096u  /* a store of two years has 30 */

static void check_done(struct check *check)
{
        for (size_t i = 0; i < check->n_files; i++)
                free(check->files[i].name);
        free(check->files);
        free(check->streams);
        free(check->column);
        free(check->path);
        block_decoder_free(check->decoder);
        sqlite3_close(check->db);
}
DEFINE_CLEANUP(check, struct check *, check_done)

/* ---- what is found ---- */

static bool is_changed(const struct check *check)
{
        struct stat now;

        return stat(check->path, &now) < 0 || now.st_size != check->before.st_size ||
               now.st_mtim.tv_sec != check->before.st_mtim.tv_sec ||
               now.st_mtim.tv_nsec != check->before.st_mtim.tv_nsec;
}

/* -ESTALE: it was read while somebody wrote, and may be whole. */
int check_tell(struct check *check, const struct store_damage *damage)
{
        if (check->immutable && is_changed(check))
                return -ESTALE;
        check->counts.damaged++;
        check->sink->damage(check->sink->userdata, damage);
        return 0;
}

static int tell_file(struct check *check, const char *what)
{
        struct store_damage damage = {.file = check->file->name, .what = what};

        return check_tell(check, &damage);
}

static void tell_unreadable(struct check *check, const char *what)
{
        check->counts.unreadable++;
        check->sink->unreadable(check->sink->userdata, check->file->name, what);
}

/* ---- a file ---- */

static uint32_t read_be32(const uint8_t *bytes)
{
        return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
               bytes[3];
}

/* Bytes that the file should have by its own first page; 0: that does not say. */
static uint64_t expected_size(const char *path)
{
        CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
        uint8_t first[100];
        uint32_t page;

        if (fd < 0 || pread(fd, first, sizeof(first), 0) != (ssize_t)sizeof(first) ||
                memcmp(first, "SQLite format 3", 16) != 0)
                return 0;
        page = (uint32_t)first[16] << 8 | first[17];
        return (uint64_t)(page == 1 ? 65536 : page) * read_be32(first + 28);
}

static int tell_unopened(struct check *check)
{
        uint64_t size = (uint64_t)check->before.st_size, expected = expected_size(check->path);
        char what[128];

        if (size > 0 && expected == 0)
                return tell_file(check, "is no database, or its first page is damaged");
        if (size >= expected && size > 0)
                return tell_file(check, "is damaged, nothing of it can be read");
        snprintf(what, sizeof(what), "is cut: %" PRIu64 " bytes of %" PRIu64, size, expected);
        return tell_file(check, size > 0 ? what : "is empty");
}

/* A line of SQLite's: "*** in database main ***" stands before the first, in the same text. */
static int tell_structure(struct check *check, const char *text)
{
        const char *line = text && strncmp(text, "***", 3) == 0 ? strchr(text, '\n') : NULL;

        if (text && strcmp(text, "ok") == 0)
                return 0;
        return tell_file(check, line ? line + 1 : text ? text : "is damaged");
}

/* SQLite's own look at pages, trees and indices. */
static int check_structure(struct check *check)
{
        CLEANUP(check_statement) sqlite3_stmt *statement = NULL;
        uint64_t damaged = check->counts.damaged;
        char sql[64];
        int code, r = 0;

        snprintf(sql, sizeof(sql), "PRAGMA quick_check(%d)", STRUCTURE_MAX);
        code = sqlite3_prepare_v2(check->db, sql, -1, &statement, NULL);
        if (code != SQLITE_OK)
                return store_errno(check->db, code);
        while (r == 0 && (code = sqlite3_step(statement)) == SQLITE_ROW)
                r = tell_structure(check, (const char *)sqlite3_column_text(statement, 0));
        if (r < 0 || code == SQLITE_DONE)
                return r;
        r = store_errno(check->db, code);
        if (r != -EBADMSG)
                return r;
        return check->counts.damaged > damaged ? 0 : tell_file(check, sqlite3_errmsg(check->db));
}

static int check_version(struct check *check)
{
        CLEANUP(str) char *message = NULL;
        int version = 1;
        int r = check->file->kind == CHECK_HOT
                        ? store_check_version(check->db, check->path, &version, &message)
                        : sealed_check_version(check->db, false);

        if (r == 0 && version == 0)
                return tell_file(check, "holds no store");
        return r == -EBADMSG ? tell_file(check, "is a database of another program") : r;
}

static int check_open(struct check *check)
{
        uint64_t damaged = check->counts.damaged;
        int r;

        r = check_version(check);
        if (r < 0 || check->counts.damaged > damaged)
                return r;
        r = check_structure(check);
        if (r < 0)
                return r;
        if (check->file->kind != CHECK_HOT)
                return check_table(check, "part");
        r = check_table(check, "block");
        return r < 0 ? r : check_table(check, "gap");
}

static int try_file(struct check *check)
{
        int r;

        if (stat(check->path, &check->before) < 0)
                return -errno;
        if (!S_ISREG(check->before.st_mode))
                return -EISDIR;
        if (access(check->path, R_OK) < 0)
                return -errno;
        r = check_open_database(check->path, check->immutable, &check->db);
        if (r == -EBADMSG || (r == -EIO && check->before.st_size == 0))
                return tell_unopened(check);
        if (r == 0)
                r = check_open(check);
        sqlite3_close(check->db);
        check->db = NULL;
        return r;
}

static const char *unreadable_reason(int r)
{
        switch (r) {
        case -EPROTONOSUPPORT:
                return "is of a version that this program does not know";
        case -EISDIR:
                return "is no file";
        case -EROFS:
                return "cannot be opened beside its log: no permission to write its index";
        case -EBUSY:
                return "is locked by another process";
        default:
                return strerror(-r);
        }
}

static int check_file(struct check *check)
{
        struct store_check_counts counts = check->counts;
        int r;

        free(check->path);
        if (asprintf(&check->path, "%s/%s", check->folder, check->file->name) < 0) {
                check->path = NULL;
                return -ENOMEM;
        }
        check->sink->progress(check->sink->userdata, check->file->name, &check->counts);
        check->immutable = check_is_still(check->folder, check->path);
        r = try_file(check);
        if (r == -ESTALE) {
                check->counts = counts;
                check->immutable = false;
                r = try_file(check);
        }
        if (r == -ENOMEM)
                return r;
        /* Files become too old, and are removed. */
        if (r == -ENOENT && check->file->kind != CHECK_HOT)
                return 0;
        if (r < 0)
                tell_unreadable(check, unreadable_reason(r));
        check->counts.files++;
        return 0;
}

/* ---- the folder ---- */

static int add_file(struct check *check, const char *name)
{
        struct check_file file = {.kind = CHECK_HOT};
        int r;

        if (strcmp(name, STORE_FILE) != 0 && !keeper_parse_name(name, &file.kind, &file.period))
                return 0;
        if (check->n_files == FILES_MAX)
                return -E2BIG;
        r = keeper_grow(
                &check->files, &check->files_allocated, check->n_files, sizeof(*check->files));
        if (r < 0)
                return r;
        file.name = strdup(name);
        if (!file.name)
                return -ENOMEM;
        check->files[check->n_files++] = file;
        return 0;
}

/* The hot log first: what leaves it while it is read is found in a file that comes later. */
static int compare_files(const void *a, const void *b)
{
        const struct check_file *x = a, *y = b;

        if ((x->kind == CHECK_HOT) != (y->kind == CHECK_HOT))
                return x->kind == CHECK_HOT ? -1 : 1;
        return x->kind != y->kind ? (x->kind > y->kind ? 1 : -1) : strcmp(x->name, y->name);
}

static void folder_cleanup(DIR **folder)
{
        if (*folder)
                closedir(*folder);
}

static bool has_hot_log(const struct check *check)
{
        for (size_t i = 0; i < check->n_files; i++)
                if (check->files[i].kind == CHECK_HOT)
                        return true;
        return false;
}

/* A hot log that is missing is listed, and told when its turn comes. */
static int list_files(struct check *check)
{
        CLEANUP(folder) DIR *folder = opendir(check->folder);
        struct dirent *entry;
        int r = 0;

        if (!folder)
                return -errno;
        while (r == 0 && (entry = readdir(folder)))
                r = add_file(check, entry->d_name);
        if (r == 0 && check->n_files == 0)
                r = -ENOENT;
        if (r == 0 && !has_hot_log(check))
                r = add_file(check, STORE_FILE);
        if (r == 0)
                qsort(check->files, check->n_files, sizeof(*check->files), compare_files);
        return r;
}

int store_check(const char *folder, const struct store_check_sink *sink,
        struct store_check_counts *ret_counts)
{
        struct check object = {.folder = folder, .sink = sink};
        CLEANUP(check) struct check *check = &object;
        int r;

        r = list_files(check);
        if (r == 0)
                r = block_decoder_new(&check->decoder);
        if (r < 0)
                return r;
        check->column = calloc(BLOCK_ROWS_MAX, sizeof(*check->column));
        if (!check->column)
                return -ENOMEM;
        /* A hot log that cannot be read is told when its turn comes. */
        if (check_load_streams(check) == -ENOMEM)
                return -ENOMEM;
        for (size_t i = 0; i < check->n_files && r == 0; i++) {
                check->file = &check->files[i];
                r = check_file(check);
        }
        if (r == 0)
                *ret_counts = check->counts;
        return r;
}
