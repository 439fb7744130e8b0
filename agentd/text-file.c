#include "agentd/text-file.h"

#include <errno.h>
#include <fcntl.h>

#include "lib/cleanup.h"

ssize_t text_file_read_again(int fd, char *ret, size_t size)
{
        ssize_t n = pread(fd, ret, size - 1, 0);

        if (n < 0)
                return -errno;
        ret[n] = '\0';
        return n;
}

ssize_t text_file_read(int folder, const char *path, char *ret, size_t size)
{
        CLEANUP(fd) int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        return fd < 0 ? -errno : text_file_read_again(fd, ret, size);
}
