/* Which agent samples a cluster, over a few simulated minutes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collectord/election.h"
#include "collectord/plan-list.h"

#define SECOND UINT64_C(1000000)
#define INTERVAL (10 * SECOND)

static const struct id a = {{1}}, b = {{2}};
static const struct id east = {{101}}, west = {{102}}, unknown;

static struct election *make(void)
{
        struct election *election = NULL;

        assert_int_equal(election_new(&election), 0);
        return election;
}

static struct election_voice voice_of(const struct id *host, const struct id *cluster, bool failing)
{
        struct election_voice voice = {.host = *host, .interval_us = INTERVAL};

        if (!cluster)
                return voice;
        voice.n_clusters = 1;
        voice.clusters[0] = *cluster;
        voice.failing[0] = failing;
        return voice;
}

/* Whether @host, who names @cluster (NULL: none), is elected for it. */
static bool hear(
        struct election *election, const struct id *host, const struct id *cluster, uint64_t second)
{
        struct election_voice voice = voice_of(host, cluster, false);
        struct election_result result;

        election_hear(election, &voice, second * SECOND, &result);
        return result.n_clusters > 0;
}

static bool hear_failing(struct election *election, const struct id *host, uint64_t second)
{
        struct election_voice voice = voice_of(host, &east, true);
        struct election_result result;

        election_hear(election, &voice, second * SECOND, &result);
        return result.n_clusters > 0;
}

static void elects_an_agent_that_is_alone_at_once(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        assert_true(hear(election, &a, &east, 1));
        assert_true(id_equal(election_get_seat(election, &east), &a));
}

static void never_elects_an_agent_without_the_source(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        assert_false(hear(election, &a, NULL, 1));
        assert_true(hear(election, &b, &east, 2));
        assert_false(hear(election, &b, NULL, 3)); /* it lost it */
        assert_true(hear(election, &a, &east, 4));
}

static void keeps_the_seat_while_its_agent_speaks(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        assert_true(hear(election, &a, &east, 1));
        for (uint64_t second = 2; second < 100; second += 10) {
                assert_false(hear(election, &b, &east, second));
                assert_true(hear(election, &a, &east, second + 1));
        }
        assert_int_equal(election_count_changes(election), 1);
}

/* Agents speak each half interval, at any phase: the other is elected within two of the death. */
static void elects_another_within_two_intervals(void **state)
{
        (void)state;
        for (uint64_t phase = 0; phase < INTERVAL / 2; phase += SECOND / 4) {
                CLEANUP(election) struct election *election = make();
                struct election_voice voice = voice_of(&a, &east, false);
                struct election_result result = {0};
                uint64_t death_us = 100 * SECOND, now_us;

                election_hear(election, &voice, death_us, &result);
                voice.host = b;
                result.n_clusters = 0;
                for (now_us = death_us + phase; result.n_clusters == 0; now_us += INTERVAL / 2)
                        election_hear(election, &voice, now_us, &result);
                assert_true(now_us - INTERVAL / 2 - death_us <= 2 * INTERVAL - INTERVAL / 4);
        }
}

static void gives_the_seat_to_another_after_silence_and_not_back(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        assert_true(hear(election, &a, &east, 1));
        assert_false(hear(election, &b, &east, 13));
        assert_true(hear(election, &b, &east, 14));
        assert_false(hear(election, &a, &east, 18));
        assert_true(hear(election, &b, &east, 19));
}

static void bears_a_second_of_lateness_at_the_shortest_intervals(void **state)
{
        CLEANUP(election) struct election *election = make();
        struct election_voice voice = voice_of(&a, &east, false);
        struct election_result result;

        (void)state;
        voice.interval_us = SECOND / 10;
        election_hear(election, &voice, 10 * SECOND, &result);
        voice.host = b;
        election_hear(election, &voice, 11 * SECOND + SECOND / 10, &result);
        assert_int_equal(result.n_clusters, 0);
}

static void has_one_seat_for_each_cluster(void **state)
{
        CLEANUP(election) struct election *election = make();
        struct election_voice both = voice_of(&a, &east, false);
        struct election_result result;

        (void)state;
        both.clusters[both.n_clusters++] = west;
        assert_true(hear(election, &b, &west, 1));
        election_hear(election, &both, SECOND, &result);
        assert_int_equal(result.n_clusters, 1);
        assert_true(id_equal(&result.clusters[0], &east));
        /* When b is silent, a has both; when it speaks again, a keeps them. */
        election_hear(election, &both, 12 * SECOND, &result);
        election_hear(election, &both, 20 * SECOND, &result);
        assert_int_equal(result.n_clusters, 2);
        assert_false(hear(election, &b, &west, 21));
}

static void gives_the_seat_of_one_that_fails_to_one_that_does_not(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        assert_true(hear(election, &a, &east, 1));
        assert_true(hear_failing(election, &a, 2)); /* there is nobody better */
        assert_true(hear(election, &b, &east, 3));
        assert_false(hear(election, &a, &east, 4));
        /* Both fail: it stays where it is, and wanders no more. */
        assert_true(hear_failing(election, &b, 5));
        assert_false(hear_failing(election, &a, 6));
        assert_true(hear_failing(election, &b, 7));
}

static void lets_one_at_a_time_find_out_what_its_cluster_is(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        assert_true(hear(election, &a, &east, 1));
        assert_true(hear(election, &b, &unknown, 2));
        assert_false(hear(election, &(struct id){{3}}, &unknown, 3));
        /* It is east, which has its own; the next may find out. */
        assert_false(hear(election, &b, &east, 4));
        assert_true(hear(election, &(struct id){{3}}, &unknown, 5));
        assert_true(hear(election, &(struct id){{3}}, &west, 6));
}

static void gives_up_the_seat_of_a_cluster_no_longer_named(void **state)
{
        CLEANUP(election) struct election *election = make();

        (void)state;
        assert_true(hear(election, &a, &east, 1));
        assert_true(hear(election, &a, &west, 2));
        assert_null(election_get_seat(election, &east));
        assert_true(hear(election, &b, &east, 3));
}

/* At any time at most one agent of a cluster is elected, whatever comes in which order. */
static void never_elects_two_of_one_cluster(void **state)
{
        enum { AGENTS = 40, CLUSTERS = 4 };
        CLEANUP(election) struct election *election = make();
        struct election_result results[AGENTS] = {0};
        unsigned seed = 20161130;

        (void)state;
        print_message("# seed %u\n", seed);
        srand(seed);
        for (uint64_t step = 0; step < 20000; step++) {
                int agent = rand() % AGENTS;
                struct election_voice voice = {
                        .host = {{(uint8_t)(1 + agent)}}, .interval_us = INTERVAL};

                for (uint8_t i = 0; i < CLUSTERS; i++) {
                        if (rand() % 3 == 0)
                                continue;
                        voice.failing[voice.n_clusters] = rand() % 10 == 0;
                        voice.clusters[voice.n_clusters++] = (struct id){{(uint8_t)(100 + i)}};
                }
                election_hear(election, &voice, step * SECOND, &results[agent]);
                for (uint32_t i = 0; i < results[agent].n_clusters; i++) {
                        const struct id *seat =
                                election_get_seat(election, &results[agent].clusters[i]);

                        assert_true(seat && id_equal(seat, &voice.host));
                }
                for (uint32_t i = 0; i < voice.n_clusters; i++)
                        assert_non_null(election_get_seat(election, &voice.clusters[i]));
        }
}

static void the_revision_of_a_plan_tells_for_which_clusters(void **state)
{
        struct election_result none = {0}, first = {{east}, 1}, second = {{west}, 1};
        struct election_result both = {{east, west}, 2}, reversed = {{west, east}, 2};

        (void)state;
        assert_int_equal(plan_effective_revision(0, &none), 0);
        assert_int_not_equal(plan_effective_revision(7, &first), plan_effective_revision(7, &none));
        assert_int_not_equal(
                plan_effective_revision(7, &first), plan_effective_revision(7, &second));
        assert_int_not_equal(plan_effective_revision(7, &first), plan_effective_revision(7, &both));
        assert_int_equal(plan_effective_revision(7, &both), plan_effective_revision(7, &reversed));
        assert_int_equal(plan_stored_revision(plan_effective_revision(7, &both)), 7);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(elects_an_agent_that_is_alone_at_once),
                cmocka_unit_test(never_elects_an_agent_without_the_source),
                cmocka_unit_test(keeps_the_seat_while_its_agent_speaks),
                cmocka_unit_test(elects_another_within_two_intervals),
                cmocka_unit_test(gives_the_seat_to_another_after_silence_and_not_back),
                cmocka_unit_test(bears_a_second_of_lateness_at_the_shortest_intervals),
                cmocka_unit_test(has_one_seat_for_each_cluster),
                cmocka_unit_test(gives_the_seat_of_one_that_fails_to_one_that_does_not),
                cmocka_unit_test(lets_one_at_a_time_find_out_what_its_cluster_is),
                cmocka_unit_test(gives_up_the_seat_of_a_cluster_no_longer_named),
                cmocka_unit_test(never_elects_two_of_one_cluster),
                cmocka_unit_test(the_revision_of_a_plan_tells_for_which_clusters),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
