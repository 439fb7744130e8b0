#pragma once
/* strata-collectord --check-store: says on standard output what is damaged and what was read. */

enum store_check_exit {
        STORE_CHECK_CLEAN = 0,
        STORE_CHECK_DAMAGED = 1,
        STORE_CHECK_UNREADABLE = 2, /* the store or a file of it; nothing damaged was found */
};

/* How long it takes is told on standard error. */
enum store_check_exit store_check_print(const char *folder);
