#pragma once
/* How often memory was asked for so far, in the whole process, and how much of it is in use. */

#include <malloc.h>
#include <stddef.h>

static volatile size_t allocations;

#ifdef __SANITIZE_ADDRESS__
int __sanitizer_install_malloc_and_free_hooks(
        void (*on_malloc)(const volatile void *, size_t), void (*on_free)(const volatile void *));
size_t __sanitizer_get_current_allocated_bytes(void);

static void count_allocation(const volatile void *memory, size_t size)
{
        (void)memory;
        (void)size;
        allocations++;
}

static void ignore_free(const volatile void *memory)
{
        (void)memory;
}

static inline void allocations_watch(void)
{
        __sanitizer_install_malloc_and_free_hooks(count_allocation, ignore_free);
}

static inline size_t allocations_bytes(void)
{
        return __sanitizer_get_current_allocated_bytes();
}
#else
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size)
{
        allocations++;
        return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
        allocations++;
        return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
        allocations++;
        return __libc_realloc(memory, size);
}

static inline void allocations_watch(void)
{
}

static inline size_t allocations_bytes(void)
{
        struct mallinfo2 info = mallinfo2();

        return info.uordblks + info.hblkhd;
}
#endif
