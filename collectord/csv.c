#include "collectord/csv.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void separate(struct text *text)
{
        if (text->size > 0 && text->data[text->size - 1] != '\n')
                text_add(text, ",");
}

void csv_string(struct text *text, const char *value)
{
        char one[2] = "";

        separate(text);
        /* An empty first field would look as if there were none yet. */
        if (!value || !*value) {
                if (text->size == 0 || text->data[text->size - 1] == '\n')
                        text_add(text, "\"\"");
                return;
        }
        if (!strpbrk(value, ",\"\r\n")) {
                text_add(text, value);
                return;
        }
        text_add(text, "\"");
        for (; *value; value++) {
                one[0] = *value;
                if (*value == '"')
                        text_add(text, "\"");
                text_add(text, one);
        }
        text_add(text, "\"");
}

void csv_number(struct text *text, double value)
{
        if (!isfinite(value)) {
                csv_string(text, NULL);
                return;
        }
        separate(text);
        text_number(text, value);
}

void csv_time(struct text *text, int64_t time_us)
{
        separate(text);
        text_time(text, time_us);
}

static bool is_words(const json_t *array)
{
        size_t i;
        json_t *value;

        json_array_foreach (array, i, value)
                if (!json_is_string(value) && !json_is_integer(value))
                        return false;
        return json_is_array(array);
}

static void add_words(struct text *text, const json_t *array)
{
        struct text words = {0};
        size_t i;
        json_t *value;

        json_array_foreach (array, i, value) {
                if (i > 0)
                        text_add(&words, " ");
                if (json_is_string(value))
                        text_add(&words, json_string_value(value));
                else
                        text_format(&words, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        }
        csv_string(text, words.data);
        if (words.error)
                text->error = words.error;
        text_done(&words);
}

void csv_json(struct text *text, const json_t *value)
{
        CLEANUP(str) char *json = NULL;

        if (json_is_string(value)) {
                csv_string(text, json_string_value(value));
        } else if (json_is_number(value)) {
                csv_number(text, json_number_value(value));
        } else if (json_is_boolean(value)) {
                csv_string(text, json_is_true(value) ? "true" : "false");
        } else if (!value || json_is_null(value)) {
                csv_string(text, NULL);
        } else if (is_words(value)) {
                add_words(text, value);
        } else {
                json = json_dumps(value, JSON_COMPACT);
                csv_string(text, json);
        }
}

void csv_end_line(struct text *text)
{
        text_add(text, "\r\n");
}
