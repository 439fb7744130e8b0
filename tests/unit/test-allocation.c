/* Counts what is allocated while a source samples: nothing, once it knows its entities. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agentd/counters.h"
#include "node-fixture.h"

#define ROWS 50

/* volatile: the compiler knows that malloc changes no variable of ours. */
static volatile unsigned allocations;

#ifdef __SANITIZE_ADDRESS__
int __sanitizer_install_malloc_and_free_hooks(
        void (*allocated)(const volatile void *, size_t), void (*freed)(const volatile void *));

static void allocated(const volatile void *memory, size_t size)
{
        (void)memory;
        (void)size;
        allocations++;
}

static void freed(const volatile void *memory)
{
        (void)memory;
}

static int hooks_set(void **state)
{
        (void)state;
        return __sanitizer_install_malloc_and_free_hooks(allocated, freed) > 0 ? 0 : -1;
}
#else
/* In the place of libc's own, for all that is linked here and for libc itself. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size)
{
        allocations++;
        return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
        allocations++;
        return __libc_calloc(n, size);
}

void *realloc(void *memory, size_t size)
{
        allocations++;
        return __libc_realloc(memory, size);
}

static int hooks_set(void **state)
{
        (void)state;
        return 0;
}
#endif

static void an_allocation_is_seen(void **state)
{
        unsigned before = allocations;
        void *volatile memory = malloc(1);

        (void)state;
        assert_true(allocations > before);
        free(memory);
}

static void rows_allocate_nothing(const struct source_class *class, const char *root)
{
        struct agent_counters counters = {0};
        struct source_options options = {.root = root, .agent = &counters};
        struct source *source;
        struct sample sample;
        uint64_t generation;
        unsigned before;

        assert_int_equal(class->open(&options, &no_report, &source), 0);
        /* The first row makes the layout, the second may find room missing. */
        assert_int_equal(class->collect(source, UINT64_MAX, &sample), 0);
        assert_int_equal(class->collect(source, UINT64_MAX, &sample), 0);
        generation = sample.generation;
        before = allocations;
        for (unsigned i = 0; i < ROWS; i++)
                if (class->collect(source, UINT64_MAX, &sample) < 0)
                        break;
        assert_int_equal(allocations, before);
        assert_int_equal(sample.generation, generation);
        class->close(source);
}

static void a_row_of_the_host_allocates_nothing(void **state)
{
        char root[64];

        (void)state;
        node_copy(root);
        rows_allocate_nothing(&source_host, root);
        node_remove(root);
}

static void a_row_of_the_disks_allocates_nothing(void **state)
{
        char root[64];

        (void)state;
        node_copy(root);
        rows_allocate_nothing(&source_diskstats, root);
        node_remove(root);
}

static void a_row_of_the_agent_allocates_nothing(void **state)
{
        (void)state;
        rows_allocate_nothing(&source_agent, "");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_allocation_is_seen),
                cmocka_unit_test(a_row_of_the_host_allocates_nothing),
                cmocka_unit_test(a_row_of_the_disks_allocates_nothing),
                cmocka_unit_test(a_row_of_the_agent_allocates_nothing),
        };

        return cmocka_run_group_tests(tests, hooks_set, NULL);
}
