#pragma once
/*
 * The last thing that happens to an answer, on the worker that made it: it gets a tag, by which a
 * caller knows what it has already, and is compressed as the caller likes it (zstd before gzip).
 * The one file that knows zlib.
 */

#include "collectord/api.h"

/* Below it the head is longer than what compression saves. */
#define ENCODING_BYTES_MIN 1024u

/*
 * Looks at If-None-Match and Accept-Encoding. A 200 becomes a 304 without body when the caller has
 * it. Where there is no memory to compress, the answer goes out as it is.
 */
void encoding_apply(const struct api_request *request, struct api_response *response);
