#include "agentd/osd-socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/cleanup.h"

#define HEADER_BYTES 4u
#define CAPACITY_STEP 16384u
#define READS_MAX                                                                                  \
        16u /* at one look: who sends faster than it is read keeps nobody from the others */
#define CAPACITY_FIRST 24576u /* a dump has about 20 KB */

void osd_socket_init(struct osd_socket *socket_)
{
        *socket_ = (struct osd_socket){.fd = -1};
}

void osd_socket_done(struct osd_socket *socket_)
{
        osd_socket_stop(socket_);
        osd_room_done(&socket_->room);
        osd_socket_init(socket_);
}

void osd_room_done(struct osd_room *room)
{
        free(room->buffer);
        *room = (struct osd_room){0};
}

static void room_swap(struct osd_room *a, struct osd_room *b)
{
        struct osd_room before = *a;

        *a = *b;
        *b = before;
}

void osd_socket_leave(struct osd_socket *socket_, struct osd_room *room)
{
        if (room->capacity < socket_->room.capacity)
                room_swap(room, &socket_->room);
        osd_room_done(&socket_->room);
        socket_->received = socket_->size = 0;
}

void osd_socket_stop(struct osd_socket *socket_)
{
        fd_cleanup(&socket_->fd);
        socket_->fd = -1;
}

/* Who lies at @path; whatever is no socket is not opened. */
static int path_look(struct osd_socket *socket_, const char *path)
{
        struct stat status;

        if (lstat(path, &status) < 0)
                return -errno;
        if (!S_ISSOCK(status.st_mode))
                return -ENOTSOCK;
        socket_->inode = status.st_ino;
        socket_->changed_ns =
                (uint64_t)status.st_ctim.tv_sec * 1000000000u + (uint64_t)status.st_ctim.tv_nsec;
        return 0;
}

static int question_send(int fd, const char *question)
{
        size_t length = strlen(question) + 1;
        ssize_t n = send(fd, question, length, MSG_NOSIGNAL);

        if (n < 0)
                return -errno;
        /* A question is shorter than any socket buffer. */
        return (size_t)n == length ? 0 : -EAGAIN;
}

static int peer_read(int fd, pid_t *ret)
{
        struct ucred credentials = {0};
        socklen_t length = sizeof(credentials);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
                return -errno;
        *ret = credentials.pid;
        return 0;
}

static int address_connect(int fd, const char *path)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);
        return connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

int osd_socket_ask(
        struct osd_socket *socket_, const char *path, pid_t expected, const char *question)
{
        CLEANUP(fd) int fd = -1;
        int r;

        osd_socket_stop(socket_);
        socket_->received = socket_->size = 0;
        r = expected == 0 ? path_look(socket_, path) : 0;
        if (r < 0)
                return r;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        r = address_connect(fd, path);
        if (r < 0 && expected != 0 && path_look(socket_, path) == -ENOTSOCK)
                return -ENOTSOCK;
        if (r < 0)
                return r;
        r = peer_read(fd, &socket_->peer);
        if (r == 0 && expected != 0 && socket_->peer != expected)
                r = path_look(socket_, path);
        if (r < 0)
                return r;
        r = question_send(fd, question);
        if (r < 0)
                return r;
        socket_->fd = STEAL_LEAVING(fd, -1);
        return 0;
}

/* For the length, an answer of @size bytes and a NUL. */
static int room_reach(struct osd_room *room, size_t size)
{
        size_t capacity = ((HEADER_BYTES + size) / CAPACITY_STEP + 1) * CAPACITY_STEP;
        char *buffer;

        if (capacity <= room->capacity)
                return 0;
        buffer = realloc(room->buffer, capacity);
        if (!buffer)
                return -ENOMEM;
        room->buffer = buffer;
        room->capacity = capacity;
        return 0;
}

static int header_take(struct osd_socket *socket_)
{
        uint32_t size;

        memcpy(&size, socket_->room.buffer, sizeof(size));
        size = ntohl(size);
        if (size == 0)
                return -ENODATA;
        if (size > OSD_SOCKET_ANSWER_MAX)
                return -EMSGSIZE;
        socket_->size = size;
        return room_reach(&socket_->room, size);
}

/* Since the length comes first, nearly every answer is one call: there is room for one as before.
 */
static int answer_read(struct osd_socket *socket_)
{
        struct osd_room *room = &socket_->room;
        ssize_t n;
        int r;

        r = room_reach(room, CAPACITY_FIRST);
        for (unsigned i = 0; r == 0 && i < READS_MAX; i++) {
                n = recv(socket_->fd, room->buffer + socket_->received,
                        room->capacity - 1 - socket_->received, 0);
                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                if (n == 0)
                        return -ECONNRESET;
                socket_->received += (size_t)n;
                if (socket_->received >= HEADER_BYTES && socket_->size == 0)
                        r = header_take(socket_);
                if (r < 0 || socket_->size == 0 || socket_->received < HEADER_BYTES + socket_->size)
                        continue;
                if (socket_->received > HEADER_BYTES + socket_->size)
                        return -EPROTO;
                room->buffer[socket_->received] = '\0';
                osd_socket_stop(socket_);
                return 1;
        }
        return r;
}

int osd_socket_read(struct osd_socket *socket_, struct osd_room *room)
{
        int r;

        if (socket_->received == 0)
                room_swap(room, &socket_->room);
        r = answer_read(socket_);
        if (r < 0 || socket_->received == 0)
                osd_socket_leave(socket_, room);
        return r;
}

const char *osd_socket_get_answer(const struct osd_socket *socket_, size_t *ret_size)
{
        *ret_size = socket_->size;
        return socket_->room.buffer + HEADER_BYTES;
}
