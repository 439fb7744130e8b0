#pragma once
/*
 * One HTTP request at a time to the collector, by curl, on the caller's sd-event loop: nothing here
 * ever blocks, names are resolved on curl's own thread. Knows no retries: sender.c decides.
 */

#include <stddef.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "lib/cleanup.h"

#define UPLOAD_CONNECT_TIMEOUT_MS 5000l
#define UPLOAD_TIMEOUT_MS 30000l
#define UPLOAD_ANSWER_MAX (256u << 10) /* a plan that names all 1,024 metrics of each source */

struct upload_options {
        const char *url;     /* "https://collector:7440", without a path */
        const char *ca_file; /* "" for the system's */
};

/* Strings and body stay the caller's and must stay as they are until the answer. */
struct upload_request {
        const char *method; /* GET, POST, PUT */
        const char *path;
        const char *const *headers; /* "Name: value", NULL at the end */
        const void *body;           /* NULL: none */
        size_t size;
};

struct upload_answer {
        /* HTTP status; or negative: -ETIMEDOUT, -ECONNREFUSED, -EHOSTUNREACH (name or address),
         * -EKEYREJECTED (the certificate is not trusted), -EMSGSIZE (the answer is too long), -EIO.
         */
        int status;
        const char *body; /* NUL-terminated */
        size_t size;
        uint64_t retry_after_us; /* 0: not said */
        const char *reason;      /* one line, for a person, when status is negative */
};

struct upload;

/* @done is called once for each request, from the loop; it may start the next one. */
int upload_new(sd_event *event, const struct upload_options *options,
        void (*done)(void *userdata, const struct upload_answer *answer), void *userdata,
        struct upload **ret);
/* A request under way is given up without an answer. */
struct upload *upload_free(struct upload *upload);
DEFINE_CLEANUP(upload, struct upload *, upload_free)

/* -EBUSY while one is under way. -ENOMEM. */
int upload_start(struct upload *upload, const struct upload_request *request);
