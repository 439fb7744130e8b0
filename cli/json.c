#include "cli/json.h"

#include <math.h>

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
