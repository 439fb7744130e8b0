#pragma once
/* The layers in OpenMetrics: the last complete minute of every cluster, docs/api.md. */

#include <stdint.h>
#include <stdio.h>

#include "collectord/store.h"

/* Lines with their # TYPE and # HELP, without # EOF. Errors as query_run. */
int layer_metrics_write(struct store_reader *reader, int64_t now_us, FILE *out);
