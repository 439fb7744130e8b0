#include "collectord/encoding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

#define ZSTD_LEVEL 1
#define GZIP_LEVEL 1 /* four times as fast as the usual 6, and 10 % larger */
#define GZIP_WINDOW (15 + 16)

enum encoding { ENCODING_NONE, ENCODING_GZIP, ENCODING_ZSTD };

/* "gzip", "gzip;q=0.5" but not "gzip;q=0". *ret_rest: behind the comma. */
static bool take_coding(const char *list, const char **ret_name, size_t *ret_length,
        bool *ret_wanted, const char **ret_rest)
{
        const char *quality;
        size_t n;

        list += strspn(list, " \t,");
        if (!*list)
                return false;
        n = strcspn(list, ",");
        *ret_name = list;
        *ret_length = strcspn(list, " \t;,");
        quality = memmem(list, n, "q=", 2);
        *ret_wanted = !quality || strtod(quality + 2, NULL) > 0;
        *ret_rest = list + n;
        return true;
}

static enum encoding choose(const char *accept)
{
        enum encoding best = ENCODING_NONE;
        const char *name;
        size_t length;
        bool wanted;

        while (accept && take_coding(accept, &name, &length, &wanted, &accept)) {
                if (!wanted)
                        continue;
                if (length == 4 && strncasecmp(name, "zstd", 4) == 0)
                        best = ENCODING_ZSTD;
                if (length == 4 && strncasecmp(name, "gzip", 4) == 0 && best == ENCODING_NONE)
                        best = ENCODING_GZIP;
        }
        return best;
}

static char *compress_zstd(const char *body, size_t size, size_t *ret_size)
{
        size_t room = ZSTD_compressBound(size);
        char *packed = malloc(room);

        if (!packed)
                return NULL;
        *ret_size = ZSTD_compress(packed, room, body, size, ZSTD_LEVEL);
        if (!ZSTD_isError(*ret_size))
                return packed;
        free(packed);
        return NULL;
}

static char *compress_gzip(const char *body, size_t size, size_t *ret_size)
{
        z_stream stream = {0};
        char *packed;
        size_t room;
        int r;

        if (size > UINT32_MAX / 2 || deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8,
                                             Z_DEFAULT_STRATEGY) != Z_OK)
                return NULL;
        room = deflateBound(&stream, size);
        packed = malloc(room);
        stream.next_in = (Bytef *)(uintptr_t)body;
        stream.avail_in = (uInt)size;
        stream.next_out = (Bytef *)packed;
        stream.avail_out = (uInt)room;
        r = packed ? deflate(&stream, Z_FINISH) : Z_MEM_ERROR;
        *ret_size = stream.total_out;
        deflateEnd(&stream);
        if (r == Z_STREAM_END)
                return packed;
        free(packed);
        return NULL;
}

/* RFC 9110, 13.1.2: a list of tags, or *; W/ makes no difference. */
static bool is_known(const char *known, const char *tag)
{
        size_t length = strlen(tag);

        if (!known)
                return false;
        for (const char *p = known; *p;) {
                size_t n;

                p += strspn(p, " \t,");
                n = strcspn(p, " \t,");
                if (n == 1 && *p == '*')
                        return true;
                if (n >= 2 && strncmp(p, "W/", 2) == 0) {
                        p += 2;
                        n -= 2;
                }
                if (n == length && memcmp(p, tag, n) == 0)
                        return true;
                p += n;
        }
        return false;
}

static void compress_body(enum encoding encoding, struct api_response *response)
{
        size_t size;
        char *packed = encoding == ENCODING_ZSTD
                               ? compress_zstd(response->body, response->body_size, &size)
                               : compress_gzip(response->body, response->body_size, &size);

        if (!packed)
                return;
        free(response->body);
        response->body = packed;
        response->body_size = size;
        api_add_header(response, "Content-Encoding", encoding == ENCODING_ZSTD ? "zstd" : "gzip");
}

void encoding_apply(const struct api_request *request, struct api_response *response)
{
        enum encoding encoding = choose(api_header(request, "accept-encoding"));
        char *tag = response->tag + strlen("W/");

        if (response->status != 200 || response->body_size == 0)
                return;
        /* Weak, since it is the same for the compressed answer and for the plain one. */
        snprintf(response->tag, sizeof(response->tag), "W/\"%016llx\"",
                (unsigned long long)XXH3_64bits(response->body, response->body_size));
        api_add_header(response, "Cache-Control", "private, no-cache");
        api_add_header(response, "Vary", "Accept-Encoding");
        if (is_known(api_header(request, "if-none-match"), tag)) {
                free(response->body);
                response->body = NULL;
                response->body_size = 0;
                response->status = 304;
        } else if (encoding != ENCODING_NONE && response->body_size >= ENCODING_BYTES_MIN) {
                compress_body(encoding, response);
        }
}
