#include "agentd/sysfs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/text-file.h"
#include "lib/cleanup.h"

void sysfs_swap(char *text, char from, char to)
{
        for (; *text; text++)
                if (*text == from)
                        *text = to;
}

/* Keeps printable ASCII, one space between words: vendors pad with spaces and worse. */
static size_t clean(char *text, size_t size)
{
        size_t length = 0;

        for (size_t i = 0; i < size && text[i]; i++) {
                unsigned char c = (unsigned char)text[i];

                if (isspace(c)) {
                        if (length > 0 && text[length - 1] != ' ')
                                text[length++] = ' ';
                        continue;
                }
                text[length++] = isgraph(c) ? (char)c : '?';
        }
        if (length > 0 && text[length - 1] == ' ')
                length--;
        text[length] = '\0';
        return length;
}

int sysfs_path(char *ret, const char *root, const char *name, const char *file)
{
        char folder[NAME_MAX + 1];
        size_t length = strlen(name);
        int n;

        if (length >= sizeof(folder) || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                return -EINVAL;
        memcpy(folder, name, length + 1);
        sysfs_swap(folder, '/', '!');
        n = snprintf(
                ret, PATH_MAX, "%s/sys/class/block/%s%s%s", root, folder, *file ? "/" : "", file);
        return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Raw bytes of a file of the device; returns their number, always NUL-terminated. */
static ssize_t file_read(
        const char *root, const char *name, const char *file, char *ret, size_t size)
{
        char path[PATH_MAX];
        int r;

        r = sysfs_path(path, root, name, file);
        return r < 0 ? r : text_file_read(AT_FDCWD, path, ret, size);
}

int sysfs_text(const char *root, const char *name, const char *files, char **ret)
{
        char text[SYSFS_TEXT_MAX] = "", file[64];
        int used;

        while (sscanf(files, " %63s%n", file, &used) == 1) {
                ssize_t n = file_read(root, name, file, text, sizeof(text));

                if (n > 0 && clean(text, (size_t)n) > 0)
                        break;
                text[0] = '\0';
                files += used;
        }
        *ret = strdup(text);
        return *ret ? 0 : -ENOMEM;
}

int sysfs_text_behind(const char *root, const char *name, const char *file, size_t skip, char **ret)
{
        char text[SYSFS_TEXT_MAX] = "";
        ssize_t n = file_read(root, name, file, text, sizeof(text));

        if (n <= 0 || (size_t)n <= skip || clean(text + skip, (size_t)n - skip) == 0)
                skip = 0, text[0] = '\0';
        *ret = strdup(text + skip);
        return *ret ? 0 : -ENOMEM;
}

int sysfs_choice(const char *root, const char *name, const char *file, char **ret)
{
        CLEANUP(str) char *text = NULL;
        char *begin, *end;
        int r;

        r = sysfs_text(root, name, file, &text);
        if (r < 0)
                return r;
        begin = strchr(text, '[');
        end = begin ? strchr(begin, ']') : NULL;
        if (!end) {
                *ret = STEAL(text);
                return 0;
        }
        *ret = strndup(begin + 1, (size_t)(end - begin - 1));
        return *ret ? 0 : -ENOMEM;
}

int sysfs_try_number(const char *root, const char *name, const char *file, uint64_t *ret)
{
        char text[32];
        ssize_t n = file_read(root, name, file, text, sizeof(text));

        if (n < 0)
                return (int)n;
        *ret = strtoull(text, NULL, 10);
        return 0;
}

uint64_t sysfs_number(const char *root, const char *name, const char *file)
{
        uint64_t number;

        return sysfs_try_number(root, name, file, &number) == 0 ? number : 0;
}

bool sysfs_has(const char *root, const char *name, const char *file)
{
        char path[PATH_MAX];

        return sysfs_path(path, root, name, file) == 0 && access(path, F_OK) == 0;
}

int sysfs_link(const char *root, const char *name, const char *file, char *ret)
{
        char path[PATH_MAX];
        ssize_t n;
        int r;

        r = sysfs_path(path, root, name, file);
        if (r < 0)
                return r;
        n = readlink(path, ret, PATH_MAX - 1);
        if (n < 0)
                return -errno;
        ret[n] = '\0';
        return 0;
}

int sysfs_link_folder(const char *root, const char *name, const char *file, char *ret, size_t size)
{
        char target[PATH_MAX];
        char *slash;
        int r;

        r = sysfs_link(root, name, file, target);
        if (r < 0)
                return r;
        slash = strrchr(target, '/');
        if (!slash)
                return -ENOENT;
        *slash = '\0';
        slash = strrchr(target, '/');
        if (!slash || strlen(slash + 1) >= size)
                return -ENOENT;
        memcpy(ret, slash + 1, strlen(slash + 1) + 1);
        sysfs_swap(ret, '!', '/');
        return 0;
}
