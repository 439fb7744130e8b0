#pragma once
/*
 * Whether a store is whole: reads all of its files, decodes every block, and names what is damaged.
 * Writes nothing, and may run beside a living collector: what moves from file to file meanwhile is
 * not missed, since it is sealed before it leaves the hot log, and that is read first.
 */

#include <stdint.h>

#include "lib/id.h"
#include "lib/metric.h"

struct store_damage {
        const char *file;  /* its name in the store's folder */
        const char *table; /* NULL: the file as a whole */
        int64_t key;
        struct id host, cluster; /* zero where not known */
        enum source_id source;   /* SOURCE_NONE where not known */
        int64_t first_us, last_us;
        const char *what; /* "its checksum does not fit" */
};

struct store_check_counts {
        uint64_t files, blocks, rows, bytes; /* that were read, damaged ones too */
        uint64_t damaged;                    /* blocks, and files as a whole */
        uint64_t unreadable;                 /* files that tell nothing: no permission, version */
};

struct store_check_sink {
        void *userdata;
        /* The texts are valid during the call. */
        void (*damage)(void *userdata, const struct store_damage *damage);
        /* @file could not be read at all: @what says why. */
        void (*unreadable)(void *userdata, const char *file, const char *what);
        /* Often; @file is the one that is being read. */
        void (*progress)(void *userdata, const char *file, const struct store_check_counts *counts);
};

/* 0 whatever was found. -ENOENT: no store is there; -EACCES, -ENOMEM and others: no check was made
 * or it was cut short. */
int store_check(const char *folder, const struct store_check_sink *sink,
        struct store_check_counts *ret_counts);
