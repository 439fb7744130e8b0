#include "agentd/agent-config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "agentd/spool.h"
#include "lib/id.h"
#include "lib/log.h"
#include "lib/message.h"

#define FIELD(name) offsetof(struct agent_config, name)
#define SECOND 1000000ull
#define DAY (86400 * SECOND)

const struct config_key agent_config_keys[] = {
        {"agent", "state_folder", CONFIG_STRING, FIELD(state_folder), "/var/lib/strata-agentd"},
        {"agent", "host_id", CONFIG_STRING, FIELD(host_id), ""},
        {"agent", "log_level", CONFIG_STRING, FIELD(log_level), "info"},
        {"agent", "root", CONFIG_STRING, FIELD(root), ""},
        {"agent", "module_folder", CONFIG_STRING, FIELD(module_folder), ""},
        {"agent", "seal_interval", CONFIG_DURATION, FIELD(seal_interval_us), "10s", SECOND / 10,
                600 * SECOND},
        {"agent", "block_rows", CONFIG_INTEGER, FIELD(block_rows), "300", 1, BLOCK_ROWS_MAX},
        {"agent", "spool_bytes", CONFIG_BYTES, FIELD(spool_bytes), "256M", SPOOL_BYTES_MIN,
                SPOOL_BYTES_MAX},
        {"agent", "spool_age", CONFIG_DURATION, FIELD(spool_age_us), "7d", 0, 3660 * DAY},
        {"collector", "url", CONFIG_STRING, FIELD(url), "http://127.0.0.1:7440"},
        {"collector", "token_file", CONFIG_STRING, FIELD(token_file), ""},
        /* A node with 24 disks and 12 OSDs makes 0.8 KB/s: an hour of it is back in 12 seconds, a
         * full spool in 17 minutes, and a link of 100 Mbit/s has 98 % left. */
        {"collector", "backfill_rate", CONFIG_BYTES, FIELD(backfill_rate), "256K", 0,
                SPOOL_BYTES_MAX},
        {"collector", "ca_file", CONFIG_STRING, FIELD(ca_file), ""},
        {"osd", "folders", CONFIG_STRING, FIELD(osd_folders), "/var/run/ceph"},
        {"ceph", "enabled", CONFIG_BOOL, FIELD(ceph_enabled), "no"},
        {"ceph", "conf", CONFIG_STRING, FIELD(ceph_conf), "/etc/ceph/ceph.conf"},
        {"ceph", "name", CONFIG_STRING, FIELD(ceph_name), "client.strata"},
        {"ceph", "keyring", CONFIG_STRING, FIELD(ceph_keyring), ""},
        /* librados counts whole seconds; two of them fit into the source's deadline. */
        {"ceph", "timeout", CONFIG_DURATION, FIELD(ceph_timeout_us), "5s", SECOND, 5 * SECOND},
        {0},
};

/* What follows the scheme begins with a host. */
static bool url_has_host(const char *url)
{
        const char *host = strstr(url, "://") + 3;

        return *host && !strchr("/:?#", *host);
}

static int check(const char *path, const struct agent_config *config, char **ret_message)
{
        size_t length = strlen(config->url);
        enum log_level level;
        struct id id;

        if (config->host_id[0] && id_parse(config->host_id, &id) < 0)
                return message_refuse(
                        ret_message, "%s: host_id '%s' is not a UUID", path, config->host_id);
        if (config->host_id[0] && id_is_zero(&id))
                return message_refuse(ret_message,
                        "%s: host_id '%s' names no host: it must not be all zeros", path,
                        config->host_id);
        if (log_level_parse(config->log_level, &level) < 0)
                return message_refuse(ret_message,
                        "%s: log_level '%s' is not error, warning, notice, info or debug", path,
                        config->log_level);
        if (config->state_folder[0] != '/')
                return message_refuse(ret_message, "%s: state_folder '%s' is not an absolute path",
                        path, config->state_folder);
        if (length > 0 && strncmp(config->url, "http://", 7) != 0 &&
                strncmp(config->url, "https://", 8) != 0)
                return message_refuse(ret_message,
                        "%s: url '%s' begins neither with http:// nor https://", path, config->url);
        if (length > 0 && !url_has_host(config->url))
                return message_refuse(ret_message, "%s: url '%s' names no host", path, config->url);
        return 0;
}

static int find_clusters(const char *path, struct agent_config *config, char **ret_message)
{
        CLEANUP(str) char *reason = NULL;
        int r;

        r = ceph_clusters_parse(config->ceph_conf, config->ceph_name, config->ceph_keyring,
                &config->clusters, &reason);
        if (r == -EINVAL)
                return message_refuse(ret_message, "%s: [ceph] %s", path, reason ? reason : "");
        if (r < 0 || !config->ceph_enabled)
                return r;
        ceph_clusters_read_fsids(&config->clusters);
        r = ceph_clusters_check_fsids(&config->clusters, &reason);
        if (r == -EINVAL)
                return message_refuse(ret_message, "%s: [ceph] %s", path, reason ? reason : "");
        return r;
}

int agent_config_load(const char *path, struct agent_config *config, char **ret_message)
{
        size_t length;
        int r;

        r = config_load(path, agent_config_keys, config, ret_message);
        if (r < 0)
                return r;
        r = check(path ? path : "defaults", config, ret_message);
        if (r == 0)
                r = find_clusters(path ? path : "defaults", config, ret_message);
        if (r < 0)
                return r;
        /* Paths are put behind it. */
        for (length = strlen(config->url); length > 0 && config->url[length - 1] == '/'; length--)
                config->url[length - 1] = '\0';
        return 0;
}

void agent_config_done(struct agent_config *config)
{
        config_done(agent_config_keys, config);
        ceph_clusters_done(&config->clusters);
}

void agent_config_get_source_options(const struct agent_config *config, struct source_options *ret)
{
        *ret = (struct source_options){
                .root = config->root,
                .osd_folders = config->osd_folders,
                .ceph_conf = config->clusters.list[0].conf,
                .ceph_name = config->clusters.list[0].name,
                .ceph_keyring = config->clusters.list[0].keyring,
                .ceph_timeout_us = config->ceph_timeout_us,
                .module_folder = config->module_folder[0] ? config->module_folder : MODULE_FOLDER,
        };
}

bool agent_config_allows(const struct agent_config *config, enum source_id source)
{
        return source != SOURCE_NONE && (source != SOURCE_CEPH || config->ceph_enabled);
}
