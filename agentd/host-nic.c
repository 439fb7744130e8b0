#include "agentd/host-nic.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "agentd/proc-number.h"
#include "agentd/text-file.h"

#define NUMBERS 16u /* of a line */

/* Where the metrics stand among them. */
static const uint8_t fields[HOST_NIC_METRICS] = {0, 1, 3, 8, 9, 11};

struct host_nics {
        char *root;
        struct host_nic *items;
        size_t n;
};

int host_nics_new(const char *root, struct host_nics **ret)
{
        CLEANUP(host_nics) struct host_nics *nics = calloc(1, sizeof(*nics));

        if (!nics)
                return -ENOMEM;
        nics->root = strdup(root);
        nics->items = calloc(HOST_NICS_MAX, sizeof(*nics->items));
        if (!nics->root || !nics->items)
                return -ENOMEM;
        *ret = STEAL(nics);
        return 0;
}

struct host_nics *host_nics_free(struct host_nics *nics)
{
        if (!nics)
                return NULL;
        free(nics->items);
        free(nics->root);
        free(nics);
        return NULL;
}

static uint32_t index_read(const struct host_nics *nics, const char *name)
{
        char path[PATH_MAX], text[16];

        snprintf(path, sizeof(path), "%s/sys/class/net/%s/ifindex", nics->root, name);
        if (text_file_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
                return 0;
        return (uint32_t)strtoul(text, NULL, 10);
}

/* -1 while the link is down; it cannot be read for what has no link. */
static uint64_t speed_read(const struct host_nics *nics, const char *name)
{
        char path[PATH_MAX], text[16];

        snprintf(path, sizeof(path), "%s/sys/class/net/%s/speed", nics->root, name);
        if (text_file_read(AT_FDCWD, path, text, sizeof(text)) <= 0 || *text == '-')
                return 0;
        return strtoul(text, NULL, 10);
}

/* "  eth0: 238065206 6668 ..."; 1 for a line that is no interface or not of interest. */
static int line_parse(const char *line, struct host_nic *ret)
{
        const char *end = strchrnul(line, '\n'), *colon = memchr(line, ':', (size_t)(end - line));
        uint64_t numbers[NUMBERS];
        uint32_t good;
        size_t length;

        line += strspn(line, " ");
        length = colon && colon > line ? (size_t)(colon - line) : 0;
        if (length == 0 || length >= HOST_NIC_NAME_MAX || memchr(line, '/', length) ||
                (length == 2 && memcmp(line, "lo", 2) == 0))
                return 1;
        *ret = (struct host_nic){0};
        memcpy(ret->name, line, length);
        good = proc_numbers_parse(colon + 1, NUMBERS, numbers);
        for (unsigned i = 0; i < HOST_NIC_METRICS; i++) {
                *(good & 1u << fields[i] ? &ret->present : &ret->broken) |= 1u << i;
                ret->values[i] = numbers[fields[i]];
        }
        return 0;
}

static bool went_down(const struct host_nic *nic, const struct host_nic *before, unsigned i)
{
        return nic->present & before->present & 1u << i && nic->values[i] < before->values[i];
}

/* Puts @nic in the place of @known, and keeps what is known. Whether the layout is another. */
static bool nic_take(
        const struct host_nics *nics, struct host_nic *known, struct host_nic *nic, bool may_wait)
{
        bool same = strcmp(nic->name, known->name) == 0;
        bool restarted = same && (went_down(nic, known, 0) || went_down(nic, known, 3));
        bool changed = !same || restarted || nic->present != known->present;

        if (same && !restarted) {
                nic->index = known->index;
                nic->restarts = known->restarts;
                nic->speed = known->speed;
        } else {
                nic->index = index_read(nics, nic->name);
        }
        if (nic->speed == 0 && may_wait)
                nic->speed = speed_read(nics, nic->name);
        if (restarted)
                nic->restarts = known->restarts + (nic->index == known->index);
        if (same)
                nic->broken_told = known->broken_told;
        *known = *nic;
        return changed;
}

void host_nics_read(struct host_nics *nics, const char *text, bool may_wait, struct host_nic **ret,
        size_t *ret_n, bool *ret_changed)
{
        bool changed = false;
        size_t n = 0;

        for (const char *line = text; *line && n < HOST_NICS_MAX;) {
                struct host_nic nic;

                if (line_parse(line, &nic) == 0)
                        changed |= nic_take(nics, &nics->items[n++], &nic, may_wait);
                line = strchrnul(line, '\n');
                line += *line == '\n';
        }
        changed |= n != nics->n;
        for (size_t i = n; i < nics->n; i++)
                nics->items[i] = (struct host_nic){0};
        nics->n = n;
        *ret = nics->items;
        *ret_n = n;
        *ret_changed = changed;
}
