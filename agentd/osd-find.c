#include "agentd/osd-find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/cleanup.h"

#define ENTRIES_MAX 65536u /* of one folder */

struct find {
        struct osd_found *items;
        size_t count;
};

/* "ceph-osd.3.asok" is 3. */
static int name_parse(const char *name, uint32_t *ret_id)
{
        const char *osd = strstr(name, "osd.");
        unsigned long id;
        char *end;

        if (!osd || (osd != name && osd[-1] != '-') || osd[4] < '0' || osd[4] > '9')
                return -EINVAL;
        errno = 0;
        id = strtoul(osd + 4, &end, 10);
        if (errno != 0 || id > INT32_MAX || strcmp(end, ".asok") != 0)
                return -EINVAL;
        *ret_id = (uint32_t)id;
        return 0;
}

static int path_add(struct find *find, const char *folder, const char *name, uint32_t id,
        const struct stat *status)
{
        struct osd_found *items;
        char path[PATH_MAX];
        int n;

        for (size_t i = 0; i < find->count; i++)
                if (find->items[i].device == status->st_dev &&
                        find->items[i].inode == status->st_ino)
                        return 0;
        n = snprintf(path, sizeof(path), "%s/%s", folder, name);
        if (find->count >= OSD_FIND_MAX || n >= (int)sizeof(path))
                return 0;
        items = reallocarray(find->items, find->count + 1, sizeof(*items));
        if (!items)
                return -ENOMEM;
        find->items = items;
        items[find->count] = (struct osd_found){.path = strdup(path),
                .id = id,
                .device = status->st_dev,
                .inode = status->st_ino,
                .changed_ns = (uint64_t)status->st_ctim.tv_sec * 1000000000u +
                              (uint64_t)status->st_ctim.tv_nsec};
        if (!items[find->count].path)
                return -ENOMEM;
        find->count++;
        return 0;
}

static int folder_search(struct find *find, const char *path, bool deeper);

static int entry_search(
        struct find *find, DIR *folder, const char *path, const char *name, bool deeper)
{
        char subfolder[PATH_MAX];
        struct stat status;
        uint32_t id;

        if (name[0] == '.' || fstatat(dirfd(folder), name, &status, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        if (S_ISDIR(status.st_mode)) {
                if (!deeper || snprintf(subfolder, sizeof(subfolder), "%s/%s", path, name) >=
                                       (int)sizeof(subfolder))
                        return 0;
                return folder_search(find, subfolder, false);
        }
        return name_parse(name, &id) == 0 ? path_add(find, path, name, id, &status) : 0;
}

static int folder_search(struct find *find, const char *path, bool deeper)
{
        DIR *folder = opendir(path);
        struct dirent *entry;
        int r, result = 0;

        if (!folder)
                return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
        for (unsigned i = 0; i < ENTRIES_MAX && (entry = readdir(folder)); i++) {
                r = entry_search(find, folder, path, entry->d_name, deeper);
                if (r < 0)
                        result = r;
                if (r == -ENOMEM)
                        break;
        }
        closedir(folder);
        return result;
}

static int compare_found(const void *a, const void *b)
{
        const struct osd_found *x = a, *y = b;

        if (x->id != y->id)
                return x->id < y->id ? -1 : 1;
        return strcmp(x->path, y->path);
}

int osd_find(const char *folders, struct osd_found **ret, size_t *ret_count)
{
        CLEANUP(str) char *copy = strdup(folders);
        struct find find = {0};
        char *rest = copy, *folder;
        int r, result = 0;

        if (!copy)
                return -ENOMEM;
        while ((folder = strsep(&rest, ":"))) {
                r = folder[0] ? folder_search(&find, folder, true) : 0;
                if (r < 0)
                        result = r;
        }
        if (find.count > 1)
                qsort(find.items, find.count, sizeof(*find.items), compare_found);
        *ret = find.items;
        *ret_count = find.count;
        return result;
}

void osd_found_free(struct osd_found *found, size_t count)
{
        for (size_t i = 0; i < count; i++)
                free(found[i].path);
        free(found);
}
