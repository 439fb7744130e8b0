#include "collectord/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a use is made of, until it is known. */
struct heap {
        double filesystem_bytes, filesystem_ops, storage_bytes, storage_ops, osd_bytes, osd_ops;
        double merges, submitted, issued, busy, waiting, device_seconds,
                expected;                       /* expected: weighted by bytes */
        double most_bytes, most_ops, seen_busy; /* the highest; busy: of full windows */
        double part_bytes, part_ops, part_busy; /* sums: rates and busy shares */
        uint32_t parts;
};

static const char *const size_names[] = {"4k", "16k", "64k", "1m", "4m"};

const char *report_size_name(enum report_size size)
{
        return size_names[size];
}

const char *report_order_name(enum report_order order)
{
        static const char *const names[] = {"sequential", "random", "unknown"};

        return names[order];
}

const char *report_ability_name(enum report_ability ability)
{
        static const char *const names[] = {"unknown", "estimated", "seen"};

        return names[ability];
}

const char *report_grade_name(enum report_grade grade)
{
        static const char *const names[] = {NULL, "poor", "fair", "room", "good"};

        return names[grade];
}

const char *report_fate_name(enum report_fate fate)
{
        static const char *const names[] = {
                "used", "idle", "mixed", "edge", "disturbed", "incomplete"};

        return names[fate];
}

/* The nearest of the five: the bounds lie at the geometric means. */
enum report_size report_size_of(double bytes)
{
        static const double bounds[] = {8192, 32768, 262144, 2097152};
        unsigned size = 0;

        while (size < sizeof(bounds) / sizeof(bounds[0]) && bytes >= bounds[size])
                size++;
        return size;
}

/* ---- which use a window tells of ---- */

static bool is_whole(enum rung_state state)
{
        return state != RUNG_GAP && state != RUNG_RESET && state != RUNG_PARTIAL;
}

static double known(double value)
{
        return isnan(value) ? 0 : value;
}

static double one_way(double one, double other)
{
        return one / (one + known(other));
}

/* The fate of a window alone, and where it goes when it is used: direction and size. */
static enum report_fate judge(const struct report_window *window, double seconds,
        unsigned *ret_direction, enum report_size *ret_size)
{
        const struct report_side *write = &window->sides[RATIO_WRITE], *side;
        const struct report_side *read = &window->sides[RATIO_READ];
        unsigned direction =
                known(read->bytes.upper) > known(write->bytes.upper) ? RATIO_READ : RATIO_WRITE;
        const struct report_side *other = &window->sides[!direction];

        side = &window->sides[direction];
        if (!is_whole(side->bytes.state) || isnan(side->bytes.upper) || isnan(side->bytes.lower))
                return REPORT_INCOMPLETE;
        if (side->bytes.state == RUNG_IDLE || !(side->ops > 0))
                return REPORT_IDLE;
        if (side->bytes.state == RUNG_CONTAMINATED || other->bytes.state == RUNG_CONTAMINATED)
                return REPORT_DISTURBED;
        if (one_way(side->bytes.upper, other->bytes.upper) < REPORT_ONE_WAY ||
                one_way(side->ops, other->ops) < REPORT_ONE_WAY)
                return REPORT_MIXED;
        *ret_direction = direction;
        *ret_size = report_size_of(side->bytes.upper * seconds / side->ops);
        return REPORT_USED;
}

/* NaN without any. */
static double share_of(double part, double all)
{
        return all > 0 ? part / all : NAN;
}

static enum report_order order_of(
        const struct report_window *window, unsigned direction, double seconds)
{
        const struct report_side *side = &window->sides[direction];
        double joined, deferred;

        if (direction == RATIO_READ) {
                double client = side->bytes.upper * seconds / side->ops;
                double device = side->bytes.lower * seconds / side->device_ops;

                return device >= REPORT_GROWN * client ? REPORT_SEQUENTIAL : REPORT_ORDER_UNKNOWN;
        }
        deferred = share_of(window->deferred_submitted, side->osd_ops);
        joined = 1 - share_of(window->deferred_issued, window->deferred_submitted);
        if (!(deferred >= REPORT_DEFERRED))
                return REPORT_ORDER_UNKNOWN;
        if (joined >= REPORT_JOINED_SEQUENTIAL)
                return REPORT_SEQUENTIAL;
        return joined <= REPORT_JOINED_RANDOM ? REPORT_RANDOM : REPORT_ORDER_UNKNOWN;
}

static size_t index_of(unsigned direction, enum report_order order, enum report_size size)
{
        return ((size_t)direction * REPORT_ORDERS + order) * REPORT_SIZES + size;
}

struct choice {
        uint8_t fate, direction, size;
};

static bool is_near(double a, double b)
{
        return a <= REPORT_STEADY * b && b <= REPORT_STEADY * a;
}

/* Whether the load of window @i goes on in its neighbour @k. */
static bool goes_on(
        const struct report_input *input, const struct choice *choices, uint32_t i, uint32_t k)
{
        const struct choice *a = &choices[i], *b = &choices[k];
        const struct ratio_point *x = &input->windows[i].sides[a->direction].bytes;
        const struct ratio_point *y = &input->windows[k].sides[a->direction].bytes;

        return b->fate == REPORT_USED && a->direction == b->direction && a->size == b->size &&
               is_near(x->upper, y->upper) && is_near(x->lower, y->lower);
}

static int choose(const struct report_input *input, struct report *report)
{
        CLEANUP(mem) struct choice *choices = calloc(input->n + 1, sizeof(*choices));

        if (!choices)
                return -ENOMEM;
        for (uint32_t i = 0; i < input->n; i++) {
                unsigned direction = 0;
                enum report_size size = 0;

                choices[i].fate =
                        (uint8_t)judge(&input->windows[i], input->seconds, &direction, &size);
                choices[i].direction = (uint8_t)direction;
                choices[i].size = (uint8_t)size;
        }
        for (uint32_t i = 0; i < input->n; i++) {
                enum report_fate fate = choices[i].fate;

                report->use_of[i] = REPORT_NONE;
                if (fate == REPORT_USED &&
                        (i == 0 || i + 1 == input->n || !goes_on(input, choices, i, i - 1) ||
                                !goes_on(input, choices, i, i + 1)))
                        fate = REPORT_EDGE;
                report->fates[fate]++;
                if (fate == REPORT_USED)
                        report->use_of[i] = (uint16_t)index_of(choices[i].direction,
                                order_of(&input->windows[i], choices[i].direction, input->seconds),
                                choices[i].size);
        }
        return 0;
}

/* ---- the numbers of a use ---- */

static void add_ability(struct heap *heap, double busy, double bytes, double ops)
{
        heap->most_bytes = fmax(heap->most_bytes, bytes);
        heap->most_ops = fmax(heap->most_ops, known(ops));
        if (busy >= REPORT_BUSY_SEEN)
                heap->seen_busy = fmax(heap->seen_busy, busy);
        else if (busy >= REPORT_BUSY_ESTIMATE) {
                heap->part_bytes += bytes;
                heap->part_ops += ops;
                heap->part_busy += busy;
                heap->parts++;
        }
}

static void add_window(struct report_use *use, struct heap *heap,
        const struct report_window *window, double seconds)
{
        const struct report_side *side = &window->sides[use->direction];
        double busy = window->devices > 0 ? window->busy_seconds / seconds / window->devices : NAN;

        use->windows++;
        use->seconds += seconds;
        heap->filesystem_bytes += side->bytes.upper * seconds;
        heap->filesystem_ops += side->ops;
        heap->storage_bytes += side->bytes.lower * seconds;
        heap->storage_ops += side->device_ops;
        heap->osd_bytes += side->osd_bytes;
        heap->osd_ops += side->osd_ops;
        heap->merges += side->merges;
        heap->submitted += window->deferred_submitted;
        heap->issued += window->deferred_issued;
        heap->busy += window->busy_seconds;
        heap->waiting += window->waiting_seconds;
        heap->device_seconds += window->devices * seconds;
        heap->expected += side->bytes.expected * side->bytes.upper * seconds;
        add_ability(heap, busy, side->bytes.lower, side->device_ops / seconds);
}

static void set_ability(struct report_use *use, const struct heap *heap)
{
        use->ability_bytes = use->ability_ops = use->ability_utilisation = NAN;
        if (heap->seen_busy > 0) {
                use->ability = REPORT_SEEN;
                use->ability_bytes = heap->most_bytes;
                use->ability_ops = heap->most_ops;
                use->ability_utilisation = heap->seen_busy;
        } else if (heap->parts > 0) {
                use->ability = REPORT_ESTIMATED;
                /* What they did, they can do. */
                use->ability_bytes = fmax(heap->part_bytes / heap->part_busy, heap->most_bytes);
                use->ability_ops = fmax(heap->part_ops / heap->part_busy, heap->most_ops);
                use->ability_utilisation = heap->part_busy / heap->parts;
        }
}

static enum report_grade grade_of(const struct report_use *use)
{
        double efficiency = 1 / use->excess;

        if (isnan(efficiency) || isnan(use->utilisation))
                return REPORT_NO_GRADE;
        if (efficiency < REPORT_POOR)
                return REPORT_IS_POOR;
        if (efficiency < REPORT_GOOD)
                return REPORT_IS_FAIR;
        return use->used >= REPORT_GOOD ? REPORT_IS_GOOD : REPORT_HAS_ROOM;
}

static void finish_use(struct report_use *use, const struct heap *heap)
{
        use->filesystem_bytes = heap->filesystem_bytes / use->seconds;
        use->filesystem_ops = heap->filesystem_ops / use->seconds;
        use->storage_bytes = heap->storage_bytes / use->seconds;
        use->storage_ops = heap->storage_ops / use->seconds;
        use->filesystem_size = heap->filesystem_bytes / heap->filesystem_ops;
        use->osd_size = heap->osd_bytes / heap->osd_ops;
        use->storage_size = heap->storage_bytes / heap->storage_ops;
        use->merged = share_of(heap->merges, heap->merges + heap->storage_ops);
        if (use->direction == RATIO_WRITE)
                use->joined = 1 - share_of(heap->issued, heap->submitted);
        /* Some reached their place that were submitted in the window before. */
        if (use->joined < 0)
                use->joined = 0;
        use->utilisation = heap->busy / heap->device_seconds;
        use->queue = heap->waiting / use->seconds;
        use->amplification = heap->storage_bytes / heap->filesystem_bytes;
        use->expected = heap->expected / heap->filesystem_bytes;
        use->excess = use->amplification / use->expected;
        set_ability(use, heap);
        use->share = use->filesystem_bytes / use->ability_bytes;
        use->used = use->storage_bytes / use->ability_bytes;
        use->grade = grade_of(use);
}

static void begin_uses(struct report *report)
{
        for (unsigned direction = 0; direction < REPORT_DIRECTIONS; direction++)
                for (unsigned order = 0; order < REPORT_ORDERS; order++)
                        for (unsigned size = 0; size < REPORT_SIZES; size++)
                                report->uses[index_of(direction, order, size)] =
                                        (struct report_use){
                                                .direction = direction,
                                                .order = order,
                                                .size = size,
                                                .filesystem_bytes = NAN,
                                                .filesystem_ops = NAN,
                                                .storage_bytes = NAN,
                                                .storage_ops = NAN,
                                                .filesystem_size = NAN,
                                                .osd_size = NAN,
                                                .storage_size = NAN,
                                                .joined = NAN,
                                                .merged = NAN,
                                                .utilisation = NAN,
                                                .queue = NAN,
                                                .expected = NAN,
                                                .amplification = NAN,
                                                .excess = NAN,
                                                .ability_bytes = NAN,
                                                .ability_ops = NAN,
                                                .ability_utilisation = NAN,
                                                .share = NAN,
                                                .used = NAN,
                                                .in_class = NAN,
                                                .p50_s = NAN,
                                                .p99_s = NAN,
                                        };
}

int report_compute(const struct report_input *input, struct report **ret)
{
        CLEANUP(report) struct report *report = calloc(1, sizeof(*report));
        CLEANUP(mem) struct heap *heaps = calloc(REPORT_USES, sizeof(*heaps));
        int r;

        if (!report || !heaps)
                return -ENOMEM;
        report->use_of = calloc(input->n + 1, sizeof(*report->use_of));
        if (!report->use_of)
                return -ENOMEM;
        begin_uses(report);
        r = choose(input, report);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < input->n; i++)
                if (report->use_of[i] != REPORT_NONE)
                        add_window(&report->uses[report->use_of[i]], &heaps[report->use_of[i]],
                                &input->windows[i], input->seconds);
        for (size_t i = 0; i < REPORT_USES; i++)
                if (report->uses[i].windows > 0)
                        finish_use(&report->uses[i], &heaps[i]);
        *ret = STEAL(report);
        return 0;
}

struct report *report_free(struct report *report)
{
        if (!report)
                return NULL;
        free(report->use_of);
        free(report);
        return NULL;
}

bool report_is_shown(const struct report *report, size_t use)
{
        const struct report_use *of = &report->uses[use];

        if (of->windows > 0 || of->order != REPORT_ORDER_UNKNOWN)
                return of->windows > 0;
        for (unsigned order = 0; order < REPORT_ORDERS; order++)
                if (report->uses[index_of(of->direction, order, of->size)].windows > 0)
                        return false;
        return true;
}

void report_add_cell(struct report_use *use, enum report_size size, uint32_t latency, double ops)
{
        if (isnan(ops) || latency >= REPORT_LATENCIES)
                return;
        if (size == use->size)
                use->cells[latency] += ops;
        else
                use->other_sizes += ops;
}
