/* The way of one request; service.h has the picture. */
#include "collectord/service-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "collectord/encoding.h"
#include "collectord/openapi.h"
#include "collectord/voice.h"
#include "lib/clock.h"
#include "lib/log.h"

#define BODIES_MAX (256u << 20) /* memory that all bodies together may take */
#define CHANGES_MAX 256u        /* of one commit; more would keep the first ones waiting */
#define BODY_FIRST_BYTES 4096u

/* The dashboard loads only its own files and talks only to this server. */
#define CONTENT_SECURITY_POLICY                                                                    \
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                \
        "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "               \
        "frame-ancestors 'none'"

#define ANSWER(...)                                                                                \
        do {                                                                                       \
                (void)api_problem(&exchange->request, &exchange->response, __VA_ARGS__);           \
                exchange->answered = true;                                                         \
        } while (0)

/* A web page that resolves its own name to 127.0.0.1 can reach us through its reader's browser, but
 * cannot change the Host header. */
static bool is_loopback_name(const char *host)
{
        static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

        if (!host)
                return true; /* no browser */
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                size_t n = strlen(names[i]);

                if (strncasecmp(host, names[i], n) == 0 && (!host[n] || host[n] == ':'))
                        return true;
        }
        return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.:") == strlen(host);
}

static void count_refusal(struct exchange *exchange)
{
        if (exchange->response.status == 401)
                metrics_add(&exchange->service->metrics, unauthorized, 1);
        if (exchange->response.status == 403)
                metrics_add(&exchange->service->metrics, forbidden, 1);
}

/* An agent that asks for its plan has spoken, as with an upload. Without tokens it is known by its
 * header. */
static void check_election(struct exchange *exchange)
{
        struct api_request *request = &exchange->request;
        struct election_voice voice;
        struct id host;

        if (exchange->route->read != api_plan || id_parse(api_path_tail(request), &host) < 0)
                return;
        if (request->role == API_ROLE_AGENT)
                request->elected = &exchange->elected; /* for none, unless it says who it is */
        else if (request->role != API_ROLE_LOCAL)
                return;
        if (!api_header(request, "strata-host"))
                return;
        if (voice_read(request, &exchange->response, &voice) != 0) {
                exchange->answered = true;
                return;
        }
        if (request->role == API_ROLE_AGENT ? !id_equal(&voice.host, &request->host)
                                            : !id_equal(&voice.host, &host))
                return;
        election_hear(
                exchange->service->election, &voice, clock_monotonic_us(), &exchange->elected);
        request->elected = &exchange->elected;
}

static void check_caller(struct exchange *exchange)
{
        struct service *service = exchange->service;
        struct api_request *request = &exchange->request;

        if (service->auth) {
                request->role = auth_check(
                        service->auth, api_header(request, "authorization"), &request->host);
        } else {
                request->role = API_ROLE_LOCAL;
                if (service->check_host && !is_loopback_name(api_header(request, "host")))
                        ANSWER(403,
                                "without tokens only requests to localhost are answered, but "
                                "this one is to '%s'",
                                api_header(request, "host"));
        }
}

static void find_route(struct exchange *exchange)
{
        struct api_request *request = &exchange->request;
        const char *allow = NULL;
        int r;

        r = route_find(request->method, request->path, &exchange->route, &allow);
        if (r == -ENOENT)
                ANSWER(404, "there is no '%s'", request->path);
        if (r == -EOPNOTSUPP) {
                ANSWER(405, "'%s' has no %s; it has: %s", request->path, request->method, allow);
                api_add_header(&exchange->response, "Allow", allow);
        }
}

static void check_route(struct exchange *exchange)
{
        int r;

        r = route_check(exchange->route, &exchange->request, &exchange->response);
        if (r < 0)
                (void)api_problem_errno(&exchange->request, &exchange->response, r);
        if (r != 0) {
                exchange->answered = true;
                count_refusal(exchange);
        }
}

static void refuse_length(struct exchange *exchange)
{
        size_t max = ingest_body_max(exchange->route->action);

        metrics_add(&exchange->service->metrics, bodies_too_large, 1);
        if (max == 0)
                ANSWER(413, "this call takes no body");
        else
                ANSWER(413, "the body is larger than %zu bytes", max);
}

void exchange_begin(struct exchange *exchange, uint64_t content_length)
{
        exchange->request.metrics = &exchange->service->metrics;
        exchange->request.roll = exchange->service->roll;
        metrics_add(&exchange->service->metrics, requests, 1);
        if (exchange->service->stopping)
                ANSWER(503, "the collector stops");
        if (!exchange->answered)
                check_caller(exchange);
        if (exchange->answered)
                count_refusal(exchange);
        if (!exchange->answered)
                find_route(exchange);
        if (!exchange->answered)
                check_route(exchange);
        if (!exchange->answered)
                check_election(exchange);
        if (!exchange->answered && content_length != EXCHANGE_LENGTH_UNKNOWN &&
                content_length > ingest_body_max(exchange->route->action))
                refuse_length(exchange);
}

static void drop_body(struct exchange *exchange)
{
        metrics_sub(&exchange->service->metrics, body_bytes, exchange->body_capacity);
        free(exchange->body);
        exchange->body = NULL;
        exchange->body_capacity = 0;
        exchange->request.body = NULL;
        exchange->request.body_size = 0;
}

/* Doubles: memory follows what has really come, not what the head promised. */
static int grow_body(struct exchange *exchange, size_t size)
{
        struct metrics *metrics = &exchange->service->metrics;
        size_t capacity = exchange->body_capacity ? exchange->body_capacity : BODY_FIRST_BYTES;
        uint8_t *body;

        while (capacity < size)
                capacity *= 2;
        if (capacity == exchange->body_capacity)
                return 0;
        if (metrics_get(metrics, body_bytes) + capacity - exchange->body_capacity > BODIES_MAX)
                return -EBUSY;
        body = realloc(exchange->body, capacity);
        if (!body)
                return -ENOMEM;
        metrics_add(metrics, body_bytes, capacity - exchange->body_capacity);
        exchange->body = body;
        exchange->body_capacity = capacity;
        exchange->request.body = body;
        return 0;
}

void exchange_add_body(struct exchange *exchange, const void *bytes, size_t size)
{
        size_t have = exchange->request.body_size;
        int r;

        if (exchange->answered)
                return;
        if (size > ingest_body_max(exchange->route->action) - have) {
                refuse_length(exchange);
                drop_body(exchange);
                return;
        }
        r = grow_body(exchange, have + size);
        if (r < 0) {
                metrics_add(&exchange->service->metrics, bodies_refused, 1);
                ANSWER(503, "too many uploads at once; try again later");
                drop_body(exchange);
                return;
        }
        memcpy(exchange->body + have, bytes, size);
        exchange->request.body_size += size;
}

static void answer_text(struct exchange *exchange, const char *type, const char *text, size_t size)
{
        char *copy = malloc(size + 1);

        exchange->answered = true;
        if (!copy) {
                (void)api_problem_errno(&exchange->request, &exchange->response, -ENOMEM);
                return;
        }
        memcpy(copy, text, size);
        (void)api_text(&exchange->response, 200, copy, size);
        exchange->response.content_type = type;
}

static void answer_file(struct exchange *exchange)
{
        const struct api_request *request = &exchange->request;
        const struct web_file *file = web_files_find(exchange->service->files, request->path);
        const char *known = api_header(request, "if-none-match");

        if (!file && strcmp(request->path, "/") == 0) {
                ANSWER(404, "the dashboard is not installed in '%s'",
                        service_web_folder(exchange->service));
                return;
        }
        if (!file) {
                ANSWER(404, "there is no '%s'", request->path);
                return;
        }
        answer_text(exchange, file->content_type, file->content, file->size);
        if (exchange->response.status != 200)
                return;
        if (known && strcmp(known, file->etag) == 0) {
                api_response_done(&exchange->response);
                exchange->response.status = 304;
        }
        api_add_header(&exchange->response, "ETag", file->etag);
        api_add_header(&exchange->response, "Cache-Control", "no-cache");
        api_add_header(&exchange->response, "Content-Security-Policy", CONTENT_SECURITY_POLICY);
}

static struct exchange *exchange_of(struct job *job)
{
        return (struct exchange *)((char *)job - offsetof(struct exchange, job));
}

static int query(struct exchange *exchange, struct store_reader *reader)
{
        const struct api_request *request = &exchange->request;
        int r;

        if (clock_monotonic_us() > request->deadline_us)
                return -ETIME;
        store_reader_set_deadline(reader, request->deadline_us);
        r = store_reader_begin(reader);
        if (r == 0)
                r = exchange->route->read(reader, request, &exchange->response);
        store_reader_end(reader);
        return r;
}

/* On a worker. */
static void run_query(struct job *job, void *state, bool hurry)
{
        struct exchange *exchange = exchange_of(job);
        struct metrics *metrics = &exchange->service->metrics;
        uint64_t begin_us = clock_monotonic_us(), rotten;
        int r;

        if (hurry)
                r = api_problem(
                        &exchange->request, &exchange->response, 503, "the collector stops");
        else
                r = query(exchange, state);
        rotten = store_reader_take_rotten(state);
        if (rotten > 0 && metrics_add(metrics, rotten_blocks, rotten) == 0)
                log_error("the store in %s holds damaged blocks; their time is shown as a gap",
                        exchange->service->config->store_folder);
        if (r == -ETIME)
                metrics_add(metrics, queries_late, 1);
        if (r < 0)
                (void)api_problem_errno(&exchange->request, &exchange->response, r);
        encoding_apply(&exchange->request, &exchange->response);
        metrics_add(metrics, queries, 1);
        metrics_add(metrics, query_seconds, clock_monotonic_us() - begin_us);
}

static void query_done(struct job *job)
{
        struct exchange *exchange = exchange_of(job);

        exchange->answered = true;
        exchange->answer(exchange);
}

/* On a worker. */
static void run_check(struct job *job, void *state, bool hurry)
{
        struct exchange *exchange = exchange_of(job);

        (void)hurry;
        exchange->result = ingest_check(&exchange->request, exchange->route->action, state,
                &exchange->response, &exchange->change);
        if (exchange->result < 0)
                (void)api_problem_errno(&exchange->request, &exchange->response, exchange->result);
}

static void check_done(struct job *job)
{
        struct exchange *exchange = exchange_of(job);
        struct service *service = exchange->service;

        if (exchange->result != 0) {
                exchange->answered = true;
                count_refusal(exchange);
                exchange->answer(exchange);
                return;
        }
        exchange->next = NULL;
        *service->changes_end = exchange;
        service->changes_end = &exchange->next;
        if (++service->n_changes >= CHANGES_MAX)
                service_commit(service);
        else
                sd_event_source_set_enabled(service->commit_source, SD_EVENT_ONESHOT);
}

static void start(struct exchange *exchange, struct workers *workers)
{
        if (workers_add(workers, &exchange->job) == 0)
                return;
        metrics_add(&exchange->service->metrics, queries_refused, 1);
        ANSWER(503, "too many requests at once; try again later");
}

void exchange_run(struct exchange *exchange)
{
        struct service *service = exchange->service;

        if (exchange->answered)
                return;
        exchange->request.deadline_us = clock_monotonic_us() + service->config->query_timeout_us;
        switch (exchange->route->action) {
        case ROUTE_READ:
                exchange->job = (struct job){.run = run_query, .done = query_done};
                start(exchange, service->queries);
                break;
        case ROUTE_OPENAPI:
                answer_text(exchange, "application/json", openapi_json, openapi_json_size);
                break;
        case ROUTE_FILE:
                answer_file(exchange);
                break;
        default:
                exchange->job = (struct job){.run = run_check, .done = check_done};
                start(exchange, service->checks);
        }
}

void exchange_done(struct exchange *exchange)
{
        drop_body(exchange);
        ingest_change_done(&exchange->change);
        api_response_done(&exchange->response);
}
