/*
 * A row of the OSDs allocates nothing once they are known. The allocator is watched on the thread
 * that takes the row: by the sanitizer's hook, or in the place of libc's functions.
 */
#include "osd-fixture.h"

#define ROWS 130u /* a dump is read in full every 60th time */

static _Thread_local bool counting;
static _Thread_local unsigned allocations;

#ifdef __SANITIZE_ADDRESS__

void __sanitizer_malloc_hook(const volatile void *memory, size_t size);

void __sanitizer_malloc_hook(const volatile void *memory, size_t size)
{
        (void)memory, (void)size;
        allocations += counting;
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size)
{
        allocations += counting;
        return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
        allocations += counting;
        return __libc_calloc(n, size);
}

void *realloc(void *memory, size_t size)
{
        allocations += counting;
        return __libc_realloc(memory, size);
}

#endif

static unsigned allocations_of_a_row(struct node *node)
{
        int r;

        allocations = 0;
        counting = true;
        r = collect(node);
        counting = false;
        assert_int_equal(r, 0);
        assert_int_equal(node->sample.failures, 0);
        return allocations;
}

static void rows_allocate_nothing(const struct source_class *class)
{
        struct source_class patient = *class;
        struct fake fakes[3];
        struct node node;
        uint64_t begin = now_us();
        unsigned allocating = 0;

        /* The fakes are threads, and may wait for a core for longer than an OSD may take. */
        patient.deadline_us = 60000000;
        node_start(&node);
        node.class = &patient;
        for (unsigned i = 0; i < 3; i++) {
                fake_start(&fakes[i], &node, i);
                fakes[i].perf = fixture_load("pacific-16.2.15.json");
                fakes[i].histogram = fixture_load("histogram-16.2.15.json");
        }
        node_open(&node, NULL);
        /* Else nothing is watched. */
        assert_true(allocations_of_a_row(&node) > 0);
        assert_int_equal(collect(&node), 0);
        for (unsigned i = 0; i < ROWS; i++)
                allocating += allocations_of_a_row(&node) > 0;
        /* New sockets are searched for every ten seconds, which a slow machine may reach here. */
        assert_true(allocating <= (now_us() - begin) / 10000000);
        for (unsigned i = 0; i < 3; i++) {
                fake_stop(&fakes[i]);
                free((void *)fakes[i].perf);
                free((void *)fakes[i].histogram);
        }
        node_stop(&node);
}

static void rows_of_counters_allocate_nothing(void **state)
{
        (void)state;
        rows_allocate_nothing(&source_osd);
}

static void rows_of_histograms_allocate_nothing(void **state)
{
        (void)state;
        rows_allocate_nothing(&source_osd_histogram);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(rows_of_counters_allocate_nothing),
                cmocka_unit_test(rows_of_histograms_allocate_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
