#include "collectord/collector-config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/cleanup.h"
#include "lib/log.h"
#include "lib/message.h"

#define FIELD(name) offsetof(struct collector_config, name)
#define SECOND UINT64_C(1000000)

const struct config_key collector_config_keys[] = {
        {"collector", "listen", CONFIG_STRING, FIELD(listen), "127.0.0.1:7440", 0, 0},
        {"collector", "store_folder", CONFIG_STRING, FIELD(store_folder),
                "/var/lib/strata-collectord", 0, 0},
        {"collector", "web_folder", CONFIG_STRING, FIELD(web_folder), "", 0, 0},
        {"collector", "log_level", CONFIG_STRING, FIELD(log_level), "info", 0, 0},
        {"collector", "insecure", CONFIG_BOOL, FIELD(insecure), "no", 0, 0},
        {"collector", "raw_days", CONFIG_INTEGER, FIELD(raw_days), "7", 1, 3650},
        {"collector", "minute_days", CONFIG_INTEGER, FIELD(minute_days), "30", 1, 3650},
        {"collector", "hour_days", CONFIG_INTEGER, FIELD(hour_days), "730", 1, 36500},
        {"collector", "store_max", CONFIG_BYTES, FIELD(store_max), "0", 0, UINT64_MAX},
        {"collector", "connections", CONFIG_INTEGER, FIELD(connections), "16384", 8, 65536},
        {"collector", "request_timeout", CONFIG_DURATION, FIELD(request_timeout_us), "60s", SECOND,
                600 * SECOND},
        {"collector", "idle_timeout", CONFIG_DURATION, FIELD(idle_timeout_us), "60s", SECOND,
                3600 * SECOND},
        {"collector", "query_timeout", CONFIG_DURATION, FIELD(query_timeout_us), "2s", SECOND / 10,
                60 * SECOND},
        {"collector", "query_threads", CONFIG_INTEGER, FIELD(query_threads), "2", 1,
                COLLECTOR_THREADS_MAX},
        {"verdict", "interval", CONFIG_DURATION, FIELD(verdict_interval_us), "10s", 0,
                3600 * SECOND},
        {"verdict", "window", CONFIG_DURATION, FIELD(verdict_window_us), "20s", 10 * SECOND,
                600 * SECOND},
        {"tls", "certificate", CONFIG_STRING, FIELD(certificate), "", 0, 0},
        {"tls", "key", CONFIG_STRING, FIELD(key), "", 0, 0},
        {"tokens", "file", CONFIG_STRING, FIELD(tokens), "", 0, 0},
        {NULL, NULL, CONFIG_STRING, 0, NULL, 0, 0},
};

static bool is_loopback(const struct sockaddr *address)
{
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
        const struct sockaddr_in *four = (const struct sockaddr_in *)address;

        if (address->sa_family == AF_INET)
                return ntohl(four->sin_addr.s_addr) >> 24 == 127;
        if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
                return six->sin6_addr.s6_addr[12] == 127;
        return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

static bool is_port(const char *text)
{
        size_t length = strlen(text);

        return length >= 1 && length <= 5 && strspn(text, "0123456789") == length &&
               atoi(text) <= UINT16_MAX;
}

/* "127.0.0.1:7440", "[::1]:7440": numbers only, since a name may take long and mean anything. */
int collector_config_address(
        const char *listen, struct sockaddr_storage *ret, unsigned *ret_size, bool *ret_loopback)
{
        const char *colon = strrchr(listen, ':');
        struct addrinfo hints = {
                .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
        struct addrinfo *found;
        CLEANUP(str) char *host = NULL;
        size_t length;

        /* getaddrinfo takes any number as a port, modulo 2^16. */
        if (!colon || colon == listen || !is_port(colon + 1))
                return -EINVAL;
        length = (size_t)(colon - listen);
        if (*listen == '[' && listen[length - 1] == ']') {
                host = strndup(listen + 1, length - 2);
                hints.ai_family = AF_INET6;
        } else {
                host = strndup(listen, length);
                hints.ai_family = AF_INET;
        }
        if (!host)
                return -ENOMEM;
        if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
                return -EINVAL;
        memset(ret, 0, sizeof(*ret));
        memcpy(ret, found->ai_addr, found->ai_addrlen);
        *ret_size = found->ai_addrlen;
        *ret_loopback = is_loopback(found->ai_addr);
        freeaddrinfo(found);
        return 0;
}

static int check(const struct collector_config *config, const char *path, char **ret_message)
{
        struct sockaddr_storage address;
        enum log_level level;
        unsigned size;
        bool loopback;
        int r;

        r = collector_config_address(config->listen, &address, &size, &loopback);
        if (r == -EINVAL)
                return message_refuse(ret_message,
                        "%s: listen must be a numeric address and a port such as 127.0.0.1:7440 or "
                        "[::1]:7440, but is '%s'",
                        path, config->listen);
        if (r < 0)
                return r;
        if (log_level_parse(config->log_level, &level) < 0)
                return message_refuse(ret_message,
                        "%s: log_level must be error, warning, notice, info or debug, but is '%s'",
                        path, config->log_level);
        if (!*config->certificate != !*config->key)
                return message_refuse(
                        ret_message, "%s: [tls] needs both certificate and key", path);
        if (!loopback && !config->insecure && (!*config->certificate || !*config->tokens))
                return message_refuse(ret_message,
                        "%s: listen is '%s', which others can reach: [tls] certificate and key and "
                        "[tokens] file are needed (or insecure = yes)",
                        path, config->listen);
        return 0;
}

int collector_config_load(const char *path, struct collector_config *ret, char **ret_message)
{
        int r;

        *ret_message = NULL;
        r = config_load(path, collector_config_keys, ret, ret_message);
        if (r < 0)
                return r;
        return check(ret, path ? path : "configuration", ret_message);
}

void collector_config_done(struct collector_config *config)
{
        config_done(collector_config_keys, config);
}
