/*
 * Compares what a load had acknowledged with what the store holds, row by row:
 *
 *     check-acknowledged LIST STORE_FOLDER
 *
 * LIST is of load-agents --list. A row is a host, a source and a time, whatever blocks it lies in
 * today. Opens the store as the collector does, so the collector must be away. Prints one JSON
 * object; the exit code is 0 when each acknowledged row is there exactly once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/store.h"
#include "tests/load/row-list.h"

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
