#include "collectord/store-late.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct late {
        struct block_decoder *theirs, *mine;
        struct sealed_parts parts;
        uint64_t columns[2][BLOCK_ROWS_MAX];
};

int late_new(struct late **ret)
{
        CLEANUP(late) struct late *late = calloc(1, sizeof(*late));
        int r;

        if (!late)
                return -ENOMEM;
        r = block_decoder_new(&late->theirs);
        if (r < 0)
                return r;
        r = block_decoder_new(&late->mine);
        if (r < 0)
                return r;
        *ret = STEAL(late);
        return 0;
}

struct late *late_free(struct late *late)
{
        if (!late)
                return NULL;
        block_decoder_free(late->theirs);
        block_decoder_free(late->mine);
        sealed_parts_done(&late->parts);
        free(late);
        return NULL;
}

static bool same_values(struct late *late, const struct block *theirs, const struct block *mine,
        uint32_t begin, uint32_t rows)
{
        if (block_get_header(theirs)->schema_hash != block_get_header(mine)->schema_hash)
                return false;
        for (uint32_t i = 0; i < block_get_n_columns(mine); i++) {
                uint32_t entity = block_get_columns(mine)[i].entity;

                if (block_read_column(theirs, i, late->columns[0]) < 0 ||
                        block_read_column(mine, i, late->columns[1]) < 0)
                        return false;
                /* What stands for an absent value hangs on the rows around it. */
                for (uint32_t row = 0; row < rows; row++) {
                        bool present = block_is_present(mine, entity, row);

                        if (present != block_is_present(theirs, entity, begin + row) ||
                                (present && late->columns[0][begin + row] != late->columns[1][row]))
                                return false;
                }
        }
        return true;
}

/* 0: none of the rows is in the part. */
static int compare(struct late *late, const struct block *theirs, const struct block *mine)
{
        const int64_t *a = block_get_times(theirs), *b = block_get_times(mine);
        uint32_t n = block_get_header(theirs)->rows, rows = block_get_header(mine)->rows;
        uint32_t begin = 0, same = 0, shared = 0;

        if (!id_equal(&block_get_header(theirs)->boot, &block_get_header(mine)->boot))
                return 0;
        while (begin < n && a[begin] < b[0])
                begin++;
        for (uint32_t i = begin, k = 0; i < n && k < rows;) {
                shared += a[i] == b[k];
                same += a[i] == b[k] && i - begin == k;
                if (a[i] < b[k])
                        i++;
                else if (a[i] > b[k])
                        k++;
                else {
                        i++;
                        k++;
                }
        }
        if (shared == 0)
                return 0;
        return same == rows && same_values(late, theirs, mine, begin, rows) ? STORE_DUPLICATE
                                                                            : -EEXIST;
}

static int compare_part(struct late *late, struct sealed *sealed, const struct sealed_part *part,
        const uint8_t *bytes, size_t size)
{
        const struct block *theirs = NULL, *mine = NULL;
        const uint8_t *other;
        size_t other_size;
        int r;

        r = sealed_load(sealed, part, &other, &other_size);
        if (r < 0)
                return r == -ENOENT || r == -EBADMSG ? 0 : r;
        if (other_size == size && memcmp(other, bytes, size) == 0)
                return STORE_DUPLICATE;
        r = block_decode(late->theirs, other, other_size, &theirs);
        if (r == 0)
                r = block_decode(late->mine, bytes, size, &mine);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        return compare(late, theirs, mine);
}

int late_find(struct late *late, struct sealed *sealed, int64_t stream, int64_t span_us,
        const struct block_header *header, const uint8_t *bytes, size_t size)
{
        uint64_t broken = 0;
        int r;

        late->parts.n = 0;
        r = sealed_find(sealed, SEALED_RAW, stream,
                sealed_slot(SEALED_RAW, header->first_us - span_us),
                sealed_slot(SEALED_RAW, header->last_us), &late->parts, &broken);
        for (size_t i = 0; i < late->parts.n && r == 0; i++) {
                const struct sealed_part *part = &late->parts.list[i];

                if (part->first_us <= header->last_us && part->last_us >= header->first_us)
                        r = compare_part(late, sealed, part, bytes, size);
        }
        sealed_release(sealed);
        return r;
}
