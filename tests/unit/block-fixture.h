#pragma once
/*
 * Random rows for the tests of the block codec and for the seeds of its fuzzer. The same seed gives
 * the same rows everywhere.
 */

#include <stdlib.h>

#include "lib/block-format.h"
#include "lib/metric.h"

/* Rows with all the memory behind them, and how to make random ones. */
struct fixture {
        struct block_rows rows;
        struct block_entity *entities;
        struct block_column *columns;
        int64_t *times;
        uint64_t *values;
        uint8_t *present;
        char *names; /* [2 x entities][BLOCK_NAME_MAX + 1] */
};

static inline void fixture_cleanup(struct fixture *fixture)
{
        free(fixture->entities);
        free(fixture->columns);
        free(fixture->times);
        free(fixture->values);
        free(fixture->present);
        free(fixture->names);
}

/* splitmix64: the same numbers everywhere for one seed. */
static inline uint64_t next(uint64_t *seed)
{
        uint64_t x = *seed += 0x9e3779b97f4a7c15;

        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
        x = (x ^ x >> 27) * 0x94d049bb133111eb;
        return x ^ x >> 31;
}

static inline uint64_t below(uint64_t *seed, uint64_t limit)
{
        return next(seed) % limit;
}

static inline void fixture_allocate(
        struct fixture *fixture, uint32_t n_rows, uint32_t n_entities, uint32_t n_columns)
{
        struct block_rows *rows = &fixture->rows;

        fixture->entities = calloc(n_entities + 1, sizeof(*fixture->entities));
        fixture->columns = calloc(n_columns + 1, sizeof(*fixture->columns));
        fixture->times = calloc(n_rows + 1, sizeof(*fixture->times));
        fixture->values = calloc((size_t)n_rows * n_columns + 1, sizeof(*fixture->values));
        fixture->present = calloc((size_t)n_rows * n_entities + 1, 1);
        fixture->names = calloc(n_entities + 1, 2 * (BLOCK_NAME_MAX + 1));
        if (!fixture->entities || !fixture->columns || !fixture->times || !fixture->values ||
                !fixture->present || !fixture->names)
                abort();
        rows->header.rows = n_rows;
        rows->entities = fixture->entities;
        rows->n_entities = n_entities;
        rows->columns = fixture->columns;
        rows->n_columns = n_columns;
        rows->times_us = fixture->times;
        rows->values = fixture->values;
}

static inline void random_id(uint64_t *seed, struct id *ret)
{
        for (size_t i = 0; i < sizeof(ret->bytes); i++)
                ret->bytes[i] = (uint8_t)next(seed);
}

static inline void random_text(uint64_t *seed, char *ret)
{
        size_t size = below(seed, 20) == 0 ? BLOCK_NAME_MAX : below(seed, 12);

        for (size_t i = 0; i < size; i++)
                ret[i] = (char)(1 + below(seed, 255));
        ret[size] = '\0';
}

static inline void random_entities(struct fixture *fixture, uint64_t *seed)
{
        for (uint32_t i = 0; i < fixture->rows.n_entities; i++) {
                char *name = fixture->names + (size_t)i * 2 * (BLOCK_NAME_MAX + 1);
                struct block_entity *entity = &fixture->entities[i];

                random_text(seed, name);
                random_text(seed, name + BLOCK_NAME_MAX + 1);
                entity->name = name;
                entity->identity = name + BLOCK_NAME_MAX + 1;
                entity->instance = next(seed) >> below(seed, 64);
                if (below(seed, 3) == 0)
                        entity->cluster = fixture->rows.header.cluster;
                else if (below(seed, 3) == 0)
                        random_id(seed, &entity->cluster);
        }
}

/* A column as counters and gauges come: constant, slow, fast, divisible, wrapped, reset, noise. */
static inline void random_column(struct fixture *fixture, uint64_t *seed, uint32_t column)
{
        static const uint64_t starts[] = {0, 1, UINT32_MAX - 100, UINT64_MAX - 100, 1ull << 63};
        uint64_t kind = below(seed, 8), factor = 1 + below(seed, 2) * below(seed, 5000);
        uint64_t value = below(seed, 2) ? starts[below(seed, 5)] : next(seed) >> below(seed, 64);
        unsigned width = (unsigned)below(seed, 64);

        for (uint32_t row = 0; row < fixture->rows.header.rows; row++) {
                fixture->values[(size_t)row * fixture->rows.n_columns + column] = value;
                if (kind == 0)
                        continue;
                if (kind == 1)
                        value = next(seed) >> width;
                else if (kind == 2)
                        value = (uint32_t)(value + below(seed, 300) * factor);
                else if (kind == 3 && below(seed, 10) == 0)
                        value = 0;
                else if (kind == 4)
                        value += (below(seed, 7) - 3) * factor;
                else
                        value += (next(seed) >> width) * factor;
        }
}

/* The weighted time of the last entity, as the kernel makes it or nearly so. */
static inline void random_weighted(struct fixture *fixture, uint64_t *seed)
{
        uint32_t n_columns = fixture->rows.n_columns, begin = n_columns;

        for (uint32_t k = 0; k < n_columns; k++)
                if (fixture->columns[k].entity == fixture->columns[n_columns - 1].entity)
                        begin = k < begin ? k : begin;
        for (uint32_t k = begin; k < n_columns; k++) {
                if (fixture->columns[k].metric != METRIC_DISK_WEIGHTED_TIME)
                        continue;
                for (uint32_t row = 0; row < fixture->rows.header.rows; row++) {
                        uint64_t *values = fixture->values + (size_t)row * n_columns;

                        values[k] = below(seed, 4);
                        for (uint32_t m = begin; m < n_columns; m++)
                                for (int part = 0; part < 4; part++)
                                        if (fixture->columns[m].metric ==
                                                block_weighted_parts[part])
                                                values[k] += values[m];
                        values[k] = (uint32_t)values[k];
                }
        }
}

static inline void random_fixture(struct fixture *fixture, uint64_t *seed, uint32_t n_rows,
        uint32_t n_entities, uint32_t n_columns)
{
        struct block_header *header = &fixture->rows.header;
        uint64_t jitter = below(seed, 2) * (1 + below(seed, 100000));
        uint32_t entity = 0;

        fixture_allocate(fixture, n_rows, n_entities, n_columns);
        random_id(seed, &header->host);
        random_id(seed, &header->boot);
        if (below(seed, 2))
                random_id(seed, &header->cluster);
        header->source = (uint16_t)below(seed, 6);
        header->sequence = next(seed);
        header->interval_us = below(seed, 5) ? 1000000 : next(seed) >> below(seed, 64);
        random_entities(fixture, seed);
        for (uint32_t k = 0; k < n_columns; k++) {
                while (entity + 1 < n_entities && below(seed, n_columns) < n_entities)
                        entity++;
                fixture->columns[k].entity = entity;
                fixture->columns[k].metric =
                        (uint16_t)(below(seed, 8) ? 1 + k % 17 : below(seed, UINT16_MAX + 1));
                random_column(fixture, seed, k);
        }
        if (n_columns > 0)
                random_weighted(fixture, seed);
        fixture->times[0] = 1796027570000000 + (int64_t)below(seed, 1000000);
        for (uint32_t row = 1; row < n_rows; row++)
                fixture->times[row] = fixture->times[row - 1] + 1000000 +
                                      (below(seed, 50) ? 0 : 1000000 * (int64_t)below(seed, 9)) +
                                      (jitter ? (int64_t)below(seed, jitter) : 0);
        if (below(seed, 2)) {
                uint64_t odds = 1 + below(seed, 10);

                for (size_t i = 0; i < (size_t)n_rows * n_entities; i++)
                        fixture->present[i] = i % 3 == 1 || below(seed, odds) > 0;
                fixture->rows.present = fixture->present;
        }
}
