#pragma once
/* What service.c (its life) and exchange.c (the way of a request) share. */

#include "collectord/auth.h"
#include "collectord/judge.h"
#include "collectord/roll.h"
#include "collectord/service.h"
#include "collectord/upkeep.h"
#include "collectord/web-files.h"

struct service {
        const struct collector_config *config;
        struct store *store;
        struct query_share *share;
        struct store_reader *readers[COLLECTOR_THREADS_MAX];
        struct store_reader *check_reader;
        struct workers *queries; /* with a reader each */
        struct workers *checks;  /* of what agents send */
        struct upkeep *upkeep;   /* of the store */
        struct auth *auth;       /* NULL: whoever reaches us may do everything */
        struct web_files *files;
        struct plan_list *plans;
        struct election *election;
        struct roll *roll;
        struct judge *judge;
        sd_event_source *query_source, *check_source, *commit_source, *retain_source;
        struct exchange *changes, **changes_end; /* checked, waiting for the commit */
        size_t n_changes;
        int store_error; /* of the last commit: logged when it changes */
        bool check_host; /* only loopback names may stand in the Host header */
        bool stopping;
        struct metrics metrics;
};

/* Commits all changes that wait, and answers them. */
void service_commit(struct service *service);

/* The dashboard's, as configured or as installed. */
const char *service_web_folder(const struct service *service);
