/* The sentences of a report. */
#include "collectord/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/metric.h"

#define TEXT_MAX 64u

/* "16.0 KiB", three digits */
static const char *size_text(double bytes, char *ret)
{
        static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
        size_t unit = 0;

        while (bytes >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
                bytes /= 1024;
                unit++;
        }
        snprintf(ret, TEXT_MAX, "%.3g %s", bytes, units[unit]);
        return ret;
}

/* "512", "12.3 thousand" */
static const char *count_text(double count, char *ret)
{
        if (count < 9999.5)
                snprintf(ret, TEXT_MAX, count < 10 ? "%.2g" : "%.0f", count);
        else
                snprintf(ret, TEXT_MAX, count < 999500 ? "%.3g thousand" : "%.3g million",
                        count < 999500 ? count / 1000 : count / 1e6);
        return ret;
}

/* "random writes of 4k", "reads of 4k" */
static const char *use_text(const struct report_use *use, char *ret)
{
        const char *what = use->direction == RATIO_WRITE ? "writes" : "reads";

        if (use->order == REPORT_ORDER_UNKNOWN)
                snprintf(ret, TEXT_MAX, "%s of %s", what, report_size_name(use->size));
        else
                snprintf(ret, TEXT_MAX, "%s %s of %s", report_order_name(use->order), what,
                        report_size_name(use->size));
        return ret;
}

__attribute__((format(printf, 3, 4))) static void add(
        char *text, size_t size, const char *format, ...)
{
        size_t used = strlen(text);
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text + used, size - used, format, arguments);
        va_end(arguments);
}

static void capitalise(char *text)
{
        if (*text >= 'a' && *text <= 'z')
                *text = (char)(*text - 'a' + 'A');
}

/* ---- latencies and sizes of the histograms ---- */

/* The end of the bucket that has the operation at @part of all; NaN in the last one, which has
 * none. */
static double percentile(const struct report_use *use, double all, double part)
{
        double sum = 0;

        for (uint32_t i = 0; i + 1 < REPORT_LATENCIES; i++) {
                sum += use->cells[i];
                if (sum >= part * all)
                        return METRIC_CELL_LATENCY_UNIT_NS * 1e-9 * (double)(1u << i);
        }
        return NAN;
}

static void read_cells(struct report_use *use)
{
        double all = 0;

        for (uint32_t i = 0; i < REPORT_LATENCIES; i++)
                all += use->cells[i];
        if (all + use->other_sizes <= 0)
                return;
        use->in_class = all / (all + use->other_sizes);
        if (all <= 0)
                return;
        use->p50_s = percentile(use, all, 0.5);
        use->p99_s = percentile(use, all, 0.99);
}

/* ---- one use ---- */

static void explain_missing(struct report_use *use)
{
        char *text = use->detail;
        const size_t size = sizeof(use->detail);

        if (use->windows == 0)
                add(text, size,
                        "Not known, because no steady window of the range has such a load.");
        else if (use->ability == REPORT_UNKNOWN && isnan(use->utilisation))
                add(text, size,
                        "What the devices can do is not known, because they did not tell how busy "
                        "they were.");
        else if (use->ability == REPORT_UNKNOWN)
                add(text, size,
                        "What the devices can do is not known, because they were only %.0f %% "
                        "busy.",
                        use->utilisation * 100);
        if (use->windows > 0 && isnan(use->expected))
                add(text, size,
                        "%sWhat is expected is not known, because the redundancy of a pool is not.",
                        *text ? " " : "");
        if (use->windows > 0 && use->windows < REPORT_WINDOWS_SURE)
                add(text, size, "%sThis is from %u window%s only.", *text ? " " : "", use->windows,
                        use->windows == 1 ? "" : "s");
        if (use->in_class < REPORT_SIZE_SURE)
                add(text, size,
                        "%sOnly %.0f %% of the operations have this size: it is their mean.",
                        *text ? " " : "", use->in_class * 100);
}

static void describe_ability(const struct report_use *use, char *text, size_t size)
{
        char ability[TEXT_MAX];

        if (use->ability == REPORT_UNKNOWN)
                return;
        add(text, size,
                ", %.3g %% of the %s/s that the devices can do with such a load (%s: they were "
                "%.0f %% busy)",
                use->share * 100, size_text(use->ability_bytes, ability),
                report_ability_name(use->ability), use->ability_utilisation * 100);
}

static void describe_loss(const struct report_use *use, char *text, size_t size)
{
        if (use->expected > 1)
                add(text, size, " Redundancy leaves at most %.3g %%.", 100 / use->expected);
        if (use->excess >= 1.2)
                add(text, size, " Each byte makes %.3g on the devices where %.3g are expected.",
                        use->amplification, use->expected);
        else if (use->excess < 0.8)
                add(text, size,
                        " Each byte makes only %.3g on the devices: caches or compression save the "
                        "rest.",
                        use->amplification);
        if (use->used < REPORT_GOOD)
                add(text, size,
                        " Only %.0f %% of what the devices can do is used: clients ask for no "
                        "more, "
                        "or something between holds them back.",
                        use->used * 100);
}

static void describe_use(struct report_use *use)
{
        char name[TEXT_MAX], rate[TEXT_MAX], count[TEXT_MAX];
        char *text = use->sentence;
        const size_t size = sizeof(use->sentence);

        explain_missing(use);
        use_text(use, name);
        capitalise(name);
        if (use->windows == 0) {
                add(text, size, "%s: n%s", name, use->detail + 1);
                return;
        }
        add(text, size, "%s: clients get %s/s, %s operations/s", name,
                size_text(use->filesystem_bytes, rate), count_text(use->filesystem_ops, count));
        describe_ability(use, text, size);
        add(text, size, ".");
        if (*use->detail)
                add(text, size, " %s", use->detail);
        describe_loss(use, text, size);
}

/* ---- all of them ---- */

static bool is_better(const struct report_use *use, const struct report_use *best, bool ops)
{
        if (!best)
                return true;
        return ops ? use->filesystem_ops > best->filesystem_ops
                   : use->filesystem_bytes > best->filesystem_bytes;
}

static const struct report_use *find_best(
        const struct report *report, enum ratio_direction direction, bool ops)
{
        const struct report_use *best = NULL;

        for (size_t i = 0; i < REPORT_USES; i++)
                if (report->uses[i].windows > 0 && report->uses[i].direction == direction &&
                        is_better(&report->uses[i], best, ops))
                        best = &report->uses[i];
        return best;
}

static char *begin_sentence(struct report *report)
{
        return report->n_summary < REPORT_SUMMARY_MAX ? report->summary[report->n_summary++] : NULL;
}

static void list_grade(struct report *report, enum report_grade grade, const char *head)
{
        char name[TEXT_MAX], *text = NULL;

        for (size_t i = 0; i < REPORT_USES; i++) {
                const struct report_use *use = &report->uses[i];
                bool first = !text;

                if (use->grade != grade)
                        continue;
                if (first)
                        text = begin_sentence(report);
                if (!text)
                        return;
                add(text, REPORT_SENTENCE_MAX, "%s%s (", first ? head : ", ", use_text(use, name));
                if (grade == REPORT_HAS_ROOM)
                        add(text, REPORT_SENTENCE_MAX, "%.0f %% busy)", use->utilisation * 100);
                else
                        add(text, REPORT_SENTENCE_MAX, "excess %.3g)", use->excess);
        }
        if (text)
                add(text, REPORT_SENTENCE_MAX, ".");
}

static void add_best(struct report *report, enum ratio_direction direction)
{
        const struct report_use *bytes = find_best(report, direction, false);
        const struct report_use *ops = find_best(report, direction, true);
        char name[TEXT_MAX], rate[TEXT_MAX], *text = bytes ? begin_sentence(report) : NULL;

        if (!text)
                return;
        add(text, REPORT_SENTENCE_MAX, "The most that clients %s: %s/s with %s, %s",
                direction == RATIO_WRITE ? "wrote" : "read",
                size_text(bytes->filesystem_bytes, rate), use_text(bytes, name), "");
        add(text, REPORT_SENTENCE_MAX, "and %s operations/s with %s.",
                count_text(ops->filesystem_ops, rate), use_text(ops, name));
}

static bool has_direction(const struct report *report, enum ratio_direction direction)
{
        return find_best(report, direction, false) != NULL;
}

static void add_missing(struct report *report)
{
        bool writes = has_direction(report, RATIO_WRITE), reads = has_direction(report, RATIO_READ);
        char *text;

        if (writes && reads)
                return;
        text = begin_sentence(report);
        if (text)
                add(text, REPORT_SENTENCE_MAX,
                        "About %s nothing is known, because no steady window of the range has %s.",
                        writes  ? "reads"
                        : reads ? "writes"
                                : "the best use",
                        writes  ? "them"
                        : reads ? "them"
                                : "a load of one direction and size");
}

static void add_windows(struct report *report, const struct report_input *input)
{
        char *text = begin_sentence(report);

        if (!text)
                return;
        add(text, REPORT_SENTENCE_MAX,
                "Of %u windows of %.3g s, %u are used; the others: %u idle, %u with reads and "
                "writes "
                "at once, %u not steady, %u with recovery, scrub or snap trim, "
                "%u incomplete.",
                input->n, input->seconds, report->fates[REPORT_USED], report->fates[REPORT_IDLE],
                report->fates[REPORT_MIXED], report->fates[REPORT_EDGE],
                report->fates[REPORT_DISTURBED], report->fates[REPORT_INCOMPLETE]);
}

static void add_order(struct report *report)
{
        uint32_t unknown = 0;
        char *text;

        for (size_t i = 0; i < REPORT_USES; i++)
                if (report->uses[i].order == REPORT_ORDER_UNKNOWN)
                        unknown += report->uses[i].windows;
        text = unknown > 0 ? begin_sentence(report) : NULL;
        if (text)
                add(text, REPORT_SENTENCE_MAX,
                        "Where neither sequential nor random is said, it is not known, because "
                        "reads "
                        "and writes that are not deferred leave no trace of their order below the "
                        "client.");
}

static void add_parallel(struct report *report, const struct report_input *input)
{
        char *text =
                input->parallel && report->fates[REPORT_USED] > 0 ? begin_sentence(report) : NULL;

        if (text)
                add(text, REPORT_SENTENCE_MAX,
                        "Some devices do not rotate. They serve many requests at once, are busy "
                        "long "
                        "before they are full, and may be able to do more than what is said here.");
}

void report_describe(const struct report_input *input, struct report *report)
{
        for (size_t i = 0; i < REPORT_USES; i++) {
                if (input->histograms)
                        read_cells(&report->uses[i]);
                describe_use(&report->uses[i]);
        }
        list_grade(report, REPORT_IS_GOOD,
                "Good for, with full devices and little more work than redundancy explains: ");
        list_grade(report, REPORT_HAS_ROOM,
                "Room for more, because the devices are not full (clients ask for no more, or "
                "something between holds them back): ");
        list_grade(report, REPORT_IS_FAIR,
                "Fair for, with more work of the devices than redundancy explains: ");
        list_grade(
                report, REPORT_IS_POOR, "Poor at, with most work of the devices lost on the way: ");
        add_best(report, RATIO_WRITE);
        add_best(report, RATIO_READ);
        add_missing(report);
        add_order(report);
        add_parallel(report, input);
        add_windows(report, input);
}
