#include "collectord/query-map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t query_hash(const char *text)
{
        return query_hash_more(14695981039346656037u, text);
}

uint64_t query_hash_more(uint64_t hash, const char *text)
{
        for (; *text; text++)
                hash = (hash ^ (uint8_t)*text) * 1099511628211u;
        return hash;
}

uint64_t query_spread(uint64_t value)
{
        value = (value + 1) * 0x9e3779b97f4a7c15ull;
        value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
        value = (value ^ value >> 27) * 0x94d049bb133111ebull;
        return value ^ value >> 31;
}

static size_t map_slot(const struct query_map *map, uint64_t key)
{
        size_t slot = (key ^ key >> 29) & (map->allocated - 1);

        while (map->values[slot] != UINT32_MAX && map->keys[slot] != key)
                slot = (slot + 1) & (map->allocated - 1);
        return slot;
}

static int map_grow(struct query_map *map)
{
        struct query_map larger = {.allocated = map->allocated ? map->allocated * 2 : 64};

        larger.keys = calloc(larger.allocated, sizeof(*larger.keys));
        larger.values = malloc(larger.allocated * sizeof(*larger.values));
        if (!larger.keys || !larger.values) {
                free(larger.keys);
                free(larger.values);
                return -ENOMEM;
        }
        memset(larger.values, 0xff, larger.allocated * sizeof(*larger.values));
        for (size_t i = 0; i < map->allocated; i++) {
                size_t slot;

                if (map->values[i] == UINT32_MAX)
                        continue;
                slot = map_slot(&larger, map->keys[i]);
                larger.keys[slot] = map->keys[i];
                larger.values[slot] = map->values[i];
        }
        larger.n = map->n;
        free(map->keys);
        free(map->values);
        *map = larger;
        return 0;
}

int query_map_find(const struct query_map *map, uint64_t key, uint32_t *ret)
{
        size_t slot;

        if (map->allocated == 0)
                return -ENOENT;
        slot = map_slot(map, key);
        if (map->values[slot] == UINT32_MAX)
                return -ENOENT;
        *ret = map->values[slot];
        return 0;
}

int query_map_add(struct query_map *map, uint64_t key, uint32_t value)
{
        size_t slot;
        int r;

        if (map->n * 2 >= map->allocated) {
                r = map_grow(map);
                if (r < 0)
                        return r;
        }
        slot = map_slot(map, key);
        map->keys[slot] = key;
        map->values[slot] = value;
        map->n++;
        return 0;
}

void query_map_done(struct query_map *map)
{
        free(map->keys);
        free(map->values);
        *map = (struct query_map){0};
}
