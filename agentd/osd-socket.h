#pragma once
/*
 * One question to an OSD's admin socket, without waiting: JSON and a NUL go out, a length of four
 * bytes (big-endian) and that many bytes come back. The daemon answers one question a connection.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OSD_SOCKET_ANSWER_MAX (8u << 20) /* a hundred times the largest "perf dump" seen */

struct osd_socket {
        int fd; /* to be polled for input while it is >= 0 */
        pid_t peer;
        uint64_t inode; /* with the time of change, tells a socket from its successor */
        uint64_t changed_ns;
        unsigned char header[4];
        size_t received; /* of the answer, its length included */
        size_t size;     /* of the answer, once its length is there */
        char *answer;    /* ends with a NUL */
        size_t capacity;
};

void osd_socket_init(struct osd_socket *socket);
void osd_socket_done(struct osd_socket *socket);

/*
 * Connects and asks. The daemon's process id is known then (0 when it is not to be seen from here).
 * -ENOTSOCK: something else is at @path; it is not opened. -EAGAIN: too many wait there already.
 */
int osd_socket_ask(struct osd_socket *socket, const char *path, const char *question);

/*
 * Reads what is there. 0: more must come. 1: the answer is complete, the connection closed.
 * -EMSGSIZE: the answer would be longer than OSD_SOCKET_ANSWER_MAX. -ENODATA: it is empty.
 * -ECONNRESET: it ended too early.
 */
int osd_socket_read(struct osd_socket *socket);

/* Gives up the question under way, if there is one. */
void osd_socket_stop(struct osd_socket *socket);
