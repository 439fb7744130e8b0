#include "collectord/plan-list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/plan.h"

struct entry {
        struct id host; /* zero is "*" */
        uint64_t revision;
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

/* FNV-1a, in any order of the clusters; never 0 when there are some. */
static uint64_t hash_clusters(const struct election_result *elected)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < elected->n_clusters; i++) {
                uint64_t hash = UINT64_C(0xcbf29ce484222325);

                for (size_t k = 0; k < sizeof(struct id); k++)
                        hash = (hash ^ elected->clusters[i].bytes[k]) * UINT64_C(0x100000001b3);
                sum += hash;
        }
        sum = (sum ^ sum >> 32) & ((1u << PLAN_ELECTED_BITS) - 1);
        return elected->n_clusters > 0 && sum == 0 ? 1 : sum;
}

uint64_t plan_effective_revision(uint64_t revision, const struct election_result *elected)
{
        return revision << PLAN_ELECTED_BITS | hash_clusters(elected);
}

void plan_make_effective(json_t *plan, const struct election_result *elected)
{
        json_t *ceph = json_object_get(json_object_get(plan, "sources"), source_name(SOURCE_CEPH));
        json_int_t revision = json_integer_value(json_object_get(plan, "revision"));
        json_t *list = json_array();

        for (uint32_t i = 0; i < elected->n_clusters; i++) {
                const struct id *id = &elected->clusters[i];
                char text[ID_TEXT_MAX];

                json_array_append_new(list,
                        json_string(id_is_zero(id) ? PLAN_CLUSTER_UNKNOWN : id_format(id, text)));
        }
        if (elected->n_clusters == 0 && ceph)
                json_object_set_new(ceph, "enabled", json_false());
        json_object_set_new(ceph, "clusters", list);
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

uint64_t plan_list_stored_revision(const struct plan_list *list, const struct id *host)
{
        const struct entry *entry = entry_of(list, host);

        return entry ? entry->revision : 0;
}

bool plan_list_has(const struct plan_list *list, const struct id *host)
{
        static const struct id everybody;
        bool found;

        (void)find_entry(list, host ? host : &everybody, &found);
        return found;
}

uint64_t plan_list_revision(
        const struct plan_list *list, const struct id *host, const struct election_result *elected)
{
        return plan_effective_revision(plan_list_stored_revision(list, host), elected);
}

int plan_list_effective(const struct plan_list *list, const struct id *host,
        const struct election_result *elected, json_t **ret)
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
