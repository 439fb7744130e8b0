#pragma once
/*
 * HTTP: the one file that knows microhttpd. The library is a guest in the loop: its epoll
 * descriptor is an event source, and a timer follows what it asks for after every turn.
 */

#include <systemd/sd-event.h>

#include "collectord/service.h"

struct server;

/* Listens. *ret_message: why it cannot, one sentence, freed by the caller. @config and @service
 * outlive it. */
int server_new(sd_event *event, const struct collector_config *config, struct service *service,
        struct server **ret, char **ret_message);
/* Cuts what is still open; the service is to be finished before. */
struct server *server_free(struct server *server);
DEFINE_CLEANUP(server, struct server *, server_free)

/* "127.0.0.1:7440", with the port that the kernel chose for 0. */
const char *server_get_address(const struct server *server);
/* Takes no new connections. */
void server_stop(struct server *server);
/* Requests that have no complete answer yet. */
size_t server_count_requests(const struct server *server);
/* Sends the answers that are ready, for at most @timeout_us. */
void server_flush(struct server *server, uint64_t timeout_us);
