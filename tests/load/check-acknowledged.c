/*
 * Compares what a load had acknowledged with what the store holds, row by row:
 *
 *     check-acknowledged LIST STORE_FOLDER
 *
 * LIST is of load-agents --list. A row is a host, a source and a time, whatever blocks it lies in
 * today. Opens the store as the collector does, so the collector must be away, and does all the
 * upkeep that is due, so that a move which a kill cut in half is over: until then its rows may be
 * in two places. Prints one JSON object; the exit code is 0 when each acknowledged row is there
 * exactly once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/store.h"
#include "lib/clock.h"
#include "tests/load/row-list.h"

#define SLICE_US 1000000u /* nobody waits */

/* Moves what may be moved, without waiting until it settles. */
static int keep(struct store *store, const char *folder)
{
        static const struct store_ages ages = {0}; /* everything is kept for ever */
        CLEANUP(store_keeper) struct store_keeper *keeper = NULL;
        int r;

        r = store_keeper_open(folder, &ages, &keeper);
        while (r >= 0) {
                CLEANUP(store_step) struct store_step *step = NULL;

                r = store_keeper_step(keeper, clock_realtime_us(), &step);
                if (r <= 0)
                        return r;
                do
                        r = store_follow(store, step, SLICE_US);
                while (r > 0);
        }
        return r;
}

int main(int argc, char **argv)
{
        CLEANUP(store) struct store *store = NULL;
        CLEANUP(str) char *message = NULL;
        struct row_list listed = {0}, stored = {0};
        struct row_counts counts;
        int r;

        if (argc != 3) {
                fprintf(stderr, "usage: check-acknowledged LIST STORE_FOLDER\n");
                return EXIT_FAILURE;
        }
        /* The list first: what is acknowledged while we read the store is of no interest. */
        r = row_list_read(&listed, argv[1]);
        if (r == 0)
                r = store_open(argv[2], &store, &message);
        if (r == 0)
                r = keep(store, argv[2]);
        if (r == 0)
                r = row_list_load(&stored, argv[2]);
        if (r == 0) {
                counts = row_list_compare(&listed, &stored);
                printf("{\"acknowledged\":%zu,\"stored\":%zu,\"missing\":%zu,\"doubled\":%zu,"
                       "\"others\":%zu}\n",
                        listed.n, stored.n, counts.missing, counts.doubled, counts.others);
                r = counts.missing || counts.doubled ? -EBADMSG : 0;
        } else {
                fprintf(stderr, "check-acknowledged: %s\n", message ? message : strerror(-r));
        }
        row_list_done(&listed);
        row_list_done(&stored);
        return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
