/*
 * The store as a cluster of 3,000 devices fills and asks it, how dense its files are, and what a
 * year in it costs. Made of the recorded trace, see world.h; the files are made in a folder that
 * goes again.
 *
 *     bench-store diskstats-1s.txt [FOLDER [density | cluster | month | year]]
 */

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collectord/query.h"
#include "collectord/total.h"
#include "lib/clock.h"
#include "tests/unit/folder-fixture.h"
#include "world.h"

#define HOSTS 125u
#define DEVICES 24u
#define BEGIN (INT64_C(1796083200) * SECOND) /* a day's begin */
#define STEPS 360u
#define RUNS 200u

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

/* A query that misses one would be quick. */
static uint32_t devices_expected = HOSTS * DEVICES;

struct question {
        const char *entity; /* NULL: the cluster */
        int64_t from_us;
        uint64_t step_us;
        uint32_t n;
};

static int ask(struct store_reader *reader, const struct question *question)
{
        static const struct rung_term terms[] = {
                {.metric = METRIC_DISK_WRITE_SECTORS, .slot = 0, .scale = 512},
                {.metric = METRIC_DISK_READ_SECTORS, .slot = 1, .scale = 512},
        };
        CLEANUP(query_result) struct query_result *result = NULL;
        CLEANUP(query) struct query *query = NULL;
        int64_t to_us = question->from_us + question->n * (int64_t)question->step_us;
        struct query_spec spec = {
                .source = SOURCE_DISKSTATS,
                .windows = {question->from_us, question->step_us, question->n},
                .by = question->entity ? QUERY_BY_DEVICE : QUERY_BY_CLUSTER,
                .terms = terms,
                .n_terms = 2,
                .entity = question->entity,
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
        for (uint32_t i = 0; i < question->n; i++)
                if (result->table->targets[0].seen[i] != (question->entity ? 1 : devices_expected))
                        return -EBADMSG;
        return 0;
}

static double thread_cpu_ms(void)
{
        struct timespec time;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* Beside the time that passed stands what it used of a core: the rest is other processes'. */
static int measure_query(
        struct store_reader *reader, const char *what, const struct question *question, double goal)
{
        double times[RUNS], cpu[RUNS];
        int r;

        for (uint32_t i = 0; i < RUNS; i++) {
                uint64_t begin_us = clock_monotonic_us();
                double begin_ms = thread_cpu_ms();

                r = ask(reader, question);
                if (r < 0)
                        return r;
                times[i] = (double)(clock_monotonic_us() - begin_us) / 1e3;
                cpu[i] = thread_cpu_ms() - begin_ms;
        }
        qsort(times, RUNS, sizeof(*times), compare_doubles);
        qsort(cpu, RUNS, sizeof(*cpu), compare_doubles);
        print_row(what, times[RUNS * 99 / 100 - 1], "ms", goal);
        print_row("        median", times[RUNS / 2], "ms", 0);
        print_row("        CPU, p99", cpu[RUNS * 99 / 100 - 1], "ms", 0);
        print_row("        CPU, median", cpu[RUNS / 2], "ms", 0);
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

static int open_store(const char *folder, struct world *world, struct store **ret)
{
        CLEANUP(str) char *message = NULL;
        int r;

        r = store_open(folder, ret, &message);
        if (r < 0) {
                fprintf(stderr, "bench-store: %s\n", message);
                return r;
        }
        r = store_begin(*ret);
        if (r == 0)
                r = world_put_facts(world, *ret, BEGIN);
        return r == 0 ? store_commit(*ret) : r;
}

static int follow(struct store *store, struct store_step *step, uint64_t *ret_longest_us)
{
        int r;

        do {
                uint64_t begin_us = clock_monotonic_us(), us;

                r = store_follow(store, step, STORE_SLICE_US);
                us = clock_monotonic_us() - begin_us;
                if (us > *ret_longest_us)
                        *ret_longest_us = us;
        } while (r > 0);
        return r;
}

/*
 * All that upkeep has to do at @now_us; *ret_longest_us of what the loop does for it at a time.
 * Totals are made of the small blocks that came, before these become parts of hundreds of rows, as
 * where upkeep has time each minute.
 */
static int keep(const char *folder, const struct store_ages *ages, bool totals, struct store *store,
        int64_t now_us, uint64_t *ret_longest_us)
{
        CLEANUP(store_keeper) struct store_keeper *keeper = NULL;
        CLEANUP(total_maker) struct total_maker *maker = NULL;
        int r;

        r = store_keeper_open(folder, ages, &keeper);
        if (r == 0)
                r = total_maker_new(keeper, folder, ages, &maker);
        while (r == 0) {
                CLEANUP(store_step) struct store_step *step = NULL;

                if (totals)
                        r = total_maker_step(maker, now_us, &step);
                if (r == 0)
                        r = store_keeper_step(keeper, now_us, &step);
                if (r <= 0)
                        break;
                r = follow(store, step, ret_longest_us);
        }
        return r;
}

static int measure_queries(
        struct world *world, const char *folder, uint64_t interval, uint32_t rows)
{
        static const struct store_ages ages = {0};
        CLEANUP(store) struct store *store = NULL;
        CLEANUP(store_reader) struct store_reader *reader = NULL;
        uint64_t longest_us = 0;
        char what[80];
        int r;

        r = open_store(folder, world, &store);
        if (r == 0)
                r = fill_hour(world, store, interval * SECOND, rows);
        if (r == 0)
                r = keep(folder, &ages, true, store, BEGIN + 7200 * SECOND, &longest_us);
        if (r == 0)
                r = store_reader_open(folder, &reader);
        if (r < 0)
                return r;
        snprintf(what, sizeof(what), "one device, %us, 360 steps, p99", (unsigned)interval);
        r = measure_query(
                reader, what, &(struct question){"node7/sdac", BEGIN, interval * SECOND, STEPS}, 1);
        if (r < 0)
                return r;
        snprintf(what, sizeof(what), "3,000 devices, %us, 360 steps, p99", (unsigned)interval);
        r = measure_query(
                reader, what, &(struct question){NULL, BEGIN, interval * SECOND, STEPS}, 25);
        print_row("longest slice of upkeep on the loop", (double)longest_us / 1e3, "ms", 0);
        return r;
}

/* ---- density ---- */

static uint64_t files_size(const char *folder, const char *prefix)
{
        char command[1024], text[64] = "";
        FILE *pipe;

        snprintf(command, sizeof(command), "cat %s/%s*.db | wc -c", folder, prefix);
        pipe = popen(command, "r");
        if (pipe) {
                if (!fgets(text, sizeof(text), pipe))
                        *text = '\0';
                pclose(pipe);
        }
        return strtoull(text, NULL, 10);
}

/* A day of raw files, whole, over the values in them. */
static int measure_density(FILE *trace, const char *folder, const char *what, bool all,
        uint32_t n_hosts, uint32_t n_devices, uint64_t interval, uint32_t days, double goal)
{
        static const struct store_ages ages = {0};
        CLEANUP(store) struct store *store = NULL;
        int64_t length_us = (int64_t)(10 * interval) * SECOND,
                end_us = BEGIN + days * 86400 * SECOND;
        double values =
                (double)days * 86400 / (double)interval * n_hosts * n_devices * WORLD_METRICS;
        uint64_t longest_us = 0;
        struct world world;
        int r;

        rewind(trace);
        r = all ? world_open_all(&world, trace, n_hosts, n_devices)
                : world_open(&world, trace, n_hosts, n_devices);
        if (r == 0)
                r = open_store(folder, &world, &store);
        for (int64_t at_us = BEGIN; at_us < end_us && r == 0; at_us += length_us) {
                r = store_begin(store);
                for (uint32_t host = 0; host < n_hosts && r == 0; host++)
                        r = world_put(&world, store, host, at_us, interval * SECOND, 10);
                if (r == 0)
                        r = store_commit(store);
                if (r == 0 && (at_us - BEGIN) % (86400 * SECOND / 8) == 0)
                        r = keep(folder, &ages, true, store, at_us, &longest_us);
        }
        if (r == 0)
                r = keep(folder, &ages, true, store, end_us + 86400 * SECOND, &longest_us);
        store = store_close(store);
        world_done(&world);
        if (r == 0)
                print_row(what, (double)files_size(folder, "raw") / values, "B", goal);
        return r;
}

/* ---- a year ----
 *
 * Without totals, which take a quarter of an hour to make for so many minutes at once.
 */

#define YEAR_HOSTS 42u /* of 24 disks: 1,008 OSDs */
#define YEAR_DEVICES 24u
#define YEAR_INTERVAL (600 * SECOND) /* as many files and streams as at 10 s, in a minute */
#define YEAR_ROWS 36u
#define YEAR_DAYS 365
#define DAY (86400 * SECOND)

static const struct store_ages year_ages = {
        .raw_us = 365 * DAY, .minute_us = 365 * DAY, .hour_us = 730 * DAY};

static int fill_year(struct world *world, struct store *store, const char *folder)
{
        uint64_t longest_us = 0;
        int r = 0;

        for (int64_t at_us = BEGIN; at_us < BEGIN + YEAR_DAYS * DAY && r == 0;
                at_us += YEAR_ROWS * YEAR_INTERVAL) {
                r = store_begin(store);
                for (uint32_t host = 0; host < world->n_hosts && r == 0; host++)
                        r = world_put(world, store, host, at_us, YEAR_INTERVAL, YEAR_ROWS);
                if (r == 0)
                        r = store_commit(store);
                if (r == 0 && (at_us - BEGIN) % (2 * DAY) == 0)
                        r = keep(folder, &year_ages, false, store, at_us, &longest_us);
        }
        return r == 0 ? keep(folder, &year_ages, false, store, BEGIN + YEAR_DAYS * DAY, &longest_us)
                      : r;
}

/* A keeper on a thread, whose steps the loop follows between acknowledgements, as in upkeep.c. */
struct beside {
        const char *folder;
        int64_t now_us;
        atomic_bool stop;
        _Atomic(struct store_step *) step; /* to follow */
        uint64_t steps, blocks;
        int result;
};

static void *keep_busy(void *userdata)
{
        CLEANUP(store_keeper) struct store_keeper *keeper = NULL;
        struct beside *beside = userdata;
        int r;

        r = store_keeper_open(beside->folder, &year_ages, &keeper);
        while (!beside->stop && r >= 0) {
                struct store_step *step = NULL;

                if (beside->step) {
                        usleep(200);
                        continue;
                }
                r = store_keeper_step(keeper, beside->now_us, &step);
                if (r > 0) {
                        beside->steps++;
                        beside->blocks += store_step_blocks(step);
                        beside->step = step;
                } else {
                        usleep(1000);
                }
        }
        beside->result = r;
        return NULL;
}

static int follow_slice(struct store *store, struct beside *beside)
{
        struct store_step *step = beside->step;
        int r;

        if (!step)
                return 0;
        r = store_follow(store, step, STORE_SLICE_US);
        if (r > 0)
                return 0;
        store_step_free(step);
        beside->step = NULL;
        return r;
}

#define ACKS 2000u

/* A block of a host and its commit, one after the other, each with the slice of upkeep that it may
 * have to wait for. */
static int measure_acks(struct world *world, struct store *store, const char *what, int64_t from_us,
        struct beside *beside)
{
        double times[ACKS];
        int r = 0;

        for (uint32_t i = 0; i < ACKS && r == 0; i++) {
                uint64_t begin_us = clock_monotonic_us();

                if (beside)
                        r = follow_slice(store, beside);
                if (r == 0)
                        r = store_begin(store);
                if (r == 0)
                        r = world_put(world, store, i % YEAR_HOSTS,
                                from_us + i / YEAR_HOSTS * 60 * SECOND, 10 * SECOND, 6);
                if (r == 0)
                        r = store_commit(store);
                times[i] = (double)(clock_monotonic_us() - begin_us) / 1e3;
        }
        if (r < 0)
                return r;
        qsort(times, ACKS, sizeof(*times), compare_doubles);
        print_row(what, times[ACKS * 99 / 100 - 1], "ms", 0);
        print_row("  the slowest", times[ACKS - 1], "ms", 0);
        return 0;
}

/* A month later: what has come is merged, and 30 days go. */
static int measure_busy_acks(struct world *world, struct store *store, const char *folder)
{
        int64_t from_us = BEGIN + (YEAR_DAYS + 3) * DAY;
        struct beside beside = {.folder = folder, .now_us = from_us + 30 * DAY};
        pthread_t id;
        int r;

        if (pthread_create(&id, NULL, keep_busy, &beside) != 0)
                return -EAGAIN;
        r = measure_acks(
                world, store, "acknowledgement beside retention and merge, p99", from_us, &beside);
        beside.stop = true;
        pthread_join(id, NULL);
        store_step_free(beside.step);
        print_row("  steps of upkeep meanwhile", (double)beside.steps, "", 0);
        print_row("  blocks that they moved", (double)beside.blocks, "", 0);
        return r < 0 ? r : beside.result < 0 ? beside.result : 0;
}

static unsigned count_files(const char *folder)
{
        unsigned n = 0;
        DIR *open = opendir(folder);
        struct dirent *entry;

        while (open && (entry = readdir(open)))
                n += strstr(entry->d_name, ".db") &&
                     entry->d_name[strlen(entry->d_name) - 1] == 'b';
        if (open)
                closedir(open);
        return n;
}

static int measure_year(FILE *trace, const char *folder)
{
        CLEANUP(store) struct store *store = NULL;
        CLEANUP(store_reader) struct store_reader *reader = NULL;
        struct world world;
        uint64_t begin_us = clock_monotonic_us();
        int r;

        rewind(trace);
        r = world_open(&world, trace, YEAR_HOSTS, YEAR_DEVICES);
        if (r == 0)
                r = open_store(folder, &world, &store);
        if (r == 0)
                r = fill_year(&world, store, folder);
        store = store_close(store);
        print_row("generating the year", (double)(clock_monotonic_us() - begin_us) / 1e6, "s", 0);
        print_row("databases of a year", count_files(folder), "", 0);
        begin_us = clock_monotonic_us();
        if (r == 0)
                r = open_store(folder, &world, &store);
        if (r == 0)
                r = store_reader_open(folder, &reader);
        if (r == 0) {
                print_row("opening", (double)(clock_monotonic_us() - begin_us) / 1e6, "s", 1);
                devices_expected = YEAR_HOSTS * YEAR_DEVICES;
                r = measure_query(reader, "cluster, the last 15 days, 360 hours, p99",
                        &(struct question){
                                NULL, BEGIN + (YEAR_DAYS - 16) * DAY, 3600 * SECOND, STEPS},
                        50);
        }
        if (r == 0)
                r = measure_query(reader, "cluster, the whole year, 360 days, p99",
                        &(struct question){NULL, BEGIN + 2 * DAY, DAY, STEPS}, 0);
        if (r == 0)
                r = measure_query(reader, "one device, the whole year, 360 days, p99",
                        &(struct question){"node1/sdab", BEGIN + 2 * DAY, DAY, STEPS}, 0);
        if (r == 0)
                r = measure_acks(
                        &world, store, "acknowledgement, p99", BEGIN + YEAR_DAYS * DAY, NULL);
        if (r == 0)
                r = measure_busy_acks(&world, store, folder);
        world_done(&world);
        return r;
}

/* ---- a month of a thousand OSDs ---- */

#define MONTH_HOSTS 21u
#define MONTH_DEVICES 48u
#define MONTH_ROWS 5u
#define MONTH_DAYS 30

static int fill_month(struct world *world, struct store *store, const char *folder)
{
        uint64_t longest_us = 0;
        int r = 0;

        for (int64_t at_us = BEGIN - 3600 * SECOND;
                at_us < BEGIN + MONTH_DAYS * DAY + 3600 * SECOND && r == 0;
                at_us += MONTH_ROWS * 60 * SECOND) {
                r = store_begin(store);
                for (uint32_t host = 0; host < world->n_hosts && r == 0; host++)
                        r = world_put(world, store, host, at_us, 60 * SECOND, MONTH_ROWS);
                if (r == 0)
                        r = store_commit(store);
                if (r == 0 && (at_us - BEGIN) % (3600 * SECOND) == 0)
                        r = keep(folder, &year_ages, true, store, at_us, &longest_us);
        }
        return r == 0 ? keep(folder, &year_ages, true, store, BEGIN + (MONTH_DAYS + 1) * DAY, &longest_us)
                      : r;
}

static int measure_month(FILE *trace, const char *folder)
{
        static const struct {
                const char *what;
                struct question question;
                double goal;
        } list[] = {
                {"1,008 devices, 30 days, 360 windows, p99", {NULL, BEGIN, 7200 * SECOND, STEPS},
                        50},
                {"1,008 devices, 30 days, 1,440 windows, p99",
                        {NULL, BEGIN, 1800 * SECOND, 4 * STEPS}, 50},
                {"one device, 30 days, 360 windows, p99",
                        {"node7/sdac", BEGIN, 7200 * SECOND, STEPS}, 0},
        };
        CLEANUP(store) struct store *store = NULL;
        CLEANUP(store_reader) struct store_reader *reader = NULL;
        struct world world;
        int r;

        rewind(trace);
        r = world_open(&world, trace, MONTH_HOSTS, MONTH_DEVICES);
        if (r == 0)
                r = open_store(folder, &world, &store);
        if (r == 0)
                r = fill_month(&world, store, folder);
        if (r == 0)
                r = store_reader_open(folder, &reader);
        devices_expected = MONTH_HOSTS * MONTH_DEVICES;
        for (size_t i = 0; i < sizeof(list) / sizeof(list[0]) && r == 0; i++)
                r = measure_query(reader, list[i].what, &list[i].question, list[i].goal);
        world_done(&world);
        return r;
}

static int measure_cluster(FILE *trace, const char *folder)
{
        static const struct {
                uint64_t interval;
                uint32_t rows;
        } fills[] = {{10, 6}, {1, 10}};
        struct world world;
        char path[512];
        int r;

        rewind(trace);
        r = world_open(&world, trace, HOSTS, DEVICES);
        for (size_t i = 0; i < sizeof(fills) / sizeof(fills[0]) && r == 0; i++) {
                snprintf(path, sizeof(path), "%s/cluster-%zu", folder, i);
                r = measure_queries(&world, path, fills[i].interval, fills[i].rows);
        }
        world_done(&world);
        return r;
}

static int measure_densities(FILE *trace, const char *folder)
{
        static const struct {
                const char *what;
                bool all;
                uint32_t n_hosts, n_devices, days;
                uint64_t interval;
                double goal;
        } list[] = {
                {"busy disk, 1 s, bytes a value", false, 40, 1, 1, 1, 0.45},
                {"busy disk, 10 s, bytes a value", false, 100, 1, 2, 10, 1.1},
                {"all ten devices, 1 s, bytes a value", true, 20, 10, 1, 1, 0.13},
        };
        char path[512];
        int r = 0;

        for (size_t i = 0; i < sizeof(list) / sizeof(list[0]) && r == 0; i++) {
                snprintf(path, sizeof(path), "%s/density-%zu", folder, i);
                r = measure_density(trace, path, list[i].what, list[i].all, list[i].n_hosts,
                        list[i].n_devices, list[i].interval, list[i].days, list[i].goal);
        }
        return r;
}

static int run(FILE *trace, const char *folder, const char *part)
{
        char path[512];
        int r = 0;

        printf("%-58s %9s %-5s %7s\n", "what", "measured", "", "goal");
        if (!part || strcmp(part, "density") == 0)
                r = measure_densities(trace, folder);
        if (r == 0 && (!part || strcmp(part, "cluster") == 0))
                r = measure_cluster(trace, folder);
        snprintf(path, sizeof(path), "%s/month", folder);
        if (r == 0 && (!part || strcmp(part, "month") == 0))
                r = measure_month(trace, path);
        snprintf(path, sizeof(path), "%s/year", folder);
        if (r == 0 && (!part || strcmp(part, "year") == 0))
                r = measure_year(trace, path);
        return r;
}

int main(int argc, char **argv)
{
        CLEANUP(file) FILE *trace = argc > 1 ? fopen(argv[1], "r") : NULL;
        char folder[256];
        int r;

        snprintf(folder, sizeof(folder), "%s/bench-store-XXXXXX", argc > 2 ? argv[2] : "/tmp");
        if (!trace || !mkdtemp(folder)) {
                fputs("usage: bench-store TRACE [FOLDER [density | cluster | month | year]]\n",
                        stderr);
                return EXIT_FAILURE;
        }
        r = run(trace, folder, argc > 3 ? argv[3] : NULL);
        folder_remove(folder);
        if (r < 0)
                fprintf(stderr, "bench-store: %s\n", strerror(-r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
