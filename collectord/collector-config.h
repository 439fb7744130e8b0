#pragma once
/* The configuration of strata-collectord; systemd/strata-collectord.conf shows every key. */

#include <stdbool.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "lib/config.h"

#define COLLECTOR_CONFIG_PATH "/etc/strata/collectord.conf"
#define COLLECTOR_THREADS_MAX 16u

struct collector_config {
        char *listen;
        char *store_folder;
        char *web_folder; /* "": where the build installs it */
        char *log_level;
        bool insecure;
        uint64_t raw_days, minute_days, hour_days; /* how long each tier is kept */
        uint64_t store_max; /* bytes; 0: no limit */
        uint64_t connections;
        uint64_t request_timeout_us;
        uint64_t idle_timeout_us;
        uint64_t query_timeout_us;
        uint64_t query_threads;
        uint64_t verdict_interval_us; /* 0: never */
        uint64_t verdict_window_us;
        char *certificate; /* paths; "" for none */
        char *key;
        char *tokens;
};

extern const struct config_key collector_config_keys[]; /* ends with a row without section */

/* As config_load, and what hangs on more than one key is checked. */
int collector_config_load(const char *path, struct collector_config *ret, char **ret_message);
void collector_config_done(struct collector_config *config);
static inline void collector_config_cleanup(struct collector_config *config)
{
        collector_config_done(config);
}

/* The address in listen, a loopback one or not. -EINVAL. */
struct sockaddr_storage;
int collector_config_address(
        const char *listen, struct sockaddr_storage *ret, unsigned *ret_size, bool *ret_loopback);
