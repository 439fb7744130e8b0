#pragma once
/*
 * The ladder: what every layer made of the clients' bytes in one window, from the pools down to the
 * devices, and the sentence that explains the excess. Pure.
 *
 * What BlueStore gives to the device, found by measuring (16.2.15, three OSDs on loop devices, the
 * difference of /proc/diskstats beside the difference of the OSDs' counters over the same window,
 * fresh and overwritten images, 2k to 1m, aligned and not):
 *
 *     device = big + small + padding + (issued - submitted) + BlueFS WAL + SST + log
 *
 * - A deferred write counts in big or small when it is submitted, its copy is inside the BlueFS WAL
 *   bytes, and the write to its place comes when it is issued, possibly in a later window:
 *   `issued - submitted` moves it to the window in which the device sees it.
 * - Padding: a write smaller than a block costs a whole block. write_pad_bytes counts only blocks
 *   filled up with zeros; a block that is read, changed and written again (an overwrite) shows only
 *   in the number of small writes or in the submitted bytes. Hence the largest of three lower
 * bounds.
 *
 *     load            device B   not explained   with write_pad_bytes instead   without padding
 *     fresh 4k       142295040               0                              0                 0
 *     fresh 16k      321974272               0                              0                 0
 *     fresh 64k      546361344          405504                         405504            405504
 *     fresh 1m      1453305856               0                              0                 0
 *     over 16k       240586752               0                              0                 0
 *     over 64k       425357312          405504                         405504            405504
 *     over 2k         81797120               0                       12920832          12920832
 *     fresh 2k        87670784               0                          92160          13676544
 *     over 6k, not aligned    119517184      0                       16908288          16908288
 *     over 100k, not aligned  427638784      0                        8441856           8441856
 *
 * (405504 bytes are 33 blocks for each OSD: a compaction of the BlueFS log, whose bytes no counter
 * has, writes two allocation units of BlueFS and a block. With a DB device of its own, where the
 * unit is 1 MiB, it was 513 blocks. Compactions are counted, so that they are a part of their own.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "lib/facts.h"
#include "collectord/ratio.h"
#include "collectord/rung.h"

#define LADDER_BLOCK_BYTES 4096.0                                 /* bdev_block_size */
#define LADDER_COMPACTION_SHARED (2 * 65536 + LADDER_BLOCK_BYTES) /* bluefs_shared_alloc_size */
#define LADDER_COMPACTION_DEDICATED (2 * 1048576 + LADDER_BLOCK_BYTES) /* bluefs_alloc_size */
#define LADDER_REASON_EXCESS 1.2 /* below, there is nothing to explain */
#define LADDER_REASON_MIN 0.05   /* amplification; smaller parts are no reason */
#define LADDER_RUNGS 4u
#define LADDER_REASONS_MAX 6u
#define LADDER_ITEMS_MAX 10u
#define LADDER_ITEM_MIN 0.005 /* amplification, either way; smaller ones are left to the sum */
#define LADDER_SENTENCE_MAX 400u

/* Slots of the OSD sums that the written bytes are made of; also those of SERIES_OBJECTSTORE. */
enum ladder_written {
        LADDER_BIG,
        LADDER_SMALL,
        LADDER_SMALL_OPS,
        LADDER_PAD,
        LADDER_ISSUED,
        LADDER_SUBMITTED,
        LADDER_WAL,
        LADDER_SST,
        LADDER_LOG,
        LADDER_WRITTEN_MAX_,
};

/* The other slots of the ladder's OSD sums. */
enum ladder_slot {
        LADDER_CLIENT_WRITE = LADDER_WRITTEN_MAX_,
        LADDER_CLIENT_WRITE_OPS,
        LADDER_REPLICA,
        LADDER_REPLICA_OPS,
        LADDER_PUSH,
        LADDER_PUSH_OPS,
        LADDER_RECOVERED,
        LADDER_CLIENT_READ,
        LADDER_CLIENT_READ_OPS,
        LADDER_BIG_OPS,
        LADDER_SUBMITTED_OPS,
        LADDER_HIT,
        LADDER_MISS,
        LADDER_STORE_READ_OPS,
        LADDER_BLUEFS_READ,
        LADDER_BLUEFS_READ_OPS,
        LADDER_COMPACTIONS,
        LADDER_COMPRESSED_ORIGINAL, /* stored, times seconds */
        LADDER_COMPRESSED_ALLOCATED,
        LADDER_SLOTS_MAX_,
};
extern const struct rung_term ladder_terms[];
extern const uint32_t ladder_n_terms;

/* Slots of the device sums. */
enum ladder_device_slot {
        LADDER_DEVICE_READ,
        LADDER_DEVICE_READ_OPS,
        LADDER_DEVICE_WRITE,
        LADDER_DEVICE_WRITE_OPS,
        LADDER_DEVICE_SLOTS_MAX_,
};
extern const struct rung_term ladder_device_terms[];
extern const uint32_t ladder_n_device_terms;

/* Unknown counters are NaN and count as 0 here; all of them unknown is NaN. */
double ladder_padding(const double *written);
/* Object data as the device got it in this window, without padding. */
double ladder_data(const double *written);
double ladder_written_bytes(const double *written);
/* What one compaction of the BlueFS journal writes. */
double ladder_compaction_of(const struct facts_osd *osd);

/* A pool or a device: what it moved in the window. */
struct ladder_member {
        const char *name;
        double bytes, ops; /* in the ladder's direction */
        double factor;     /* pools: expected amplification, NaN unknown */
        bool erasure;
        const struct facts_pool *facts; /* pools: or NULL */
        const char *role;               /* devices: "block", "db", "wal", or NULL */
};

/* What the OSDs of the ladder stand on. */
struct ladder_store {
        double rotational;       /* share of the OSDs, NaN unknown */
        uint64_t min_alloc_size; /* the largest, 0 unknown */
        double compaction_bytes; /* that one compaction of the BlueFS journal writes, 0 unknown */
};
/* Adds the @n-th OSD, counted from 1, to the mean; it begins with {.rotational = NAN}. */
void ladder_store_add(struct ladder_store *store, const struct facts_osd *osd, uint32_t n);

/* Pools are spread over all OSDs, so neither can be split by the other. */
enum ladder_of {
        LADDER_OF_CLUSTER,
        LADDER_OF_OSDS, /* some of them: begins with the OSD rung */
        LADDER_OF_POOL, /* the filesystem rung only */
};

struct ladder_input {
        enum ratio_direction direction;
        double seconds;
        enum ladder_of of;
        struct ladder_store store;
        const struct ladder_member *pools, *devices;
        size_t n_pools, n_devices;
        const double *osd;                     /* [LADDER_SLOTS_MAX_], NaN unknown */
        struct ratio_rung rungs[LADDER_RUNGS]; /* seen, reset, expected, lagging, by layer; `sum` is
                                                  filled in by the ladder */
        struct ratio_noise noise;
};

struct ladder_part {
        const char *name, *kind;
        const char *role;        /* of a device, or NULL */
        const char *included_in; /* the part whose bytes these are too, or NULL */
        const char *help;
        bool counted; /* adds to the rung; otherwise it stands beside it */
        double bytes, ops, amplification;
};

struct ladder_rung {
        enum layer layer;
        double bytes, ops, amplification;
        const char *note; /* NULL or a sentence */
        enum rung_state state;
        char detail[RATIO_DETAIL_MAX]; /* "" when there is none */
        struct ladder_part *parts;
        size_t n_parts;
        struct ratio_point bytes_step, ops_step; /* from the rung above to this one; state gap on
                                                    the first */
};

struct ladder_reason {
        const char *part;
        double amplification;
        double configured; /* what the configuration says of it, for a write of the mean size; NaN
                            */
        char sentence[LADDER_SENTENCE_MAX];
};

struct ladder {
        enum ratio_direction direction;
        double seconds;
        struct ladder_rung rungs[LADDER_RUNGS];
        double unattributed_bytes, unattributed_share;
        enum layer base;          /* amplifications are of this rung's bytes: filesystem, or osd of
                                     LADDER_OF_OSDS */
        struct ratio_point point; /* base to storage */
        struct ratio_point ops;   /* the same in operations */
        char detail[RATIO_DETAIL_MAX];
        /* Disjoint, and their sum is the amplification: redundancy first, then the largest. */
        struct ladder_reason explained[LADDER_ITEMS_MAX];
        size_t n_explained;
        /* Those of them that matter when the excess needs a reason. */
        struct ladder_reason reasons[LADDER_REASONS_MAX];
        size_t n_reasons;
};

/* Names stay the input's. -ENOMEM. */
int ladder_compute(const struct ladder_input *input, struct ladder **ret);
struct ladder *ladder_free(struct ladder *ladder);
DEFINE_CLEANUP(ladder, struct ladder *, ladder_free)
