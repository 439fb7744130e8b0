#include "collectord/web-files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MAX 256u
#define BYTES_MAX (32u << 20)
#define DEPTH_MAX 4u

struct web_files {
        struct web_file files[FILES_MAX];
        size_t n;
        size_t bytes;
};

static const char *content_type(const char *name)
{
        static const struct {
                const char *suffix, *type;
        } types[] = {
                {".html", "text/html; charset=utf-8"},
                {".js", "text/javascript; charset=utf-8"},
                {".mjs", "text/javascript; charset=utf-8"},
                {".css", "text/css; charset=utf-8"},
                {".json", "application/json"},
                {".svg", "image/svg+xml"},
                {".png", "image/png"},
                {".ico", "image/x-icon"},
                {".woff2", "font/woff2"},
                {".txt", "text/plain; charset=utf-8"},
        };
        size_t length = strlen(name);

        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
                size_t n = strlen(types[i].suffix);

                if (length > n && strcmp(name + length - n, types[i].suffix) == 0)
                        return types[i].type;
        }
        return NULL;
}

/* FNV-1a: tells versions of our own files apart, guards nothing. */
static char *make_etag(const char *content, size_t size)
{
        uint64_t hash = 14695981039346656037ull;
        char *text;

        for (size_t i = 0; i < size; i++)
                hash = (hash ^ (uint8_t)content[i]) * 1099511628211ull;
        return asprintf(&text, "\"%016" PRIx64 "\"", hash) < 0 ? NULL : text;
}

static int read_content(int fd, size_t size, char **ret)
{
        CLEANUP(str) char *content = malloc(size + 1);
        size_t have = 0;

        if (!content)
                return -ENOMEM;
        while (have < size) {
                ssize_t n = read(fd, content + have, size - have);

                if (n < 0)
                        return -errno;
                if (n == 0)
                        return -EIO;
                have += (size_t)n;
        }
        content[size] = '\0';
        *ret = STEAL(content);
        return 0;
}

static int add_file(struct web_files *files, int fd, size_t size, const char *path)
{
        struct web_file *file = &files->files[files->n];
        CLEANUP(str) char *content = NULL, *name = NULL, *etag = NULL;
        int r;

        if (!content_type(path))
                return 0; /* not of the dashboard */
        if (files->n == FILES_MAX || size > BYTES_MAX - files->bytes)
                return -E2BIG;
        r = read_content(fd, size, &content);
        if (r < 0)
                return r;
        name = strdup(path);
        etag = make_etag(content, size);
        if (!name || !etag)
                return -ENOMEM;
        *file = (struct web_file){
                .path = STEAL(name),
                .content_type = content_type(path),
                .etag = STEAL(etag),
                .content = STEAL(content),
                .size = size,
        };
        files->n++;
        files->bytes += size;
        return 0;
}

static int add_folder(struct web_files *files, int folder_fd, const char *prefix, unsigned depth);

static int add_entry(struct web_files *files, int folder_fd, const char *prefix, const char *name,
        unsigned depth)
{
        CLEANUP(str) char *path = NULL;
        CLEANUP(fd) int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat status;

        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (asprintf(&path, "%s/%s", prefix, name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        if (S_ISREG(status.st_mode))
                return add_file(files, fd, (size_t)status.st_size, path);
        if (S_ISDIR(status.st_mode) && depth < DEPTH_MAX)
                return add_folder(files, fd, path, depth + 1);
        return 0;
}

static int add_folder(struct web_files *files, int folder_fd, const char *prefix, unsigned depth)
{
        CLEANUP(fd) int fd = fcntl(folder_fd, F_DUPFD_CLOEXEC, 0);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;
        int r = 0;

        if (!folder)
                return -errno;
        (void)STEAL_LEAVING(fd, -1); /* the folder's */
        while (r == 0 && (entry = readdir(folder)))
                if (entry->d_name[0] != '.') /* no hidden file, no "." or ".." */
                        r = add_entry(files, folder_fd, prefix, entry->d_name, depth);
        closedir(folder);
        return r;
}

int web_files_open(const char *folder, struct web_files **ret, char **ret_message)
{
        CLEANUP(web_files) struct web_files *files = calloc(1, sizeof(*files));
        CLEANUP(fd) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = 0;

        *ret_message = NULL;
        if (!files)
                return -ENOMEM;
        if (fd < 0 && errno != ENOENT)
                r = -errno;
        else if (fd >= 0)
                r = add_folder(files, fd, "", 0);
        if (r < 0) {
                if (asprintf(ret_message, "%s: %s", folder, strerror(-r)) < 0)
                        *ret_message = NULL;
                return r;
        }
        *ret = STEAL(files);
        return 0;
}

struct web_files *web_files_free(struct web_files *files)
{
        if (!files)
                return NULL;
        for (size_t i = 0; i < files->n; i++) {
                free((char *)files->files[i].path);
                free((char *)files->files[i].etag);
                free((char *)files->files[i].content);
        }
        free(files);
        return NULL;
}

const struct web_file *web_files_find(const struct web_files *files, const char *path)
{
        if (strcmp(path, "/") == 0)
                path = "/index.html";
        for (size_t i = 0; i < files->n; i++)
                if (strcmp(files->files[i].path, path) == 0)
                        return &files->files[i];
        return NULL;
}
