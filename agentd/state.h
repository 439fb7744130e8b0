#pragma once
/*
 * What the agent remembers over a restart, in its state folder: the lock that keeps a second agent
 * out, the host id where the machine has none, the plan. Files are replaced whole. Open blocks and
 * the spool lie in the same folder (rows.h, spool.h).
 */

#include "lib/cleanup.h"
#include "lib/id.h"
#include "lib/plan.h"

struct state;

/* Makes the folder when it is missing. -EBUSY: another agent uses it. Other -errno: no folder. */
int state_open(const char *folder, struct state **ret);
struct state *state_close(struct state *state);
DEFINE_CLEANUP(state, struct state *, state_close)

/*
 * The host id: @configured, else derived from the machine id (which itself stays secret), else one
 * made up and remembered. @state NULL: a made-up one lasts as long as the process. -errno.
 */
int state_get_host_id(const struct state *state, const char *configured, struct id *ret);
int state_get_boot_id(struct id *ret);

/* The collector's last plan and how many samples of it are taken; -ENOENT: none yet. -EBADMSG: the
 * file is damaged. @ret_plan is initialised on success only. */
int state_load_plan(
        const struct state *state, struct plan *ret_plan, uint64_t ret_taken[SOURCE_MAX_]);
int state_save_plan(
        const struct state *state, const struct plan *plan, const uint64_t taken[SOURCE_MAX_]);
