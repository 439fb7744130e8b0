#include "collectord/roll.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct entry {
        struct id host;
        struct id boot, before; /* of the newest block; the one before it, or zero */
        int64_t last_us;
        bool cloned;
};

struct roll {
        pthread_mutex_t lock;
        struct entry *entries; /* ascending by host */
        uint32_t n;
};

int roll_new(struct roll **ret)
{
        struct roll *roll = calloc(1, sizeof(*roll));

        if (!roll)
                return -ENOMEM;
        pthread_mutex_init(&roll->lock, NULL);
        *ret = roll;
        return 0;
}

struct roll *roll_free(struct roll *roll)
{
        if (!roll)
                return NULL;
        pthread_mutex_destroy(&roll->lock);
        free(roll->entries);
        free(roll);
        return NULL;
}

/* Where @host stands or would stand. */
static uint32_t find_entry(const struct roll *roll, const struct id *host, bool *ret_found)
{
        uint32_t low = 0, high = roll->n;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (memcmp(&roll->entries[middle].host, host, sizeof(*host)) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        *ret_found = low < roll->n && id_equal(&roll->entries[low].host, host);
        return low;
}

static struct entry *get_entry(struct roll *roll, const struct id *host)
{
        bool found;
        uint32_t at = find_entry(roll, host, &found);

        if (found)
                return &roll->entries[at];
        if (roll->n == ROLL_HOSTS_MAX)
                return NULL;
        /* Grows in powers of two. */
        if ((roll->n & (roll->n - 1)) == 0) {
                size_t n = roll->n ? 2u * roll->n : 1;
                struct entry *entries = reallocarray(roll->entries, n, sizeof(*entries));

                if (!entries)
                        return NULL;
                roll->entries = entries;
        }
        memmove(&roll->entries[at + 1], &roll->entries[at],
                (roll->n - at) * sizeof(roll->entries[0]));
        roll->entries[at] = (struct entry){.host = *host};
        roll->n++;
        return &roll->entries[at];
}

bool roll_hear(struct roll *roll, const struct id *host, const struct id *boot, int64_t last_us)
{
        struct entry *entry;
        bool news = false;

        pthread_mutex_lock(&roll->lock);
        entry = get_entry(roll, host);
        if (entry && last_us > entry->last_us && !id_equal(&entry->boot, boot)) {
                news = !entry->cloned && id_equal(&entry->before, boot);
                entry->cloned |= news;
                entry->before = entry->boot;
                entry->boot = *boot;
        }
        if (entry && last_us > entry->last_us)
                entry->last_us = last_us;
        pthread_mutex_unlock(&roll->lock);
        return news;
}

bool roll_is_cloned(struct roll *roll, const struct id *host)
{
        bool cloned;
        uint32_t at;

        pthread_mutex_lock(&roll->lock);
        at = find_entry(roll, host, &cloned);
        cloned = cloned && roll->entries[at].cloned;
        pthread_mutex_unlock(&roll->lock);
        return cloned;
}

uint32_t roll_count(struct roll *roll)
{
        uint32_t n;

        pthread_mutex_lock(&roll->lock);
        n = roll->n;
        pthread_mutex_unlock(&roll->lock);
        return n;
}
