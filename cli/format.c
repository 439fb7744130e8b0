#include "cli/format.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOUR_S UINT64_C(3600)
#define DAY_S (24 * HOUR_S)

/* Three significant digits: 9.99, 99.9, 999. */
static int decimals(double value)
{
        value = fabs(value);
        if (value >= 99.95)
                return 0;
        return value >= 9.995 ? 1 : 2;
}

static char *none(char *ret)
{
        memcpy(ret, "-", 2);
        return ret;
}

/* Divides by @base until it fits; 999.5 of one unit is 1.00 of the next. */
static char *scaled(double value, double base, const char *const *units, char *ret)
{
        size_t i = 0;

        for (; units[i + 1] && fabs(value) >= (base == 1024 ? 1023.5 : 999.5); i++)
                value /= base;
        snprintf(ret, FORMAT_MAX, "%.*f%s", i == 0 && value == rint(value) ? 0 : decimals(value),
                value, units[i]);
        return ret;
}

char *format_bytes(double bytes, char *ret)
{
        static const char *const units[] = {
                " B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB", NULL};

        /* A mean or a rate has fractions of a byte; nobody wants them. */
        return isfinite(bytes)
                       ? scaled(fabs(bytes) < 1023.5 ? rint(bytes) : bytes, 1024, units, ret)
                       : none(ret);
}

char *format_byte_rate(double bytes_per_second, char *ret)
{
        format_bytes(bytes_per_second, ret);
        if (!isfinite(bytes_per_second))
                return ret;
        return strncat(ret, "/s", FORMAT_MAX - 1 - strlen(ret));
}

char *format_whole(double number, char *ret)
{
        if (!isfinite(number) || fabs(number) > 1e18)
                return none(ret);
        snprintf(ret, FORMAT_MAX, "%.0f", number);
        return ret;
}

char *format_count(double count, char *ret)
{
        static const char *const units[] = {"", " k", " M", " G", " T", " P", " E", NULL};

        return isfinite(count) ? scaled(count, 1000, units, ret) : none(ret);
}

char *format_factor(double factor, char *ret)
{
        if (!isfinite(factor))
                return none(ret);
        /* The usual ratio is below 1 and needs three digits to be told from its neighbours. */
        if (factor != 0 && fabs(factor) < 0.0995)
                snprintf(ret, FORMAT_MAX, "%.2g", factor);
        else if (factor != 0 && fabs(factor) < 0.9995)
                snprintf(ret, FORMAT_MAX, "%.3f", factor);
        else
                snprintf(ret, FORMAT_MAX, "%.*f", fabs(factor) < 99.995 ? 2 : 0, factor);
        return ret;
}

char *format_percent(double share, char *ret)
{
        if (!isfinite(share))
                return none(ret);
        snprintf(ret, FORMAT_MAX, "%.*f %%", fabs(share) < 0.09995 ? 1 : 0, share * 100);
        return ret;
}

char *format_age(double seconds, char *ret)
{
        double whole = rint(seconds);
        uint64_t s;

        if (!isfinite(seconds) || fabs(seconds) > 1e12)
                return none(ret);
        if (seconds < 9.95) {
                snprintf(ret, FORMAT_MAX, "%.1f s", seconds < 0 ? 0.0 : seconds);
                return ret;
        }
        s = (uint64_t)whole;
        if (s < 120)
                snprintf(ret, FORMAT_MAX, "%u s", (unsigned)s);
        else if (s < 2 * HOUR_S)
                snprintf(ret, FORMAT_MAX, "%u min", (unsigned)(s / 60));
        else if (s < 2 * DAY_S)
                snprintf(ret, FORMAT_MAX, "%u h %u min", (unsigned)(s / HOUR_S),
                        (unsigned)(s / 60 % 60));
        else
                snprintf(ret, FORMAT_MAX, "%llu d %u h", (unsigned long long)(s / DAY_S),
                        (unsigned)(s / HOUR_S % 24));
        return ret;
}

char *format_latency(double seconds, bool sign, char *ret)
{
        const char *plus = sign && seconds > 0 ? "+" : "";

        if (!isfinite(seconds))
                return none(ret);
        if (fabs(seconds) < 0.9995)
                snprintf(
                        ret, FORMAT_MAX, "%s%.*f ms", plus, decimals(seconds * 1e3), seconds * 1e3);
        else
                snprintf(ret, FORMAT_MAX, "%s%.*f s", plus, decimals(seconds), seconds);
        return ret;
}

char *format_time(double unix_seconds, char *ret)
{
        char date[32], zone[8];
        struct tm tm;
        time_t seconds;

        /* Far enough for any clock, near enough for localtime_r. */
        if (!isfinite(unix_seconds) || fabs(unix_seconds) > 1e11)
                return none(ret);
        seconds = (time_t)floor(unix_seconds);
        if (!localtime_r(&seconds, &tm) ||
                strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm) == 0 ||
                strftime(zone, sizeof(zone), "%z", &tm) != 5)
                return none(ret);
        snprintf(ret, FORMAT_MAX, "%s%.3s:%.2s", date, zone, zone + 3);
        return ret;
}

static void find_range(const double *values, size_t n, double *ret_low, double *ret_high)
{
        *ret_low = INFINITY;
        *ret_high = -INFINITY;
        for (size_t i = 0; i < n; i++) {
                if (!isfinite(values[i]))
                        continue;
                *ret_low = fmin(*ret_low, values[i]);
                *ret_high = fmax(*ret_high, values[i]);
        }
}

char *format_sparkline(const double *values, size_t n, bool utf8)
{
        static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
        static const char *const signs[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
        const char *const *steps = utf8 ? blocks : signs;
        char *line = malloc(3 * n + 1), *p = line;
        double low, high;

        if (!line)
                return NULL;
        find_range(values, n, &low, &high);
        for (size_t i = 0; i < n; i++) {
                double part;

                if (!isfinite(values[i])) {
                        *p++ = ' ';
                        continue;
                }
                /* A level line is drawn in the middle, not at the bottom. */
                part = high > low ? (values[i] - low) / (high - low) : 0.5;
                p = stpcpy(p, steps[(size_t)(part * 7 + 0.5)]);
        }
        *p = '\0';
        return line;
}
