#pragma once
/*
 * Ownership at the declaration. CLEANUP(name) on a local calls name_cleanup(&local) at scope end;
 * STEAL(x) hands the value on and leaves NULL behind; STEAL_LEAVING is for what is no pointer: a
 * descriptor leaves -1, a struct leaves zeroes. DEFINE_CLEANUP(name, type, free) makes
 * name_cleanup for a pointer type whose free function accepts NULL.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(name) __attribute__((cleanup(name##_cleanup)))

#define STEAL(x) STEAL_LEAVING(x, NULL)

#define STEAL_LEAVING(x, nothing)                                                                  \
        ({                                                                                         \
                __typeof__(x) steal_ = (x);                                                        \
                (x) = (nothing);                                                                   \
                steal_;                                                                            \
        })

#define DEFINE_CLEANUP(name, type, free_function)                                                  \
        static inline void name##_cleanup(__typeof__(type) *p)                                     \
        {                                                                                          \
                if (*p)                                                                            \
                        free_function(*p);                                                         \
        }

static inline void str_cleanup(char **p)
{
        free(*p);
}

/* For any heap pointer: CLEANUP(mem) uint8_t *buffer = malloc(n); */
static inline void mem_cleanup(void *p)
{
        free(*(void **)p);
}

/* For a file descriptor; negative means none. */
static inline void fd_cleanup(int *fd)
{
        if (*fd >= 0)
                close(*fd);
}

static inline void file_cleanup(FILE **f)
{
        if (*f)
                fclose(*f);
}
