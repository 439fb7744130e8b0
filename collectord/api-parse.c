/* Parsers of query parameters: each refuses with a sentence that names the parameter. */
#include "collectord/api.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/config.h"
#include "lib/time.h"

#define RANGE_MAX_US (INT64_C(20) * 366 * 86400 * 1000000) /* 20 years: more is a mistake */
#define WINDOWS_WANTED 120u
#define DAY_US 86400000000ull

/* Ends a parser: 1, or the error of making the problem document. */
#define REFUSE(...)                                                                                \
        ({                                                                                         \
                int refused_ = api_problem(request, response, 400, __VA_ARGS__);                   \
                refused_ < 0 ? refused_ : 1;                                                       \
        })

static int parse_time(const struct api_request *request, struct api_response *response,
        const char *name, const char *fallback, int64_t *ret_us, bool *ret_relative)
{
        const char *text = api_parameter(request, name);
        int r;

        r = time_parse(text ? text : fallback, request->now_us, ret_us, ret_relative);
        if (r == -ERANGE)
                return REFUSE("%s is out of range: '%s'", name, text);
        if (r < 0)
                return REFUSE("%s must be a time (RFC 3339, Unix seconds, now or -15m), but is "
                              "'%s'",
                        name, text);
        return 0;
}

static int parse_from_to(const struct api_request *request, struct api_response *response,
        const char *default_from, struct api_window *ret, bool *ret_relative)
{
        const char *from = api_parameter(request, "from"), *to = api_parameter(request, "to");
        int r;

        r = parse_time(request, response, "from", default_from, &ret->from_us, ret_relative);
        if (r != 0)
                return r;
        r = parse_time(request, response, "to", "now", &ret->to_us, NULL);
        if (r != 0)
                return r;
        if (ret->from_us >= request->now_us && from)
                return REFUSE("from must lie in the past, but is '%s'", from);
        if (ret->from_us >= ret->to_us)
                return REFUSE("from must be before to, but from is '%s' and to is '%s'",
                        from ? from : default_from, to ? to : "now");
        /* Nobody has samples of the future; the rest of the range is answered. */
        if (ret->to_us > request->now_us)
                ret->to_us = request->now_us;
        if (ret->to_us - ret->from_us > RANGE_MAX_US)
                return REFUSE("from '%s' to '%s' is longer than 20 years",
                        from ? from : default_from, to ? to : "now");
        return 0;
}

/* The smallest usual step that gives at most WINDOWS_WANTED windows. */
static uint64_t usual_step(uint64_t range_us)
{
        static const uint32_t seconds[] = {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600,
                7200, 14400, 21600, 43200, 86400};
        uint64_t days;

        for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
                if (range_us <= seconds[i] * 1000000ull * WINDOWS_WANTED)
                        return seconds[i] * 1000000ull;
        days = (range_us + DAY_US * WINDOWS_WANTED - 1) / (DAY_US * WINDOWS_WANTED);
        return days * DAY_US;
}

static int parse_step(const struct api_request *request, struct api_response *response,
        uint64_t range_us, uint64_t *ret_us)
{
        const char *text = api_parameter(request, "step");
        uint64_t step_us;
        int r;

        if (!text) {
                step_us = usual_step(range_us);
                *ret_us = step_us <= range_us ? step_us : range_us;
                return 0;
        }
        r = config_parse_duration(text, &step_us);
        if (r < 0)
                return REFUSE("step must be a duration such as 10s, but is '%s'", text);
        if (step_us == 0)
                return REFUSE("step must be greater than zero, but is '%s'", text);
        if (step_us < API_STEP_MIN_US)
                return REFUSE("step must be at least 100ms, but is '%s'", text);
        if (step_us > range_us)
                return REFUSE("step '%s' is longer than the time from from to to", text);
        if (range_us / step_us > API_WINDOWS_MAX)
                return REFUSE("step '%s' gives %" PRIu64 " windows, more than %u", text,
                        range_us / step_us, API_WINDOWS_MAX);
        *ret_us = step_us;
        return 0;
}

int api_parse_window(const struct api_request *request, struct api_response *response,
        const char *default_from, struct api_window *ret)
{
        struct api_window window;
        bool relative;
        int r;

        r = parse_from_to(request, response, default_from, &window, &relative);
        if (r != 0)
                return r;
        r = parse_step(
                request, response, (uint64_t)(window.to_us - window.from_us), &window.step_us);
        if (r != 0)
                return r;
        if (relative)
                window.from_us -= window.from_us % (int64_t)window.step_us;
        window.n = (uint32_t)((uint64_t)(window.to_us - window.from_us) / window.step_us);
        if (window.n > API_WINDOWS_MAX)
                window.n = API_WINDOWS_MAX;
        window.to_us = window.from_us + (int64_t)(window.n * window.step_us);
        *ret = window;
        return 0;
}

int api_parse_range(const struct api_request *request, struct api_response *response,
        const char *default_from, struct api_window *ret)
{
        struct api_window window = {.n = 1};
        bool relative;
        int r;

        r = parse_from_to(request, response, default_from, &window, &relative);
        if (r != 0)
                return r;
        window.step_us = (uint64_t)(window.to_us - window.from_us);
        *ret = window;
        return 0;
}

int api_parse_choice(const struct api_request *request, struct api_response *response,
        const char *name, const char *choices, const char *fallback, unsigned *ret_index)
{
        const char *text = api_parameter(request, name);
        unsigned index = 0;

        if (!text)
                text = fallback;
        if (!text)
                return REFUSE("%s is missing; it is one of: %s", name, choices);
        for (const char *p = choices; *p; index++) {
                size_t length = strcspn(p, " ");

                if (strlen(text) == length && memcmp(p, text, length) == 0) {
                        *ret_index = index;
                        return 0;
                }
                p += length + strspn(p + length, " ");
        }
        return REFUSE("%s must be one of: %s, but is '%s'", name, choices, text);
}

int api_parse_number(const struct api_request *request, struct api_response *response,
        const char *name, uint64_t fallback, uint64_t min, uint64_t max, uint64_t *ret)
{
        const char *text = api_parameter(request, name);
        size_t length = text ? strlen(text) : 0;
        uint64_t value = 0;

        if (!text) {
                *ret = fallback;
                return 0;
        }
        for (size_t i = 0; i < length && length <= 18; i++)
                value = value * 10 + (uint64_t)(text[i] - '0');
        if (length == 0 || length > 18 || strspn(text, "0123456789") != length || value < min ||
                value > max)
                return REFUSE("%s must be a whole number from %" PRIu64 " to %" PRIu64
                              ", but is '%s'",
                        name, min, max, text);
        *ret = value;
        return 0;
}

int api_parse_id(const struct api_request *request, struct api_response *response, const char *name,
        struct id *ret, bool *ret_none)
{
        const char *text = api_parameter(request, name);
        bool none = text && strcmp(text, "none") == 0;

        if (ret_none)
                *ret_none = none;
        if (!text || (none && ret_none)) {
                *ret = (struct id){0};
                return 0;
        }
        if (id_parse(text, ret) < 0)
                return REFUSE("%s must be a UUID, but is '%s'", name, text);
        return 0;
}

int api_parse_page(
        const struct api_request *request, struct api_response *response, struct api_page *ret)
{
        const char *after = api_parameter(request, "cursor");
        uint64_t limit;
        int r;

        r = api_parse_number(request, response, "limit", API_PAGE_DEFAULT, 1, API_PAGE_MAX, &limit);
        if (r != 0)
                return r;
        *ret = (struct api_page){.limit = (uint32_t)limit, .after = after ? after : ""};
        return 0;
}

bool api_page_takes(struct api_page *page, const char *key)
{
        if (page->more || strcmp(key, page->after) <= 0)
                return false;
        page->more = json_array_size(page->rows) == page->limit;
        return !page->more;
}

int api_page_add(struct api_page *page, const char *key, json_t *row)
{
        snprintf(page->last, sizeof(page->last), "%s", key);
        return json_array_append_new(page->rows, row) < 0 ? -ENOMEM : 0;
}

int api_page_answer(struct api_page *page, int r, const char *name, struct api_response *response)
{
        json_t *rows = page->rows;

        page->rows = NULL;
        if (r < 0) {
                json_decref(rows);
                return r;
        }
        return api_json(response, 200,
                json_pack("{s:o, s:s?}", name, rows, "cursor", page->more ? page->last : NULL));
}
