#pragma once
/*
 * Reads the answer to "perf histogram dump" of an OSD: in the logger "osd", histograms with two
 * axes (latency, request size) and the operations of each pair of buckets:
 *
 *     {"axes":[{"name":"Latency (usec)","min":0,"quant_size":100000,"buckets":32,
 *      "scale_type":"log2","ranges":[{"max":-1},...]},{"name":"Request size (bytes)",...}],
 *      "values":[[0,0,...],...]}
 *
 * One pass, nothing allocated.
 */

#include <stddef.h>
#include <stdint.h>

#include "lib/metric.h"

/*
 * Adds what the dump has to cells by number of their metric, less METRIC_CELL_FIRST; a histogram
 * that is missing stays 0. -EBADMSG: not such a dump. -EPROTONOSUPPORT: an axis with another unit,
 * begin, scale or number of buckets than in lib/metric.h: its cells would mean something else.
 */
int perf_histogram_parse(const char *text, size_t size, uint64_t ret_cells[METRIC_CELL_COUNT]);
