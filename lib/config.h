#pragma once
/*
 * INI configuration, read into a plain struct by a const table of keys. Every key of the shipped
 * file stands in the table with its default, so a struct filled from an empty file is complete. An
 * unknown section or key, a value out of range, or a broken line is an error that names file and
 * line.
 */

#include <stddef.h>
#include <stdint.h>

enum config_type {
        CONFIG_STRING,   /* char * field, owned by the struct */
        CONFIG_BOOL,     /* bool field: yes/no/true/false/1/0/on/off */
        CONFIG_INTEGER,  /* uint64_t field, between min and max */
        CONFIG_BYTES,    /* uint64_t field in bytes: 64K, 16M, 1G (powers of 1024) */
        CONFIG_DURATION, /* uint64_t field in microseconds: 100ms, 10s, 5m, 1h, 7d */
};

struct config_key {
        const char *section;
        const char *name;
        enum config_type type;
        size_t offset;             /* of the field in the struct */
        const char *default_value; /* as it would stand in the file */
        uint64_t min, max;         /* numbers only; in the field's unit; max 0 is no limit */
};

/*
 * Fills @object from the file at @path; @path NULL gives the defaults. On failure *ret_message is a
 * sentence the caller frees ("/etc/strata/agentd.conf:7: unknown key 'intervall' in section
 * [agent]"). -ENOENT, -EACCES, -EISDIR: the file cannot be read. -EINVAL: its content is wrong.
 * -ENOMEM.
 * @keys ends with a row whose section is NULL. Strings set so far stay owned by @object on failure.
 */
int config_load(const char *path, const struct config_key *keys, void *object, char **ret_message);
/* Frees the strings of @object. */
void config_done(const struct config_key *keys, void *object);

/* The parsers of one value, shared with the command lines and the plan. -EINVAL, -ERANGE. */
int config_parse_duration(const char *text, uint64_t *ret_us);
int config_parse_bytes(const char *text, uint64_t *ret_bytes);
