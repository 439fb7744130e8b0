/*
 * Totals in the store. Their parts stand in files of their own, under a stream number made of the
 * cluster, the source and what they are grouped by; a slot holds all that was made for it.
 */
#include "collectord/store-keeper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SCAN_PAUSE_US INT64_C(1000000)

_Static_assert(SEALED_TOTAL + STORE_TOTAL_TIERS == SEALED_KINDS, "a kind of file for each tier");

static bool has_totals(int source)
{
        return source == SOURCE_DISKSTATS || source == SOURCE_OSD;
}

/* FNV-1a; what it finds is compared with the block's own header. */
int64_t keeper_total_stream(const struct store_total *total)
{
        uint64_t hash = 14695981039346656037u;

        for (size_t i = 0; i < sizeof(total->cluster.bytes); i++)
                hash = (hash ^ total->cluster.bytes[i]) * 1099511628211u;
        hash = (hash ^ (uint64_t)total->source) * 1099511628211u;
        hash = (hash ^ total->by) * 1099511628211u;
        return 1 + (int64_t)((hash ^ hash >> 32) % (SEALED_STREAMS_MAX - 1));
}

/* ---- marks ---- */

static int mark_range(struct store_step *step, int source, int64_t from_us, int64_t to_us)
{
        int64_t first = sealed_slot(SEALED_TOTAL, from_us), last = sealed_slot(SEALED_TOTAL, to_us);
        int r = 0;

        /* Blocks that come in order touch the same slots, one after the other. */
        for (int64_t slot = first; slot <= last && r == 0; slot++) {
                bool known = false;

                for (size_t i = step->n_dirty; i > 0 && i + 8 > step->n_dirty && !known; i--)
                        known = step->dirty[i - 1].slot == slot &&
                                step->dirty[i - 1].stream == source;
                if (!known)
                        r = keeper_add_dirty(step, SEALED_TOTAL, slot, source);
        }
        return r;
}

static int read_scanned(struct store_keeper *keeper)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = keeper->statements[KEEPER_SCANNED];
        int code = sqlite3_step(statement);

        if (code != SQLITE_ROW)
                return code == SQLITE_DONE ? -EBADMSG : store_errno(keeper->db, code);
        keeper->scanned_id = sqlite3_column_int64(statement, 0);
        return 0;
}

int keeper_scan(struct store_keeper *keeper, int64_t now_us, struct store_step *step)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = keeper->statements[KEEPER_FRESH];
        int64_t pause_us =
                keeper->ages.settle_us < SCAN_PAUSE_US ? keeper->ages.settle_us : SCAN_PAUSE_US;
        int code, r;

        r = read_scanned(keeper);
        if (r < 0)
                return r;
        if (keeper->scanned_us != INT64_MIN && now_us < keeper->scanned_us + pause_us)
                return 0;
        keeper->scanned_us = now_us;
        sqlite3_bind_int64(statement, 1, STORE_FRESH_MAX);
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
                step->scanned_id = sqlite3_column_int64(statement, 0);
                r = has_totals(sqlite3_column_int(statement, 1))
                            ? mark_range(step, sqlite3_column_int(statement, 1),
                                      sqlite3_column_int64(statement, 2),
                                      sqlite3_column_int64(statement, 3))
                            : 0;
                if (r < 0)
                        return r;
        }
        r = store_errno(keeper->db, code);
        return r < 0 ? r : step->scanned_id > 0;
}

int store_keeper_total_slots(struct store_keeper *keeper, unsigned tier, size_t max,
        struct store_total_slot *ret, size_t *ret_n)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = keeper->statements[KEEPER_MARKS];
        int64_t slot_us = sealed_layouts[SEALED_TOTAL + tier].slot_us;
        size_t n = 0;
        int code = SQLITE_DONE;

        sqlite3_bind_int64(statement, 1, SEALED_TOTAL + tier);
        sqlite3_bind_int64(statement, 2, (int64_t)max);
        while (n < max && (code = sqlite3_step(statement)) == SQLITE_ROW) {
                int64_t slot = sqlite3_column_int64(statement, 0);

                ret[n++] = (struct store_total_slot){.tier = tier,
                        .source = (enum source_id)sqlite3_column_int(statement, 1),
                        .from_us = slot * slot_us,
                        .to_us = (slot + 1) * slot_us,
                        .version = sqlite3_column_int64(statement, 2)};
        }
        *ret_n = n;
        return code == SQLITE_ROW ? 0 : store_errno(keeper->db, code);
}

/* ---- putting ---- */

static int put_all(struct sealed_file *file, int64_t slot, const struct store_total *list, size_t n)
{
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                if (i == 0 || keeper_total_stream(&list[i]) != keeper_total_stream(&list[i - 1]))
                        r = sealed_remove(file, slot, keeper_total_stream(&list[i]));
        for (size_t i = 0; i < n && r == 0; i++) {
                struct sealed_row row = {.first_us = list[i].first_us,
                        .last_us = list[i].last_us,
                        .blocks = 1,
                        .bytes = list[i].bytes,
                        .size = list[i].size};

                r = sealed_add(file, slot, keeper_total_stream(&list[i]), &row);
        }
        return r;
}

/* *@file: in whose transaction the slots before were put. One commit for all slots of a file. */
static int put_slot(struct store_keeper *keeper, enum sealed_tier tier, int64_t slot,
        const struct store_total *list, size_t n, struct sealed_file **file)
{
        const struct sealed_layout *layout = &sealed_layouts[tier];
        struct sealed_file *next = NULL;
        int r;

        if (n == 0)
                return 0;
        r = sealed_get(&keeper->sealed, tier, slot / (layout->period_us / layout->slot_us), &next);
        if (r < 0)
                return r;
        if (next != *file) {
                r = *file ? sealed_commit(*file) : 0;
                if (r < 0)
                        return r;
                *file = next;
                r = sealed_begin(next);
                if (r < 0)
                        return r;
        }
        return put_all(next, slot, list, n);
}

static int clean_slot(struct store_step *step, const struct store_total_slot *slot, bool filled)
{
        enum sealed_tier tier = SEALED_TOTAL + slot->tier;
        int r;

        r = keeper_grow(&step->clean, &step->clean_allocated, step->n_clean, sizeof(*step->clean));
        if (r < 0)
                return r;
        step->clean[step->n_clean++] = (struct store_dirty){
                tier, sealed_slot(tier, slot->from_us), slot->source, slot->version};
        if (!filled || tier + 1 == SEALED_KINDS)
                return 0;
        return keeper_add_dirty(step, tier + 1, sealed_slot(tier + 1, slot->from_us), slot->source);
}

int store_keeper_put_totals(struct store_keeper *keeper, const struct store_total_slot *slots,
        size_t n_slots, const struct store_total *list, size_t n, struct store_step **ret)
{
        CLEANUP(store_step) struct store_step *step = calloc(1, sizeof(*step));
        struct sealed_file *file = NULL;
        int r = 0;

        if (!step)
                return -ENOMEM;
        for (size_t i = 0; i < n_slots && r == 0; i++) {
                enum sealed_tier tier = SEALED_TOTAL + slots[i].tier;
                size_t begin = 0, end;

                while (begin < n && list[begin].first_us < slots[i].from_us)
                        begin++;
                for (end = begin; end < n && list[end].first_us < slots[i].to_us;)
                        end++;
                r = put_slot(keeper, tier, sealed_slot(tier, slots[i].from_us), list + begin,
                        end - begin, &file);
                if (r == 0)
                        r = clean_slot(step, &slots[i], end > begin);
        }
        if (r == 0 && file)
                r = sealed_commit(file);
        if (r < 0) {
                if (file)
                        sealed_rollback(file);
                return r;
        }
        *ret = STEAL(step);
        return 0;
}

/* ---- reading ---- */

struct marks {
        int64_t *list; /* slots of the tier that is read */
        size_t n, allocated;
};

static void marks_done(struct marks *marks)
{
        free(marks->list);
}
DEFINE_CLEANUP(marks, struct marks *, marks_done)

static int add_mark(struct marks *marks, int64_t slot)
{
        int r;

        if (marks->n > 0 && marks->list[marks->n - 1] == slot)
                return 0;
        r = keeper_grow(&marks->list, &marks->allocated, marks->n, sizeof(*marks->list));
        if (r == 0)
                marks->list[marks->n++] = slot;
        return r;
}

/* Slots of @tier that hold a marked one of this tier or one below. */
static int read_marks(struct store_reader *reader, enum source_id source, enum sealed_tier tier,
        int64_t from_us, int64_t to_us, struct marks *marks)
{
        int r = 0;

        for (enum sealed_tier below = SEALED_TOTAL; below <= tier && r == 0; below++) {
                CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[FIND_MARKS];

                sqlite3_bind_int64(statement, 1, below);
                sqlite3_bind_int64(statement, 2, sealed_slot(below, from_us));
                sqlite3_bind_int64(statement, 3, sealed_slot(below, to_us));
                sqlite3_bind_int64(statement, 4, source);
                while ((r = store_next_row(reader, statement)) > 0) {
                        r = add_mark(
                                marks, sealed_slot(tier, sqlite3_column_int64(statement, 0) *
                                                                 sealed_layouts[below].slot_us));
                        if (r < 0)
                                return r;
                }
        }
        return r;
}

/* Blocks that came a moment ago, and that the keeper has not seen. */
static int read_fresh(struct store_reader *reader, enum source_id source, enum sealed_tier tier,
        int64_t from_us, int64_t to_us, struct marks *marks)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = reader->statements[FIND_FRESH];
        int r;

        sqlite3_bind_int64(statement, 1, INT64_MAX);
        while ((r = store_next_row(reader, statement)) > 0) {
                int64_t first_us = sqlite3_column_int64(statement, 2),
                        last_us = sqlite3_column_int64(statement, 3);

                if (sqlite3_column_int(statement, 1) != (int)source || last_us < from_us ||
                        first_us > to_us)
                        continue;
                if (first_us < from_us)
                        first_us = from_us;
                if (last_us > to_us)
                        last_us = to_us;
                for (int64_t slot = sealed_slot(tier, first_us); slot <= sealed_slot(tier, last_us);
                        slot++) {
                        r = add_mark(marks, slot);
                        if (r < 0)
                                return r;
                }
        }
        return r;
}

static int compare_slots(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

static int give_total(struct store_reader *reader, const struct store_total *which,
        const struct sealed_part *part, store_total_function function, void *userdata)
{
        struct store_total total = *which;
        int r;

        r = sealed_load(&reader->sealed, part, &total.bytes, &total.size);
        if (r == -ENOENT)
                return 0;
        if (r == -EBADMSG || r == -EIO) {
                reader->rotten++;
                return 0;
        }
        if (r < 0)
                return r;
        total.first_us = part->first_us;
        total.last_us = part->last_us;
        return function(userdata, &total);
}

int store_read_totals(struct store_reader *reader, const struct store_total *which, unsigned index,
        int64_t from_us, int64_t to_us, store_total_function function, void *userdata)
{
        enum sealed_tier tier = SEALED_TOTAL + index;
        struct marks list = {0};
        CLEANUP(marks) struct marks *marks = &list;
        int r;

        r = read_marks(reader, which->source, tier, from_us, to_us, marks);
        if (r == 0)
                r = read_fresh(reader, which->source, tier, from_us, to_us, marks);
        if (r < 0)
                return r;
        if (marks->n > 0)
                qsort(marks->list, marks->n, sizeof(*marks->list), compare_slots);
        reader->parts.n = 0;
        r = sealed_find(&reader->sealed, tier, keeper_total_stream(which),
                sealed_slot(tier, from_us), sealed_slot(tier, to_us - 1), &reader->parts,
                &reader->rotten);
        for (size_t i = 0; i < reader->parts.n && r == 0; i++) {
                int64_t slot = sealed_slot(tier, reader->parts.list[i].first_us);

                if (marks->n == 0 ||
                        !bsearch(&slot, marks->list, marks->n, sizeof(slot), compare_slots))
                        r = give_total(reader, which, &reader->parts.list[i], function, userdata);
        }
        sealed_release(&reader->sealed);
        return r;
}
