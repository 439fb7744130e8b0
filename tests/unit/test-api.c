/* The API's parsers and its route table, and that docs/openapi.json says the same as the table. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "lib/cleanup.h"
#include "collectord/api.h"
#include "collectord/openapi.h"
#include "collectord/route.h"
#include "collectord/text.h"

#define NOW (INT64_C(1796027577) * 1000000 + 500000)
#define SECOND INT64_C(1000000)

#define REQUEST(...)                                                                               \
        (const struct api_parameter[]){__VA_ARGS__},                                               \
                sizeof((const struct api_parameter[]){__VA_ARGS__}) / sizeof(struct api_parameter)

static struct api_request make_request(const struct api_parameter *parameters, size_t n)
{
        return (struct api_request){.method = "GET",
                .path = "/api/v1/ratio",
                .parameters = parameters,
                .n_parameters = n,
                .now_us = NOW,
                .role = API_ROLE_READER};
}

/* The detail of the problem document; the caller frees it. */
static char *detail_of(struct api_response *response, unsigned status)
{
        json_t *json = json_loadb(response->body, response->body_size, 0, NULL);
        char *detail;

        assert_non_null(json);
        assert_int_equal(response->status, status);
        assert_string_equal(response->content_type, "application/problem+json");
        assert_int_equal(json_integer_value(json_object_get(json, "status")), status);
        assert_string_equal(json_string_value(json_object_get(json, "type")), "about:blank");
        assert_non_null(json_string_value(json_object_get(json, "title")));
        assert_non_null(json_string_value(json_object_get(json, "instance")));
        detail = strdup(json_string_value(json_object_get(json, "detail")));
        json_decref(json);
        api_response_done(response);
        return detail;
}

static void expect_words(struct api_response *response, unsigned status, const char *words)
{
        CLEANUP(str) char *detail = detail_of(response, status);

        if (!strstr(detail, words))
                fail_msg("'%s' does not say '%s'", detail, words);
}

static void rounds_a_relative_begin_down_to_the_step(void **state)
{
        struct api_request request = make_request(REQUEST({"step", "10s"}));
        struct api_response response = {0};
        struct api_window window;

        (void)state;
        assert_int_equal(api_parse_window(&request, &response, "-15m", &window), 0);
        assert_int_equal(window.from_us, INT64_C(1796026670) * SECOND);
        assert_int_equal(window.to_us, INT64_C(1796027570) * SECOND);
        assert_int_equal(window.n, 90);
        assert_int_equal(window.step_us, 10 * SECOND);
}

static void keeps_an_absolute_begin_and_leaves_out_the_part_of_a_window(void **state)
{
        struct api_request request = make_request(
                REQUEST({"from", "1796027003"}, {"to", "1796027028.5"}, {"step", "10s"}));
        struct api_response response = {0};
        struct api_window window;

        (void)state;
        assert_int_equal(api_parse_window(&request, &response, "-15m", &window), 0);
        assert_int_equal(window.from_us, INT64_C(1796027003) * SECOND);
        assert_int_equal(window.n, 2);
        assert_int_equal(window.to_us, INT64_C(1796027023) * SECOND);
}

static void chooses_a_step_of_about_120_windows(void **state)
{
        static const struct {
                const char *from;
                int64_t step_us;
        } cases[] = {{"-1m", SECOND}, {"-15m", 10 * SECOND}, {"-6h", 300 * SECOND},
                {"-30d", 21600 * SECOND}, {"-6000d", 50 * 86400 * SECOND}, {"-500ms", 500000}};

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct api_request request = make_request(REQUEST({"from", cases[i].from}));
                struct api_response response = {0};
                struct api_window window;

                assert_int_equal(api_parse_window(&request, &response, "-15m", &window), 0);
                assert_int_equal(window.step_us, cases[i].step_us);
                assert_true(window.n >= 1 && window.n <= 121);
        }
}

static void answers_what_there_is_of_a_range_that_ends_in_the_future(void **state)
{
        struct api_request request = make_request(REQUEST({"to", "now+1h"}, {"step", "10s"}));
        struct api_response response = {0};
        struct api_window window;

        (void)state;
        assert_int_equal(api_parse_window(&request, &response, "-15m", &window), 0);
        assert_true(window.to_us <= NOW);
}

static void refuses_absurd_windows_and_names_the_parameter(void **state)
{
        static const struct {
                struct api_parameter parameters[3];
                const char *words;
        } cases[] = {
                {{{"step", "0s"}}, "step must be greater than zero, but is '0s'"},
                {{{"step", "-1s"}}, "step must be a duration"},
                {{{"step", "10"}}, "step must be a duration"},
                {{{"step", "1ms"}}, "step must be at least 100ms"},
                {{{"step", "1h"}}, "step '1h' is longer"},
                {{{"step", "99999999999999999999d"}}, "step must be a duration"},
                {{{"step", "1s"}, {"from", "-30d"}}, "windows"},
                {{{"from", "now+1h"}}, "from must lie in the past"},
                {{{"from", "now"}}, "from must lie in the past"},
                {{{"from", "-5m"}, {"to", "-10m"}}, "from must be before to"},
                {{{"from", "yesterday"}}, "from must be a time"},
                {{{"from", ""}}, "from must be a time"},
                {{{"to", "2026-13-01T00:00:00Z"}}, "to must be a time"},
                {{{"from", "99999999999999999999"}}, "from is out of range"},
                {{{"from", "0"}}, "longer than 20 years"},
                {{{"from", "\xff\xfe"}}, "from must be a time"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                size_t n = 0;
                struct api_request request;
                struct api_response response = {0};
                struct api_window window;

                while (n < 3 && cases[i].parameters[n].name)
                        n++;
                request = make_request(cases[i].parameters, n);
                assert_int_equal(api_parse_window(&request, &response, "-15m", &window), 1);
                expect_words(&response, 400, cases[i].words);
        }
}

static void reads_choices_numbers_ids_and_pages(void **state)
{
        struct api_request request = make_request(REQUEST({"by", "host"}, {"limit", "1000"},
                {"cluster", "7d6f3c1e-93a4-4a34-8f0e-0c2f5a1d9b11"}, {"cursor", "abc"}));
        struct api_response response = {0};
        struct api_page page;
        unsigned index = 9;
        bool none = true;
        struct id id;

        (void)state;
        assert_int_equal(
                api_parse_choice(&request, &response, "by", "cluster host", NULL, &index), 0);
        assert_int_equal(index, 1);
        assert_int_equal(api_parse_choice(&request, &response, "upper", "a b c", "c", &index), 0);
        assert_int_equal(index, 2);
        assert_int_equal(api_parse_page(&request, &response, &page), 0);
        assert_int_equal(page.limit, 1000);
        assert_string_equal(page.after, "abc");
        assert_int_equal(api_parse_id(&request, &response, "cluster", &id, &none), 0);
        assert_int_equal(id.bytes[0], 0x7d);
        assert_false(none);
}

static void refuses_wrong_choices_numbers_and_ids(void **state)
{
        struct api_request request =
                make_request(REQUEST({"by", "hos"}, {"limit", "1001"}, {"cluster", "7d6f"}));
        struct api_response response = {0};
        struct api_page page;
        unsigned index;
        struct id id;

        (void)state;
        assert_int_equal(
                api_parse_choice(&request, &response, "by", "cluster host", NULL, &index), 1);
        expect_words(&response, 400, "by must be one of: cluster host, but is 'hos'");
        assert_int_equal(api_parse_choice(&request, &response, "layer", "a b", NULL, &index), 1);
        expect_words(&response, 400, "layer is missing");
        assert_int_equal(api_parse_page(&request, &response, &page), 1);
        expect_words(&response, 400, "limit must be a whole number from 1 to 1000, but is '1001'");
        assert_int_equal(api_parse_id(&request, &response, "cluster", &id, NULL), 1);
        expect_words(&response, 400, "cluster must be a UUID, but is '7d6f'");
}

static void expect_number(double value, const char *expected)
{
        struct text text = {0};

        text_number(&text, value);
        assert_string_equal(text.data, expected);
        text_done(&text);
}

/* Ten significant digits, as printf has them, but for what lies half-way between two. */
static void writes_numbers_with_ten_digits(void **state)
{
        static const double list[] = {0, 1, 10, 0.1, 0.5, 0.12, 0.0123, 1e-7, 2.5, 12.5, 100.25,
                1.05, 9.99999999999, 0.99999999999, 99999.99999999, 123456789.25, 1234567890.5,
                1e9 + 0.25, 1e15, 3e20, -0.5, -7, 1.0 / 3, 2e9 / 3, 0.1234567891234, 1048576.000001,
                1e-300};
        uint64_t seed = 42;
        (void)state;

        for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
                char expected[40];

                snprintf(expected, sizeof(expected), "%.10g", list[i]);
                if (list[i] == 1e15 || list[i] == 123456789.25)
                        continue;
                expect_number(list[i], expected);
        }
        expect_number(NAN, "null");
        expect_number(123456789012345, "123456789012345");
        for (unsigned i = 0; i < 200000; i++) {
                struct text text = {0};
                double value, read;

                seed = seed * 6364136223846793005u + 1442695040888963407u;
                value = ldexp((double)(seed >> 11), -(int)(20 + i % 60));
                text_number(&text, value);
                read = strtod(text.data, NULL);
                if (fabs(read - value) > 5.0001e-10 * value || text.size > 17)
                        fail_msg("%.17g is %s", value, text.data);
                text_done(&text);
        }
}

static void writes_times_without_zeros_behind(void **state)
{
        static const struct {
                int64_t time_us;
                const char *text;
        } list[] = {{0, "0"}, {1796027520000000, "1796027520"}, {1796027520500000, "1796027520.5"},
                {1, "0.000001"}, {-5000000, "-5"}};
        (void)state;

        for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
                struct text text = {0};

                text_time(&text, list[i].time_us);
                assert_string_equal(text.data, list[i].text);
                text_done(&text);
        }
}

static void finds_routes_and_says_what_a_path_allows(void **state)
{
        const struct route *route = NULL;
        const char *allow = NULL;

        (void)state;
        assert_int_equal(route_find("GET", "/api/v1/ratio", &route, &allow), 0);
        assert_int_equal(route_find("HEAD", "/", &route, &allow), 0);
        assert_int_equal(route->action, ROUTE_FILE);
        assert_int_equal(route_find("GET", "/lib/u.js", &route, &allow), 0);
        assert_int_equal(route->action, ROUTE_FILE);
        assert_int_equal(route_find("PUT", "/api/v1/plans/*", &route, &allow), 0);
        assert_int_equal(route->action, ROUTE_PUT_PLAN);
        assert_int_equal(route_find("GET", "/api/v1/plans/", &route, &allow), -ENOENT);
        assert_int_equal(route_find("GET", "/api/v1/plans/a/b", &route, &allow), -ENOENT);
        assert_int_equal(route_find("GET", "/api/v2/ratio", &route, &allow), -ENOENT);
        assert_int_equal(route_find("PATCH", "/api/v1/plans/x", &route, &allow), -EOPNOTSUPP);
        assert_string_equal(allow, "GET, HEAD, PUT, DELETE");
        assert_int_equal(route_find("GET", "/api/v1/blocks", &route, &allow), -EOPNOTSUPP);
        assert_string_equal(allow, "POST");
}

static void checks_roles_and_names_of_parameters(void **state)
{
        struct api_request request = make_request(REQUEST({"step", "1s"}, {"stepp", "1s"}));
        struct api_request twice = make_request(REQUEST({"step", "1s"}, {"step", "2s"}));
        struct api_response response = {0};
        const struct route *route = NULL;
        const char *allow;

        (void)state;
        route_find("GET", "/api/v1/ratio", &route, &allow);
        assert_int_equal(route_check(route, &request, &response), 1);
        expect_words(&response, 400, "unknown parameter 'stepp'");
        assert_int_equal(route_check(route, &twice, &response), 1);
        expect_words(&response, 400, "'step' is given twice");
        request.n_parameters = 1;
        assert_int_equal(route_check(route, &request, &response), 0);
        request.role = API_ROLE_NONE;
        assert_int_equal(route_check(route, &request, &response), 1);
        assert_string_equal(response.header_name[0], "WWW-Authenticate");
        expect_words(&response, 401, "token");
        request.role = API_ROLE_AGENT;
        assert_int_equal(route_check(route, &request, &response), 1);
        expect_words(&response, 403, "an agent's token");
}

/* ---- docs/openapi.json ---- */

static json_t *load_openapi(void)
{
        json_error_t error;
        json_t *json = json_loadb(openapi_json, openapi_json_size, JSON_REJECT_DUPLICATES, &error);

        if (!json)
                fail_msg("openapi.json:%d: %s", error.line, error.text);
        return json;
}

static bool has_query_parameter(
        json_t *operation, json_t *document, const char *name, size_t length)
{
        json_t *parameter;
        size_t i;

        json_array_foreach (json_object_get(operation, "parameters"), i, parameter) {
                const char *reference = json_string_value(json_object_get(parameter, "$ref"));
                const char *found;

                if (reference)
                        parameter = json_object_get(
                                json_object_get(
                                        json_object_get(document, "components"), "parameters"),
                                strrchr(reference, '/') + 1);
                found = json_string_value(json_object_get(parameter, "name"));
                assert_non_null(found);
                if (strcmp(json_string_value(json_object_get(parameter, "in")), "query") == 0 &&
                        strlen(found) == length && memcmp(found, name, length) == 0)
                        return true;
        }
        return false;
}

static size_t count_query_parameters(json_t *operation, json_t *document)
{
        json_t *parameter;
        size_t i, n = 0;

        json_array_foreach (json_object_get(operation, "parameters"), i, parameter) {
                const char *reference = json_string_value(json_object_get(parameter, "$ref"));

                if (reference)
                        parameter = json_object_get(
                                json_object_get(
                                        json_object_get(document, "components"), "parameters"),
                                strrchr(reference, '/') + 1);
                n += strcmp(json_string_value(json_object_get(parameter, "in")), "query") == 0;
        }
        return n;
}

static void describes_every_route_and_its_parameters_in_openapi(void **state)
{
        json_t *document = load_openapi();
        json_t *paths = json_object_get(document, "paths");
        const struct route *routes;
        size_t n;

        (void)state;
        routes = route_all(&n);
        for (size_t i = 0; i < n; i++) {
                char method[16] = "";
                json_t *operation;
                size_t words = 0;

                for (size_t k = 0; routes[i].method[k]; k++)
                        method[k] = (char)(routes[i].method[k] | 0x20);
                operation = json_object_get(json_object_get(paths, routes[i].path), method);
                if (!operation)
                        fail_msg("%s %s is not in openapi.json", routes[i].method, routes[i].path);
                for (const char *p = routes[i].parameters; p && *p; words++) {
                        size_t length = strcspn(p, " ");

                        if (!has_query_parameter(operation, document, p, length))
                                fail_msg("%s has no parameter %.*s in openapi.json", routes[i].path,
                                        (int)length, p);
                        p += length + strspn(p + length, " ");
                }
                assert_int_equal(count_query_parameters(operation, document), words);
                assert_true(json_object_size(json_object_get(operation, "responses")) > 0);
        }
        json_decref(document);
}

static void has_no_route_in_openapi_that_is_not_there(void **state)
{
        json_t *document = load_openapi(), *item, *operation;
        const char *path, *method;

        (void)state;
        assert_string_equal(json_string_value(json_object_get(document, "openapi")), "3.1.0");
        json_object_foreach (json_object_get(document, "paths"), path, item) {
                json_object_foreach (item, method, operation) {
                        const struct route *routes;
                        bool found = false;
                        size_t n;

                        if (strcmp(method, "parameters") == 0)
                                continue;
                        routes = route_all(&n);
                        for (size_t i = 0; i < n; i++)
                                found = found || (strcmp(routes[i].path, path) == 0 &&
                                                         strcasecmp(routes[i].method, method) == 0);
                        if (!found)
                                fail_msg("openapi.json has %s %s, but no route does", method, path);
                }
        }
        json_decref(document);
}

/* Every "$ref" of @json leads somewhere. */
static void check_references(json_t *json, json_t *document)
{
        const char *key;
        json_t *value;
        size_t i;

        if (json_is_array(json)) {
                json_array_foreach (json, i, value) {
                        check_references(value, document);
                }
        }
        if (!json_is_object(json))
                return;
        json_object_foreach (json, key, value) {
                if (strcmp(key, "$ref") == 0) {
                        CLEANUP(str) char *path = strdup(json_string_value(value));
                        json_t *target = document;
                        char *rest = NULL;

                        for (char *part = strtok_r(path, "#/", &rest); part;
                                part = strtok_r(NULL, "/", &rest))
                                target = json_object_get(target, part);
                        if (!target)
                                fail_msg(
                                        "openapi.json: %s leads nowhere", json_string_value(value));
                } else {
                        check_references(value, document);
                }
        }
}

static void has_no_loose_end_in_openapi(void **state)
{
        json_t *document = load_openapi();

        (void)state;
        check_references(document, document);
        json_decref(document);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(rounds_a_relative_begin_down_to_the_step),
                cmocka_unit_test(keeps_an_absolute_begin_and_leaves_out_the_part_of_a_window),
                cmocka_unit_test(chooses_a_step_of_about_120_windows),
                cmocka_unit_test(answers_what_there_is_of_a_range_that_ends_in_the_future),
                cmocka_unit_test(refuses_absurd_windows_and_names_the_parameter),
                cmocka_unit_test(reads_choices_numbers_ids_and_pages),
                cmocka_unit_test(refuses_wrong_choices_numbers_and_ids),
                cmocka_unit_test(writes_numbers_with_ten_digits),
                cmocka_unit_test(writes_times_without_zeros_behind),
                cmocka_unit_test(finds_routes_and_says_what_a_path_allows),
                cmocka_unit_test(checks_roles_and_names_of_parameters),
                cmocka_unit_test(describes_every_route_and_its_parameters_in_openapi),
                cmocka_unit_test(has_no_route_in_openapi_that_is_not_there),
                cmocka_unit_test(has_no_loose_end_in_openapi),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
