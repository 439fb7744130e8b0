#pragma once
/*
 * The files of /proc that tell of the host as a whole: their descriptors stay open, their text is
 * read into one buffer, one after the other.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "lib/metric.h"

#define HOST_METRIC_FIRST METRIC_HOST_CPU_USER
#define HOST_METRICS (METRIC_HOST_PRESSURE_MEMORY_FULL - HOST_METRIC_FIRST + 1u)

enum host_file {
        HOST_FILE_STAT,
        HOST_FILE_MEMINFO,
        HOST_FILE_NET_DEV,
        HOST_FILE_PRESSURE_CPU, /* pressure: absent without CONFIG_PSI, or with psi=0 */
        HOST_FILE_PRESSURE_IO,
        HOST_FILE_PRESSURE_MEMORY,
        HOST_FILE_MAX_,
};

/* Bit i stands for the metric HOST_METRIC_FIRST + i: it was read, or should have been but is no
 * number from 0 to 2^64. Neither: this kernel does not have it. */
struct host_values {
        uint64_t value[HOST_METRICS];
        uint32_t present, broken;
};

struct host_files;
/* -ENOENT when there is not even /proc/stat below @root. */
int host_files_open(const char *root, struct host_files **ret);
struct host_files *host_files_close(struct host_files *files);
DEFINE_CLEANUP(host_files, struct host_files *, host_files_close)

/* The text, valid until the next call; "" when this kernel has no such file. *ret_cut: it is empty
 * or does not end with a line. -errno. */
int host_file_read(struct host_files *files, enum host_file file, const char **ret, bool *ret_cut);
/* All but the interfaces. A file that cannot be read makes its values broken. */
void host_values_read(struct host_files *files, struct host_values *ret);
