#include "collectord/gather.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int gather_init(struct gather *gather)
{
        memset(gather, 0, sizeof(*gather));
        return block_encoder_new(&gather->encoder);
}

void gather_done(struct gather *gather)
{
        block_encoder_free(gather->encoder);
        free(gather->entities);
        free(gather->texts);
        free(gather->columns);
        free(gather->values);
        free(gather->present);
}

static int copy_entities(struct gather *gather, const struct block *block)
{
        size_t size = 1;
        char *at;

        gather->n_entities = block_get_n_entities(block);
        for (uint32_t i = 0; i < gather->n_entities; i++)
                size += strlen(block_get_entity(block, i)->name) +
                        strlen(block_get_entity(block, i)->identity) + 2;
        free(gather->texts);
        free(gather->entities);
        gather->texts = at = malloc(size);
        gather->entities = calloc(gather->n_entities + 1, sizeof(*gather->entities));
        if (!gather->texts || !gather->entities)
                return -ENOMEM;
        for (uint32_t i = 0; i < gather->n_entities; i++) {
                const struct block_entity *entity = block_get_entity(block, i);

                gather->entities[i] = *entity;
                gather->entities[i].name = at;
                at = stpcpy(at, entity->name) + 1;
                gather->entities[i].identity = at;
                at = stpcpy(at, entity->identity) + 1;
        }
        return 0;
}

int gather_begin(struct gather *gather, const struct block *block,
        const struct block_column *columns, uint32_t n_columns)
{
        int r;

        r = copy_entities(gather, block);
        if (r < 0)
                return r;
        free(gather->columns);
        gather->columns = calloc(n_columns + 1, sizeof(*columns));
        if (!gather->columns)
                return -ENOMEM;
        memcpy(gather->columns, columns, n_columns * sizeof(*columns));
        gather->n_columns = n_columns;
        gather->header = *block_get_header(block);
        gather->rows = 0;
        gather->absent = false;
        return 0;
}

bool gather_fits(const struct gather *gather, const struct block_header *header)
{
        return gather->rows > 0 && id_equal(&gather->header.boot, &header->boot) &&
               id_equal(&gather->header.host, &header->host) &&
               id_equal(&gather->header.cluster, &header->cluster) &&
               gather->header.source == header->source &&
               gather->header.schema_hash == header->schema_hash &&
               gather->header.interval_us == header->interval_us;
}

/* What is there stays; memory grows by halves at least, so that rows one by one cost little. */
static int grow(void *array, size_t *allocated, size_t n, size_t size)
{
        void **place = array, *larger;

        if (n <= *allocated && *place)
                return 0;
        n += *allocated / 2 + 1;
        larger = reallocarray(*place, n, size);
        if (!larger)
                return -ENOMEM;
        *place = larger;
        *allocated = n;
        return 0;
}

int gather_reserve(struct gather *gather, uint32_t rows)
{
        size_t n = (size_t)gather->rows + rows;
        int r;

        r = grow(&gather->values, &gather->values_allocated, n * gather->n_columns,
                sizeof(*gather->values));
        if (r < 0)
                return r;
        return grow(&gather->present, &gather->present_allocated, n * gather->n_entities,
                sizeof(*gather->present));
}

uint32_t gather_rows_max(uint32_t n_columns, uint32_t rows)
{
        uint32_t most = BLOCK_VALUES_MAX / (n_columns ? n_columns : 1);

        return most < rows ? most : rows;
}

int gather_encode(struct gather *gather, const uint8_t **ret_bytes, size_t *ret_size)
{
        struct block_rows rows = {
                .header = gather->header,
                .entities = gather->entities,
                .n_entities = gather->n_entities,
                .columns = gather->columns,
                .n_columns = gather->n_columns,
                .times_us = gather->times_us,
                .values = gather->values,
                .present = gather->absent ? gather->present : NULL,
        };

        rows.header.rows = gather->rows;
        return block_encode(gather->encoder, &rows, ret_bytes, ret_size);
}
