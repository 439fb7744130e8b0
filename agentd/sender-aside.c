#include "agentd/sender-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"

#define PATH_BYTES 96u

int sender_start_facts(struct sender *sender)
{
        char path[PATH_BYTES];

        free(sender->facts_flying);
        sender->facts_flying = strdup(sender->facts);
        if (!sender->facts_flying)
                return -ENOMEM;
        snprintf(path, sizeof(path), "/api/v1/facts/%s", sender->host);
        return sender_start(sender, KIND_FACTS,
                &(struct upload_request){
                        .method = "PUT",
                        .path = path,
                        .body = sender->facts_flying,
                        .size = strlen(sender->facts_flying),
                });
}

int sender_start_plan(struct sender *sender)
{
        char path[PATH_BYTES];

        snprintf(path, sizeof(path), "/api/v1/plans/%s", sender->host);
        return sender_start(
                sender, KIND_PLAN, &(struct upload_request){.method = "GET", .path = path});
}

/* Its trouble is no reason to hold back the samples, unless nobody answers at all. */
static void aside_failed(struct sender *sender, enum sender_kind kind,
        const struct upload_answer *answer, const char *detail)
{
        if (answer->status < 0 || answer->status == 401)
                sender_failed(sender, kind, answer, detail);
        else
                sender_tell(sender, kind, answer, detail);
}

void sender_plan_answered(struct sender *sender, const struct upload_answer *answer)
{
        struct answer meaning;

        answer_read_plan(answer->status, answer->body, answer->size, &meaning);
        if (meaning.verdict == ANSWER_STORED) {
                sender_succeeded(sender, KIND_PLAN);
                sender->plan(sender->userdata, meaning.plan);
        } else {
                sender->spoken_us = clock_monotonic_us();
                aside_failed(sender, KIND_PLAN, answer, meaning.detail);
        }
        answer_done(&meaning);
}

void sender_facts_answered(struct sender *sender, const struct upload_answer *answer)
{
        uint64_t now_us = clock_monotonic_us();
        struct answer meaning;

        answer_read_facts(answer->status, answer->body, answer->size, &meaning);
        if (meaning.verdict == ANSWER_STORED) {
                sender_succeeded(sender, KIND_FACTS);
                /* Unless they changed while these were on their way. */
                sender->facts_due = strcmp(sender->facts, sender->facts_flying) != 0;
                sender->facts_backoff.failures = 0;
        } else {
                aside_failed(sender, KIND_FACTS, answer, meaning.detail);
                /* Later than the samples, so that these get their turn. */
                if (sender->wait_until_us > now_us)
                        now_us = sender->wait_until_us;
                sender->facts_not_before_us =
                        now_us + backoff_next(&sender->facts_backoff, sender_random(sender),
                                         meaning.verdict == ANSWER_REFUSED ? BACKOFF_MAX_US : 0);
        }
        answer_done(&meaning);
}
