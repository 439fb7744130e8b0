#include "agentd/gap.h"

#include <assert.h>

static bool same_stream(const struct block_header *a, const struct block_header *b)
{
        return a->source == b->source && id_equal(&a->host, &b->host) &&
               id_equal(&a->boot, &b->boot);
}

static void widen(struct block_header *gap, const struct block_header *header)
{
        if (__builtin_add_overflow(gap->rows, header->rows, &gap->rows))
                gap->rows = UINT32_MAX;
        if (header->first_us < gap->first_us)
                gap->first_us = header->first_us;
        if (header->last_us > gap->last_us)
                gap->last_us = header->last_us;
        if (header->sequence < gap->sequence)
                gap->sequence = header->sequence;
}

bool gaps_add(struct gaps *gaps, const struct block_header *header)
{
        for (unsigned i = 0; i < gaps->count; i++)
                if (same_stream(&gaps->headers[i], header)) {
                        widen(&gaps->headers[i], header);
                        return true;
                }
        if (gaps->count == GAPS_MAX)
                return false;
        gaps->headers[gaps->count] = *header;
        gaps->headers[gaps->count++].flags |= BLOCK_FLAG_GAP;
        return true;
}

int gaps_take(struct gaps *gaps, struct block_encoder *encoder, const uint8_t **ret_bytes,
        size_t *ret_size)
{
        struct block_rows rows = {0};

        assert(gaps->count > 0);
        rows.header = gaps->headers[--gaps->count];
        return block_encode(encoder, &rows, ret_bytes, ret_size);
}
