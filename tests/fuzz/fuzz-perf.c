/*
 * The fuzzer of the reader of "perf dump". The input is copied to memory of just its size, so that
 * a read past its end is seen. What is accepted must be accepted again with blanks behind it, and
 * with the same values.
 */

#include <stdlib.h>
#include <string.h>

#include "agentd/perf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
        if (!condition)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        CLEANUP(mem) char *text = malloc(size + 2);
        static struct perf_values values, again;
        static struct perf *perf; /* read-only once made */
        size_t n;

        check(text && (perf || perf_new(&perf) == 0));
        perf_get_metrics(perf, &n);
        if (perf_parse(perf, (const char *)data, size, &values) < 0)
                return 0;
        memcpy(text, data, size);
        memcpy(text + size, "\n", 2);
        check(perf_parse(perf, text, size + 2, &again) == 0);
        check(memcmp(values.present, again.present, sizeof(values.present)) == 0);
        for (size_t i = 0; i < n; i++)
                check(!values.present[i] || values.value[i] == again.value[i]);
        return 0;
}
