#include "collectord/store-check-print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/time.h"
#include "collectord/store-check.h"

#define LINES_MAX 1000u /* of damage; all is counted */
#define PROGRESS_US 5000000u
#define PROGRESS_TERMINAL_US 500000u

struct print {
        uint64_t lines, told_us, pause_us;
        bool terminal;
};

static void print_id(const char *label, const struct id *id)
{
        char text[ID_TEXT_MAX];

        if (!id_is_zero(id))
                printf(", %s %s", label, id_format(id, text));
}

/* "raw-20261130.db: part, key 5, host ..., diskstats, 2026-11-30T10:00:00Z to ...: what" */
static void on_damage(void *userdata, const struct store_damage *damage)
{
        struct print *print = userdata;
        char from[TIME_TEXT_MAX], to[TIME_TEXT_MAX];

        if (print->lines++ >= LINES_MAX)
                return;
        fputs(damage->file, stdout);
        if (damage->table) {
                printf(": %s, key %" PRIi64, damage->table, damage->key);
                print_id("host", &damage->host);
                print_id("cluster", &damage->cluster);
                if (source_name(damage->source))
                        printf(", %s", source_name(damage->source));
                if (damage->first_us >= 0 && damage->last_us > 0 &&
                        damage->first_us <= TIME_MAX_US && damage->last_us <= TIME_MAX_US)
                        printf(", %s to %s", time_format_rfc3339(damage->first_us, from),
                                time_format_rfc3339(damage->last_us, to));
        }
        printf(": %s\n", damage->what);
        if (print->lines == LINES_MAX)
                puts("more is only counted");
}

static void on_unreadable(void *userdata, const char *file, const char *what)
{
        (void)userdata;
        printf("%s: %s\n", file, what);
}

static void on_progress(void *userdata, const char *file, const struct store_check_counts *counts)
{
        struct print *print = userdata;
        uint64_t now_us = clock_monotonic_us();

        if (now_us < print->told_us + print->pause_us)
                return;
        print->told_us = now_us;
        fprintf(stderr, "%s%s: %" PRIu64 " blocks, %" PRIu64 " MB so far, %" PRIu64 " damaged%s",
                print->terminal ? "\r\033[K" : "", file, counts->blocks, counts->bytes / 1000000,
                counts->damaged, print->terminal ? "" : "\n");
}

enum store_check_exit store_check_print(const char *folder)
{
        bool terminal = isatty(STDERR_FILENO);
        struct print print = {.terminal = terminal,
                .told_us = clock_monotonic_us(),
                .pause_us = terminal ? PROGRESS_TERMINAL_US : PROGRESS_US};
        struct store_check_sink sink = {.userdata = &print,
                .damage = on_damage,
                .unreadable = on_unreadable,
                .progress = on_progress};
        struct store_check_counts counts = {0};
        int r;

        r = store_check(folder, &sink, &counts);
        if (print.terminal)
                fputs("\r\033[K", stderr);
        if (r < 0) {
                fprintf(stderr, "strata-collectord: %s: %s\n", folder,
                        r == -ENOENT ? "there is no store" : strerror(-r));
                return STORE_CHECK_UNREADABLE;
        }
        printf("%" PRIu64 " files, %" PRIu64 " blocks, %" PRIu64 " rows, %" PRIu64
               " bytes of blocks: %" PRIu64 " damaged, %" PRIu64 " files unreadable\n",
                counts.files, counts.blocks, counts.rows, counts.bytes, counts.damaged,
                counts.unreadable);
        return counts.damaged      ? STORE_CHECK_DAMAGED
               : counts.unreadable ? STORE_CHECK_UNREADABLE
                                   : STORE_CHECK_CLEAN;
}
