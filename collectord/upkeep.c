#include "collectord/upkeep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/total.h"
#include "collectord/worker.h"
#include "lib/clock.h"
#include "lib/log.h"

#define UPKEEP_NICENESS 10       /* it has all day */
#define SLICE_PAUSE_US 2000ull   /* between two slices of a step, and between steps */
#define IDLE_PAUSE_US 2000000ull /* nothing was to do */
#define ERROR_PAUSE_US 30000000ull
#define FOLD_PAUSE_US 1000000ull
#define TIMER_ACCURACY_US 1000ull

/* The WAL's way back into the hot log, on a thread of its own: upkeep's takes seconds at times. */
struct folder {
        struct job job;
        struct workers *workers;
        struct store_fold *fold;
        sd_event_source *source;
        bool busy;
        uint64_t next_us; /* not before: a reader may hold up what can be folded */
        int result;
};

struct upkeep {
        struct folder folder;
        struct store *store;
        struct metrics *metrics;
        struct store_keeper *keeper;
        struct total_maker *totals;
        struct workers *workers;
        sd_event_source *jobs_source, *timer;
        struct job job;
        struct store_step *step; /* of the keeper, not followed yet */
        int result, error;       /* error: the last that was logged */
};

static void run(struct job *job, void *state, bool hurry)
{
        struct upkeep *upkeep = state;

        (void)job;
        upkeep->result = 0;
        if (hurry)
                return;
        upkeep->result = store_keeper_step(upkeep->keeper, clock_realtime_us(), &upkeep->step);
        if (upkeep->result == 0)
                upkeep->result =
                        total_maker_step(upkeep->totals, clock_realtime_us(), &upkeep->step);
}

static void pause_for(struct upkeep *upkeep, uint64_t pause_us)
{
        sd_event_source_set_time_relative(upkeep->timer, pause_us);
        sd_event_source_set_enabled(upkeep->timer, SD_EVENT_ONESHOT);
}

static void take_result(struct upkeep *upkeep, int r)
{
        if (r < 0)
                metrics_add(upkeep->metrics, upkeep_failures, 1);
        if (r < 0 && r != upkeep->error)
                log_error("the store's upkeep failed, and is tried again: %s", strerror(-r));
        upkeep->error = r < 0 ? r : 0;
}

static void done(struct job *job)
{
        struct upkeep *upkeep = (struct upkeep *)((char *)job - offsetof(struct upkeep, job));
        int r = upkeep->result;

        take_result(upkeep, r);
        if (r > 0) {
                metrics_add(upkeep->metrics, upkeep_steps, 1);
                metrics_add(upkeep->metrics, sealed_blocks, store_step_blocks(upkeep->step));
        }
        pause_for(upkeep, r < 0 ? ERROR_PAUSE_US : r > 0 ? SLICE_PAUSE_US : IDLE_PAUSE_US);
}

/* ---- the WAL ---- */

static void run_fold(struct job *job, void *state, bool hurry)
{
        struct folder *folder = state;

        (void)job;
        folder->result = hurry ? 0 : store_fold_run(folder->fold);
}

static void done_fold(struct job *job)
{
        struct upkeep *upkeep =
                (struct upkeep *)((char *)job - offsetof(struct upkeep, folder.job));
        int r = upkeep->folder.result;

        upkeep->folder.busy = false;
        if (r == 0)
                r = store_fold_finish(upkeep->store);
        /* Busy: a reader holds on to an old state. The next time, then. */
        if (r < 0 && r != -EBUSY)
                take_result(upkeep, r);
}

void upkeep_after_commit(struct upkeep *upkeep)
{
        struct folder *folder = &upkeep->folder;

        if (folder->busy || store_wal_pages(upkeep->store) < STORE_FOLD_PAGES ||
                clock_monotonic_us() < folder->next_us)
                return;
        folder->next_us = clock_monotonic_us() + FOLD_PAUSE_US;
        folder->busy = workers_add(folder->workers, &folder->job) == 0;
}

static int on_fold(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct upkeep *upkeep = userdata;

        (void)source, (void)fd, (void)events;
        workers_dispatch(upkeep->folder.workers);
        return 0;
}

static int open_folder(struct upkeep *upkeep, sd_event *event, const char *path)
{
        struct folder *folder = &upkeep->folder;
        void *states[1] = {folder};
        int r;

        folder->job.run = run_fold;
        folder->job.done = done_fold;
        r = store_fold_open(path, &folder->fold);
        if (r < 0)
                return r;
        r = workers_new(1, states, 1, UPKEEP_NICENESS, &folder->workers);
        if (r < 0)
                return r;
        return sd_event_add_io(
                event, &folder->source, workers_get_fd(folder->workers), EPOLLIN, on_fold, upkeep);
}

/* ---- the keeper's steps ---- */

static int on_timer(sd_event_source *source, uint64_t time_us, void *userdata)
{
        struct upkeep *upkeep = userdata;
        int r;

        (void)source, (void)time_us;
        if (upkeep->step) {
                r = store_follow(upkeep->store, upkeep->step, STORE_SLICE_US);
                take_result(upkeep, r);
                if (r <= 0)
                        upkeep->step = store_step_free(upkeep->step);
                upkeep_after_commit(upkeep);
                pause_for(upkeep, r < 0 ? ERROR_PAUSE_US : SLICE_PAUSE_US);
                return 0;
        }
        r = workers_add(upkeep->workers, &upkeep->job);
        if (r < 0)
                pause_for(upkeep, ERROR_PAUSE_US);
        return 0;
}

static int on_job(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct upkeep *upkeep = userdata;

        (void)source, (void)fd, (void)events;
        workers_dispatch(upkeep->workers);
        return 0;
}

int upkeep_new(sd_event *event, const char *folder, const struct store_ages *ages,
        struct store *store, struct query_share *share, struct metrics *metrics,
        struct upkeep **ret)
{
        CLEANUP(upkeep) struct upkeep *upkeep = calloc(1, sizeof(*upkeep));
        void *states[1] = {upkeep};
        int r;

        if (!upkeep)
                return -ENOMEM;
        upkeep->store = store;
        upkeep->metrics = metrics;
        upkeep->job.run = run;
        upkeep->job.done = done;
        r = store_keeper_open(folder, ages, &upkeep->keeper);
        if (r < 0)
                return r;
        r = total_maker_new(upkeep->keeper, folder, ages, &upkeep->totals);
        if (r < 0)
                return r;
        r = total_maker_share(upkeep->totals, share);
        if (r < 0)
                return r;
        r = open_folder(upkeep, event, folder);
        if (r < 0)
                return r;
        r = workers_new(1, states, 1, UPKEEP_NICENESS, &upkeep->workers);
        if (r < 0)
                return r;
        r = sd_event_add_io(event, &upkeep->jobs_source, workers_get_fd(upkeep->workers), EPOLLIN,
                on_job, upkeep);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(event, &upkeep->timer, CLOCK_MONOTONIC, SLICE_PAUSE_US,
                TIMER_ACCURACY_US, on_timer, upkeep);
        if (r < 0)
                return r;
        *ret = STEAL(upkeep);
        return 0;
}

struct upkeep *upkeep_free(struct upkeep *upkeep)
{
        if (!upkeep)
                return NULL;
        sd_event_source_disable_unref(upkeep->jobs_source);
        sd_event_source_disable_unref(upkeep->timer);
        sd_event_source_disable_unref(upkeep->folder.source);
        workers_free(upkeep->folder.workers);
        store_fold_close(upkeep->folder.fold);
        workers_free(upkeep->workers);
        store_step_free(upkeep->step);
        total_maker_free(upkeep->totals);
        store_keeper_close(upkeep->keeper);
        free(upkeep);
        return NULL;
}
