#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "collectord/finding.h"

#define STEP_US INT64_C(10000000)

struct node {
        char folder[64];
        struct store *store;
        struct store_reader *reader;
        struct findings *findings;
        struct id cluster;
        int64_t now_us;
};

static int setup(void **state)
{
        struct node *node = calloc(1, sizeof(*node));
        char *message = NULL;

        if (!node)
                return -1;
        strcpy(node->folder, "/tmp/strata-test-XXXXXX");
        if (!mkdtemp(node->folder) || store_open(node->folder, &node->store, &message) < 0 ||
                store_reader_open(node->folder, &node->reader) < 0 ||
                findings_new(&node->findings) < 0)
                return -1;
        memset(node->cluster.bytes, 7, sizeof(node->cluster.bytes));
        node->now_us = 1000 * STEP_US;
        *state = node;
        return 0;
}

static int teardown(void **state)
{
        struct node *node = *state;
        char command[128];

        findings_free(node->findings);
        store_reader_close(node->reader);
        store_close(node->store);
        snprintf(command, sizeof(command), "rm -r '%s'", node->folder);
        if (system(command) != 0)
                return -1;
        free(node);
        return 0;
}

static void save(struct node *node)
{
        assert_int_equal(store_begin(node->store), 0);
        assert_int_equal(findings_put(node->findings, node->store, node->now_us), 0);
        assert_int_equal(store_commit(node->store), 0);
        findings_stored(node->findings);
}

/* One evaluation; @rules: "slow_disk/sda osd_cpu/osd.1", the bottleneck first, "" for none. */
static void say(struct node *node, const char *rules)
{
        struct finding_evaluation evaluation = {
                .cluster = node->cluster,
                .now_us = node->now_us,
                .from_us = node->now_us - 2 * STEP_US,
                .to_us = node->now_us,
                .verdict = calloc(1, sizeof(*evaluation.verdict)),
        };
        struct verdict *verdict = evaluation.verdict;
        static const char *const names[] = {"slow_disk", "osd_cpu"};

        assert_non_null(verdict);
        strcpy(verdict->sentence, "Nothing stands out.");
        while (*rules) {
                struct verdict_finding *finding = &verdict->findings[verdict->n];
                size_t length = strcspn(rules, "/");

                /* Rules are static text. */
                for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                        if (strlen(names[i]) == length && strncmp(names[i], rules, length) == 0)
                                finding->rule = names[i];
                assert_non_null(finding->rule);
                rules += length + 1;
                length = strcspn(rules, " ");
                snprintf(finding->entity, sizeof(finding->entity), "%.*s", (int)length, rules);
                verdict->n++;
                finding->advice = "Do something.";
                finding->layer = VERDICT_STORAGE;
                finding->rank = VERDICT_RANK_SATURATED;
                finding->kind = VERDICT_DEVICE;
                finding->share = 0.5;
                strcpy(finding->sentence, "It takes 7 ms.");
                strcpy(finding->curves[finding->n_curves++], "/series?layer=storage");
                rules += length;
                rules += strspn(rules, " ");
        }
        verdict->bottleneck = verdict->n > 0;
        assert_int_equal(findings_update(node->findings, &evaluation), 0);
        finding_evaluation_done(&evaluation);
        save(node);
        node->now_us += STEP_US;
}

static void verdict_must_be(struct node *node, const char *rule, const char *entity)
{
        json_t *json = json_loads(findings_get_verdict(node->findings, &node->cluster), 0, NULL);
        const char *said = json_string_value(json_object_get(json, "rule"));
        const char *name =
                json_string_value(json_object_get(json_object_get(json, "entity"), "name"));

        assert_non_null(json);
        assert_string_equal(said ? said : "", rule);
        assert_string_equal(name ? name : "", entity);
        json_decref(json);
}

struct list {
        struct store_finding findings[8];
        char rules[8][32];
        size_t n;
};

static int add(void *userdata, const struct store_finding *finding)
{
        struct list *list = userdata;

        assert_true(list->n < 8);
        snprintf(list->rules[list->n], 32, "%s", finding->rule);
        list->findings[list->n++] = *finding;
        return 0;
}

static struct list read_all(struct node *node, bool open)
{
        const struct store_finding_filter filter = {
                .cluster = &node->cluster, .to_us = INT64_MAX, .open = open, .limit = 8};
        struct list list = {0};

        assert_int_equal(store_read_findings(node->reader, &filter, add, &list), 0);
        return list;
}

static void what_is_said_once_is_no_finding(void **state)
{
        say(*state, "");
        say(*state, "slow_disk/sda");
        say(*state, "");
        say(*state, "slow_disk/sda");
        assert_int_equal(read_all(*state, false).n, 0);
}

static void what_is_said_twice_begins_at_the_first_time(void **state)
{
        struct node *node = *state;
        int64_t begin_us = node->now_us;
        struct list list;

        say(node, "slow_disk/sda");
        say(node, "slow_disk/sda");
        list = read_all(node, true);
        assert_int_equal(list.n, 1);
        assert_string_equal(list.rules[0], "slow_disk");
        assert_int_equal(list.findings[0].begin_us, begin_us);
        assert_int_equal(list.findings[0].last_us, begin_us + STEP_US);
        assert_int_equal(list.findings[0].end_us, 0);
        assert_true(list.findings[0].bottleneck);
        verdict_must_be(node, "slow_disk", "sda");
}

static void a_finding_outlives_two_evaluations_that_do_not_have_it(void **state)
{
        for (unsigned i = 0; i < 3; i++) {
                say(*state, "slow_disk/sda");
                say(*state, "slow_disk/sda");
                say(*state, "");
                say(*state, "");
        }
        assert_int_equal(read_all(*state, false).n, 1);
        assert_int_equal(read_all(*state, true).n, 1);
}

static void a_finding_ends_when_it_was_last_said(void **state)
{
        struct node *node = *state;
        int64_t begin_us = node->now_us;
        struct list list;

        say(node, "slow_disk/sda");
        say(node, "slow_disk/sda");
        say(node, "");
        say(node, "");
        say(node, "");
        list = read_all(node, false);
        assert_int_equal(list.n, 1);
        assert_int_equal(list.findings[0].end_us, begin_us + STEP_US);
        assert_int_equal(read_all(node, true).n, 0);
        verdict_must_be(node, "", "");
}

static void a_finding_that_comes_again_is_another_one(void **state)
{
        for (unsigned i = 0; i < 2; i++) {
                say(*state, "slow_disk/sda");
                say(*state, "slow_disk/sda");
                for (unsigned k = 0; k < 4; k++)
                        say(*state, "");
        }
        assert_int_equal(read_all(*state, false).n, 2);
}

static void the_verdict_does_not_flap_between_two_that_take_turns(void **state)
{
        say(*state, "slow_disk/sda");
        say(*state, "slow_disk/sda");
        for (unsigned i = 0; i < 10; i++) {
                say(*state, "osd_cpu/osd.1 slow_disk/sda");
                verdict_must_be(*state, "slow_disk", "sda");
                say(*state, "slow_disk/sda osd_cpu/osd.1");
                verdict_must_be(*state, "slow_disk", "sda");
        }
        say(*state, "osd_cpu/osd.1 slow_disk/sda");
        say(*state, "osd_cpu/osd.1 slow_disk/sda");
        verdict_must_be(*state, "osd_cpu", "osd.1");
        assert_int_equal(read_all(*state, true).n, 2);
}

static void a_new_collector_goes_on_with_what_was_open(void **state)
{
        struct node *node = *state;
        struct list list;

        say(node, "slow_disk/sda");
        say(node, "slow_disk/sda");
        list = read_all(node, true);
        findings_free(node->findings);
        assert_int_equal(findings_new(&node->findings), 0);
        assert_int_equal(findings_load(node->findings, node->reader), 0);
        say(node, "slow_disk/sda");
        assert_int_equal(read_all(node, false).n, 1);
        assert_int_equal(read_all(node, true).findings[0].begin_us, list.findings[0].begin_us);
        assert_true(read_all(node, true).findings[0].last_us > list.findings[0].last_us);
}

static void what_was_open_when_the_collector_ended_ends_when_nobody_says_it(void **state)
{
        struct node *node = *state;

        say(node, "slow_disk/sda");
        say(node, "slow_disk/sda");
        findings_free(node->findings);
        assert_int_equal(findings_new(&node->findings), 0);
        assert_int_equal(findings_load(node->findings, node->reader), 0);
        for (unsigned i = 0; i < 3; i++)
                say(node, "");
        assert_int_equal(read_all(node, true).n, 0);
        assert_int_equal(read_all(node, false).n, 1);
}

static void a_cluster_that_is_gone_keeps_nothing_open(void **state)
{
        struct node *node = *state;

        say(node, "slow_disk/sda");
        say(node, "slow_disk/sda");
        for (unsigned i = 0; i < 3; i++) {
                findings_forget(node->findings, NULL, 0);
                save(node);
        }
        assert_int_equal(read_all(node, true).n, 0);
}

static void what_could_not_be_stored_is_stored_the_next_time(void **state)
{
        struct node *node = *state;
        struct finding_evaluation evaluation = {.cluster = node->cluster};

        say(node, "slow_disk/sda");
        evaluation.now_us = node->now_us;
        evaluation.verdict = calloc(1, sizeof(*evaluation.verdict));
        assert_non_null(evaluation.verdict);
        evaluation.verdict->findings[evaluation.verdict->n++] =
                (struct verdict_finding){.rule = "slow_disk",
                        .advice = "",
                        .entity = "sda",
                        .layer = VERDICT_STORAGE,
                        .kind = VERDICT_DEVICE,
                        .sentence = "."};
        assert_int_equal(findings_update(node->findings, &evaluation), 0);
        finding_evaluation_done(&evaluation);
        assert_int_equal(store_begin(node->store), 0);
        assert_int_equal(findings_put(node->findings, node->store, node->now_us), 0);
        assert_int_equal(store_rollback(node->store), 0);
        assert_int_equal(read_all(node, true).n, 0);
        save(node);
        assert_int_equal(read_all(node, true).n, 1);
}

static void old_findings_go_and_open_ones_stay(void **state)
{
        struct node *node = *state;

        say(node, "slow_disk/sda slow_disk/sdb");
        say(node, "slow_disk/sda slow_disk/sdb");
        for (unsigned i = 0; i < 4; i++)
                say(node, "slow_disk/sdb");
        assert_int_equal(read_all(node, false).n, 2);
        node->now_us += FINDING_KEEP_US;
        save(node);
        assert_int_equal(read_all(node, false).n, 1);
        assert_int_equal(read_all(node, true).n, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(what_is_said_once_is_no_finding),
                TEST(what_is_said_twice_begins_at_the_first_time),
                TEST(a_finding_outlives_two_evaluations_that_do_not_have_it),
                TEST(a_finding_ends_when_it_was_last_said),
                TEST(a_finding_that_comes_again_is_another_one),
                TEST(the_verdict_does_not_flap_between_two_that_take_turns),
                TEST(a_new_collector_goes_on_with_what_was_open),
                TEST(what_was_open_when_the_collector_ended_ends_when_nobody_says_it),
                TEST(a_cluster_that_is_gone_keeps_nothing_open),
                TEST(what_could_not_be_stored_is_stored_the_next_time),
                TEST(old_findings_go_and_open_ones_stay),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
