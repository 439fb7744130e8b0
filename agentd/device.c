#include "agentd/device.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "agentd/text-file.h"
#include "lib/block.h"

#define TEXT_MAX (BLOCK_NAME_MAX + 1) /* a file of sysfs that we read holds one short line */

/* A device name in sysfs has '!' where /proc/diskstats has '/', as in "cciss/c0d0". */
static void swap_character(char *text, char from, char to)
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

static int path_format(char *ret, const char *root, const char *name, const char *file)
{
        char folder[NAME_MAX + 1];
        size_t length = strlen(name);
        int n;

        if (length >= sizeof(folder) || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                return -EINVAL;
        memcpy(folder, name, length + 1);
        swap_character(folder, '/', '!');
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

        r = path_format(path, root, name, file);
        return r < 0 ? r : text_file_read(AT_FDCWD, path, ret, size);
}

/* The first of @files (separated by blanks) that says something; "" if none does. -ENOMEM. */
static int text_read(const char *root, const char *name, const char *files, char **ret)
{
        char text[TEXT_MAX] = "", file[64];
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

static uint64_t number_read(const char *root, const char *name, const char *file)
{
        char text[32];

        if (file_read(root, name, file, text, sizeof(text)) <= 0)
                return 0;
        return strtoull(text, NULL, 10);
}

static bool has_file(const char *root, const char *name, const char *file)
{
        char path[PATH_MAX];

        return path_format(path, root, name, file) == 0 && access(path, F_OK) == 0;
}

/* The unit serial number page of SCSI: four bytes of header, the third and fourth the length. */
static int scsi_serial_read(const char *root, const char *name, char **ret)
{
        char page[TEXT_MAX] = {0};
        ssize_t n = file_read(root, name, "device/vpd_pg80", page, sizeof(page));

        if (n <= 4)
                return 0;
        if (clean(page + 4, (size_t)n - 4) == 0)
                return 0;
        free(*ret);
        *ret = strdup(page + 4);
        return *ret ? 0 : -ENOMEM;
}

static bool is_nvme_path(const char *name)
{
        unsigned controller, path, space;
        int used = 0;

        return sscanf(name, "nvme%uc%un%u%n", &controller, &path, &space, &used) == 3 &&
               name[used] == '\0';
}

static bool starts_with(const char *text, const char *prefix)
{
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

static enum device_kind kind_of(const char *root, const char *name)
{
        if (is_nvme_path(name))
                return DEVICE_NVME_PATH;
        if (has_file(root, name, "partition"))
                return DEVICE_PARTITION;
        if (starts_with(name, "dm-"))
                return DEVICE_DM;
        if (starts_with(name, "loop"))
                return DEVICE_LOOP;
        if (starts_with(name, "zram"))
                return DEVICE_ZRAM;
        if (starts_with(name, "bcache"))
                return DEVICE_BCACHE;
        if (has_file(root, name, "md"))
                return DEVICE_MD;
        /* Network block devices have no "device", but they are where I/O leaves the node. */
        if (starts_with(name, "sr") || starts_with(name, "fd") || starts_with(name, "ram"))
                return DEVICE_OTHER;
        if (has_file(root, name, "device") || starts_with(name, "rbd") || starts_with(name, "nbd"))
                return DEVICE_DISK;
        return DEVICE_OTHER;
}

static int parent_add(struct facts_device *device, const char *name)
{
        char **parents;

        if (device->n_parents >= DEVICE_PARENTS_MAX)
                return 0;
        parents = reallocarray(device->parents, device->n_parents + 1, sizeof(*parents));
        if (!parents)
                return -ENOMEM;
        device->parents = parents;
        parents[device->n_parents] = strdup(name);
        if (!parents[device->n_parents])
                return -ENOMEM;
        swap_character(parents[device->n_parents], '!', '/');
        device->n_parents++;
        return 0;
}

/* sda1 is a link to ".../block/sda/sda1". */
static int disk_of_partition(const char *root, const char *name, char *ret, size_t size)
{
        char path[PATH_MAX], target[PATH_MAX];
        char *slash;
        ssize_t n;
        int r;

        r = path_format(path, root, name, "");
        if (r < 0)
                return r;
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0)
                return -errno;
        target[n] = '\0';
        slash = strrchr(target, '/');
        if (!slash)
                return -ENOENT;
        *slash = '\0';
        slash = strrchr(target, '/');
        if (!slash || strlen(slash + 1) >= size)
                return -ENOENT;
        memcpy(ret, slash + 1, strlen(slash + 1) + 1);
        swap_character(ret, '!', '/');
        return 0;
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What dm, md and bcache stand on, in the order of names: the folder's own order may change. */
static int slaves_read(const char *root, struct facts_device *device)
{
        char path[PATH_MAX];
        struct dirent *entry;
        DIR *folder;
        int r;

        r = path_format(path, root, device->name, "slaves");
        if (r < 0)
                return 0;
        folder = opendir(path);
        if (!folder)
                return 0;
        while (r == 0 && (entry = readdir(folder)))
                if (entry->d_name[0] != '.')
                        r = parent_add(device, entry->d_name);
        closedir(folder);
        if (r == 0 && device->n_parents > 1)
                qsort(device->parents, device->n_parents, sizeof(char *), compare_names);
        return r;
}

static int names_read(const char *root, struct facts_device *device)
{
        const char *name = device->name, *alias = "", *unique = "";
        int r;

        if (device->kind == DEVICE_DM)
                alias = "dm/name", unique = "dm/uuid";
        else if (device->kind == DEVICE_LOOP)
                alias = "loop/backing_file";
        else if (device->kind == DEVICE_MD)
                unique = "md/uuid";
        else if (device->kind != DEVICE_PARTITION)
                unique = "wwid device/wwid";
        r = text_read(root, name, alias, &device->alias);
        if (r < 0)
                return r;
        r = text_read(root, name, unique, &device->wwn);
        if (r < 0)
                return r;
        r = text_read(root, name, "device/model", &device->model);
        if (r < 0)
                return r;
        r = text_read(root, name, "serial device/serial", &device->serial);
        if (r < 0)
                return r;
        return device->serial[0] ? 0 : scsi_serial_read(root, name, &device->serial);
}

/*
 * WWN, else serial, else numbers. An NVMe path shares the WWN of its head, but is another counter.
 */
static int identity_make(struct device *device)
{
        struct facts_device *facts = &device->facts;
        const char *known = facts->wwn[0] ? facts->wwn : facts->serial;
        char text[2 * TEXT_MAX];

        if (known[0] && facts->kind != DEVICE_NVME_PATH)
                snprintf(text, sizeof(text), "%s", known);
        else if (known[0])
                snprintf(text, sizeof(text), "%.127s@%.127s", known, facts->name);
        else
                snprintf(text, sizeof(text), "%u:%u:%" PRIu64, facts->major, facts->minor,
                        device->sequence);
        facts->identity = strdup(text);
        return facts->identity ? 0 : -ENOMEM;
}

/* A partition is a part of its disk, and is known by it. */
static int partition_read(const char *root, struct device *device)
{
        struct facts_device *facts = &device->facts;
        CLEANUP(device) struct device disk = {0};
        char name[NAME_MAX + 1], text[TEXT_MAX];
        int r;

        r = disk_of_partition(root, facts->name, name, sizeof(name));
        if (r < 0 || kind_of(root, name) == DEVICE_PARTITION)
                return identity_make(device);
        r = device_read(root, name, facts->major, facts->minor, &disk);
        if (r < 0)
                return r;
        r = parent_add(facts, name);
        if (r < 0)
                return r;
        facts->rotational = disk.facts.rotational;
        device->sequence = disk.sequence;
        snprintf(text, sizeof(text), "%.200s-part%" PRIu64, disk.facts.identity,
                number_read(root, facts->name, "partition"));
        facts->identity = strdup(text);
        return facts->identity ? 0 : -ENOMEM;
}

int device_read(
        const char *root, const char *name, uint32_t major, uint32_t minor, struct device *ret)
{
        CLEANUP(device) struct device device = {0};
        struct facts_device *facts = &device.facts;
        int r;

        facts->major = major;
        facts->minor = minor;
        facts->kind = kind_of(root, name);
        facts->name = strdup(name);
        if (!facts->name)
                return -ENOMEM;
        r = names_read(root, facts);
        if (r < 0)
                return r;
        device.sequence = number_read(root, name, "diskseq");
        facts->rotational = number_read(root, name, "queue/rotational") != 0;
        facts->size_bytes = number_read(root, name, "size") * 512;
        if (facts->kind == DEVICE_PARTITION)
                r = partition_read(root, &device);
        else
                r = identity_make(&device);
        if (r < 0)
                return r;
        r = slaves_read(root, facts);
        if (r < 0)
                return r;
        *ret = STEAL_LEAVING(device, (struct device){0});
        return 0;
}

int device_read_size(const char *root, const char *name, uint64_t *ret)
{
        char text[32];
        ssize_t n = file_read(root, name, "size", text, sizeof(text));

        if (n < 0)
                return (int)n;
        *ret = strtoull(text, NULL, 10) * 512;
        return 0;
}

void device_done(struct device *device)
{
        struct facts_device *facts = &device->facts;

        for (size_t i = 0; i < facts->n_parents; i++)
                free(facts->parents[i]);
        free(facts->parents);
        free(facts->name);
        free(facts->alias);
        free(facts->identity);
        free(facts->model);
        free(facts->serial);
        free(facts->wwn);
        *device = (struct device){0};
}

bool device_equal(const struct device *a, const struct device *b)
{
        const struct facts_device *x = &a->facts, *y = &b->facts;

        if (x->n_parents != y->n_parents)
                return false;
        for (size_t i = 0; i < x->n_parents; i++)
                if (strcmp(x->parents[i], y->parents[i]) != 0)
                        return false;
        return a->sequence == b->sequence && x->kind == y->kind && x->major == y->major &&
               x->minor == y->minor && x->rotational == y->rotational &&
               x->size_bytes == y->size_bytes && strcmp(x->name, y->name) == 0 &&
               strcmp(x->alias, y->alias) == 0 && strcmp(x->identity, y->identity) == 0 &&
               strcmp(x->model, y->model) == 0 && strcmp(x->serial, y->serial) == 0 &&
               strcmp(x->wwn, y->wwn) == 0;
}

int device_copy_facts(const struct device *device, struct facts_device *ret)
{
        const struct facts_device *from = &device->facts;
        CLEANUP(device) struct device copy = {.facts = *from};
        struct facts_device *to = &copy.facts;
        int r = 0;

        to->parents = NULL;
        to->n_parents = 0;
        to->name = strdup(from->name);
        to->alias = strdup(from->alias);
        to->identity = strdup(from->identity);
        to->model = strdup(from->model);
        to->serial = strdup(from->serial);
        to->wwn = strdup(from->wwn);
        for (size_t i = 0; r == 0 && i < from->n_parents; i++)
                r = parent_add(to, from->parents[i]);
        if (r < 0 || !to->name || !to->alias || !to->identity || !to->model || !to->serial ||
                !to->wwn)
                return -ENOMEM;
        *ret = STEAL_LEAVING(copy, (struct device){0}).facts;
        return 0;
}
