/*
 * The store as a cluster of 3,000 devices fills and asks it. Made of the recorded trace, see
 * world.h; the files are made in a folder that goes again.
 *
 *     zcat diskstats-1s.txt.gz | bench-store [FOLDER]
 */

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectord/query.h"
#include "lib/clock.h"
#include "world.h"

#define HOSTS 125u
#define DEVICES 24u
#define BEGIN (INT64_C(1796083200) * SECOND) /* a day's begin */
#define STEPS 360u
#define RUNS 200u

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
        (void)stat, (void)type, (void)ftw;
        return remove(path);
}

static void print_row(const char *what, double value, const char *unit, double goal)
{
        printf("%-58s %9.3f %-5s", what, value, unit);
        if (goal > 0)
                printf(" %7.2f %s", goal, value <= goal ? "yes" : "NO");
        putchar('\n');
        fflush(stdout);
}

static int compare_doubles(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

static int ask(struct store_reader *reader, const char *entity, int64_t from_us, uint64_t step_us)
{
        static const struct rung_term terms[] = {
                {.metric = METRIC_DISK_WRITE_SECTORS, .slot = 0, .scale = 512},
                {.metric = METRIC_DISK_READ_SECTORS, .slot = 1, .scale = 512},
        };
        CLEANUP(query_result) struct query_result *result = NULL;
        CLEANUP(query) struct query *query = NULL;
        int64_t to_us = from_us + STEPS * (int64_t)step_us;
        struct query_spec spec = {
                .source = SOURCE_DISKSTATS,
                .windows = {from_us, step_us, STEPS},
                .by = entity ? QUERY_BY_DEVICE : QUERY_BY_CLUSTER,
                .terms = terms,
                .n_terms = 2,
                .entity = entity,
        };
        int r;

        r = store_reader_begin(reader);
        if (r == 0)
                r = query_open(reader, to_us + 10 * SECOND, 0, &query);
        if (r == 0)
                r = query_run(query, &spec, &result);
        store_reader_end(reader);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < STEPS; i++)
                if (result->table->targets[0].seen[i] != (entity ? 1 : HOSTS * DEVICES))
                        return -EBADMSG;
        return 0;
}

static int measure_query(struct store_reader *reader, const char *what, const char *entity,
        int64_t from_us, uint64_t step_us, uint32_t runs, double goal)
{
        double times[RUNS];
        int r;

        for (uint32_t i = 0; i < runs; i++) {
                uint64_t begin_us = clock_monotonic_us();

                r = ask(reader, entity, from_us, step_us);
                if (r < 0)
                        return r;
                times[i] = (double)(clock_monotonic_us() - begin_us) / 1e3;
        }
        qsort(times, runs, sizeof(*times), compare_doubles);
        print_row(what, times[(runs * 99 + 99) / 100 - 1], "ms", goal);
        return 0;
}

/* An hour of all hosts, in blocks of @rows. */
static int fill_hour(struct world *world, struct store *store, uint64_t interval_us, uint32_t rows)
{
        int64_t length_us = (int64_t)(rows * interval_us);
        int r;

        for (int64_t at_us = BEGIN - length_us; at_us < BEGIN + 3600 * SECOND + 2 * length_us;
                at_us += length_us) {
                r = store_begin(store);
                for (uint32_t host = 0; host < world->n_hosts && r == 0; host++)
                        r = world_put(world, store, host, at_us, interval_us, rows);
                if (r == 0)
                        r = store_commit(store);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int measure_queries(
        struct world *world, const char *folder, uint64_t interval, uint32_t rows)
{
        CLEANUP(store) struct store *store = NULL;
        CLEANUP(store_reader) struct store_reader *reader = NULL;
        CLEANUP(str) char *message = NULL;
        char what[80];
        int r;

        r = store_open(folder, &store, &message);
        if (r < 0) {
                fprintf(stderr, "bench-store: %s\n", message);
                return r;
        }
        r = store_begin(store);
        if (r == 0)
                r = world_put_facts(world, store, BEGIN);
        if (r == 0)
                r = store_commit(store);
        if (r == 0)
                r = fill_hour(world, store, interval * SECOND, rows);
        if (r == 0)
                r = store_reader_open(folder, &reader);
        if (r < 0)
                return r;
        snprintf(what, sizeof(what), "one device, %us, 360 steps, p99", (unsigned)interval);
        r = measure_query(reader, what, "node7/sdac", BEGIN, 10 * SECOND, RUNS, 1);
        if (r < 0)
                return r;
        snprintf(what, sizeof(what), "3,000 devices, %us, 360 steps, p99", (unsigned)interval);
        return measure_query(reader, what, NULL, BEGIN, 10 * SECOND, 5, 25);
}

static int run(struct world *world, const char *folder)
{
        static const struct {
                uint64_t interval;
                uint32_t rows;
        } fills[] = {{10, 6}, {10, 360}, {1, 10}, {1, 300}};
        char path[512];
        int r = 0;

        printf("%-58s %9s %-5s %7s\n", "what", "measured", "", "goal");
        for (size_t i = 0; i < sizeof(fills) / sizeof(fills[0]) && r == 0; i++) {
                printf("blocks of %u rows\n", fills[i].rows);
                snprintf(path, sizeof(path), "%s/%zu", folder, i);
                r = measure_queries(world, path, fills[i].interval, fills[i].rows);
        }
        return r;
}

int main(int argc, char **argv)
{
        char folder[256];
        struct world world;
        int r;

        snprintf(folder, sizeof(folder), "%s/bench-store-XXXXXX", argc > 1 ? argv[1] : "/tmp");
        if (!mkdtemp(folder)) {
                perror(folder);
                return EXIT_FAILURE;
        }
        r = world_open(&world, stdin, HOSTS, DEVICES);
        if (r == 0)
                r = run(&world, folder);
        world_done(&world);
        nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        if (r < 0)
                fprintf(stderr, "bench-store: %s\n", strerror(-r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
