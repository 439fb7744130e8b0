#pragma once
/* Samples whose every value follows from its place, for the tests of the agent's core. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/source.h"

#define FIXTURE_ENTITIES 3u
#define FIXTURE_COLUMNS 6u

struct fixture {
        struct sample sample;
        struct block_entity entities[FIXTURE_ENTITIES];
        struct block_column columns[FIXTURE_COLUMNS];
        uint64_t values[FIXTURE_COLUMNS];
        uint8_t present[FIXTURE_ENTITIES];
};

static inline uint64_t fixture_value(uint64_t row, uint32_t column)
{
        return row * 1000 + column * 7 + 1;
}

static inline void fixture_init(struct fixture *fixture)
{
        static const char *const names[] = {"sda", "sdb", "dm-0"};

        memset(fixture, 0, sizeof(*fixture));
        for (uint32_t i = 0; i < FIXTURE_ENTITIES; i++) {
                fixture->entities[i] =
                        (struct block_entity){.name = names[i], .identity = "", .instance = i + 5};
                fixture->columns[2 * i] = (struct block_column){i, METRIC_DISK_READ_OPS};
                fixture->columns[2 * i + 1] = (struct block_column){i, METRIC_DISK_WRITE_OPS};
        }
        fixture->sample = (struct sample){
                .generation = 1,
                .entities = fixture->entities,
                .n_entities = FIXTURE_ENTITIES,
                .columns = fixture->columns,
                .n_columns = FIXTURE_COLUMNS,
                .values = fixture->values,
                .present = fixture->present,
        };
}

/* Row @row, one a second; every fifth row lacks its second entity. */
static inline void fixture_set(struct fixture *fixture, uint64_t row)
{
        for (uint32_t i = 0; i < FIXTURE_COLUMNS; i++)
                fixture->values[i] = fixture_value(row, i);
        memset(fixture->present, 1, sizeof(fixture->present));
        fixture->present[1] = row % 5 != 0;
        fixture->sample.time_us = ((int64_t)row + 1) * 1000000;
}

/* A folder of its own, in memory where that is possible; the caller frees the name. */
static inline char *fixture_folder(void)
{
        const char *parent = getenv("TMPDIR");
        char *path = NULL;

        if (asprintf(&path, "%s/strata-test-XXXXXX",
                    parent                          ? parent
                    : access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                                    : "/tmp") < 0)
                abort();
        if (!mkdtemp(path))
                abort();
        return path;
}

static inline void fixture_remove(char *folder)
{
        char command[512];

        snprintf(command, sizeof(command), "rm -rf '%s'", folder);
        if (system(command) != 0)
                abort();
        free(folder);
}
