#pragma once
/*
 * One sentence for the person who wrote what we refuse. The caller of the refusing function frees
 * it; it may be NULL when there was no memory for it.
 */

/* Formats into *ret_message. Returns -EINVAL, so that checks end with `return message_refuse(...)`,
 * or -ENOMEM. */
__attribute__((format(printf, 2, 3))) int message_refuse(
        char **ret_message, const char *format, ...);

/* How many bytes of @text to quote ("%.*s"): at most 64, and never half a UTF-8 character, so that
 * the sentence can stand in a JSON document. */
int message_clip(const char *text);
