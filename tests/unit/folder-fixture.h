#pragma once
/* Folders of tests. */

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FOLDER_MEMORY_MIN (256u << 20)

/* A new folder, in memory where there is enough of it: thousands of commits wait for a busy disk for
 * minutes, and their order is what is tested. @path has room for "/dev/shm/strata-NAME-XXXXXX". */
static inline bool folder_make(char *path, const char *name)
{
        struct statvfs memory;
        bool enough = statvfs("/dev/shm", &memory) == 0 && access("/dev/shm", W_OK) == 0 &&
                      memory.f_bavail * memory.f_frsize >= FOLDER_MEMORY_MIN;

        if (!path)
                return false; /* no memory for the world it is in */
        sprintf(path, "%s/strata-%s-XXXXXX", enough ? "/dev/shm" : "/tmp", name);
        return mkdtemp(path) != NULL;
}

static inline int folder_remove_entry(
        const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
        (void)stat, (void)type, (void)ftw;
        return remove(path);
}

/* @folder and all in it; links are not followed. */
static inline void folder_remove(const char *folder)
{
        (void)nftw(folder, folder_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
