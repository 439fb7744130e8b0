#include "agentd/sealer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agentd/rows.h"
#include "lib/log.h"

struct open_block {
        struct rows *rows;
        bool begun;
        uint64_t epoch, generation;
        int last_error;
        bool in_memory;
};

struct sealer {
        struct sealer_options options;
        char *folder;
        struct block_encoder *encoder;
        struct open_block blocks[SOURCE_MAX_];
        uint64_t sequence;
        bool spool_in_memory;
        uint64_t damaged;
};

/* Unique and growing within a boot, also over a restart of the agent: no block is begun in the same
 * microsecond of the boot clock as one of the process before. */
static uint64_t next_sequence(struct sealer *sealer)
{
        uint64_t now_us = sealer->options.clock(sealer->options.userdata).boot_us;

        sealer->sequence = now_us > sealer->sequence ? now_us : sealer->sequence + 1;
        return sealer->sequence;
}

static void tell_spool(struct sealer *sealer)
{
        int error;
        bool in_memory = !spool_is_durable(sealer->options.spool, &error);

        if (in_memory && !sealer->spool_in_memory && sealer->folder)
                log_error(
                        "the spool takes no blocks, they are kept in memory: %s", strerror(-error));
        if (!in_memory && sealer->spool_in_memory)
                log_notice("the spool takes blocks again");
        sealer->spool_in_memory = in_memory;
        if (spool_get_damaged(sealer->options.spool) == sealer->damaged)
                return;
        sealer->damaged = spool_get_damaged(sealer->options.spool);
        log_error("the spool had damaged blocks, %" PRIu64 " so far; they are skipped",
                sealer->damaged);
}

static int seal_rows(struct sealer *sealer, const struct rows *rows)
{
        struct block_rows block;
        const uint8_t *bytes;
        size_t size;
        int r;

        rows_get_block(rows, &block);
        r = block_encode(sealer->encoder, &block, &bytes, &size);
        if (r < 0)
                return r;
        return spool_append(sealer->options.spool, bytes, size);
}

static void seal_block(struct sealer *sealer, enum source_id source)
{
        struct open_block *block = &sealer->blocks[source];
        int r;

        if (rows_get_count(block->rows) == 0)
                return;
        r = seal_rows(sealer, block->rows);
        if (r < 0)
                log_error("%s: %" PRIu32 " rows are lost, they cannot be sealed: %s",
                        source_name(source), rows_get_count(block->rows), strerror(-r));
        rows_begin_again(block->rows, next_sequence(sealer));
}

static void tell_durability(struct open_block *block, enum source_id source)
{
        int error;
        bool in_memory = !rows_is_durable(block->rows, &error);

        if (in_memory && !block->in_memory && error != -ENOENT)
                log_error("%s: open rows are kept in memory, a kill loses them: %s",
                        source_name(source), strerror(-error));
        block->in_memory = in_memory;
}

static int begin_block(struct sealer *sealer, const struct sampler_row *row)
{
        struct open_block *block = &sealer->blocks[row->source];
        struct block_header header = {
                .host = sealer->options.host,
                .boot = sealer->options.boot,
                .sequence = next_sequence(sealer),
                .interval_us = row->plan->interval_us,
        };
        /* As many as come between two seals, and one for a seal that is late. */
        uint64_t capacity = sealer->options.seal_interval_us / row->plan->interval_us + 2;
        int r;

        if (capacity > sealer->options.block_rows)
                capacity = sealer->options.block_rows;
        r = rows_begin(block->rows, &header, row->sample, row->plan, (uint32_t)capacity);
        if (r < 0)
                return r;
        block->begun = true;
        block->epoch = row->epoch;
        block->generation = row->sample->generation;
        tell_durability(block, row->source);
        return 0;
}

static int add_row(struct sealer *sealer, const struct sampler_row *row)
{
        struct open_block *block = &sealer->blocks[row->source];
        int r;

        if (block->begun &&
                (block->epoch != row->epoch || block->generation != row->sample->generation)) {
                seal_block(sealer, row->source);
                block->begun = false;
        }
        if (!block->begun) {
                r = begin_block(sealer, row);
                if (r < 0)
                        return r;
        }
        /* Full, or the wall clock went back. */
        if (!rows_can_append(block->rows, row->sample->time_us))
                seal_block(sealer, row->source);
        rows_append(block->rows, row->sample);
        if (rows_get_count(block->rows) >= sealer->options.block_rows)
                seal_block(sealer, row->source);
        return 0;
}

void sealer_add(struct sealer *sealer, const struct sampler_row *row)
{
        struct open_block *block = &sealer->blocks[row->source];
        int r;

        if (!block->rows)
                return;
        r = add_row(sealer, row);
        if (r < 0 && r != block->last_error)
                log_warning("%s: rows cannot be kept: %s", source_name(row->source),
                        r == -ENODATA ? "the plan wants none of its metrics" : strerror(-r));
        block->last_error = r;
}

void sealer_seal_all(struct sealer *sealer)
{
        for (int id = SOURCE_NONE + 1; id < SOURCE_MAX_; id++)
                seal_block(sealer, (enum source_id)id);
        tell_spool(sealer);
}

static void recover(struct sealer *sealer, enum source_id source)
{
        struct rows *rows = sealer->blocks[source].rows;
        int r;

        if (rows_recover(rows) == 0)
                return;
        r = seal_rows(sealer, rows);
        if (r < 0)
                log_error("%s: %" PRIu32 " rows of the run before are lost: %s",
                        source_name(source), rows_get_count(rows), strerror(-r));
        else
                log_info("%s: %" PRIu32 " rows of the run before are recovered",
                        source_name(source), rows_get_count(rows));
        rows_begin_again(rows, next_sequence(sealer));
}

int sealer_new(const struct sealer_options *options, struct sealer **ret)
{
        CLEANUP(sealer) struct sealer *sealer = calloc(1, sizeof(*sealer));
        int r;

        if (!sealer)
                return -ENOMEM;
        sealer->options = *options;
        r = block_encoder_new(&sealer->encoder);
        if (r < 0)
                return r;
        if (options->folder) {
                sealer->folder = strdup(options->folder);
                if (!sealer->folder)
                        return -ENOMEM;
        }
        for (int id = SOURCE_NONE + 1; id < SOURCE_MAX_; id++) {
                r = rows_new(sealer->folder, (enum source_id)id, &sealer->blocks[id].rows);
                if (r < 0)
                        return r;
                recover(sealer, (enum source_id)id);
        }
        *ret = STEAL(sealer);
        return 0;
}

struct sealer *sealer_free(struct sealer *sealer)
{
        if (!sealer)
                return NULL;
        for (int id = SOURCE_NONE + 1; id < SOURCE_MAX_; id++)
                rows_free(sealer->blocks[id].rows);
        block_encoder_free(sealer->encoder);
        free(sealer->folder);
        free(sealer);
        return NULL;
}
