#pragma once
/*
 * Simulated agents and their connections. Each makes a block of every source once a period, keeps
 * what is not acknowledged, sends it over one connection that stays open, and does as the answer
 * says: 200 is an acknowledgement, 503 and 429 mean later, another status refuses for good. A
 * connection that fails is made again after a pause, and everything unacknowledged is sent again.
 * Nothing is kept but two counters: block n can be made again at any time.
 */

#include <netinet/in.h>
#include <stdbool.h>

#include "tests/load/template.h"

#define PERIODS_A_BODY 64u  /* of one upload after an outage */
#define ANSWER_MAX 65536u   /* the largest that is read: a plan is 20 KiB */
#define LATENCY_UNIT_US 50u /* of the histogram */
#define LATENCY_UNITS 400000u

enum agent_state {
        AGENT_APART,      /* no connection */
        AGENT_IDLE,       /* connected, nothing to send */
        AGENT_CONNECTING, /* or sending */
        AGENT_WAITING,    /* for the answer */
};

struct agent {
        uint32_t number;
        int fd;
        enum agent_state state;
        bool facts;         /* are acknowledged */
        bool sends_facts;   /* what is on its way */
        uint64_t next_us;   /* when to look at it again, monotonic */
        uint64_t begin_us;  /* of the request */
        uint64_t acked;     /* periods that the collector has */
        uint32_t in_flight; /* periods */
        uint64_t revision;  /* of the plan, as the collector said */
        uint8_t *out, *in;
        size_t out_size, out_sent, in_size;
};

struct load {
        struct template_set set;
        struct sockaddr_in address;
        int epoll;
        struct agent *agents;
        uint32_t n_agents;
        uint64_t period_us; /* of a block; 0: a history, as fast as the answers come */
        uint64_t count;     /* periods of each agent */
        int64_t base_us;    /* the first tick, Unix time */
        uint64_t start_us;  /* monotonic */
        uint64_t end_us;    /* nothing is made after it */
        bool with_facts;
        FILE *acknowledged; /* NULL: no list */
        /* counts */
        uint64_t made, blocks, rows, values, bytes, duplicates, requests, busy, refused, broken;
        uint64_t late; /* beyond the histogram */
        uint64_t latency_max_us;
        uint32_t *latencies;
};

/* Sends, connects or waits, whichever is due. */
void agent_look(struct load *load, struct agent *agent, uint64_t now_us);
/* The connection is readable or writable. */
void agent_event(struct load *load, struct agent *agent, uint32_t events);
/* Periods that are complete by @now_us, or by the end. */
uint64_t agent_made(const struct load *load, const struct agent *agent, uint64_t now_us);
void agent_done(struct agent *agent);
/* The latency that a share of all requests stayed under, milliseconds. */
double load_latency_ms(const struct load *load, double share);
