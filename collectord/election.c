#include "collectord/election.h"

#include <errno.h>
#include <stdlib.h>

#define SEATS_MAX 256u /* clusters */

struct seat {
        struct id cluster; /* zero: of an agent that does not know its cluster yet */
        struct id host;
        uint64_t alive_until_us;
        bool failing;
};

struct election {
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
        free(election);
        return NULL;
}

static struct seat *find_seat(struct election *election, const struct id *cluster)
{
        for (uint32_t i = 0; i < election->n_seats; i++)
                if (id_equal(&election->seats[i].cluster, cluster))
                        return &election->seats[i];
        return NULL;
}

static bool names(const struct election_voice *voice, const struct id *cluster)
{
        for (uint32_t i = 0; i < voice->n_clusters; i++)
                if (id_equal(&voice->clusters[i], cluster))
                        return true;
        return false;
}

/* Gives up the seats of clusters that the agent no longer names. */
static void leave(struct election *election, const struct election_voice *voice)
{
        for (uint32_t i = 0; i < election->n_seats;) {
                struct seat *seat = &election->seats[i];

                if (id_equal(&seat->host, &voice->host) && !names(voice, &seat->cluster))
                        *seat = election->seats[--election->n_seats];
                else
                        i++;
        }
}

static uint64_t patience_of(const struct election_voice *voice)
{
        uint64_t interval_us = voice->interval_us;

        if (interval_us < ELECTION_INTERVAL_MIN_US)
                interval_us = ELECTION_INTERVAL_MIN_US;
        if (interval_us > ELECTION_INTERVAL_MAX_US)
                interval_us = ELECTION_INTERVAL_MAX_US;
        return interval_us + interval_us / 4;
}

/* The seat of @cluster when it is, or becomes, the agent's; else NULL. */
static struct seat *take_seat(struct election *election, const struct id *host,
        const struct id *cluster, bool failing, uint64_t now_us)
{
        struct seat *seat = find_seat(election, cluster);

        if (seat && id_equal(&seat->host, host))
                return seat;
        if (seat && seat->alive_until_us > now_us && (!seat->failing || failing))
                return NULL;
        if (!seat) {
                if (election->n_seats == SEATS_MAX)
                        return NULL;
                seat = &election->seats[election->n_seats++];
        }
        election->changes++;
        *seat = (struct seat){.cluster = *cluster, .host = *host};
        return seat;
}

void election_hear(struct election *election, const struct election_voice *voice, uint64_t now_us,
        struct election_result *ret)
{
        ret->n_clusters = 0;
        leave(election, voice);
        for (uint32_t i = 0; i < voice->n_clusters; i++) {
                struct seat *seat = take_seat(
                        election, &voice->host, &voice->clusters[i], voice->failing[i], now_us);

                if (!seat)
                        continue;
                seat->alive_until_us = now_us + patience_of(voice);
                seat->failing = voice->failing[i];
                ret->clusters[ret->n_clusters++] = voice->clusters[i];
        }
}

const struct id *election_get_seat(const struct election *election, const struct id *cluster)
{
        const struct seat *seat = find_seat((struct election *)election, cluster);

        return seat ? &seat->host : NULL;
}

uint64_t election_count_changes(const struct election *election)
{
        return election->changes;
}
