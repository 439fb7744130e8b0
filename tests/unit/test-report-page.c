/* The page of a report: what somebody named himself stays text, and what is not known is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/html.h"
#include "cli/json.h"
#include "cli/report-page.h"

#define HOSTILE "</td><script>alert('1')</script>\" onload=\"x & y"
/* As a string of JSON. */
#define HOSTILE_JSON "</td><script>alert('1')</script>\\\" onload=\\\"x & y"

static char *escape(const char *text)
{
        char *found;
        size_t size;
        FILE *stream = open_memstream(&found, &size);

        assert_non_null(stream);
        html_text(stream, text);
        fclose(stream);
        return found;
}

static void text_cannot_leave_its_element_or_attribute(void **state)
{
        CLEANUP(str) char *hostile = escape(HOSTILE);
        CLEANUP(str) char *plain = escape("osd.3 – ä");

        (void)state;
        assert_null(strpbrk(hostile, "<>\"'"));
        assert_string_equal(hostile, "&lt;/td&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/"
                                     "script&gt;&quot; onload=&quot;x &amp; y");
        assert_string_equal(plain, "osd.3 – ä");
}

static char *render(const char *json, const char *cluster)
{
        CLEANUP(json) json_t *report = json_loads(json, 0, NULL);
        struct report_page page = {report, cluster, 1796027520};
        char *found;
        size_t size;
        FILE *stream = open_memstream(&found, &size);

        assert_non_null(stream);
        assert_non_null(report);
        report_page_write(&page, stream);
        fclose(stream);
        return found;
}

/* Whatever the collector's texts are, in whatever place. */
static void a_hostile_answer_stays_text_everywhere(void **state)
{
        CLEANUP(str)
        char *page =
                render("{\"cluster\":\"" HOSTILE_JSON "\",\"from\":0,\"to\":60,\"histograms\":true,"
                       "\"summary\":[\"" HOSTILE_JSON "\"],"
                       "\"uses\":[{\"direction\":\"" HOSTILE_JSON "\",\"order\":\"" HOSTILE_JSON
                       "\",\"size\":\"" HOSTILE_JSON
                       "\",\"windows\":3,\"of_best\":0.5,\"in_class\":1,\"grade\":\"" HOSTILE_JSON
                       "\",\"ability\":{\"state\":\"" HOSTILE_JSON
                       "\",\"bytes_per_second\":1},\"sentence\":\"" HOSTILE_JSON "\"},"
                       "{\"direction\":\"read\",\"order\":\"unknown\",\"size\":\"4k\",\"windows\":"
                       "0,\"detail\":\"" HOSTILE_JSON "\"}],"
                       "\"findings\":[{\"layer\":\"" HOSTILE_JSON "\",\"entity\":\"" HOSTILE_JSON
                       "\",\"sentence\":\"" HOSTILE_JSON "\",\"advice\":\"" HOSTILE_JSON
                       "\",\"open\":true,\"begin\":1,\"last\":2}],"
                       "\"curves\":{\"t\":[0,10],\"filesystem_write\":[1,2],\"storage_write\":[3,"
                       "null],\"utilisation\":[0.5,0.6]}}",
                        HOSTILE);

        (void)state;
        assert_null(strstr(page, "<script"));
        assert_null(strstr(page, "onload=\""));
        assert_null(strstr(page, "</td><script"));
        assert_non_null(strstr(page, "<h1>Best use of &lt;/td&gt;"));
        assert_non_null(strstr(page, "&lt;script&gt;alert(&#39;1&#39;)"));
}

static void the_page_needs_nothing_from_outside(void **state)
{
        CLEANUP(str) char *page = render("{\"uses\":[],\"summary\":[]}", "ceph");

        (void)state;
        assert_null(strstr(page, "http:"));
        assert_null(strstr(page, "https:"));
        assert_null(strstr(page, "src="));
        assert_null(strstr(page, "href="));
        assert_null(strstr(page, "url("));
        assert_non_null(strstr(page, "default-src 'none'"));
        assert_non_null(strstr(page, "Not known, because the OSDs' histograms are not sampled."));
}

static void a_gap_breaks_the_curve(void **state)
{
        CLEANUP(str)
        char *page = render("{\"from\":0,\"to\":40,\"uses\":[],\"curves\":{\"t\":[0,10,20,30],"
                            "\"filesystem_write\":[1,null,1,1],\"storage_write\":[3,3,3,3]}}",
                "ceph");
        const char *path = strstr(page, "class=\"filesystem\" d=\"");
        size_t moves = 0;

        (void)state;
        assert_non_null(path);
        for (path += strlen("class=\"filesystem\" d=\""); *path != '"'; path++)
                moves += *path == 'M';
        assert_int_equal(moves, 2);
        assert_null(strstr(page, "nan"));
        assert_null(strstr(page, "inf\""));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(text_cannot_leave_its_element_or_attribute),
                cmocka_unit_test(a_hostile_answer_stays_text_everywhere),
                cmocka_unit_test(the_page_needs_nothing_from_outside),
                cmocka_unit_test(a_gap_breaks_the_curve),
        };

        return cmocka_run_group_tests_name("report-page", tests, NULL, NULL);
}
