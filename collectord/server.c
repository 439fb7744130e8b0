#include "collectord/server.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <microhttpd.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "collectord/listen.h"
#include "collectord/service-private.h"

#define CONNECTION_MEMORY                                                                          \
        (12u << 10)        /* head and a piece of the body; 10,000 of them are 120 MB              \
                            */
#define PARAMETERS_MAX 32u /* no call has more than 12 */
#define SWEEP_INTERVAL_US 1000000ull
#define TIMER_ACCURACY_US 1000ull
#define TURNS_MAX 4u
#define OVERRUN_MAX (16u << 20) /* of a body that was refused: then the connection is closed */

/* The headers that the API reads; anything else is not looked at. */
static const char *const header_names[] = {"authorization", "host", "content-type", "if-none-match",
        "accept-encoding", "strata-host", "strata-plan-revision", "strata-sent-at",
        "strata-backlog", "strata-sources", "strata-clusters", "strata-interval"};
#define N_HEADERS (sizeof(header_names) / sizeof(header_names[0]))

/*
 * A connection, to cut off who is slow: each phase (head, body, answer) has to end by a time.
 * microhttpd's own time-out only sees silence, not a byte every now and then.
 */
struct client {
        struct client *next, **link;
        int fd;
        uint64_t deadline_us; /* 0: it waits for us */
};

struct call {
        struct exchange exchange; /* first: answer() gets it */
        struct server *server;
        struct MHD_Connection *connection;
        struct client *client;
        bool suspended;
        bool has_body;
        size_t overrun_bytes;
        struct api_parameter headers[N_HEADERS];
        struct api_parameter parameters[PARAMETERS_MAX];
};

struct server {
        struct MHD_Daemon *daemon;
        const struct collector_config *config;
        struct service *service;
        struct metrics *metrics;
        sd_event_source *io_source, *timer_source, *turn_source, *sweep_source;
        struct client *clients;
        size_t n_clients, n_calls;
        bool closed;   /* a connection, in this turn */
        int listen_fd; /* until the daemon has it */
        bool stopping; /* a 503 closes its connection */
        char address[LISTEN_ADDRESS_MAX];
};

static void set_deadline(struct call *call, uint64_t timeout_us)
{
        if (call->client)
                call->client->deadline_us = clock_monotonic_us() + timeout_us;
}

/* ---- one request ---- */

static enum MHD_Result add_parameter(
        void *userdata, enum MHD_ValueKind kind, const char *name, const char *value)
{
        struct call *call = userdata;
        struct api_request *request = &call->exchange.request;

        (void)kind;
        if (request->n_parameters == PARAMETERS_MAX)
                return MHD_NO;
        call->parameters[request->n_parameters++] =
                (struct api_parameter){.name = name, .value = value ? value : ""};
        return MHD_YES;
}

static uint64_t read_head(struct call *call, const char *method, const char *path)
{
        struct api_request *request = &call->exchange.request;
        const char *length;
        char *end;
        uint64_t value;

        request->method = method;
        request->path = path;
        request->now_us = clock_realtime_us();
        request->headers = call->headers;
        request->parameters = call->parameters;
        for (size_t i = 0; i < N_HEADERS; i++) {
                const char *text = MHD_lookup_connection_value(
                        call->connection, MHD_HEADER_KIND, header_names[i]);

                if (text)
                        call->headers[request->n_headers++] =
                                (struct api_parameter){header_names[i], text};
        }
        MHD_get_connection_values(call->connection, MHD_GET_ARGUMENT_KIND, add_parameter, call);

        length = MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, "content-length");
        if (!length)
                return EXCHANGE_LENGTH_UNKNOWN;
        errno = 0;
        value = strtoull(length, &end, 10);
        return errno || *end ? EXCHANGE_LENGTH_UNKNOWN - 1 : value;
}

static void on_answer(struct exchange *exchange)
{
        struct call *call = (struct call *)exchange;

        if (!call->suspended)
                return;
        call->suspended = false;
        set_deadline(call, call->server->config->request_timeout_us);
        MHD_resume_connection(call->connection);
        /* The library's own wake-up does not reach an outer loop's view of its descriptor. */
        sd_event_source_set_enabled(call->server->turn_source, SD_EVENT_ONESHOT);
}

static void log_call(const struct call *call, unsigned status)
{
        const struct api_request *request = &call->exchange.request;
        bool printable = true;

        for (const char *p = request->path; *p; p++)
                printable = printable && *p > ' ' && *p < 127;
        log_debug("%s %s %u", request->method, printable ? request->path : "(unprintable)", status);
}

static void add_headers(const struct call *call, struct MHD_Response *response)
{
        const struct api_response *answer = &call->exchange.response;
        bool cached = *answer->tag;

        if (answer->content_type && answer->status != 204 && answer->status != 304)
                MHD_add_response_header(response, "Content-Type", answer->content_type);
        for (size_t i = 0; i < API_HEADERS_MAX && answer->header_name[i]; i++) {
                MHD_add_response_header(response, answer->header_name[i], answer->header_value[i]);
                cached = cached || strcmp(answer->header_name[i], "ETag") == 0;
        }
        if (*answer->tag)
                MHD_add_response_header(response, "ETag", answer->tag);
        if (!cached)
                MHD_add_response_header(response, "Cache-Control", "no-store");
        MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
        if (answer->status == 503 && call->server->stopping)
                MHD_add_response_header(response, "Connection", "close");
}

static enum MHD_Result respond(struct call *call)
{
        struct api_response *answer = &call->exchange.response;
        unsigned status = answer->status ? answer->status : 500; /* no memory even for a sentence */
        struct MHD_Response *response;
        enum MHD_Result result;

        if (status >= 500)
                metrics_add(call->server->metrics, responses_failed, 1);
        log_call(call, status);
        set_deadline(call, call->server->config->request_timeout_us);
        response = MHD_create_response_from_buffer(
                answer->body_size, answer->body, MHD_RESPMEM_MUST_FREE);
        if (!response)
                return MHD_NO;
        answer->body = NULL; /* the response's */
        add_headers(call, response);
        result = MHD_queue_response(call->connection, status, response);
        MHD_destroy_response(response);
        return result;
}

static struct call *call_new(struct server *server, struct MHD_Connection *connection,
        const char *method, const char *path)
{
        struct call *call = calloc(1, sizeof(*call));
        const union MHD_ConnectionInfo *info;
        uint64_t length;

        if (!call)
                return NULL;
        info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        call->server = server;
        call->connection = connection;
        call->client = info ? info->socket_context : NULL;
        call->exchange.service = server->service;
        call->exchange.answer = on_answer;
        server->n_calls++;
        set_deadline(call, server->config->request_timeout_us);
        length = read_head(call, method, path);
        call->has_body =
                (length != EXCHANGE_LENGTH_UNKNOWN && length > 0) ||
                MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "transfer-encoding");
        exchange_begin(&call->exchange, length);
        return call;
}

static enum MHD_Result take_body(struct call *call, const char *bytes, size_t *size)
{
        if (call->exchange.answered) {
                call->overrun_bytes += *size;
                if (call->overrun_bytes > OVERRUN_MAX)
                        return MHD_NO;
        }
        exchange_add_body(&call->exchange, bytes, *size);
        *size = 0;
        return MHD_YES;
}

/* microhttpd calls this when the head is there, for each piece of the body, when the body is
 * complete, and again when a suspended connection was resumed. */
static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection,
        const char *path, const char *method, const char *version, const char *bytes, size_t *size,
        void **request_state)
{
        struct call *call = *request_state;

        (void)version;
        if (!call) {
                call = call_new(userdata, connection, method, path);
                if (!call)
                        return MHD_NO;
                *request_state = call;
                /* An answer before the body closes the connection: only where there is one. */
                return call->exchange.answered && call->has_body ? respond(call) : MHD_YES;
        }
        if (*size > 0)
                return take_body(call, bytes, size);
        exchange_run(&call->exchange);
        if (call->exchange.answered)
                return respond(call);
        if (call->client)
                call->client->deadline_us = 0;
        call->suspended = true;
        MHD_suspend_connection(connection);
        return MHD_YES;
}

static void on_request_completed(void *userdata, struct MHD_Connection *connection,
        void **request_state, enum MHD_RequestTerminationCode code)
{
        struct server *server = userdata;
        struct call *call = *request_state;

        (void)connection;
        if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK)
                metrics_add(server->metrics, http_errors, 1);
        if (!call)
                return;
        /* The next head: after idle_timeout microhttpd closes; a head that began may end. */
        set_deadline(call, server->config->idle_timeout_us + server->config->request_timeout_us);
        server->n_calls--;
        exchange_done(&call->exchange);
        free(call);
        *request_state = NULL;
}

/* ---- connections ---- */

static void client_open(struct server *server, struct MHD_Connection *connection, void **state)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct client *client = calloc(1, sizeof(*client));

        metrics_add(server->metrics, connections_accepted, 1);
        metrics_add(server->metrics, connections, 1);
        if (++server->n_clients == server->config->connections)
                metrics_add(server->metrics, connections_full, 1);
        if (!client)
                return; /* it is served, but cannot be cut */
        client->fd = info ? info->connect_fd : -1;
        client->deadline_us = clock_monotonic_us() + server->config->request_timeout_us;
        client->next = server->clients;
        client->link = &server->clients;
        if (client->next)
                client->next->link = &client->next;
        server->clients = client;
        *state = client;
}

static void client_close(struct server *server, void **state)
{
        struct client *client = *state;

        metrics_sub(server->metrics, connections, 1);
        server->n_clients--;
        server->closed = true;
        if (!client)
                return;
        *client->link = client->next;
        if (client->next)
                client->next->link = client->link;
        free(client);
        *state = NULL;
}

static void on_connection(void *userdata, struct MHD_Connection *connection, void **state,
        enum MHD_ConnectionNotificationCode code)
{
        if (code == MHD_CONNECTION_NOTIFY_STARTED)
                client_open(userdata, connection, state);
        else
                client_close(userdata, state);
}

static int on_sweep(sd_event_source *source, uint64_t time_us, void *userdata)
{
        struct server *server = userdata;
        uint64_t now_us = clock_monotonic_us();

        (void)time_us;
        for (struct client *client = server->clients; client; client = client->next) {
                if (client->deadline_us == 0 || client->deadline_us > now_us || client->fd < 0)
                        continue;
                /* microhttpd sees the end of the stream and cleans up. */
                shutdown(client->fd, SHUT_RDWR);
                client->deadline_us = 0;
                metrics_add(server->metrics, requests_cut, 1);
        }
        sd_event_source_set_time_relative(source, SWEEP_INTERVAL_US);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* ---- the loop ---- */

static void turn(struct server *server)
{
        MHD_UNSIGNED_LONG_LONG timeout_ms = 1;
        bool timed = true;

        /* What it has to do at once is done at once: a timer comes up to a millisecond late. But
         * others have their turn, too, if it never ends. */
        for (unsigned i = 0; i < TURNS_MAX && timed && (i == 0 || timeout_ms == 0); i++) {
                server->closed = false;
                MHD_run(server->daemon);
                /* At its limit the library looks away from the listening socket, and back only at
                 * the begin of its next turn, for which it does not ask. */
                if (server->closed)
                        MHD_run(server->daemon);
                timed = MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES;
        }
        if (timed) {
                sd_event_source_set_time_relative(server->timer_source, timeout_ms * 1000u);
                sd_event_source_set_enabled(server->timer_source, SD_EVENT_ONESHOT);
        } else {
                sd_event_source_set_enabled(server->timer_source, SD_EVENT_OFF);
        }
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        (void)source, (void)fd, (void)events;
        turn(userdata);
        return 0;
}

static int on_turn(sd_event_source *source, void *userdata)
{
        (void)source;
        turn(userdata);
        return 0;
}

static int on_timer(sd_event_source *source, uint64_t time_us, void *userdata)
{
        (void)source, (void)time_us;
        turn(userdata);
        return 0;
}

__attribute__((format(printf, 2, 0))) static void on_log(
        void *userdata, const char *format, va_list arguments)
{
        char text[256];

        (void)userdata;
        vsnprintf(text, sizeof(text), format, arguments);
        text[strcspn(text, "\n")] = '\0';
        log_debug("http: %s", text);
}

static int hex_value(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        c |= 0x20;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* As MHD_http_unescape, but a NUL stays "%00": decoded it would cut path or value in silence. */
static size_t on_unescape(void *userdata, struct MHD_Connection *connection, char *text)
{
        char *out = text;

        (void)userdata, (void)connection;
        for (const char *in = text; *in;) {
                int high = in[0] == '%' ? hex_value(in[1]) : -1;
                int low = high >= 0 ? hex_value(in[2]) : -1;

                if (low >= 0 && (high | low) != 0) {
                        *out++ = (char)(high << 4 | low);
                        in += 3;
                } else {
                        *out++ = *in++;
                }
        }
        *out = '\0';
        return (size_t)(out - text);
}

/* ---- its life ---- */

static int start_daemon(struct server *server, const char *certificate, const char *key)
{
        unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
        const struct MHD_OptionItem tls[] = {
                {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)certificate},
                {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)key},
                {MHD_OPTION_HTTPS_PRIORITIES, 0,
                        (void *)"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
                {MHD_OPTION_END, 0, NULL},
        };
        const struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

        server->daemon = MHD_start_daemon(flags | (certificate ? MHD_USE_TLS : 0), 0, NULL, NULL,
                on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, server,
                MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, server, MHD_OPTION_LISTEN_SOCKET,
                server->listen_fd, MHD_OPTION_NOTIFY_COMPLETED, on_request_completed, server,
                MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_CONNECTION_LIMIT,
                (unsigned)server->config->connections, MHD_OPTION_CONNECTION_TIMEOUT,
                (unsigned)((server->config->idle_timeout_us + 999999) / 1000000),
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
                MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_ARRAY, certificate ? tls : none,
                MHD_OPTION_END);
        if (!server->daemon)
                return -EIO;
        server->listen_fd = -1;
        return 0;
}

static int add_sources(struct server *server, sd_event *event)
{
        const union MHD_DaemonInfo *info =
                MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        int r;

        if (!info)
                return -EIO;
        r = sd_event_add_time_relative(event, &server->timer_source, CLOCK_MONOTONIC, 0,
                TIMER_ACCURACY_US, on_timer, server);
        if (r < 0)
                return r;
        r = sd_event_add_defer(event, &server->turn_source, on_turn, server);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(event, &server->sweep_source, CLOCK_MONOTONIC,
                SWEEP_INTERVAL_US, TIMER_ACCURACY_US, on_sweep, server);
        if (r < 0)
                return r;
        return sd_event_add_io(event, &server->io_source, info->epoll_fd, EPOLLIN, on_io, server);
}

int server_new(sd_event *event, const struct collector_config *config, struct service *service,
        struct server **ret, char **ret_message)
{
        CLEANUP(server) struct server *server = calloc(1, sizeof(*server));
        CLEANUP(str) char *certificate = NULL, *key = NULL;
        int r;

        *ret_message = NULL;
        if (!server)
                return -ENOMEM;
        server->listen_fd = -1;
        server->config = config;
        server->service = service;
        server->metrics = service_get_metrics(service);
        r = listen_read_certificate(config, &certificate, &key, ret_message);
        if (r < 0)
                return r;
        r = listen_open(config->listen, &server->listen_fd, server->address, ret_message);
        if (r < 0)
                return r;
        r = start_daemon(server, certificate, key);
        if (r < 0)
                return r;
        r = add_sources(server, event);
        if (r < 0)
                return r;
        *ret = STEAL(server);
        return 0;
}

struct server *server_free(struct server *server)
{
        if (!server)
                return NULL;
        sd_event_source_disable_unref(server->io_source);
        sd_event_source_disable_unref(server->timer_source);
        sd_event_source_disable_unref(server->turn_source);
        sd_event_source_disable_unref(server->sweep_source);
        if (server->daemon)
                MHD_stop_daemon(server->daemon);
        if (server->listen_fd >= 0)
                close(server->listen_fd);
        free(server);
        return NULL;
}

const char *server_get_address(const struct server *server)
{
        return server->address;
}

void server_stop(struct server *server)
{
        int fd = MHD_quiesce_daemon(server->daemon);

        if (fd >= 0)
                close(fd);
        server->stopping = true;
}

size_t server_count_requests(const struct server *server)
{
        return server->n_calls;
}

void server_flush(struct server *server, uint64_t timeout_us)
{
        const union MHD_DaemonInfo *info =
                MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        uint64_t end_us = clock_monotonic_us() + timeout_us;

        while (info && server->n_calls > 0 && clock_monotonic_us() < end_us) {
                struct pollfd fd = {.fd = info->epoll_fd, .events = POLLIN};

                (void)poll(&fd, 1, 10);
                MHD_run(server->daemon);
        }
}
