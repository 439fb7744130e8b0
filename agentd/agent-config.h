#pragma once
/* The agent's configuration; systemd/strata-agentd.conf describes every key. */

#include <stdbool.h>
#include <stdint.h>

#include "agentd/ceph-clusters.h"
#include "agentd/source.h"
#include "lib/config.h"

#define AGENT_CONFIG_PATH "/etc/strata/agentd.conf"

struct agent_config {
        char *state_folder;
        char *host_id; /* "" : from the machine id */
        char *log_level;
        char *root;          /* "" : this machine */
        char *module_folder; /* "" : where it was installed */
        uint64_t seal_interval_us;
        uint64_t block_rows;
        uint64_t spool_bytes;
        uint64_t spool_age_us;
        uint64_t backfill_rate;
        char *url; /* "" : nothing is sent */
        char *token_file;
        char *ca_file;
        char *osd_folders;
        bool ceph_enabled;
        char *ceph_conf;
        char *ceph_name;
        char *ceph_keyring;
        uint64_t ceph_timeout_us;
        struct ceph_clusters clusters; /* of the three keys above */
};

extern const struct config_key agent_config_keys[];

/* As config_load; also checks what one key alone cannot say. */
int agent_config_load(const char *path, struct agent_config *config, char **ret_message);
void agent_config_done(struct agent_config *config);
static inline void agent_config_cleanup(struct agent_config *config)
{
        agent_config_done(config);
}

/* What the sources want; strings stay the configuration's. */
void agent_config_get_source_options(const struct agent_config *config, struct source_options *ret);
/* Which sources this agent may run; ceph only where it is enabled. */
bool agent_config_allows(const struct agent_config *config, enum source_id source);
