#pragma once
/*
 * Numbers as an operator reads them: three significant digits and a unit; "-" for a value that does
 * not exist (NAN). Each writes into @ret[FORMAT_MAX] and returns @ret.
 */

#include <stdbool.h>
#include <stddef.h>

#define FORMAT_MAX 48u

/* IEC: "0 B", "512 B", "16.0 KiB", "1.21 GiB". */
char *format_bytes(double bytes, char *ret);
/* "16.0 KiB/s" */
char *format_byte_rate(double bytes_per_second, char *ret);
/* "12345" */
char *format_whole(double number, char *ret);
/* SI: "0", "0.25", "950", "1.29 k", "12.3 M". */
char *format_count(double count, char *ret);
/* "6.39", "0.156", "0.0012", "120". */
char *format_factor(double factor, char *ret);
/* Of 0..1: "0.1 %", "100 %". */
char *format_percent(double share, char *ret);
/* A span for a sentence: "0.4 s", "12 s", "5 min", "3 h 20 min", "4 d 2 h". */
char *format_age(double seconds, char *ret);
/* A latency or clock offset: "0.36 ms", "1.20 s"; "+" before it when @sign and it is positive. */
char *format_latency(double seconds, bool sign, char *ret);
/* RFC 3339 in local time, whole seconds: "2026-11-30T11:32:50+01:00". */
char *format_time(double unix_seconds, char *ret);

/*
 * One character a value, scaled between the smallest and the largest; NAN is a blank. ASCII when
 * not @utf8. The caller frees; NULL when there is no memory.
 */
char *format_sparkline(const double *values, size_t n, bool utf8);
