#include "lib/shape.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/facts.h"
#include "lib/message.h"

#define TEXT_MAX 1024u     /* far above the longest model name, path or health sentence */
#define PATH_MAX_BYTES 96u /* "clusters[63].osds[65535].min_alloc_size" and room */

static void *at(void *object, size_t offset)
{
        return (char *)object + offset;
}

static const void *at_const(const void *object, size_t offset)
{
        return (const char *)object + offset;
}

void shape_done(const struct shape *shape, void *object)
{
        for (const struct field *field = shape->fields; field->name; field++) {
                void **pointer = at(object, field->offset);
                size_t n = 0;

                if (field->type == FIELD_TEXTS || field->type == FIELD_LIST)
                        n = *(size_t *)at(object, field->count_offset);
                else if (field->type != FIELD_TEXT)
                        continue;
                for (size_t i = 0; *pointer && i < n; i++)
                        if (field->type == FIELD_TEXTS)
                                free(((char **)*pointer)[i]);
                        else
                                shape_done(field->shape, at(*pointer, i * field->shape->size));
                free(*pointer);
        }
}

int shape_fill_texts(const struct shape *shape, void *object)
{
        for (const struct field *field = shape->fields; field->name; field++) {
                char **text = at(object, field->offset);

                if (field->type != FIELD_TEXT || *text)
                        continue;
                *text = strdup("");
                if (!*text)
                        return -ENOMEM;
        }
        return 0;
}

static int read_text(const json_t *json, const char *path, char **ret, char **ret_message)
{
        if (!json_is_string(json))
                return message_refuse(ret_message, "%s must be text", path);
        if (json_string_length(json) > TEXT_MAX)
                return message_refuse(ret_message, "%s is longer than %u bytes", path, TEXT_MAX);
        *ret = strdup(json_string_value(json));
        return *ret ? 0 : -ENOMEM;
}

static int read_integer(
        const json_t *json, const char *path, uint64_t max, uint64_t *ret, char **ret_message)
{
        if (!json_is_integer(json) || json_integer_value(json) < 0 ||
                (uint64_t)json_integer_value(json) > max)
                return message_refuse(
                        ret_message, "%s must be a whole number from 0 to %" PRIu64, path, max);
        *ret = json_integer_value(json);
        return 0;
}

static int read_u32(const json_t *json, const char *path, uint32_t *ret, char **ret_message)
{
        uint64_t value = 0;
        int r = read_integer(json, path, UINT32_MAX, &value, ret_message);

        if (r < 0)
                return r;
        *ret = (uint32_t)value;
        return 0;
}

static int read_seconds(const json_t *json, const char *path, uint64_t *ret_us, char **ret_message)
{
        double seconds = json_number_value(json);

        /* A day is far above any sensible mgr_stats_period. */
        if (!json_is_number(json) || !(seconds >= 0 && seconds <= 86400))
                return message_refuse(
                        ret_message, "%s must be a number of seconds from 0 to 86400", path);
        *ret_us = (uint64_t)(seconds * 1e6 + 0.5);
        return 0;
}

/* The types that JSON writes as one of a few words, or as a UUID. */
static int read_word(const json_t *json, const char *path, enum field_type type, void *target,
        char **ret_message)
{
        const char *text = json_string_value(json);

        if (type == FIELD_ID) {
                if (!text || id_parse(text, target) < 0)
                        return message_refuse(ret_message, "%s must be a UUID", path);
                return 0;
        }
        if (type == FIELD_KIND) {
                if (!text || device_kind_parse(text, target) < 0)
                        return message_refuse(ret_message,
                                "%s must be a kind of device, such as "
                                "\"disk\" or \"partition\"",
                                path);
                return 0;
        }
        if (!text || (strcmp(text, "erasure") != 0 && strcmp(text, "replicated") != 0))
                return message_refuse(
                        ret_message, "%s must be \"replicated\" or \"erasure\"", path);
        *(bool *)target = strcmp(text, "erasure") == 0;
        return 0;
}

static int read_list(const struct field *field, const json_t *json, const char *path, void *object,
        char **ret_message)
{
        size_t size = field->type == FIELD_LIST ? field->shape->size : sizeof(char *);
        size_t *count = at(object, field->count_offset);
        void **elements = at(object, field->offset);
        size_t n = json_array_size(json);
        char element_path[PATH_MAX_BYTES];

        if (!json_is_array(json))
                return message_refuse(ret_message, "%s must be a list", path);
        if (n > field->max)
                return message_refuse(
                        ret_message, "%s must have at most %u elements", path, field->max);
        if (n == 0)
                return 0;
        *elements = calloc(n, size);
        if (!*elements)
                return -ENOMEM;
        *count = n;
        for (size_t i = 0; i < n; i++) {
                const json_t *element = json_array_get(json, i);
                void *target = at(*elements, i * size);
                int r;

                if (snprintf(element_path, sizeof(element_path), "%s[%zu]", path, i) >=
                        (int)sizeof(element_path))
                        return -ENAMETOOLONG; /* no table is nested this deep */
                if (field->type == FIELD_LIST)
                        r = shape_read(field->shape, element, element_path, target, ret_message);
                else
                        r = read_text(element, element_path, target, ret_message);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_field(const struct field *field, const json_t *json, const char *path, void *object,
        char **ret_message)
{
        void *target = at(object, field->offset);

        switch (field->type) {
        case FIELD_TEXT:
                return read_text(json, path, target, ret_message);
        case FIELD_BOOL:
                if (!json_is_boolean(json))
                        return message_refuse(ret_message, "%s must be true or false", path);
                *(bool *)target = json_is_true(json);
                return 0;
        case FIELD_U32:
                return read_u32(json, path, target, ret_message);
        case FIELD_U64:
                return read_integer(json, path, INT64_MAX, target, ret_message);
        case FIELD_SECONDS:
                return read_seconds(json, path, target, ret_message);
        case FIELD_ID:
        case FIELD_KIND:
        case FIELD_ERASURE:
                return read_word(json, path, field->type, target, ret_message);
        case FIELD_TEXTS:
        case FIELD_LIST:
                return read_list(field, json, path, object, ret_message);
        }
        return -EINVAL;
}

int shape_read(const struct shape *shape, const json_t *json, const char *path, void *object,
        char **ret_message)
{
        char field_path[PATH_MAX_BYTES];

        if (!json_is_object(json))
                return message_refuse(ret_message, "%s must be an object", *path ? path : "facts");
        for (const struct field *field = shape->fields; field->name; field++) {
                const json_t *value = json_object_get(json, field->name);
                int r;

                snprintf(field_path, sizeof(field_path), "%s%s%s", path, *path ? "." : "",
                        field->name);
                if (!value && field->required)
                        return message_refuse(ret_message, "%s is missing", field_path);
                if (!value)
                        continue;
                r = read_field(field, value, field_path, object, ret_message);
                if (r < 0)
                        return r;
        }
        return shape_fill_texts(shape, object);
}

/* Names come from the kernel and from Ceph, and are not always UTF-8; such a byte becomes '?'. */
static json_t *write_text(const char *text)
{
        CLEANUP(str) char *copy = NULL;
        json_t *json = json_string(text ? text : "");

        if (json)
                return json;
        copy = strdup(text ? text : "");
        for (char *p = copy; p && *p; p++)
                if ((unsigned char)*p >= 0x80)
                        *p = '?';
        return copy ? json_string(copy) : NULL;
}

static json_t *write_list(const struct field *field, const void *object)
{
        const void *elements = *(void *const *)at_const(object, field->offset);
        size_t n = *(const size_t *)at_const(object, field->count_offset);
        json_t *list = json_array();

        for (size_t i = 0; list && i < n; i++) {
                json_t *element;

                if (field->type == FIELD_TEXTS)
                        element = write_text(((char *const *)elements)[i]);
                else
                        element = shape_write(
                                field->shape, at_const(elements, i * field->shape->size));
                if (json_array_append_new(list, element) < 0) {
                        json_decref(list);
                        return NULL;
                }
        }
        return list;
}

static json_t *write_field(const struct field *field, const void *object)
{
        const void *source = at_const(object, field->offset);
        char text[ID_TEXT_MAX];

        switch (field->type) {
        case FIELD_TEXT:
                return write_text(*(char *const *)source);
        case FIELD_ID:
                return json_string(id_format(source, text));
        case FIELD_BOOL:
                return json_boolean(*(const bool *)source);
        case FIELD_U32:
                return json_integer(*(const uint32_t *)source);
        case FIELD_U64:
                return json_integer((json_int_t) * (const uint64_t *)source);
        case FIELD_SECONDS:
                return json_real((double)*(const uint64_t *)source / 1e6);
        case FIELD_KIND:
                return json_string(device_kind_name(*(const enum device_kind *)source));
        case FIELD_ERASURE:
                return json_string(*(const bool *)source ? "erasure" : "replicated");
        case FIELD_TEXTS:
        case FIELD_LIST:
                return write_list(field, object);
        }
        return NULL;
}

json_t *shape_write(const struct shape *shape, const void *object)
{
        json_t *json = json_object();

        for (const struct field *field = shape->fields; json && field->name; field++)
                if (json_object_set_new(json, field->name, write_field(field, object)) < 0) {
                        json_decref(json);
                        return NULL;
                }
        return json;
}
