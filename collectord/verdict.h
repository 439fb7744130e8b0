#pragma once
/*
 * The verdict: which layer holds the clients back, by which entity, why, and what to do. A table of
 * rules (verdict.c) looks at the evidence of one window; each may give findings. Exactly one of
 * them, or none, is the bottleneck. docs/verdicts.md has each rule with its reason. Pure.
 *
 * The idea: the mean time of a client's operation is attributed to stages (receiving it, the OSD's
 * queue and CPU, the object store, the device under it, the other replicas), and the stage with the
 * largest share is to blame, provided that something in it is saturated or waits. When nothing
 * waits and few operations are in flight, it is the client that does not ask for more.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "collectord/evidence.h"

#define VERDICT_FINDINGS_MAX 48u /* more are counted: a cluster with as many has one cause */
#define VERDICT_ENTITY_MAX EVIDENCE_NAME_MAX
#define VERDICT_SENTENCE_MAX 480u
#define VERDICT_CURVES_MAX 4u
#define VERDICT_CURVE_MAX 224u

enum verdict_layer {
        VERDICT_NONE,
        VERDICT_STORAGE,
        VERDICT_OBJECTSTORE,
        VERDICT_OSD,
        VERDICT_NETWORK,
        VERDICT_FILESYSTEM,
        VERDICT_CLIENT,
};
const char *verdict_layer_name(enum verdict_layer layer);

/* What a finding can be about. */
enum verdict_kind {
        VERDICT_CLUSTER,
        VERDICT_CLASS, /* the disks of a device class */
        VERDICT_HOST,
        VERDICT_DEVICE,
        VERDICT_ONE_OSD,
        VERDICT_POOL,
};
const char *verdict_kind_name(enum verdict_kind kind);

/* Which finding is the bottleneck: the first of the lowest rank. A cause stands before its
 * symptom. */
enum verdict_rank {
        VERDICT_RANK_BACKGROUND, /* work that no client asked for keeps the disks */
        VERDICT_RANK_SATURATED,  /* something is full or waits, and it dominates the latency */
        VERDICT_RANK_CLIENT,     /* nothing waits and little is asked */
        VERDICT_RANK_MULTIPLIED, /* a layer makes more work of the clients' than it should */
        VERDICT_RANK_NOTE,       /* worth knowing; never the bottleneck */
};

struct verdict_finding {
        const char *rule, *advice; /* static */
        enum verdict_layer layer;
        enum verdict_rank rank;
        enum verdict_kind kind;
        char entity[VERDICT_ENTITY_MAX]; /* "node1/sda", "osd.3", "node1", a pool's name, "hdd";
                                            "cluster" */
        double share; /* 0..1, comparable within a rank: how much of the whole it explains */
        char sentence[VERDICT_SENTENCE_MAX];
        char curves[VERDICT_CURVES_MAX][VERDICT_CURVE_MAX]; /* paths of the API after /api/v1, with
                                                               neither cluster nor times */
        uint32_t n_curves;
};

struct verdict {
        struct verdict_finding findings[VERDICT_FINDINGS_MAX]; /* the bottleneck, if any, first */
        uint32_t n, left_out;
        bool bottleneck;                     /* findings[0] is it */
        char sentence[VERDICT_SENTENCE_MAX]; /* when there is none: why */
};

/* -ENOMEM. */
int verdict_judge(const struct evidence *evidence, struct verdict **ret);
struct verdict *verdict_free(struct verdict *verdict);
DEFINE_CLEANUP(verdict, struct verdict *, verdict_free)

/* The rules in the order of docs/verdicts.md. */
struct verdict_rule {
        const char *name;
        enum verdict_layer layer;
        enum verdict_rank rank;
        const char *advice;
};
const struct verdict_rule *verdict_rule_at(size_t index); /* NULL past the end */
