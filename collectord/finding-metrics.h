#pragma once
/* The open findings and the verdicts, for /metrics. */

#include <stdint.h>
#include <stdio.h>

#include "collectord/store.h"

/* A verdict that is older is not shown: nobody judges this cluster any more. */
#define FINDING_VERDICT_AGE_US INT64_C(300000000)

int finding_metrics_write(struct store_reader *reader, int64_t now_us, FILE *out);
