/*
 * The cluster as its monitor sees it: totals of each pool, states of the placement groups, health,
 * and facts of OSDs and pools. The only file that knows librados, and with ceph-facts.c and
 * ceph-stats.c a module of its own.
 *
 * Totals of pools are those of "df": PG statistics that the OSDs send to the manager every
 * mgr_stats_period (5 s) and the manager hands on to the monitor. "pg dump pools" asks the manager
 * and is a second or two fresher, but must not be used: librados gives up a manager's command at
 * the time-out by leaving the frame into which a late answer is still written.
 *
 * The least that client.strata needs:  ceph auth get-or-create client.strata mon 'allow r'
 */
#include "agentd/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rados/librados.h>

#include "agentd/ceph-facts.h"
#include "agentd/ceph-row.h"
#include "lib/clock.h"
#include "lib/log.h"

#define DEADLINE_US 12000000u   /* "status" and "df" may each take their time-out */
#define FACTS_US 10000000u      /* between looks at a map that changes all the time */
#define FACTS_OSD_US 20000u     /* and longer for many OSDs: a minute for 3,000 */
#define PAUSE_FIRST_US 5000000u /* after a failure; doubles */
#define PAUSE_LAST_US 60000000u
struct source {
        char *conf, *name, *keyring;
        uint64_t timeout_us;  /* of the connection, and of each command: librados' own */
        uint64_t deadline_us; /* of this collect: nothing is begun that could outlast it */
        struct source_report report;
        rados_t cluster;                  /* NULL while there is no connection */
        int error;                        /* as reported; 0 when all is well */
        uint64_t pause_us, connect_at_us; /* CLOCK_MONOTONIC */
        struct ceph_row row;
        uint64_t facts_generation;
        int facts_error; /* as reported */
        uint64_t facts_epoch, facts_at_us;
        json_t *facts; /* as ceph_facts_make gives them */
};

static void json_cleanup(json_t **json)
{
        json_decref(*json);
}

static void disconnect(struct source *source)
{
        if (source->cluster)
                rados_shutdown(source->cluster);
        source->cluster = NULL;
}

/* The folder's file name is the cluster's name: /etc/ceph/backup.conf. */
static void cluster_name(const struct source *source, char *ret, size_t size)
{
        const char *slash = strrchr(source->conf, '/');
        const char *file = slash ? slash + 1 : source->conf;
        size_t length = strcspn(file, ".");

        snprintf(ret, size, "%.*s", (int)(length < size ? length : size - 1), file);
        if (!ret[0])
                snprintf(ret, size, "ceph");
}

static int configure(struct source *source)
{
        char timeout[24];
        const char *const settings[][2] = {{"client_mount_timeout", timeout},
                {"rados_mon_op_timeout", timeout}, {"rados_osd_op_timeout", timeout},
                /* What a ceph.conf says for all programs is not meant for us. */
                {"log_file", ""}, {"admin_socket", ""}, {"log_to_stderr", "false"},
                {"err_to_stderr", "false"}, {"ms_async_op_threads", "1"}};
        int r;

        snprintf(timeout, sizeof(timeout), "%" PRIu64, source->timeout_us / 1000000);
        r = rados_conf_read_file(source->cluster, source->conf);
        if (r < 0)
                return r == -ENOENT ? -ENODATA : r;
        for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
                r = rados_conf_set(source->cluster, settings[i][0], settings[i][1]);
                if (r < 0)
                        return r;
        }
        if (source->keyring[0])
                return rados_conf_set(source->cluster, "keyring", source->keyring);
        return 0;
}

static int connect_(struct source *source)
{
        char name[64];
        int r;

        cluster_name(source, name, sizeof(name));
        r = rados_create2(&source->cluster, name, source->name, 0);
        if (r < 0) {
                source->cluster = NULL;
                return r;
        }
        r = configure(source);
        if (r == 0)
                r = rados_connect(source->cluster);
        if (r < 0)
                disconnect(source);
        return r;
}

static bool has_time(const struct source *source)
{
        return clock_monotonic_us() + source->timeout_us <= source->deadline_us;
}

/* @command is a JSON object. -ETIMEDOUT, -EACCES, -EBADMSG, or what the monitor says. -ETIME: it
 * was not begun, for it could outlast the deadline. */
static int ask(struct source *source, const char *command, json_t **ret)
{
        char *answer = NULL, *text = NULL;
        size_t size = 0, text_size = 0;
        int r;

        if (!has_time(source))
                return -ETIME;
        r = rados_mon_command(
                source->cluster, &command, 1, "", 0, &answer, &size, &text, &text_size);
        if (r >= 0) {
                *ret = ceph_json_load(answer, size);
                r = *ret ? 0 : -EBADMSG;
        }
        rados_buffer_free(answer);
        rados_buffer_free(text);
        return r;
}

static int profiles_ask(struct source *source, const json_t *osd_dump, json_t *profiles)
{
        const json_t *pools = json_object_get(osd_dump, "pools");

        for (size_t i = 0; i < json_array_size(pools); i++) {
                const char *name = json_string_value(
                        json_object_get(json_array_get(pools, i), "erasure_code_profile"));
                char *command;
                json_t *json, *profile;
                int r;

                if (!name || !name[0] || json_object_get(profiles, name))
                        continue;
                json = json_pack("{s:s, s:s, s:s}", "prefix", "osd erasure-code-profile get",
                        "name", name, "format", "json");
                command = json_dumps(json, 0);
                json_decref(json);
                if (!command)
                        return -ENOMEM;
                r = ask(source, command, &profile);
                free(command);
                if (r == -ETIMEDOUT || r == -ETIME)
                        return r;
                if (r == 0)
                        json_object_set_new(profiles, name, profile);
        }
        return 0;
}

/* 5 s is the default, and what is assumed when the monitor does not want to say. */
static int period_ask(struct source *source, double *ret)
{
        CLEANUP(json) json_t *json = NULL;
        int r;

        *ret = 5;
        r = ask(source,
                "{\"prefix\":\"config get\",\"who\":\"mgr\",\"key\":\"mgr_stats_period\","
                "\"format\":\"json\"}",
                &json);
        if (r == 0 && json_is_number(json) && json_number_value(json) > 0)
                *ret = json_number_value(json);
        return r == -ETIMEDOUT || r == -ETIME ? r : 0;
}

/* {"version": "ceph version 16.2.15 (618f...) pacific (stable)"} */
static int release_ask(struct source *source, char *ret, size_t size)
{
        CLEANUP(json) json_t *json = NULL;
        const char *text;
        int r;

        ret[0] = '\0';
        r = ask(source, "{\"prefix\":\"version\",\"format\":\"json\"}", &json);
        text = json_string_value(json_object_get(json, "version"));
        if (r == 0 && text && strncmp(text, "ceph version ", 13) == 0)
                snprintf(ret, size, "%.*s", (int)strcspn(text + 13, " "), text + 13);
        return r == -ETIMEDOUT || r == -ETIME ? r : 0;
}

static int facts_ask(struct source *source)
{
        CLEANUP(json) json_t *dump = NULL;
        CLEANUP(json) json_t *metadata = NULL;
        CLEANUP(json) json_t *tree = NULL;
        CLEANUP(json) json_t *profiles = json_object();
        CLEANUP(json) json_t *facts = NULL;
        struct ceph_documents documents = {.status = &source->row.status};
        char name[64], release[32];
        int r;

        r = ask(source, "{\"prefix\":\"osd dump\",\"format\":\"json\"}", &dump);
        if (r == 0)
                r = ask(source, "{\"prefix\":\"osd metadata\",\"format\":\"json\"}", &metadata);
        if (r == 0)
                r = ask(source, "{\"prefix\":\"osd tree\",\"format\":\"json\"}", &tree);
        if (r == 0)
                r = profiles_ask(source, dump, profiles);
        if (r == 0)
                r = period_ask(source, &documents.mgr_stats_period);
        if (r == 0)
                r = release_ask(source, release, sizeof(release));
        if (r < 0)
                return r;
        cluster_name(source, name, sizeof(name));
        documents.name = name;
        documents.release = release;
        documents.osd_dump = dump;
        documents.osd_metadata = metadata;
        documents.osd_tree = tree;
        documents.profiles = profiles;
        r = ceph_facts_make(&documents, &facts);
        if (r < 0)
                return r;
        if (!json_equal(facts, source->facts)) {
                json_decref(source->facts);
                source->facts = STEAL(facts);
                source->facts_generation++;
        }
        source->facts_epoch = source->row.status.osdmap_epoch;
        return 0;
}

static int sample_ask(struct source *source, int64_t *ret_time_us)
{
        CLEANUP(json) json_t *status_json = NULL;
        CLEANUP(json) json_t *df = NULL;
        struct ceph_status status;
        struct ceph_pool *pools;
        size_t n;
        int r;

        r = ask(source, "{\"prefix\":\"status\",\"format\":\"json\"}", &status_json);
        if (r < 0)
                return r;
        r = ceph_status_parse(status_json, &status);
        if (r < 0)
                return r;
        r = ask(source, "{\"prefix\":\"df\",\"detail\":\"detail\",\"format\":\"json\"}", &df);
        if (r < 0)
                return r;
        /* A monitor that is slow lets commands wait before it looks. And so the rows of several
         * clusters come in the order of their times. */
        *ret_time_us = clock_realtime_us();
        r = ceph_pools_parse(df, &pools, &n);
        if (r < 0)
                return r;
        return ceph_row_make(&source->row, &status, pools, n, clock_monotonic_us());
}

static const char *reason(int error)
{
        switch (error) {
        case -ETIMEDOUT:
        case -ETIME:
                return "no monitor answers in time";
        case -ENOENT:
                return "there is no keyring, or no monitor is named";
        case -ENODATA: /* as configure gives it, so that the keyring has -ENOENT for itself */
                return "the configuration cannot be read";
        case -EACCES:
        case -EPERM:
                return "the cluster does not let this name in";
        case -EBADMSG:
                return "the monitor gives an answer that cannot be understood";
        default:
                return strerrordesc_np(-error);
        }
}

static void health_update(struct source *source)
{
        const char *health = json_string_value(json_object_get(source->facts, "health"));

        if (!health || strcmp(health, source->row.status.health) == 0)
                return;
        json_object_set_new(source->facts, "health", json_string(source->row.status.health));
        source->facts_generation++;
}

/* Facts follow the map; only a time-out is a reason to give up the row. */
static int facts_update(struct source *source)
{
        uint64_t now = clock_monotonic_us(), pause_us;
        int r;

        health_update(source);
        if ((source->facts && source->facts_epoch == source->row.status.osdmap_epoch) ||
                now < source->facts_at_us || !has_time(source))
                return 0;
        r = facts_ask(source);
        pause_us = json_array_size(json_object_get(source->facts, "osds")) * FACTS_OSD_US;
        source->facts_at_us = now + (pause_us > FACTS_US ? pause_us : FACTS_US);
        if (r != source->facts_error && r < 0)
                source_report(&source->report, LOG_LEVEL_WARNING, "facts of OSDs and pools: %s",
                        reason(r));
        source->facts_error = r;
        return r == -ETIMEDOUT ? r : 0;
}

/* Any failure ends the connection: what is wrong with it is not to be known from here. */
static int fail(struct source *source, int error)
{
        disconnect(source);
        source->pause_us = source->pause_us == 0 ? PAUSE_FIRST_US : source->pause_us * 2;
        if (source->pause_us > PAUSE_LAST_US)
                source->pause_us = PAUSE_LAST_US;
        /* A little less, so that no tick is skipped. */
        source->connect_at_us = clock_monotonic_us() + source->pause_us - source->pause_us / 10;
        if (error != source->error)
                source_report(&source->report, LOG_LEVEL_WARNING, "%s as %s: %s", source->conf,
                        source->name, reason(error));
        source->error = error;
        return error;
}

static int ceph_collect(struct source *source, uint64_t deadline_us, struct sample *ret)
{
        int64_t time_us = 0;
        int r;

        source->deadline_us = deadline_us;
        if (!source->cluster) {
                if (clock_monotonic_us() < source->connect_at_us)
                        return source->error;
                r = connect_(source);
                if (r < 0)
                        return fail(source, r);
        }
        r = sample_ask(source, &time_us);
        if (r == 0)
                r = facts_update(source);
        if (r < 0)
                return fail(source, r);
        if (source->error != 0)
                source_report(&source->report, LOG_LEVEL_INFO,
                        "%s as %s: the cluster answers again", source->conf, source->name);
        source->error = 0;
        source->pause_us = 0;
        *ret = (struct sample){
                .generation = source->row.generation,
                .entities = source->row.entities,
                .n_entities = source->row.n_entities,
                .columns = source->row.columns,
                .n_columns = source->row.n_columns,
                .values = source->row.values,
                .time_us = time_us,
                .facts_generation = source->facts_generation,
                .failures = source->facts_error != 0,
        };
        return 0;
}

static int ceph_add_facts(struct source *source, struct facts *facts)
{
        return source->facts ? ceph_facts_add(source->facts, facts) : 0;
}

static void ceph_close(struct source *source)
{
        if (!source)
                return;
        disconnect(source);
        json_decref(source->facts);
        ceph_row_done(&source->row);
        free(source->conf);
        free(source->name);
        free(source->keyring);
        free(source);
}
DEFINE_CLEANUP(source, struct source *, ceph_close)

static int ceph_open(const struct source_options *options, const struct source_report *report,
        struct source **ret)
{
        CLEANUP(source) struct source *source = calloc(1, sizeof(*source));

        if (!source)
                return -ENOMEM;
        source->report = *report;
        source->timeout_us = options->ceph_timeout_us;
        source->conf = strdup(options->ceph_conf);
        source->name = strdup(options->ceph_name);
        source->keyring = strdup(options->ceph_keyring ? options->ceph_keyring : "");
        if (!source->conf || !source->name || !source->keyring)
                return -ENOMEM;
        *ret = STEAL(source);
        return 0;
}

const struct source_class source_ceph = {
        .id = SOURCE_CEPH,
        .may_wait = true,
        .asks = true,
        .deadline_us = DEADLINE_US,
        .open = ceph_open,
        .collect = ceph_collect,
        .add_facts = ceph_add_facts,
        .close = ceph_close,
};
