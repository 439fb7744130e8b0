#pragma once
/* The captured node of tests/fixtures/node, to be spoilt, and the source "host" that reads it.
 * Included behind cmocka.h. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/source.h"

static const struct source_report no_report;

/* A copy of the captured node, free to be changed. */
static inline void node_copy(char *ret_root)
{
        char command[1024];

        strcpy(ret_root, "/tmp/strata-test-XXXXXX");
        assert_non_null(mkdtemp(ret_root));
        snprintf(command, sizeof(command), "cp -r '%s/node/.' '%s'", getenv("STRATA_FIXTURES"),
                ret_root);
        assert_int_equal(system(command), 0);
}

static inline void node_remove(const char *root)
{
        char command[512];

        snprintf(command, sizeof(command), "rm -r '%s'", root);
        assert_int_equal(system(command), 0);
}

static inline void file_write(const char *root, const char *file, const char *text)
{
        char path[512];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", root, file);
        f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        assert_int_equal(fclose(f), 0);
}

static inline struct source *source_of(const char *root)
{
        struct source_options options = {.root = root};
        struct source *source;

        assert_int_equal(source_host.open(&options, &no_report, &source), 0);
        return source;
}

static inline const struct block_entity *entity(const struct sample *sample, const char *name)
{
        for (uint32_t i = 0; i < sample->n_entities; i++)
                if (strcmp(sample->entities[i].name, name) == 0)
                        return &sample->entities[i];
        return NULL;
}

static inline int64_t value(const struct sample *sample, const char *name, uint16_t metric)
{
        const struct block_entity *wanted = entity(sample, name);

        for (uint32_t i = 0; wanted && i < sample->n_columns; i++)
                if (&sample->entities[sample->columns[i].entity] == wanted &&
                        sample->columns[i].metric == metric)
                        return (int64_t)sample->values[i];
        return -1;
}
