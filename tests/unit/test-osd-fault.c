/*
 * Broken and hostile OSDs: whatever one does costs its own samples and one line of log; the others
 * of the same row have theirs, and the row is no later than its budget.
 */
#include "osd-fixture.h"

/* Fault after fault, at first contact and in the middle of life. */
static void each_fault_costs_its_own_samples_and_one_line(void **state)
{
        (void)state;
        for (int first = 0; first < 2; first++) {
                for (enum fault fault = FAULT_GARBAGE; fault < FAULT_MAX_; fault++) {
                        struct fake good, bad;
                        struct node node;
                        uint64_t begin;

                        node_start(&node);
                        fake_start(&good, &node, 0);
                        fake_start(&bad, &node, 1);
                        if (first)
                                bad.fault = fault;
                        node_open(&node, NULL);
                        assert_int_equal(collect(&node), 0);
                        if (!first) {
                                assert_int_equal(node.sample.failures, 0);
                                bad.fault = fault;
                                lines_forget(&node);
                                begin = now_us();
                                assert_int_equal(collect(&node), 0);
                                assert_true(now_us() - begin < 3000000);
                                assert_int_equal(node.sample.n_entities, 2);
                        }
                        assert_int_equal(node.sample.failures, 1);
                        assert_int_equal(value(&node, "osd.0", METRIC_OSD_OP_W), 100);
                        assert_int_equal(value(&node, "osd.1", METRIC_OSD_OP_W), -1);
                        assert_non_null(strstr(node.lines, "osd.1: "));
                        assert_non_null(strstr(node.lines, bad.path));
                        assert_non_null(strstr(node.lines, reasons[fault]));
                        assert_int_equal(node.n_lines, first ? 2 : 1);
                        /* It is left alone for a while. */
                        begin = bad.questions;
                        assert_int_equal(collect(&node), 0);
                        assert_int_equal(node.sample.failures, 1);
                        assert_true(bad.questions == begin);
                        assert_int_equal(node.n_lines, first ? 2 : 1);
                        fake_stop(&good);
                        fake_stop(&bad);
                        node_stop(&node);
                }
        }
}

static void an_osd_that_answers_again_is_back_in_the_row(void **state)
{
        struct fake fake;
        struct node node;

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 0);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        fake.fault = FAULT_GARBAGE;
        lines_forget(&node);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.present[0], 0);
        fake.fault = FAULT_NONE;
        COLLECT_UNTIL(&node, node.sample.present[0]);
        assert_int_equal(node.n_lines, 2);
        assert_non_null(strstr(node.lines, "answers again"));
        fake_stop(&fake);
        node_stop(&node);
}

static void pauses_grow_while_an_osd_fails(void **state)
{
        struct fake fake;
        struct node node;
        uint64_t begin = now_us();

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 0);
        fake.fault = FAULT_CLOSE;
        node_open(&node, NULL);
        while (fake.questions < 3) {
                assert_int_equal(collect(&node), -EIO);
                assert_true(now_us() - begin < 20000000);
                poll(NULL, 0, 10);
        }
        /* One second, then two, each less the slack of a tenth. */
        assert_true(now_us() - begin > 2700000);
        assert_int_equal(node.n_lines, 1);
        fake_stop(&fake);
        node_stop(&node);
}

static void a_socket_that_vanishes_takes_its_entity_along(void **state)
{
        struct fake stays, goes;
        struct node node;

        (void)state;
        node_start(&node);
        fake_start(&stays, &node, 0);
        fake_start(&goes, &node, 1);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        fake_stop(&goes);
        lines_forget(&node);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.failures, 1);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.failures, 0);
        assert_int_equal(node.sample.n_entities, 1);
        assert_int_equal(node.n_lines, 1);
        assert_non_null(strstr(node.lines, "is gone"));
        fake_stop(&stays);
        node_stop(&node);
}

static void a_socket_without_a_process_is_told(void **state)
{
        struct fake fake;
        struct node node;

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 0);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        lines_forget(&node);
        shutdown(fake.listener, SHUT_RD);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.failures, 1);
        assert_non_null(strstr(node.lines, "has no process behind it"));
        fake_stop(&fake);
        node_stop(&node);
}

static void what_is_no_socket_is_never_opened(void **state)
{
        char path[128];
        struct node node;
        uint64_t begin = now_us();

        (void)state;
        node_start(&node);
        snprintf(path, sizeof(path), "%s/ceph-osd.1.asok", node.folder);
        assert_int_equal(mkfifo(path, 0600), 0);
        snprintf(path, sizeof(path), "%s/ceph-osd.2.asok", node.folder);
        fclose(fopen(path, "w"));
        snprintf(path, sizeof(path), "%s/ceph-osd.3.asok", node.folder);
        assert_int_equal(symlink("/dev/zero", path), 0);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), -EIO);
        assert_true(now_us() - begin < 3000000);
        assert_int_equal(node.n_lines, 3);
        assert_non_null(strstr(node.lines, "osd.1.asok is not a socket"));
        assert_non_null(strstr(node.lines, "osd.2.asok is not a socket"));
        assert_non_null(strstr(node.lines, "osd.3.asok is not a socket"));
        node_stop(&node);
}

static void forty_silent_osds_cost_no_more_time_than_one(void **state)
{
        static struct fake fakes[40];
        struct node node;
        uint64_t begin;

        (void)state;
        node_start(&node);
        for (unsigned i = 0; i < 40; i++) {
                fake_start(&fakes[i], &node, i);
                fakes[i].fault = i == 0 ? FAULT_NONE : FAULT_SILENT;
        }
        node_open(&node, NULL);
        begin = now_us();
        assert_int_equal(collect(&node), 0);
        assert_true(now_us() - begin < 3000000);
        assert_int_equal(node.sample.failures, 39);
        assert_int_equal(value(&node, "osd.0", METRIC_OSD_OP_W), 100);
        for (unsigned i = 0; i < 40; i++)
                fake_stop(&fakes[i]);
        node_stop(&node);
}

/* Of a row: each socket has half a second, all together 0.8 s; the rest is a busy machine. */
#define BUDGET_US 1500000u

static void a_folder_that_leads_to_itself_is_searched_once(void **state)
{
        struct fake fake;
        struct node node;
        char path[128];

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 0);
        snprintf(path, sizeof(path), "%s/loop", node.folder);
        assert_int_equal(symlink(".", path), 0);
        snprintf(path, sizeof(path), "%s/ceph-osd.7.asok", node.folder);
        assert_int_equal(symlink("ceph-osd.7.asok", path), 0);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.n_entities, 1);
        assert_int_equal(node.sample.failures, 1);
        assert_non_null(strstr(node.lines, "osd.7.asok is not a socket"));
        fake_stop(&fake);
        node_stop(&node);
}

/* Root may open everything, so a child that is nobody looks. */
static void a_socket_that_may_not_be_opened_is_told(void **state)
{
        struct fake good, bad;
        struct node node;
        int status;
        pid_t pid;

        (void)state;
        node_start(&node);
        fake_start(&good, &node, 0);
        fake_start(&bad, &node, 1);
        assert_int_equal(chmod(node.folder, 0755), 0);
        assert_int_equal(chmod(good.path, 0777), 0);
        assert_int_equal(chmod(bad.path, 0), 0);
        node_open(&node, NULL);
        pid = fork();
        if (pid == 0) {
                bool right = (geteuid() != 0 || setresuid(65534, 65534, 65534) == 0) &&
                             collect(&node) == 0 && node.sample.failures == 1 &&
                             node.sample.n_entities == 1 &&
                             strstr(node.lines, "osd.1.asok may not be opened by this user") &&
                             collect(&node) == 0 && node.n_lines == 2;

                _exit(right ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        fake_stop(&good);
        fake_stop(&bad);
        node_stop(&node);
}

static void a_slow_osd_that_keeps_the_deadline_is_in_the_row(void **state)
{
        struct fake fast, slow;
        struct node node;

        (void)state;
        node_start(&node);
        fake_start(&fast, &node, 0);
        fake_start(&slow, &node, 1);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        slow.delay_ms = 60;
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.failures, 0);
        assert_int_equal(value(&node, "osd.0", METRIC_OSD_OP_W), 100);
        assert_int_equal(value(&node, "osd.1", METRIC_OSD_OP_W), 100);
        fake_stop(&fast);
        fake_stop(&slow);
        node_stop(&node);
}

static void of_twelve_osds_the_healthy_ones_have_their_row(void **state)
{
        static const enum fault faults[12] = {[1] = FAULT_SILENT,
                [2] = FAULT_GARBAGE,
                [4] = FAULT_ENDLESS,
                [5] = FAULT_DRIP,
                [7] = FAULT_MORE,
                [8] = FAULT_CUT,
                [10] = FAULT_HUGE_LENGTH};
        static struct fake fakes[12];
        unsigned n_lines, n_bad = 1;
        struct node node;
        uint64_t begin;

        (void)state;
        node_start(&node);
        for (unsigned i = 0; i < 12; i++)
                fake_start(&fakes[i], &node, i);
        node_open(&node, NULL);
        assert_int_equal(collect(&node), 0);
        assert_int_equal(node.sample.n_entities, 12);
        assert_int_equal(node.sample.failures, 0);
        lines_forget(&node);
        for (unsigned i = 0; i < 12; i++) {
                fakes[i].fault = faults[i];
                n_bad += faults[i] != FAULT_NONE;
        }
        fakes[3].delay_ms = 60;
        shutdown(fakes[11].listener, SHUT_RD);
        begin = now_us();
        assert_int_equal(collect(&node), 0);
        assert_true(now_us() - begin < BUDGET_US);
        assert_int_equal(node.sample.failures, n_bad);
        assert_int_equal(node.n_lines, n_bad);
        for (unsigned i = 0; i < 12; i++) {
                char name[16];
                bool good = faults[i] == FAULT_NONE && i != 11;

                snprintf(name, sizeof(name), "osd.%u", i);
                assert_int_equal(value(&node, name, METRIC_OSD_OP_W), good ? 100 : -1);
        }
        /* In the next seconds they fail again and again, and the log says nothing new. */
        n_lines = node.n_lines;
        for (unsigned i = 0; i < 30; i++) {
                assert_int_equal(collect(&node), 0);
                assert_int_equal(node.sample.failures, n_bad);
                poll(NULL, 0, 50);
        }
        assert_int_equal(node.n_lines, n_lines);
        for (unsigned i = 0; i < 12; i++)
                fake_stop(&fakes[i]);
        node_stop(&node);
}

/* All are read into the same memory. */
static void answers_that_come_in_pieces_do_not_mix(void **state)
{
        static struct fake fakes[4];
        char texts[4][128];
        struct node node;

        (void)state;
        node_start(&node);
        for (unsigned i = 0; i < 4; i++) {
                snprintf(texts[i], sizeof(texts[i]),
                        "{\"osd\":{\"op_w\":%u,\"op_r\":5},\"bluefs\":{\"logged_bytes\":7}}",
                        1000 + i * 1111);
                fake_start(&fakes[i], &node, i);
                fakes[i].perf = texts[i];
                fakes[i].pause_ms = i < 3 ? 20 + i * 10 : 0;
        }
        node_open(&node, NULL);
        for (unsigned row = 0; row < 3; row++) {
                assert_int_equal(collect(&node), 0);
                assert_int_equal(node.sample.failures, 0);
                for (unsigned i = 0; i < 4; i++) {
                        char name[16];

                        snprintf(name, sizeof(name), "osd.%u", i);
                        assert_int_equal(value(&node, name, METRIC_OSD_OP_W), 1000 + i * 1111);
                }
        }
        for (unsigned i = 0; i < 4; i++)
                fake_stop(&fakes[i]);
        node_stop(&node);
}

static unsigned looks_of_a_row(struct node *node)
{
        unsigned looks = 0;
        int r;

        r = node->class->collect(node->source, now_us() + 800000, &node->sample);
        while (r == SOURCE_PENDING) {
                uint64_t now = now_us();

                if (node->sample.again_us > now)
                        usleep((useconds_t)(node->sample.again_us - now));
                r = node->class->proceed(node->source, &node->sample);
                looks++;
        }
        assert_int_equal(r, 0);
        return looks;
}

/* Also when another one answers nothing at all. */
static void osds_that_keep_their_pace_are_looked_at_once_a_row(void **state)
{
        struct fake fake, dead;
        unsigned once = 0;
        struct node node;

        (void)state;
        node_start(&node);
        fake_start(&fake, &node, 0);
        fake_start(&dead, &node, 1);
        dead.fault = FAULT_SILENT;
        fake.delay_ms = 20;
        node_open(&node, NULL);
        assert_true(looks_of_a_row(&node) > 3);
        for (unsigned i = 0; i < 20; i++)
                once += looks_of_a_row(&node) == 1;
        /* The others are the machine's, or the dead one's turn. */
        assert_true(once >= 10);
        fake_stop(&fake);
        fake_stop(&dead);
        node_stop(&node);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_fault_costs_its_own_samples_and_one_line),
                cmocka_unit_test(an_osd_that_answers_again_is_back_in_the_row),
                cmocka_unit_test(pauses_grow_while_an_osd_fails),
                cmocka_unit_test(a_socket_that_vanishes_takes_its_entity_along),
                cmocka_unit_test(a_socket_without_a_process_is_told),
                cmocka_unit_test(what_is_no_socket_is_never_opened),
                cmocka_unit_test(forty_silent_osds_cost_no_more_time_than_one),
                cmocka_unit_test(a_folder_that_leads_to_itself_is_searched_once),
                cmocka_unit_test(a_socket_that_may_not_be_opened_is_told),
                cmocka_unit_test(a_slow_osd_that_keeps_the_deadline_is_in_the_row),
                cmocka_unit_test(answers_that_come_in_pieces_do_not_mix),
                cmocka_unit_test(osds_that_keep_their_pace_are_looked_at_once_a_row),
                cmocka_unit_test(of_twelve_osds_the_healthy_ones_have_their_row),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
