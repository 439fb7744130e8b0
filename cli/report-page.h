#pragma once
/*
 * The report of GET /report as one HTML page that needs nothing else: no script, no font, no
 * picture from anywhere, so that it can be mailed, printed and kept.
 */

#include <jansson.h>
#include <stdio.h>

struct report_page {
        const json_t *report;
        const char *cluster; /* its name */
        double now;          /* Unix seconds */
};

void report_page_write(const struct report_page *page, FILE *stream);
/* "random write 4k", "read 64k" */
#define REPORT_USE_MAX 64u
char *report_use_name(const json_t *use, char ret[REPORT_USE_MAX]);

/* report-figure.c: inline SVG. */
void report_figure_shares(const json_t *report, FILE *stream);
/* @names: two of the curves, the upper layer's first; what is not a number is a gap. */
void report_figure_curves(const json_t *report, const char *direction, FILE *stream);
void report_figure_busy(const json_t *report, FILE *stream);
