#pragma once
/* What the query calls have in common: parameters, the cluster, the live edge, the problems. */

#include "collectord/api.h"
#include "collectord/query.h"
#include "collectord/ratio.h"
#include "collectord/text.h"

/* Parsers return 0, 1 when the response is a problem document already, or -errno. */

/* The cluster of the request; without the parameter the only one. */
int api_query_cluster(const struct query *query, const struct api_request *request,
        struct api_response *response, uint32_t *ret);
int api_query_layer(const struct api_request *request, struct api_response *response,
        const char *name, const char *fallback, enum layer *ret);
/* Leaves out the windows that the live sources have not delivered yet. Zero windows may be left. */
void api_query_trim(const struct query *query, uint32_t cluster, unsigned sources,
        const struct api_window *window, struct rung_windows *ret);

/* The fsid as it stands in answers: "none" for the hosts without a cluster. */
const char *api_query_fsid(const struct query *query, uint32_t cluster, char text[ID_TEXT_MAX]);
/* A problem document for errors that a query may have; others are returned. */
int api_query_problem(const struct api_request *request, struct api_response *response, int error);

/* When window @i begins. */
int64_t api_query_window(const struct rung_windows *windows, uint32_t i);
/* "t":[...] */
void api_query_times(struct text *text, const struct rung_windows *windows);
/* ,"from":T,"to":T,"step":S */
void api_query_span(struct text *text, const struct api_window *window);
/* The object of one finding, as in GET /findings. */
void api_query_finding(struct text *text, const struct store_finding *finding);
