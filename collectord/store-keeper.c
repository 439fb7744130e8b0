/*
 * Upkeep on a thread of its own: it reads the hot log, writes sealed files, and says what the loop
 * thread has to follow. A crash between the two leaves blocks in both: they are found to be there
 * the next time, and only removed from the hot log.
 */
#include "collectord/store-keeper.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/clock.h"

#define STEP_US 50000u          /* after that no further stream is begun */
#define STEP_BLOCKS_MAX 4000u   /* of the hot log: what the loop has to remove */
#define CHUNK_BLOCKS_MAX 20000u /* of one stream in one chunk; the rest comes later */

static const char *const keeper_sql[N_KEEPER_STATEMENTS] = {
        [KEEPER_STREAMS] = "SELECT id, interval_us, span_us, (SELECT min(first_us) FROM "
                           "block WHERE stream = stream.id) FROM stream WHERE blocks > 0",
        [KEEPER_NEWEST] = "SELECT max(id) FROM block",
        [KEEPER_CHUNK_NEWEST] =
                "SELECT max(id) FROM block WHERE stream = ?1 AND first_us >= ?2 AND first_us < ?3",
        [KEEPER_CHUNK] = "SELECT id, first_us, last_us, rows, data FROM block WHERE stream = ?1 "
                         "AND first_us >= ?2 AND first_us < ?3 ORDER BY first_us, id LIMIT ?4",
        [KEEPER_DIRTY] = "SELECT tier, slot, stream, version FROM dirty WHERE tier = ?1 AND "
                         "slot < ?2 ORDER BY slot, stream",
        [KEEPER_HOT] = "SELECT 1 FROM block WHERE stream = ?1 AND first_us >= ?2 AND first_us < ?3 "
                       "LIMIT 1",
        [KEEPER_DIRTY_BELOW] = "SELECT 1 FROM dirty WHERE tier = ?1 AND slot BETWEEN ?2 AND ?3 AND "
                               "stream = ?4 LIMIT 1",
        [KEEPER_SCANNED] = "SELECT value FROM meta WHERE key = 'totals_id'",
        [KEEPER_FRESH] = STORE_FRESH_SQL,
        [KEEPER_MARKS] = "SELECT slot, stream, version FROM dirty WHERE tier = ?1 ORDER BY slot "
                         "DESC LIMIT ?2",
        [KEEPER_EXPIRED] = "SELECT counted FROM expired WHERE tier = ?1 AND period = ?2",
};

/* ---- the step ---- */

int keeper_grow(void *array, size_t *allocated, size_t n, size_t size)
{
        void **place = array, *larger;

        if (n < *allocated)
                return 0;
        larger = reallocarray(*place, *allocated ? *allocated * 2 : 64, size);
        if (!larger)
                return -ENOMEM;
        *place = larger;
        *allocated = *allocated ? *allocated * 2 : 64;
        return 0;
}

struct store_step *store_step_free(struct store_step *step)
{
        if (!step)
                return NULL;
        free(step->blocks);
        free(step->moved);
        free(step->dirty);
        free(step->clean);
        free(step->kept);
        free(step);
        return NULL;
}

size_t store_step_blocks(const struct store_step *step)
{
        return step->n_blocks;
}

int keeper_add_dirty(struct store_step *step, enum sealed_tier tier, int64_t slot, int64_t stream)
{
        int r = keeper_grow(
                &step->dirty, &step->dirty_allocated, step->n_dirty, sizeof(*step->dirty));

        if (r == 0)
                step->dirty[step->n_dirty++] =
                        (struct store_dirty){.tier = tier, .slot = slot, .stream = stream};
        return r;
}

/* ---- the hot log into raw files ---- */

struct chunk {
        int64_t stream, begin_us, end_us, span_us;
};

struct chunks {
        struct chunk *list;
        size_t n, allocated;
};

static void chunks_done(struct chunks *chunks)
{
        free(chunks->list);
}
DEFINE_CLEANUP(chunks, struct chunks *, chunks_done)

/* Ids up to this one have been there for the time to settle. */
static int look_at_clock(struct store_keeper *keeper, int64_t now_us)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = keeper->statements[KEEPER_NEWEST];
        int code;

        if (keeper->looked_us != INT64_MIN && now_us < keeper->looked_us + keeper->ages.settle_us)
                return 0;
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return code == SQLITE_DONE ? -EBADMSG : store_errno(keeper->db, code);
        keeper->settled_id = keeper->ages.settle_us > 0 ? keeper->newest_id : INT64_MAX;
        keeper->newest_id = sqlite3_column_int64(statement, 0);
        keeper->looked_us = now_us;
        return 0;
}

static int is_settled(struct store_keeper *keeper, const struct chunk *chunk, bool *ret)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = keeper->statements[KEEPER_CHUNK_NEWEST];
        int code;

        sqlite3_bind_int64(statement, 1, chunk->stream);
        sqlite3_bind_int64(statement, 2, chunk->begin_us);
        sqlite3_bind_int64(statement, 3, chunk->end_us);
        code = sqlite3_step(statement);
        if (code != SQLITE_ROW)
                return store_errno(keeper->db, code);
        *ret = sqlite3_column_int64(statement, 0) <= keeper->settled_id &&
               sqlite3_column_int64(statement, 0) <= keeper->scanned_id;
        return 0;
}

static bool is_full(const struct store_keeper *keeper, const struct chunk *chunk)
{
        for (size_t i = 0; i < keeper->n_full; i++)
                if (keeper->full[i].stream == chunk->stream &&
                        keeper->full[i].begin_us == chunk->begin_us)
                        return true;
        return false;
}

static int add_chunk(
        struct store_keeper *keeper, sqlite3_stmt *row, int64_t now_us, struct chunks *chunks)
{
        int64_t length_us = sealed_chunk_us((uint64_t)sqlite3_column_int64(row, 1));
        struct chunk chunk = {
                .stream = sqlite3_column_int64(row, 0), .span_us = sqlite3_column_int64(row, 2)};
        int64_t first_us = sqlite3_column_int64(row, 3);
        bool settled = false;
        int r;

        if (sqlite3_column_type(row, 3) == SQLITE_NULL || first_us < 0)
                return 0;
        chunk.begin_us = first_us / length_us * length_us;
        chunk.end_us = chunk.begin_us + length_us;
        if (chunk.end_us + keeper->ages.settle_us > now_us || is_full(keeper, &chunk))
                return 0;
        /* Retention takes it where it is. */
        if (keeper->ages.raw_us > 0 && chunk.end_us < now_us - keeper->ages.raw_us)
                return 0;
        r = is_settled(keeper, &chunk, &settled);
        if (r < 0 || !settled)
                return r;
        r = keeper_grow(&chunks->list, &chunks->allocated, chunks->n, sizeof(*chunks->list));
        if (r == 0)
                chunks->list[chunks->n++] = chunk;
        return r;
}

static int compare_chunks(const void *a, const void *b)
{
        const struct chunk *x = a, *y = b;

        if (x->begin_us != y->begin_us)
                return x->begin_us < y->begin_us ? -1 : 1;
        return (x->stream > y->stream) - (x->stream < y->stream);
}

/* The oldest chunk of each stream that has settled, in the order of the keys. */
static int find_chunks(struct store_keeper *keeper, int64_t now_us, struct chunks *chunks)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = keeper->statements[KEEPER_STREAMS];
        int code, r;

        r = look_at_clock(keeper, now_us);
        if (r < 0)
                return r;
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                r = add_chunk(keeper, statement, now_us, chunks);
                if (r < 0)
                        return r;
        }
        if (chunks->n > 0)
                qsort(chunks->list, chunks->n, sizeof(*chunks->list), compare_chunks);
        return store_errno(keeper->db, code);
}

static int put_piece(void *userdata, const struct merge_piece *piece)
{
        struct store_keeper *keeper = userdata;
        struct sealed_row row = {.first_us = piece->first_us,
                .last_us = piece->last_us,
                .blocks = piece->blocks,
                .rows = piece->rows,
                .bytes = piece->bytes,
                .size = piece->size};

        if (row.last_us > keeper->piece_last_us)
                keeper->piece_last_us = row.last_us;
        return sealed_add(keeper->file, keeper->slot, keeper->stream, &row);
}

/* 1: its rows are in the file already, from before a crash. */
static int is_there(
        struct store_keeper *keeper, const struct chunk *chunk, const struct merge_piece *piece)
{
        struct block_header header;
        size_t size;
        int r;

        /* What cannot be read is compared byte by byte. */
        if (block_peek(piece->bytes, piece->size, &header, &size) < 0)
                header = (struct block_header){
                        .first_us = piece->first_us, .last_us = piece->last_us};
        r = late_find(keeper->late, &keeper->sealed, chunk->stream,
                chunk->span_us > chunk->end_us - chunk->begin_us ? chunk->span_us
                                                                 : chunk->end_us - chunk->begin_us,
                &header, piece->bytes, piece->size);
        return r == STORE_DUPLICATE ? 1 : r == -EEXIST ? 0 : r;
}

static int seal_blocks(
        struct store_keeper *keeper, const struct chunk *chunk, struct store_step *step)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = keeper->statements[KEEPER_CHUNK];
        int code, r;

        sqlite3_bind_int64(statement, 1, chunk->stream);
        sqlite3_bind_int64(statement, 2, chunk->begin_us);
        sqlite3_bind_int64(statement, 3, chunk->end_us);
        sqlite3_bind_int64(statement, 4, CHUNK_BLOCKS_MAX);
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                struct merge_piece piece = {.first_us = sqlite3_column_int64(statement, 1),
                        .last_us = sqlite3_column_int64(statement, 2),
                        .rows = (uint32_t)sqlite3_column_int64(statement, 3),
                        .blocks = 1,
                        .bytes = sqlite3_column_blob(statement, 4),
                        .size = (size_t)sqlite3_column_bytes(statement, 4)};

                r = keeper_grow(&step->blocks, &step->blocks_allocated, step->n_blocks,
                        sizeof(*step->blocks));
                if (r < 0)
                        return r;
                step->blocks[step->n_blocks++] = sqlite3_column_int64(statement, 0);
                r = is_there(keeper, chunk, &piece);
                if (r < 0)
                        return r;
                if (piece.last_us > keeper->piece_last_us)
                        keeper->piece_last_us = piece.last_us;
                r = r > 0 ? 0 : merge_add(keeper->merge, &piece);
                if (r < 0)
                        return r;
        }
        r = store_errno(keeper->db, code);
        return r < 0 ? r : merge_finish(keeper->merge);
}

static int seal_chunk(
        struct store_keeper *keeper, const struct chunk *chunk, struct store_step *step)
{
        int r;

        keeper->slot = sealed_slot(SEALED_RAW, chunk->begin_us);
        keeper->stream = chunk->stream;
        keeper->piece_last_us = INT64_MIN;
        r = seal_blocks(keeper, chunk, step);
        if (r < 0)
                return r;
        r = keeper_grow(&step->moved, &step->moved_allocated, step->n_moved, sizeof(*step->moved));
        if (r < 0)
                return r;
        step->moved[step->n_moved++] = (struct store_moved){
                chunk->stream, keeper->piece_last_us, keeper->piece_last_us - chunk->begin_us};
        return keeper_add_dirty(
                step, SEALED_MINUTE, sealed_slot(SEALED_MINUTE, chunk->begin_us), chunk->stream);
}

static int64_t raw_period(const struct chunk *chunk)
{
        return chunk->begin_us / sealed_layouts[SEALED_RAW].period_us;
}

/* As many chunks of one file as the step has time for: one commit for all. */
static int seal_chunks(
        struct store_keeper *keeper, const struct chunks *chunks, struct store_step *step)
{
        uint64_t end_us = clock_monotonic_us() + STEP_US;
        int r = 0;

        for (size_t i = 0; i < chunks->n; i++) {
                const struct chunk *chunk = &chunks->list[i];

                if (i > 0 &&
                        (raw_period(chunk) != raw_period(&chunks->list[0]) ||
                                step->n_blocks >= STEP_BLOCKS_MAX || clock_monotonic_us() > end_us))
                        break;
                r = seal_chunk(keeper, chunk, step);
                if (r == -EFBIG && keeper->n_full < KEEPER_FULL_MAX) {
                        keeper->full[keeper->n_full].stream = chunk->stream;
                        keeper->full[keeper->n_full++].begin_us = chunk->begin_us;
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

static int seal(struct store_keeper *keeper, int64_t now_us, struct store_step *step)
{
        struct chunks list = {0};
        CLEANUP(chunks) struct chunks *chunks = &list;
        int r;

        r = find_chunks(keeper, now_us, chunks);
        if (r < 0 || chunks->n == 0)
                return r;
        r = sealed_get(&keeper->sealed, SEALED_RAW, raw_period(&chunks->list[0]), &keeper->file);
        if (r == 0)
                r = sealed_begin(keeper->file);
        if (r < 0)
                return r;
        r = seal_chunks(keeper, chunks, step);
        if (r == 0)
                r = sealed_commit(keeper->file);
        if (r < 0) {
                merge_reset(keeper->merge);
                sealed_rollback(keeper->file);
                return r;
        }
        return 1;
}

/* ---- its life ---- */

static int open_parts(struct store_keeper *keeper, const char *folder)
{
        int r;

        r = sealed_init(&keeper->sealed, folder, true);
        if (r < 0)
                return r;
        r = store_open_database(folder, false, &keeper->db);
        if (r < 0)
                return r;
        r = store_prepare(keeper->db, keeper_sql, N_KEEPER_STATEMENTS, keeper->statements);
        if (r < 0)
                return r;
        r = late_new(&keeper->late);
        if (r < 0)
                return r;
        return merge_new(put_piece, keeper, &keeper->merge);
}

int store_keeper_open(const char *folder, const struct store_ages *ages, struct store_keeper **ret)
{
        CLEANUP(store_keeper) struct store_keeper *keeper = calloc(1, sizeof(*keeper));
        int r;

        if (!keeper)
                return -ENOMEM;
        keeper->ages = *ages;
        keeper->looked_us = keeper->scanned_us = INT64_MIN;
        r = open_parts(keeper, folder);
        if (r < 0)
                return r;
        *ret = STEAL(keeper);
        return 0;
}

struct store_keeper *store_keeper_close(struct store_keeper *keeper)
{
        if (!keeper)
                return NULL;
        for (size_t i = 0; i < N_KEEPER_STATEMENTS; i++)
                sqlite3_finalize(keeper->statements[i]);
        sqlite3_close(keeper->db);
        sealed_done(&keeper->sealed);
        late_free(keeper->late);
        merge_free(keeper->merge);
        free(keeper);
        return NULL;
}

int store_keeper_step(struct store_keeper *keeper, int64_t now_us, struct store_step **ret)
{
        CLEANUP(store_step) struct store_step *step = calloc(1, sizeof(*step));
        int r;

        if (!step)
                return -ENOMEM;
        r = keeper_expire(keeper, now_us, step);
        if (r == 0)
                r = keeper_scan(keeper, now_us, step);
        if (r == 0)
                r = seal(keeper, now_us, step);
        if (r == 0)
                r = keeper_make_tiers(keeper, now_us, step);
        if (r > 0)
                *ret = STEAL(step);
        return r;
}
