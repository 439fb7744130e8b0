#include "collectord/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/cleanup.h"
#include "collectord/auth.h"

#define BACKLOG 4096 /* ten thousand agents come back at once; the kernel may take fewer */
#define PEM_BYTES_MAX (1u << 20)

static int read_pem(const char *path, char **ret, char **ret_message)
{
        CLEANUP(file) FILE *file = fopen(path, "re");
        CLEANUP(str) char *text = malloc(PEM_BYTES_MAX + 1);
        size_t n;

        if (!text)
                return -ENOMEM;
        n = file ? fread(text, 1, PEM_BYTES_MAX, file) : 0;
        if (!file || ferror(file)) {
                int r = -errno;

                if (asprintf(ret_message, "%s: %s", path, strerror(-r)) < 0)
                        *ret_message = NULL;
                return r;
        }
        text[n] = '\0';
        *ret = STEAL(text);
        return 0;
}

int listen_read_certificate(const struct collector_config *config, char **ret_certificate,
        char **ret_key, char **ret_message)
{
        CLEANUP(str) char *certificate = NULL, *key = NULL, *reason = NULL;
        int r;

        if (!*config->certificate)
                return 0;
        r = read_pem(config->certificate, &certificate, ret_message);
        if (r < 0)
                return r;
        r = read_pem(config->key, &key, ret_message);
        if (r < 0)
                return r;
        r = auth_check_certificate(certificate, key, &reason);
        if (r < 0) {
                if (asprintf(ret_message, "%s and %s cannot be used: %s", config->certificate,
                            config->key, reason ? reason : strerror(-r)) < 0)
                        *ret_message = NULL;
                return r;
        }
        *ret_certificate = STEAL(certificate);
        *ret_key = STEAL(key);
        return 0;
}

static void format_address(const struct sockaddr_storage *address, char *ret)
{
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
        const struct sockaddr_in *four = (const struct sockaddr_in *)address;
        char host[INET6_ADDRSTRLEN] = "";

        if (address->ss_family == AF_INET) {
                inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host));
                snprintf(ret, LISTEN_ADDRESS_MAX, "%s:%u", host, ntohs(four->sin_port));
        } else {
                inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host));
                snprintf(ret, LISTEN_ADDRESS_MAX, "[%s]:%u", host, ntohs(six->sin6_port));
        }
}

int listen_open(const char *listen_on, int *ret_fd, char *ret_address, char **ret_message)
{
        CLEANUP(fd) int fd = -1;
        struct sockaddr_storage address;
        socklen_t size;
        bool loopback;
        int r;

        r = collector_config_address(listen_on, &address, &size, &loopback);
        if (r < 0)
                return r;
        fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0 ||
                bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, BACKLOG) < 0 ||
                getsockname(fd, (struct sockaddr *)&address, &size) < 0) {
                r = -errno;
                if (asprintf(ret_message, "cannot listen on %s: %s", listen_on, strerror(-r)) < 0)
                        *ret_message = NULL;
                return r;
        }
        format_address(&address, ret_address);
        *ret_fd = STEAL_LEAVING(fd, -1);
        return 0;
}
