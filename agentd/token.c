#include "agentd/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/cleanup.h"

#define TOKEN_MAX 4096u

/* The first word of the file. */
static int read_token(const char *path, char *ret)
{
        CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = read(fd, ret, TOKEN_MAX - 1);
        if (n < 0)
                return -errno;
        ret[n] = '\0';
        ret[strcspn(ret, " \t\r\n")] = '\0';
        for (const char *c = ret; *c; c++)
                if (*c <= ' ' || *c > '~')
                        return -EINVAL;
        return ret[0] ? 0 : -EINVAL;
}

int token_read_header(const char *path, char **ret)
{
        char token[TOKEN_MAX];
        int r;

        r = read_token(path, token);
        if (r < 0)
                return r;
        r = asprintf(ret, "Authorization: Bearer %s", token);
        explicit_bzero(token, sizeof(token));
        return r < 0 ? -ENOMEM : 0;
}

char *token_free(char *header)
{
        if (header)
                explicit_bzero(header, strlen(header));
        free(header);
        return NULL;
}
