#include "collectord/service-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/facts.h"
#include "lib/log.h"

#define QUERIES_WAITING_MAX 64u  /* two threads and 2 s each: nobody waits for longer */
#define QUERIES_NICENESS 10      /* who asks waits for who delivers, not the other way round */
#define CHECKS_WAITING_MAX 8192u /* their bodies' memory is the limit that counts */
#define RETAIN_BLOCKS 200u       /* a step: a few milliseconds */
#define RETAIN_PAUSE_US 100000ull
#define RETAIN_INTERVAL_US 60000000ull
#define JUDGE_TIMEOUT_US 10000000ull /* a large cluster may take longer than a user waits */
#define DAY_US (INT64_C(86400) * 1000000)
#define TIMER_ACCURACY_US 1000ull

static void log_store(struct service *service, int r)
{
        if (r == service->store_error)
                return;
        if (r == -EBADMSG)
                log_error("the store in %s is damaged and takes nothing more; agents keep their "
                          "samples. Restore it, or move it away and start anew",
                        service->config->store_folder);
        else if (r < 0)
                log_error(
                        "the store cannot be written: %s; agents keep their samples", strerror(-r));
        else
                log_notice("the store can be written again");
        service->store_error = r;
}

/* 1: refused, and undone. */
static int apply(struct service *service, struct exchange *exchange)
{
        int r;

        r = store_savepoint(service->store);
        if (r < 0)
                return r;
        r = ingest_apply(
                &exchange->change, &exchange->request, &exchange->response, service->store);
        if (r < 0)
                return r;
        if (r == 0)
                return store_savepoint_release(service->store);
        exchange->answered = true;
        return store_savepoint_rollback(service->store);
}

static int apply_all(struct service *service, struct exchange *changes)
{
        int r;

        r = store_begin(service->store);
        for (struct exchange *exchange = changes; exchange && r >= 0; exchange = exchange->next)
                r = apply(service, exchange);
        if (r >= 0)
                r = store_commit(service->store);
        if (r < 0)
                store_rollback(service->store);
        return r;
}

static void answer_change(struct service *service, struct exchange *exchange, int r)
{
        if (r < 0) {
                metrics_add(&service->metrics, rejected[METRICS_REASON_store],
                        exchange->change.n_blocks);
                exchange->answered = false;
        }
        if (r >= 0 && !exchange->answered)
                r = ingest_answer(&exchange->change, &exchange->request, &exchange->response,
                        service->plans, service->election, clock_monotonic_us());
        if (r < 0)
                (void)api_problem_errno(&exchange->request, &exchange->response, r);
        exchange->answered = true;
        exchange->answer(exchange);
}

void service_commit(struct service *service)
{
        struct exchange *changes = service->changes, *next;
        uint64_t begin_us = clock_monotonic_us();
        int r;

        service->changes = NULL;
        service->changes_end = &service->changes;
        service->n_changes = 0;
        if (!changes)
                return;
        r = apply_all(service, changes);
        log_store(service, r);
        metrics_add(&service->metrics, commit_seconds, clock_monotonic_us() - begin_us);
        if (r < 0)
                metrics_add(&service->metrics, commit_failures, 1);
        else
                metrics_add(&service->metrics, commits, 1);
        for (; changes; changes = next) {
                next = changes->next;
                answer_change(service, changes, r);
        }
        if (service->upkeep)
                upkeep_after_commit(service->upkeep);
}

static int on_commit(sd_event_source *source, void *userdata)
{
        (void)source;
        service_commit(userdata);
        return 0;
}

static int on_jobs_done(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        (void)source, (void)fd, (void)events;
        workers_dispatch(userdata);
        return 0;
}

static int on_retain(sd_event_source *source, uint64_t time_us, void *userdata)
{
        struct service *service = userdata;
        int64_t before_us = clock_realtime_us() - (int64_t)service->config->raw_days * DAY_US;
        uint32_t removed = 0;
        int r;

        (void)time_us;
        r = store_retain(service->store, before_us, RETAIN_BLOCKS, &removed);
        if (r < 0)
                metrics_add(&service->metrics, retention_failures, 1);
        metrics_add(&service->metrics, retained_blocks, removed);
        sd_event_source_set_time_relative(
                source, removed > 0 ? RETAIN_PAUSE_US : RETAIN_INTERVAL_US);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int add_sources(struct service *service, sd_event *event)
{
        int r;

        r = sd_event_add_io(event, &service->query_source, workers_get_fd(service->queries),
                EPOLLIN, on_jobs_done, service->queries);
        if (r < 0)
                return r;
        r = sd_event_add_io(event, &service->check_source, workers_get_fd(service->checks), EPOLLIN,
                on_jobs_done, service->checks);
        if (r < 0)
                return r;
        r = sd_event_add_defer(event, &service->commit_source, on_commit, service);
        if (r < 0)
                return r;
        /* Only when nothing else is to be done: what is on its way joins the group. */
        r = sd_event_source_set_priority(service->commit_source, SD_EVENT_PRIORITY_IDLE);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(service->commit_source, SD_EVENT_OFF);
        if (r < 0)
                return r;
        return sd_event_add_time_relative(event, &service->retain_source, CLOCK_MONOTONIC,
                RETAIN_PAUSE_US, TIMER_ACCURACY_US, on_retain, service);
}

struct incumbent {
        struct election_voice voice;
        int64_t updated_us;
};

struct incumbents {
        struct incumbent *list;
        size_t n;
};

static int add_incumbent(
        struct incumbents *incumbents, const struct store_facts *stored, const struct facts *facts)
{
        struct incumbent *list =
                reallocarray(incumbents->list, incumbents->n + 1, sizeof(*incumbents->list));
        struct incumbent *one;

        if (!list)
                return -ENOMEM;
        incumbents->list = list;
        one = &list[incumbents->n];
        *one = (struct incumbent){.voice.host = stored->host,
                .voice.interval_us = ELECTION_INTERVAL_DEFAULT_US,
                .updated_us = stored->updated_us};
        for (size_t i = 0; i < facts->n_clusters; i++)
                if (!facts->clusters[i].kept && one->voice.n_clusters < PLAN_CLUSTERS_MAX)
                        one->voice.clusters[one->voice.n_clusters++] = facts->clusters[i].fsid;
        incumbents->n += one->voice.n_clusters > 0;
        return 0;
}

/* Facts of a cluster, unless they are old ones that were kept, come from the elected agent. */
static int see_facts(void *userdata, const struct store_facts *stored)
{
        CLEANUP(facts) struct facts *facts = NULL;
        CLEANUP(str) char *message = NULL;
        json_t *json = json_loads(stored->json, 0, NULL);
        int r;

        r = json ? facts_from_json(json, &facts, &message) : -EBADMSG;
        json_decref(json);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        return add_incumbent(userdata, stored, facts);
}

static int newest_first(const void *a, const void *b)
{
        const struct incumbent *x = a, *y = b;

        return (y->updated_us > x->updated_us) - (y->updated_us < x->updated_us);
}

/* A restart of the collector is no reason to move a seat. Of several that told a cluster the last
 * one was elected: those before it may be dead. */
static int seat_incumbents(struct service *service, struct store_reader *reader)
{
        struct incumbents incumbents = {0};
        struct election_result elected;
        int r;

        r = store_read_facts(reader, see_facts, &incumbents);
        if (incumbents.n > 0)
                qsort(incumbents.list, incumbents.n, sizeof(*incumbents.list), newest_first);
        for (size_t i = 0; i < incumbents.n && r >= 0; i++)
                election_hear(service->election, &incumbents.list[i].voice, clock_monotonic_us(),
                        &elected);
        free(incumbents.list);
        return r;
}

const char *service_web_folder(const struct service *service)
{
        return *service->config->web_folder ? service->config->web_folder : STRATA_WEB_FOLDER;
}

/* Of one whose queries share the topology. */
static int open_reader(struct service *service, struct store_reader **ret)
{
        int r = store_reader_open(service->config->store_folder, ret);

        return r < 0 ? r : query_share_join(service->share, *ret);
}

static int open_parts(struct service *service, char **ret_message)
{
        const struct collector_config *config = service->config;
        int r;

        if (*config->tokens) {
                r = auth_open(config->tokens, &service->auth, ret_message);
                if (r < 0)
                        return r;
        }
        r = web_files_open(service_web_folder(service), &service->files, ret_message);
        if (r < 0)
                return r;
        r = store_open(config->store_folder, &service->store, ret_message);
        if (r < 0)
                return r;
        r = store_set_limit(service->store, config->store_max);
        if (r == 0)
                r = query_share_new(&service->share);
        for (uint64_t i = 0; i < config->query_threads && r >= 0; i++)
                r = open_reader(service, &service->readers[i]);
        if (r == 0)
                r = store_reader_open(config->store_folder, &service->check_reader);
        if (r < 0)
                return r;
        r = plan_list_new(service->readers[0], &service->plans);
        if (r < 0)
                return r;
        r = election_new(&service->election);
        if (r < 0)
                return r;
        r = roll_new(&service->roll);
        if (r < 0)
                return r;
        return seat_incumbents(service, service->readers[0]);
}

static int start_workers(struct service *service)
{
        int r;

        r = workers_new(service->config->query_threads, (void *const *)service->readers,
                QUERIES_WAITING_MAX, QUERIES_NICENESS, &service->queries);
        if (r < 0)
                return r;
        return workers_new(
                1, (void *const *)&service->check_reader, CHECKS_WAITING_MAX, 0, &service->checks);
}

static int start_judge(struct service *service, sd_event *event)
{
        struct judge_options options = {
                .event = event,
                .workers = service->queries,
                .store = service->store,
                .metrics = &service->metrics,
                .interval_us = service->config->verdict_interval_us,
                .window_us = service->config->verdict_window_us,
                .timeout_us = JUDGE_TIMEOUT_US,
        };
        CLEANUP(store_reader) struct store_reader *reader = NULL;
        int r;

        /* The workers have the others by now. */
        r = open_reader(service, &reader);
        if (r < 0)
                return r;
        options.reader = reader;
        return judge_new(&options, &service->judge);
}

int service_new(sd_event *event, const struct collector_config *config, struct service **ret,
        char **ret_message)
{
        CLEANUP(service) struct service *service = calloc(1, sizeof(*service));
        struct sockaddr_storage address;
        struct store_ages ages;
        unsigned size;
        bool loopback;
        int r;

        *ret_message = NULL;
        if (!service)
                return -ENOMEM;
        service->config = config;
        service->changes_end = &service->changes;
        r = collector_config_address(config->listen, &address, &size, &loopback);
        if (r < 0)
                return r;
        r = open_parts(service, ret_message);
        if (r < 0)
                return r;
        service->check_host = loopback && !service->auth && !config->insecure;
        r = start_workers(service);
        if (r < 0)
                return r;
        ages = (struct store_ages){.raw_us = (int64_t)config->raw_days * DAY_US,
                .minute_us = (int64_t)config->minute_days * DAY_US,
                .hour_us = (int64_t)config->hour_days * DAY_US,
                .settle_us = STORE_SETTLE_US};
        r = upkeep_new(event, config->store_folder, &ages, service->store, service->share,
                &service->metrics, &service->upkeep);
        if (r < 0)
                return r;
        r = add_sources(service, event);
        if (r < 0)
                return r;
        r = start_judge(service, event);
        if (r < 0)
                return r;
        *ret = STEAL(service);
        return 0;
}

struct service *service_free(struct service *service)
{
        if (!service)
                return NULL;
        sd_event_source_disable_unref(service->query_source);
        sd_event_source_disable_unref(service->check_source);
        sd_event_source_disable_unref(service->commit_source);
        sd_event_source_disable_unref(service->retain_source);
        workers_free(service->queries);
        workers_free(service->checks);
        service->upkeep = upkeep_free(service->upkeep);
        judge_free(service->judge);
        for (size_t i = 0; i < COLLECTOR_THREADS_MAX; i++)
                store_reader_close(service->readers[i]);
        store_reader_close(service->check_reader);
        query_share_unref(service->share);
        store_close(service->store);
        plan_list_free(service->plans);
        election_free(service->election);
        roll_free(service->roll);
        web_files_free(service->files);
        auth_free(service->auth);
        free(service);
        return NULL;
}

struct metrics *service_get_metrics(struct service *service)
{
        return &service->metrics;
}

void service_reload(struct service *service)
{
        CLEANUP(str) char *message = NULL;
        struct auth *auth;
        int r;

        if (!service->auth)
                return;
        r = auth_open(service->config->tokens, &auth, &message);
        if (r < 0) {
                log_error("%s; the tokens stay as they were", message ? message : strerror(-r));
                return;
        }
        auth_free(service->auth);
        service->auth = auth;
        log_notice("read the tokens again");
}

void service_stop(struct service *service)
{
        service->stopping = true;
        workers_hurry(service->queries);
}

void service_finish(struct service *service)
{
        workers_stop(service->queries);
        workers_stop(service->checks);
        workers_dispatch(service->queries);
        workers_dispatch(service->checks);
        service_commit(service);
}
