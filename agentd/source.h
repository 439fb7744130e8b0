#pragma once
/*
 * A source: one thing an agent samples. It is a const table of functions in one file,
 * agentd/source-NAME.c. A source knows no schedule, no plan and no presentation; it reads counters
 * and stores them raw. To add one: this table in a new file, a line in agentd/source-list.c, rows
 * in lib/metric-list.h, a fixture and a test.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/block.h"
#include "lib/facts.h"
#include "lib/metric.h"

struct agent_counters;

/* Where to read; passed in, so that a captured tree can be replayed. Strings outlive the source. */
struct source_options {
        const char *root;          /* "" or a folder that holds proc/ and sys/ of another machine */
        const char *osd_folders;   /* "osd", "osd_histogram": colon-separated folders of admin
                                      sockets, e.g.   /var/run/ceph */
        const char *ceph_conf;     /* "ceph": /etc/ceph/ceph.conf */
        const char *ceph_name;     /* "ceph": client.strata */
        const char *ceph_keyring;  /* "ceph": or "" for the library's default */
        uint64_t ceph_timeout_us;  /* "ceph": of the connection and of each command */
        const char *module_folder; /* "ceph": where strata-source-ceph.so lies */
        const struct agent_counters *agent; /* "agent": what the agent counted of itself, or NULL */
};

/*
 * One row. All pointers belong to the source and stay valid until its next collect. When
 * @generation is the same as in the row before, entities and columns are the same too.
 */
struct sample {
        uint64_t generation;
        const struct block_entity *entities;
        uint32_t n_entities;
        const struct block_column *columns;
        uint32_t n_columns;
        const uint64_t *values;    /* [n_columns] */
        const uint8_t *present;    /* [n_entities]; NULL when all are present */
        int64_t time_us;           /* Unix time at which the counters were really read */
        uint64_t facts_generation; /* changes when add_facts would say something new */
        uint32_t failures;         /* entities or parts that failed; the reason was reported once by
                                      report() */
        uint64_t again_us;         /* SOURCE_PENDING, and then nothing else is set: when to proceed,
                                      CLOCK_MONOTONIC */
};

/* Where a source tells a change of state ("osd.3: socket refuses", "osd.3: answers again"), one
 * line per change. */
struct source_report {
        void (*line)(void *userdata, int level, const char *text);
        void *userdata;
};

/* One line to @report, cut after 511 bytes. */
__attribute__((format(printf, 3, 4))) void source_report(
        const struct source_report *report, int level, const char *format, ...);

struct source;

/* Of collect and proceed: others are asked, and the row is not there yet. */
#define SOURCE_PENDING 1

struct source_class {
        enum source_id id;
        /* A call may wait: it runs on the source's own thread. Who asks others need not, see
         * proceed. */
        bool may_wait;
        bool asks;        /* another program: its time counts as socket time */
        bool in_interval; /* at its deadline it gives what it has: that is before the next tick */
        uint64_t deadline_us; /* at most this long for one collect; 0 for those that do not wait */
        int (*open)(const struct source_options *options, const struct source_report *report,
                struct source **ret);
        /*
         * Reads one row. @deadline_us is CLOCK_MONOTONIC microseconds. Does not allocate while
         * entities stay. -EAGAIN: nothing to read now (no OSD here); not a failure. Else -errno: no
         * row this time. SOURCE_PENDING: proceed is to be called at ret->again_us.
         */
        int (*collect)(struct source *source, uint64_t deadline_us, struct sample *ret);
        /* Goes on with the row that is pending, with the same outcomes; at the deadline it ends.
         * NULL when collect never leaves one. */
        int (*proceed)(struct source *source, struct sample *ret);
        /*
         * For a source that may wait, but not each time: whether the next collect may. If not it
         * runs on the loop, which is cheaper than to wake a thread. NULL: each may.
         */
        bool (*will_wait)(struct source *source);
        /*
         * Adds what the source knows to @facts (devices; clusters). Called on the thread of
         * collect, after the first collect and whenever facts_generation changes. NULL when the
         * source has no facts.
         */
        int (*add_facts)(struct source *source, struct facts *facts);
        void (*close)(struct source *source); /* NULL is accepted */
};

/* Sleeps for as long as the row that collect or proceed left, by @r, is pending; the outcome. */
int source_wait(const struct source_class *class, struct source *source, int r, struct sample *ret);

/*
 * The source class, or -ENOENT. Open of "ceph" loads the module strata-source-ceph.so from
 * options->module_folder (librados comes with it): -ENOTSUP when missing.
 */
int source_class_get(enum source_id id, const struct source_class **ret);

/* The line of each source in agentd/source-list.c. */
extern const struct source_class source_diskstats;
extern const struct source_class source_host;
extern const struct source_class source_osd;
extern const struct source_class source_osd_histogram;
extern const struct source_class source_agent;
/* What the module strata-source-ceph.so exports. */
#define SOURCE_CEPH_SYMBOL "source_ceph"
extern const struct source_class source_ceph;
