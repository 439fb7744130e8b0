#include "collectord/metrics.h"

#include <inttypes.h>

#define PREFIX "strata_collector_"

enum kind { COUNTER, TIME, GAUGE };

static void write_row(FILE *out, const char *name, enum kind kind, const char *help, uint64_t value)
{
        fprintf(out, "# TYPE " PREFIX "%s %s\n# HELP " PREFIX "%s %s.\n", name,
                kind == GAUGE ? "gauge" : "counter", name, help);
        if (kind == TIME)
                fprintf(out, PREFIX "%s_total %" PRIu64 ".%06" PRIu64 "\n", name, value / 1000000,
                        value % 1000000);
        else
                fprintf(out, PREFIX "%s%s %" PRIu64 "\n", name, kind == GAUGE ? "" : "_total",
                        value);
}

void metrics_write(struct metrics *metrics, FILE *out)
{
        static const char *const reasons[] = {
#define REASON(name) #name,
                METRICS_REASONS(REASON)
#undef REASON
        };

#define ROW(field, kind, help) write_row(out, #field, kind, help, metrics_get(metrics, field));
        METRICS_ROWS(ROW)
#undef ROW
        fputs("# TYPE " PREFIX "rejected counter\n# HELP " PREFIX "rejected Blocks refused.\n",
                out);
        for (size_t i = 0; i < METRICS_N_REASONS_; i++)
                fprintf(out, PREFIX "rejected_total{reason=\"%s\"} %" PRIu64 "\n", reasons[i],
                        metrics_get(metrics, rejected[i]));
}
