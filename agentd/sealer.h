#pragma once
/*
 * Collects the rows of each source in its open block (rows.h) and seals blocks into the spool: when
 * the meaning of the columns changes, when a block is full, and when the caller says so. At start
 * it first brings what a killed agent left open to the spool.
 */

#include <stdint.h>

#include "agentd/sampler.h"
#include "agentd/spool.h"
#include "lib/cleanup.h"

struct sealer_options {
        const char *folder; /* of the open blocks; NULL: memory only */
        struct spool *spool;
        struct id host, boot;
        struct moment (*clock)(void *userdata);
        void *userdata;
        uint64_t seal_interval_us; /* how often sealer_seal_all will be called, at least */
        uint32_t block_rows;
};

struct sealer;

int sealer_new(const struct sealer_options *options, struct sealer **ret);
/* Seals nothing: what is open stays in its file. */
struct sealer *sealer_free(struct sealer *sealer);
DEFINE_CLEANUP(sealer, struct sealer *, sealer_free)

/* Takes the row. Trouble is logged when it begins and when it ends. */
void sealer_add(struct sealer *sealer, const struct sampler_row *row);
void sealer_seal_all(struct sealer *sealer);
