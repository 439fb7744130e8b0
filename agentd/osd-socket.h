#pragma once
/*
 * One question to an OSD's admin socket, without waiting: JSON and a NUL go out, a length of four
 * bytes (big-endian) and that many bytes come back. The daemon answers one question a connection.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OSD_SOCKET_ANSWER_MAX (8u << 20) /* a hundred times the largest "perf dump" seen */

/*
 * What answers are read into, shared by the sockets of one thread: nearly every answer is there as
 * a whole when it is looked at, and is done with before the next one. One that is not takes the
 * memory along until it is complete.
 */
struct osd_room {
        char *buffer;
        size_t capacity;
};

void osd_room_done(struct osd_room *room);

struct osd_socket {
        int fd; /* a question is under way while it is >= 0 */
        pid_t peer;
        uint64_t inode; /* with the time of change, tells a socket from its successor */
        uint64_t changed_ns;
        struct osd_room room; /* length, answer, NUL; empty when nothing is there */
        size_t received;      /* of the length and the answer */
        size_t size;          /* of the answer, once its length is there */
};

void osd_socket_init(struct osd_socket *socket);
void osd_socket_done(struct osd_socket *socket);

/*
 * Connects and asks. The daemon's process id is known then (0 when it is not to be seen from here).
 * -ENOTSOCK: something else is at @path; it is not opened. -EAGAIN: too many wait there already.
 * @expected is the process that answered before, or 0: as long as it is the one behind the socket,
 * nobody looks at the path again, and inode and changed_ns stay.
 */
int osd_socket_ask(
        struct osd_socket *socket, const char *path, pid_t expected, const char *question);

/*
 * Reads what is there, into @room. 0: more must come. 1: the answer is complete, the connection
 * closed; osd_socket_leave when it is done with.
 * -EMSGSIZE: the answer would be longer than OSD_SOCKET_ANSWER_MAX. -ENODATA: it is empty.
 * -EPROTO: more came than was announced. -ECONNRESET: it ended too early.
 */
int osd_socket_read(struct osd_socket *socket, struct osd_room *room);

/* The complete answer; a NUL follows. Valid until osd_socket_leave. */
const char *osd_socket_get_answer(const struct osd_socket *socket, size_t *ret_size);

/* Gives the memory of an answer back to @room. */
void osd_socket_leave(struct osd_socket *socket, struct osd_room *room);
/* Gives up the question under way, if there is one. */
void osd_socket_stop(struct osd_socket *socket);
