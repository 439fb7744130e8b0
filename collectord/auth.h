#pragma once
/*
 * Who may do what. The token file has one line a token: "KIND NAME HASH", where KIND is agent,
 * reader or operator, NAME is the agent's host id or any word, and HASH is the SHA-256 of the token
 * in hexadecimal. Tokens themselves are never stored or logged.
 */

#include "collectord/api.h"

struct auth;

/* *ret_message: one sentence naming file and line, freed by the caller. -EINVAL, -ENOMEM, or what
 * reading gave. */
int auth_open(const char *path, struct auth **ret, char **ret_message);
struct auth *auth_free(struct auth *auth);
DEFINE_CLEANUP(auth, struct auth *, auth_free)

/* The role of an "Authorization" header's value (may be NULL), and the host of an agent's. */
enum api_role auth_check(const struct auth *auth, const char *authorization, struct id *ret_host);

/*
 * A new random token and the line of the token file that lets it in; both freed by the caller.
 * @name is the host id of an agent. -EINVAL: *ret_message says what is wrong.
 */
int auth_make_token(
        const char *kind, const char *name, char **ret_token, char **ret_line, char **ret_message);

/* Whether certificate and key (PEM) can be read and belong to each other. -EINVAL with
 * *ret_message, without file names. */
int auth_check_certificate(const char *certificate, const char *key, char **ret_message);
