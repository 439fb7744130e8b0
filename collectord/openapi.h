#pragma once
/* docs/openapi.json, made a part of the program when it is built. */

#include <stddef.h>

extern const char openapi_json[];
extern const size_t openapi_json_size;
