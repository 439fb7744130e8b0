/* Stands in for the calls whose file is not there yet. */
#include "collectord/api.h"

#define MISSING(name)                                                                              \
        int api_##name(struct store_reader *reader, const struct api_request *request,             \
                struct api_response *response)                                                     \
        {                                                                                          \
                (void)reader;                                                                      \
                return api_problem(request, response, 503, "this call is not there yet");          \
        }

#ifndef HAVE_API_SERIES_C
MISSING(series)
#endif
#ifndef HAVE_API_RATIO_C
MISSING(ratio)
#endif
#ifndef HAVE_API_LADDER_C
MISSING(ladder)
#endif
#ifndef HAVE_API_LISTS_C
MISSING(clusters)
MISSING(osds)
MISSING(devices)
MISSING(pools)
#endif
#ifndef HAVE_API_AGENTS_C
MISSING(agents)
#endif
#ifndef HAVE_API_PLANS_C
MISSING(plans)
MISSING(plan)
#endif
#ifndef HAVE_API_METRICS_C
MISSING(metrics)
#endif
