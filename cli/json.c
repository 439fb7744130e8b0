#include "cli/json.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static double number_or_nan(const json_t *json)
{
        return json_is_number(json) ? json_number_value(json) : NAN;
}

static const char *text_or_empty(const json_t *json)
{
        return json_is_string(json) ? json_string_value(json) : "";
}

double json_get_number(const json_t *json, const char *key)
{
        return number_or_nan(json_object_get(json, key));
}

const char *json_get_text(const json_t *json, const char *key)
{
        return text_or_empty(json_object_get(json, key));
}

double json_number_at(const json_t *array, size_t index)
{
        return number_or_nan(json_array_get(array, index));
}

const char *json_text_at(const json_t *array, size_t index)
{
        return text_or_empty(json_array_get(array, index));
}

static bool is_control(const unsigned char *p)
{
        /* C0 and DEL; C1 is 0xc2 0x80..0x9f in UTF-8. */
        return *p < 0x20 || *p == 0x7f || (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0);
}

static int clean_text(json_t *json)
{
        CLEANUP(str) char *text = NULL;
        bool dirty = false;

        for (const char *p = json_string_value(json); *p && !dirty; p++)
                dirty = is_control((const unsigned char *)p);
        if (!dirty)
                return 0;
        text = strdup(json_string_value(json));
        if (!text)
                return -ENOMEM;
        for (unsigned char *p = (unsigned char *)text; *p; p++) {
                if (!is_control(p))
                        continue;
                if (*p == 0xc2)
                        *p++ = '?';
                *p = '?';
        }
        return json_string_set(json, text) < 0 ? -ENOMEM : 0;
}

void json_clean_lines(char *text)
{
        for (unsigned char *p = (unsigned char *)text; *p; p++) {
                if (*p == '\n' || *p == '\r' || !is_control(p))
                        continue;
                if (*p == 0xc2)
                        *p++ = '?';
                *p = '?';
        }
}

/* jansson bounds the depth to 2048. Keys are ours to look up, never printed. */
int json_clean(json_t *json)
{
        const char *key;
        json_t *value;
        size_t i;
        int r = 0;

        if (json_is_string(json))
                return clean_text(json);
        if (json_is_array(json))
                json_array_foreach (json, i, value) {
                        r = json_clean(value);
                        if (r < 0)
                                return r;
                }
        if (json_is_object(json))
                json_object_foreach (json, key, value) {
                        r = json_clean(value);
                        if (r < 0)
                                return r;
                }
        return 0;
}
