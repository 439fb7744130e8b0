#pragma once
/*
 * The small files that sysfs has of one block device, below ROOT/sys/class/block/NAME. What they
 * say is made by vendors and drivers, and is cleaned before anybody sees it.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/block.h"

#define SYSFS_TEXT_MAX (BLOCK_NAME_MAX + 1) /* a file that we read holds one short line */

/* A device name in sysfs has '!' where /proc/diskstats has '/', as in "cciss/c0d0". */
void sysfs_swap(char *text, char from, char to);

/* "" as @file is the folder itself. @ret has PATH_MAX bytes. -EINVAL: no name of a device. */
int sysfs_path(char *ret, const char *root, const char *name, const char *file);

/* The first of @files (separated by blanks) that says something; "" if none does. -ENOMEM. */
int sysfs_text(const char *root, const char *name, const char *files, char **ret);
/* The same of one file whose line begins after @skip bytes of a header. */
int sysfs_text_behind(
        const char *root, const char *name, const char *file, size_t skip, char **ret);
/* The chosen one of "noop [deadline] cfq", or all of it when none stands in brackets. -ENOMEM. */
int sysfs_choice(const char *root, const char *name, const char *file, char **ret);

/* 0 when there is none. */
uint64_t sysfs_number(const char *root, const char *name, const char *file);
/* -errno when there is none. */
int sysfs_try_number(const char *root, const char *name, const char *file, uint64_t *ret);
bool sysfs_has(const char *root, const char *name, const char *file);

/* Where a link leads, as it stands there: @ret has PATH_MAX bytes. -errno. */
int sysfs_link(const char *root, const char *name, const char *file, char *ret);
/* The name of the folder that holds what the link leads to: of ".../sda/sda1" it is "sda". -errno.
 */
int sysfs_link_folder(const char *root, const char *name, const char *file, char *ret, size_t size);
