#include "collectord/ratio.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ratio_entities_name(enum layer layer)
{
        switch (layer) {
        case LAYER_FILESYSTEM:
                return "pools";
        case LAYER_STORAGE:
                return "devices";
        case LAYER_OSD:
        case LAYER_OBJECTSTORE:
                return "OSDs";
        default:
                return "entities";
        }
}

enum rung_state ratio_rung_state(const struct ratio_rung *rung)
{
        if (rung->seen == 0 || isnan(rung->sum))
                return RUNG_GAP;
        if (rung->reset > 0)
                return RUNG_RESET;
        if (rung->seen < rung->expected || rung->erasure || rung->shared)
                return RUNG_PARTIAL;
        return rung->lagging ? RUNG_SHORT : RUNG_OK;
}

bool ratio_is_contaminated(
        const struct ratio_noise *noise, enum ratio_direction direction, enum layer layer)
{
        /* Recovery has OSD counters of its own: only what lies below is mixed. */
        if (layer != LAYER_OBJECTSTORE && layer != LAYER_STORAGE)
                return false;
        if (noise->recovered_bytes > 0 || noise->pgs_recovering > 0 || noise->pgs_snaptrim > 0)
                return true;
        /* A scrub reads; it writes nothing to speak of. */
        return direction == RATIO_READ && noise->pgs_scrubbing > 0;
}

bool ratio_is_idle(double sum, double seconds, enum ratio_measure measure)
{
        if (measure == RATIO_OPS)
                return sum < RATIO_FLOOR_OPS && sum < RATIO_FLOOR_OPS_PER_SECOND * seconds;
        return sum < RATIO_FLOOR_BYTES && sum < RATIO_FLOOR_BYTES_PER_SECOND * seconds;
}

static enum rung_state worse(enum rung_state a, enum rung_state b)
{
        return a > b ? a : b;
}

void ratio_compute(const struct ratio_input *input, struct ratio_point *ret)
{
        struct ratio_point point = {
                .upper = input->upper.sum / input->seconds,
                .lower = input->lower.sum / input->seconds,
                .ratio = NAN,
                .amplification = NAN,
                .expected = input->expected,
                .excess = NAN,
        };

        point.state = worse(ratio_rung_state(&input->upper), ratio_rung_state(&input->lower));
        if (ratio_is_contaminated(&input->noise, input->direction, input->lower.layer))
                point.state = worse(point.state, RUNG_CONTAMINATED);
        if (ratio_rung_state(&input->upper) == RUNG_GAP)
                point.upper = NAN;
        if (ratio_rung_state(&input->lower) == RUNG_GAP)
                point.lower = NAN;
        if (point.state != RUNG_GAP &&
                ratio_is_idle(input->upper.sum, input->seconds, input->measure))
                point.state = worse(point.state, RUNG_IDLE);
        if (point.state != RUNG_GAP && point.state != RUNG_IDLE) {
                /* A lower rung of nothing (all reads from a cache) has an amplification, no ratio.
                 */
                if (point.lower > 0)
                        point.ratio = point.upper / point.lower;
                point.amplification = point.lower / point.upper;
                point.excess = point.amplification / point.expected;
        }
        *ret = point;
}

__attribute__((format(printf, 3, 4))) static void add_sentence(
        char *text, size_t size, const char *format, ...)
{
        size_t used = strlen(text);
        va_list arguments;

        if (used > 0 && used + 1 < size) {
                text[used++] = ' ';
                text[used] = '\0';
        }
        va_start(arguments, format);
        vsnprintf(text + used, size - used, format, arguments);
        va_end(arguments);
}

bool ratio_rung_detail(const struct ratio_rung *rung, char *text, size_t size)
{
        const char *layer = layer_name(rung->layer), *entities = ratio_entities_name(rung->layer);

        text[0] = '\0';
        if (rung->seen == 0 || isnan(rung->sum))
                add_sentence(text, size, "No samples of the %s layer cover this window.", layer);
        else if (rung->seen < rung->expected)
                add_sentence(text, size, "%u of %u %s did not answer.", rung->expected - rung->seen,
                        rung->expected, entities);
        if (rung->reset > 0)
                add_sentence(text, size, "Counters of %u of %u %s restarted in this window.",
                        rung->reset, rung->seen, entities);
        if (rung->erasure)
                add_sentence(text, size,
                        "Erasure-coded pools took writes, and Ceph does not count their "
                        "shards as sub-operations.");
        if (rung->shared)
                add_sentence(text, size,
                        "A device shared by several OSDs cannot be split and is left out.");
        if (rung->lagging)
                add_sentence(text, size,
                        "The window is shorter than two periods of the pool statistics.");
        return text[0] != '\0';
}

bool ratio_noise_detail(
        const struct ratio_noise *noise, enum ratio_direction direction, char *text, size_t size)
{
        text[0] = '\0';
        if (noise->recovered_bytes > 0)
                add_sentence(text, size, "Recovery or backfill moved %.0f bytes.",
                        noise->recovered_bytes);
        else if (noise->pgs_recovering > 0)
                add_sentence(text, size, "Recovery or backfill was under way.");
        if (noise->pgs_snaptrim > 0)
                add_sentence(
                        text, size, "Snap trim was under way; its bytes are not counted apart.");
        if (direction == RATIO_READ && noise->pgs_scrubbing > 0)
                add_sentence(text, size, "Scrub was under way; its bytes are not counted apart.");
        return text[0] != '\0';
}

bool ratio_detail(const struct ratio_input *input, enum rung_state state, char *text, size_t size)
{
        char sentence[RATIO_DETAIL_MAX];

        text[0] = '\0';
        if (state == RUNG_IDLE)
                add_sentence(text, size, "Too little moved in the %s layer for a ratio.",
                        layer_name(input->upper.layer));
        if (ratio_rung_detail(&input->upper, sentence, sizeof(sentence)))
                add_sentence(text, size, "%s", sentence);
        if (ratio_rung_detail(&input->lower, sentence, sizeof(sentence)))
                add_sentence(text, size, "%s", sentence);
        if (ratio_is_contaminated(&input->noise, input->direction, input->lower.layer) &&
                ratio_noise_detail(&input->noise, input->direction, sentence, sizeof(sentence)))
                add_sentence(text, size, "%s", sentence);
        if (input->unknown_pool && input->direction == RATIO_WRITE &&
                input->measure == RATIO_BYTES && isnan(input->expected))
                add_sentence(
                        text, size, "The redundancy of pool %s is not known.", input->unknown_pool);
        return text[0] != '\0';
}
