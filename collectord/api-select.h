#pragma once
/*
 * Which curves of many an answer has: all, the `top` largest by their mean, or a page of them by
 * key (`limit` and `cursor`, as lists have).
 */

#include "collectord/api.h"

/* Of one answer: 100 MiB as JSON. */
#define API_POINTS_MAX (4u << 20)

struct api_selection {
        uint64_t top; /* 0: not asked for */
        bool paged;
        struct api_page page;
};

struct api_candidate {
        uint32_t index; /* the caller's */
        double mean;    /* NaN is smaller than anything */
        char *key;      /* heap; unique among the candidates */
};

/* 1: refused. */
int api_select_parse(const struct api_request *request, struct api_response *response,
        struct api_selection *ret);
/* "node1/sda", or "rbd" without @host; NULL when there is no memory. */
char *api_select_key(const char *host, const char *key);
/* Sorts the candidates and returns the first one that the answer has, *ret_count of them.
 * *ret_cursor: the key of the last one when others follow it, or NULL. */
const struct api_candidate *api_select(const struct api_selection *selection,
        struct api_candidate *candidates, size_t n, size_t *ret_count, const char **ret_cursor);
void api_select_done(struct api_candidate *candidates, size_t n);
