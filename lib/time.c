#include "lib/time.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/config.h"

#define SECOND_US INT64_C(1000000)
#define DAY_SECONDS INT64_C(86400)

/* Exactly @digits digits at *@text, which moves on. */
static int take_number(const char **text, int digits, int *ret)
{
        int value = 0;

        for (int i = 0; i < digits; i++, (*text)++) {
                if (**text < '0' || **text > '9')
                        return -EINVAL;
                value = value * 10 + (**text - '0');
        }
        *ret = value;
        return 0;
}

static int take_char(const char **text, const char *set)
{
        if (!**text || !strchr(set, **text))
                return -EINVAL;
        (*text)++;
        return 0;
}

/* ".5" is 500000; digits below a microsecond are dropped. Nothing there is 0. */
static int take_fraction(const char **text, int64_t *ret_us)
{
        int64_t us = 0, scale = SECOND_US / 10;

        if (**text == '.') {
                (*text)++;
                if (**text < '0' || **text > '9')
                        return -EINVAL;
                for (; **text >= '0' && **text <= '9'; (*text)++, scale /= 10)
                        us += (**text - '0') * scale;
        }
        *ret_us = us;
        return 0;
}

static int days_in_month(int year, int month)
{
        static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

        return month == 2 && leap ? 29 : days[month - 1];
}

static int take_date(const char **text, int64_t *ret_days)
{
        int year, month, day;
        struct tm tm;

        if (take_number(text, 4, &year) < 0 || take_char(text, "-") < 0 ||
                take_number(text, 2, &month) < 0 || take_char(text, "-") < 0 ||
                take_number(text, 2, &day) < 0)
                return -EINVAL;
        if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
                return -EINVAL;

        tm = (struct tm){.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
        *ret_days = timegm(&tm) / DAY_SECONDS;
        return 0;
}

static int take_zone(const char **text, int64_t *ret_seconds)
{
        bool west = **text == '-';
        int hours, minutes;

        if (take_char(text, "Zz") == 0) {
                *ret_seconds = 0;
                return 0;
        }
        if (take_char(text, "+-") < 0 || take_number(text, 2, &hours) < 0 ||
                take_char(text, ":") < 0 || take_number(text, 2, &minutes) < 0)
                return -EINVAL;
        if (hours > 23 || minutes > 59)
                return -EINVAL;
        *ret_seconds = (hours * INT64_C(60) + minutes) * (west ? -60 : 60);
        return 0;
}

static int parse_rfc3339(const char *text, int64_t *ret_us)
{
        int64_t days, fraction_us, zone_seconds;
        int hour, minute, second;

        if (take_date(&text, &days) < 0 || take_char(&text, "Tt ") < 0)
                return -EINVAL;
        if (take_number(&text, 2, &hour) < 0 || take_char(&text, ":") < 0 ||
                take_number(&text, 2, &minute) < 0 || take_char(&text, ":") < 0 ||
                take_number(&text, 2, &second) < 0)
                return -EINVAL;
        /* 60 is a leap second, which Unix time counts as the second after. */
        if (hour > 23 || minute > 59 || second > 60)
                return -EINVAL;
        if (take_fraction(&text, &fraction_us) < 0 || take_zone(&text, &zone_seconds) < 0 || *text)
                return -EINVAL;

        *ret_us =
                (days * DAY_SECONDS + (hour * INT64_C(60) + minute) * 60 + second - zone_seconds) *
                        SECOND_US +
                fraction_us;
        return 0;
}

static int parse_unix(const char *text, int64_t *ret_us)
{
        int64_t seconds = 0, fraction_us;

        for (; *text >= '0' && *text <= '9'; text++) {
                seconds = seconds * 10 + (*text - '0');
                if (seconds > TIME_MAX_US / SECOND_US)
                        return -ERANGE;
        }
        if (take_fraction(&text, &fraction_us) < 0 || *text)
                return -EINVAL;
        *ret_us = seconds * SECOND_US + fraction_us;
        return 0;
}

/* @text is "", or a sign and a duration. */
static int parse_relative(const char *text, int64_t now_us, int64_t *ret_us)
{
        uint64_t distance_us;
        int r;

        if (!*text) {
                *ret_us = now_us;
                return 0;
        }
        if (*text != '-' && *text != '+')
                return -EINVAL;
        r = config_parse_duration(text + 1, &distance_us);
        if (r < 0)
                return r;
        if (distance_us > TIME_MAX_US || now_us > TIME_MAX_US || now_us < 0)
                return -ERANGE;
        *ret_us = *text == '-' ? now_us - (int64_t)distance_us : now_us + (int64_t)distance_us;
        return 0;
}

int time_parse(const char *text, int64_t now_us, int64_t *ret_us, bool *ret_relative)
{
        bool now = strncmp(text, "now", 3) == 0;
        bool relative = now || *text == '-' || *text == '+';
        int64_t us;
        int r;

        if (relative)
                r = parse_relative(now ? text + 3 : text, now_us, &us);
        else if (*text < '0' || *text > '9')
                r = -EINVAL;
        else if (strchr(text, '-') || strchr(text, ':'))
                r = parse_rfc3339(text, &us);
        else
                r = parse_unix(text, &us);
        if (r < 0)
                return r;
        if (us < 0 || us > TIME_MAX_US)
                return -ERANGE;
        *ret_us = us;
        if (ret_relative)
                *ret_relative = relative;
        return 0;
}

char *time_format_rfc3339(int64_t time_us, char *ret)
{
        int64_t fraction_us = (time_us % SECOND_US + SECOND_US) % SECOND_US;
        time_t seconds = (time_us - fraction_us) / SECOND_US;
        char date[sizeof("-292277-01-01T00:00:00")];
        struct tm tm;

        if (!gmtime_r(&seconds, &tm) || strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
                date[0] = '\0';
        if (fraction_us == 0)
                snprintf(ret, TIME_TEXT_MAX, "%sZ", date);
        else if (fraction_us % 1000 == 0)
                snprintf(ret, TIME_TEXT_MAX, "%s.%03" PRId64 "Z", date, fraction_us / 1000);
        else
                snprintf(ret, TIME_TEXT_MAX, "%s.%06" PRId64 "Z", date, fraction_us);
        return ret;
}

char *time_format_duration(uint64_t duration_us, char *ret)
{
        static const struct {
                const char *name;
                uint64_t us;
        } units[] = {
                {"d", 86400000000ull},
                {"h", 3600000000ull},
                {"m", 60000000ull},
                {"s", 1000000ull},
                {"ms", 1000ull},
                {"us", 1ull},
        };
        size_t i = 0;

        if (duration_us == 0)
                i = 3; /* "0s" */
        while (duration_us % units[i].us != 0)
                i++;
        snprintf(ret, TIME_DURATION_MAX, "%" PRIu64 "%s", duration_us / units[i].us, units[i].name);
        return ret;
}
