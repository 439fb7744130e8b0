#include "cli/report-page.h"

#include <math.h>
#include <string.h>

#include "cli/format.h"
#include "cli/html.h"
#include "cli/json.h"

/* clang-format off */
static const char style[] =
        ":root{color-scheme:light dark;--ground:#fff;--ink:#161b21;--quiet:#525c67;--rule:#dde1e6;"
        "--good:#1c7344;--fair:#8a5300;--poor:#b3261e;--room:#2f6fb5;"
        "--filesystem:#2f6fb5;--storage:#b23a53;--busy:#5f6b77}\n"
        "@media (prefers-color-scheme:dark){:root{--ground:#161b21;--ink:#e4e8ec;--quiet:#9da8b3;"
        "--rule:#2f3842;--good:#5fcf93;--fair:#e0a53f;--poor:#ff8d83;--room:#6fabf0;"
        "--filesystem:#6fabf0;--storage:#f0788f;--busy:#9da8b3}}\n"
        /* Paper is white. */
        "@media print{:root{color-scheme:light;--ground:#fff;--ink:#000;--quiet:#444;--rule:#bbb;"
        "--good:#1c7344;--fair:#8a5300;--poor:#b3261e;--room:#2f6fb5;"
        "--filesystem:#2f6fb5;--storage:#b23a53;--busy:#5f6b77}"
        "body{font-size:9pt;max-width:none;padding:0}figure,tr,li{break-inside:avoid}"
        "h2{break-after:avoid}.wide{overflow:visible}"
        "rect{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n"
        "body{background:var(--ground);color:var(--ink);max-width:72rem;margin:0 auto;padding:1.5rem;"
        "font:15px/1.5 system-ui,'Segoe UI',Roboto,'Noto Sans',sans-serif}\n"
        "h1{font-size:1.6em;margin:0}h2{font-size:1.15em;margin:2em 0 .5em}p,ul{margin:.5em 0}"
        "ul{padding-left:1.2em}.quiet{color:var(--quiet)}\n"
        "table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%;font-size:.87em}"
        "th,td{text-align:right;padding:.25em .4em;border-bottom:1px solid var(--rule);vertical-align:top}"
        "th{font-weight:600;color:var(--quiet);font-size:.85em}"
        "th:first-child,td:first-child,.text{text-align:left}.nowrap{white-space:nowrap}"
        ".wide{overflow-x:auto}td.good{color:var(--good)}td.fair{color:var(--fair)}"
        "td.poor{color:var(--poor)}td.room{color:var(--room)}\n"
        "figure{margin:1em 0}figcaption{color:var(--quiet);font-size:.9em}"
        "svg{width:100%;height:auto;font:12px system-ui,sans-serif}svg text{fill:var(--ink)}"
        "svg text.quiet{fill:var(--quiet)}.grid{stroke:var(--rule)}rect.good{fill:var(--good)}"
        "rect.fair{fill:var(--fair)}rect.poor{fill:var(--poor)}rect.room{fill:var(--room)}\n"
        "path{fill:none;stroke-width:1.5;stroke-linejoin:round}path.filesystem{stroke:var(--filesystem)}"
        "path.storage{stroke:var(--storage)}path.busy{stroke:var(--busy)}"
        "b.filesystem{color:var(--filesystem)}b.storage{color:var(--storage)}"
        "dt{font-weight:600}dd{margin:0 0 .5em}";
/* clang-format on */

char *report_use_name(const json_t *use, char ret[REPORT_USE_MAX])
{
        const char *order = json_get_text(use, "order");
        bool known = *order && strcmp(order, "unknown") != 0;

        snprintf(ret, REPORT_USE_MAX, "%s%s%s %s", known ? order : "", known ? " " : "",
                json_get_text(use, "direction"), json_get_text(use, "size"));
        return ret;
}

static void cell(FILE *stream, const char *class, const char *text)
{
        fprintf(stream, "<td class=\"%s\">", class);
        html_text(stream, text);
        fputs("</td>", stream);
}

static void element(FILE *stream, const char *name, const char *text)
{
        fprintf(stream, "<%s>", name);
        html_text(stream, text);
        fprintf(stream, "</%s>\n", name);
}

/* ---- the parts, from above ---- */

static void write_head(const struct report_page *page, FILE *stream)
{
        char from[FORMAT_MAX], to[FORMAT_MAX], age[FORMAT_MAX], now[FORMAT_MAX];
        double begin = json_get_number(page->report, "from"),
               end = json_get_number(page->report, "to");

        fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
              "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
              "style-src 'unsafe-inline'\">\n"
              "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Best use of ",
                stream);
        html_text(stream, page->cluster);
        fprintf(stream, "</title>\n<style>\n%s\n</style></head><body>\n<h1>Best use of ", style);
        html_text(stream, page->cluster);
        fprintf(stream,
                "</h1>\n<p class=\"quiet\">%s to %s (%s), made %s by strata " STRATA_VERSION
                "<br>\nCluster ",
                format_time(begin, from), format_time(end, to), format_age(end - begin, age),
                format_time(page->now, now));
        html_text(stream, json_get_text(page->report, "cluster"));
        fputs("</p>\n", stream);
}

static void write_summary(const struct report_page *page, FILE *stream)
{
        const json_t *summary = json_object_get(page->report, "summary");
        size_t i;
        const json_t *sentence;

        fputs("<section><h2>In short</h2>\n<ul>\n", stream);
        json_array_foreach (summary, i, sentence)
                element(stream, "li", json_text_at(summary, i));
        fputs("</ul></section>\n", stream);
}

static void write_figures(const struct report_page *page, FILE *stream)
{
        fputs("<section><h2>How much clients get</h2>\n<figure>\n", stream);
        report_figure_shares(page->report, stream);
        fputs("<figcaption>Of what the devices can do with such a load, the part that reaches the "
              "clients; 100 % "
              "is what redundancy leaves. No bar: not known, the table says "
              "why.</figcaption></figure></section>\n",
                stream);
        fputs("<section><h2>The curves that it is from</h2>\n", stream);
        for (int i = 0; i < 2; i++) {
                static const char *const directions[] = {"write", "read"};

                fputs("<figure>\n", stream);
                report_figure_curves(page->report, directions[i], stream);
                fprintf(stream,
                        "<figcaption>%s: <b class=\"filesystem\">clients</b> and <b "
                        "class=\"storage\">devices</b>"
                        "</figcaption></figure>\n",
                        i == 0 ? "Writes" : "Reads");
        }
        fputs("<figure>\n", stream);
        report_figure_busy(page->report, stream);
        fputs("<figcaption>Share of the time in which the devices were busy, mean of "
              "all</figcaption></figure>"
              "</section>\n",
                stream);
}

static void write_use(const json_t *use, FILE *stream)
{
        const json_t *clients = json_object_get(use, "filesystem"),
                     *storage = json_object_get(use, "storage");
        const json_t *ability = json_object_get(use, "ability");
        char name[REPORT_USE_MAX], text[FORMAT_MAX];

        fputs("<tr>", stream);
        cell(stream, "nowrap", report_use_name(use, name));
        if (!(json_get_number(use, "windows") > 0)) {
                fputs("<td class=\"text quiet\" colspan=\"11\">", stream);
                html_text(stream, json_get_text(use, "detail"));
                fputs("</td></tr>\n", stream);
                return;
        }
        cell(stream, "nowrap",
                format_byte_rate(json_get_number(clients, "bytes_per_second"), text));
        cell(stream, "", format_count(json_get_number(clients, "ops_per_second"), text));
        cell(stream, "nowrap", format_bytes(json_get_number(clients, "mean_size"), text));
        cell(stream, "nowrap", format_bytes(json_get_number(storage, "mean_size"), text));
        cell(stream, "", format_factor(json_get_number(use, "amplification"), text));
        cell(stream, "", format_factor(json_get_number(use, "expected"), text));
        cell(stream, "", format_factor(json_get_number(use, "excess"), text));
        fputs("<td class=\"nowrap\">", stream);
        if (isfinite(json_get_number(ability, "bytes_per_second")))
                fprintf(stream, "%s<br><span class=\"quiet\">",
                        format_byte_rate(json_get_number(ability, "bytes_per_second"), text));
        else
                fputs("not known<br><span class=\"quiet\">", stream);
        html_text(stream, strcmp(json_get_text(ability, "state"), "unknown") == 0
                                  ? "too idle"
                                  : json_get_text(ability, "state"));
        fputs("</span></td>", stream);
        cell(stream, "nowrap", format_percent(json_get_number(use, "utilisation"), text));
        cell(stream, "nowrap", format_percent(json_get_number(use, "share"), text));
        fputs("<td class=\"", stream);
        html_text(stream, json_get_text(use, "grade"));
        fputs("\">", stream);
        html_text(stream, *json_get_text(use, "grade") ? json_get_text(use, "grade") : "not known");
        fputs("</td></tr>\n", stream);
}

static void write_uses(const struct report_page *page, FILE *stream)
{
        const json_t *uses = json_object_get(page->report, "uses"), *use;
        size_t i;

        fputs("<section><h2>Every mode and request size</h2>\n<div "
              "class=\"wide\"><table><thead><tr><th>use</th>"
              "<th>clients</th><th>operations/s</th><th>their requests</th><th>devices' "
              "requests</th>"
              "<th>amplifi&shy;cation</th><th>expected</th><th>excess</th><th>devices can "
              "do</th><th>busy</th>"
              "<th>share</th><th>grade</th></tr></thead><tbody>\n",
                stream);
        json_array_foreach (uses, i, use)
                write_use(use, stream);
        fputs("</tbody></table></div>\n<ul>\n", stream);
        json_array_foreach (uses, i, use)
                if (json_get_number(use, "windows") > 0)
                        element(stream, "li", json_get_text(use, "sentence"));
        fputs("</ul></section>\n", stream);
}

static void write_latencies(const struct report_page *page, FILE *stream)
{
        const json_t *uses = json_object_get(page->report, "uses"), *use;
        char name[REPORT_USE_MAX], text[FORMAT_MAX];
        size_t i;

        fputs("<section><h2>Latencies</h2>\n", stream);
        if (!json_is_true(json_object_get(page->report, "histograms"))) {
                fputs("<p>Not known, because the OSDs' histograms are not sampled. "
                      "<code>strata plan '*' --set osd_histogram.enabled=yes</code> samples "
                      "them.</p></section>\n",
                        stream);
                return;
        }
        fputs("<table><thead><tr><th>use</th><th>half took less than</th><th>99 % took less "
              "than</th>"
              "<th>operations of this size</th></tr></thead><tbody>\n",
                stream);
        json_array_foreach (uses, i, use) {
                if (!isfinite(json_get_number(use, "in_class")))
                        continue;
                fputs("<tr>", stream);
                cell(stream, "", report_use_name(use, name));
                cell(stream, "", format_latency(json_get_number(use, "p50"), false, text));
                cell(stream, "", format_latency(json_get_number(use, "p99"), false, text));
                cell(stream, "", format_percent(json_get_number(use, "in_class"), text));
                fputs("</tr>\n", stream);
        }
        fputs("</tbody></table>\n<p class=\"quiet\">As the OSDs saw their clients' operations, "
              "with the time in "
              "their queues, by buckets whose ends double.</p></section>\n",
                stream);
}

static void write_finding(const json_t *finding, FILE *stream)
{
        char begin[FORMAT_MAX], age[FORMAT_MAX];
        bool open = json_is_true(json_object_get(finding, "open"));
        double since = json_get_number(finding, "begin");
        double until = json_get_number(finding, open ? "last" : "end");

        fputs("<li><b>", stream);
        html_text(stream, json_get_text(finding, "layer"));
        fputs(", ", stream);
        html_text(stream, json_get_text(finding, "entity"));
        fprintf(stream, "</b> <span class=\"quiet\">%s %s (%s)</span>: ", open ? "since" : "from",
                format_time(since, begin), format_age(until - since, age));
        html_text(stream, json_get_text(finding, "sentence"));
        fputs(" ", stream);
        html_text(stream, json_get_text(finding, "advice"));
        fputs("</li>\n", stream);
}

static void write_findings(const struct report_page *page, FILE *stream)
{
        const json_t *findings = json_object_get(page->report, "findings"), *finding;
        size_t i;

        fputs("<section><h2>Findings in this time</h2>\n", stream);
        if (json_array_size(findings) == 0)
                fputs("<p>None.</p>\n", stream);
        fputs("<ul>\n", stream);
        json_array_foreach (findings, i, finding)
                write_finding(finding, stream);
        fputs("</ul></section>\n", stream);
}

/* clang-format off */
static const char key[] =
        "<section><h2>How to read this</h2>\n<dl>\n"
        "<dt>Use</dt><dd>Direction and mean request size of steady windows in which nine tenths went one way, and "
        "the order where it leaves a trace.</dd>\n"
        "<dt>Clients, devices</dt><dd>What clients asked of the pools (filesystem layer), and what the block devices "
        "under the OSDs did for it (storage layer).</dd>\n"
        "<dt>Expected, excess</dt><dd>The amplification that redundancy alone explains; how many times that the "
        "measured one is.</dd>\n"
        "<dt>Devices can do</dt><dd><i>Seen</i>: the highest rate with such a load, where the devices were busy for "
        "80 % of the time at least once. <i>Estimated</i>: they never were, so it is the rate divided by the share of the "
        "time in which they were busy. Not known: they were busy for less than 20 %.</dd>\n"
        "<dt>Share</dt><dd>Of what the devices can do, what reaches the clients. Redundancy leaves at most 1 / expected."
        "</dd>\n"
        "<dt>Grade</dt><dd>Of what the devices did, clients got 70 % or more of what redundancy leaves (good), 40 % or "
        "more (fair), or less (poor). <i>Room</i>: they got that, and the devices were not full; clients asked for no "
        "more, or something between held them back, which the findings tell.</dd>\n"
        "</dl></section>\n";
/* clang-format on */

void report_page_write(const struct report_page *page, FILE *stream)
{
        write_head(page, stream);
        write_summary(page, stream);
        write_figures(page, stream);
        write_uses(page, stream);
        write_latencies(page, stream);
        write_findings(page, stream);
        fputs(key, stream);
        fputs("</body></html>\n", stream);
}
