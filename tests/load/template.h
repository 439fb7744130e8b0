#pragma once
/*
 * What simulated agents send: blocks made of a recorded trace, encoded once. A block is the same
 * for all agents but for what stands in its header outside the zstd frame (host, boot, sequence,
 * the time of the first and of the last row) and the checksum, so making one is a copy and a hash.
 *
 * A series of `count` blocks goes on without a break; an agent that reaches its end begins again
 * with another boot id, as if its host had been restarted. Agents begin at different places.
 */

#include "lib/block-format.h"
#include "lib/metric.h"
#include "tests/bench/world.h"

#define TEMPLATE_COUNT 64u

struct template
{
        uint8_t *bytes;
        struct block_frame frame;
        int64_t *times_us; /* these, and those of the header, count from the block's first tick */
};

struct template_set {
        struct world world;
        uint64_t interval_us;
        uint32_t rows; /* of a block */
        enum source_id sources[SOURCE_MAX_];
        uint32_t n_sources;
        struct template templates[SOURCE_MAX_][TEMPLATE_COUNT]; /* by the place in @sources */
};

/* @sources: names separated by commas. -EINVAL: an unknown one. */
int template_set_open(struct template_set *set, FILE *trace, const char *sources, uint32_t n_hosts,
        uint32_t n_devices, uint32_t rows, uint64_t interval_us);
void template_set_done(struct template_set *set);

/* The header of block @sequence of a source (by its place), whose first row is of @tick_us. */
struct block_header template_header(const struct template_set *set, uint32_t agent, uint32_t source,
        uint64_t sequence, int64_t tick_us);
/* When its rows are sampled, after its first tick. */
const int64_t *template_times(
        const struct template_set *set, uint32_t agent, uint32_t source, uint64_t sequence);
/* The whole block; returns its size, which template_set_size bounds. */
size_t template_write(const struct template_set *set, uint32_t agent, uint32_t source,
        uint64_t sequence, int64_t tick_us, uint8_t *ret);
/* The largest body of one block of each source. */
size_t template_set_size(const struct template_set *set);
