/*
 * What one diskstats sample costs, its row and its share of block encoding included, against
 * nothing but reading the same file: CPU time of this thread, both in turns, medians. Makes loop
 * devices until there are enough (root), does a little I/O on them, and removes them again.
 *
 *     bench-diskstats [DEVICES...]        default: 10 100 1000
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agentd/rows.h"
#include "agentd/source.h"
#include "lib/cleanup.h"

#define LOOPS_MAX 4096u
#define LOOP_FIRST 4000u /* numbers that nobody uses */
#define LOOP_BYTES (1u << 20)
#define WARM_IOS 40u /* MiB read and written before: counters of several digits */
#define IO_BYTES 4096u
#define BLOCK_ROWS 10u /* a row a second, sealed every 10 s: the agent's own defaults */
#define BLOCKS 31u     /* measured; the first is left out */
#define BLOCKS_OF_MANY 11u
#define MANY 500u /* devices: each reading takes as long as ten small ones */
#define TEXT_BYTES (4u << 20)

static volatile sig_atomic_t interrupted;

static void note_signal(int signal)
{
        interrupted = signal;
}

static int64_t cpu_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int compare_numbers(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

static double median_us(int64_t *values, size_t n)
{
        qsort(values, n, sizeof(*values), compare_numbers);
        return (double)(values[(n - 1) / 2] + values[n / 2]) / 2000;
}

/* The loop devices that we made, all on one small file. */
struct loops {
        int control, backing;
        unsigned n;
        unsigned numbers[LOOPS_MAX];
        int fds[LOOPS_MAX];
        void *buffer;
};

static int loops_open(struct loops *loops)
{
        char path[] = "/var/tmp/strata-bench-XXXXXX";

        loops->control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
        if (loops->control < 0)
                return -errno;
        loops->backing = mkostemp(path, O_CLOEXEC);
        if (loops->backing < 0)
                return -errno;
        unlink(path);
        if (ftruncate(loops->backing, LOOP_BYTES) < 0)
                return -errno;
        return -posix_memalign(&loops->buffer, 4096, LOOP_BYTES);
}

/* Where there is no udev, nobody makes the node. */
static int loop_open(unsigned number)
{
        char path[64];
        int fd;

        snprintf(path, sizeof(path), "/dev/loop%u", number);
        fd = open(path, O_RDWR | O_CLOEXEC | O_DIRECT);
        if (fd < 0 && errno == ENOENT && mknod(path, S_IFBLK | 0600, (7u << 8) | number) == 0)
                fd = open(path, O_RDWR | O_CLOEXEC | O_DIRECT);
        return fd < 0 ? -errno : fd;
}

static int loops_add(struct loops *loops)
{
        struct loop_config config = {.fd = (unsigned)loops->backing, .block_size = 4096};
        unsigned number = loops->n ? loops->numbers[loops->n - 1] + 1 : LOOP_FIRST;
        int fd;

        while (ioctl(loops->control, LOOP_CTL_ADD, number) < 0) {
                if (errno != EEXIST)
                        return -errno;
                number++;
        }
        loops->numbers[loops->n] = number;
        loops->fds[loops->n++] = fd = loop_open(number);
        if (fd < 0)
                return fd;
        return ioctl(fd, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
}

static void loops_remove(struct loops *loops)
{
        char path[64];

        for (; loops->n > 0; loops->n--) {
                unsigned number = loops->numbers[loops->n - 1];
                int fd = loops->fds[loops->n - 1];

                if (fd >= 0) {
                        (void)ioctl(fd, LOOP_CLR_FD);
                        close(fd);
                }
                for (int i = 0; i < 100; i++) {
                        if (ioctl(loops->control, LOOP_CTL_REMOVE, number) >= 0 || errno != EBUSY)
                                break;
                        usleep(10000);
                }
                snprintf(path, sizeof(path), "/dev/loop%u", number);
                unlink(path);
        }
}

static int loops_use(struct loops *loops, unsigned first, unsigned times, size_t bytes)
{
        for (unsigned i = first; i < loops->n && !interrupted; i++)
                for (unsigned k = 0; k < times; k++)
                        if (pread(loops->fds[i], loops->buffer, bytes, 0) < 0 ||
                                pwrite(loops->fds[i], loops->buffer, bytes, 0) < 0)
                                return -errno;
        return 0;
}

/* The peer. */
static int read_bare(int fd, char *text)
{
        off_t offset = 0;
        ssize_t n;

        while ((n = pread(fd, text + offset, TEXT_BYTES - (size_t)offset, offset)) > 0)
                offset += n;
        return n < 0 ? -errno : 0;
}

struct bench {
        struct loops loops;
        char folder[32]; /* of the rows */
        int fd;
        char *text;
        struct source *source;
        struct sample sample;
        struct rows *rows;
        struct block_encoder *encoder;
        struct plan plan;
        uint64_t generation, sequence, block_bytes;
};

static int rows_restart(struct bench *bench)
{
        struct block_header header = {.sequence = ++bench->sequence, .interval_us = 1000000};

        if (bench->generation == bench->sample.generation) {
                rows_begin_again(bench->rows, header.sequence);
                return 0;
        }
        bench->generation = bench->sample.generation;
        return rows_begin(bench->rows, &header, &bench->sample,
                &bench->plan.sources[SOURCE_DISKSTATS], BLOCK_ROWS);
}

struct times {
        int64_t bare[BLOCKS * BLOCK_ROWS], collect[BLOCKS * BLOCK_ROWS],
                append[BLOCKS * BLOCK_ROWS];
        int64_t encode[BLOCKS]; /* a row's share */
        int64_t sample[BLOCKS * BLOCK_ROWS];
};

static int measure_bare(struct bench *bench, int64_t *ret)
{
        int64_t begin = cpu_ns();
        int r = read_bare(bench->fd, bench->text);

        *ret = cpu_ns() - begin;
        return r;
}

/* 1: devices came or went, so this was no ordinary sample. */
static int measure_sample(struct bench *bench, int64_t *ret_collect, int64_t *ret_append)
{
        int64_t begin = cpu_ns(), middle;
        int r = source_diskstats.collect(bench->source, UINT64_MAX, &bench->sample);

        middle = cpu_ns();
        *ret_collect = middle - begin;
        if (r < 0)
                return r;
        if (bench->sample.generation != bench->generation)
                return 1;
        rows_append(bench->rows, &bench->sample);
        *ret_append = cpu_ns() - middle;
        return 0;
}

static int measure_encode(struct bench *bench, int64_t *ret)
{
        int64_t begin = cpu_ns();
        struct block_rows block;
        const uint8_t *bytes;
        size_t size;
        int r;

        rows_get_block(bench->rows, &block);
        r = block_encode(bench->encoder, &block, &bytes, &size);
        *ret = (cpu_ns() - begin) / BLOCK_ROWS;
        bench->block_bytes = size;
        return r;
}

/* One block of rows; 1 when it has to be done again. */
static int measure_block(struct bench *bench, bool busy, uint32_t block, struct times *times)
{
        uint32_t at = block * BLOCK_ROWS;
        int r = 0;

        for (uint32_t i = at; i < at + BLOCK_ROWS && r == 0; i++) {
                bool bare_first = i % 2;

                for (int k = 0; k < 2 && r == 0; k++) {
                        /* Each reading finds all counters changed, and the caches used. */
                        if (busy)
                                r = loops_use(&bench->loops, 0, 1, IO_BYTES);
                        if (r == 0 && bare_first == (k == 0))
                                r = measure_bare(bench, &times->bare[i]);
                        else if (r == 0)
                                r = measure_sample(bench, &times->collect[i], &times->append[i]);
                }
        }
        if (r == 0)
                r = measure_encode(bench, &times->encode[block]);
        for (uint32_t i = at; r == 0 && i < at + BLOCK_ROWS; i++)
                times->sample[i] = times->collect[i] + times->append[i] + times->encode[block];
        if (interrupted)
                return -EINTR;
        return r;
}

static int measure(struct bench *bench, bool busy)
{
        static struct times times;
        uint32_t blocks = bench->loops.n > MANY ? BLOCKS_OF_MANY : BLOCKS;
        uint32_t n = (blocks - 1) * BLOCK_ROWS;
        double bare, sample;
        char load[16];
        int r;

        for (uint32_t block = 0; block < blocks; block++) {
                r = source_diskstats.collect(bench->source, UINT64_MAX, &bench->sample);
                if (r == 0)
                        r = rows_restart(bench);
                if (r == 0)
                        r = measure_block(bench, busy, block, &times);
                if (r < 0)
                        return r;
                block -= r > 0;
        }
        bare = median_us(times.bare + BLOCK_ROWS, n);
        sample = median_us(times.sample + BLOCK_ROWS, n);
        snprintf(load, sizeof(load), "%u busy", busy ? bench->loops.n : 0);
        printf("| %7u | %-10s | %9.2f | %9.2f | %9.2f | %9.2f | %9.2f | %8.3f |\n",
                bench->sample.n_entities, load, bare, median_us(times.collect + BLOCK_ROWS, n),
                median_us(times.append + BLOCK_ROWS, n), median_us(times.encode + 1, blocks - 1),
                sample, sample / bare);
        fflush(stdout);
        return 0;
}

static int bench_open(struct bench *bench)
{
        struct source_options options = {.root = ""};
        struct source_report report = {0};
        int r;

        bench->text = malloc(TEXT_BYTES);
        bench->fd = open("/proc/diskstats", O_RDONLY | O_CLOEXEC);
        if (!bench->text || bench->fd < 0)
                return -errno;
        r = loops_open(&bench->loops);
        if (r < 0)
                return r;
        plan_init(&bench->plan);
        r = block_encoder_new(&bench->encoder);
        if (r < 0)
                return r;
        /* In a file, as the agent has them. */
        if (!mkdtemp(bench->folder))
                return -errno;
        r = rows_new(bench->folder, SOURCE_DISKSTATS, &bench->rows);
        if (r < 0)
                return r;
        return source_diskstats.open(&options, &report, &bench->source);
}

static int bench_grow(struct bench *bench, int devices)
{
        unsigned before = bench->loops.n;
        int r = source_diskstats.collect(bench->source, UINT64_MAX, &bench->sample);
        int n = r == -EAGAIN ? 0 : (int)bench->sample.n_entities;

        r = r == -EAGAIN ? 0 : r;
        for (; r == 0 && n < devices && bench->loops.n < LOOPS_MAX; n++)
                r = loops_add(&bench->loops);
        return r < 0 ? r : loops_use(&bench->loops, before, WARM_IOS, LOOP_BYTES);
}

static int run(struct bench *bench, const char *const *sizes)
{
        int r = bench_open(bench);

        printf("CPU microseconds of one sample; ratio to bare pread of the same file\n\n"
               "| devices | load       | bare      | collect   | row       | encoding  | sample    "
               "| "
               "ratio    |\n"
               "|---|---|---|---|---|---|---|---|\n");
        for (; r == 0 && *sizes; sizes++) {
                r = bench_grow(bench, atoi(*sizes));
                if (r == 0)
                        r = measure(bench, false);
                if (r == 0)
                        r = measure(bench, true);
        }
        return r;
}

int main(int argc, char **argv)
{
        static const char *const sizes[] = {"10", "100", "1000", NULL};
        static struct bench bench = {.folder = "/var/tmp/strata-bench-XXXXXX"};
        char path[64];
        int r;

        signal(SIGINT, note_signal);
        signal(SIGTERM, note_signal);
        r = run(&bench, argc > 1 ? (const char *const *)argv + 1 : sizes);
        loops_remove(&bench.loops);
        source_diskstats.close(bench.source);
        rows_free(bench.rows);
        snprintf(path, sizeof(path), "%s/rows-diskstats", bench.folder);
        unlink(path);
        rmdir(bench.folder);
        block_encoder_free(bench.encoder);
        plan_done(&bench.plan);
        free(bench.loops.buffer);
        free(bench.text);
        if (r < 0)
                fprintf(stderr, "bench-diskstats: %s\n", strerror(-r));
        return r < 0;
}
