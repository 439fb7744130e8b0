#include "cli/client.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <curl/curl.h>

#include "cli/json.h"

#define PAGE_ROWS "1000"
#define PAGES_MAX 1000 /* a million rows: beyond, a server repeats its cursor */

struct client {
        CURL *curl;
        char *url; /* without a trailing slash */
        struct curl_slist *headers;
        int stop_fd;
};

struct answer {
        char *bytes;
        size_t size;
        bool too_large;
};

static void curl_text_cleanup(char **text)
{
        curl_free(*text);
}

static void answer_cleanup(struct answer *answer)
{
        free(answer->bytes);
}

__attribute__((format(printf, 3, 4))) static int fail(
        char **ret_message, int error, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        if (vasprintf(ret_message, format, arguments) < 0) {
                *ret_message = NULL;
                error = -ENOMEM;
        }
        va_end(arguments);
        return error;
}

static int add_header(struct curl_slist **list, const char *text)
{
        struct curl_slist *longer = curl_slist_append(*list, text);

        if (!longer)
                return -ENOMEM;
        *list = longer;
        return 0;
}

static int set_token(struct client *client, const char *token, char **ret_message)
{
        CLEANUP(str) char *header = NULL;

        /* A line break would begin another header; the token itself never goes into a message. */
        for (const char *p = token; *p; p++)
                if (!isgraph((unsigned char)*p))
                        return fail(ret_message, -EINVAL,
                                "the token contains a blank or a control character");
        if (asprintf(&header, "Authorization: Bearer %s", token) < 0) {
                header = NULL;
                return -ENOMEM;
        }
        return add_header(&client->headers, header);
}

static int set_url(struct client *client, const char *url, char **ret_message)
{
        size_t length = strlen(url);

        if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
                return fail(ret_message, -EINVAL,
                        "the collector's address must begin with http:// or https://, but is '%s'",
                        url);
        while (length > 0 && url[length - 1] == '/')
                length--;
        client->url = strndup(url, length);
        return client->url ? 0 : -ENOMEM;
}

static size_t take_bytes(char *bytes, size_t size, size_t count, void *userdata)
{
        struct answer *answer = userdata;
        char *longer;

        size *= count;
        answer->too_large = size > CLIENT_ANSWER_MAX - answer->size;
        if (answer->too_large)
                return 0;
        longer = realloc(answer->bytes, answer->size + size + 1);
        if (!longer)
                return 0;
        answer->bytes = longer;
        memcpy(answer->bytes + answer->size, bytes, size);
        answer->size += size;
        answer->bytes[answer->size] = '\0';
        return size;
}

/* curl calls this at least once a second, also while nothing arrives. */
static int watch_stop(
        void *userdata, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
        const struct client *client = userdata;
        struct pollfd pollfd = {.fd = client->stop_fd, .events = POLLIN};

        (void)down_total;
        (void)down;
        (void)up_total;
        (void)up;
        return client->stop_fd >= 0 && poll(&pollfd, 1, 0) > 0;
}

static int set_options(struct client *client, const char *ca_file)
{
        CURL *curl = client->curl;

        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        /* The collector is a neighbour: a proxy for the web is never on the way to it. */
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
        curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
        curl_easy_setopt(curl, CURLOPT_USERAGENT, "strata/" STRATA_VERSION);
        curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CLIENT_CONNECT_SECONDS);
        curl_easy_setopt(curl, CURLOPT_TIMEOUT, CLIENT_ANSWER_SECONDS);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, watch_stop);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client);
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        if (ca_file && curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file) != CURLE_OK)
                return -ENOMEM;
        if (curl_easy_setopt(curl, CURLOPT_HTTPHEADER, client->headers) != CURLE_OK)
                return -ENOMEM;
        return 0;
}

int client_new(const struct client_options *options, struct client **ret, char **ret_message)
{
        CLEANUP(client) struct client *client = calloc(1, sizeof(*client));
        int r;

        *ret_message = NULL;
        if (!client)
                return -ENOMEM;
        client->stop_fd = options->stop_fd;
        client->curl = curl_easy_init();
        if (!client->curl)
                return -ENOMEM;
        r = set_url(client, options->url, ret_message);
        if (r < 0)
                return r;
        r = add_header(&client->headers, "Accept: application/json, application/problem+json");
        if (r < 0)
                return r;
        r = add_header(&client->headers, "Content-Type: application/json");
        if (r < 0)
                return r;
        if (options->token) {
                r = set_token(client, options->token, ret_message);
                if (r < 0)
                        return r;
        }
        r = set_options(client, options->ca_file);
        if (r < 0)
                return r;
        *ret = STEAL(client);
        return 0;
}

struct client *client_free(struct client *client)
{
        if (!client)
                return NULL;
        curl_easy_cleanup(client->curl);
        curl_slist_free_all(client->headers);
        free(client->url);
        free(client);
        return NULL;
}

/* URL, path and the parameters that have a value. */
static int make_url(const struct client *client, const char *path,
        const struct client_parameter *parameters, char **ret)
{
        CLEANUP(str) char *url = NULL;

        if (asprintf(&url, "%s/api/v1%s", client->url, path) < 0) {
                url = NULL;
                return -ENOMEM;
        }
        for (bool first = true; parameters && parameters->name; parameters++) {
                CLEANUP(curl_text) char *value = NULL;
                char *longer;

                if (!parameters->value)
                        continue;
                value = curl_easy_escape(client->curl, parameters->value, 0);
                if (!value || asprintf(&longer, "%s%c%s=%s", url, first ? '?' : '&',
                                      parameters->name, value) < 0)
                        return -ENOMEM;
                free(url);
                url = longer;
                first = false;
        }
        *ret = STEAL(url);
        return 0;
}

/* A sentence for a request that got no answer. */
static int explain(const struct client *client, CURLcode code, const struct answer *answer,
        const char *reason, char **ret_message)
{
        if (!*reason)
                reason = curl_easy_strerror(code);
        switch (code) {
        case CURLE_ABORTED_BY_CALLBACK:
                return -ECANCELED;
        case CURLE_OUT_OF_MEMORY:
                return -ENOMEM;
        case CURLE_COULDNT_RESOLVE_HOST:
                return fail(ret_message, -EHOSTUNREACH,
                        "the host of %s is unknown. Check the address (--url or STRATA_URL).",
                        client->url);
        case CURLE_COULDNT_CONNECT:
                return fail(ret_message, -ECONNREFUSED,
                        "no collector answers at %s (%s).\nCheck there: systemctl status "
                        "strata-collectord. For another address: --url or STRATA_URL.",
                        client->url, reason);
        case CURLE_OPERATION_TIMEDOUT:
                return fail(ret_message, -ETIMEDOUT,
                        "the collector at %s did not answer in time (%s).", client->url, reason);
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
                return fail(ret_message, -EKEYREJECTED,
                        "the certificate of %s is not trusted (%s).\nGive the authority that "
                        "signed it: --ca-file.",
                        client->url, reason);
        case CURLE_WRITE_ERROR:
                if (answer->too_large)
                        return fail(ret_message, -EMSGSIZE,
                                "the answer of %s is larger than %u MiB; ask for less (--from, "
                                "--step).",
                                client->url, CLIENT_ANSWER_MAX >> 20);
                return -ENOMEM;
        default:
                return fail(
                        ret_message, -EIO, "the request to %s failed: %s.", client->url, reason);
        }
}

/* The sentence of a problem document. */
static int explain_status(
        const struct client *client, long status, const json_t *json, char **ret_message)
{
        const char *detail = json_string_value(json_object_get(json, "detail"));
        int error = status == 404 ? -ENOENT : -EPROTO;

        if (!detail)
                detail = json_string_value(json_object_get(json, "title"));
        if (!detail)
                return fail(ret_message, error,
                        "%s answered with status %ld and not as a strata collector does. Check the "
                        "address (--url or STRATA_URL).",
                        client->url, status);
        if (status == 401)
                return fail(ret_message, error,
                        "%s.\nGive a reader's or operator's token: --token-file, STRATA_TOKEN_FILE "
                        "or STRATA_TOKEN.",
                        detail);
        return fail(ret_message, error, "%s", detail);
}

static int read_answer(const struct client *client, long status, const struct answer *answer,
        json_t **ret, char **ret_message)
{
        CLEANUP(json) json_t *json = NULL;
        json_error_t error;
        int r;

        if (answer->size > 0)
                json = json_loadb(answer->bytes, answer->size, 0, &error);
        r = json ? json_clean(json) : 0;
        if (r < 0)
                return r;
        if (status < 200 || status > 299)
                return explain_status(client, status, json, ret_message);
        if (!json && answer->size > 0)
                return fail(ret_message, -EPROTO,
                        "%s answered with something that is not JSON (%s). Check the address "
                        "(--url or STRATA_URL).",
                        client->url, error.text);
        *ret = STEAL(json);
        return 0;
}

/* *ret_status is written when there was an answer. */
static int perform(struct client *client, const char *method, const char *path,
        const struct client_parameter *parameters, const char *body, struct answer *answer,
        long *ret_status, char **ret_message)
{
        CLEANUP(str) char *url = NULL;
        char reason[CURL_ERROR_SIZE] = "";
        CURLcode code;
        int r;

        *ret_message = NULL;
        r = make_url(client, path, parameters, &url);
        if (r < 0)
                return r;
        curl_easy_setopt(client->curl, CURLOPT_ERRORBUFFER, reason);
        curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, answer);
        if (curl_easy_setopt(client->curl, CURLOPT_URL, url) != CURLE_OK ||
                curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, method) != CURLE_OK)
                return -ENOMEM;
        if (body)
                curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, body);
        else
                curl_easy_setopt(client->curl, CURLOPT_HTTPGET, 1L);

        code = curl_easy_perform(client->curl);
        /* They point into this frame and the caller's. */
        curl_easy_setopt(client->curl, CURLOPT_ERRORBUFFER, NULL);
        curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, NULL);
        if (code != CURLE_OK)
                return explain(client, code, answer, reason, ret_message);
        curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, ret_status);
        return 0;
}

int client_request(struct client *client, const char *method, const char *path,
        const struct client_parameter *parameters, const json_t *body, json_t **ret,
        char **ret_message)
{
        CLEANUP(answer) struct answer answer = {0};
        CLEANUP(str) char *text = NULL;
        long status = 0;
        int r;

        *ret_message = NULL;
        if (body) {
                text = json_dumps(body, JSON_COMPACT);
                if (!text)
                        return -ENOMEM;
        }
        r = perform(client, method, path, parameters, text, &answer, &status, ret_message);
        if (r < 0)
                return r;
        return read_answer(client, status, &answer, ret, ret_message);
}

int client_text(struct client *client, const char *path, const struct client_parameter *parameters,
        char **ret, char **ret_message)
{
        CLEANUP(answer) struct answer answer = {0};
        CLEANUP(json) json_t *json = NULL;
        long status = 0;
        int r;

        r = perform(client, "GET", path, parameters, NULL, &answer, &status, ret_message);
        if (r < 0)
                return r;
        if (status != 200)
                return read_answer(client, status, &answer, &json, ret_message);
        if (!answer.bytes)
                answer.bytes = strdup("");
        if (!answer.bytes)
                return -ENOMEM;
        json_clean_lines(answer.bytes);
        *ret = STEAL(answer.bytes);
        return 0;
}

int client_list(struct client *client, const char *path, const char *key, const char *cluster,
        json_t **ret, char **ret_message)
{
        CLEANUP(json) json_t *all = json_array();
        CLEANUP(str) char *cursor = NULL;

        *ret_message = NULL;
        for (int pages = 0; all && pages < PAGES_MAX; pages++) {
                const struct client_parameter parameters[] = {
                        {"limit", PAGE_ROWS}, {"cluster", cluster}, {"cursor", cursor}, {NULL}};
                CLEANUP(json) json_t *page = NULL;
                const char *next;
                int r;

                r = client_request(client, "GET", path, parameters, NULL, &page, ret_message);
                if (r < 0)
                        return r;
                if (!json_is_array(json_object_get(page, key)))
                        return fail(ret_message, -EPROTO,
                                "the answer of %s to %s has no list '%s'.", client->url, path, key);
                if (json_array_extend(all, json_object_get(page, key)) < 0)
                        return -ENOMEM;
                next = json_string_value(json_object_get(page, "cursor"));
                if (!next) {
                        *ret = STEAL(all);
                        return 0;
                }
                free(cursor);
                cursor = strdup(next);
                if (!cursor)
                        return -ENOMEM;
        }
        if (!all)
                return -ENOMEM;
        return fail(ret_message, -EPROTO, "the list %s of %s does not end.", path, client->url);
}
