#include "agentd/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <systemd/sd-id128.h>

/* Makes the machine id ours: the same machine gives other programs another id. */
#define APPLICATION SD_ID128_MAKE(5f, 1b, 0e, 93, 7c, 44, 4d, 0e, a2, 6f, 3d, 81, c9, 55, 7e, 12)

struct state {
        int folder_fd;
        int lock_fd;
};

int state_open(const char *folder, struct state **ret)
{
        CLEANUP(state) struct state *state = calloc(1, sizeof(*state));

        if (!state)
                return -ENOMEM;
        state->lock_fd = -1;
        state->folder_fd = -1;
        if (mkdir(folder, 0700) < 0 && errno != EEXIST)
                return -errno;
        state->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (state->folder_fd < 0)
                return -errno;
        state->lock_fd =
                openat(state->folder_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (state->lock_fd < 0)
                return -errno;
        if (flock(state->lock_fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? -EBUSY : -errno;
        *ret = STEAL(state);
        return 0;
}

struct state *state_close(struct state *state)
{
        if (!state)
                return NULL;
        if (state->lock_fd >= 0)
                close(state->lock_fd);
        if (state->folder_fd >= 0)
                close(state->folder_fd);
        free(state);
        return NULL;
}

/* Readers see the old file or the new one, never half of one. */
static int replace_file(const struct state *state, const char *name, const char *text)
{
        CLEANUP(fd) int fd = -1;
        size_t size = strlen(text);
        ssize_t n;

        fd = openat(state->folder_fd, "new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                0600);
        if (fd < 0)
                return -errno;
        n = write(fd, text, size);
        if (n < 0)
                return -errno;
        if ((size_t)n != size)
                return -ENOSPC;
        if (renameat(state->folder_fd, "new", state->folder_fd, name) < 0)
                return -errno;
        return 0;
}

static int read_id(const struct state *state, struct id *ret)
{
        char text[ID_TEXT_MAX] = "";
        CLEANUP(fd) int fd = openat(state->folder_fd, "host-id", O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        if (read(fd, text, sizeof(text) - 1) < 0)
                return -errno;
        return id_parse(text, ret);
}

static int make_id(const struct state *state, struct id *ret)
{
        char text[ID_TEXT_MAX];
        sd_id128_t id;
        int r;

        r = sd_id128_randomize(&id);
        if (r < 0)
                return r;
        memcpy(ret->bytes, id.bytes, sizeof(ret->bytes));
        if (!state)
                return 0;
        return replace_file(state, "host-id", id_format(ret, text));
}

int state_get_host_id(const struct state *state, const char *configured, struct id *ret)
{
        sd_id128_t id;

        if (configured[0])
                return id_parse(configured, ret);
        /* One made up before goes first: a container that gets a machine id later is no new host.
         */
        if (state && read_id(state, ret) == 0)
                return 0;
        if (sd_id128_get_machine_app_specific(APPLICATION, &id) < 0)
                return make_id(state, ret);
        memcpy(ret->bytes, id.bytes, sizeof(ret->bytes));
        return 0;
}

int state_get_boot_id(struct id *ret)
{
        sd_id128_t id;
        int r;

        r = sd_id128_get_boot(&id);
        if (r < 0)
                return r;
        memcpy(ret->bytes, id.bytes, sizeof(ret->bytes));
        return 0;
}

static void json_cleanup(json_t **json)
{
        json_decref(*json);
}

int state_load_plan(
        const struct state *state, struct plan *ret_plan, uint64_t ret_taken[SOURCE_MAX_])
{
        CLEANUP(json) json_t *document = NULL;
        CLEANUP(str) char *message = NULL;
        CLEANUP(fd) int fd = openat(state->folder_fd, "plan.json", O_RDONLY | O_CLOEXEC);
        const json_t *taken, *value;
        int r;

        if (fd < 0)
                return -errno;
        document = json_loadfd(fd, 0, NULL);
        if (!document)
                return -EBADMSG;
        r = plan_from_json(json_object_get(document, "plan"), ret_plan, &message);
        if (r < 0)
                return r == -EINVAL ? -EBADMSG : r;
        taken = json_object_get(document, "taken");
        for (int id = SOURCE_NONE + 1; id < SOURCE_MAX_; id++) {
                value = json_object_get(taken, source_name((enum source_id)id));
                ret_taken[id] =
                        json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
        }
        return 0;
}

static int format_plan(const struct plan *plan, const uint64_t taken[SOURCE_MAX_], char **ret)
{
        CLEANUP(json) json_t *document = NULL;
        json_t *json, *counts;
        int r;

        r = plan_to_json(plan, &json);
        if (r < 0)
                return r;
        document = json_pack("{so s{}}", "plan", json, "taken");
        if (!document)
                return -ENOMEM;
        counts = json_object_get(document, "taken");
        for (int id = SOURCE_NONE + 1; id < SOURCE_MAX_; id++)
                if (json_object_set_new(counts, source_name((enum source_id)id),
                            json_integer((json_int_t)taken[id])) < 0)
                        return -ENOMEM;
        *ret = json_dumps(document, JSON_INDENT(2));
        return *ret ? 0 : -ENOMEM;
}

int state_save_plan(
        const struct state *state, const struct plan *plan, const uint64_t taken[SOURCE_MAX_])
{
        CLEANUP(str) char *text = NULL;
        int r;

        r = format_plan(plan, taken, &text);
        if (r < 0)
                return r;
        return replace_file(state, "plan.json", text);
}
