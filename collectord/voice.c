#include "collectord/voice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS " ,"

static int refuse(int r)
{
        return r < 0 ? r : 1;
}

int voice_read_number(const struct api_request *request, struct api_response *response,
        const char *name, uint64_t fallback, uint64_t *ret)
{
        const char *text = api_header(request, name);
        size_t length = text ? strlen(text) : 0;

        *ret = fallback;
        if (!text)
                return 0;
        if (length == 0 || length > 18 || strspn(text, "0123456789") != length)
                return refuse(api_problem(request, response, 400,
                        "the header %s must be a whole number, but is '%s'", name, text));
        *ret = strtoull(text, NULL, 10);
        return 0;
}

/* "diskstats, osd,ceph" has "ceph". */
static bool list_has(const char *list, const char *word)
{
        size_t length = strlen(word);

        while (list && *list) {
                size_t n;

                list += strspn(list, SEPARATORS);
                n = strcspn(list, SEPARATORS);
                if (n == length && memcmp(list, word, n) == 0)
                        return true;
                list += n;
        }
        return false;
}

/* "FSID", "unknown", and either with a "!" behind it: it fails. */
static int read_cluster(const char *text, size_t length, struct election_voice *voice)
{
        char word[ID_TEXT_MAX + 1];
        uint32_t i = voice->n_clusters;

        if (length >= sizeof(word) || i == PLAN_CLUSTERS_MAX)
                return -EINVAL;
        memcpy(word, text, length);
        word[length] = '\0';
        voice->failing[i] = length > 0 && word[length - 1] == '!';
        if (voice->failing[i])
                word[length - 1] = '\0';
        voice->clusters[i] = (struct id){0};
        if (strcmp(word, PLAN_CLUSTER_UNKNOWN) != 0 && id_parse(word, &voice->clusters[i]) < 0)
                return -EINVAL;
        voice->n_clusters++;
        return 0;
}

static int read_clusters(const char *list, struct election_voice *voice)
{
        int r = 0;

        for (list += strspn(list, SEPARATORS); *list && r == 0; list += strspn(list, SEPARATORS)) {
                size_t n = strcspn(list, SEPARATORS);

                r = read_cluster(list, n, voice);
                list += n;
        }
        return r;
}

int voice_read(const struct api_request *request, struct api_response *response,
        struct election_voice *ret)
{
        const char *host = api_header(request, "strata-host");
        const char *clusters = api_header(request, "strata-clusters");
        struct election_voice voice = {0};
        int r;

        if (!host)
                return refuse(
                        api_problem(request, response, 400, "the header Strata-Host is missing"));
        if (id_parse(host, &voice.host) < 0 || id_is_zero(&voice.host))
                return refuse(api_problem(request, response, 400,
                        "the header Strata-Host must be a UUID, but is '%s'", host));
        r = voice_read_number(request, response, "strata-interval", ELECTION_INTERVAL_DEFAULT_US,
                &voice.interval_us);
        if (r != 0)
                return r;
        if (list_has(api_header(request, "strata-sources"), source_name(SOURCE_CEPH)) &&
                read_clusters(clusters ? clusters : PLAN_CLUSTER_UNKNOWN, &voice) < 0)
                return refuse(api_problem(request, response, 400,
                        "the header Strata-Clusters must be at most %u fsids or '%s', each with a "
                        "'!' behind it when it fails, but is '%s'",
                        PLAN_CLUSTERS_MAX, PLAN_CLUSTER_UNKNOWN, clusters));
        *ret = voice;
        return 0;
}
