#pragma once
/*
 * The stored plans as the loop needs them at every upload: what is sent to an agent, and under
 * which revision. An agent follows its own plan, else that of "*", else the built-in one.
 *
 * In a stored plan `ceph` enabled means: on the elected agent. So what an agent gets depends on
 * the election, and its revision must too: the stored one, and behind it 24 bits of a hash of the
 * clusters that it is elected for (0: none).
 */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "lib/cleanup.h"
#include "lib/id.h"
#include "collectord/election.h"
#include "collectord/store.h"

struct plan_list;

/* Reads all plans of the store. */
int plan_list_new(struct store_reader *reader, struct plan_list **ret);
struct plan_list *plan_list_free(struct plan_list *list);
DEFINE_CLEANUP(plan_list, struct plan_list *, plan_list_free)

/* @host NULL is "*"; @json NULL removes. Copies. */
int plan_list_put(
        struct plan_list *list, const struct id *host, const char *json, uint64_t revision);

/* As stored. */
uint64_t plan_list_stored_revision(const struct plan_list *list, const struct id *host);
/* Whether @host (NULL: "*") has a plan of its own. */
bool plan_list_has(const struct plan_list *list, const struct id *host);
/* The plan as it is sent to the agent of @host, and its revision alone. */
uint64_t plan_list_revision(
        const struct plan_list *list, const struct id *host, const struct election_result *elected);
int plan_list_effective(const struct plan_list *list, const struct id *host,
        const struct election_result *elected, json_t **ret);

/* ---- the same on one plan's text, for handlers with a reader ---- */

/* The built-in plan of the collector; a new reference. */
int plan_default(json_t **ret);
/* A stored text as JSON with @revision in it. */
int plan_load(const char *text, uint64_t revision, json_t **ret);
/* Turns a stored plan into what an agent gets. */
void plan_make_effective(json_t *plan, const struct election_result *elected);
uint64_t plan_effective_revision(uint64_t revision, const struct election_result *elected);
#define PLAN_ELECTED_BITS 24
/* What stands in the list of agents for a revision that an agent says it has. */
static inline uint64_t plan_stored_revision(uint64_t effective)
{
        return effective >> PLAN_ELECTED_BITS;
}
