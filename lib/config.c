#include "lib/config.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>

#include "lib/cleanup.h"
#include "lib/time.h"

struct unit {
        const char *name;
        uint64_t factor;
};

static const struct unit duration_units[] = {
        {"us", 1ull},
        {"ms", 1000ull},
        {"s", 1000000ull},
        {"m", 60000000ull},
        {"h", 3600000000ull},
        {"d", 86400000000ull},
        {NULL, 0},
};

static const struct unit byte_units[] = {
        {"", 1ull},
        {"K", 1ull << 10},
        {"M", 1ull << 20},
        {"G", 1ull << 30},
        {"T", 1ull << 40},
        {NULL, 0},
};

static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

/* Digits, then the name of one of @units. */
static int parse_number(const char *text, const struct unit *units, uint64_t *ret)
{
        uint64_t value = 0;

        if (*text < '0' || *text > '9')
                return -EINVAL;
        for (; *text >= '0' && *text <= '9'; text++)
                if (__builtin_mul_overflow(value, 10u, &value) ||
                        __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
                        return -ERANGE;
        while (units->name && strcmp(units->name, text) != 0)
                units++;
        if (!units->name)
                return -EINVAL;
        if (__builtin_mul_overflow(value, units->factor, &value))
                return -ERANGE;
        *ret = value;
        return 0;
}

int config_parse_duration(const char *text, uint64_t *ret_us)
{
        return parse_number(text, duration_units, ret_us);
}

int config_parse_bytes(const char *text, uint64_t *ret_bytes)
{
        return parse_number(text, byte_units, ret_bytes);
}

static int parse_bool(const char *text, bool *ret)
{
        static const char *const words[2][4] = {
                {"no", "false", "0", "off"},
                {"yes", "true", "1", "on"},
        };

        for (size_t i = 0; i < 8; i++)
                if (strcmp(text, words[i / 4][i % 4]) == 0) {
                        *ret = i / 4;
                        return 0;
                }
        return -EINVAL;
}

static void *field_of(const struct config_key *key, void *object)
{
        return (char *)object + key->offset;
}

static int set_string(char **field, const char *text)
{
        char *copy = strdup(text);

        if (!copy)
                return -ENOMEM;
        free(*field);
        *field = copy;
        return 0;
}

/* -ERANGE also when outside @key's own limits. */
static int set_number(const struct config_key *key, uint64_t *field, const char *text)
{
        const struct unit *units = key->type == CONFIG_BYTES      ? byte_units
                                   : key->type == CONFIG_DURATION ? duration_units
                                                                  : no_units;
        uint64_t value;
        int r;

        r = parse_number(text, units, &value);
        if (r < 0)
                return r;
        if (key->max > 0 && (value < key->min || value > key->max))
                return -ERANGE;
        *field = value;
        return 0;
}

static int set_value(const struct config_key *key, void *object, const char *text)
{
        switch (key->type) {
        case CONFIG_STRING:
                return set_string(field_of(key, object), text);
        case CONFIG_BOOL:
                return parse_bool(text, field_of(key, object));
        case CONFIG_INTEGER:
        case CONFIG_BYTES:
        case CONFIG_DURATION:
                return set_number(key, field_of(key, object), text);
        }
        return -EINVAL;
}

static const char *wanted(enum config_type type)
{
        switch (type) {
        case CONFIG_BOOL:
                return "yes or no";
        case CONFIG_INTEGER:
                return "a whole number";
        case CONFIG_BYTES:
                return "a size such as 64K, 16M or 1G";
        case CONFIG_DURATION:
                return "a duration such as 100ms, 10s, 5m, 1h or 7d";
        case CONFIG_STRING:
                break;
        }
        return "text";
}

static void format_bytes(uint64_t value, char *ret, size_t size)
{
        size_t i = 0;

        while (value && value % 1024 == 0 && byte_units[i + 1].name) {
                value /= 1024;
                i++;
        }
        snprintf(ret, size, "%" PRIu64 "%s", value, byte_units[i].name);
}

static void format_limit(const struct config_key *key, uint64_t value, char *ret)
{
        if (key->type == CONFIG_DURATION)
                time_format_duration(value, ret);
        else if (key->type == CONFIG_BYTES)
                format_bytes(value, ret, TIME_DURATION_MAX);
        else
                snprintf(ret, TIME_DURATION_MAX, "%" PRIu64, value);
}

struct reading {
        const char *path;
        FILE *file;
        const struct config_key *keys;
        void *object;
        bool *seen; /* by index of key: a key given twice is a mistake */
        int line;
        /* The first failure; nothing is read after it. */
        int error;
        int error_line;
        char *message; /* NULL only when there is no memory for it */
};

__attribute__((format(printf, 3, 4))) static void fail(
        struct reading *reading, int error, const char *format, ...)
{
        CLEANUP(str) char *text = NULL;
        va_list arguments;
        int n;

        if (reading->error < 0)
                return;
        reading->error = error;
        reading->error_line = reading->line;
        va_start(arguments, format);
        n = vasprintf(&text, format, arguments);
        va_end(arguments);
        if (n < 0)
                text = NULL;
        if (!text ||
                asprintf(&reading->message, "%s:%d: %s", reading->path, reading->line, text) < 0)
                reading->message = NULL;
}

static bool section_is_known(const struct config_key *keys, const char *section, size_t length)
{
        for (; keys->section; keys++)
                if (strlen(keys->section) == length && memcmp(keys->section, section, length) == 0)
                        return true;
        return false;
}

/* inih calls back for keys only; an unknown section without keys would pass unseen. */
static void check_section(struct reading *reading, const char *line)
{
        const char *end = line[0] == '[' ? strchr(line, ']') : NULL;

        if (end && !section_is_known(reading->keys, line + 1, end - line - 1))
                fail(reading, -EINVAL, "unknown section [%.*s]", (int)(end - line - 1), line + 1);
}

/*
 * The reader of inih: one line a call, so that our count of lines is right. Leading blanks are
 * dropped, since inih takes an indented line for more of the value before it.
 */
static char *read_line(char *line, int size, void *userdata)
{
        struct reading *reading = userdata;
        int length = 0, c;

        if (reading->error < 0)
                return NULL;
        reading->line++;
        while ((c = getc(reading->file)) != EOF && c != '\n') {
                if (c == '\0') {
                        fail(reading, -EINVAL, "the line contains a zero byte");
                        return NULL;
                }
                if (length == 0 && (c == ' ' || c == '\t'))
                        continue;
                if (length >= size - 2) {
                        fail(reading, -EINVAL, "the line is longer than %d bytes", size - 2);
                        return NULL;
                }
                line[length++] = (char)c;
        }
        if (c == EOF && ferror(reading->file))
                fail(reading, -errno, "reading failed: %s", strerror(errno));
        if (c == EOF && length == 0)
                return NULL;
        line[length] = '\0';
        check_section(reading, line);
        line[length++] = '\n';
        line[length] = '\0';
        return reading->error < 0 ? NULL : line;
}

static const struct config_key *find_key(
        const struct config_key *keys, const char *section, const char *name)
{
        for (; keys->section; keys++)
                if (strcmp(keys->section, section) == 0 && strcmp(keys->name, name) == 0)
                        return keys;
        return NULL;
}

static void fail_value(
        struct reading *reading, const struct config_key *key, const char *value, int error)
{
        char min[TIME_DURATION_MAX], max[TIME_DURATION_MAX];

        if (error == -ENOMEM) {
                fail(reading, error, "out of memory");
                return;
        }
        if (error == -ERANGE && key->max > 0) {
                format_limit(key, key->min, min);
                format_limit(key, key->max, max);
                fail(reading, -EINVAL, "%s = %s is out of range: it must be %s to %s", key->name,
                        value, min, max);
                return;
        }
        fail(reading, -EINVAL, "%s = %s is wrong: it must be %s", key->name, value,
                wanted(key->type));
}

/* inih's convention: non-zero is success. */
static int take_pair(void *userdata, const char *section, const char *name, const char *value)
{
        struct reading *reading = userdata;
        const struct config_key *key = find_key(reading->keys, section, name);

        if (reading->error < 0)
                return 0;
        if (!*section) {
                fail(reading, -EINVAL, "key '%s' stands before any [section]", name);
        } else if (!key) {
                fail(reading, -EINVAL, "unknown key '%s' in section [%s]", name, section);
        } else if (reading->seen[key - reading->keys]) {
                fail(reading, -EINVAL, "key '%s' is given twice in section [%s]", name, section);
        } else {
                int r = set_value(key, reading->object, value ? value : "");

                reading->seen[key - reading->keys] = true;
                if (r < 0)
                        fail_value(reading, key, value ? value : "", r);
        }
        return reading->error == 0;
}

static int set_defaults(const struct config_key *keys, void *object)
{
        for (const struct config_key *key = keys; key->section; key++)
                if (key->type == CONFIG_STRING)
                        *(char **)field_of(key, object) = NULL;

        for (const struct config_key *key = keys; key->section; key++) {
                int r = set_value(key, object, key->default_value ? key->default_value : "");

                if (r == -ENOMEM)
                        return r;
                assert(r == 0); /* the table is wrong, not the file */
        }
        return 0;
}

static int read_file(struct reading *reading)
{
        int line = ini_parse_stream(read_line, reading, take_pair, reading);

        /* A line that inih refused by itself; ours may have failed further down. */
        if (line > 0 && (reading->error == 0 || line < reading->error_line)) {
                free(reading->message);
                reading->message = NULL;
                reading->error = 0;
                reading->line = line;
                fail(reading, -EINVAL,
                        "the line is neither 'key = value' nor '[section]' nor a comment");
        }
        if (line == -2)
                fail(reading, -ENOMEM, "out of memory");
        return reading->error;
}

static size_t count_keys(const struct config_key *keys)
{
        size_t n = 0;

        while (keys[n].section)
                n++;
        return n;
}

int config_load(const char *path, const struct config_key *keys, void *object, char **ret_message)
{
        CLEANUP(file) FILE *file = NULL;
        CLEANUP(mem) bool *seen = NULL;
        struct reading reading;
        int r;

        *ret_message = NULL;
        r = set_defaults(keys, object);
        if (r < 0 || !path)
                return r;

        file = fopen(path, "re");
        if (!file) {
                r = -errno;
                if (asprintf(ret_message, "cannot read %s: %s", path, strerror(errno)) < 0)
                        *ret_message = NULL;
                return r;
        }
        seen = calloc(count_keys(keys) + 1, sizeof(*seen));
        if (!seen)
                return -ENOMEM;

        reading = (struct reading){
                .path = path, .file = file, .keys = keys, .object = object, .seen = seen};
        r = read_file(&reading);
        *ret_message = reading.message;
        return r;
}

void config_done(const struct config_key *keys, void *object)
{
        for (; keys->section; keys++)
                if (keys->type == CONFIG_STRING) {
                        char **field = field_of(keys, object);

                        free(*field);
                        *field = NULL;
                }
}
