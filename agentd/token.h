#pragma once
/* The agent's bearer token, from a file that an operator may replace. */

/*
 * The header "Authorization: Bearer TOKEN" with the first word of the file @path; the caller wipes
 * and frees it. -EINVAL: nothing in it that can stand in a header. -ENOMEM, other -errno.
 */
int token_read_header(const char *path, char **ret);
/* Wipes and frees; NULL is accepted. */
char *token_free(char *header);
