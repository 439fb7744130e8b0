#pragma once
/*
 * A struct described by a table of its fields, so that reading it from JSON, writing it and freeing
 * it are written once, and a new field is one row. Private to lib/facts.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

enum field_type {
        FIELD_TEXT,
        FIELD_ID,
        FIELD_BOOL,
        FIELD_U32,
        FIELD_U64,
        FIELD_SECONDS, /* microseconds here, seconds in JSON */
        FIELD_KIND,    /* enum device_kind */
        FIELD_ERASURE, /* bool; "erasure" or "replicated" in JSON */
        FIELD_TEXTS,   /* char ** and a count */
        FIELD_LIST,    /* array of structs and a count */
};

struct shape;

struct field {
        const char *name;
        enum field_type type;
        bool required;
        size_t offset;
        size_t count_offset; /* of lists */
        uint32_t max;        /* elements of a list */
        const struct shape *shape;
};

struct shape {
        size_t size;
        const struct field *fields; /* ends with a row without name */
};

/*
 * Fills @object, which is all zero. Fields that the table does not know are ignored: a newer sender
 * may say more. @path is where @json stands, for the message. -EINVAL: *ret_message is a sentence.
 * -ENOMEM. On failure, what was read so far stays in @object.
 */
int shape_read(const struct shape *shape, const json_t *json, const char *path, void *object,
        char **ret_message);
/* A new reference, or NULL when there is no memory. */
json_t *shape_write(const struct shape *shape, const void *object);
/* Every text that is still NULL becomes "". -ENOMEM. */
int shape_fill_texts(const struct shape *shape, void *object);
/* Frees all texts and lists inside @object. */
void shape_done(const struct shape *shape, void *object);
