#pragma once
/* The agent as a whole: sampler, open blocks, spool and sender on one sd-event loop. */

#include "agentd/agent-config.h"
#include "lib/cleanup.h"

struct agent;

/* @config outlives the agent. -EBUSY: another agent uses the state folder. The reason is logged. */
int agent_new(const struct agent_config *config, struct agent **ret);
/* Runs until SIGTERM or SIGINT; seals what is open before it returns. */
int agent_run(struct agent *agent);
/* NULL; or the agent when a source does not come back: then end the process with _exit. */
struct agent *agent_free(struct agent *agent);
