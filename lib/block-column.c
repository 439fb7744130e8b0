/*
 * How a column is written: what is absent is filled, differences are made in the few ways that pay,
 * and the cheapest is taken.
 */

#include "lib/block-encode.h"

#include "lib/metric.h"

/* Columns moved together: one cache line of a row. */
#define TILE 8u

/* One way to write a column: differences, their divisor 2^shift x odd, and the kind. */
struct candidate {
        uint64_t *differences; /* [rows - 1] */
        uint64_t first;
        unsigned shift;
        uint64_t odd;
        uint8_t kind;
};

/* Copies an entity's values into encoder->columns, column after column. */
static int gather(struct block_encoder *encoder, const struct block_rows *rows, uint32_t begin,
        uint32_t count)
{
        uint32_t n_rows = rows->header.rows;
        size_t needed = (size_t)count * n_rows;

        if (needed > encoder->columns_capacity) {
                uint64_t *columns = realloc(encoder->columns, needed * sizeof(*columns));

                if (!columns)
                        return -ENOMEM;
                encoder->columns = columns;
                encoder->columns_capacity = needed;
        }
        for (uint32_t tile = 0; tile < count; tile += TILE) {
                uint32_t width = count - tile < TILE ? count - tile : TILE;
                const uint64_t *from = rows->values + begin + tile;
                uint64_t *to = encoder->columns + (size_t)tile * n_rows;

                for (uint32_t row = 0; row < n_rows; row++, from += rows->n_columns)
                        for (uint32_t k = 0; k < width; k++)
                                to[(size_t)k * n_rows + row] = from[k];
        }
        return 0;
}

/* What is absent repeats the value before, or else the first one after: it then costs nothing. */
static void fill_absent(struct block_encoder *encoder, const struct block_rows *rows,
        uint32_t entity, uint32_t count)
{
        uint32_t n_rows = rows->header.rows, first = 0;

        if (!rows->present || always_present(rows, entity))
                return;
        while (first < n_rows && !is_present(rows, entity, first))
                first++;
        for (uint32_t k = 0; k < count; k++) {
                uint64_t *column = encoder->columns + (size_t)k * n_rows;
                uint64_t value = first < n_rows ? column[first] : 0;

                for (uint32_t row = 0; row < n_rows; row++) {
                        if (is_present(rows, entity, row))
                                value = column[row];
                        else
                                column[row] = value;
                }
        }
}

static uint64_t magnitude(uint64_t difference)
{
        return (int64_t)difference < 0 ? -difference : difference;
}

/* The greatest odd divisor of all. Mostly it is found to be 1 after a few values. */
static uint64_t odd_divisor(const uint64_t *differences, uint32_t count)
{
        uint64_t divisor = 0;

        for (uint32_t i = 0; i < count && divisor != 1; i++) {
                uint64_t a = magnitude(differences[i]), b = divisor;

                if (a == 0)
                        continue;
                a >>= __builtin_ctzll(a);
                while (b != 0) {
                        uint64_t rest = a % b;

                        a = b;
                        b = rest;
                }
                divisor = a;
        }
        return divisor ? divisor : 1;
}

static void candidate_make(
        struct candidate *candidate, const uint64_t *values, uint32_t n_rows, uint8_t kind)
{
        uint64_t *differences = candidate->differences, bits = 0;
        uint32_t count = n_rows - 1;

        for (uint32_t i = 0; i < count; i++) {
                differences[i] = values[i + 1] - values[kind & BLOCK_KIND_DIRECT ? 0 : i];
                bits |= differences[i];
        }
        candidate->first = values[0];
        candidate->kind = kind;
        candidate->shift = 0;
        candidate->odd = 1;
        if (bits == 0) {
                candidate->kind = (kind & ~BLOCK_KIND_DIRECT) | BLOCK_KIND_CONSTANT;
                return;
        }
        if (bits >> 63)
                candidate->kind |= BLOCK_KIND_SIGNED;
        candidate->shift = (unsigned)__builtin_ctzll(bits);
        candidate->odd = odd_divisor(differences, count);
        if (candidate->shift > 0 || candidate->odd > 1)
                candidate->kind |= BLOCK_KIND_DIVISOR;
}

static bool candidate_is_better(
        const struct candidate *a, const struct candidate *b, uint32_t n_rows)
{
        if (b->kind & BLOCK_KIND_CONSTANT)
                return false;
        if (a->kind & BLOCK_KIND_CONSTANT)
                return true;
        return bits_of(a->differences, n_rows - 1, a->shift) <
               bits_of(b->differences, n_rows - 1, b->shift);
}

/* Puts the better of @best and the column @values written as @kind into @best. */
static void candidate_try(struct candidate *best, struct candidate *spare, const uint64_t *values,
        uint32_t n_rows, uint8_t kind)
{
        struct candidate other;

        candidate_make(spare, values, n_rows, kind);
        if (!candidate_is_better(spare, best, n_rows))
                return;
        other = *best;
        *best = *spare;
        *spare = other;
}

/*
 * The kernel's weighted time is the sum of the times of reads, writes, discards and flushes, but
 * for rounding. False when the column is not of 32 bits, so that the sum would lose something.
 */
static bool make_residual(struct block_encoder *encoder, const struct block_column *list,
        uint32_t count, uint32_t weighted, uint32_t n_rows)
{
        const uint64_t *values = encoder->columns + (size_t)weighted * n_rows;
        uint64_t *residual = encoder->residual;
        uint64_t bits = 0;

        for (uint32_t row = 0; row < n_rows; row++) {
                residual[row] = values[row];
                bits |= values[row];
        }
        if (bits > UINT32_MAX)
                return false;
        for (uint32_t part = 0; part < BLOCK_PARTS_MAX; part++) {
                uint32_t k = 0;

                while (k < count && list[k].metric != block_weighted_parts[part])
                        k++;
                for (uint32_t row = 0; k < count && row < n_rows; row++)
                        residual[row] -= encoder->columns[(size_t)k * n_rows + row];
        }
        for (uint32_t row = 0; row < n_rows; row++)
                residual[row] = (uint64_t)(int32_t)(uint32_t)residual[row];
        return true;
}

/* The inverse of an odd number modulo 2^64, by Newton's method: five steps from 3 bits on. */
static uint64_t inverse(uint64_t odd)
{
        uint64_t x = odd;

        for (int i = 0; i < 5; i++)
                x *= 2 - odd * x;
        return x;
}

/* The divisor divides exactly, so that its odd part is a multiplication with the inverse. */
static void write_differences(struct stream *data, const struct candidate *best, uint32_t count)
{
        uint64_t factor = best->odd == 1 ? 1 : inverse(best->odd);
        bool is_signed = best->kind & BLOCK_KIND_SIGNED;

        for (uint32_t i = 0; i < count; i++) {
                uint64_t value = (uint64_t)((int64_t)best->differences[i] >> best->shift) * factor;

                stream_number(data, is_signed ? zigzag(value) : value);
        }
}

/* There is room, see block_write_entity. */
static void write_column(
        struct block_encoder *encoder, const struct candidate *best, uint32_t n_rows)
{
        struct stream *table = &encoder->table;
        uint64_t first = best->first;

        stream_number(table, best->kind);
        stream_number(table, best->kind & BLOCK_KIND_RESIDUAL ? zigzag(first) : first);
        if (best->kind & BLOCK_KIND_CONSTANT)
                return;
        if (best->kind & BLOCK_KIND_DIVISOR)
                stream_number(table, best->odd << best->shift);
        write_differences(&encoder->data, best, n_rows - 1);
}

int block_write_entity(struct block_encoder *encoder, const struct block_rows *rows,
        uint32_t entity, uint32_t begin, uint32_t count)
{
        const struct block_column *list = rows->columns + begin;
        uint32_t n_rows = rows->header.rows;
        int r;

        r = gather(encoder, rows, begin, count);
        if (r < 0)
                return r;
        r = stream_reserve(&encoder->table, 0, (size_t)count * 3);
        if (r < 0)
                return r;
        r = stream_reserve(&encoder->data, 0, (size_t)count * n_rows);
        if (r < 0)
                return r;
        fill_absent(encoder, rows, entity, count);
        for (uint32_t k = 0; k < count; k++) {
                const uint64_t *values = encoder->columns + (size_t)k * n_rows;
                struct candidate best = {.differences = encoder->differences[0]};
                struct candidate spare = {.differences = encoder->differences[1]};

                candidate_make(&best, values, n_rows, 0);
                if (best.kind & BLOCK_KIND_SIGNED)
                        candidate_try(&best, &spare, values, n_rows, BLOCK_KIND_DIRECT);
                if (list[k].metric == METRIC_DISK_WEIGHTED_TIME &&
                        !(best.kind & BLOCK_KIND_CONSTANT) &&
                        make_residual(encoder, list, count, k, n_rows)) {
                        candidate_try(
                                &best, &spare, encoder->residual, n_rows, BLOCK_KIND_RESIDUAL);
                        candidate_try(&best, &spare, encoder->residual, n_rows,
                                BLOCK_KIND_RESIDUAL | BLOCK_KIND_DIRECT);
                }
                write_column(encoder, &best, n_rows);
        }
        return body_size(encoder) > BLOCK_BODY_MAX ? -EINVAL : 0;
}
