#include "collectord/ingest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/roll.h"
#include "lib/log.h"

void ingest_change_done(struct ingest_change *change)
{
        free(change->blocks);
        free(change->json);
        *change = (struct ingest_change){0};
}

size_t ingest_body_max(enum route_action action)
{
        switch (action) {
        case ROUTE_PUT_BLOCKS:
        case ROUTE_PUT_FACTS:
                return INGEST_BODY_MAX;
        case ROUTE_PUT_PLAN:
                return INGEST_PLAN_MAX;
        default:
                return 0;
        }
}

static int apply_blocks(struct ingest_change *change, const struct api_request *request,
        struct api_response *response, struct store *store)
{
        int r;

        for (uint32_t i = 0; i < change->n_blocks; i++) {
                const struct ingest_block *block = &change->blocks[i];
                bool gap = block->header.flags & BLOCK_FLAG_GAP;

                r = store_put_block(
                        store, &block->header, block->bytes, block->size, request->now_us);
                if (r == -EEXIST) {
                        metrics_add(request->metrics, rejected[METRICS_REASON_conflict], 1);
                        r = api_problem_with(request, response, 409,
                                json_pack("{s:i, s:I}", "block", (int)i, "sequence",
                                        (json_int_t)block->header.sequence),
                                "block %" PRIu32 " (sequence %" PRIu64
                                ") is there already with other content",
                                i, block->header.sequence);
                        return r < 0 ? r : 1;
                }
                if (r < 0)
                        return r;
                if (r == STORE_DUPLICATE) {
                        change->duplicates++;
                        continue;
                }
                change->accepted++;
                change->bytes += block->size;
                change->gaps += gap;
                *(gap ? &change->gap_rows : &change->rows) += block->header.rows;
        }
        return store_put_agent(store, &change->update);
}

int ingest_apply(struct ingest_change *change, const struct api_request *request,
        struct api_response *response, struct store *store)
{
        const struct id *host = change->for_all ? NULL : &change->host;
        int r;

        switch (change->action) {
        case ROUTE_PUT_BLOCKS:
                return apply_blocks(change, request, response, store);
        case ROUTE_PUT_FACTS:
                return store_put_facts(store, &change->host, change->json, request->now_us);
        case ROUTE_PUT_PLAN:
                return store_put_plan(store, host, change->json, &change->revision);
        case ROUTE_DELETE_PLAN:
                r = store_put_plan(store, host, NULL, &change->revision);
                if (r != -ENOENT)
                        return r;
                r = api_problem(request, response, 404, "'%s' has no plan of its own",
                        api_path_tail(request));
                return r < 0 ? r : 1;
        default:
                return -EINVAL;
        }
}

static void count_blocks(const struct ingest_change *change, struct metrics *metrics)
{
        metrics_add(metrics, blocks, change->accepted - change->gaps);
        metrics_add(metrics, rows, change->rows);
        metrics_add(metrics, block_bytes, change->bytes);
        metrics_add(metrics, duplicates, change->duplicates);
        metrics_add(metrics, gaps, change->gaps);
        metrics_add(metrics, gap_rows, change->gap_rows);
}

/* Most answers have no plan: no JSON document is built for them. */
static int write_answer(
        const struct ingest_change *change, struct api_response *response, json_t *plan)
{
        char *text;
        int n;

        if (plan)
                return api_json(response, 200,
                        json_pack("{s:i, s:i, s:o}", "accepted", (int)change->accepted,
                                "duplicates", (int)change->duplicates, "plan", plan));
        n = asprintf(&text, "{\"accepted\":%" PRIu32 ",\"duplicates\":%" PRIu32 "}",
                change->accepted, change->duplicates);
        return n < 0 ? -ENOMEM : api_text(response, 200, text, (size_t)n);
}

static void watch_clones(const struct ingest_change *change, const struct api_request *request)
{
        bool news = false;
        char host[ID_TEXT_MAX];

        if (!request->roll)
                return;
        for (uint32_t i = 0; i < change->n_blocks; i++)
                news |= roll_hear(request->roll, &change->host, &change->blocks[i].header.boot,
                        change->blocks[i].header.last_us);
        if (news)
                log_warning(
                        "host %s is two machines that take turns, cloned with their machine id: "
                        "their samples mix. Give one of them a host_id of its own",
                        id_format(&change->host, host));
        metrics_set(request->metrics, agents, roll_count(request->roll));
}

static int answer_blocks(struct ingest_change *change, const struct api_request *request,
        struct api_response *response, struct plan_list *plans, struct election *election,
        uint64_t monotonic_us)
{
        struct election_result elected;
        json_t *plan = NULL;
        int r;

        count_blocks(change, request->metrics);
        watch_clones(change, request);
        election_hear(election, &change->voice, monotonic_us, &elected);
        metrics_set(request->metrics, elections, election_count_changes(election));
        if (plan_list_revision(plans, &change->host, &elected) != change->agent_revision) {
                r = plan_list_effective(plans, &change->host, &elected, &plan);
                if (r < 0)
                        return r;
        }
        return write_answer(change, response, plan);
}

static int answer_plan(
        const struct ingest_change *change, struct api_response *response, struct plan_list *plans)
{
        json_t *plan;
        char host[ID_TEXT_MAX];
        int r;

        r = plan_list_put(
                plans, change->for_all ? NULL : &change->host, change->json, change->revision);
        if (r < 0)
                return r;
        if (!change->json)
                return api_text(response, 204, NULL, 0);
        r = plan_load(change->json, change->revision, &plan);
        if (r < 0)
                return r;
        json_object_set_new(
                plan, "host", json_string(change->for_all ? "*" : id_format(&change->host, host)));
        json_object_set_new(plan, "of", json_string(change->for_all ? "*" : "host"));
        return api_json(response, 200, plan);
}

int ingest_answer(struct ingest_change *change, const struct api_request *request,
        struct api_response *response, struct plan_list *plans, struct election *election,
        uint64_t monotonic_us)
{
        switch (change->action) {
        case ROUTE_PUT_BLOCKS:
                return answer_blocks(change, request, response, plans, election, monotonic_us);
        case ROUTE_PUT_FACTS:
                metrics_add(request->metrics, facts, 1);
                return api_text(response, 204, NULL, 0);
        default:
                metrics_add(request->metrics, plans, 1);
                return answer_plan(change, response, plans);
        }
}
