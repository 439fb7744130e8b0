/* Tokens: whom a file lets in, and what is said about a file that is wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "collectord/auth.h"

#define HOST "7d6f3c1e-93a4-4a34-8f0e-0c2f5a1d9b11"
/* SHA-256 of "secret", as sha256sum prints it. */
#define SECRET_HASH "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"

static char *write_file(const char *text)
{
        char *path = strdup("/tmp/strata-auth-XXXXXX");
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
        return path;
}

static struct auth *open_text(const char *text)
{
        CLEANUP(str) char *path = write_file(text), *message = NULL;
        struct auth *auth = NULL;
        int r = auth_open(path, &auth, &message);

        unlink(path);
        if (r < 0)
                fail_msg("%s", message);
        return auth;
}

static void lets_in_who_is_listed_with_the_role_of_the_line(void **state)
{
        CLEANUP(auth)
        struct auth *auth = open_text("# tokens\n\n"
                                      "  reader grafana " SECRET_HASH "\n");
        struct id host;

        (void)state;
        assert_int_equal(auth_check(auth, "Bearer secret", &host), API_ROLE_READER);
        assert_int_equal(auth_check(auth, "bearer  secret", &host), API_ROLE_READER);
        assert_int_equal(auth_check(auth, "Bearer secrex", &host), API_ROLE_NONE);
        assert_int_equal(auth_check(auth, "Bearer secret ", &host), API_ROLE_NONE);
        assert_int_equal(auth_check(auth, "Bearer ", &host), API_ROLE_NONE);
        assert_int_equal(auth_check(auth, "Basic secret", &host), API_ROLE_NONE);
        assert_int_equal(auth_check(auth, NULL, &host), API_ROLE_NONE);
        assert_int_equal(auth_check(auth, "Bearer " SECRET_HASH, &host), API_ROLE_NONE);
}

static void lets_nobody_in_by_an_empty_file(void **state)
{
        CLEANUP(auth) struct auth *auth = open_text("");
        struct id host;

        (void)state;
        assert_int_equal(auth_check(auth, "Bearer secret", &host), API_ROLE_NONE);
}

static void lets_in_each_of_many_tokens_that_it_made(void **state)
{
        enum { N = 300 };
        CLEANUP(auth) struct auth *auth = NULL;
        CLEANUP(str) char *text = strdup("");
        char *tokens[N];
        struct id host, wanted;

        (void)state;
        for (int i = 0; i < N; i++) {
                CLEANUP(str) char *line = NULL, *message = NULL, *before = text;
                bool agent = i % 2;

                assert_int_equal(auth_make_token(agent ? "agent" : "operator", agent ? HOST : "me",
                                         &tokens[i], &line, &message),
                        0);
                assert_true(strlen(tokens[i]) >= 43);
                assert_null(strstr(line, tokens[i]));
                assert_true(asprintf(&text, "%s%s\n", before, line) > 0);
        }
        auth = open_text(text);
        id_parse(HOST, &wanted);
        for (int i = 0; i < N; i++) {
                char header[128];

                snprintf(header, sizeof(header), "Bearer %s", tokens[i]);
                assert_int_equal(auth_check(auth, header, &host),
                        i % 2 ? API_ROLE_AGENT : API_ROLE_OPERATOR);
                assert_true(i % 2 ? id_equal(&host, &wanted) : id_is_zero(&host));
                free(tokens[i]);
        }
}

static void names_file_and_line_of_what_is_wrong(void **state)
{
        static const struct {
                const char *text, *place, *words;
        } cases[] = {
                {"reader a " SECRET_HASH "\nreader b 1234\n", ":2:", "SHA-256"},
                {"nobody a " SECRET_HASH "\n", ":1:", "agent, reader or operator"},
                {"agent node1 " SECRET_HASH "\n", ":1:", "host id"},
                {"# x\nreader " SECRET_HASH "\n", ":2:", "three words"},
                {"reader a " SECRET_HASH " more\n", ":1:", "three words"},
                {"reader a " SECRET_HASH "00\n", ":1:", "SHA-256"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                CLEANUP(str) char *path = write_file(cases[i].text), *message = NULL;
                CLEANUP(auth) struct auth *auth = NULL;

                assert_int_equal(auth_open(path, &auth, &message), -EINVAL);
                unlink(path);
                assert_non_null(strstr(message, path));
                assert_non_null(strstr(message, cases[i].place));
                assert_non_null(strstr(message, cases[i].words));
        }
}

static void names_a_file_that_is_missing(void **state)
{
        CLEANUP(str) char *message = NULL;
        CLEANUP(auth) struct auth *auth = NULL;

        (void)state;
        assert_int_equal(auth_open("/nonexistent/tokens", &auth, &message), -ENOENT);
        assert_non_null(strstr(message, "/nonexistent/tokens"));
}

static void makes_no_token_for_an_agent_without_a_host(void **state)
{
        CLEANUP(str) char *token = NULL, *line = NULL, *message = NULL;

        (void)state;
        assert_int_equal(auth_make_token("agent", "agent", &token, &line, &message), -EINVAL);
        assert_non_null(strstr(message, "host id"));
}

static void refuses_a_certificate_that_is_none(void **state)
{
        CLEANUP(str) char *message = NULL;

        (void)state;
        assert_int_equal(auth_check_certificate("not PEM", "nor this", &message), -EINVAL);
        assert_non_null(message);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lets_in_who_is_listed_with_the_role_of_the_line),
                cmocka_unit_test(lets_nobody_in_by_an_empty_file),
                cmocka_unit_test(lets_in_each_of_many_tokens_that_it_made),
                cmocka_unit_test(names_file_and_line_of_what_is_wrong),
                cmocka_unit_test(names_a_file_that_is_missing),
                cmocka_unit_test(makes_no_token_for_an_agent_without_a_host),
                cmocka_unit_test(refuses_a_certificate_that_is_none),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
