#include "agentd/agent-private.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

#include <systemd/sd-daemon.h>

#include "agentd/facts-merge.h"
#include "agentd/resident.h"
#include "lib/log.h"

/* A clean end is promised within a second; the rest is for sealing. */
#define STOP_TIMEOUT_US 500000u
#define SEALS_TRIMMED 2u /* by the second all that runs now and then has run once */
/* Ticks go before uploads. */
#define PRIORITY_TICK (-10)

static void on_joined_row(void *userdata, const struct sampler_row *row)
{
        struct agent *agent = userdata;

        sealer_add(agent->sealer, row);
}

static void on_row(void *userdata, const struct sampler_row *row)
{
        struct agent *agent = userdata;

        if (row->source != SOURCE_CEPH)
                sealer_add(agent->sealer, row);
        else if (row_join_add(agent->join, row, agent_look_at_clocks(NULL).monotonic_us) < 0)
                log_warning("no memory for a row of a cluster");
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
        if (agent->seals < SEALS_TRIMMED) {
                agent->seals++;
                resident_trim();
        }
}

/* Everything that may be due, then the timer for what is next. */
static void work(struct agent *agent)
{
        uint64_t next_us;

        sampler_run(agent->sampler, &next_us);
        row_join_run(agent->join, agent_look_at_clocks(NULL).monotonic_us);
        send_clusters(agent);
        send_facts(agent);
        seal(agent, agent_look_at_clocks(NULL).monotonic_us);
        if (agent->seal_us < next_us)
                next_us = agent->seal_us;
        if (row_join_due(agent->join) < next_us)
                next_us = row_join_due(agent->join);
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
                .clock = agent_look_at_clocks,
                .row = on_row,
                .userdata = agent,
                .counters = &agent->counters,
        };
        int r;

        options.clusters = &agent->config->clusters;
        r = row_join_new(on_joined_row, agent, &agent->join);
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

static int set_up_sender(struct agent *agent)
{
        return agent_set_up_sender(agent, on_plan);
}

static int set_up(struct agent *agent)
{
        static int (*const steps[])(struct agent *) = {
                set_up_event,
                set_up_clock,
                agent_set_up_state,
                agent_set_up_spool,
                agent_set_up_sealer,
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
                agent_look_at_clocks(NULL).monotonic_us + phase % agent->config->seal_interval_us;
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
        row_join_clear(agent->join);
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
