/* What the agent has before its loop runs: state, spool, open blocks, the way to the collector. */
#include "agentd/agent-private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/log.h"

struct moment agent_look_at_clocks(void *userdata)
{
        (void)userdata;
        return clock_look();
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

int agent_set_up_sender(struct agent *agent, void (*on_plan)(void *userdata, const json_t *plan))
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
        options.random ^= agent_look_at_clocks(NULL).monotonic_us;
        return sender_new(agent->event, &options, &agent->sender);
}

int agent_set_up_state(struct agent *agent)
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

int agent_set_up_spool(struct agent *agent)
{
        CLEANUP(str) char *folder = NULL;
        struct spool_options options = {
                .bytes_max = agent->config->spool_bytes,
                .age_max_us = agent->config->spool_age_us,
                .clock = agent_look_at_clocks,
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

int agent_set_up_sealer(struct agent *agent)
{
        struct sealer_options options = {
                .folder = agent->state ? agent->config->state_folder : NULL,
                .spool = agent->spool,
                .host = agent->host,
                .clock = agent_look_at_clocks,
                .seal_interval_us = agent->config->seal_interval_us,
                .block_rows = (uint32_t)agent->config->block_rows,
        };
        int r;

        r = state_get_boot_id(&options.boot);
        if (r < 0)
                return r;
        return sealer_new(&options, &agent->sealer);
}
