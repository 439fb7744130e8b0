#include "agentd/source.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES 512 /* a path of a socket and a sentence */

void source_report(const struct source_report *report, int level, const char *format, ...)
{
        char text[LINE_BYTES];
        va_list arguments;

        if (!report->line)
                return;
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        report->line(report->userdata, level, text);
}
