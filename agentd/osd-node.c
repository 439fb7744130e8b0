#include "agentd/osd-node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agentd/osd.h"
#include "lib/clock.h"
#include "lib/log.h"

#define SOCKET_US 500000u   /* of one OSD in a row */
#define FIND_US 10000000u   /* between searches for new sockets */
#define WAIT_MIN_US 500u    /* between looks: an OSD answers in half a millisecond */
#define WAIT_MAX_US 100000u /* the same; who takes longer is looked for ten times a second */
#define WAIT_SPARE 4u       /* this part more than the slowest took */
#define WAIT_DECAY 64u      /* this part less when nobody took as long */

struct source {
        char *root, *folders;
        struct osd_context context;
        struct osd *osds;
        size_t n_osds;
        struct osd_room room;
        uint64_t find_at_us;                     /* CLOCK_MONOTONIC, as all that follow */
        uint64_t asked_us, deadline_us, read_us; /* of this row; the last answer in it */
        uint64_t looked_us;                      /* for the first time */
        uint64_t wait_us;                        /* from asking to that */
        int64_t time_us;                         /* of the row */
        int find_error;
        bool changed; /* an entity is gone */
        struct block_entity *entities;
        struct block_column *columns;
        uint64_t *values;
        uint8_t *present;
        uint32_t n_entities, n_columns;
        uint64_t generation;
};

/* Keeps the OSD whose socket has the same path. */
static int osd_take(struct source *source, struct osd *osd, struct osd_found *found)
{
        for (size_t i = 0; i < source->n_osds; i++) {
                struct osd *known = &source->osds[i];

                if (!known->found.path || strcmp(known->found.path, found->path) != 0)
                        continue;
                osd_compare(known, found);
                *osd = *known;
                *known = (struct osd){.socket = {.fd = -1}};
                return 0;
        }
        return osd_init(osd, &source->context, found);
}

static void osds_replace(struct source *source, struct osd *osds, size_t n)
{
        for (size_t i = 0; i < source->n_osds; i++) {
                struct osd *osd = &source->osds[i];

                if (osd->counted)
                        source_report(&source->context.report, LOG_LEVEL_NOTICE,
                                "%s: its admin socket %s is gone", osd->name, osd->found.path);
                source->changed |= osd->counted;
                osd_done(osd, &source->context);
        }
        free(source->osds);
        source->osds = osds;
        source->n_osds = n;
}

static int osds_find(struct source *source)
{
        struct osd_found *found = NULL;
        struct osd *osds;
        size_t n = 0;
        int r;

        r = osd_find(source->folders, &found, &n);
        if (r != source->find_error && r < 0)
                source_report(&source->context.report, LOG_LEVEL_WARNING,
                        "a folder of admin sockets (%s) cannot be read: %s", source->folders,
                        strerrordesc_np(-r));
        source->find_error = r;
        osds = calloc(n + 1, sizeof(*osds));
        if (!osds) {
                osd_found_free(found, n);
                return -ENOMEM;
        }
        r = 0;
        for (size_t i = 0; i < n; i++)
                if (osd_take(source, &osds[i], &found[i]) < 0)
                        r = -ENOMEM;
        osd_found_free(found, n);
        osds_replace(source, osds, r < 0 ? 0 : n);
        if (r < 0)
                for (size_t i = 0; i < n; i++)
                        osd_done(&osds[i], &source->context);
        return r;
}

/* Takes what is there by now, and gives up those that took too long. Whether some OSD has begun to
 * answer, so that more is to come soon. */
static bool answers_read(struct source *source, uint64_t now)
{
        bool soon = false;

        for (size_t i = 0; i < source->n_osds; i++) {
                struct osd *osd = &source->osds[i];
                bool came;

                if (osd->socket.fd < 0)
                        continue;
                came = osd_continue(osd, &source->context, now);
                if (osd->answered)
                        source->read_us = now;
                else if (osd->socket.fd >= 0 && now >= osd->deadline_us)
                        osd_time_out(osd, &source->context, now);
                else
                        soon |= came;
        }
        return soon;
}

static size_t count_asked(const struct source *source)
{
        size_t n = 0;

        for (size_t i = 0; i < source->n_osds; i++)
                n += source->osds[i].socket.fd >= 0;
        return n;
}

static uint64_t bounded(uint64_t us)
{
        return us < WAIT_MIN_US ? WAIT_MIN_US : us > WAIT_MAX_US ? WAIT_MAX_US : us;
}

/* More after an answer that was not there at the first look, else a little less. Who gave no answer
 * at all teaches nothing. */
static void wait_learn(struct source *source)
{
        uint64_t took_us = source->read_us - source->asked_us;

        if (source->read_us > source->looked_us)
                source->wait_us = bounded(took_us + took_us / WAIT_SPARE);
        else
                source->wait_us = bounded(source->wait_us - source->wait_us / WAIT_DECAY);
}

static void osds_ask(struct source *source, uint64_t deadline_us)
{
        uint64_t now = clock_monotonic_us();

        if (now + SOCKET_US < deadline_us)
                deadline_us = now + SOCKET_US;
        for (size_t i = 0; i < source->n_osds; i++)
                osd_begin(&source->osds[i], &source->context, now, deadline_us);
        source->asked_us = source->read_us = now;
        source->looked_us = 0;
        source->deadline_us = deadline_us;
}

static int layout_allocate(struct source *source, size_t n)
{
        free(source->entities);
        free(source->columns);
        free(source->values);
        free(source->present);
        source->n_entities = source->n_columns = 0;
        source->entities = calloc(n + 1, sizeof(*source->entities));
        source->present = calloc(n + 1, sizeof(*source->present));
        source->columns = calloc(n + 1, source->context.n_metrics * sizeof(*source->columns));
        source->values = calloc(n + 1, source->context.n_metrics * sizeof(*source->values));
        if (!source->entities || !source->present || !source->columns || !source->values)
                return -ENOMEM;
        return 0;
}

static void entity_add(struct source *source, struct osd *osd)
{
        memcpy(osd->columns, osd->present, source->context.n_metrics * sizeof(*osd->columns));
        for (size_t i = 0; i < source->context.n_metrics; i++)
                if (osd->columns[i])
                        source->columns[source->n_columns++] = (struct block_column){
                                .entity = source->n_entities, .metric = source->context.metrics[i]};
        source->entities[source->n_entities++] = (struct block_entity){.name = osd->name,
                .identity = osd->identity,
                .cluster = osd->cluster,
                .instance = osd_instance(osd)};
}

static int layout_update(struct source *source)
{
        bool changed = source->changed;
        int r;

        for (size_t i = 0; i < source->n_osds; i++)
                changed |= source->osds[i].changed;
        if (!changed)
                return 0;
        source->changed = true;
        r = layout_allocate(source, source->n_osds);
        if (r < 0)
                return r;
        for (size_t i = 0; i < source->n_osds; i++) {
                source->osds[i].changed = false;
                if (source->osds[i].counted)
                        entity_add(source, &source->osds[i]);
        }
        source->generation++;
        source->changed = false;
        return 0;
}

/* The number of OSDs that are not in the row. */
static uint32_t values_make(struct source *source)
{
        uint32_t entity = 0, failures = 0;
        uint64_t *value = source->values;

        for (size_t i = 0; i < source->n_osds; i++) {
                const struct osd *osd = &source->osds[i];

                failures += !osd->answered;
                if (osd->error == -ENOENT || osd->error == -ECONNREFUSED)
                        source->find_at_us = 0;
                if (!osd->counted)
                        continue;
                source->present[entity++] = osd->answered;
                for (size_t j = 0; j < source->context.n_metrics; j++)
                        if (osd->columns[j])
                                *value++ = osd->values[j];
        }
        return failures;
}

static int row_make(struct source *source, struct sample *ret)
{
        uint32_t failures;
        int r;

        r = layout_update(source);
        if (r < 0)
                return r;
        failures = values_make(source) + (source->find_error < 0);
        if (source->n_entities == 0)
                return failures > 0 ? -EIO : -EAGAIN;
        *ret = (struct sample){
                .generation = source->generation,
                .entities = source->entities,
                .n_entities = source->n_entities,
                .columns = source->columns,
                .n_columns = source->n_columns,
                .values = source->values,
                .present = source->present,
                .time_us = source->time_us,
                .failures = failures,
        };
        return 0;
}

static uint64_t next_look(const struct source *source, uint64_t now, bool soon)
{
        uint64_t wait_us = soon ? WAIT_MIN_US : bounded((now - source->asked_us) / 2);

        return now + wait_us < source->deadline_us ? now + wait_us : source->deadline_us;
}

int osd_node_proceed(struct source *source, struct sample *ret)
{
        uint64_t now = clock_monotonic_us();
        bool soon = answers_read(source, now);

        if (source->looked_us == 0)
                source->looked_us = now;
        if (count_asked(source) > 0) {
                ret->again_us = next_look(source, now, soon);
                return SOURCE_PENDING;
        }
        wait_learn(source);
        return row_make(source, ret);
}

int osd_node_collect(struct source *source, uint64_t deadline_us, struct sample *ret)
{
        uint64_t now = clock_monotonic_us();
        int r;

        if (now >= source->find_at_us) {
                source->find_at_us = now + FIND_US;
                r = osds_find(source);
                if (r < 0)
                        return r;
        }
        if (deadline_us > now + OSD_NODE_DEADLINE_US)
                deadline_us = now + OSD_NODE_DEADLINE_US;
        source->time_us = clock_realtime_us();
        osds_ask(source, deadline_us);
        if (count_asked(source) == 0)
                return row_make(source, ret);
        ret->again_us = source->asked_us + source->wait_us < source->deadline_us
                                ? source->asked_us + source->wait_us
                                : source->deadline_us;
        return SOURCE_PENDING;
}

void osd_node_close(struct source *source)
{
        if (!source)
                return;
        for (size_t i = 0; i < source->n_osds; i++)
                osd_done(&source->osds[i], &source->context);
        free(source->osds);
        osd_room_done(&source->room);
        free(source->entities);
        free(source->columns);
        free(source->values);
        free(source->present);
        source->context.reader->close(source->context.shared);
        free(source->folders);
        free(source->root);
        free(source);
}
DEFINE_CLEANUP(source, struct source *, osd_node_close)

int osd_node_open(const struct source_options *options, const struct source_report *report,
        const struct osd_reader *reader, struct source **ret)
{
        CLEANUP(source) struct source *source = calloc(1, sizeof(*source));
        int r;

        if (!source)
                return -ENOMEM;
        source->context =
                (struct osd_context){.report = *report, .reader = reader, .room = &source->room};
        source->wait_us = 2 * WAIT_MIN_US;
        source->root = strdup(options->root ? options->root : "");
        source->folders = strdup(options->osd_folders ? options->osd_folders : "");
        if (!source->root || !source->folders)
                return -ENOMEM;
        source->context.root = source->root;
        r = reader->open(
                &source->context.shared, &source->context.metrics, &source->context.n_metrics);
        if (r < 0)
                return r;
        *ret = STEAL(source);
        return 0;
}
