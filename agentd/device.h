#pragma once
/*
 * One block device as sysfs shows it: what it is, what it stands on, and how to know it again. Read
 * when a device appears, not at every sample: a device costs about twelve small files.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/facts.h"

#define DEVICE_PARENTS_MAX FACTS_PARENTS_MAX

struct device {
        struct facts_device facts; /* strings are never NULL */
        uint64_t sequence; /* diskseq: another number is another device; 0 before Linux 5.15 */
};

/*
 * Reads the device @name of the tree at @root ("" for this machine). What sysfs does not tell is
 * empty or guessed from the name; even a device that sysfs does not have is described. -ENOMEM.
 */
int device_read(
        const char *root, const char *name, uint32_t major, uint32_t minor, struct device *ret);
void device_done(struct device *device);
static inline void device_cleanup(struct device *device)
{
        device_done(device);
}

/* Only its size in bytes: one file. -errno when sysfs does not tell. */
int device_read_size(const char *root, const char *name, uint64_t *ret);

bool device_equal(const struct device *a, const struct device *b);
/* Something else answers to the name by now, as diskseq tells: one file. */
bool device_is_another(const char *root, const struct device *device);

/* Deep copy for a facts object that owns its strings. -ENOMEM. */
int device_copy_facts(const struct device *device, struct facts_device *ret);
