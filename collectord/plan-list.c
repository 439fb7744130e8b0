#include "collectord/plan-list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/plan.h"

struct entry {
        struct id host; /* zero is "*" */
        uint64_t revision;
        uint64_t ceph_interval_us;
        char *json;
};

struct plan_list {
        struct entry *entries; /* ascending by host */
        size_t n;
};

int plan_default(json_t **ret)
{
        CLEANUP(plan) struct plan plan;

        plan_init(&plan);
        plan.sources[SOURCE_CEPH].enabled = true;
        return plan_to_json(&plan, ret);
}

int plan_load(const char *text, uint64_t revision, json_t **ret)
{
        json_t *json = json_loads(text, 0, NULL);

        if (!json)
                return -EBADMSG;
        if (json_object_set_new(json, "revision", json_integer((json_int_t)revision)) < 0) {
                json_decref(json);
                return -ENOMEM;
        }
        *ret = json;
        return 0;
}

void plan_make_effective(json_t *plan, bool elected)
{
        json_t *ceph = json_object_get(json_object_get(plan, "sources"), source_name(SOURCE_CEPH));
        json_int_t revision = json_integer_value(json_object_get(plan, "revision"));

        if (!elected && ceph)
                json_object_set_new(ceph, "enabled", json_false());
        json_object_set_new(plan, "revision",
                json_integer((json_int_t)plan_effective_revision((uint64_t)revision, elected)));
}

static size_t find_entry(const struct plan_list *list, const struct id *host, bool *ret_found)
{
        size_t low = 0, high = list->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (memcmp(&list->entries[middle].host, host, sizeof(*host)) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        *ret_found = low < list->n && id_equal(&list->entries[low].host, host);
        return low;
}

/* NULL: the built-in plan. */
static const struct entry *entry_of(const struct plan_list *list, const struct id *host)
{
        static const struct id everybody;
        bool found;
        size_t at = find_entry(list, host, &found);

        if (!found)
                at = find_entry(list, &everybody, &found);
        return found ? &list->entries[at] : NULL;
}

static int ceph_interval(const char *text, uint64_t *ret_us)
{
        CLEANUP(plan) struct plan plan = {0};
        CLEANUP(str) char *message = NULL;
        json_t *json;
        int r;

        r = plan_load(text, 0, &json);
        if (r < 0)
                return r;
        r = plan_from_json(json, &plan, &message);
        json_decref(json);
        if (r < 0)
                return r;
        *ret_us = plan.sources[SOURCE_CEPH].interval_us;
        return 0;
}

static int insert_entry(struct plan_list *list, size_t at, const struct entry *entry)
{
        struct entry *entries = reallocarray(list->entries, list->n + 1, sizeof(*entries));

        if (!entries)
                return -ENOMEM;
        list->entries = entries;
        memmove(&entries[at + 1], &entries[at], (list->n - at) * sizeof(*entries));
        entries[at] = *entry;
        list->n++;
        return 0;
}

static void remove_entry(struct plan_list *list, size_t at)
{
        free(list->entries[at].json);
        list->n--;
        memmove(&list->entries[at], &list->entries[at + 1],
                (list->n - at) * sizeof(list->entries[0]));
}

int plan_list_put(
        struct plan_list *list, const struct id *host, const char *json, uint64_t revision)
{
        struct entry entry = {.revision = revision};
        size_t at;
        bool found;
        int r;

        if (host)
                entry.host = *host;
        at = find_entry(list, &entry.host, &found);
        if (!json) {
                if (found)
                        remove_entry(list, at);
                return 0;
        }
        r = ceph_interval(json, &entry.ceph_interval_us);
        if (r < 0)
                return r;
        entry.json = strdup(json);
        if (!entry.json)
                return -ENOMEM;
        if (found) {
                free(list->entries[at].json);
                list->entries[at] = entry;
                return 0;
        }
        r = insert_entry(list, at, &entry);
        if (r < 0)
                free(entry.json);
        return r;
}

static int add_plan(void *userdata, const struct id *host, const char *json, uint64_t revision)
{
        return plan_list_put(userdata, host, json, revision);
}

int plan_list_new(struct store_reader *reader, struct plan_list **ret)
{
        CLEANUP(plan_list) struct plan_list *list = calloc(1, sizeof(*list));
        int r;

        if (!list)
                return -ENOMEM;
        r = store_read_plans(reader, add_plan, list);
        if (r < 0)
                return r;
        *ret = STEAL(list);
        return 0;
}

struct plan_list *plan_list_free(struct plan_list *list)
{
        if (!list)
                return NULL;
        for (size_t i = 0; i < list->n; i++)
                free(list->entries[i].json);
        free(list->entries);
        free(list);
        return NULL;
}

uint64_t plan_list_revision(const struct plan_list *list, const struct id *host, bool elected)
{
        const struct entry *entry = entry_of(list, host);

        return plan_effective_revision(entry ? entry->revision : 0, elected);
}

uint64_t plan_list_ceph_interval(const struct plan_list *list, const struct id *host)
{
        const struct entry *entry = entry_of(list, host);
        CLEANUP(plan) struct plan plan;

        plan_init(&plan);
        return entry ? entry->ceph_interval_us : plan.sources[SOURCE_CEPH].interval_us;
}

int plan_list_effective(
        const struct plan_list *list, const struct id *host, bool elected, json_t **ret)
{
        const struct entry *entry = entry_of(list, host);
        json_t *plan;
        int r;

        r = entry ? plan_load(entry->json, entry->revision, &plan) : plan_default(&plan);
        if (r < 0)
                return r;
        plan_make_effective(plan, elected);
        *ret = plan;
        return 0;
}
