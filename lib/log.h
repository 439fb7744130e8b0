#pragma once
/*
 * One line on standard error per event, with the "<N>" priority prefix when systemd reads it
 * (JOURNAL_STREAM is set) and a plain "error: " word otherwise. The level is the only global of the
 * project. Programs log where forwarding of an error stops; lib itself logs nothing above debug.
 */

enum log_level {
        LOG_LEVEL_ERROR = 3,
        LOG_LEVEL_WARNING = 4,
        LOG_LEVEL_NOTICE = 5,
        LOG_LEVEL_INFO = 6,
        LOG_LEVEL_DEBUG = 7,
};

void log_set_level(enum log_level level);
enum log_level log_get_level(void);
/* "error", "warning", "notice", "info", "debug"; -EINVAL otherwise. */
int log_level_parse(const char *text, enum log_level *ret);

__attribute__((format(printf, 2, 3))) void log_write(enum log_level level, const char *format, ...);

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_write(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
        do {                                                                                       \
                if (log_get_level() >= LOG_LEVEL_DEBUG)                                            \
                        log_write(LOG_LEVEL_DEBUG, __VA_ARGS__);                                   \
        } while (0)
