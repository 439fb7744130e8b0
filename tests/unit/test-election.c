/* Which agent samples a cluster, over a few simulated minutes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "collectord/election.h"

#define SECOND UINT64_C(1000000)
#define PATIENCE (15 * SECOND)

static const struct id a = {{1}}, b = {{2}}, c = {{3}};
static const struct id east = {{101}}, west = {{102}};

static struct election *make(void)
{
        struct election *election = NULL;

        assert_int_equal(election_new(&election), 0);
        return election;
}

static bool hear(struct election *election, const struct id *host, bool able, uint64_t second)
{
        bool elected = false;

        assert_int_equal(
                election_hear(election, host, able, second * SECOND, PATIENCE, &elected), 0);
        assert_int_equal(elected, election_has_seat(election, host));
        return elected;
}

static void elects_an_agent_that_is_alone_at_once(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        assert_true(hear(election, &a, true, 1));
}

static void never_elects_an_agent_without_the_source(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        assert_false(hear(election, &a, false, 1));
        assert_true(hear(election, &b, true, 2));
        assert_false(hear(election, &b, false, 3)); /* it lost it */
        assert_true(hear(election, &a, true, 4));
}

static void keeps_the_seat_while_its_agent_speaks(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        assert_true(hear(election, &a, true, 1));
        for (uint64_t second = 2; second < 100; second += 10) {
                assert_false(hear(election, &b, true, second));
                assert_true(hear(election, &a, true, second + 1));
        }
        assert_int_equal(election_count_changes(election), 1);
}

static void gives_the_seat_to_another_after_silence_and_not_back(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        assert_true(hear(election, &a, true, 1));
        assert_false(hear(election, &b, true, 15));
        assert_true(hear(election, &b, true, 17));
        assert_false(hear(election, &a, true, 18));
        assert_true(hear(election, &b, true, 19));
}

static void has_one_seat_for_each_cluster(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        election_learn(election, &a, &east);
        election_learn(election, &b, &west);
        election_learn(election, &c, &east);
        assert_true(hear(election, &a, true, 1));
        assert_true(hear(election, &b, true, 1));
        assert_false(hear(election, &c, true, 1));
        assert_true(hear(election, &c, true, 20));
        assert_false(hear(election, &a, true, 21));
        assert_true(hear(election, &b, true, 21));
}

static void lets_an_agent_of_an_unknown_cluster_in_only_when_nobody_sits(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        election_learn(election, &a, &east);
        assert_true(hear(election, &a, true, 1));
        assert_false(hear(election, &b, true, 2));
        assert_true(hear(election, &b, true, 20));
}

static void keeps_the_seat_when_the_agent_s_cluster_becomes_known(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        assert_true(hear(election, &a, true, 1));
        election_learn(election, &a, &east);
        assert_true(hear(election, &a, true, 2));
        assert_int_equal(election_count_changes(election), 1);
        /* One of another cluster is no rival any more. */
        election_learn(election, &b, &west);
        assert_true(hear(election, &b, true, 3));
}

static void gives_up_the_seat_when_the_cluster_turns_out_to_have_its_own(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        election_learn(election, &a, &east);
        assert_true(hear(election, &a, true, 1));
        assert_true(hear(election, &b, true, 20)); /* a was silent; of any cluster */
        assert_true(hear(election, &a, true, 21));
        election_learn(election, &b, &east);
        assert_false(hear(election, &b, true, 22));
        assert_true(hear(election, &a, true, 23));
}

/* At any time at most one agent of a cluster is elected, whatever comes in which order. */
static void never_elects_two_of_one_cluster(void **state)
{
        enum { AGENTS = 40, CLUSTERS = 4 };
        CLEANUP(election) struct election *election = make();
        unsigned seed = 20161130;

        (void)state;
        print_message("# seed %u\n", seed);
        srand(seed);
        for (uint64_t step = 0; step < 20000; step++) {
                struct id host = {{(uint8_t)(1 + rand() % AGENTS)}};
                struct id cluster = {{(uint8_t)(100 + host.bytes[0] % CLUSTERS)}};
                unsigned seats[CLUSTERS] = {0};

                if (rand() % 4 == 0)
                        election_learn(election, &host, &cluster);
                hear(election, &host, rand() % 20 != 0, step);
                for (uint8_t i = 1; i <= AGENTS; i++)
                        seats[i % CLUSTERS] += election_has_seat(election, &(struct id){{i}});
                /* An agent of an unknown cluster may sit beside one that was silent. */
                for (int i = 0; i < CLUSTERS; i++)
                        assert_true(seats[i] <= (step < 500 ? 2 : 1));
        }
        assert_int_equal(election_count_agents(election), AGENTS);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(elects_an_agent_that_is_alone_at_once),
                cmocka_unit_test(never_elects_an_agent_without_the_source),
                cmocka_unit_test(keeps_the_seat_while_its_agent_speaks),
                cmocka_unit_test(gives_the_seat_to_another_after_silence_and_not_back),
                cmocka_unit_test(has_one_seat_for_each_cluster),
                cmocka_unit_test(lets_an_agent_of_an_unknown_cluster_in_only_when_nobody_sits),
                cmocka_unit_test(keeps_the_seat_when_the_agent_s_cluster_becomes_known),
                cmocka_unit_test(gives_up_the_seat_when_the_cluster_turns_out_to_have_its_own),
                cmocka_unit_test(never_elects_two_of_one_cluster),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
