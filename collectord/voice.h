#pragma once
/* What an agent says of itself in the headers of each request; docs/api.md has them. */

#include "collectord/api.h"
#include "collectord/election.h"

/*
 * Reads Strata-Host, Strata-Sources, Strata-Clusters and Strata-Interval. 1: refused, the response
 * says why. An agent whose sources have `ceph` and that names no cluster has one that it does not
 * know yet.
 */
int voice_read(const struct api_request *request, struct api_response *response,
        struct election_voice *ret);
/* A header with a whole number; @fallback when there is none. 1: refused. */
int voice_read_number(const struct api_request *request, struct api_response *response,
        const char *name, uint64_t fallback, uint64_t *ret);
