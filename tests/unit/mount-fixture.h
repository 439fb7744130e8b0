#pragma once
/* Disks of tests, mounted in a namespace of their own; needs _GNU_SOURCE. */

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mount.h>

/* Whether this process may mount, without others seeing it; made at the first call. In a chroot "/"
 * is no mount (EINVAL): then what is mounted may show outside, until it is unmounted. */
static inline bool mount_own_namespace(void)
{
        static int made = -1;

        if (made < 0)
                made = unshare(CLONE_NEWNS) == 0 &&
                       (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 || errno == EINVAL);
        return made > 0;
}
