#pragma once
/*
 * The route table: which method and path does what, for whom, with which parameters. It is the
 * one place that knows; docs/openapi.json is tested against it.
 */

#include <stddef.h>

#include "collectord/api.h"

enum route_action {
        ROUTE_READ, /* @read on a worker thread */
        ROUTE_PUT_BLOCKS,
        ROUTE_PUT_FACTS,
        ROUTE_PUT_PLAN,
        ROUTE_DELETE_PLAN,
        ROUTE_OPENAPI,
        ROUTE_FILE, /* of the dashboard */
};

struct route {
        const char *method;     /* "GET" serves HEAD too */
        const char *path;       /* "{host}" stands for one segment */
        const char *parameters; /* names that a query may have, separated by spaces */
        unsigned roles;         /* bits 1 << enum api_role */
        enum route_action action;
        api_read_function read;
};

const struct route *route_all(size_t *ret_count);

/*
 * -ENOENT: no such path. -EOPNOTSUPP: the path does not have the method; *ret_allow is the value of
 * the Allow header (static). Paths outside /api/ and /metrics are the dashboard's.
 */
int route_find(
        const char *method, const char *path, const struct route **ret, const char **ret_allow);

/* Checks the role and the names of the parameters. 1: refused, the response is a problem document.
 */
int route_check(const struct route *route, const struct api_request *request,
        struct api_response *response);
