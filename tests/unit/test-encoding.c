/* How an answer leaves: its tag, and compressed as the caller likes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <zlib.h>
#include <zstd.h>

#include "collectord/encoding.h"

#define BODY_SIZE 100000u

static void fill(struct api_response *response, size_t size)
{
        char *body = malloc(size + 1);

        assert_non_null(body);
        for (size_t i = 0; i < size; i++)
                body[i] = (char)('0' + i * i % 10);
        assert_int_equal(api_text(response, 200, body, size), 0);
}

/* Applies the headers (NULL: not given) to an answer of @size bytes. */
static struct api_response apply(const char *accept, const char *known, size_t size)
{
        struct api_parameter headers[2];
        struct api_request request = {.headers = headers};
        struct api_response response = {0};

        if (accept)
                headers[request.n_headers++] = (struct api_parameter){"accept-encoding", accept};
        if (known)
                headers[request.n_headers++] = (struct api_parameter){"if-none-match", known};
        fill(&response, size);
        encoding_apply(&request, &response);
        return response;
}

static const char *header_of(const struct api_response *response, const char *name)
{
        for (size_t i = 0; i < API_HEADERS_MAX && response->header_name[i]; i++)
                if (strcmp(response->header_name[i], name) == 0)
                        return response->header_value[i];
        return "";
}

static void takes_the_best_of_what_the_caller_accepts(void **state)
{
        static const struct {
                const char *accept, *encoding;
        } cases[] = {{NULL, ""}, {"", ""}, {"br", ""}, {"gzip", "gzip"}, {"zstd", "zstd"},
                {"gzip, deflate, br, zstd", "zstd"}, {"GZIP;q=0.5", "gzip"}, {"gzip;q=0", ""},
                {"zstd;q=0, gzip;q=1.0", "gzip"}, {" , gzip ", "gzip"}, {"xgzip, zstdx", ""},
                {"gzip;q=0.0,zstd; q=0", ""}, {",,,,", ""}, {"identity", ""}};

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct api_response response = apply(cases[i].accept, NULL, BODY_SIZE);

                assert_string_equal(header_of(&response, "Content-Encoding"), cases[i].encoding);
                assert_string_equal(header_of(&response, "Vary"), "Accept-Encoding");
                assert_int_equal(response.status, 200);
                api_response_done(&response);
        }
}

static void zstd_and_gzip_give_the_same_bytes_back(void **state)
{
        struct api_response plain = apply(NULL, NULL, BODY_SIZE);
        struct api_response zstd = apply("zstd", NULL, BODY_SIZE);
        struct api_response gzip = apply("gzip", NULL, BODY_SIZE);
        char *back = malloc(BODY_SIZE + 1);
        z_stream stream = {.next_in = (Bytef *)gzip.body,
                .avail_in = (uInt)gzip.body_size,
                .next_out = (Bytef *)back,
                .avail_out = BODY_SIZE + 1};

        (void)state;
        assert_true(zstd.body_size < BODY_SIZE / 2 && gzip.body_size < BODY_SIZE / 2);
        assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
        assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
        assert_int_equal(stream.total_out, BODY_SIZE);
        assert_memory_equal(back, plain.body, BODY_SIZE);
        inflateEnd(&stream);
        assert_int_equal(
                ZSTD_decompress(back, BODY_SIZE + 1, zstd.body, zstd.body_size), BODY_SIZE);
        assert_memory_equal(back, plain.body, BODY_SIZE);
        free(back);
        api_response_done(&plain);
        api_response_done(&zstd);
        api_response_done(&gzip);
}

static void a_short_answer_stays_as_it_is(void **state)
{
        struct api_response response = apply("zstd, gzip", NULL, ENCODING_BYTES_MIN - 1);

        (void)state;
        assert_string_equal(header_of(&response, "Content-Encoding"), "");
        assert_int_equal(response.body_size, ENCODING_BYTES_MIN - 1);
        api_response_done(&response);
}

static void who_has_the_answer_gets_no_body(void **state)
{
        struct api_response first = apply("gzip", NULL, BODY_SIZE);
        const char *tag = first.tag;
        char list[128];

        (void)state;
        assert_int_equal(strncmp(tag, "W/\"", 3), 0);
        snprintf(list, sizeof(list), "\"other\", %s", tag);
        const char *known[] = {tag, tag + 2, list, "*"};
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
                struct api_response again = apply("zstd", known[i], BODY_SIZE);

                assert_int_equal(again.status, 304);
                assert_int_equal(again.body_size, 0);
                assert_string_equal(again.tag, tag);
                assert_string_equal(header_of(&again, "Content-Encoding"), "");
                api_response_done(&again);
        }
        api_response_done(&first);
}

static void another_answer_has_another_tag(void **state)
{
        struct api_response first = apply(NULL, NULL, BODY_SIZE);
        struct api_response other = apply(NULL, first.tag, BODY_SIZE - 1);
        struct api_response cut = apply(NULL, "W/\"", BODY_SIZE);

        (void)state;
        assert_int_equal(other.status, 200);
        assert_int_equal(cut.status, 200);
        assert_string_not_equal(first.tag, other.tag);
        api_response_done(&first);
        api_response_done(&other);
        api_response_done(&cut);
}

static void a_refusal_has_neither_tag_nor_compression(void **state)
{
        struct api_parameter headers[] = {{"accept-encoding", "zstd"}, {"if-none-match", "*"}};
        struct api_request request = {.headers = headers, .n_headers = 2};
        struct api_response response = {0};

        (void)state;
        fill(&response, BODY_SIZE);
        response.status = 503;
        encoding_apply(&request, &response);
        assert_int_equal(response.status, 503);
        assert_int_equal(response.body_size, BODY_SIZE);
        assert_string_equal(response.tag, "");
        api_response_done(&response);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(takes_the_best_of_what_the_caller_accepts),
                cmocka_unit_test(zstd_and_gzip_give_the_same_bytes_back),
                cmocka_unit_test(a_short_answer_stays_as_it_is),
                cmocka_unit_test(who_has_the_answer_gets_no_body),
                cmocka_unit_test(another_answer_has_another_tag),
                cmocka_unit_test(a_refusal_has_neither_tag_nor_compression),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
