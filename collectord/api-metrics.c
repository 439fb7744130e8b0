/* GET /metrics: the collector's own state and the ratios of the last complete minute. */
#include "collectord/api.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "lib/log.h"
#include "collectord/finding-metrics.h"
#include "collectord/layer-metrics.h"
#include "collectord/metrics.h"

static int write_metrics(struct store_reader *reader, const struct api_request *request, FILE *out)
{
        uint64_t bytes = 0;
        int r;

        metrics_write(request->metrics, out);
        r = store_read_size(reader, &bytes);
        if (r < 0)
                return r;
        fprintf(out,
                "# TYPE strata_collector_store_bytes gauge\n"
                "# HELP strata_collector_store_bytes Bytes of the store's files.\n"
                "strata_collector_store_bytes %" PRIu64 "\n"
                "# TYPE strata_collector_build info\n"
                "strata_collector_build_info{version=\"" STRATA_VERSION "\"} 1\n",
                bytes);
        /* Our own state is worth showing when the layers cannot be read. */
        r = layer_metrics_write(reader, request->now_us, out);
        if (r < 0)
                log_debug("no layer metrics: error %d", -r);
        r = finding_metrics_write(reader, request->now_us, out);
        if (r < 0)
                log_debug("no metrics of findings: error %d", -r);
        fputs("# EOF\n", out);
        return 0;
}

int api_metrics(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        CLEANUP(str) char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        int r;

        if (!out)
                return -ENOMEM;
        r = write_metrics(reader, request, out);
        if (fclose(out) != 0 && r == 0)
                r = -ENOMEM;
        if (r < 0)
                return r;
        r = api_text(response, 200, STEAL(text), size);
        response->content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        return r;
}
