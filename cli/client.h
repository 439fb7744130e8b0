#pragma once
/*
 * The REST client: one request at a time, JSON in and out, over a connection that is kept. The only
 * file of the command line that knows curl. Every failure comes with a sentence for the operator
 * that says what to check.
 */

#include <stddef.h>

#include <jansson.h>

#include "lib/cleanup.h"

#define CLIENT_ANSWER_MAX (256u << 20) /* 11,000 windows of some hundred series */
#define CLIENT_CONNECT_SECONDS 10L
#define CLIENT_ANSWER_SECONDS 120L

struct client_options {
        const char *url;     /* "http://127.0.0.1:7440", a trailing slash is accepted */
        const char *token;   /* NULL when there is none */
        const char *ca_file; /* NULL: the system's certificates */
        int stop_fd;         /* a request is given up when this is readable; -1 for never */
};

struct client_parameter {
        const char *name;
        const char *value; /* NULL: the parameter is left out */
};

struct client;

/* Copies what it keeps of @options. -EINVAL: the address or the token is none, *ret_message says
 * why. -ENOMEM. */
int client_new(const struct client_options *options, struct client **ret, char **ret_message);
struct client *client_free(struct client *client);
DEFINE_CLEANUP(client, struct client *, client_free)

/*
 * @path is as in docs/api.md, after /api/v1 ("/ladder"); @parameters ends with a row whose name is
 * NULL, or is NULL. @body is NULL but for PUT. *ret is a new reference, or NULL for an answer
 * without a body (204). Control characters in its texts are replaced, because they end on a
 * terminal.
 * -ECONNREFUSED: nobody listens. -EPROTO: an error status or an answer that is not JSON;
 * -ENOENT for 404. -ECANCELED: stop_fd. Others as they come. *ret_message is set but for -ENOMEM
 * and -ECANCELED; the caller frees.
 */
int client_request(struct client *client, const char *method, const char *path,
        const struct client_parameter *parameters, const json_t *body, json_t **ret,
        char **ret_message);

/* GET of what is text and no JSON; the caller frees *ret. Control characters but line ends are
 * replaced. Errors as client_request. */
int client_text(struct client *client, const char *path, const struct client_parameter *parameters,
        char **ret, char **ret_message);

/* Reads all pages of the list @key ("agents") into one array. Errors as client_request. */
int client_list(struct client *client, const char *path, const char *key, const char *cluster,
        json_t **ret, char **ret_message);
