/* Checks what an agent or an operator sent. Nothing of it is trusted; nothing here waits. */
#include "collectord/ingest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/facts.h"
#include "lib/plan.h"
#include "lib/time.h"
#include "collectord/facts-keep.h"
#include "collectord/voice.h"

#define CONTENT_TYPE "application/vnd.strata.blocks"
#define INTERVAL_MAX_US 86400000000ull /* a day; plans allow an hour */

/* Ends a check: 1, or the error of making the problem document. */
#define REFUSE(status, ...)                                                                        \
        ({                                                                                         \
                int refused_ = api_problem(request, response, status, __VA_ARGS__);                \
                refused_ < 0 ? refused_ : 1;                                                       \
        })

#define REFUSE_BLOCK(status, reason, header, ...)                                                  \
        ({                                                                                         \
                metrics_add(request->metrics, rejected[METRICS_REASON_##reason], 1);               \
                int refused_ = api_problem_with(                                                   \
                        request, response, status, name_block(index, header), __VA_ARGS__);        \
                refused_ < 0 ? refused_ : 1;                                                       \
        })

static json_t *name_block(uint32_t index, const struct block_header *header)
{
        return json_pack("{s:i, s:o}", "block", (int)index, "sequence",
                header ? json_integer((json_int_t)header->sequence) : json_null());
}

static int read_headers(const struct api_request *request, struct api_response *response,
        struct ingest_change *change)
{
        const char *type = api_header(request, "content-type");
        uint64_t sent_at_us;
        int r;

        /* Also keeps a web page from posting here behind its reader's back: a browser asks first
         * before it sends this type. */
        if (!type || strncmp(type, CONTENT_TYPE, strlen(CONTENT_TYPE)) != 0)
                return REFUSE(415, "the Content-Type must be " CONTENT_TYPE ", but is '%s'",
                        type ? type : "");
        r = voice_read(request, response, &change->voice);
        if (r != 0)
                return r;
        change->host = change->voice.host;
        if (request->role == API_ROLE_AGENT && !id_equal(&request->host, &change->host)) {
                metrics_add(request->metrics, rejected[METRICS_REASON_host], 1);
                return REFUSE(403, "the token is another host's than Strata-Host says: '%s'",
                        api_header(request, "strata-host"));
        }
        r = voice_read_number(
                request, response, "strata-plan-revision", UINT64_MAX, &change->agent_revision);
        if (r != 0)
                return r;
        r = voice_read_number(request, response, "strata-backlog", 0, &change->update.backlog_rows);
        if (r != 0)
                return r;
        r = voice_read_number(request, response, "strata-sent-at", 0, &sent_at_us);
        if (r != 0)
                return r;
        change->update.host = change->host;
        change->update.now_us = request->now_us;
        /* A clock of another millennium says nothing worth showing. */
        change->update.clock_offset_us = sent_at_us && sent_at_us <= TIME_MAX_US
                                                 ? (int64_t)sent_at_us - request->now_us
                                                 : INT64_MIN;
        change->update.plan_revision = change->agent_revision == UINT64_MAX
                                               ? 0
                                               : plan_stored_revision(change->agent_revision);
        return 0;
}

static int refuse_bytes(const struct api_request *request, struct api_response *response,
        uint32_t index, const struct block_header *header, int error)
{
        switch (error) {
        case -ENOMEM:
                return error;
        case -EPROTONOSUPPORT:
                return REFUSE_BLOCK(415, version, header,
                        "block %" PRIu32 " is of a version that this collector does not know (it "
                        "knows %u)",
                        index, BLOCK_VERSION);
        case -EMSGSIZE:
                return REFUSE_BLOCK(400, size, header,
                        "block %" PRIu32 " is cut: it says that it is longer than the body", index);
        default:
                return REFUSE_BLOCK(400, damaged, header,
                        "block %" PRIu32 " is damaged: a length or the checksum does not fit",
                        index);
        }
}

static int check_header(const struct api_request *request, struct api_response *response,
        const struct ingest_change *change, uint32_t index, const struct block_header *header)
{
        char host[ID_TEXT_MAX];

        if (!id_equal(&header->host, &change->host))
                return REFUSE_BLOCK(403, host, header, "block %" PRIu32 " is of another host: %s",
                        index, id_format(&header->host, host));
        if (!source_name((enum source_id)header->source))
                return REFUSE_BLOCK(400, invalid, header,
                        "block %" PRIu32 " is of an unknown source: %u", index, header->source);
        if (header->first_us < 0 || header->last_us < header->first_us ||
                header->last_us > TIME_MAX_US)
                return REFUSE_BLOCK(400, invalid, header,
                        "block %" PRIu32 " has times that cannot be: from %" PRId64 " to %" PRId64
                        " us",
                        index, header->first_us, header->last_us);
        /* Queries look for the next row some intervals further on. */
        if (header->interval_us > INTERVAL_MAX_US)
                return REFUSE_BLOCK(400, invalid, header,
                        "block %" PRIu32 " has an interval that cannot be: %" PRIu64 " us", index,
                        header->interval_us);
        return 0;
}

static int check_block(const struct api_request *request, struct api_response *response,
        struct ingest_change *change, uint32_t index, const uint8_t *bytes, size_t left)
{
        struct ingest_block *block = &change->blocks[index];
        CLEANUP(block) struct block *decoded = NULL;
        int r;

        r = block_peek(bytes, left, &block->header, &block->size);
        if (r < 0)
                return refuse_bytes(request, response, index, NULL, r);
        r = check_header(request, response, change, index, &block->header);
        if (r != 0)
                return r;
        /* What is stored must be readable: nobody can mend it later. */
        r = block_open(bytes, block->size, &decoded);
        if (r < 0)
                return refuse_bytes(request, response, index, &block->header, r);
        block->bytes = bytes;
        return 0;
}

static int check_blocks(const struct api_request *request, struct api_response *response,
        struct ingest_change *change)
{
        size_t offset = 0, capacity = request->body_size / BLOCK_HEADER_BYTES + 1;
        int r;

        r = read_headers(request, response, change);
        if (r != 0)
                return r;
        if (request->body_size == 0)
                return REFUSE(400, "the body has no block");
        if (capacity > INGEST_BLOCKS_MAX)
                capacity = INGEST_BLOCKS_MAX;
        change->blocks = calloc(capacity, sizeof(*change->blocks));
        if (!change->blocks)
                return -ENOMEM;
        while (offset < request->body_size) {
                if (change->n_blocks == INGEST_BLOCKS_MAX)
                        return REFUSE(413, "the body has more than %u blocks", INGEST_BLOCKS_MAX);
                if (change->n_blocks == capacity)
                        return refuse_bytes(request, response, change->n_blocks, NULL, -EBADMSG);
                r = check_block(request, response, change, change->n_blocks, request->body + offset,
                        request->body_size - offset);
                if (r != 0)
                        return r;
                offset += change->blocks[change->n_blocks++].size;
        }
        return 0;
}

/* The host in the path; "*" where @for_all is not NULL. */
static int read_path_host(const struct api_request *request, struct api_response *response,
        struct id *ret_host, bool *for_all)
{
        const char *tail = api_path_tail(request);

        if (for_all)
                *for_all = strcmp(tail, "*") == 0;
        if (for_all && *for_all)
                return 0;
        if (id_parse(tail, ret_host) < 0 || id_is_zero(ret_host))
                return REFUSE(400,
                        "the path must end with a host id (a UUID)%s, but ends with '%s'",
                        for_all ? " or *" : "", tail);
        return 0;
}

/* A new reference. */
static int read_json(const struct api_request *request, struct api_response *response, json_t **ret)
{
        json_error_t error;

        if (request->body_size == 0)
                return REFUSE(400, "the body is empty");
        *ret = json_loadb(
                (const char *)request->body, request->body_size, JSON_REJECT_DUPLICATES, &error);
        if (!*ret)
                return REFUSE(400, "the body is not JSON: line %d: %s", error.line, error.text);
        return 0;
}

static bool tells_the_past(const struct facts *facts)
{
        for (size_t i = 0; i < facts->n_clusters; i++)
                if (facts->clusters[i].n_past_pools > 0)
                        return true;
        return false;
}

static int check_facts_json(const struct api_request *request, struct store_reader *reader,
        struct api_response *response, struct ingest_change *change, const json_t *json)
{
        CLEANUP(facts) struct facts *facts = NULL;
        CLEANUP(str) char *message = NULL;
        json_t *canonical;
        int r;

        r = facts_from_json(json, &facts, &message);
        if (r == -EINVAL)
                return REFUSE(400, "%s", message ? message : "the facts are not valid");
        if (r < 0)
                return r;
        if (tells_the_past(facts))
                return REFUSE(400, "past_pools is not for an agent to tell");
        if (!id_equal(&facts->host_id, &change->host))
                return REFUSE(400, "host_id is another than the one in the path");
        r = facts_keep(reader, &change->voice, request->now_us, facts);
        if (r < 0)
                return r;
        r = facts_to_json(facts, &canonical);
        if (r < 0)
                return r;
        change->json = json_dumps(canonical, JSON_COMPACT | JSON_SORT_KEYS);
        json_decref(canonical);
        return change->json ? 0 : -ENOMEM;
}

static int check_facts(const struct api_request *request, struct store_reader *reader,
        struct api_response *response, struct ingest_change *change)
{
        json_t *json;
        int r;

        r = read_path_host(request, response, &change->host, NULL);
        if (r != 0)
                return r;
        if (request->role == API_ROLE_AGENT && !id_equal(&request->host, &change->host))
                return REFUSE(403, "the token is another host's than the path says");
        r = api_header(request, "strata-host") ? voice_read(request, response, &change->voice) : 0;
        if (r != 0)
                return r;
        r = read_json(request, response, &json);
        if (r != 0)
                return r;
        r = check_facts_json(request, reader, response, change, json);
        json_decref(json);
        return r;
}

/* In a stored plan `ceph` enabled means "on the elected agent", and that is what it is unless
 * somebody says otherwise; lib/plan.c's default is the agent's, who is not elected by itself. */
static void default_ceph(json_t *json)
{
        json_t *sources = json_object_get(json, "sources");
        json_t *ceph = json_object_get(sources, source_name(SOURCE_CEPH));

        if (!json_is_object(json) || (sources && !json_is_object(sources)))
                return;
        if (!sources && json_object_set_new(json, "sources", sources = json_object()) < 0)
                return;
        if (!ceph &&
                json_object_set_new(sources, source_name(SOURCE_CEPH), ceph = json_object()) < 0)
                return;
        if (json_is_object(ceph) && !json_object_get(ceph, "enabled"))
                json_object_set_new(ceph, "enabled", json_true());
}

/* The first member that a plan does not have; NULL when there is none. */
static const char *find_unknown(json_t *json)
{
        const char *name;
        json_t *value;

        json_object_foreach (json, name, value)
                if (strcmp(name, "sources") != 0)
                        return name;
        return NULL;
}

static int check_plan_json(const struct api_request *request, struct api_response *response,
        struct ingest_change *change, json_t *json)
{
        CLEANUP(plan) struct plan plan = {0};
        CLEANUP(str) char *message = NULL;
        json_t *canonical;
        int r;

        /* The revision is ours to give; members of our own answers may come back. */
        if (json_is_object(json)) {
                json_object_del(json, "revision");
                json_object_del(json, "host");
                json_object_del(json, "of");
                json_object_del(json, "agents");
        }
        /* A slip of the pen must not put the built-in plan in place of the one that was meant. */
        if (find_unknown(json))
                return REFUSE(
                        400, "a plan has no member '%s'; it has: sources", find_unknown(json));
        if (json_object_get(json_object_get(json_object_get(json, "sources"), "ceph"), "clusters"))
                return REFUSE(400,
                        "sources.ceph.clusters is not for you to set: the collector elects "
                        "an agent for each cluster");
        default_ceph(json);
        r = plan_from_json(json, &plan, &message);
        if (r == -EINVAL)
                return REFUSE(400, "%s", message ? message : "the plan is not valid");
        if (r < 0)
                return r;
        r = plan_to_json(&plan, &canonical);
        if (r < 0)
                return r;
        change->json = json_dumps(canonical, JSON_COMPACT | JSON_SORT_KEYS);
        json_decref(canonical);
        return change->json ? 0 : -ENOMEM;
}

static int check_plan(const struct api_request *request, struct api_response *response,
        struct ingest_change *change)
{
        json_t *json;
        int r;

        r = read_path_host(request, response, &change->host, &change->for_all);
        if (r != 0 || change->action == ROUTE_DELETE_PLAN)
                return r;
        r = read_json(request, response, &json);
        if (r != 0)
                return r;
        r = check_plan_json(request, response, change, json);
        json_decref(json);
        return r;
}

int ingest_check(const struct api_request *request, enum route_action action,
        struct store_reader *reader, struct api_response *response, struct ingest_change *ret)
{
        *ret = (struct ingest_change){.action = action};
        switch (action) {
        case ROUTE_PUT_BLOCKS:
                return check_blocks(request, response, ret);
        case ROUTE_PUT_FACTS:
                return check_facts(request, reader, response, ret);
        default:
                return check_plan(request, response, ret);
        }
}
