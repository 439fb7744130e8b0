#pragma once
/*
 * The agents heard since the start, and which of them are really two: machines that were cloned
 * with their machine id share a host id, and their samples would mix in silence. Blocks tell: they
 * carry the boot of their kernel, and one that was left behind for another gives no newer samples,
 * unless two machines take turns. Safe to use from any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "lib/id.h"

#define ROLL_HOSTS_MAX 65536u /* six times the largest installation in mind; 64 bytes each */

struct roll;

int roll_new(struct roll **ret);
struct roll *roll_free(struct roll *roll);
DEFINE_CLEANUP(roll, struct roll *, roll_free)

/* A block of @boot came, with samples up to @last_us: older ones than known are what waited in a
 * spool. True the first time that @host is seen to be two machines; hosts beyond the maximum are
 * not watched. */
bool roll_hear(struct roll *roll, const struct id *host, const struct id *boot, int64_t last_us);
bool roll_is_cloned(struct roll *roll, const struct id *host);
uint32_t roll_count(struct roll *roll);
