/*
 * GET /export: what another call answers, as CSV. Curves write their rows themselves (they may have
 * millions of points); the rest is made of the other call's JSON, lists from the first page to the
 * last.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/csv.h"
#include "collectord/route.h"

#define PARAMETERS_MAX 32u
#define PAGES_MAX 1000u /* a million rows */
#define PATH_MAX_ 64u

struct export
{
        const struct route *route;
        char path[PATH_MAX_];
        struct api_request request;
        struct api_parameter parameters[PARAMETERS_MAX];
};

static int refuse(int r)
{
        return r < 0 ? r : 1;
}

/* A call that reads, other than this one. */
static int find_call(
        const struct api_request *request, struct api_response *response, struct export *export)
{
        const char *what = api_parameter(request, "what"), *allow;
        int r;

        if (!what)
                return refuse(api_problem(request, response, 400,
                        "the parameter what is missing: series, ratio, ladder, or the name of a "
                        "list such as devices"));
        snprintf(export->path, sizeof(export->path), "/api/v1/%.40s", what);
        r = strchr(what, '/') ? -ENOENT : route_find("GET", export->path, &export->route, &allow);
        if (r < 0 || export->route->action != ROUTE_READ || export->route->read == api_export)
                return refuse(api_problem(
                        request, response, 400, "what: there is no '%s' to export", what));
        return 0;
}

static int parse(
        const struct api_request *request, struct api_response *response, struct export *export)
{
        unsigned format;
        int r;

        r = api_parse_choice(request, response, "format", "csv", "csv", &format);
        if (r != 0)
                return r;
        r = find_call(request, response, export);
        if (r != 0)
                return r;
        export->request = *request;
        export->request.csv = true;
        export->request.path = export->path;
        export->request.parameters = export->parameters;
        export->request.n_parameters = 0;
        for (size_t i = 0; i < request->n_parameters; i++) {
                const char *name = request->parameters[i].name;

                if (strcmp(name, "what") == 0 || strcmp(name, "format") == 0)
                        continue;
                /* One is kept free for a page's cursor. */
                if (export->request.n_parameters == PARAMETERS_MAX - 1)
                        return refuse(api_problem(request, response, 400, "too many parameters"));
                export->parameters[export->request.n_parameters++] = request->parameters[i];
        }
        return route_check(export->route, &export->request, response);
}

/* ---- lists ---- */

/* The list in an answer: its only array. */
static json_t *find_list(json_t *json)
{
        const char *name;
        json_t *value;

        json_object_foreach (json, name, value)
                if (json_is_array(value))
                        return value;
        return NULL;
}

static void write_rows(struct text *text, json_t *list)
{
        size_t i;
        json_t *row, *value;
        const char *name;

        json_array_foreach (list, i, row) {
                if (text->size == 0) {
                        json_object_foreach (row, name, value)
                                csv_string(text, name);
                        csv_end_line(text);
                }
                json_object_foreach (row, name, value)
                        csv_json(text, value);
                csv_end_line(text);
        }
}

/* ---- the ladder ---- */

static void write_rung(struct text *text, const json_t *answer, const json_t *key,
        const char *direction, const json_t *rung, const json_t *part)
{
        static const char *const numbers[] = {
                "bytes", "ops", "bytes_per_second", "ops_per_second", "mean_size", "amplification"};

        if (key)
                csv_json(text, key);
        csv_json(text, json_object_get(answer, "from"));
        csv_json(text, json_object_get(answer, "to"));
        csv_string(text, direction);
        csv_json(text, json_object_get(rung, "layer"));
        csv_json(text, json_object_get(part, "name"));
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
                csv_json(text, json_object_get(part ? part : rung, numbers[i]));
        csv_json(text, json_object_get(part, "counted"));
        csv_json(text, json_object_get(rung, "state"));
        csv_end_line(text);
}

static void write_ladder(
        struct text *text, const json_t *answer, const json_t *ladder, const json_t *key)
{
        static const char *const directions[] = {"write", "read"};

        if (text->size == 0)
                text_format(text,
                        "%sfrom,to,direction,layer,part,bytes,ops,bytes_per_second,"
                        "ops_per_second,mean_size,amplification,counted,state\r\n",
                        key ? "key," : "");
        for (size_t d = 0; d < sizeof(directions) / sizeof(directions[0]); d++) {
                const json_t *side = json_object_get(ladder, directions[d]);
                size_t i, k;
                json_t *rung, *part;

                json_array_foreach (json_object_get(side, "rungs"), i, rung) {
                        write_rung(text, answer, key, directions[d], rung, NULL);
                        json_array_foreach (json_object_get(rung, "parts"), k, part)
                                write_rung(text, answer, key, directions[d], rung, part);
                }
        }
}

/* ---- the answer ---- */

/* *ret_cursor: a new reference to the next page's, or NULL. */
static int convert(struct text *text, const struct api_response *page, json_t **ret_cursor)
{
        json_t *json = json_loadb(page->body, page->body_size, 0, NULL), *list, *ladder;
        size_t i;

        *ret_cursor = NULL;
        if (!json)
                return -ENOMEM;
        list = find_list(json);
        if (list && list == json_object_get(json, "ladders"))
                json_array_foreach (list, i, ladder)
                        write_ladder(text, json, ladder, json_object_get(ladder, "key"));
        else if (list)
                write_rows(text, list);
        else
                write_ladder(text, json, json, NULL);
        if (json_is_string(json_object_get(json, "cursor")))
                *ret_cursor = json_incref(json_object_get(json, "cursor"));
        json_decref(json);
        return 0;
}

/* 1: the response is filled, with CSV or a problem. */
static int read_page(struct store_reader *reader, struct export *export, struct text *text,
        struct api_response *response, json_t **cursor)
{
        size_t n = export->request.n_parameters;
        int r;

        if (*cursor) {
                export->parameters[export->request.n_parameters++] =
                        (struct api_parameter){"cursor", json_string_value(*cursor)};
        }
        r = export->route->read(reader, &export->request, response);
        export->request.n_parameters = n;
        json_decref(*cursor);
        *cursor = NULL;
        if (r < 0)
                return r;
        if (response->status != 200 || strcmp(response->content_type, "application/json") != 0)
                return 1;
        r = convert(text, response, cursor);
        api_response_done(response);
        return r;
}

int api_export(struct store_reader *reader, const struct api_request *request,
        struct api_response *response)
{
        struct export export = {0};
        struct text storage = {0};
        CLEANUP(text_object) struct text *text = &storage;
        bool one_page = api_parameter(request, "limit") || api_parameter(request, "cursor");
        json_t *cursor = NULL;
        char *body;
        size_t size;
        int r;

        r = parse(request, response, &export);
        if (r != 0)
                return r < 0 ? r : 0;
        for (unsigned page = 0; page < PAGES_MAX; page++) {
                r = read_page(reader, &export, text, response, &cursor);
                if (r != 0 || one_page || !cursor)
                        break;
        }
        json_decref(cursor);
        if (r == 0)
                r = text_take(text, &body, &size);
        else if (r > 0)
                return 0;
        return r < 0 ? r : api_csv(response, body, size);
}
