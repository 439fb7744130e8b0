#include "agentd/device.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "agentd/sysfs.h"

#define TYPE_NVME_HEAD "nvme_head"

static bool nvme_path_parse(const char *name, unsigned *controller, unsigned *path, unsigned *space)
{
        int used = 0;

        return sscanf(name, "nvme%uc%un%u%n", controller, path, space, &used) == 3 &&
               name[used] == '\0';
}

static bool is_nvme_path(const char *name)
{
        unsigned controller, path, space;

        return nvme_path_parse(name, &controller, &path, &space);
}

static bool starts_with(const char *text, const char *prefix)
{
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

static enum device_kind kind_of(const char *root, const char *name)
{
        if (is_nvme_path(name))
                return DEVICE_NVME_PATH;
        if (sysfs_has(root, name, "partition"))
                return DEVICE_PARTITION;
        if (starts_with(name, "dm-"))
                return DEVICE_DM;
        if (starts_with(name, "loop"))
                return DEVICE_LOOP;
        if (starts_with(name, "zram"))
                return DEVICE_ZRAM;
        if (starts_with(name, "bcache"))
                return DEVICE_BCACHE;
        if (sysfs_has(root, name, "md"))
                return DEVICE_MD;
        /* Network block devices have no "device", but they are where I/O leaves the node. */
        if (starts_with(name, "sr") || starts_with(name, "fd") || starts_with(name, "ram"))
                return DEVICE_OTHER;
        if (sysfs_has(root, name, "device") || starts_with(name, "rbd") || starts_with(name, "nbd"))
                return DEVICE_DISK;
        return DEVICE_OTHER;
}

/* One more name at the end of a list. */
static int name_add(char ***names, size_t *n_names, const char *name)
{
        char **list, *copy;

        if (*n_names >= DEVICE_PARENTS_MAX)
                return 0;
        list = reallocarray(*names, *n_names + 1, sizeof(*list));
        if (!list)
                return -ENOMEM;
        *names = list;
        copy = strdup(name);
        if (!copy)
                return -ENOMEM;
        sysfs_swap(copy, '!', '/');
        list[(*n_names)++] = copy;
        return 0;
}

static int parent_add(struct facts_device *device, const char *name)
{
        return name_add(&device->parents, &device->n_parents, name);
}

static bool names_equal(char *const *a, size_t n_a, char *const *b, size_t n_b)
{
        if (n_a != n_b)
                return false;
        for (size_t i = 0; i < n_a; i++)
                if (strcmp(a[i], b[i]) != 0)
                        return false;
        return true;
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the entries of a folder that @wants picks (NULL: all), in the order of names: the folder's
 * own order may change. */
static int parents_list(const char *path, struct facts_device *device,
        bool (*wants)(const struct facts_device *device, const char *name))
{
        struct dirent *entry;
        DIR *folder;
        int r = 0;

        folder = opendir(path);
        if (!folder)
                return 0;
        while (r == 0 && (entry = readdir(folder)))
                if (entry->d_name[0] != '.' && (!wants || wants(device, entry->d_name)))
                        r = parent_add(device, entry->d_name);
        closedir(folder);
        if (r == 0 && device->n_parents > 1)
                qsort(device->parents, device->n_parents, sizeof(char *), compare_names);
        return r;
}

/* nvme0c1n2 is a path of nvme0n2. */
static bool is_path_of(const struct facts_device *head, const char *name)
{
        unsigned controller, path, space;
        char text[64];

        if (!nvme_path_parse(name, &controller, &path, &space))
                return false;
        snprintf(text, sizeof(text), "nvme%un%u", controller, space);
        return strcmp(text, head->name) == 0;
}

/* Of a bcache's parents, the one that its folder "bcache" belongs to holds the data. */
static int caches_read(const char *root, struct facts_device *device)
{
        char backing[NAME_MAX + 1];
        int r = 0;

        if (sysfs_link_folder(root, device->name, "bcache", backing, sizeof(backing)) < 0)
                return 0;
        for (size_t i = 0; r == 0 && i < device->n_parents; i++)
                if (strcmp(device->parents[i], backing) != 0)
                        r = name_add(&device->caches, &device->n_caches, device->parents[i]);
        return r;
}

/* What dm, md, bcache and the head of an NVMe multipath stand on. */
static int parents_read(const char *root, struct facts_device *device)
{
        char path[PATH_MAX];
        int r;

        if (strcmp(device->type, TYPE_NVME_HEAD) == 0) {
                if (snprintf(path, sizeof(path), "%s/sys/class/block", root) >= (int)sizeof(path))
                        return 0;
                return parents_list(path, device, is_path_of);
        }
        if (sysfs_path(path, root, device->name, "slaves") < 0)
                return 0;
        r = parents_list(path, device, NULL);
        if (r < 0 || device->kind != DEVICE_BCACHE)
                return r;
        return caches_read(root, device);
}

/* What of its kind a device is, where drivers tell: "LVM-..." is the uuid of a logical volume. */
static int type_read(const char *root, struct facts_device *device)
{
        char text[PATH_MAX] = "";
        unsigned controller, space;
        int used = 0;

        if (device->kind == DEVICE_MD)
                return sysfs_text(root, device->name, "md/level", &device->type);
        if (device->kind == DEVICE_DM) {
                size_t length = 0;

                while (length < 16 && isalpha((unsigned char)device->wwn[length]))
                        length++;
                for (size_t i = 0; i < length; i++)
                        text[i] = (char)tolower((unsigned char)device->wwn[i]);
        } else if (sscanf(device->name, "nvme%un%u%n", &controller, &space, &used) == 2 &&
                   device->name[used] == '\0') {
                bool head = sysfs_link(root, device->name, "", text) == 0 &&
                            strstr(text, "/nvme-subsystem/");

                strcpy(text, head ? TYPE_NVME_HEAD : "nvme");
        }
        device->type = strdup(text);
        return device->type ? 0 : -ENOMEM;
}

/* A partition has no queue of its own. */
static int queue_read(const char *root, const char *name, struct facts_device *device)
{
        uint64_t iostats;
        int r;

        device->rotational = sysfs_number(root, name, "queue/rotational") != 0;
        /* Other devices that say 0 here (zram, bcache) count nonetheless. */
        device->uncounted = strcmp(device->type, TYPE_NVME_HEAD) == 0 &&
                            sysfs_try_number(root, name, "queue/iostats", &iostats) == 0 &&
                            iostats == 0;
        r = sysfs_choice(root, name, "queue/scheduler", &device->scheduler);
        if (r < 0)
                return r;
        return sysfs_text(root, name, "queue/write_cache", &device->write_cache);
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
        r = sysfs_text(root, name, alias, &device->alias);
        if (r < 0)
                return r;
        r = sysfs_text(root, name, unique, &device->wwn);
        if (r < 0)
                return r;
        r = sysfs_text(root, name, "device/model", &device->model);
        if (r < 0)
                return r;
        r = sysfs_text(root, name, "serial device/serial", &device->serial);
        if (r < 0)
                return r;
        if (device->serial[0])
                return 0;
        free(STEAL(device->serial));
        /* The unit serial number page of SCSI begins with four bytes that are no text. */
        return sysfs_text_behind(root, name, "device/vpd_pg80", 4, &device->serial);
}

/*
 * WWN, else serial, else numbers. An NVMe path shares the WWN of its head, but is another counter.
 */
static int identity_make(struct device *device)
{
        struct facts_device *facts = &device->facts;
        const char *known = facts->wwn[0] ? facts->wwn : facts->serial;
        char text[2 * SYSFS_TEXT_MAX];

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

static void swap_texts(char **a, char **b)
{
        char *text = *a;

        *a = *b;
        *b = text;
}

/* A partition is a part of its disk, and is known by it. */
static int partition_read(const char *root, struct device *device)
{
        struct facts_device *facts = &device->facts;
        CLEANUP(device) struct device disk = {0};
        char name[NAME_MAX + 1], text[SYSFS_TEXT_MAX];
        int r;

        r = sysfs_link_folder(root, facts->name, "", name, sizeof(name));
        if (r < 0 || kind_of(root, name) == DEVICE_PARTITION)
                return identity_make(device);
        r = device_read(root, name, facts->major, facts->minor, &disk);
        if (r < 0)
                return r;
        r = parent_add(facts, name);
        if (r < 0)
                return r;
        facts->rotational = disk.facts.rotational;
        facts->uncounted = disk.facts.uncounted;
        swap_texts(&facts->scheduler, &disk.facts.scheduler);
        swap_texts(&facts->write_cache, &disk.facts.write_cache);
        device->sequence = disk.sequence;
        snprintf(text, sizeof(text), "%.200s-part%" PRIu64, disk.facts.identity,
                sysfs_number(root, facts->name, "partition"));
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
        device.sequence = sysfs_number(root, name, "diskseq");
        r = type_read(root, facts);
        if (r < 0)
                return r;
        r = queue_read(root, name, facts);
        if (r < 0)
                return r;
        facts->size_bytes = sysfs_number(root, name, "size") * 512;
        if (facts->kind == DEVICE_PARTITION)
                r = partition_read(root, &device);
        else
                r = identity_make(&device);
        if (r < 0)
                return r;
        r = parents_read(root, facts);
        if (r < 0)
                return r;
        *ret = STEAL_LEAVING(device, (struct device){0});
        return 0;
}

int device_read_size(const char *root, const char *name, uint64_t *ret)
{
        int r = sysfs_try_number(root, name, "size", ret);

        if (r == 0)
                *ret *= 512;
        return r;
}

/* The texts of a device, for what is done with all of them. */
static const size_t texts[] = {
        offsetof(struct facts_device, name),
        offsetof(struct facts_device, alias),
        offsetof(struct facts_device, identity),
        offsetof(struct facts_device, model),
        offsetof(struct facts_device, serial),
        offsetof(struct facts_device, wwn),
        offsetof(struct facts_device, type),
        offsetof(struct facts_device, scheduler),
        offsetof(struct facts_device, write_cache),
};
#define N_TEXTS (sizeof(texts) / sizeof(texts[0]))

static char **text_of(const struct facts_device *device, size_t i)
{
        return (char **)((char *)device + texts[i]);
}

void device_done(struct device *device)
{
        struct facts_device *facts = &device->facts;

        for (size_t i = 0; i < facts->n_parents; i++)
                free(facts->parents[i]);
        for (size_t i = 0; i < facts->n_caches; i++)
                free(facts->caches[i]);
        for (size_t i = 0; i < N_TEXTS; i++)
                free(*text_of(facts, i));
        free(facts->parents);
        free(facts->caches);
        *device = (struct device){0};
}

bool device_equal(const struct device *a, const struct device *b)
{
        const struct facts_device *x = &a->facts, *y = &b->facts;

        for (size_t i = 0; i < N_TEXTS; i++)
                if (strcmp(*text_of(x, i), *text_of(y, i)) != 0)
                        return false;
        return a->sequence == b->sequence && x->kind == y->kind && x->major == y->major &&
               x->minor == y->minor && x->rotational == y->rotational &&
               x->uncounted == y->uncounted && x->size_bytes == y->size_bytes &&
               names_equal(x->parents, x->n_parents, y->parents, y->n_parents) &&
               names_equal(x->caches, x->n_caches, y->caches, y->n_caches);
}

int device_copy_facts(const struct device *device, struct facts_device *ret)
{
        const struct facts_device *from = &device->facts;
        CLEANUP(device) struct device copy = {.facts = *from};
        struct facts_device *to = &copy.facts;
        bool complete = true;
        int r = 0;

        to->parents = to->caches = NULL;
        to->n_parents = to->n_caches = 0;
        for (size_t i = 0; i < N_TEXTS; i++) {
                *text_of(to, i) = strdup(*text_of(from, i));
                complete = complete && *text_of(to, i);
        }
        for (size_t i = 0; r == 0 && i < from->n_parents; i++)
                r = parent_add(to, from->parents[i]);
        for (size_t i = 0; r == 0 && i < from->n_caches; i++)
                r = name_add(&to->caches, &to->n_caches, from->caches[i]);
        if (r < 0 || !complete)
                return -ENOMEM;
        *ret = STEAL_LEAVING(copy, (struct device){0}).facts;
        return 0;
}

bool device_is_another(const char *root, const struct device *device)
{
        uint64_t sequence;

        return device->sequence != 0 && device->facts.kind != DEVICE_PARTITION &&
               sysfs_try_number(root, device->facts.name, "diskseq", &sequence) == 0 &&
               sequence != device->sequence;
}
