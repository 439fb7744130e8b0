#include "cli/window.h"

#include <stddef.h>

uint64_t window_choose_step(uint64_t span_us)
{
        static const uint64_t steps_s[] = {10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
                21600, 43200, 86400, 172800, 604800};
        const size_t n = sizeof(steps_s) / sizeof(steps_s[0]);
        size_t i = 0;

        while (i + 1 < n && span_us > steps_s[i] * 1000000 * WINDOW_ROWS)
                i++;
        return steps_s[i] * 1000000;
}
