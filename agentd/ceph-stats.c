#include "agentd/ceph-stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

json_t *ceph_json_load(const char *text, size_t size)
{
        json_error_t error;
        json_t *json = json_loadb(text, size, JSON_DECODE_ANY, &error);

        if (!json && json_error_code(&error) == json_error_numeric_overflow)
                json = json_loadb(text, size, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
        return json;
}

/* False when there is no such number from 0 to 2^64. */
static bool number_get(const json_t *object, const char *key, uint64_t *ret)
{
        const json_t *value = json_object_get(object, key);
        double number = json_number_value(value);

        if (!json_is_number(value) || !(number >= 0) || number >= 0x1p64)
                return false;
        *ret = json_is_integer(value) ? (uint64_t)json_integer_value(value) : (uint64_t)number;
        return true;
}

/*
 * {"name": "rbd", "id": 2, "stats": {"stored": 0, "objects": 0, "rd": 1, "rd_bytes": 1024,
 * "wr": 2222, "wr_bytes": 18187264, ...}}
 */
static int pool_parse(const json_t *json, struct ceph_pool *ret)
{
        static const char *const keys[CEPH_POOL_METRICS] = {
                "rd", "rd_bytes", "wr", "wr_bytes", "stored", "objects"};
        const char *name = json_string_value(json_object_get(json, "name"));
        const json_t *stats = json_object_get(json, "stats");

        if (!name || strlen(name) > BLOCK_NAME_MAX || !number_get(json, "id", &ret->id))
                return -EBADMSG;
        memcpy(ret->name, name, strlen(name) + 1);
        for (size_t i = 0; i < CEPH_POOL_METRICS; i++)
                if (!number_get(stats, keys[i], &ret->values[i]))
                        return -EBADMSG;
        return 0;
}

static int compare_pools(const void *a, const void *b)
{
        const struct ceph_pool *x = a, *y = b;

        return (x->id > y->id) - (x->id < y->id);
}

int ceph_pools_parse(const json_t *df, struct ceph_pool **ret, size_t *ret_count)
{
        const json_t *list = json_object_get(df, "pools");
        struct ceph_pool *pools;
        size_t n = json_array_size(list);

        if (!json_is_array(list) || n > CEPH_POOLS_MAX)
                return -EBADMSG;
        pools = calloc(n + 1, sizeof(*pools));
        if (!pools)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                int r = pool_parse(json_array_get(list, i), &pools[i]);

                if (r < 0) {
                        free(pools);
                        return r;
                }
        }
        qsort(pools, n, sizeof(*pools), compare_pools);
        *ret = pools;
        *ret_count = n;
        return 0;
}

/* "active+clean+scrubbing+deep" has "scrubbing", and "active+snaptrim_wait" has no "snaptrim". */
static bool state_has(const char *state, const char *word)
{
        size_t length = strlen(word);

        while (state) {
                if (strncmp(state, word, length) == 0 &&
                        (state[length] == '\0' || state[length] == '+'))
                        return true;
                state = strchr(state, '+');
                state = state ? state + 1 : NULL;
        }
        return false;
}

static void states_count(const json_t *pgmap, struct ceph_status *ret)
{
        const json_t *list = json_object_get(pgmap, "pgs_by_state");

        for (size_t i = 0; i < json_array_size(list); i++) {
                const json_t *item = json_array_get(list, i);
                const char *state = json_string_value(json_object_get(item, "state_name"));
                uint64_t count;

                if (!state || !number_get(item, "count", &count))
                        continue;
                if (state_has(state, "scrubbing"))
                        ret->pgs_scrubbing += count;
                if (state_has(state, "recovering") || state_has(state, "backfilling"))
                        ret->pgs_recovering += count;
                if (state_has(state, "snaptrim"))
                        ret->pgs_snaptrim += count;
        }
}

static uint64_t health_level(const char *health)
{
        if (strcmp(health, "HEALTH_OK") == 0)
                return 0;
        return strcmp(health, "HEALTH_WARN") == 0 ? 1 : 2;
}

int ceph_status_parse(const json_t *status, struct ceph_status *ret)
{
        const char *fsid = json_string_value(json_object_get(status, "fsid"));
        const char *health =
                json_string_value(json_object_get(json_object_get(status, "health"), "status"));
        const json_t *osdmap = json_object_get(status, "osdmap");
        const json_t *inner = json_object_get(osdmap, "osdmap"); /* until Nautilus */
        const json_t *pgmap = json_object_get(status, "pgmap");
        struct ceph_status result = {0};

        if (!fsid || id_parse(fsid, &result.fsid) < 0 || !health ||
                strlen(health) >= sizeof(result.health) ||
                !number_get(inner ? inner : osdmap, "epoch", &result.osdmap_epoch))
                return -EBADMSG;
        memcpy(result.health, health, strlen(health) + 1);
        result.health_level = health_level(health);
        states_count(pgmap, &result);
        number_get(pgmap, "degraded_objects", &result.degraded_objects); /* absent when 0 */
        result.mgr_available =
                json_is_true(json_object_get(json_object_get(status, "mgrmap"), "available"));
        *ret = result;
        return 0;
}
