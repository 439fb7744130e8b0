#pragma once
/*
 * Times and durations as people and queries write them. Times are Unix time in microseconds, UTC;
 * "now" comes in as an argument. docs/api.md ("Times in queries") lists the forms. Durations are
 * parsed by config_parse_duration (lib/config.h).
 */

#include <stdbool.h>
#include <stdint.h>

#define TIME_TEXT_MAX 40u     /* of a formatted time, with the terminating NUL */
#define TIME_DURATION_MAX 32u /* of a formatted duration, with the terminating NUL */

/* Times stay inside the years 1970 to 2261, so that sums of a time and a duration cannot overflow.
 */
#define TIME_MAX_US INT64_C(9190000000000000)

/*
 * Reads RFC 3339 ("2026-11-30T10:00:00Z", "…T10:00:00.25+01:00", a space or lower case for the T),
 * Unix seconds ("1796027570", "1796027570.5"), "now", or relative to @now_us: "-15m", "+5s",
 * "now-1h", "now+5s". *ret_relative says whether @now_us was used; it may be NULL.
 * -EINVAL: not one of these. -ERANGE: outside 0..TIME_MAX_US.
 */
int time_parse(const char *text, int64_t now_us, int64_t *ret_us, bool *ret_relative);

/* UTC, "2026-11-30T10:00:00Z", with a fraction (3 or 6 digits) only when there is one; writes
 * @ret[TIME_TEXT_MAX] and returns @ret. */
char *time_format_rfc3339(int64_t time_us, char *ret);

/* The longest unit that needs no fraction: "500ms", "10s", "5m", "1h", "7d"; below a millisecond
 * "250us". What config_parse_duration reads. Writes @ret[TIME_DURATION_MAX] and returns @ret. */
char *time_format_duration(uint64_t duration_us, char *ret);
