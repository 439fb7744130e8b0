#include "collectord/api.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DETAIL_MAX 1024u

void api_response_done(struct api_response *response)
{
        free(response->body);
        *response = (struct api_response){0};
}

static const char *find_value(const struct api_parameter *list, size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++)
                if (strcmp(list[i].name, name) == 0)
                        return list[i].value;
        return NULL;
}

const char *api_parameter(const struct api_request *request, const char *name)
{
        return find_value(request->parameters, request->n_parameters, name);
}

const char *api_header(const struct api_request *request, const char *name)
{
        return find_value(request->headers, request->n_headers, name);
}

const char *api_path_tail(const struct api_request *request)
{
        const char *slash = strrchr(request->path, '/');

        return slash ? slash + 1 : request->path;
}

static const char *status_title(unsigned status)
{
        static const struct {
                unsigned status;
                const char *title;
        } titles[] = {
                {400, "Bad Request"},
                {401, "Unauthorized"},
                {403, "Forbidden"},
                {404, "Not Found"},
                {405, "Method Not Allowed"},
                {408, "Request Timeout"},
                {409, "Conflict"},
                {413, "Content Too Large"},
                {415, "Unsupported Media Type"},
                {429, "Too Many Requests"},
                {500, "Internal Server Error"},
                {503, "Service Unavailable"},
                {507, "Insufficient Storage"},
        };

        for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
                if (titles[i].status == status)
                        return titles[i].title;
        return "Error";
}

/* jansson refuses text that is not UTF-8; what a caller sent may be quoted in a sentence. */
static json_t *json_text(char *text)
{
        json_t *json = json_string(text);

        if (json)
                return json;
        for (char *p = text; *p; p++)
                if (*p & 0x80)
                        *p = '?';
        return json_string(text);
}

void api_add_header(struct api_response *response, const char *name, const char *value)
{
        for (size_t i = 0; i < API_HEADERS_MAX; i++)
                if (!response->header_name[i]) {
                        response->header_name[i] = name;
                        response->header_value[i] = value;
                        return;
                }
}

__attribute__((format(printf, 5, 0))) static int write_problem(const struct api_request *request,
        struct api_response *response, unsigned status, json_t *extra, const char *format,
        va_list arguments)
{
        char detail[DETAIL_MAX], instance[DETAIL_MAX];
        json_t *json;
        int r;

        vsnprintf(detail, sizeof(detail), format, arguments);
        snprintf(instance, sizeof(instance), "%s", request->path ? request->path : "");
        json = json_pack("{s:s, s:s, s:i, s:o, s:o}", "type", "about:blank", "title",
                status_title(status), "status", (int)status, "detail", json_text(detail),
                "instance", json_text(instance));
        if (json && extra)
                json_object_update(json, extra);
        json_decref(extra);

        api_response_done(response);
        r = api_json(response, status, json);
        if (r < 0)
                return r;
        response->content_type = "application/problem+json";
        if (status == 503)
                api_add_header(response, "Retry-After", "2");
        if (status == 401)
                api_add_header(response, "WWW-Authenticate", "Bearer realm=\"strata\"");
        return 0;
}

int api_problem(const struct api_request *request, struct api_response *response, unsigned status,
        const char *format, ...)
{
        va_list arguments;
        int r;

        va_start(arguments, format);
        r = write_problem(request, response, status, NULL, format, arguments);
        va_end(arguments);
        return r;
}

int api_problem_with(const struct api_request *request, struct api_response *response,
        unsigned status, json_t *extra, const char *format, ...)
{
        va_list arguments;
        int r;

        va_start(arguments, format);
        r = write_problem(request, response, status, extra, format, arguments);
        va_end(arguments);
        return r;
}

int api_problem_errno(const struct api_request *request, struct api_response *response, int error)
{
        switch (error) {
        case -ETIME:
                return api_problem(request, response, 503,
                        "the query took longer than its time budget; ask for a shorter range or a "
                        "longer step");
        case -ENOSPC:
                return api_problem(request, response, 507, "the store has no space left");
        case -EDQUOT:
                return api_problem(request, response, 507, "the store's disk quota is used up");
        case -EROFS:
        case -EACCES:
                return api_problem(request, response, 507, "the store cannot be written");
        case -EBUSY:
                return api_problem(request, response, 503, "the store is busy");
        case -EIO:
                return api_problem(request, response, 503, "the store's disk fails");
        case -EBADMSG:
                return api_problem(request, response, 500, "the store is damaged");
        default:
                return api_problem(
                        request, response, 500, "the collector failed: %s", strerror(-error));
        }
}

int api_json(struct api_response *response, unsigned status, json_t *json)
{
        char *text;

        if (!json)
                return -ENOMEM;
        text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        if (!text)
                return -ENOMEM;
        return api_text(response, status, text, strlen(text));
}

int api_text(struct api_response *response, unsigned status, char *text, size_t size)
{
        response->status = status;
        response->content_type = "application/json";
        response->body = text;
        response->body_size = size;
        return 0;
}

int api_csv(struct api_response *response, char *text, size_t size)
{
        (void)api_text(response, 200, text, size);
        response->content_type = "text/csv; charset=utf-8";
        api_add_header(response, "Content-Disposition", "attachment; filename=\"strata.csv\"");
        return 0;
}
