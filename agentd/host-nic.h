#pragma once
/*
 * The network interfaces of /proc/net/dev, the loopback left out. Their numbers stand in the order
 * of the metrics from METRIC_NIC_RX_BYTES on.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/cleanup.h"

#define HOST_NIC_METRICS 6u   /* received bytes, packets, dropped; sent bytes, packets, dropped */
#define HOST_NICS_MAX 4096u   /* each container may have one */
#define HOST_NIC_NAME_MAX 16u /* IFNAMSIZ */

struct host_nic {
        char name[HOST_NIC_NAME_MAX];
        uint32_t index;    /* ifindex: another number is another interface of the same name */
        uint32_t restarts; /* some drivers begin at zero again */
        uint32_t present, broken, broken_told; /* bit i: values[i] */
        uint64_t values[HOST_NIC_METRICS];
        uint64_t speed; /* Mbit/s; 0 while the link is down, and for what has none */
};

struct host_nics;
int host_nics_new(const char *root, struct host_nics **ret);
struct host_nics *host_nics_free(struct host_nics *nics);
DEFINE_CLEANUP(host_nics, struct host_nics *, host_nics_free)

/* Takes the file's text. A speed that is not known is asked for only when this call @may_wait: the
 * kernel takes a lock for it. *ret_changed: names, instances or what is present are not as before.
 * The array stays where it is. */
void host_nics_read(struct host_nics *nics, const char *text, bool may_wait, struct host_nic **ret,
        size_t *ret_n, bool *ret_changed);
