/* The figures of a report: how much clients get, and the curves that it is from. */
#include <math.h>
#include <string.h>

#include "cli/format.h"
#include "cli/html.h"
#include "cli/json.h"
#include "cli/report-page.h"

#define BINS 240u /* of a curve; more windows are drawn as the mean of neighbours */
#define WIDTH 720.0
#define PLOT_LEFT 78.0
#define PLOT_RIGHT 712.0
#define PLOT_TOP 10.0
#define PLOT_HEIGHT 110.0

/* ---- bars ---- */

#define BAR_LEFT 170.0
#define BAR_FULL 400.0 /* 100 % of what redundancy leaves */
#define BAR_MAX 1.15
#define BAR_STEP 22.0

static size_t count_bars(const json_t *uses)
{
        const json_t *use;
        size_t i, n = 0;

        json_array_foreach (uses, i, use)
                n += isfinite(json_get_number(use, "of_best"));
        return n;
}

static void draw_bar(const json_t *use, double y, FILE *stream)
{
        double part = json_get_number(use, "of_best");
        char name[REPORT_USE_MAX], percent[FORMAT_MAX], rate[FORMAT_MAX];
        const char *grade = json_get_text(use, "grade");

        fprintf(stream, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">", BAR_LEFT - 8, y + 12);
        html_text(stream, report_use_name(use, name));
        fprintf(stream, "</text><rect class=\"");
        html_text(stream, grade);
        fprintf(stream, "\" x=\"%.0f\" y=\"%.0f\" width=\"%.1f\" height=\"14\"/>", BAR_LEFT, y,
                BAR_FULL * fmin(fmax(part, 0), BAR_MAX));
        fprintf(stream, "<text x=\"%.1f\" y=\"%.0f\">%s, %s</text>\n",
                BAR_LEFT + BAR_FULL * fmin(fmax(part, 0), BAR_MAX) + 6, y + 12,
                format_percent(part, percent),
                format_byte_rate(
                        json_get_number(json_object_get(use, "filesystem"), "bytes_per_second"),
                        rate));
}

void report_figure_shares(const json_t *report, FILE *stream)
{
        const json_t *uses = json_object_get(report, "uses"), *use;
        size_t n = count_bars(uses), i;
        double height = (double)n * BAR_STEP + 26, y = 20;

        if (n == 0)
                return;
        fprintf(stream,
                "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"Share of the devices' "
                "ability that clients get, of what redundancy leaves\">\n",
                WIDTH, height);
        for (int mark = 0; mark <= 100; mark += 25)
                fprintf(stream,
                        "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"16\" y2=\"%.0f\"/>"
                        "<text class=\"quiet\" x=\"%.1f\" y=\"11\" text-anchor=\"middle\">%d "
                        "%%</text>\n",
                        BAR_LEFT + BAR_FULL * mark / 100, BAR_LEFT + BAR_FULL * mark / 100,
                        height - 6, BAR_LEFT + BAR_FULL * mark / 100, mark);
        json_array_foreach (uses, i, use)
                if (isfinite(json_get_number(use, "of_best"))) {
                        draw_bar(use, y, stream);
                        y += BAR_STEP;
                }
        fprintf(stream, "</svg>\n");
}

/* ---- curves ---- */

struct plot {
        const json_t *values;
        size_t n, bins;
};

static struct plot plot_of(const json_t *report, const char *name)
{
        const json_t *values = json_object_get(json_object_get(report, "curves"), name);
        size_t n = json_array_size(values);

        return (struct plot){values, n, n < BINS ? n : BINS};
}

/* The mean of a bin's windows; NaN without any. */
static double bin_of(const struct plot *plot, size_t bin)
{
        size_t first = bin * plot->n / plot->bins, last = (bin + 1) * plot->n / plot->bins;
        double sum = 0;
        size_t known = 0;

        for (size_t i = first; i < last; i++) {
                double value = json_number_at(plot->values, i);

                if (isnan(value))
                        continue;
                sum += value;
                known++;
        }
        return known ? sum / (double)known : NAN;
}

static double highest(const struct plot *plot)
{
        double max = 0;

        for (size_t i = 0; i < plot->bins; i++)
                max = fmax(max, bin_of(plot, i)); /* of a number and NaN it is the number */
        return max;
}

static void draw_line(const struct plot *plot, double top, const char *class, FILE *stream)
{
        bool drawing = false;

        fprintf(stream, "<path class=\"%s\" d=\"", class);
        for (size_t i = 0; i < plot->bins; i++) {
                double value = bin_of(plot, i);
                double x = PLOT_LEFT +
                           (PLOT_RIGHT - PLOT_LEFT) * ((double)i + 0.5) / (double)plot->bins;

                if (!isfinite(value)) {
                        drawing = false;
                        continue;
                }
                fprintf(stream, "%s%.1f %.1f", drawing ? "L" : "M", x,
                        PLOT_TOP + PLOT_HEIGHT * (1 - value / top));
                /* A value between two gaps is a point. */
                if (!drawing)
                        fputs("h.5", stream);
                drawing = true;
        }
        fputs("\"/>\n", stream);
}

static void draw_times(const json_t *report, FILE *stream)
{
        double from = json_get_number(report, "from"), to = json_get_number(report, "to");

        for (int i = 0; i < 3; i++) {
                static const char *const anchors[] = {"start", "middle", "end"};
                char text[FORMAT_MAX];

                format_time(from + (to - from) * i / 2, text);
                if (strlen(text) > 19)
                        text[19] = '\0'; /* without the zone, which the head has */
                fprintf(stream,
                        "<text class=\"quiet\" x=\"%.0f\" y=\"%.0f\" "
                        "text-anchor=\"%s\">%s</text>\n",
                        PLOT_LEFT + (PLOT_RIGHT - PLOT_LEFT) * i / 2, PLOT_TOP + PLOT_HEIGHT + 16,
                        anchors[i], text);
        }
}

static void begin_plot(const char *label, double top, bool share, FILE *stream)
{
        fprintf(stream, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\">\n", WIDTH,
                PLOT_TOP + PLOT_HEIGHT + 22, label);
        for (int i = 0; i <= 2; i++) {
                double y = PLOT_TOP + PLOT_HEIGHT * (1 - i / 2.0);
                char text[FORMAT_MAX];

                fprintf(stream,
                        "<line class=\"grid\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                        "<text class=\"quiet\" x=\"%.0f\" y=\"%.1f\" "
                        "text-anchor=\"end\">%s</text>\n",
                        PLOT_LEFT, PLOT_RIGHT, y, y, PLOT_LEFT - 6, y + 4,
                        share ? format_percent(top * i / 2, text)
                              : format_byte_rate(top * i / 2, text));
        }
}

void report_figure_curves(const json_t *report, const char *direction, FILE *stream)
{
        char name[64];
        struct plot filesystem, storage;
        double top;

        snprintf(name, sizeof(name), "filesystem_%s", direction);
        filesystem = plot_of(report, name);
        snprintf(name, sizeof(name), "storage_%s", direction);
        storage = plot_of(report, name);
        top = fmax(highest(&filesystem), highest(&storage)) * 1.05;
        if (!(top > 0))
                return;
        snprintf(name, sizeof(name), "%ss of clients and devices over time", direction);
        begin_plot(name, top, false, stream);
        draw_line(&storage, top, "storage", stream);
        draw_line(&filesystem, top, "filesystem", stream);
        draw_times(report, stream);
        fputs("</svg>\n", stream);
}

void report_figure_busy(const json_t *report, FILE *stream)
{
        struct plot plot = plot_of(report, "utilisation");

        if (plot.bins == 0 || !(highest(&plot) > 0))
                return;
        begin_plot("Share of the time in which the devices were busy", 1, true, stream);
        draw_line(&plot, 1, "busy", stream);
        draw_times(report, stream);
        fputs("</svg>\n", stream);
}
