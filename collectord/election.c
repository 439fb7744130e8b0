#include "collectord/election.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AGENTS_MAX 65536u /* six times the largest installation in mind; 64 bytes each */
#define SEATS_MAX 256u    /* clusters */

struct agent {
        struct id host;
        struct id cluster; /* zero: not known yet */
        bool able;
        uint64_t alive_until_us;
};

struct seat {
        struct id cluster; /* zero: of an agent whose cluster is not known yet */
        struct id host;
};

struct election {
        struct agent *agents; /* ascending by host */
        uint32_t n_agents;
        uint32_t n_seats;
        uint64_t changes;
        struct seat seats[SEATS_MAX];
};

int election_new(struct election **ret)
{
        struct election *election = calloc(1, sizeof(*election));

        if (!election)
                return -ENOMEM;
        *ret = election;
        return 0;
}

struct election *election_free(struct election *election)
{
        if (!election)
                return NULL;
        free(election->agents);
        free(election);
        return NULL;
}

/* Where @host stands or would stand. */
static uint32_t find_agent(const struct election *election, const struct id *host, bool *ret_found)
{
        uint32_t low = 0, high = election->n_agents;

        *ret_found = false;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                int order = memcmp(&election->agents[middle].host, host, sizeof(*host));

                if (order == 0) {
                        *ret_found = true;
                        return middle;
                }
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static int get_agent(struct election *election, const struct id *host, struct agent **ret)
{
        bool found;
        uint32_t at = find_agent(election, host, &found);

        if (!found) {
                if (election->n_agents == AGENTS_MAX)
                        return -ENOSPC;
                /* Grows in powers of two. */
                if ((election->n_agents & (election->n_agents - 1)) == 0) {
                        size_t n = election->n_agents ? 2u * election->n_agents : 1;
                        struct agent *agents = reallocarray(election->agents, n, sizeof(*agents));

                        if (!agents)
                                return -ENOMEM;
                        election->agents = agents;
                }
                memmove(&election->agents[at + 1], &election->agents[at],
                        (election->n_agents - at) * sizeof(election->agents[0]));
                election->agents[at] = (struct agent){.host = *host};
                election->n_agents++;
        }
        *ret = &election->agents[at];
        return 0;
}

static struct seat *find_seat(struct election *election, const struct id *cluster)
{
        for (uint32_t i = 0; i < election->n_seats; i++)
                if (id_equal(&election->seats[i].cluster, cluster))
                        return &election->seats[i];
        return NULL;
}

static struct seat *seat_of(struct election *election, const struct id *host)
{
        for (uint32_t i = 0; i < election->n_seats; i++)
                if (id_equal(&election->seats[i].host, host))
                        return &election->seats[i];
        return NULL;
}

static void leave(struct election *election, struct seat *seat)
{
        if (seat)
                *seat = election->seats[--election->n_seats];
}

static bool is_alive(const struct election *election, const struct seat *seat, uint64_t now_us)
{
        bool found;
        uint32_t at = find_agent(election, &seat->host, &found);

        return found && election->agents[at].able && election->agents[at].alive_until_us > now_us;
}

static bool is_any_alive(const struct election *election, uint64_t now_us)
{
        for (uint32_t i = 0; i < election->n_seats; i++)
                if (is_alive(election, &election->seats[i], now_us))
                        return true;
        return false;
}

/* @agent holds no seat of its cluster: may it have it? */
static bool take_seat(struct election *election, const struct agent *agent, uint64_t now_us)
{
        struct seat *seat;

        if (id_is_zero(&agent->cluster) && is_any_alive(election, now_us))
                return false;
        seat = find_seat(election, &agent->cluster);
        if (seat && is_alive(election, seat, now_us))
                return false;
        /* One agent, one seat: what it held as one of an unknown cluster is given up. */
        leave(election, seat_of(election, &agent->host));
        seat = find_seat(election, &agent->cluster);
        if (!seat) {
                if (election->n_seats == SEATS_MAX)
                        return false;
                seat = &election->seats[election->n_seats++];
        }
        *seat = (struct seat){.cluster = agent->cluster, .host = agent->host};
        election->changes++;
        return true;
}

int election_hear(struct election *election, const struct id *host, bool able, uint64_t now_us,
        uint64_t patience_us, bool *ret_elected)
{
        struct agent *agent;
        struct seat *seat;
        int r;

        r = get_agent(election, host, &agent);
        if (r < 0)
                return r;
        agent->able = able;
        agent->alive_until_us = now_us + patience_us;
        seat = seat_of(election, host);
        if (!able) {
                leave(election, seat);
                *ret_elected = false;
        } else if (seat && id_equal(&seat->cluster, &agent->cluster)) {
                *ret_elected = true;
        } else {
                leave(election, seat);
                *ret_elected = take_seat(election, agent, now_us);
        }
        return 0;
}

int election_learn(struct election *election, const struct id *host, const struct id *cluster)
{
        struct agent *agent;
        struct seat *seat;
        int r;

        r = get_agent(election, host, &agent);
        if (r < 0)
                return r;
        if (id_is_zero(cluster) || id_equal(&agent->cluster, cluster))
                return 0;
        agent->cluster = *cluster;
        /* It was let in as one of an unknown cluster: it stays, unless this cluster has its own. */
        seat = seat_of(election, host);
        if (seat && find_seat(election, cluster))
                leave(election, seat);
        else if (seat)
                seat->cluster = *cluster;
        return 0;
}

bool election_has_seat(const struct election *election, const struct id *host)
{
        return seat_of((struct election *)election, host) != NULL;
}

uint32_t election_count_agents(const struct election *election)
{
        return election->n_agents;
}

uint64_t election_count_changes(const struct election *election)
{
        return election->changes;
}
