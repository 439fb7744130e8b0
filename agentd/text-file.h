#pragma once
/*
 * A small file of /proc or /sys, read as a whole by one system call, since the kernel makes its
 * text anew for each. Both return the number of bytes, which may hold anything, and put a NUL
 * behind; what does not fit into @size - 1 is left out. -errno.
 */

#include <stddef.h>
#include <sys/types.h>

/* @path from @folder, a descriptor or AT_FDCWD. Never waits for a FIFO's other end. */
ssize_t text_file_read(int folder, const char *path, char *ret, size_t size);
/* A file that is kept open, from its beginning. */
ssize_t text_file_read_again(int fd, char *ret, size_t size);
