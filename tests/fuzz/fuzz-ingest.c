/*
 * What a stranger may send: the body of blocks, facts or a plan, or the parameters of a query. The
 * first byte chooses which.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "collectord/ingest.h"

#define TEXT_MAX 96u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_body(
        const uint8_t *bytes, size_t size, enum route_action action, const char *path)
{
        static struct metrics metrics;
        static const struct api_parameter headers[] = {
                {"content-type", "application/vnd.strata.blocks"},
                {"strata-host", "01000000-0000-0000-0000-000000000000"},
        };
        const struct api_request request = {.method = "POST",
                .path = path,
                .headers = headers,
                .n_headers = 2,
                .body = bytes,
                .body_size = size,
                .role = API_ROLE_LOCAL,
                .now_us = INT64_C(1796027577000000),
                .metrics = &metrics};
        struct api_response response = {0};
        struct ingest_change change;
        int r = ingest_check(&request, action, NULL, &response, &change);

        /* Refused with a sentence, or ready to be stored; nothing in between. */
        assert(r == 0 || r == 1);
        assert((r == 1) == (response.status >= 400));
        ingest_change_done(&change);
        api_response_done(&response);
}

static void check_parameters(const uint8_t *bytes, size_t size)
{
        static const char *const names[] = {"from", "to", "step", "limit", "cluster", "by"};
        struct api_parameter parameters[6];
        char texts[6][TEXT_MAX];
        struct api_request request = {.method = "GET",
                .path = "/api/v1/ratio",
                .parameters = parameters,
                .now_us = INT64_C(1796027577000000)};
        struct api_response response = {0};
        struct api_window window;
        struct api_page page;
        struct id id;
        unsigned index;

        while (request.n_parameters < 6 && size > 0) {
                const uint8_t *end = memchr(bytes, '&', size);
                size_t n = end ? (size_t)(end - bytes) : size;
                size_t kept = n < TEXT_MAX ? n : TEXT_MAX - 1;
                char *text = texts[request.n_parameters];

                memcpy(text, bytes, kept);
                text[kept] = '\0';
                parameters[request.n_parameters] =
                        (struct api_parameter){names[request.n_parameters], text};
                request.n_parameters++;
                bytes += n;
                size -= n;
                if (size > 0) {
                        bytes++;
                        size--;
                }
        }
        if (api_parse_window(&request, &response, "-15m", &window) == 0) {
                assert(window.n >= 1 && window.n <= API_WINDOWS_MAX);
                assert(window.to_us - window.from_us == (int64_t)(window.n * window.step_us));
        }
        if (api_parse_range(&request, &response, "-1m", &window) == 0)
                assert(window.from_us < window.to_us);
        if (api_parse_page(&request, &response, &page) == 0)
                assert(page.limit >= 1 && page.limit <= API_PAGE_MAX);
        (void)api_parse_id(&request, &response, "cluster", &id, &(bool){false});
        (void)api_parse_choice(&request, &response, "by", "cluster host", "host", &index);
        api_response_done(&response);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
        if (size == 0)
                return 0;
        switch (bytes[0] % 4) {
        case 0:
                check_body(bytes + 1, size - 1, ROUTE_PUT_BLOCKS, "/api/v1/blocks");
                break;
        case 1:
                check_body(bytes + 1, size - 1, ROUTE_PUT_FACTS,
                        "/api/v1/facts/01000000-0000-0000-0000-000000000000");
                break;
        case 2:
                check_body(bytes + 1, size - 1, ROUTE_PUT_PLAN, "/api/v1/plans/*");
                break;
        default:
                check_parameters(bytes + 1, size - 1);
        }
        return 0;
}
