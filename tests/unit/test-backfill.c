#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agentd/backfill.h"

#define SECOND 1000000u

static void keeps_its_rate_whatever_the_batches_and_pauses(void **state)
{
        struct backfill backfill = {.rate = 10000};
        uint64_t now_us = 77 * SECOND, sent = 0, begin_us = now_us;

        (void)state;
        for (unsigned i = 0; i < 1000; i++) {
                size_t size = 1 + i * 37 % 25000;

                if (i == 500)
                        now_us += 3600ull * SECOND;
                if (now_us < backfill.next_us) {
                        assert_false(backfill_is_due(&backfill, backfill.next_us - 1));
                        now_us = backfill.next_us;
                }
                assert_true(backfill_is_due(&backfill, now_us));
                backfill_charge(&backfill, size, now_us);
                sent += size;
        }
        /* The pause is not made up for. */
        assert_in_range(sent, (now_us - begin_us - 3600ull * SECOND) / 100 - 50000,
                (now_us - begin_us - 3600ull * SECOND) / 100 + 50000);
}

static void a_batch_is_at_most_what_a_second_allows(void **state)
{
        struct backfill backfill = {.rate = 10000};

        (void)state;
        assert_int_equal(backfill_limit(&backfill, 1 << 20), 10000);
        assert_int_equal(backfill_limit(&backfill, 500), 500);
}

static void without_a_rate_there_is_no_limit(void **state)
{
        struct backfill backfill = {0};

        (void)state;
        backfill_charge(&backfill, 1 << 20, 1);
        assert_true(backfill_is_due(&backfill, 1));
        assert_int_equal(backfill_limit(&backfill, 1 << 20), 1 << 20);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(keeps_its_rate_whatever_the_batches_and_pauses),
                cmocka_unit_test(a_batch_is_at_most_what_a_second_allows),
                cmocka_unit_test(without_a_rate_there_is_no_limit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
