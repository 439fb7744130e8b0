#include "agentd/ceph-clusters.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/message.h"

#define LINES_MAX 10000u /* of a ceph.conf */

void ceph_clusters_done(struct ceph_clusters *clusters)
{
        for (size_t i = 0; i < PLAN_CLUSTERS_MAX; i++) {
                free(clusters->list[i].conf);
                free(clusters->list[i].name);
                free(clusters->list[i].keyring);
        }
        *clusters = (struct ceph_clusters){0};
}

static size_t count_words(const char *list)
{
        size_t n = 1;

        for (; *list; list++)
                n += *list == ':';
        return n;
}

/* The word at @index of "a:b:c"; one word alone stands for all. */
static char *copy_word(const char *list, size_t index)
{
        if (!strchr(list, ':'))
                return strdup(list);
        while (index-- > 0)
                list = strchr(list, ':') + 1;
        return strndup(list, strcspn(list, ":"));
}

static int check_count(const char *key, const char *list, size_t n, char **ret_message)
{
        size_t words = count_words(list);

        if (words == 1 || words == n)
                return 0;
        return message_refuse(ret_message,
                "%s '%.*s' has %zu values for %zu files in conf: one for all or one for each", key,
                message_clip(list), list, words, n);
}

int ceph_clusters_parse(const char *conf, const char *name, const char *keyring,
        struct ceph_clusters *ret, char **ret_message)
{
        size_t n = count_words(conf);
        int r;

        *ret = (struct ceph_clusters){0};
        if (n > PLAN_CLUSTERS_MAX)
                return message_refuse(ret_message, "conf names %zu files, but may name at most %u",
                        n, PLAN_CLUSTERS_MAX);
        r = check_count("name", name, n, ret_message);
        if (r == 0)
                r = check_count("keyring", keyring, n, ret_message);
        for (size_t i = 0; i < n && r == 0; i++) {
                struct ceph_cluster *cluster = &ret->list[ret->n++];

                cluster->conf = copy_word(conf, i);
                cluster->name = copy_word(name, i);
                cluster->keyring = copy_word(keyring, i);
                if (!cluster->conf || !cluster->name || !cluster->keyring)
                        return -ENOMEM;
                if (!cluster->conf[0])
                        r = message_refuse(ret_message, "conf '%.*s' has an empty name of a file",
                                message_clip(conf), conf);
                else if (!cluster->name[0])
                        r = message_refuse(ret_message, "name '%.*s' has an empty name",
                                message_clip(name), name);
        }
        return r;
}

/* "  fsid = 1b4e28ba-..." */
static int parse_fsid(const char *line, struct id *ret)
{
        char text[ID_TEXT_MAX];

        line += strspn(line, " \t");
        if (strncasecmp(line, "fsid", 4) != 0)
                return -ENOENT;
        line += 4 + strspn(line + 4, " \t");
        if (*line != '=')
                return -ENOENT;
        line += 1 + strspn(line + 1, " \t\"");
        snprintf(text, sizeof(text), "%.*s", (int)strcspn(line, " \t\r\n\";#"), line);
        return id_parse(text, ret);
}

static int read_fsid(const char *path, struct id *ret)
{
        CLEANUP(str) char *line = NULL;
        FILE *file = fopen(path, "re");
        size_t capacity = 0;
        int r = -ENOENT;

        if (!file)
                return -errno;
        for (unsigned i = 0; i < LINES_MAX && r < 0 && getline(&line, &capacity, file) >= 0; i++)
                r = parse_fsid(line, ret);
        fclose(file);
        return r;
}

void ceph_clusters_read_fsids(struct ceph_clusters *clusters)
{
        for (size_t i = 0; i < clusters->n; i++)
                if (read_fsid(clusters->list[i].conf, &clusters->list[i].fsid) < 0)
                        clusters->list[i].fsid = (struct id){0};
}

int ceph_clusters_check_fsids(const struct ceph_clusters *clusters, char **ret_message)
{
        char fsid[ID_TEXT_MAX];

        for (size_t i = 0; i < clusters->n; i++)
                for (size_t k = 0; k < i; k++)
                        if (!id_is_zero(&clusters->list[i].fsid) &&
                                id_equal(&clusters->list[i].fsid, &clusters->list[k].fsid))
                                return message_refuse(ret_message,
                                        "conf names the cluster %s twice: in %s and in %s",
                                        id_format(&clusters->list[i].fsid, fsid),
                                        clusters->list[k].conf, clusters->list[i].conf);
        return 0;
}
