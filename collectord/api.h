#pragma once
/*
 * The API without HTTP: a request in, a response out. server.c turns microhttpd's callbacks into
 * these; tests call them directly. A handler is one row of the route table in route.c.
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

struct metrics;
struct election_result;
struct roll;

struct api_request {
        const char *method, *path;
        const struct api_parameter *parameters;
        size_t n_parameters;
        const struct api_parameter *headers; /* those the API uses, lower-case names */
        size_t n_headers;
        const uint8_t *body;
        size_t body_size;
        enum api_role role;
        struct id host; /* of an agent's token */
        /* An agent's, that asks for its plan: the clusters that it is to sample; NULL: it is not.
         */
        const struct election_result *elected;
        int64_t now_us;          /* Unix time at receipt */
        uint64_t deadline_us;    /* CLOCK_MONOTONIC */
        struct metrics *metrics; /* the collector's own counters */
        bool csv;                /* of curves: GET /export wants rows */
        struct roll *roll;       /* of the agents heard; NULL: none is kept */
};

#define API_TAG_MAX 24u
#define API_HEADERS_MAX 6u

/* Filled by a handler; body belongs to the response, freed by api_response_done. */
struct api_response {
        unsigned status;
        const char *content_type; /* static string */
        char *body;
        size_t body_size;
        /* extra, e.g. Retry-After; static strings */
        const char *header_name[API_HEADERS_MAX], *header_value[API_HEADERS_MAX];
        char tag[API_TAG_MAX]; /* the ETag, "" when there is none */
};

void api_response_done(struct api_response *response);
/* Static strings; what finds no room is left out. */
void api_add_header(struct api_response *response, const char *name, const char *value);

/* The value of a query parameter, or NULL. */
const char *api_parameter(const struct api_request *request, const char *name);
/* The value of a header (lower-case @name), or NULL. */
const char *api_header(const struct api_request *request, const char *name);
/* The last segment of the path, "{host}" in the route table. */
const char *api_path_tail(const struct api_request *request);

/* Fills a problem document (RFC 9457) and returns 0, so that handlers end with `return
 * api_problem(...)`. */
__attribute__((format(printf, 4, 5))) int api_problem(const struct api_request *request,
        struct api_response *response, unsigned status, const char *format, ...);
/* The same with more members; takes the reference @extra. */
__attribute__((format(printf, 5, 6))) int api_problem_with(const struct api_request *request,
        struct api_response *response, unsigned status, json_t *extra, const char *format, ...);
/* The problem document for an error of the store or of a query: 503, 507, 500 with a sentence. */
int api_problem_errno(const struct api_request *request, struct api_response *response, int error);
/* Takes the reference @json. */
int api_json(struct api_response *response, unsigned status, json_t *json);
/* Takes @text (heap); content type application/json. */
int api_text(struct api_response *response, unsigned status, char *text, size_t size);
/* The same with status 200 and CSV. */
int api_csv(struct api_response *response, char *text, size_t size);

/*
 * Parsers of query parameters, docs/api.md. On bad input the response is a problem document that
 * names the parameter and its value, and 1 is returned; else 0 and *ret is written. -ENOMEM.
 */
struct api_window {
        int64_t from_us, to_us; /* to_us - from_us is a multiple of step_us */
        uint64_t step_us;
        uint32_t n;
};
#define API_WINDOWS_MAX 11000u
#define API_STEP_MIN_US 100000ull
/* "Windows": from, to and step. @default_from is as a user would write it ("-15m"). */
int api_parse_window(const struct api_request *request, struct api_response *response,
        const char *default_from, struct api_window *ret);
/* from and to alone: one window, n = 1. */
int api_parse_range(const struct api_request *request, struct api_response *response,
        const char *default_from, struct api_window *ret);
/* @choices: words separated by spaces; *ret_index counts them from 0. @fallback (one of them) when
 * the parameter is not given; NULL makes it required. */
int api_parse_choice(const struct api_request *request, struct api_response *response,
        const char *name, const char *choices, const char *fallback, unsigned *ret_index);
/* A number between @min and @max. */
int api_parse_number(const struct api_request *request, struct api_response *response,
        const char *name, uint64_t fallback, uint64_t min, uint64_t max, uint64_t *ret);
/* An id such as a cluster's fsid; all zero when not given. "none" is all zero with *ret_none (may
 * be NULL) set. */
int api_parse_id(const struct api_request *request, struct api_response *response, const char *name,
        struct id *ret, bool *ret_none);

/*
 * Lists are paged by key, so that what comes or goes between two pages moves nothing: rows are
 * ordered by a text key, a page has the rows after @after, and the answer's "cursor" is the last
 * row's key, or null on the last page.
 */
struct api_page {
        uint32_t limit;    /* 1..1000 */
        const char *after; /* "" on the first page; belongs to the request */
        /* For rows that come in the order of their keys. */
        json_t *rows;
        char last[ID_TEXT_MAX]; /* key of the last one that found room */
        bool more;
};
#define API_PAGE_DEFAULT 100u
#define API_PAGE_MAX 1000u
int api_parse_page(
        const struct api_request *request, struct api_response *response, struct api_page *ret);
/* Whether the row of @key, the next in order, is on the page. */
bool api_page_takes(struct api_page *page, const char *key);
/* Takes the reference. -ENOMEM. */
int api_page_add(struct api_page *page, const char *key, json_t *row);
/* {NAME: rows, "cursor": ...}; frees the rows when @r is an error, which is returned. */
int api_page_answer(struct api_page *page, int r, const char *name, struct api_response *response);

/* A read-only handler: runs on a worker thread with its own reader. 0 (response filled) or -errno.
 */
typedef int (*api_read_function)(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);

/* Query handlers, collectord/api-*.c; collectord/route.c has their paths and parameters. */
int api_series(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_ratio(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_ladder(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_export(struct store_reader *reader, const struct api_request *request,
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
int api_findings(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_report(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
int api_metrics(struct store_reader *reader, const struct api_request *request,
        struct api_response *response);
