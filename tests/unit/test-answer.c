#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agentd/answer.h"

struct case_ {
        int status;
        const char *body;
        enum answer_verdict verdict;
};

static void blocks(int status, const char *body, struct answer *ret)
{
        answer_read_blocks(status, body, strlen(body), 3, ret);
}

static void only_the_collectors_own_words_acknowledge(void **state)
{
        static const struct case_ cases[] = {
                {200, "{\"accepted\":3,\"duplicates\":0}", ANSWER_STORED},
                {200, "{\"accepted\":1,\"duplicates\":2,\"more\":[]}", ANSWER_STORED},
                {200, "{\"accepted\":2,\"duplicates\":0}", ANSWER_RETRY},
                {200, "{\"accepted\":4,\"duplicates\":0}", ANSWER_RETRY},
                {200, "{\"accepted\":5,\"duplicates\":-2}", ANSWER_RETRY},
                {200, "{\"accepted\":\"3\",\"duplicates\":0}", ANSWER_RETRY},
                {200, "{\"accepted\":3}", ANSWER_RETRY},
                {200, "[3,0]", ANSWER_RETRY},
                {200, "<html>", ANSWER_RETRY},
                {200, "", ANSWER_RETRY},
                {204, "", ANSWER_RETRY},
                {201, "{\"accepted\":3,\"duplicates\":0}", ANSWER_RETRY},
                {302, "", ANSWER_RETRY},
        };
        struct answer answer;

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                blocks(cases[i].status, cases[i].body, &answer);
                assert_int_equal(answer.verdict, cases[i].verdict);
                answer_done(&answer);
        }
}

static void only_a_named_block_is_refused(void **state)
{
        static const struct case_ cases[] = {
                {400, "{\"block\":0}", ANSWER_REFUSED},
                {409, "{\"block\":2}", ANSWER_REFUSED},
                {413, "{\"block\":1}", ANSWER_REFUSED},
                {415, "{\"block\":1}", ANSWER_REFUSED},
                {400, "{\"block\":3}", ANSWER_RETRY},
                {400, "{\"block\":-1}", ANSWER_RETRY},
                {400, "{\"block\":1.5}", ANSWER_RETRY},
                {400, "{}", ANSWER_RETRY},
                {400, "", ANSWER_RETRY},
                {413, "<html>", ANSWER_SMALLER},
                {401, "{\"block\":0}", ANSWER_RETRY},
                {403, "{\"block\":0}", ANSWER_RETRY},
                {429, "{\"block\":0}", ANSWER_RETRY},
                {500, "{\"block\":0}", ANSWER_RETRY},
                {507, "{\"block\":0}", ANSWER_RETRY},
                {-110, "", ANSWER_RETRY},
        };
        struct answer answer;

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                blocks(cases[i].status, cases[i].body, &answer);
                assert_int_equal(answer.verdict, cases[i].verdict);
                if (answer.verdict == ANSWER_REFUSED)
                        assert_int_equal(answer.gap, cases[i].status != 409);
                answer_done(&answer);
        }
}

static void the_plan_comes_with_an_acknowledgement_only(void **state)
{
        struct answer answer;

        (void)state;
        blocks(200, "{\"accepted\":3,\"duplicates\":0,\"plan\":{\"revision\":7}}", &answer);
        assert_int_equal(json_integer_value(json_object_get(answer.plan, "revision")), 7);
        answer_done(&answer);
        blocks(500, "{\"accepted\":3,\"duplicates\":0,\"plan\":{\"revision\":7}}", &answer);
        assert_null(answer.plan);
        answer_done(&answer);
}

static void a_detail_cannot_write_lines_into_the_log(void **state)
{
        struct answer answer;

        (void)state;
        blocks(500, "{\"detail\":\"a\\nb\\u001b[31m\"}", &answer);
        assert_string_equal(answer.detail, "a b [31m");
        answer_done(&answer);
}

static void delays_grow_to_a_minute_and_are_spread(void **state)
{
        struct backoff backoff = {0};

        (void)state;
        for (unsigned i = 0; i < 100; i++) {
                uint64_t most = i < 6 ? BACKOFF_MIN_US << i : BACKOFF_MAX_US;
                struct backoff same = backoff, zero = backoff;

                assert_int_equal(backoff_next(&zero, 0, 0), 0);
                assert_int_equal(backoff_next(&same, most, 0), most);
                assert_in_range(backoff_next(&backoff, UINT64_MAX - i, 0), 0, most);
        }
}

static void waits_at_least_as_long_as_asked_but_not_for_ever(void **state)
{
        struct backoff backoff = {0};

        (void)state;
        assert_int_equal(backoff_next(&backoff, 0, 7000000), 7000000);
        assert_int_equal(backoff_next(&backoff, 0, UINT64_MAX), BACKOFF_ASKED_MAX_US);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_the_collectors_own_words_acknowledge),
                cmocka_unit_test(only_a_named_block_is_refused),
                cmocka_unit_test(the_plan_comes_with_an_acknowledgement_only),
                cmocka_unit_test(a_detail_cannot_write_lines_into_the_log),
                cmocka_unit_test(delays_grow_to_a_minute_and_are_spread),
                cmocka_unit_test(waits_at_least_as_long_as_asked_but_not_for_ever),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
