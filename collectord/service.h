#pragma once
/*
 * The collector without HTTP: store, workers, tokens, plans, and the way of one request through
 * them. An exchange is one request and its answer:
 *
 *   head --begin--> body --body--> run --(worker)--> --(group commit)--> answer
 *
 * Any step may answer at once (a refusal, a file). Everything but the workers' jobs is on the loop
 * thread. What arrives while others are checked is committed together with them.
 */

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "collectord/api.h"
#include "collectord/collector-config.h"
#include "collectord/ingest.h"
#include "collectord/metrics.h"
#include "collectord/route.h"
#include "collectord/worker.h"

struct service;

/* *ret_message: why it cannot start, one sentence, freed by the caller. @config outlives it. */
int service_new(sd_event *event, const struct collector_config *config, struct service **ret,
        char **ret_message);
struct service *service_free(struct service *service);
DEFINE_CLEANUP(service, struct service *, service_free)

struct metrics *service_get_metrics(struct service *service);
/* Reads the token file again; on failure the old tokens stay. */
void service_reload(struct service *service);
/* New exchanges are refused from now on. */
void service_stop(struct service *service);
/* Answers every exchange that still runs; waits for the workers. */
void service_finish(struct service *service);

struct exchange {
        struct service *service;
        /* Method, path, parameters, headers and now_us are the caller's; the rest is filled here.
         */
        struct api_request request;
        struct api_response response;
        bool answered; /* the response is there */
        /* Called on the loop when an exchange that ran has its answer. */
        void (*answer)(struct exchange *exchange);

        /* ---- private ---- */
        const struct route *route;
        struct ingest_change change;
        struct election_result elected;
        struct job job;
        int result;
        uint8_t *body;
        size_t body_capacity;
        struct exchange *next;
};

#define EXCHANGE_LENGTH_UNKNOWN UINT64_MAX

/* What the head alone tells: route, token, parameters, length of the body. */
void exchange_begin(struct exchange *exchange, uint64_t content_length);
/* More of the body; after the answer it is dropped. */
void exchange_add_body(struct exchange *exchange, const void *bytes, size_t size);
/* The body is complete. Not answered after it: answer() will be called. */
void exchange_run(struct exchange *exchange);
/* Not while it runs. */
void exchange_done(struct exchange *exchange);
