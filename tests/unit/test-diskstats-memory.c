/*
 * The way of a tick allocates nothing while devices stay: counted at malloc itself, through the
 * hooks of AddressSanitizer, or else by standing in front of it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agentd/rows.h"
#include "agentd/source.h"

#define DISKS 40u /* more than a page of text */
#define ROWS 10u

static volatile bool counting; /* the compiler takes malloc for one that does not look */
static volatile unsigned n_allocations;

static void note_allocation(void)
{
        n_allocations += counting;
}

#ifdef __SANITIZE_ADDRESS__
/* gcc has the function, and Debian no header for it. */
int __sanitizer_install_malloc_and_free_hooks(
        void (*malloc_hook)(const volatile void *p, size_t size),
        void (*free_hook)(const volatile void *p));

static void malloc_hook(const volatile void *p, size_t size)
{
        (void)p;
        (void)size;
        note_allocation();
}

static void free_hook(const volatile void *p)
{
        (void)p;
}
#else
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size)
{
        note_allocation();
        return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
        note_allocation();
        return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
        note_allocation();
        return __libc_realloc(p, size);
}
#endif

static void report_nothing(void *userdata, int level, const char *text)
{
        (void)userdata;
        (void)level;
        fail_msg("%s", text);
}

/* The counters of tick @tick; every third disk is idle. */
static void text_write(const char *root, unsigned tick)
{
        char path[512];
        FILE *file;

        snprintf(path, sizeof(path), "%s/proc/diskstats", root);
        file = fopen(path, "w");
        assert_non_null(file);
        for (unsigned i = 0; i < DISKS; i++)
                fprintf(file,
                        "%4u %7u sd%u %u 9802 3069538 11402 %u 12707 2984432 13880 0 12192 28712 "
                        "6595 43 388024 1025 9984 2403\n",
                        8, i, i, 1000 + (i % 3 ? tick * i : 0), 2000 + (i % 3 ? tick : 0));
        assert_int_equal(fclose(file), 0);
}

struct way {
        struct source *source;
        struct rows *rows;
        struct block_encoder *encoder;
        struct sample sample;
};

/* One row, and the block when it is full. */
static void tick_take(struct way *way, unsigned tick)
{
        assert_int_equal(source_diskstats.collect(way->source, UINT64_MAX, &way->sample), 0);
        way->sample.time_us = 1000000 * (int64_t)(tick + 1);
        if (tick == 0) {
                struct block_header header = {.sequence = 1, .interval_us = 1000000};
                struct plan_source plan = {.enabled = true, .interval_us = 1000000};

                assert_int_equal(rows_begin(way->rows, &header, &way->sample, &plan, ROWS), 0);
        }
        rows_append(way->rows, &way->sample);
        if (rows_get_count(way->rows) == ROWS) {
                struct block_rows block;
                const uint8_t *bytes;
                size_t size;

                rows_get_block(way->rows, &block);
                assert_int_equal(block_encode(way->encoder, &block, &bytes, &size), 0);
                rows_begin_again(way->rows, tick);
        }
}

static void a_tick_allocates_nothing_while_devices_stay(void **state)
{
        char root[] = "/tmp/strata-test-XXXXXX", path[512], command[64];
        struct source_options options = {.root = root};
        struct source_report report = {.line = report_nothing};
        struct way way = {0};
        char *volatile copy;

        (void)state;
        assert_non_null(mkdtemp(root));
        snprintf(path, sizeof(path), "%s/proc", root);
        assert_int_equal(mkdir(path, 0700), 0);
        text_write(root, 0);
        assert_int_equal(source_diskstats.open(&options, &report, &way.source), 0);
        assert_int_equal(rows_new(root, SOURCE_DISKSTATS, &way.rows), 0);
        assert_int_equal(block_encoder_new(&way.encoder), 0);
        for (unsigned tick = 0; tick < 10 * ROWS; tick++) {
                text_write(root, tick);
                counting = tick >= 2 * ROWS; /* the first blocks may find their size */
                tick_take(&way, tick);
                counting = false;
        }
        assert_int_equal(way.sample.n_entities, DISKS);
        assert_int_equal(n_allocations, 0);
        /* What is counted with does count. */
        counting = true;
        copy = strdup(root);
        counting = false;
        free(copy);
        assert_int_equal(n_allocations, 1);
        source_diskstats.close(way.source);
        rows_free(way.rows);
        block_encoder_free(way.encoder);
        snprintf(command, sizeof(command), "rm -r '%s'", root);
        assert_int_equal(system(command), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_tick_allocates_nothing_while_devices_stay),
        };

#ifdef __SANITIZE_ADDRESS__
        assert_int_equal(__sanitizer_install_malloc_and_free_hooks(malloc_hook, free_hook) > 0, 1);
#endif
        return cmocka_run_group_tests(tests, NULL, NULL);
}
