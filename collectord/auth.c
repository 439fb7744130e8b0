#include "collectord/auth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#define HASH_BYTES 32u
#define TOKEN_BYTES 32u /* random: guessing is hopeless, so that a fast hash is enough */
#define TOKENS_MAX 65536u
#define TOKEN_TEXT_MAX 512u

struct token {
        uint8_t hash[HASH_BYTES];
        enum api_role role;
        struct id host;
};

struct auth {
        size_t n;
        struct token *tokens; /* ascending by hash */
};

static int role_parse(const char *kind, enum api_role *ret)
{
        if (strcmp(kind, "agent") == 0)
                *ret = API_ROLE_AGENT;
        else if (strcmp(kind, "reader") == 0)
                *ret = API_ROLE_READER;
        else if (strcmp(kind, "operator") == 0)
                *ret = API_ROLE_OPERATOR;
        else
                return -EINVAL;
        return 0;
}

static int hash_parse(const char *text, uint8_t *ret)
{
        gnutls_datum_t hex = {(unsigned char *)text, (unsigned)strlen(text)};
        size_t size = HASH_BYTES;

        if (hex.size != 2 * HASH_BYTES || gnutls_hex_decode(&hex, ret, &size) < 0)
                return -EINVAL;
        return size == HASH_BYTES ? 0 : -EINVAL;
}

/* NULL, or what is wrong with the line. */
static const char *parse_line(char *line, struct token *ret)
{
        char *rest = NULL;
        char *kind = strtok_r(line, " \t\r\n", &rest);
        char *name = strtok_r(NULL, " \t\r\n", &rest);
        char *hash = strtok_r(NULL, " \t\r\n", &rest);

        *ret = (struct token){0};
        if (role_parse(kind, &ret->role) < 0)
                return "must begin with agent, reader or operator";
        if (!name || !hash || strtok_r(NULL, " \t\r\n", &rest))
                return "must have three words: kind, name and hash";
        if (ret->role == API_ROLE_AGENT &&
                (id_parse(name, &ret->host) < 0 || id_is_zero(&ret->host)))
                return "must have the agent's host id (a UUID) as its second word";
        if (hash_parse(hash, ret->hash) < 0)
                return "must end with a SHA-256 in 64 hexadecimal digits";
        return NULL;
}

static int add_line(struct auth *auth, char *line, const char **ret_reason)
{
        struct token token, *tokens;

        *ret_reason = NULL;
        line += strspn(line, " \t\r\n");
        if (!*line || *line == '#')
                return 0;
        *ret_reason = auth->n == TOKENS_MAX ? "is one token too many" : parse_line(line, &token);
        if (*ret_reason)
                return -EINVAL;
        /* Doubles in size: n is a power of two. */
        if ((auth->n & (auth->n - 1)) == 0) {
                tokens = reallocarray(auth->tokens, auth->n ? 2 * auth->n : 1, sizeof(*tokens));
                if (!tokens)
                        return -ENOMEM;
                auth->tokens = tokens;
        }
        auth->tokens[auth->n++] = token;
        return 0;
}

static int compare_token(const void *a, const void *b)
{
        return memcmp(((const struct token *)a)->hash, ((const struct token *)b)->hash, HASH_BYTES);
}

int auth_open(const char *path, struct auth **ret, char **ret_message)
{
        CLEANUP(auth) struct auth *auth = calloc(1, sizeof(*auth));
        CLEANUP(file) FILE *file = fopen(path, "re");
        CLEANUP(str) char *line = NULL;
        size_t size = 0;
        int r = file ? 0 : -errno;

        *ret_message = NULL;
        if (!auth)
                return -ENOMEM;
        for (unsigned number = 1; r == 0 && getline(&line, &size, file) >= 0; number++) {
                const char *reason;

                r = add_line(auth, line, &reason);
                if (r == -EINVAL &&
                        asprintf(ret_message, "%s:%u: the line %s", path, number, reason) < 0)
                        *ret_message = NULL;
        }
        if (r == 0 && ferror(file))
                r = -EIO;
        if (r < 0) {
                if (!*ret_message && asprintf(ret_message, "%s: %s", path, strerror(-r)) < 0)
                        *ret_message = NULL;
                return r;
        }
        if (auth->n > 0)
                qsort(auth->tokens, auth->n, sizeof(*auth->tokens), compare_token);
        *ret = STEAL(auth);
        return 0;
}

struct auth *auth_free(struct auth *auth)
{
        if (!auth)
                return NULL;
        free(auth->tokens);
        free(auth);
        return NULL;
}

/*
 * The search looks at a hash of what the caller sent, which nobody can steer: its time says nothing
 * about a token. The last word is a comparison in constant time all the same.
 */
enum api_role auth_check(const struct auth *auth, const char *authorization, struct id *ret_host)
{
        struct token key;
        const struct token *found;
        const char *text;
        size_t length;

        *ret_host = (struct id){0};
        if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
                return API_ROLE_NONE;
        text = authorization + 7 + strspn(authorization + 7, " ");
        length = strnlen(text, TOKEN_TEXT_MAX);
        if (length == 0 || length == TOKEN_TEXT_MAX || auth->n == 0 ||
                gnutls_hash_fast(GNUTLS_DIG_SHA256, text, length, key.hash) < 0)
                return API_ROLE_NONE;
        found = bsearch(&key, auth->tokens, auth->n, sizeof(key), compare_token);
        if (!found || gnutls_memcmp(found->hash, key.hash, HASH_BYTES) != 0)
                return API_ROLE_NONE;
        *ret_host = found->host;
        return found->role;
}

static void format_hex(const uint8_t *bytes, size_t n, char *ret)
{
        for (size_t i = 0; i < n; i++)
                sprintf(ret + 2 * i, "%02x", bytes[i]);
}

int auth_make_token(
        const char *kind, const char *name, char **ret_token, char **ret_line, char **ret_message)
{
        uint8_t random[TOKEN_BYTES], hash[HASH_BYTES];
        char text[2 * TOKEN_BYTES + 1], hash_text[2 * HASH_BYTES + 1];
        CLEANUP(str) char *token = NULL;
        enum api_role role;
        struct id host;

        *ret_message = NULL;
        if (role_parse(kind, &role) < 0)
                *ret_message = strdup("the kind of a token is agent, reader or operator");
        else if (role == API_ROLE_AGENT && (id_parse(name, &host) < 0 || id_is_zero(&host)))
                *ret_message = strdup("an agent's token needs the agent's host id, a UUID");
        else if (!*name || strpbrk(name, " \t\r\n"))
                *ret_message = strdup("the name of a token is one word");
        if (*ret_message)
                return -EINVAL;

        if (gnutls_rnd(GNUTLS_RND_KEY, random, sizeof(random)) < 0)
                return -EIO;
        format_hex(random, sizeof(random), text);
        if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text, strlen(text), hash) < 0)
                return -EIO;
        format_hex(hash, sizeof(hash), hash_text);
        token = strdup(text);
        if (!token || asprintf(ret_line, "%s %s %s", kind, name, hash_text) < 0)
                return -ENOMEM;
        *ret_token = STEAL(token);
        return 0;
}

int auth_check_certificate(const char *certificate, const char *key, char **ret_message)
{
        gnutls_datum_t certificate_datum = {
                (unsigned char *)certificate, (unsigned)strlen(certificate)};
        gnutls_datum_t key_datum = {(unsigned char *)key, (unsigned)strlen(key)};
        gnutls_certificate_credentials_t credentials;
        int code;

        *ret_message = NULL;
        if (gnutls_certificate_allocate_credentials(&credentials) < 0)
                return -ENOMEM;
        code = gnutls_certificate_set_x509_key_mem(
                credentials, &certificate_datum, &key_datum, GNUTLS_X509_FMT_PEM);
        gnutls_certificate_free_credentials(credentials);
        if (code >= 0)
                return 0;
        *ret_message = strdup(gnutls_strerror(code));
        return -EINVAL;
}
