#pragma once
/* One sample of every source, for a person: JSON with units on standard output. */

#include <stdio.h>

#include "agentd/agent-config.h"

/* The number of sources that failed; the others are printed all the same. -ENOMEM. */
int once_print(const struct agent_config *config, FILE *file);
