#pragma once
/*
 * Finds the admin sockets of OSDs: "ceph-osd.3.asok", "NAME-osd.3.asok" of a cluster with another
 * name, and the same one folder deeper, where containers have a folder for each cluster's fsid.
 */

#include <stddef.h>
#include <stdint.h>

#define OSD_FIND_MAX 1024u /* OSDs of one node */

struct osd_found {
        char *path;
        uint32_t id;
        uint64_t device, inode, changed_ns;
};

/*
 * @folders is a list with colons. What has such a name is found, be it a socket or not; what is
 * reached on two ways is found once. Ascending by id and path. -EACCES and the like: a folder can
 * not be read (*ret is what the others hold, and to be freed). -ENOMEM may leave *ret as it was. A
 * folder that is missing is empty.
 */
int osd_find(const char *folders, struct osd_found **ret, size_t *ret_count);
void osd_found_free(struct osd_found *found, size_t count);
