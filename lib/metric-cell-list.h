/*
 * The rows of the OSDs' histograms, one a cell, made of the names of the four histograms. Included by
 * lib/metric-list.h, whose numbers go on from METRIC_CELL_FIRST: see lib/metric.h. No #pragma once.
 */
#define CELL(histogram, symbol, name, latency, size, what) \
        METRIC(4096 + (histogram) * 320 + ((latency) - 1) * 16 + (size) - 1, symbol##_SIZE_##size##_LATENCY_##latency, \
                OSD_HISTOGRAM, OSD, name "_size_" #size "_latency_" #latency, COUNTER, OPERATIONS, 64, \
                what " by request size and latency (docs/osd-counters.md has the bounds)")
#define SIZES(h, s, n, l, w) \
        CELL(h, s, n, l, 1, w) CELL(h, s, n, l, 2, w) CELL(h, s, n, l, 3, w) CELL(h, s, n, l, 4, w) \
        CELL(h, s, n, l, 5, w) CELL(h, s, n, l, 6, w) CELL(h, s, n, l, 7, w) CELL(h, s, n, l, 8, w) \
        CELL(h, s, n, l, 9, w) CELL(h, s, n, l, 10, w) CELL(h, s, n, l, 11, w) CELL(h, s, n, l, 12, w) \
        CELL(h, s, n, l, 13, w) CELL(h, s, n, l, 14, w) CELL(h, s, n, l, 15, w) CELL(h, s, n, l, 16, w)
#define LATENCIES(h, s, n, w) \
        SIZES(h, s, n, 1, w) SIZES(h, s, n, 2, w) SIZES(h, s, n, 3, w) SIZES(h, s, n, 4, w) \
        SIZES(h, s, n, 5, w) SIZES(h, s, n, 6, w) SIZES(h, s, n, 7, w) SIZES(h, s, n, 8, w) \
        SIZES(h, s, n, 9, w) SIZES(h, s, n, 10, w) SIZES(h, s, n, 11, w) SIZES(h, s, n, 12, w) \
        SIZES(h, s, n, 13, w) SIZES(h, s, n, 14, w) SIZES(h, s, n, 15, w) SIZES(h, s, n, 16, w) \
        SIZES(h, s, n, 17, w) SIZES(h, s, n, 18, w) SIZES(h, s, n, 19, w) SIZES(h, s, n, 20, w)
LATENCIES(0, CELL_R_OUT, "op_r_out", "Client reads")
LATENCIES(1, CELL_W_IN, "op_w_in", "Client writes")
LATENCIES(2, CELL_RW_IN, "op_rw_in", "Client read-modify-writes, bytes written,")
LATENCIES(3, CELL_RW_OUT, "op_rw_out", "Client read-modify-writes, bytes read,")
#undef LATENCIES
#undef SIZES
#undef CELL
