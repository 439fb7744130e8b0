#include "agentd/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "agentd/counters.h"
#include "agentd/facts-merge.h"
#include "agentd/row-join.h"
#include "agentd/sampler.h"
#include "agentd/sealer.h"
#include "agentd/sender.h"
#include "agentd/spool.h"
#include "agentd/state.h"
#include "lib/clock.h"
#include "lib/log.h"

/* A clean end is promised within a second; the rest is for sealing. */
#define STOP_TIMEOUT_US 500000u
/* Ticks go before uploads. */
#define PRIORITY_TICK (-10)

struct agent {
        const struct agent_config *config;
        struct agent_counters counters;
        struct id host;
        sd_event *event;
        sd_event_source *timer, *worker, *clock_set;
        int clock_fd;
        struct state *state; /* NULL: nothing is remembered */
        struct spool *spool;
        struct sealer *sealer;
        struct sampler *sampler;
        struct row_join *join;
        struct sender *sender; /* NULL: no collector configured */
        uint64_t seal_us;      /* monotonic: when all open blocks are sealed next */
        uint64_t facts_revision;
        char *refused_plan; /* why, so that it is told once */
        uint64_t taken_saved[SOURCE_MAX_];
};

static struct moment look_at_clocks(void *userdata)
{
        (void)userdata;
        return clock_look();
}

static void on_row(void *userdata, const struct sampler_row *row)
{
        struct agent *agent = userdata;
        struct sampler_row joined = *row;

        if (row->source == SOURCE_CEPH && row_join_add(agent->join, row, &joined) < 0) {
                log_warning("no memory for a row of a cluster");
                return;
        }
        sealer_add(agent->sealer, &joined);
        if (row->source == SOURCE_AGENT)
                agent->counters.lateness_max_us = 0;
}

static void send_clusters(struct agent *agent)
{
        char clusters[SAMPLER_CLUSTERS_TEXT];

        if (!agent->sender)
                return;
        sampler_list_clusters(agent->sampler, clusters, sizeof(clusters));
        sender_set_clusters(agent->sender, clusters);
}

static void send_facts(struct agent *agent)
{
        uint64_t revision = sampler_get_facts_revision(agent->sampler);
        char *text;
        int r;

        if (!agent->sender || revision == agent->facts_revision)
                return;
        r = facts_merge(&agent->host, agent->sampler, &text);
        if (r < 0) {
                log_warning("cannot put the facts together: %s", strerror(-r));
                return;
        }
        agent->facts_revision = revision;
        sender_set_facts(agent->sender, text);
}

/* The counts of a plan that ends go to the disk, so that a restart does not begin them anew. */
static void save_taken(struct agent *agent)
{
        const struct plan *plan = sampler_get_plan(agent->sampler);
        uint64_t taken[SOURCE_MAX_] = {0};

        for (int id = SOURCE_NONE + 1; id < SOURCE_MAX_; id++)
                if (plan->sources[id].count > 0)
                        taken[id] = sampler_get_taken(agent->sampler, (enum source_id)id);
        if (!agent->state || memcmp(taken, agent->taken_saved, sizeof(taken)) == 0)
                return;
        if (state_save_plan(agent->state, plan, taken) >= 0)
                memcpy(agent->taken_saved, taken, sizeof(taken));
}

static void tell_status(const struct agent *agent)
{
        (void)sd_notifyf(false,
                "STATUS=%" PRIu64 " rows sampled, %" PRIu64 " rows in the spool, %s",
                agent->counters.rows, agent->counters.spool_rows,
                !agent->sender                     ? "no collector configured"
                : sender_is_healthy(agent->sender) ? "the collector answers"
                                                   : "the collector does not answer");
}

static void seal(struct agent *agent, uint64_t now_us)
{
        if (now_us < agent->seal_us)
                return;
        agent->seal_us += agent->config->seal_interval_us;
        if (agent->seal_us <= now_us)
                agent->seal_us = now_us + agent->config->seal_interval_us;
        sealer_seal_all(agent->sealer);
        save_taken(agent);
        tell_status(agent);
        if (agent->sender)
                sender_kick(agent->sender);
}

/* Everything that may be due, then the timer for what is next. */
static void work(struct agent *agent)
{
        uint64_t next_us;

        sampler_run(agent->sampler, &next_us);
        send_clusters(agent);
        send_facts(agent);
        seal(agent, look_at_clocks(NULL).monotonic_us);
        if (agent->seal_us < next_us)
                next_us = agent->seal_us;
        if (sd_event_source_set_time(agent->timer, next_us) < 0 ||
                sd_event_source_set_enabled(agent->timer, SD_EVENT_ONESHOT) < 0)
                log_error("cannot set the timer of the ticks");
}

static int on_timer(sd_event_source *source, uint64_t time_us, void *userdata)
{
        (void)source;
        (void)time_us;
        work(userdata);
        return 0;
}

static int on_worker(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        (void)source;
        (void)fd;
        (void)revents;
        work(userdata);
        return 0;
}

static int watch_clock(struct agent *agent)
{
        /* Never due; read fails with ECANCELED when somebody sets the wall clock. */
        struct itimerspec never = {.it_value.tv_sec = INT64_MAX / 1000000000};

        if (timerfd_settime(
                    agent->clock_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) < 0)
                return -errno;
        return 0;
}

static int on_clock_set(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct agent *agent = userdata;
        uint64_t ignored;

        (void)source;
        (void)revents;
        if (read(fd, &ignored, sizeof(ignored)) < 0 && errno == ECANCELED)
                log_notice("the wall clock was set: ticks are aligned anew");
        (void)watch_clock(agent);
        work(agent);
        return 0;
}

static void refuse_plan(struct agent *agent, char *message)
{
        const char *text = message ? message : "no memory";

        if (!agent->refused_plan || strcmp(agent->refused_plan, text) != 0)
                log_warning("collector: its plan is refused: %s", text);
        free(agent->refused_plan);
        agent->refused_plan = message;
}

static void on_plan(void *userdata, const json_t *json)
{
        CLEANUP(plan) struct plan plan = {0};
        struct agent *agent = userdata;
        struct plan parsed;
        char *message = NULL;
        int r;

        r = plan_from_json(json, &parsed, &message);
        if (r < 0) {
                refuse_plan(agent, message);
                return;
        }
        plan = parsed;
        if (plan.revision == sampler_get_plan(agent->sampler)->revision)
                return;
        row_join_clear(agent->join); /* it may be elected for other clusters */
        r = sampler_apply(agent->sampler, &plan);
        if (r < 0) {
                log_warning("cannot apply the plan: %s", strerror(-r));
                return;
        }
        log_info("plan %" PRIu64 " is in force", plan.revision);
        sender_set_plan_revision(agent->sender, plan.revision);
        memset(agent->taken_saved, 0, sizeof(agent->taken_saved));
        r = agent->state ? state_save_plan(agent->state, &plan, agent->taken_saved) : 0;
        if (r < 0)
                log_warning("cannot remember the plan: %s", strerror(-r));
        work(agent);
}

static int start_plan(struct agent *agent)
{
        CLEANUP(plan) struct plan plan = {0};
        struct plan known;
        int r;

        r = agent->state ? state_load_plan(agent->state, &known, agent->taken_saved) : -ENOENT;
        if (r >= 0) {
                plan = known;
        } else {
                if (r != -ENOENT)
                        log_warning("the remembered plan cannot be used: %s", strerror(-r));
                plan_init(&plan);
        }
        r = sampler_apply(agent->sampler, &plan);
        if (r < 0)
                return r;
        for (int id = SOURCE_NONE + 1; id < SOURCE_MAX_; id++)
                sampler_set_taken(agent->sampler, (enum source_id)id, agent->taken_saved[id]);
        if (agent->sender)
                sender_set_plan_revision(agent->sender, plan.revision);
        return 0;
}

static int set_up_event(struct agent *agent)
{
        int r;

        r = sd_event_new(&agent->event);
        if (r < 0)
                return r;
        r = sd_event_add_signal(agent->event, NULL, SIGTERM, NULL, NULL);
        if (r < 0)
                return r;
        r = sd_event_add_signal(agent->event, NULL, SIGINT, NULL, NULL);
        if (r < 0)
                return r;
        r = sd_event_add_time(agent->event, &agent->timer, CLOCK_MONOTONIC, 0, 1, on_timer, agent);
        if (r < 0)
                return r;
        r = sd_event_source_set_priority(agent->timer, PRIORITY_TICK);
        if (r < 0)
                return r;
        return sd_event_set_watchdog(agent->event, true);
}

static int set_up_clock(struct agent *agent)
{
        int r;

        agent->clock_fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        if (agent->clock_fd < 0)
                return -errno;
        r = watch_clock(agent);
        if (r < 0)
                return r;
        return sd_event_add_io(
                agent->event, &agent->clock_set, agent->clock_fd, EPOLLIN, on_clock_set, agent);
}

static int set_up_sampler(struct agent *agent)
{
        struct sampler_options options = {
                .class_get = source_class_get,
                .clock = look_at_clocks,
                .row = on_row,
                .userdata = agent,
                .counters = &agent->counters,
        };
        int r;

        options.clusters = &agent->config->clusters;
        r = row_join_new(&agent->join);
        if (r < 0)
                return r;
        agent_config_get_source_options(agent->config, &options.source);
        options.source.agent = &agent->counters;
        for (int id = 0; id < SOURCE_MAX_; id++)
                options.allowed[id] = agent_config_allows(agent->config, (enum source_id)id);
        r = sampler_new(&options, &agent->sampler);
        if (r < 0)
                return r;
        return sd_event_add_io(agent->event, &agent->worker, sampler_get_fd(agent->sampler),
                EPOLLIN, on_worker, agent);
}

/* "diskstats,osd,host,agent,osd_histogram": tells the collector whom it can elect. */
static void list_sources(const struct agent_config *config, char *ret, size_t size)
{
        size_t used = 0;

        ret[0] = '\0';
        for (int id = SOURCE_NONE + 1; id < SOURCE_MAX_; id++)
                if (agent_config_allows(config, (enum source_id)id) && used < size)
                        used += (size_t)snprintf(ret + used, size - used, "%s%s", used ? "," : "",
                                source_name((enum source_id)id));
}

static int set_up_sender(struct agent *agent)
{
        char sources[128];
        struct sender_options options = {
                .url = agent->config->url,
                .ca_file = agent->config->ca_file,
                .token_file = agent->config->token_file,
                .sources = sources,
                .interval_us = agent->config->seal_interval_us,
                .electable = agent_config_allows(agent->config, SOURCE_CEPH),
                .host = agent->host,
                .backfill_rate = agent->config->backfill_rate,
                .spool = agent->spool,
                .counters = &agent->counters,
                .plan = on_plan,
                .userdata = agent,
        };

        if (!agent->config->url[0])
                return 0;
        list_sources(agent->config, sources, sizeof(sources));
        memcpy(&options.random, agent->host.bytes, sizeof(options.random));
        options.random ^= look_at_clocks(NULL).monotonic_us;
        return sender_new(agent->event, &options, &agent->sender);
}

/* Without a folder everything goes on in memory; only a second agent on the same folder ends us. */
static int set_up_state(struct agent *agent)
{
        const char *folder = agent->config->state_folder;
        int r;

        r = state_open(folder, &agent->state);
        if (r == -EBUSY) {
                log_error("%s: another strata-agentd uses this state folder", folder);
                return r;
        }
        if (r < 0)
                log_error("%s: no state folder, samples do not outlive the process: %s", folder,
                        strerror(-r));
        return state_get_host_id(agent->state, agent->config->host_id, &agent->host);
}

static int set_up_spool(struct agent *agent)
{
        CLEANUP(str) char *folder = NULL;
        struct spool_options options = {
                .bytes_max = agent->config->spool_bytes,
                .age_max_us = agent->config->spool_age_us,
                .clock = look_at_clocks,
                .counters = &agent->counters,
        };
        uint64_t damaged = 0;
        int r;

        r = state_get_boot_id(&options.boot);
        if (r < 0)
                return r;
        if (agent->state && asprintf(&folder, "%s/spool", agent->config->state_folder) < 0) {
                folder = NULL;
                return -ENOMEM;
        }
        options.folder = folder;
        r = spool_open(&options, &agent->spool, &damaged);
        if (r < 0 && folder) {
                log_error("%s: the spool is kept in memory: %s", folder, strerror(-r));
                options.folder = NULL;
                r = spool_open(&options, &agent->spool, &damaged);
        }
        if (damaged > 0)
                log_warning(
                        "%s: %" PRIu64 " torn ends or damaged files were cut off", folder, damaged);
        return r;
}

static int set_up_sealer(struct agent *agent)
{
        struct sealer_options options = {
                .folder = agent->state ? agent->config->state_folder : NULL,
                .spool = agent->spool,
                .host = agent->host,
                .clock = look_at_clocks,
                .seal_interval_us = agent->config->seal_interval_us,
                .block_rows = (uint32_t)agent->config->block_rows,
        };
        int r;

        r = state_get_boot_id(&options.boot);
        if (r < 0)
                return r;
        return sealer_new(&options, &agent->sealer);
}

static int set_up(struct agent *agent)
{
        static int (*const steps[])(struct agent *) = {
                set_up_event,
                set_up_clock,
                set_up_state,
                set_up_spool,
                set_up_sealer,
                set_up_sampler,
                set_up_sender,
                start_plan,
        };
        uint64_t phase;
        int r;

        for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
                r = steps[i](agent);
                if (r < 0)
                        return r;
        }
        /* Ten thousand agents started by one command do not all knock in the same second. */
        memcpy(&phase, agent->host.bytes, sizeof(phase));
        agent->seal_us =
                look_at_clocks(NULL).monotonic_us + phase % agent->config->seal_interval_us;
        return 0;
}

int agent_new(const struct agent_config *config, struct agent **ret)
{
        struct agent *agent = calloc(1, sizeof(*agent));
        int r;

        if (!agent)
                return -ENOMEM;
        agent->config = config;
        agent->clock_fd = -1;
        r = set_up(agent);
        if (r < 0) {
                if (r != -EBUSY)
                        log_error("cannot start: %s", strerror(-r));
                agent_free(agent);
                return r;
        }
        *ret = agent;
        return 0;
}

int agent_run(struct agent *agent)
{
        char host[ID_TEXT_MAX];
        int r;

        log_info("host %s, collector %s", id_format(&agent->host, host),
                agent->config->url[0] ? agent->config->url : "none");
        (void)sd_notify(false, "READY=1");
        r = sd_event_loop(agent->event);
        (void)sd_notify(false, "STOPPING=1");
        sealer_seal_all(agent->sealer);
        save_taken(agent);
        log_info("ends: %" PRIu64 " rows sampled, %" PRIu64 " rows wait in the spool",
                agent->counters.rows, agent->counters.spool_rows);
        return r;
}

struct agent *agent_free(struct agent *agent)
{
        if (!agent)
                return NULL;
        sd_event_source_disable_unref(agent->timer);
        sd_event_source_disable_unref(agent->worker);
        sd_event_source_disable_unref(agent->clock_set);
        sender_free(agent->sender);
        agent->sampler = sampler_free(agent->sampler, STOP_TIMEOUT_US);
        row_join_free(agent->join);
        sealer_free(agent->sealer);
        spool_close(agent->spool);
        state_close(agent->state);
        if (agent->clock_fd >= 0)
                close(agent->clock_fd);
        sd_event_unref(agent->event);
        free(agent->refused_plan);
        if (agent->sampler)
                return agent;
        free(agent);
        return NULL;
}
