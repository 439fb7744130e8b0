#include "collectord/finding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectord/text.h"

struct finding {
        struct verdict_finding now; /* as it was said last */
        char *rule, *advice;        /* owned: of findings that were loaded */
        int64_t begin_us, last_us, end_us;
        uint32_t seen, missed; /* evaluations in a row */
        bool open, bottleneck, changed;
};

struct watch {
        struct id cluster;
        struct finding findings[FINDING_OPEN_MAX];
        uint32_t n;
        /* What the verdict is about: a rule, "" for none. */
        char rule[32], entity[VERDICT_ENTITY_MAX];
        char next_rule[32], next_entity[VERDICT_ENTITY_MAX];
        uint32_t next_seen;
        int64_t since_us, time_us;
        struct verdict_finding shown;
        char none[VERDICT_SENTENCE_MAX];
        char *json, *news;
        bool changed;
};

struct findings {
        struct watch *watches[FINDING_CLUSTERS_MAX];
        uint32_t n;
};

void finding_evaluation_done(struct finding_evaluation *evaluation)
{
        verdict_free(evaluation->verdict);
        free(evaluation->doubts);
        *evaluation = (struct finding_evaluation){0};
}

int findings_new(struct findings **ret)
{
        struct findings *findings = calloc(1, sizeof(*findings));

        if (!findings)
                return -ENOMEM;
        *ret = findings;
        return 0;
}

static void finding_done(struct finding *finding)
{
        free(finding->rule);
        free(finding->advice);
}

static struct watch *watch_free(struct watch *watch)
{
        if (!watch)
                return NULL;
        for (uint32_t i = 0; i < watch->n; i++)
                finding_done(&watch->findings[i]);
        free(watch->json);
        free(watch->news);
        free(watch);
        return NULL;
}

struct findings *findings_free(struct findings *findings)
{
        if (!findings)
                return NULL;
        for (uint32_t i = 0; i < findings->n; i++)
                watch_free(findings->watches[i]);
        free(findings);
        return NULL;
}

static struct watch *find_watch(const struct findings *findings, const struct id *cluster)
{
        for (uint32_t i = 0; i < findings->n; i++)
                if (id_equal(&findings->watches[i]->cluster, cluster))
                        return findings->watches[i];
        return NULL;
}

static int get_watch(struct findings *findings, const struct id *cluster, struct watch **ret)
{
        struct watch *watch = find_watch(findings, cluster);

        if (!watch) {
                if (findings->n == FINDING_CLUSTERS_MAX)
                        return -ENOSPC;
                watch = calloc(1, sizeof(*watch));
                if (!watch)
                        return -ENOMEM;
                watch->cluster = *cluster;
                findings->watches[findings->n++] = watch;
        }
        *ret = watch;
        return 0;
}

/* ---- what was open ---- */

static void copy(char *to, size_t size, const char *from)
{
        snprintf(to, size, "%s", from);
}

static int load(void *userdata, const struct store_finding *stored)
{
        struct findings *findings = userdata;
        struct finding *finding;
        struct watch *watch;
        int r;

        r = get_watch(findings, &stored->cluster, &watch);
        if (r < 0)
                return r == -ENOSPC ? 0 : r;
        if (watch->n == FINDING_OPEN_MAX)
                return 0;
        finding = &watch->findings[watch->n];
        *finding = (struct finding){
                .rule = strdup(stored->rule),
                .advice = strdup(stored->advice),
                .begin_us = stored->begin_us,
                .last_us = stored->last_us,
                .seen = FINDING_BEGINS_AFTER,
                .open = true,
                .bottleneck = stored->bottleneck,
        };
        watch->n++;
        if (!finding->rule || !finding->advice)
                return -ENOMEM;
        finding->now.rule = finding->rule;
        finding->now.advice = finding->advice;
        finding->now.share = stored->share;
        for (enum verdict_kind kind = 0; kind <= VERDICT_POOL; kind++)
                if (strcmp(verdict_kind_name(kind), stored->kind) == 0)
                        finding->now.kind = kind;
        for (enum verdict_layer layer = 0; layer <= VERDICT_CLIENT; layer++)
                if (strcmp(verdict_layer_name(layer), stored->layer) == 0)
                        finding->now.layer = layer;
        copy(finding->now.entity, sizeof(finding->now.entity), stored->entity);
        copy(finding->now.sentence, sizeof(finding->now.sentence), stored->sentence);
        return 0;
}

int findings_load(struct findings *findings, struct store_reader *reader)
{
        const struct store_finding_filter open = {
                .to_us = INT64_MAX, .open = true, .limit = FINDING_KEEP};

        return store_read_findings(reader, &open, load, findings);
}

/* ---- one evaluation ---- */

static bool is_same(const struct finding *finding, const struct verdict_finding *said)
{
        return strcmp(finding->now.rule, said->rule) == 0 && finding->now.kind == said->kind &&
               strcmp(finding->now.entity, said->entity) == 0;
}

static void see(struct watch *watch, const struct verdict_finding *said, int64_t now_us)
{
        struct finding *finding = NULL;

        for (uint32_t i = 0; i < watch->n && !finding; i++)
                if (is_same(&watch->findings[i], said))
                        finding = &watch->findings[i];
        if (!finding) {
                if (watch->n == FINDING_OPEN_MAX)
                        return;
                finding = &watch->findings[watch->n++];
                *finding = (struct finding){.begin_us = now_us};
        }
        finding->now = *said;
        finding->last_us = now_us;
        finding->missed = 0;
        if (++finding->seen >= FINDING_BEGINS_AFTER)
                finding->open = true;
        finding->changed = finding->open;
}

static bool is_said(const struct finding *finding, const struct verdict *verdict)
{
        for (uint32_t i = 0; i < verdict->n; i++)
                if (is_same(finding, &verdict->findings[i]))
                        return true;
        return false;
}

static void miss(struct watch *watch, const struct verdict *verdict)
{
        for (uint32_t i = 0; i < watch->n; i++) {
                struct finding *finding = &watch->findings[i];

                if (finding->end_us != 0 || (verdict && is_said(finding, verdict)))
                        continue;
                finding->seen = finding->open ? finding->seen : 0;
                if (++finding->missed < FINDING_ENDS_AFTER && finding->open)
                        continue;
                finding->end_us = finding->last_us;
                finding->changed = finding->open;
        }
}

/* Those that ended and are stored, or never began. */
static void drop(struct watch *watch)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < watch->n; i++) {
                if (watch->findings[i].end_us != 0 && !watch->findings[i].changed)
                        finding_done(&watch->findings[i]);
                else
                        watch->findings[n++] = watch->findings[i];
        }
        watch->n = n;
}

static void mark_bottleneck(struct watch *watch)
{
        for (uint32_t i = 0; i < watch->n; i++) {
                struct finding *finding = &watch->findings[i];

                if (finding->end_us == 0 && strcmp(finding->now.rule, watch->rule) == 0 &&
                        strcmp(finding->now.entity, watch->entity) == 0)
                        finding->bottleneck = true;
        }
}

static int tell(struct watch *watch)
{
        char fsid[ID_TEXT_MAX];

        free(STEAL(watch->news));
        if (asprintf(&watch->news, "cluster %s: %s%s%s: %s", id_format(&watch->cluster, fsid),
                    *watch->rule ? verdict_layer_name(watch->shown.layer) : "no bottleneck",
                    *watch->rule ? " is the bottleneck, " : "",
                    *watch->rule ? watch->shown.entity : "",
                    *watch->rule ? watch->shown.sentence : watch->none) < 0) {
                watch->news = NULL;
                return -ENOMEM;
        }
        return 0;
}

/* The verdict changes when another candidate was it twice in a row. */
static int choose(struct watch *watch, const struct verdict *verdict, int64_t now_us)
{
        const struct verdict_finding *first = verdict->bottleneck ? &verdict->findings[0] : NULL;
        const char *rule = first ? first->rule : "", *entity = first ? first->entity : "";
        bool same = strcmp(watch->rule, rule) == 0 && strcmp(watch->entity, entity) == 0;

        free(STEAL(watch->news));
        if (!first)
                copy(watch->none, sizeof(watch->none), verdict->sentence);
        /* It holds, whatever a single evaluation puts before it. */
        for (uint32_t i = 0; i < verdict->n; i++)
                if (strcmp(watch->rule, verdict->findings[i].rule) == 0 &&
                        strcmp(watch->entity, verdict->findings[i].entity) == 0)
                        watch->shown = verdict->findings[i];
        if (same && watch->since_us != 0) {
                watch->next_seen = 0;
                return 0;
        }
        if (strcmp(watch->next_rule, rule) != 0 || strcmp(watch->next_entity, entity) != 0)
                watch->next_seen = 0;
        copy(watch->next_rule, sizeof(watch->next_rule), rule);
        copy(watch->next_entity, sizeof(watch->next_entity), entity);
        if (++watch->next_seen < FINDING_BEGINS_AFTER)
                return 0;
        watch->next_seen = 0;
        copy(watch->rule, sizeof(watch->rule), rule);
        copy(watch->entity, sizeof(watch->entity), entity);
        watch->since_us = now_us;
        if (first)
                watch->shown = *first;
        return tell(watch);
}

/* ---- the verdict as it is shown ---- */

static void add_curves(struct text *text, const struct verdict_finding *finding)
{
        text_add(text, "[");
        for (uint32_t i = 0; i < finding->n_curves; i++) {
                if (i > 0)
                        text_add(text, ",");
                text_string(text, finding->curves[i]);
        }
        text_add(text, "]");
}

static void add_member(struct text *text, const char *name, const char *value)
{
        text_format(text, ",\"%s\":", name);
        text_string(text, value);
}

static int show(struct watch *watch, const struct finding_evaluation *evaluation)
{
        struct text storage = {0};
        CLEANUP(text_object) struct text *text = &storage;
        bool any = *watch->rule;
        char fsid[ID_TEXT_MAX];
        size_t size;

        free(STEAL(watch->json));
        text_format(text, "{\"cluster\":\"%s\",\"time\":", id_format(&watch->cluster, fsid));
        text_time(text, evaluation->now_us);
        text_add(text, ",\"from\":");
        text_time(text, evaluation->from_us);
        text_add(text, ",\"to\":");
        text_time(text, evaluation->to_us);
        text_add(text, ",\"since\":");
        if (watch->since_us)
                text_time(text, watch->since_us);
        else
                text_add(text, "null");
        add_member(text, "layer", any ? verdict_layer_name(watch->shown.layer) : "none");
        add_member(text, "rule", any ? watch->rule : NULL);
        text_add(text, ",\"entity\":");
        if (any) {
                text_format(
                        text, "{\"kind\":\"%s\",\"name\":", verdict_kind_name(watch->shown.kind));
                text_string(text, watch->shown.entity);
                text_add(text, "}");
        } else
                text_add(text, "null");
        text_add(text, ",\"share\":");
        text_number(text, any ? watch->shown.share : 0);
        add_member(text, "sentence",
                any            ? watch->shown.sentence
                : *watch->none ? watch->none
                               : "Not judged yet.");
        add_member(text, "advice", any ? watch->shown.advice : NULL);
        text_add(text, ",\"curves\":");
        add_curves(text, any ? &watch->shown : &(struct verdict_finding){0});
        text_add(text, ",\"doubts\":[");
        for (uint32_t i = 0; i < evaluation->n_doubts; i++) {
                if (i > 0)
                        text_add(text, ",");
                text_string(text, evaluation->doubts[i]);
        }
        text_add(text, "]}");
        return text_take(text, &watch->json, &size);
}

int findings_update(struct findings *findings, const struct finding_evaluation *evaluation)
{
        struct watch *watch;
        int r;

        r = get_watch(findings, &evaluation->cluster, &watch);
        if (r < 0)
                return r;
        drop(watch);
        miss(watch, evaluation->verdict);
        for (uint32_t i = 0; i < evaluation->verdict->n; i++)
                see(watch, &evaluation->verdict->findings[i], evaluation->now_us);
        watch->time_us = evaluation->now_us;
        watch->changed = true;
        r = choose(watch, evaluation->verdict, evaluation->now_us);
        if (r < 0)
                return r;
        mark_bottleneck(watch);
        return show(watch, evaluation);
}

void findings_forget(struct findings *findings, const struct id *const *clusters, size_t n)
{
        for (uint32_t i = 0; i < findings->n; i++) {
                struct watch *watch = findings->watches[i];
                bool known = false;

                for (size_t k = 0; k < n && !known; k++)
                        known = id_equal(&watch->cluster, clusters[k]);
                if (known)
                        continue;
                drop(watch);
                miss(watch, NULL);
        }
}

/* ---- storing ---- */

static int put(struct watch *watch, struct finding *finding, struct store *store)
{
        struct text storage = {0};
        CLEANUP(text_object) struct text *text = &storage;
        CLEANUP(str) char *curves = NULL;
        struct store_finding stored = {
                .cluster = watch->cluster,
                .rule = finding->now.rule,
                .layer = verdict_layer_name(finding->now.layer),
                .kind = verdict_kind_name(finding->now.kind),
                .entity = finding->now.entity,
                .sentence = finding->now.sentence,
                .advice = finding->now.advice,
                .begin_us = finding->begin_us,
                .last_us = finding->last_us,
                .end_us = finding->end_us,
                .bottleneck = finding->bottleneck,
                .share = finding->now.share,
        };
        size_t size;
        int r;

        add_curves(text, &finding->now);
        r = text_take(text, &curves, &size);
        if (r < 0)
                return r;
        stored.curves = curves;
        return store_put_finding(store, &stored);
}

int findings_put(struct findings *findings, struct store *store, int64_t now_us)
{
        const uint32_t step = 100;
        int r;

        for (uint32_t i = 0; i < findings->n; i++) {
                struct watch *watch = findings->watches[i];

                for (uint32_t k = 0; k < watch->n; k++) {
                        if (!watch->findings[k].changed)
                                continue;
                        r = put(watch, &watch->findings[k], store);
                        if (r < 0)
                                return r;
                }
                if (!watch->changed || !watch->json)
                        continue;
                r = store_put_verdict(store, &watch->cluster, watch->time_us, watch->json);
                if (r < 0)
                        return r;
        }
        return store_retain_findings(store, now_us - FINDING_KEEP_US, FINDING_KEEP, step);
}

void findings_stored(struct findings *findings)
{
        for (uint32_t i = 0; i < findings->n; i++) {
                findings->watches[i]->changed = false;
                for (uint32_t k = 0; k < findings->watches[i]->n; k++)
                        findings->watches[i]->findings[k].changed = false;
        }
}

const char *findings_get_verdict(const struct findings *findings, const struct id *cluster)
{
        const struct watch *watch = find_watch(findings, cluster);

        return watch ? watch->json : NULL;
}

const char *findings_get_news(const struct findings *findings, const struct id *cluster)
{
        const struct watch *watch = find_watch(findings, cluster);

        return watch ? watch->news : NULL;
}
