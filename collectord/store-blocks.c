/*
 * Reading blocks: of the hot log, and of the sealed files those parts that are no finer than asked
 * for, in the order of time. Rows of all tiers are rows as they were read, so they follow each
 * other. A block that is being moved may be seen twice; whoever reads leaves out rows that are not
 * later than the last one.
 */
#include "collectord/store-private.h"

#include <errno.h>
#include <stdlib.h>

#define HOLE_INTERVALS 3 /* as in rung.c: a row further away helps no edge */
#define HOLE_SLACK_US 1000000
#define LOOK_BACK_MAX_US (INT64_C(86400) * 1000000)

struct range {
        int64_t stream, from_us, to_us;
        int64_t begin_us;  /* blocks that begin earlier cannot touch the range */
        int64_t before_id; /* the nearest block before; 0 when there is none */
        int64_t span_us, interval_us;
        int64_t first_us;  /* of the stream */
        int64_t sealed_us; /* newest sealed row; INT64_MIN: nothing is sealed */
        uint64_t resolution_us;
};

static int64_t subtract(int64_t a, int64_t b)
{
        int64_t difference;

        return __builtin_sub_overflow(a, b, &difference) ? INT64_MIN : difference;
}

/* ---- the hot log ---- */

static int find_before(struct store_reader *reader, struct range *range)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[FIND_BEFORE];
        int64_t first_us;
        int r;

        sqlite3_bind_int64(statement, 1, range->stream);
        sqlite3_bind_int64(statement, 2, range->from_us);
        r = store_next_row(reader, statement);
        if (r <= 0)
                return r;
        range->before_id = sqlite3_column_int64(statement, 0);
        first_us = sqlite3_column_int64(statement, 1);
        if (first_us < range->begin_us)
                range->begin_us = first_us;
        return 0;
}

/* 1: a block of the stream begins in [from, to) and is not sealed yet. */
static int is_hot(struct store_reader *reader, int64_t stream, int64_t from_us, int64_t to_us)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[FIND_HOT];

        sqlite3_bind_int64(statement, 1, stream);
        sqlite3_bind_int64(statement, 2, from_us);
        sqlite3_bind_int64(statement, 3, to_us);
        return store_next_row(reader, statement);
}

/* ---- which sealed parts ---- */

/* 1: the slots have to be made anew. */
static int is_dirty(struct store_reader *reader, enum sealed_tier tier, int64_t first, int64_t last,
        int64_t stream)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[FIND_DIRTY];

        sqlite3_bind_int(statement, 1, (int)tier);
        sqlite3_bind_int64(statement, 2, first);
        sqlite3_bind_int64(statement, 3, last);
        sqlite3_bind_int64(statement, 4, stream);
        return store_next_row(reader, statement);
}

/* 1: the slot of a tier holds all that came for it. */
static int is_whole(
        struct store_reader *reader, const struct range *range, enum sealed_tier tier, int64_t slot)
{
        const struct sealed_layout *layout = &sealed_layouts[tier];
        int64_t begin_us = slot * layout->slot_us, end_us = begin_us + layout->slot_us;
        int r;

        for (enum sealed_tier below = SEALED_MINUTE; below <= tier; below++) {
                r = is_dirty(reader, below, sealed_slot(below, begin_us),
                        sealed_slot(below, end_us - 1), range->stream);
                if (r != 0)
                        return r < 0 ? r : 0;
        }
        r = is_hot(reader, range->stream, begin_us, end_us);
        return r < 0 ? r : r == 0;
}

static int find(struct store_reader *reader, const struct range *range, enum sealed_tier tier,
        int64_t first, int64_t last)
{
        return sealed_find(
                &reader->sealed, tier, range->stream, first, last, &reader->parts, &reader->rotten);
}

/*
 * The parts of one slot of @tier, within [from, to): its own when they are as fine as asked for and
 * whole, else those of the tiers below; its own again when nothing finer is kept any more.
 */
static int find_slot(struct store_reader *reader, const struct range *range, enum sealed_tier tier,
        int64_t slot, int64_t from_us, int64_t to_us)
{
        const struct sealed_layout *layout = &sealed_layouts[tier];
        size_t n = reader->parts.n;
        enum sealed_tier below = tier - 1;
        int r;

        if ((uint64_t)layout->interval_us <= range->resolution_us) {
                r = is_whole(reader, range, tier, slot);
                if (r > 0)
                        r = find(reader, range, tier, slot, slot);
                if (r < 0 || reader->parts.n > n)
                        return r;
        }
        if (from_us < slot * layout->slot_us)
                from_us = slot * layout->slot_us;
        if (to_us > (slot + 1) * layout->slot_us)
                to_us = (slot + 1) * layout->slot_us;
        r = 0;
        if (below == SEALED_RAW)
                r = find(reader, range, SEALED_RAW, sealed_slot(SEALED_RAW, from_us),
                        sealed_slot(SEALED_RAW, to_us - 1));
        for (int64_t i = sealed_slot(below, from_us);
                r == 0 && below > SEALED_RAW && i <= sealed_slot(below, to_us - 1); i++)
                r = find_slot(reader, range, below, i, from_us, to_us);
        if (r < 0 || reader->parts.n > n)
                return r;
        return find(reader, range, tier, slot, slot);
}

static int compare_parts(const void *a, const void *b)
{
        const struct sealed_part *x = a, *y = b;

        if (x->first_us != y->first_us)
                return x->first_us < y->first_us ? -1 : 1;
        return (x->id > y->id) - (x->id < y->id);
}

/* Of the parts before the range only the nearest is of use. */
static void trim_parts(struct sealed_parts *parts, const struct range *range)
{
        const struct sealed_part *before = NULL;
        size_t n = 0;

        for (size_t i = 0; i < parts->n; i++)
                if (parts->list[i].last_us < range->from_us)
                        before = &parts->list[i];
        for (size_t i = 0; i < parts->n; i++)
                if (&parts->list[i] == before || (parts->list[i].last_us >= range->from_us &&
                                                         parts->list[i].first_us <= range->to_us))
                        parts->list[n++] = parts->list[i];
        parts->n = n;
}

static int find_parts(struct store_reader *reader, const struct range *range)
{
        int64_t reach_us = HOLE_INTERVALS * range->interval_us + HOLE_SLACK_US + range->span_us;
        int64_t from_us, to_us = range->to_us;
        int r = 0;

        reader->parts.n = 0;
        if (reach_us > LOOK_BACK_MAX_US)
                reach_us = LOOK_BACK_MAX_US;
        from_us = subtract(range->from_us, reach_us);
        /* A part stands where its slots begin, up to a span before its rows. */
        if (from_us < subtract(range->first_us, range->span_us))
                from_us = subtract(range->first_us, range->span_us);
        if (from_us < 0)
                from_us = 0;
        if (to_us > range->sealed_us)
                to_us = range->sealed_us;
        for (int64_t slot = sealed_slot(SEALED_HOUR, from_us);
                r == 0 && from_us <= to_us && slot <= sealed_slot(SEALED_HOUR, to_us); slot++)
                r = find_slot(reader, range, SEALED_HOUR, slot, from_us, to_us + 1);
        if (r < 0)
                return r;
        if (reader->parts.n > 0)
                qsort(reader->parts.list, reader->parts.n, sizeof(*reader->parts.list),
                        compare_parts);
        trim_parts(&reader->parts, range);
        return 0;
}

/* ---- both, by time ---- */

/* The parts from *@next on that begin at @until_us at the latest. */
static int give_parts(struct store_reader *reader, int64_t until_us, size_t *next,
        struct store_block *block, store_block_function function, void *userdata)
{
        for (; *next < reader->parts.n && reader->parts.list[*next].first_us <= until_us; ++*next) {
                const struct sealed_part *part = &reader->parts.list[*next];
                int r;

                r = sealed_load(&reader->sealed, part, &block->bytes, &block->size);
                if (r == -ENOENT)
                        continue;
                if (r == -EBADMSG || r == -EIO) {
                        reader->rotten++;
                        continue;
                }
                if (r < 0)
                        return r;
                block->first_us = part->first_us;
                block->last_us = part->last_us;
                r = function(userdata, block);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_range(struct store_reader *reader, const struct range *range,
        struct store_block *block, store_block_function function, void *userdata)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[FIND_BLOCKS];
        size_t next = 0;
        int r;

        sqlite3_bind_int64(statement, 1, range->stream);
        sqlite3_bind_int64(statement, 2, range->begin_us);
        sqlite3_bind_int64(statement, 3, range->from_us);
        sqlite3_bind_int64(statement, 4, range->to_us);
        sqlite3_bind_int64(statement, 5, range->before_id);
        while ((r = store_next_row(reader, statement)) > 0) {
                int64_t first_us = sqlite3_column_int64(statement, 0);

                r = give_parts(reader, first_us, &next, block, function, userdata);
                if (r < 0)
                        return r;
                block->first_us = first_us;
                block->last_us = sqlite3_column_int64(statement, 1);
                block->bytes = sqlite3_column_blob(statement, 2);
                block->size = (size_t)sqlite3_column_bytes(statement, 2);
                r = function(userdata, block);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : give_parts(reader, INT64_MAX, &next, block, function, userdata);
}

static int read_stream(struct store_reader *reader, sqlite3_stmt *stream, struct range *range,
        struct store_block *block, store_block_function function, void *userdata)
{
        int r;

        range->stream = sqlite3_column_int64(stream, 0);
        range->span_us = sqlite3_column_int64(stream, 2);
        range->interval_us = sqlite3_column_int64(stream, 3);
        range->sealed_us = store_column_sealed(stream, 4);
        range->first_us = sqlite3_column_int64(stream, 5);
        range->begin_us = subtract(range->from_us, range->span_us);
        range->before_id = 0;
        r = store_column_id(stream, 1, &block->host);
        if (r < 0)
                return r;
        r = find_before(reader, range);
        if (r < 0)
                return r;
        r = find_parts(reader, range);
        if (r == 0)
                r = read_range(reader, range, block, function, userdata);
        sealed_release(&reader->sealed);
        return r;
}

int store_read_blocks(struct store_reader *reader, enum source_id source, const struct id *host,
        int64_t from_us, int64_t to_us, uint64_t resolution_us, store_block_function function,
        void *userdata)
{
        CLEANUP(store_reset)
        sqlite3_stmt *statement = reader->statements[host ? FIND_STREAM : FIND_STREAMS];
        struct range range = {.from_us = from_us, .to_us = to_us, .resolution_us = resolution_us};
        struct store_block block = {.source = source};
        int r;

        sqlite3_bind_int(statement, 1, (int)source);
        if (host)
                store_bind_id(statement, 2, host);
        while ((r = store_next_row(reader, statement)) > 0) {
                r = read_stream(reader, statement, &range, &block, function, userdata);
                if (r < 0)
                        return r;
        }
        return r;
}
