#pragma once
/*
 * The API without HTTP: a request in, a response out. server.c turns microhttpd's callbacks into
 * these; tests call them directly. A handler is one row of the route table in api.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "lib/id.h"
#include "collectord/store.h"

enum api_role {
        API_ROLE_NONE = 0, /* no token or an unknown one */
        API_ROLE_AGENT,    /* bound to caller.host */
        API_ROLE_READER,
        API_ROLE_OPERATOR,
        API_ROLE_LOCAL, /* loopback without tokens: may do everything */
};

struct api_parameter {
        const char *name, *value; /* decoded, UTF-8 checked */
};

struct api_request {
        const char *method, *path;
        const struct api_parameter *parameters;
        size_t n_parameters;
        const struct api_parameter *headers; /* those the API uses, lower-case names */
        size_t n_headers;
        const uint8_t *body;
        size_t body_size;
        enum api_role role;
        struct id host;       /* of an agent's token */
        int64_t now_us;       /* Unix time at receipt */
        uint64_t deadline_us; /* CLOCK_MONOTONIC */
};

/* Filled by a handler; body belongs to the response, freed by api_response_done. */
struct api_response {
        unsigned status;
        const char *content_type; /* static string */
        char *body;
        size_t body_size;
        const char *header_name[4], *header_value[4]; /* extra, e.g. Retry-After; static strings */
};

void api_response_done(struct api_response *response);

/* The value of a query parameter, or NULL. */
const char *api_parameter(const struct api_request *request, const char *name);

/* Fills a problem document (RFC 9457) and returns 0, so that handlers end with `return
 * api_problem(...)`. */
__attribute__((format(printf, 4, 5))) int api_problem(const struct api_request *request,
        struct api_response *response, unsigned status, const char *format, ...);
/* The problem document for an error of the store or of a query: 503, 507, 500 with a sentence. */
int api_problem_errno(const struct api_request *request, struct api_response *response, int error);
/* Takes the reference @json. */
int api_json(struct api_response *response, unsigned status, json_t *json);
/* Takes @text (heap); content type application/json. */
int api_text(struct api_response *response, unsigned status, char *text, size_t size);

/*
 * Time and step parameters as docs/api.md, "Windows". On bad input the response is a problem
 * document and 1 is returned.
 */
struct api_window {
        int64_t from_us, to_us; /* to_us - from_us is a multiple of step_us */
        uint64_t step_us;
        uint32_t n;
};
#define API_WINDOWS_MAX 11000u
int api_parse_window(const struct api_request *request, struct api_response *response,
        const char *default_from, struct api_window *ret);

/* A read-only handler: runs on a worker thread with its own reader. 0 (response filled) or -errno.
 */
typedef int (*api_read_function)(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);

/* Query handlers, collectord/api-*.c */
int api_series(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_ratio(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_ladder(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_clusters(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_agents(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_osds(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_devices(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_pools(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_plans(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_plan(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
