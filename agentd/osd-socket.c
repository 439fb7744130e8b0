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
#define CAPACITY_KEPT (256u << 10) /* a larger buffer is not kept for the next answer */

void osd_socket_init(struct osd_socket *socket_)
{
        *socket_ = (struct osd_socket){.fd = -1};
}

void osd_socket_done(struct osd_socket *socket_)
{
        osd_socket_stop(socket_);
        free(socket_->answer);
        osd_socket_init(socket_);
}

void osd_socket_stop(struct osd_socket *socket_)
{
        fd_cleanup(&socket_->fd);
        socket_->fd = -1;
}

static int address_make(struct osd_socket *socket_, const char *path, struct sockaddr_un *ret)
{
        struct stat status;

        if (strlen(path) >= sizeof(ret->sun_path))
                return -ENAMETOOLONG;
        if (lstat(path, &status) < 0)
                return -errno;
        if (!S_ISSOCK(status.st_mode))
                return -ENOTSOCK;
        socket_->inode = status.st_ino;
        socket_->changed_ns =
                (uint64_t)status.st_ctim.tv_sec * 1000000000u + (uint64_t)status.st_ctim.tv_nsec;
        *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
        memcpy(ret->sun_path, path, strlen(path) + 1);
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

int osd_socket_ask(struct osd_socket *socket_, const char *path, const char *question)
{
        CLEANUP(fd) int fd = -1;
        struct sockaddr_un address;
        struct ucred credentials = {0};
        socklen_t length = sizeof(credentials);
        int r;

        osd_socket_stop(socket_);
        socket_->received = socket_->size = 0;
        r = address_make(socket_, path, &address);
        if (r < 0)
                return r;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        r = question_send(fd, question);
        if (r < 0)
                return r;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
                return -errno;
        socket_->peer = credentials.pid;
        socket_->fd = STEAL_LEAVING(fd, -1);
        return 0;
}

/* Room for an answer of @size bytes and a NUL. An unusually large buffer is given back after use.
 */
static int capacity_reach(struct osd_socket *socket_, size_t size)
{
        size_t capacity = (size / CAPACITY_STEP + 1) * CAPACITY_STEP;
        char *answer;

        if (size < socket_->capacity && socket_->capacity <= CAPACITY_KEPT)
                return 0;
        answer = realloc(socket_->answer, capacity);
        if (!answer)
                return -ENOMEM;
        socket_->answer = answer;
        socket_->capacity = capacity;
        return 0;
}

static int header_take(struct osd_socket *socket_)
{
        uint32_t size;

        memcpy(&size, socket_->header, sizeof(size));
        size = ntohl(size);
        if (size == 0)
                return -ENODATA;
        if (size > OSD_SOCKET_ANSWER_MAX)
                return -EMSGSIZE;
        socket_->size = size;
        return capacity_reach(socket_, size);
}

/* Bytes that may be read now without a wait; 0 at the end, -EAGAIN when there are none. */
static ssize_t some_read(int fd, void *ret, size_t size)
{
        ssize_t n = recv(fd, ret, size, 0);

        return n < 0 ? -errno : n;
}

static int answer_read(struct osd_socket *socket_)
{
        while (socket_->received < HEADER_BYTES + socket_->size) {
                size_t done = socket_->received - HEADER_BYTES;
                ssize_t n = some_read(socket_->fd, socket_->answer + done, socket_->size - done);

                if (n == -EAGAIN)
                        return 0;
                if (n <= 0)
                        return n < 0 ? (int)n : -ECONNRESET;
                socket_->received += (size_t)n;
        }
        socket_->answer[socket_->size] = '\0';
        osd_socket_stop(socket_);
        return 1;
}

int osd_socket_read(struct osd_socket *socket_)
{
        int r;

        while (socket_->received < HEADER_BYTES) {
                ssize_t n = some_read(socket_->fd, socket_->header + socket_->received,
                        HEADER_BYTES - socket_->received);

                if (n == -EAGAIN)
                        return 0;
                if (n <= 0)
                        return n < 0 ? (int)n : -ECONNRESET;
                socket_->received += (size_t)n;
                if (socket_->received < HEADER_BYTES)
                        continue;
                r = header_take(socket_);
                if (r < 0)
                        return r;
        }
        return answer_read(socket_);
}
