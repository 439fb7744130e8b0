#pragma once
/* Removing what a test made. */

#include <ftw.h>
#include <stdio.h>

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
