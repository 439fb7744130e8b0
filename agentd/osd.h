#pragma once
/*
 * One OSD behind its admin socket: who it is, its counters, and what to do when it fails. A new
 * process is asked who it is before its counters; it is told from the one before by its process id,
 * by the socket's inode, and by counters that went down. Nothing here waits: the owner looks again
 * while osd->socket.fd is open. Which counters these are, and how they are asked for, is a reader's
 * business.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/osd-find.h"
#include "agentd/osd-socket.h"
#include "agentd/source.h"

enum osd_stage { OSD_STATUS, OSD_VERSION, OSD_COUNTERS };

struct osd;
struct osd_reader;

/* What all OSDs share. */
struct osd_context {
        const char *root; /* "" or the folder that holds proc/ */
        struct source_report report;
        const struct osd_reader *reader;
        struct osd_room *room; /* for answers, one after the other */
        void *shared;          /* of the reader */
        const uint16_t *metrics;
        size_t n_metrics;
};

/* A question and what to make of its answer. */
struct osd_reader {
        const char *question;
        size_t memory; /* bytes of osd->memory, all zero for a new process */
        int (*open)(void **ret_shared, const uint16_t **ret_metrics, size_t *ret_n_metrics);
        void (*close)(void *shared);
        /* By index of the metrics. -EBADMSG: cannot be understood. -EPROTONOSUPPORT: it can, but
         * means something else than in the releases we know. Allocates nothing. */
        int (*read)(const struct osd_context *context, struct osd *osd, const char *text,
                size_t size, uint64_t *ret_values, bool *ret_present);
        /* This metric never goes down but by "perf reset". */
        bool (*only_grows)(uint16_t metric);
        /* A new process told its release; and its counters were read for the first time. NULL when
         * there is nothing to tell. */
        void (*greet)(const struct osd_context *context, struct osd *osd);
        void (*first)(const struct osd_context *context, const struct osd *osd);
        /* Closes what osd->memory holds open, before it is another process's or nobody's. NULL when
         * it holds nothing. */
        void (*leave)(const struct osd_context *context, struct osd *osd);
};

struct osd {
        struct osd_found found;
        struct osd_socket socket;
        enum osd_stage stage;
        char name[24];
        char identity[ID_TEXT_MAX]; /* osd_fsid */
        char release[32];
        struct id cluster;
        bool known; /* it told who it is, and nothing has changed since: */
        bool look;  /* at the path, and not at the process id alone */
        pid_t pid;
        uint64_t inode, changed_ns; /* of the socket */
        uint64_t start;             /* of the process */
        uint64_t resets;            /* of the counters, within one life */
        bool counted;               /* the counters of this life were read: it is an entity */
        bool answered;              /* in this row */
        bool changed;  /* entity or columns are not what they were; the owner clears it */
        bool *columns; /* [n_metrics] as the owner laid them out */
        uint64_t *values, *incoming; /* [n_metrics] of the last row, of the answer being read */
        bool *present, *incoming_present;
        void *memory;                              /* of the reader */
        int error;                                 /* as reported; 0 when all is well */
        uint64_t pause_us, ask_at_us, deadline_us; /* CLOCK_MONOTONIC */
};

/* A search found this in the place of osd->found: is it still the same socket? */
void osd_compare(struct osd *osd, const struct osd_found *found);
/* Takes over the path in @found; on -ENOMEM too. */
int osd_init(struct osd *osd, const struct osd_context *context, struct osd_found *found);
void osd_done(struct osd *osd, const struct osd_context *context);

/* Begins a row: asks, unless a failure is too fresh. */
void osd_begin(
        struct osd *osd, const struct osd_context *context, uint64_t now_us, uint64_t deadline_us);
/* Takes what is there by now: whether anything was. Or the deadline is over. */
bool osd_continue(struct osd *osd, const struct osd_context *context, uint64_t now_us);
void osd_time_out(struct osd *osd, const struct osd_context *context, uint64_t now_us);

/* What block_entity.instance becomes. */
uint64_t osd_instance(const struct osd *osd);
