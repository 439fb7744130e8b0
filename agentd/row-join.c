#include "agentd/row-join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What an instance's rows look like; a copy, for the rows of the others come in between. */
struct part {
        bool seen;
        bool quick;  /* it was in the joined row before: it is waited for */
        bool filled; /* it is in the one that is held */
        uint64_t epoch, generation;
        struct block_entity *entities; /* with their names, in one allocation */
        uint32_t n_entities;
        struct block_column *columns;
        uint32_t n_columns;
        uint32_t first_entity, first_column; /* in the joined row */
};

struct row_join {
        void (*keep)(void *userdata, const struct sampler_row *row);
        void *userdata;
        bool held;
        struct sampler_row row; /* that is held */
        uint64_t due_us;
        int64_t tick; /* of the row that is held or was kept last */
        struct part parts[PLAN_CLUSTERS_MAX];
        uint64_t generation, epoch;
        struct sample sample;
        struct block_entity *entities;
        struct block_column *columns;
        uint64_t *values;
        uint8_t *present;
};

int row_join_new(void (*keep)(void *userdata, const struct sampler_row *row), void *userdata,
        struct row_join **ret)
{
        struct row_join *join = calloc(1, sizeof(*join));

        if (!join)
                return -ENOMEM;
        join->keep = keep;
        join->userdata = userdata;
        join->tick = -1;
        *ret = join;
        return 0;
}

static void part_done(struct part *part)
{
        free(part->entities);
        free(part->columns);
        *part = (struct part){0};
}

static void forget(struct row_join *join)
{
        join->held = false;
        join->tick = -1;
        for (size_t i = 0; i < PLAN_CLUSTERS_MAX; i++)
                part_done(&join->parts[i]);
}

struct row_join *row_join_free(struct row_join *join)
{
        if (!join)
                return NULL;
        forget(join);
        free(join->entities);
        free(join->columns);
        free(join->values);
        free(join->present);
        free(join);
        return NULL;
}

static struct block_entity *copy_entities(const struct sample *sample)
{
        size_t size = sample->n_entities * sizeof(struct block_entity);
        struct block_entity *entities;
        char *text;

        for (uint32_t i = 0; i < sample->n_entities; i++)
                size += strlen(sample->entities[i].name) + strlen(sample->entities[i].identity) + 2;
        entities = malloc(size + 1);
        if (!entities)
                return NULL;
        text = (char *)&entities[sample->n_entities];
        for (uint32_t i = 0; i < sample->n_entities; i++) {
                entities[i] = sample->entities[i];
                entities[i].name = text;
                text = stpcpy(text, sample->entities[i].name) + 1;
                entities[i].identity = text;
                text = stpcpy(text, sample->entities[i].identity) + 1;
        }
        return entities;
}

static int part_learn(struct part *part, const struct sampler_row *row)
{
        const struct sample *sample = row->sample;

        part_done(part);
        part->entities = copy_entities(sample);
        part->columns = malloc(sample->n_columns * sizeof(*part->columns) + 1);
        if (!part->entities || !part->columns)
                return -ENOMEM;
        memcpy(part->columns, sample->columns, sample->n_columns * sizeof(*part->columns));
        part->n_entities = sample->n_entities;
        part->n_columns = sample->n_columns;
        part->epoch = row->epoch;
        part->generation = sample->generation;
        part->seen = true;
        return 0;
}

static int allocate(struct row_join *join, uint32_t n_entities, uint32_t n_columns)
{
        free(join->entities);
        free(join->columns);
        free(join->values);
        free(join->present);
        join->entities = calloc(n_entities + 1, sizeof(*join->entities));
        join->columns = calloc(n_columns + 1, sizeof(*join->columns));
        join->values = calloc(n_columns + 1, sizeof(*join->values));
        join->present = calloc(n_entities + 1, 1);
        if (!join->entities || !join->columns || !join->values || !join->present)
                return -ENOMEM;
        return 0;
}

static int lay_out(struct row_join *join)
{
        uint32_t n_entities = 0, n_columns = 0;
        int r;

        for (size_t i = 0; i < PLAN_CLUSTERS_MAX; i++) {
                join->parts[i].first_entity = n_entities;
                join->parts[i].first_column = n_columns;
                n_entities += join->parts[i].n_entities;
                n_columns += join->parts[i].n_columns;
        }
        r = allocate(join, n_entities, n_columns);
        if (r < 0)
                return r;
        for (size_t i = 0; i < PLAN_CLUSTERS_MAX; i++) {
                const struct part *part = &join->parts[i];

                for (uint32_t k = 0; k < part->n_entities; k++)
                        join->entities[part->first_entity + k] = part->entities[k];
                for (uint32_t k = 0; k < part->n_columns; k++) {
                        join->columns[part->first_column + k] = part->columns[k];
                        join->columns[part->first_column + k].entity += part->first_entity;
                }
        }
        join->sample = (struct sample){
                .generation = ++join->generation,
                .entities = join->entities,
                .n_entities = n_entities,
                .columns = join->columns,
                .n_columns = n_columns,
                .values = join->values,
                .present = join->present,
        };
        return 0;
}

static void begin_row(struct row_join *join, const struct sampler_row *row, int64_t tick)
{
        uint64_t hold_us = row->plan->interval_us / 4;

        join->row = *row;
        join->row.sample = &join->sample;
        join->row.epoch = join->epoch;
        join->sample.time_us = row->sample->time_us;
        join->sample.failures = 0;
        memset(join->present, 0, join->sample.n_entities);
        join->tick = tick;
        join->due_us = hold_us < ROW_JOIN_HOLD_US ? hold_us : ROW_JOIN_HOLD_US;
        join->held = true;
}

/* Values of the absent stay what they were: that costs nothing in a block. */
static void fill_row(struct row_join *join, struct part *part, const struct sample *sample)
{
        if (sample->present)
                memcpy(join->present + part->first_entity, sample->present, part->n_entities);
        else
                memset(join->present + part->first_entity, 1, part->n_entities);
        if (part->n_columns > 0)
                memcpy(join->values + part->first_column, sample->values,
                        part->n_columns * sizeof(*join->values));
        if (sample->time_us > join->sample.time_us)
                join->sample.time_us = sample->time_us;
        join->sample.failures += sample->failures;
        part->filled = true;
}

static void keep_row(struct row_join *join)
{
        if (!join->held)
                return;
        join->held = false;
        join->keep(join->userdata, &join->row);
        for (uint32_t i = 0; i < PLAN_CLUSTERS_MAX; i++) {
                join->parts[i].quick = join->parts[i].filled;
                join->parts[i].filled = false;
        }
}

static bool is_complete(const struct row_join *join)
{
        for (uint32_t i = 0; i < PLAN_CLUSTERS_MAX; i++)
                if (join->parts[i].quick && !join->parts[i].filled)
                        return false;
        return true;
}

static bool is_alone(const struct row_join *join, uint32_t instance)
{
        for (uint32_t i = 0; i < PLAN_CLUSTERS_MAX; i++)
                if (i != instance && join->parts[i].seen)
                        return false;
        return true;
}

static int learn(struct row_join *join, struct part *part, const struct sampler_row *row)
{
        bool quick = part->quick;
        int r;

        if (part->seen && part->epoch == row->epoch && part->generation == row->sample->generation)
                return 0;
        keep_row(join);
        r = part_learn(part, row);
        if (r == 0)
                r = lay_out(join);
        join->epoch++;
        part->quick = quick;
        if (r < 0)
                forget(join);
        return r;
}

int row_join_add(struct row_join *join, const struct sampler_row *row, uint64_t now_us)
{
        struct part *part = &join->parts[row->instance];
        int64_t tick = row->sample->time_us / (int64_t)row->plan->interval_us;
        bool late;
        int r;

        r = learn(join, part, row);
        if (r < 0)
                return r;
        if (is_alone(join, row->instance)) {
                struct sampler_row alone = *row;

                alone.epoch = join->epoch;
                part->quick = true;
                join->tick = tick;
                join->keep(join->userdata, &alone);
                return 0;
        }
        if (part->filled || (join->held && tick != join->tick))
                keep_row(join);
        late = !join->held && tick == join->tick;
        if (!join->held) {
                begin_row(join, row, tick);
                join->due_us += now_us;
        }
        fill_row(join, part, row->sample);
        if (late || is_complete(join)) {
                bool quick[PLAN_CLUSTERS_MAX];

                for (uint32_t i = 0; i < PLAN_CLUSTERS_MAX; i++)
                        quick[i] = join->parts[i].quick;
                keep_row(join);
                /* The late one says nothing of the others; and next time it is waited for again. */
                for (uint32_t i = 0; late && i < PLAN_CLUSTERS_MAX; i++)
                        join->parts[i].quick = quick[i] || i == row->instance;
        }
        return 0;
}

void row_join_run(struct row_join *join, uint64_t now_us)
{
        if (join->held && now_us >= join->due_us)
                keep_row(join);
}

uint64_t row_join_due(const struct row_join *join)
{
        return join->held ? join->due_us : UINT64_MAX;
}

void row_join_clear(struct row_join *join)
{
        keep_row(join);
        forget(join);
}
