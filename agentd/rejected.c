#include "agentd/rejected.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/cleanup.h"
#include "lib/metric.h"

struct census {
        unsigned files;
        uint64_t bytes;
        char oldest[NAME_MAX + 1];
        struct timespec oldest_time;
};

static void dir_cleanup(DIR **dir)
{
        if (*dir)
                closedir(*dir);
}

static bool is_older(const struct timespec *a, const struct timespec *b)
{
        return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static int take_census(const char *folder, struct census *ret)
{
        CLEANUP(dir) DIR *dir = opendir(folder);
        struct dirent *entry;
        struct stat status;

        if (!dir)
                return -errno;
        *ret = (struct census){0};
        while ((entry = readdir(dir))) {
                if (fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
                        !S_ISREG(status.st_mode))
                        continue;
                if (ret->files == 0 || is_older(&status.st_mtim, &ret->oldest_time)) {
                        snprintf(ret->oldest, sizeof(ret->oldest), "%s", entry->d_name);
                        ret->oldest_time = status.st_mtim;
                }
                ret->files++;
                ret->bytes += (uint64_t)status.st_size;
        }
        return 0;
}

static int make_room(const char *folder, size_t size)
{
        struct census census = {0};
        int r;

        while ((r = take_census(folder, &census)) == 0 && census.files > 0 &&
                (census.files >= REJECTED_FILES_MAX || census.bytes + size > REJECTED_BYTES_MAX)) {
                CLEANUP(str) char *path = NULL;

                if (asprintf(&path, "%s/%s", folder, census.oldest) < 0) {
                        path = NULL;
                        return -ENOMEM;
                }
                if (unlink(path) < 0)
                        return -errno;
        }
        return r;
}

int rejected_store(
        const char *folder, const struct block_header *header, const uint8_t *bytes, size_t size)
{
        const char *source = source_name((enum source_id)header->source);
        CLEANUP(str) char *path = NULL;
        CLEANUP(fd) int fd = -1;
        ssize_t n;
        int r;

        if (mkdir(folder, 0700) < 0 && errno != EEXIST)
                return -errno;
        r = make_room(folder, size);
        if (r < 0)
                return r;
        if (asprintf(&path, "%s/%s-%" PRIu64 ".block", folder, source ? source : "unknown",
                    header->sequence) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        n = write(fd, bytes, size);
        if (n == (ssize_t)size)
                return 0;
        r = n < 0 ? -errno : -ENOSPC;
        (void)unlink(path);
        return r;
}
