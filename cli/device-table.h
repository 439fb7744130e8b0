#pragma once
/* The block devices of a "series" answer, by=device: a line each, the busiest first. */

#include <stddef.h>

#include <jansson.h>

#include "cli/output.h"

/* What to ask for; a metric that is missing in the answer is shown as "-". */
#define DEVICE_TABLE_METRICS                                                                       \
        "read_ops,write_ops,read_bytes,write_bytes,read_await,write_await,queue,utilisation"

/* @series is the answer, @devices the list of devices, which tells the OSDs. At most @shown lines.
 * -ENOMEM. */
int device_table_print(
        const json_t *series, const json_t *devices, size_t shown, struct output *output);
