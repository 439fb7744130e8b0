#pragma once
/* How a plan is shown: whose it is, its sources, and which agents have it in force. */

#include <jansson.h>

#include "cli/command.h"

/* @plan as the collector answers it; @asked is how the user calls its host, or NULL. enum status.
 */
int plan_print(struct invocation *invocation, const json_t *plan, const char *asked);
