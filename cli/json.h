#pragma once
/* Reading the collector's answers: what is missing or null is NAN or "", never 0. */

#include <jansson.h>

#include "lib/cleanup.h"

DEFINE_CLEANUP(json, json_t *, json_decref)

/* NAN when there is no such number. */
double json_get_number(const json_t *json, const char *key);
/* "" when there is no such text. */
const char *json_get_text(const json_t *json, const char *key);
/* NAN when there is none at @index. */
double json_number_at(const json_t *array, size_t index);
const char *json_text_at(const json_t *array, size_t index);

/* Replaces the control characters in all texts of @json, because they end on a terminal. -ENOMEM.
 */
int json_clean(json_t *json);
/* The same in a text of lines, whose ends stay. */
void json_clean_lines(char *text);
