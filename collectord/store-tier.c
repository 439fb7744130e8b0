/* Upkeep, second half: slots of the coarser tiers are made of the tier below, and files go. */
#include "collectord/store-keeper.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"

#define STEP_US 50000u
#define STEP_SLOTS_MAX 256u

/* ---- tiers ---- */

struct slots {
        struct store_dirty *list;
        size_t n, allocated;
};

static void slots_done(struct slots *slots)
{
        free(slots->list);
}
DEFINE_CLEANUP(slots, struct slots *, slots_done)

static int64_t slot_begin(enum sealed_tier tier, int64_t slot)
{
        return slot * sealed_layouts[tier].slot_us;
}

static int64_t age_of(const struct store_keeper *keeper, enum sealed_tier tier)
{
        switch (tier) {
        case SEALED_RAW:
        case SEALED_TOTAL:
                return keeper->ages.raw_us;
        case SEALED_MINUTE:
        case SEALED_TOTAL_MINUTE:
                return keeper->ages.minute_us;
        default:
                return keeper->ages.hour_us;
        }
}

/* 1: a row is there. */
static int ask(struct store_keeper *keeper, enum keeper_statement which, int64_t a, int64_t b,
        int64_t c, int64_t d)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = keeper->statements[which];
        int64_t values[] = {a, b, c, d};
        int code;

        for (int i = 0; i < sqlite3_bind_parameter_count(statement); i++)
                sqlite3_bind_int64(statement, i + 1, values[i]);
        code = sqlite3_step(statement);
        return code == SQLITE_ROW ? 1 : store_errno(keeper->db, code);
}

/* 1: all that has to go into the slot is one tier below. */
static int is_ready(struct store_keeper *keeper, const struct store_dirty *slot)
{
        int64_t begin_us = slot_begin(slot->tier, slot->slot);
        int64_t end_us = slot_begin(slot->tier, slot->slot + 1);
        int r;

        r = ask(keeper, KEEPER_HOT, slot->stream, begin_us, end_us, 0);
        if (r == 0 && slot->tier > SEALED_MINUTE)
                r = ask(keeper, KEEPER_DIRTY_BELOW, slot->tier - 1,
                        sealed_slot(slot->tier - 1, begin_us),
                        sealed_slot(slot->tier - 1, end_us - 1), slot->stream);
        return r < 0 ? r : r == 0;
}

/* Slots of @tier that have ended. */
static int find_slots(
        struct store_keeper *keeper, enum sealed_tier tier, int64_t now_us, struct slots *slots)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = keeper->statements[KEEPER_DIRTY];
        int code, r;

        sqlite3_bind_int(statement, 1, (int)tier);
        sqlite3_bind_int64(statement, 2, sealed_slot(tier, now_us - keeper->ages.settle_us));
        while (slots->n < STEP_SLOTS_MAX && (code = sqlite3_step(statement)) == SQLITE_ROW) {
                struct store_dirty slot = {(enum sealed_tier)sqlite3_column_int(statement, 0),
                        sqlite3_column_int64(statement, 1), sqlite3_column_int64(statement, 2),
                        sqlite3_column_int64(statement, 3)};

                r = is_ready(keeper, &slot);
                if (r > 0)
                        r = keeper_grow(
                                &slots->list, &slots->allocated, slots->n, sizeof(*slots->list));
                else if (r == 0)
                        continue;
                if (r < 0)
                        return r;
                slots->list[slots->n++] = slot;
        }
        return slots->n == STEP_SLOTS_MAX ? 0 : store_errno(keeper->db, code);
}

static int compare_parts(const void *a, const void *b)
{
        const struct sealed_part *x = a, *y = b;

        return (x->first_us > y->first_us) - (x->first_us < y->first_us);
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
        int r = 0;

        /* What was made before stays until there is something to put into its place. */
        if (keeper->pieces++ == 0)
                r = sealed_remove(keeper->file, keeper->slot, keeper->stream);
        return r < 0 ? r : sealed_add(keeper->file, keeper->slot, keeper->stream, &row);
}

static int feed_parts(struct store_keeper *keeper, struct sealed_parts *parts, struct tier *tier)
{
        if (parts->n > 0)
                qsort(parts->list, parts->n, sizeof(*parts->list), compare_parts);
        for (size_t i = 0; i < parts->n; i++) {
                const uint8_t *bytes;
                size_t size;
                int r;

                r = sealed_load(&keeper->sealed, &parts->list[i], &bytes, &size);
                if (r == 0)
                        r = tier_add(tier, bytes, size);
                /* A damaged part is a hole, in this tier as in the one below. */
                if (r < 0 && r != -EBADMSG && r != -EMSGSIZE && r != -EPROTONOSUPPORT &&
                        r != -ENOENT)
                        return r;
        }
        return tier_finish(tier);
}

static int make_slot(
        struct store_keeper *keeper, const struct store_dirty *slot, struct store_step *step)
{
        struct sealed_parts list = {0};
        CLEANUP(sealed_parts_object) struct sealed_parts *parts = &list;
        CLEANUP(tier) struct tier *tier = NULL;
        enum sealed_tier below = slot->tier - 1;
        uint64_t broken = 0;
        int r;

        keeper->slot = slot->slot;
        keeper->stream = slot->stream;
        keeper->pieces = 0;
        r = tier_new((uint64_t)sealed_layouts[slot->tier].interval_us, put_piece, keeper, &tier);
        if (r == 0)
                r = sealed_find(&keeper->sealed, below, slot->stream,
                        sealed_slot(below, slot_begin(slot->tier, slot->slot)),
                        sealed_slot(below, slot_begin(slot->tier, slot->slot + 1) - 1), parts,
                        &broken);
        /* The file may have been closed for others. */
        if (r == 0)
                r = feed_parts(keeper, parts, tier);
        sealed_release(&keeper->sealed);
        if (r < 0)
                return r;
        r = keeper_grow(&step->clean, &step->clean_allocated, step->n_clean, sizeof(*step->clean));
        if (r < 0)
                return r;
        step->clean[step->n_clean++] = *slot;
        if (slot->tier + 1 == SEALED_TIERS || keeper->pieces == 0)
                return 0;
        return keeper_add_dirty(step, slot->tier + 1,
                sealed_slot(slot->tier + 1, slot_begin(slot->tier, slot->slot)), slot->stream);
}

/* 1: of what the slot is made something is gone already: it stays as it is. */
static bool is_past(
        const struct store_keeper *keeper, const struct store_dirty *slot, int64_t now_us)
{
        int64_t age_us = age_of(keeper, slot->tier - 1);
        int64_t period_us = sealed_layouts[slot->tier - 1].period_us;

        return age_us > 0 &&
               slot_begin(slot->tier, slot->slot) / period_us * period_us + period_us <=
                       now_us - age_us;
}

static int make_slots(struct store_keeper *keeper, const struct slots *slots, int64_t period,
        int64_t now_us, struct store_step *step)
{
        uint64_t end_us = clock_monotonic_us() + STEP_US;
        int64_t period_slots = sealed_layouts[slots->list[0].tier].period_us /
                               sealed_layouts[slots->list[0].tier].slot_us;

        for (size_t i = 0; i < slots->n; i++) {
                int r;

                if (slots->list[i].slot / period_slots != period ||
                        (i > 0 && clock_monotonic_us() > end_us))
                        break;
                if (is_past(keeper, &slots->list[i], now_us)) {
                        r = keeper_grow(&step->clean, &step->clean_allocated, step->n_clean,
                                sizeof(*step->clean));
                        if (r == 0)
                                step->clean[step->n_clean++] = slots->list[i];
                } else
                        r = make_slot(keeper, &slots->list[i], step);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int make_tier(
        struct store_keeper *keeper, enum sealed_tier tier, int64_t now_us, struct store_step *step)
{
        struct slots list = {0};
        CLEANUP(slots) struct slots *slots = &list;
        int64_t period;
        int r;

        r = find_slots(keeper, tier, now_us, slots);
        if (r < 0 || slots->n == 0)
                return r;
        period = slots->list[0].slot /
                 (sealed_layouts[tier].period_us / sealed_layouts[tier].slot_us);
        r = sealed_get(&keeper->sealed, tier, period, &keeper->file);
        if (r == 0)
                r = sealed_begin(keeper->file);
        if (r < 0)
                return r;
        r = make_slots(keeper, slots, period, now_us, step);
        if (r == 0)
                r = sealed_commit(keeper->file);
        if (r < 0) {
                sealed_rollback(keeper->file);
                return r;
        }
        return 1;
}

int keeper_make_tiers(struct store_keeper *keeper, int64_t now_us, struct store_step *step)
{
        int r = 0;

        for (enum sealed_tier tier = SEALED_MINUTE; tier < SEALED_TIERS && r == 0; tier++)
                r = make_tier(keeper, tier, now_us, step);
        return r;
}

/* ---- what is too old ---- */

bool keeper_parse_name(const char *name, enum sealed_tier *ret_tier, int64_t *ret_period)
{
        for (enum sealed_tier tier = SEALED_RAW; tier < SEALED_KINDS; tier++) {
                size_t length = strlen(sealed_layouts[tier].name);
                struct tm tm = {0};
                const char *end;

                if (strncmp(name, sealed_layouts[tier].name, length) != 0 || name[length] != '-')
                        continue;
                end = strptime(name + length + 1, "%Y%m%d", &tm);
                if (!end || strcmp(end, ".db") != 0)
                        continue;
                *ret_tier = tier;
                *ret_period = (int64_t)timegm(&tm) * 1000000 / sealed_layouts[tier].period_us;
                return true;
        }
        return false;
}

static void remove_file(struct store_keeper *keeper, enum sealed_tier tier, int64_t period)
{
        static const char *const suffixes[] = {"", "-wal", "-shm"};

        sealed_close_file(&keeper->sealed, tier, period);
        for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
                CLEANUP(str) char *path = sealed_path(keeper->sealed.folder, tier, period);
                CLEANUP(str) char *whole = NULL;

                if (path && asprintf(&whole, "%s%s", path, suffixes[i]) >= 0)
                        unlink(whole);
                else
                        whole = NULL;
        }
}

/* Up to which stream a file that is too old is off the counts; 0: it is not begun. */
static int find_counted(
        struct store_keeper *keeper, enum sealed_tier tier, int64_t period, int64_t *ret)
{
        CLEANUP(store_reset) sqlite3_stmt *statement = keeper->statements[KEEPER_EXPIRED];
        int code;

        sqlite3_bind_int64(statement, 1, tier);
        sqlite3_bind_int64(statement, 2, period);
        code = sqlite3_step(statement);
        *ret = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
        return store_errno(keeper->db, code);
}

struct kept_list {
        struct store_step *step;
        int64_t counted;
};

static int add_kept(void *userdata, const struct sealed_kept *kept)
{
        const struct kept_list *list = userdata;
        struct store_step *step = list->step;
        int r;

        if (kept->stream <= list->counted)
                return 0;
        r = keeper_grow(&step->kept, &step->kept_allocated, step->n_kept, sizeof(*step->kept));
        if (r == 0)
                step->kept[step->n_kept++] = *kept;
        return r;
}

/* First the loop takes note of what goes; the next time, when that is durable, the file goes. */
static int expire_file(
        struct store_keeper *keeper, enum sealed_tier tier, int64_t period, struct store_step *step)
{
        struct kept_list list = {.step = step};
        struct sealed_file *file = NULL;
        int r;

        r = find_counted(keeper, tier, period, &list.counted);
        if (r < 0)
                return r;
        if (list.counted == INT64_MAX) {
                remove_file(keeper, tier, period);
                return 0;
        }
        if (tier == SEALED_RAW) {
                r = sealed_get(&keeper->sealed, tier, period, &file);
                if (r == 0)
                        r = sealed_read_kept(file, add_kept, &list);
                /* A damaged file goes like the others; only the counts are off. */
                if (r == -ENOMEM)
                        return r;
        }
        step->expire = true;
        step->tier = tier;
        step->period = period;
        return 1;
}

static bool is_too_old(
        const struct store_keeper *keeper, enum sealed_tier tier, int64_t period, int64_t now_us)
{
        int64_t age_us = age_of(keeper, tier);

        return age_us > 0 && (period + 1) * sealed_layouts[tier].period_us <= now_us - age_us;
}

int keeper_expire(struct store_keeper *keeper, int64_t now_us, struct store_step *step)
{
        DIR *folder = opendir(keeper->sealed.folder);
        struct dirent *entry;
        int r = 0;

        if (!folder)
                return -errno;
        while (r == 0 && (entry = readdir(folder))) {
                enum sealed_tier tier;
                int64_t period;

                if (keeper_parse_name(entry->d_name, &tier, &period) &&
                        is_too_old(keeper, tier, period, now_us))
                        r = expire_file(keeper, tier, period, step);
        }
        closedir(folder);
        return r;
}
