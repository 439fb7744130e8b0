#pragma once
/*
 * What changes the store: an agent's blocks and facts, an operator's plan. A change is checked on
 * any thread, applied in a transaction on the loop, and answered after the commit:
 * ingest_check, then ingest_apply, then ingest_answer.
 */

#include <stdbool.h>
#include <stdint.h>

#include "collectord/api.h"
#include "collectord/election.h"
#include "collectord/metrics.h"
#include "collectord/plan-list.h"
#include "collectord/route.h"

#define INGEST_BODY_MAX (8u << 20)   /* of blocks and facts; a spool's file is smaller */
#define INGEST_PLAN_MAX (256u << 10) /* all metrics of all sources are 20 KiB */
#define INGEST_BLOCKS_MAX 4096u      /* of one body: 60 ms of inserts */

struct ingest_block {
        struct block_header header;
        const uint8_t *bytes; /* in the request's body */
        size_t size;
};

struct ingest_change {
        enum route_action action;
        bool for_all; /* a plan for "*" */
        struct id host;
        /* blocks */
        struct ingest_block *blocks;
        uint32_t n_blocks;
        struct store_agent_update update;
        uint64_t agent_revision; /* the plan's, as the agent has it */
        struct election_voice voice;
        /* facts, plan */
        char *json;
        /* filled by ingest_apply */
        uint32_t accepted, duplicates, gaps;
        uint64_t rows, gap_rows, bytes, revision;
};

void ingest_change_done(struct ingest_change *change);

/* The largest body that the action takes; 0 for none. */
size_t ingest_body_max(enum route_action action);

/* Reads and checks headers and body; @reader is the thread's (NULL: no facts of before are kept). 1: refused, the response says why.
 * -ENOMEM, or what reading the store gives. */
int ingest_check(const struct api_request *request, enum route_action action,
        struct store_reader *reader, struct api_response *response, struct ingest_change *ret);
/* Puts the change into the open transaction. 1: refused, undo it; < 0: the transaction is lost. */
int ingest_apply(struct ingest_change *change, const struct api_request *request,
        struct api_response *response, struct store *store);
/* After the commit: counts, tells the election and the list of plans, and fills the response. */
int ingest_answer(struct ingest_change *change, const struct api_request *request,
        struct api_response *response, struct plan_list *plans, struct election *election,
        uint64_t monotonic_us);
