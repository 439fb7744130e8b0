#include "agentd/osd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "agentd/host-process.h"
#include "lib/log.h"

#define PAUSE_FIRST_US 1000000u /* after a failure; doubles */
#define PAUSE_LAST_US 30000000u
#define PAUSE_SLACK_US 100000u /* so that a pause of a second skips no tick of a second */
#define RESETS_SHIFT 48        /* in the instance, above the start time */

static const char *question(const struct osd_context *context, enum osd_stage stage)
{
        switch (stage) {
        case OSD_STATUS:
                return "{\"prefix\":\"status\",\"format\":\"json\"}";
        case OSD_VERSION:
                return "{\"prefix\":\"version\",\"format\":\"json\"}";
        default:
                return context->reader->question;
        }
}

int osd_init(struct osd *osd, const struct osd_context *context, struct osd_found *found)
{
        size_t n = context->n_metrics;

        *osd = (struct osd){.found = *found};
        found->path = NULL;
        osd_socket_init(&osd->socket);
        snprintf(osd->name, sizeof(osd->name), "osd.%" PRIu32, osd->found.id);
        osd->columns = calloc(n, sizeof(*osd->columns));
        osd->values = calloc(n, sizeof(*osd->values));
        osd->present = calloc(n, sizeof(*osd->present));
        osd->incoming = calloc(n, sizeof(*osd->incoming));
        osd->incoming_present = calloc(n, sizeof(*osd->incoming_present));
        osd->memory = calloc(1, context->reader->memory + 1);
        if (!osd->columns || !osd->values || !osd->present || !osd->incoming ||
                !osd->incoming_present || !osd->memory)
                return -ENOMEM;
        return 0;
}

static void memory_leave(struct osd *osd, const struct osd_context *context)
{
        if (osd->memory && context->reader->leave)
                context->reader->leave(context, osd);
}

void osd_done(struct osd *osd, const struct osd_context *context)
{
        memory_leave(osd, context);
        osd_socket_done(&osd->socket);
        free(osd->found.path);
        free(osd->columns);
        free(osd->values);
        free(osd->present);
        free(osd->incoming);
        free(osd->incoming_present);
        free(osd->memory);
        *osd = (struct osd){.socket = {.fd = -1}};
}

void osd_compare(struct osd *osd, const struct osd_found *found)
{
        osd->look |= found->inode != osd->inode || found->changed_ns != osd->changed_ns;
}

uint64_t osd_instance(const struct osd *osd)
{
        return osd->start ^ osd->resets << RESETS_SHIFT;
}

static const char *reason(int error)
{
        switch (error) {
        case -ENOTSOCK:
                return "is not a socket";
        case -EPROTO:
                return "sends more than it announced";
        case -EPROTONOSUPPORT:
                return "counts in other units than the releases known to strata";
        case -ENODATA:
                return "gives an empty answer";
        case -EMSGSIZE:
                return "announces an answer of more than 8 MiB";
        case -EBADMSG:
                return "gives an answer that cannot be understood";
        case -ECONNRESET:
                return "ends before its answer is complete";
        case -ETIMEDOUT:
                return "gives no complete answer in time";
        case -EACCES:
                return "may not be opened by this user";
        case -ECONNREFUSED:
                return "has no process behind it";
        case -EAGAIN:
                return "has too many others waiting";
        default:
                return strerrordesc_np(-error);
        }
}

static void osd_fail(struct osd *osd, const struct osd_context *context, uint64_t now_us, int error)
{
        osd_socket_stop(&osd->socket);
        osd_socket_leave(&osd->socket, context->room);
        osd->look = true;
        osd->pause_us = osd->pause_us == 0 ? PAUSE_FIRST_US : osd->pause_us * 2;
        if (osd->pause_us > PAUSE_LAST_US)
                osd->pause_us = PAUSE_LAST_US;
        osd->ask_at_us = now_us + osd->pause_us - PAUSE_SLACK_US;
        /* A socket that is gone is told when the next search does not find it. */
        if (error != osd->error && error != -ENOENT)
                source_report(&context->report, LOG_LEVEL_WARNING, "%s: %s %s", osd->name,
                        osd->found.path, reason(error));
        osd->error = error;
}

static bool is_same_process(const struct osd *osd)
{
        return osd->known && osd->socket.peer == osd->pid && osd->socket.inode == osd->inode &&
               osd->socket.changed_ns == osd->changed_ns;
}

static int osd_ask(struct osd *osd, const struct osd_context *context, enum osd_stage stage)
{
        pid_t expected = osd->known && !osd->look ? osd->pid : 0;
        int r;

        osd->stage = stage;
        r = osd_socket_ask(&osd->socket, osd->found.path, expected, question(context, stage));
        if (r < 0 || stage != OSD_COUNTERS || is_same_process(osd))
                return r;
        osd->stage = OSD_STATUS;
        return osd_socket_ask(&osd->socket, osd->found.path, 0, question(context, OSD_STATUS));
}

static json_t *answer_json(const struct osd *osd)
{
        size_t size;
        const char *answer = osd_socket_get_answer(&osd->socket, &size);

        return json_loadb(answer, size, 0, NULL);
}

/* {"cluster_fsid": "8626af4b-...", "osd_fsid": "e536d82a-...", "whoami": 0, "state": "active"} */
static int status_parse(struct osd *osd)
{
        json_t *json = answer_json(osd);
        const char *cluster, *identity;
        struct id cluster_id, osd_id;
        json_int_t id;
        int r;

        r = json_unpack(json, "{s:s, s:s, s:I}", "cluster_fsid", &cluster, "osd_fsid", &identity,
                "whoami", &id);
        if (r < 0 || id_parse(cluster, &cluster_id) < 0 || id_parse(identity, &osd_id) < 0 ||
                id < 0 || id > INT32_MAX) {
                json_decref(json);
                return -EBADMSG;
        }
        json_decref(json);
        snprintf(osd->name, sizeof(osd->name), "osd.%" JSON_INTEGER_FORMAT, id);
        id_format(&osd_id, osd->identity);
        osd->cluster = cluster_id;
        return 0;
}

static int status_take(struct osd *osd, const struct osd_context *context)
{
        uint64_t start = osd->start;
        int r;

        r = status_parse(osd);
        if (r < 0)
                return r;
        /* Where the process is not to be seen, its socket is as old as it is. */
        if (osd->socket.peer == 0 ||
                host_process_read_start(context->root, (uint32_t)osd->socket.peer, &osd->start) < 0)
                osd->start = osd->socket.changed_ns / 1000000;
        if (osd->counted && osd->start != start)
                source_report(&context->report, LOG_LEVEL_INFO, "%s: is a new process", osd->name);
        osd->changed = true;
        osd->known = true;
        osd->look = false;
        osd->counted = false;
        osd->resets = 0;
        osd->pid = osd->socket.peer;
        osd->inode = osd->socket.inode;
        osd->changed_ns = osd->socket.changed_ns;
        memset(osd->present, 0, context->n_metrics * sizeof(bool));
        return 0;
}

static int version_take(struct osd *osd, const struct osd_context *context)
{
        json_t *json = answer_json(osd);
        const char *version = json_string_value(json_object_get(json, "version"));

        snprintf(osd->release, sizeof(osd->release), "%.31s", version ? version : "");
        json_decref(json);
        if (!version)
                return -EBADMSG;
        memory_leave(osd, context);
        memset(osd->memory, 0, context->reader->memory);
        if (context->reader->greet)
                context->reader->greet(context, osd);
        return 0;
}

/* Counters that only grow went down, in the same process: somebody said "perf reset". */
static bool counters_were_reset(const struct osd_context *context, const struct osd *osd)
{
        for (size_t i = 0; i < context->n_metrics; i++)
                if (osd->present[i] && osd->incoming_present[i] &&
                        osd->incoming[i] < osd->values[i] &&
                        context->reader->only_grows(context->metrics[i]))
                        return true;
        return false;
}

static void incoming_take(struct osd *osd)
{
        uint64_t *values = osd->values;
        bool *present = osd->present;

        osd->values = osd->incoming;
        osd->present = osd->incoming_present;
        osd->incoming = values;
        osd->incoming_present = present;
}

static int counters_take(struct osd *osd, const struct osd_context *context)
{
        const char *answer;
        size_t size;
        int r;

        answer = osd_socket_get_answer(&osd->socket, &size);
        r = context->reader->read(context, osd, answer, size, osd->incoming, osd->incoming_present);
        if (r < 0)
                return r;
        if (counters_were_reset(context, osd)) {
                osd->resets++;
                osd->changed = true;
        }
        incoming_take(osd);
        osd->answered = true;
        if (!osd->counted && context->reader->first)
                context->reader->first(context, osd);
        if (!osd->counted ||
                memcmp(osd->columns, osd->present, context->n_metrics * sizeof(bool)) != 0)
                osd->changed = true;
        osd->counted = true;
        osd->look = false;
        osd->pause_us = 0;
        if (osd->error != 0)
                source_report(&context->report, LOG_LEVEL_INFO, "%s: %s answers again", osd->name,
                        osd->found.path);
        osd->error = 0;
        return 0;
}

static int answer_take(struct osd *osd, const struct osd_context *context)
{
        int r = -EINVAL;

        switch (osd->stage) {
        case OSD_STATUS:
                r = status_take(osd, context);
                break;
        case OSD_VERSION:
                r = version_take(osd, context);
                break;
        case OSD_COUNTERS:
                return counters_take(osd, context);
        }
        return r < 0 ? r : osd_ask(osd, context, osd->stage + 1);
}

void osd_begin(
        struct osd *osd, const struct osd_context *context, uint64_t now_us, uint64_t deadline_us)
{
        int r;

        osd->answered = false;
        osd->deadline_us = deadline_us;
        if (now_us < osd->ask_at_us)
                return;
        r = osd_ask(osd, context, osd->known ? OSD_COUNTERS : OSD_STATUS);
        if (r < 0)
                osd_fail(osd, context, now_us, r);
}

bool osd_continue(struct osd *osd, const struct osd_context *context, uint64_t now_us)
{
        size_t received = osd->socket.received;
        bool came;
        int r;

        r = osd_socket_read(&osd->socket, context->room);
        came = r > 0 || osd->socket.received > received;
        if (r > 0) {
                r = answer_take(osd, context);
                osd_socket_leave(&osd->socket, context->room);
        }
        if (r < 0)
                osd_fail(osd, context, now_us, r);
        return came;
}

void osd_time_out(struct osd *osd, const struct osd_context *context, uint64_t now_us)
{
        osd_fail(osd, context, now_us, -ETIMEDOUT);
}
