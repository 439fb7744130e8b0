/* A ladder as JSON. */
#include "collectord/api-ladder.h"

#include <math.h>

static void member(struct text *text, const char *name, double value)
{
        text_format(text, "\"%s\":", name);
        text_number(text, value);
        text_add(text, ",");
}

static void text_member(struct text *text, const char *name, const char *value)
{
        text_format(text, "\"%s\":", name);
        text_string(text, value && *value ? value : NULL);
        text_add(text, ",");
}

static void write_part(struct text *text, const struct ladder_part *part)
{
        text_add(text, "{");
        text_member(text, "name", part->name);
        text_member(text, "kind", part->kind);
        member(text, "bytes", part->bytes);
        member(text, "ops", part->ops);
        member(text, "amplification", part->amplification);
        if (part->role)
                text_member(text, "role", part->role);
        if (part->included_in)
                text_member(text, "included_in", part->included_in);
        text_format(text, "\"counted\":%s,\"help\":", part->counted ? "true" : "false");
        text_string(text, part->help);
        text_add(text, "}");
}

static void write_point(struct text *text, const struct ratio_point *point)
{
        text_add(text, "{");
        text_member(text, "state", rung_state_name(point->state));
        member(text, "ratio", point->ratio);
        member(text, "amplification", point->amplification);
        member(text, "expected", point->expected);
        text_add(text, "\"excess\":");
        text_number(text, point->excess);
        text_add(text, "}");
}

static void write_step(struct text *text, const struct ladder_rung *rung)
{
        if (rung->layer == LAYER_FILESYSTEM) {
                text_add(text, "\"step\":null,");
                return;
        }
        text_add(text, "\"step\":{\"bytes\":");
        write_point(text, &rung->bytes_step);
        text_add(text, ",\"ops\":");
        write_point(text, &rung->ops_step);
        text_add(text, "},");
}

static void write_reasons(
        struct text *text, const char *name, const struct ladder_reason *reasons, size_t n)
{
        text_format(text, "\"%s\":[", name);
        for (size_t i = 0; i < n; i++) {
                text_add(text, i > 0 ? ",{" : "{");
                text_member(text, *name == 'e' ? "name" : "part", reasons[i].part);
                member(text, "amplification", reasons[i].amplification);
                member(text, "configured", reasons[i].configured);
                text_add(text, "\"sentence\":");
                text_string(text, reasons[i].sentence);
                text_add(text, "}");
        }
        text_add(text, "]");
}

static void write_rung(struct text *text, const struct ladder_rung *rung, double seconds)
{
        text_add(text, "{");
        text_member(text, "layer", layer_name(rung->layer));
        text_member(text, "state", rung_state_name(rung->state));
        text_member(text, "detail", rung->detail);
        member(text, "bytes", rung->bytes);
        member(text, "ops", rung->ops);
        member(text, "bytes_per_second", rung->bytes / seconds);
        member(text, "ops_per_second", rung->ops / seconds);
        member(text, "mean_size", rung->ops > 0 ? rung->bytes / rung->ops : NAN);
        member(text, "amplification", rung->amplification);
        text_member(text, "note", rung->note);
        write_step(text, rung);
        text_add(text, "\"parts\":[");
        for (size_t i = 0; i < rung->n_parts; i++) {
                if (i > 0)
                        text_add(text, ",");
                write_part(text, &rung->parts[i]);
        }
        text_add(text, "]}");
}

void ladder_write_side(struct text *text, const struct ladder *ladder)
{
        text_add(text, "{");
        text_member(text, "state", rung_state_name(ladder->point.state));
        text_member(text, "detail", ladder->detail);
        text_add(text, "\"rungs\":[");
        for (size_t i = 0; i < LADDER_RUNGS; i++) {
                if (i > 0)
                        text_add(text, ",");
                write_rung(text, &ladder->rungs[i], ladder->seconds);
        }
        text_add(text, "],\"unattributed\":{");
        member(text, "bytes", ladder->unattributed_bytes);
        text_add(text, "\"share\":");
        text_number(text, ladder->unattributed_share);
        text_add(text, "},");
        member(text, "ratio", ladder->point.ratio);
        member(text, "amplification", ladder->point.amplification);
        member(text, "expected", ladder->point.expected);
        member(text, "excess", ladder->point.excess);
        text_member(text, "base", layer_name(ladder->base));
        text_add(text, "\"ops\":");
        write_point(text, &ladder->ops);
        text_add(text, ",");
        write_reasons(text, "explained", ladder->explained, ladder->n_explained);
        text_add(text, ",");
        write_reasons(text, "reasons", ladder->reasons, ladder->n_reasons);
        text_add(text, "}");
}
