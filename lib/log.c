#include "lib/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A longer line is cut: one event is one write, so that lines of two threads never mix. */
#define LINE_MAX_BYTES 2048

static atomic_int current_level = LOG_LEVEL_INFO;

static const char *const level_names[] = {
        [LOG_LEVEL_ERROR] = "error",
        [LOG_LEVEL_WARNING] = "warning",
        [LOG_LEVEL_NOTICE] = "notice",
        [LOG_LEVEL_INFO] = "info",
        [LOG_LEVEL_DEBUG] = "debug",
};

void log_set_level(enum log_level level)
{
        atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
        return (enum log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

int log_level_parse(const char *text, enum log_level *ret)
{
        for (int i = LOG_LEVEL_ERROR; i <= LOG_LEVEL_DEBUG; i++)
                if (strcmp(text, level_names[i]) == 0) {
                        *ret = (enum log_level)i;
                        return 0;
                }
        return -EINVAL;
}

void log_write(enum log_level level, const char *format, ...)
{
        int saved_errno = errno, prefix, length;
        char line[LINE_MAX_BYTES];
        va_list arguments;

        if (level > log_get_level())
                return;

        if (getenv("JOURNAL_STREAM"))
                prefix = snprintf(line, sizeof(line), "<%d>", (int)level);
        else
                prefix = snprintf(line, sizeof(line), "%s: ", level_names[level]);

        va_start(arguments, format);
        length = vsnprintf(line + prefix, sizeof(line) - prefix - 1, format, arguments);
        va_end(arguments);
        if (length < 0)
                return;

        length += prefix;
        if (length > (int)sizeof(line) - 2)
                length = sizeof(line) - 2;
        /* A newline inside would forge a second event. */
        for (int i = prefix; i < length; i++)
                if (line[i] == '\n')
                        line[i] = ' ';
        line[length++] = '\n';
        if (write(STDERR_FILENO, line, length) < 0) {
                /* Standard error is gone: there is nobody left to tell. */
        }
        errno = saved_errno;
}
