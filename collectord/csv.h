#pragma once
/* Tables as RFC 4180 writes them, for GET /export. What is null in JSON is an empty field. */

#include <jansson.h>

#include "collectord/text.h"

/* Each writes a field, with a comma before it unless it is the first of its line. */
void csv_string(struct text *text, const char *value);
void csv_number(struct text *text, double value);
void csv_time(struct text *text, int64_t time_us);
/* Of several values: arrays of words with spaces between, other arrays and objects as JSON. */
void csv_json(struct text *text, const json_t *value);
void csv_end_line(struct text *text);
