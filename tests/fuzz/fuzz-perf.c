/*
 * The fuzzer of the reader of "perf dump". The input is copied to memory of just its size, so that
 * a read past its end is seen. What is accepted must be accepted again with blanks behind it, and
 * with the same values, by the places of the first time too. Then the places are those of the
 * longest dump before, which need not fit.
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
        CLEANUP(mem) char *text = malloc(size + 2), *exact = malloc(size + !size);
        static struct perf_places longest;
        struct perf_places places = {0}, copy = longest;
        static struct perf_values values, again;
        static struct perf *perf; /* read-only once made */
        size_t n;

        check(text && exact && (perf || perf_new(&perf) == 0));
        perf_get_metrics(perf, &n);
        memcpy(exact, data, size);
        (void)perf_parse_again(perf, exact, size, &copy, &again);
        if (perf_parse(perf, (const char *)data, size, &values) < 0)
                return 0;
        memcpy(text, data, size);
        memcpy(text + size, "\n", 2);
        check(perf_parse(perf, text, size + 2, &again) == 0);
        check(memcmp(values.present, again.present, sizeof(values.present)) == 0);
        for (size_t i = 0; i < n; i++)
                check(!values.present[i] || values.value[i] == again.value[i]);
        check(perf_parse_again(perf, text, size, &places, &again) == 0);
        check(perf_parse_again(perf, text, size, &places, &again) == 0);
        check(memcmp(values.present, again.present, sizeof(values.present)) == 0);
        if (places.n > longest.n)
                longest = places;
        return 0;
}
