#pragma once
/* The parts of GET /report: the windows of a range, and the JSON of the report made of them. */

#include "collectord/api-query.h"
#include "collectord/report.h"

#define REPORT_FINDINGS_MAX 100u /* the newest */

struct report_answer {
        const struct query *query;
        uint32_t cluster;
        struct api_window window;
        struct rung_windows windows;
        struct report_window *list; /* [windows.n] */
        struct report_input input;
        struct report *report;
};

/* The whole answer. Errors of the store. */
int report_write(const struct report_answer *answer, struct text *text);
