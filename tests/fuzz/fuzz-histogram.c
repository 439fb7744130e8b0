/*
 * The fuzzer of the reader of "perf histogram dump". The input is copied to memory of just its
 * size, so that a read past its end is seen.
 */

#include <stdlib.h>
#include <string.h>

#include "agentd/perf-histogram.h"
#include "lib/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        CLEANUP(mem) char *text = malloc(size + !size);
        static uint64_t cells[METRIC_CELL_COUNT];

        if (!text)
                abort();
        memcpy(text, data, size);
        (void)perf_histogram_parse(text, size, cells);
        return 0;
}
