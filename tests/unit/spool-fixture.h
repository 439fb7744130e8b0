#pragma once
/* A spool with a clock of its own, blocks for it, and a look at what it gives. */

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agentd/spool.h"
#include "sample-fixture.h"

#define MEBIBYTE (1u << 20)
#define SECOND_US 1000000ull
#define HOUR_US (3600 * SECOND_US)
#define DAY_US (24 * HOUR_US)

struct spool_bench {
        char *folder;
        struct spool *spool;
        struct agent_counters counters;
        struct block_encoder *encoder;
        struct moment now;
        struct id boot;
        uint64_t age_max_us;
};

static inline struct moment spool_bench_look(void *userdata)
{
        return ((struct spool_bench *)userdata)->now;
}

static inline int bench_try_open(struct spool_bench *bench, const char *folder, uint64_t bytes_max)
{
        struct spool_options options = {
                .folder = folder,
                .bytes_max = bytes_max,
                .age_max_us = bench->age_max_us,
                .boot = bench->boot,
                .clock = spool_bench_look,
                .userdata = bench,
                .counters = &bench->counters,
        };
        uint64_t damaged;

        return spool_open(&options, &bench->spool, &damaged);
}

static inline void open_spool(struct spool_bench *bench, uint64_t bytes_max)
{
        assert_int_equal(bench_try_open(bench, bench->folder, bytes_max), 0);
}

static inline void reopen(struct spool_bench *bench, uint64_t bytes_max)
{
        bench->spool = spool_close(bench->spool);
        open_spool(bench, bytes_max);
}

static inline void pass(struct spool_bench *bench, uint64_t us)
{
        bench->now.realtime_us += (int64_t)us;
        bench->now.monotonic_us += us;
        bench->now.boot_us += us;
}

static inline struct spool_bench *bench_new(void)
{
        struct spool_bench *bench = calloc(1, sizeof(*bench));

        bench->folder = fixture_folder();
        bench->boot.bytes[0] = 9;
        bench->now =
                (struct moment){(int64_t)(1796040000 * SECOND_US), 50 * SECOND_US, 60 * SECOND_US};
        assert_int_equal(block_encoder_new(&bench->encoder), 0);
        return bench;
}

static inline void bench_free(struct spool_bench *bench)
{
        spool_close(bench->spool);
        block_encoder_free(bench->encoder);
        fixture_remove(bench->folder);
        free(bench);
}

/* A block of @rows rows that do not compress: about 48 bytes each. */
static inline int append(struct spool_bench *bench, uint64_t sequence, uint32_t rows)
{
        int64_t times[512];
        uint64_t values[512 * FIXTURE_COLUMNS], random = sequence * 77 + 1;
        struct fixture fixture;
        struct block_rows block = {0};
        const uint8_t *bytes;
        size_t size;

        fixture_init(&fixture);
        for (uint32_t i = 0; i < rows; i++)
                times[i] = (int64_t)(sequence * 1000 + i);
        for (uint32_t i = 0; i < rows * FIXTURE_COLUMNS; i++) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                values[i] = random;
        }
        block.header = (struct block_header){
                .host = {.bytes = {1}},
                .boot = {.bytes = {2}},
                .source = SOURCE_DISKSTATS,
                .sequence = sequence,
                .interval_us = 1,
                .rows = rows,
        };
        block.entities = fixture.entities;
        block.n_entities = FIXTURE_ENTITIES;
        block.columns = fixture.columns;
        block.n_columns = FIXTURE_COLUMNS;
        block.times_us = times;
        block.values = values;
        assert_int_equal(block_encode(bench->encoder, &block, &bytes, &size), 0);
        return spool_append(bench->spool, bytes, size);
}

struct found {
        /* Sequences of the blocks that are no gaps: the smallest and the largest; of the batch read
         * last, too. */
        uint64_t blocks, rows, first, last, batch_first, batch_last;
        uint64_t gap_rows;
        struct block_header gap;
};

/* Within a batch the blocks ascend. */
static inline void look_at_batch(const struct spool_batch *batch, struct found *found)
{
        struct block_header header;
        size_t at = 0, size;

        found->batch_first = found->batch_last = 0;
        for (uint32_t i = 0; i < batch->blocks; i++) {
                assert_int_equal(
                        block_peek(batch->bytes + at, batch->size - at, &header, &size), 0);
                at += size;
                if (header.flags & BLOCK_FLAG_GAP) {
                        found->gap_rows += header.rows;
                        if (header.last_us > found->gap.last_us)
                                found->gap = header;
                        continue;
                }
                assert_true(header.sequence > found->batch_last);
                if (found->batch_first == 0)
                        found->batch_first = header.sequence;
                found->batch_last = header.sequence;
                found->rows += header.rows;
                if (found->blocks++ == 0 || header.sequence < found->first)
                        found->first = header.sequence;
                if (header.sequence > found->last)
                        found->last = header.sequence;
        }
        assert_int_equal(at, batch->size);
}

/* Reads and acknowledges everything: ever older batches. */
static inline struct found drain(struct spool_bench *bench, size_t size_max)
{
        uint64_t before = UINT64_MAX;
        struct found found = {0};
        struct spool_batch batch;

        while (spool_read(bench->spool, size_max, &batch) == 1) {
                assert_true(batch.blocks == 1 || batch.size <= size_max);
                look_at_batch(&batch, &found);
                assert_true(found.batch_last < before);
                if (found.batch_first > 0)
                        before = found.batch_first;
                spool_acknowledge(bench->spool);
        }
        assert_int_equal(bench->counters.spool_blocks, 0);
        assert_int_equal(bench->counters.spool_rows, 0);
        assert_int_equal(bench->counters.spool_bytes, 0);
        return found;
}

static inline uint8_t *read_file(const char *path, size_t *ret_size)
{
        struct stat status;
        uint8_t *bytes;
        int fd = open(path, O_RDONLY);

        assert_int_equal(fstat(fd, &status), 0);
        bytes = malloc((size_t)status.st_size + 1);
        assert_int_equal(read(fd, bytes, (size_t)status.st_size), status.st_size);
        close(fd);
        *ret_size = (size_t)status.st_size;
        return bytes;
}

static inline void write_file(const char *path, const uint8_t *bytes, size_t size)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        assert_int_equal(write(fd, bytes, size), size);
        close(fd);
}

/* What the spool's files take on the disk. */
static inline uint64_t folder_bytes(const char *folder, bool allocated)
{
        DIR *dir = opendir(folder);
        struct dirent *entry;
        struct stat status;
        uint64_t bytes = 0;

        while ((entry = readdir(dir)))
                if (fstatat(dirfd(dir), entry->d_name, &status, 0) == 0 && S_ISREG(status.st_mode))
                        bytes += (uint64_t)(allocated ? status.st_blocks * 512 : status.st_size);
        closedir(dir);
        return bytes;
}

static inline unsigned folder_files(const char *folder)
{
        DIR *dir = opendir(folder);
        struct dirent *entry;
        unsigned files = 0;

        while ((entry = readdir(dir)))
                files += entry->d_name[0] != '.' && strstr(entry->d_name, ".spool");
        closedir(dir);
        return files;
}

static inline char *segment_path(const struct spool_bench *bench, unsigned number)
{
        char *path = NULL;

        assert_true(asprintf(&path, "%s/%016x.spool", bench->folder, number) > 0);
        return path;
}
