#pragma once
/* The facts of the host: who it is, and what each source said. */

#include "agentd/sampler.h"

/* The document of docs/api.md ("PUT facts"), compact, with sorted keys; freed by the caller.
 * -ENOMEM. */
int facts_merge(const struct id *host, const struct sampler *sampler, char **ret);
