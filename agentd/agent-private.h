#pragma once
/* The inside of the agent, shared by agent.c (the loop) and agent-setup.c (what is there before the
 * loop runs). */

#include <systemd/sd-event.h>

#include "agentd/agent.h"
#include "agentd/counters.h"
#include "agentd/row-join.h"
#include "agentd/sampler.h"
#include "agentd/sealer.h"
#include "agentd/sender.h"
#include "agentd/spool.h"
#include "agentd/state.h"

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
        unsigned seals;        /* up to SEALS_TRIMMED */
        uint64_t facts_revision;
        char *refused_plan; /* why, so that it is told once */
        uint64_t taken_saved[SOURCE_MAX_];
};

struct moment agent_look_at_clocks(void *userdata);

/* Without a folder everything goes on in memory; only a second agent on the same folder ends us. */
int agent_set_up_state(struct agent *agent);
int agent_set_up_spool(struct agent *agent);
int agent_set_up_sealer(struct agent *agent);
/* @on_plan as sender_options.plan. */
int agent_set_up_sender(struct agent *agent, void (*on_plan)(void *userdata, const json_t *plan));
