#pragma once
/* A map from 64-bit keys (numbers, or hashes of names) to indices: open addressing, half full. */

#include <stddef.h>
#include <stdint.h>

struct query_map {
        uint64_t *keys;
        uint32_t *values; /* UINT32_MAX: free */
        size_t n, allocated;
};

/* -ENOENT. */
int query_map_find(const struct query_map *map, uint64_t key, uint32_t *ret);
/* @key is not there yet; @value is below UINT32_MAX. -ENOMEM. */
int query_map_add(struct query_map *map, uint64_t key, uint32_t value);
void query_map_done(struct query_map *map);
/* FNV-1a, 64 bits: two of a million names meet with a probability of 3e-8. */
uint64_t query_hash(const char *text);
/* Of the text whose hash is @hash with @text behind it. */
uint64_t query_hash_more(uint64_t hash, const char *text);
/* A number whose every bit hangs on every bit of @value. */
uint64_t query_spread(uint64_t value);
