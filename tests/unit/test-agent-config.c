#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agentd/agent-config.h"

/* The shipped file with every "#key = value" line made real. */
static char *uncommented(void)
{
        CLEANUP(str) char *source = NULL;
        static char path[] = "/tmp/strata-agentd-conf-XXXXXX";
        int fd = mkstemp(path), last;
        FILE *from, *to;
        char line[512];

        assert_true(fd >= 0);
        to = fdopen(fd, "w");
        assert_true(asprintf(&source, "%s/../../systemd/strata-agentd.conf",
                            getenv("STRATA_FIXTURES")) > 0);
        from = fopen(source, "r");
        assert_non_null(from);
        while (fgets(line, sizeof(line), from)) {
                last = line[0] == '#' && line[1] != ' ';
                fputs(line + last, to);
        }
        fclose(from);
        fclose(to);
        return path;
}

static size_t key_count(void)
{
        size_t n = 0;

        while (agent_config_keys[n].section)
                n++;
        return n;
}

static void the_shipped_file_shows_every_key_with_its_default(void **state)
{
        CLEANUP(agent_config) struct agent_config shown = {0}, defaults = {0};
        CLEANUP(str) char *message = NULL;
        char *path = uncommented(), line[512];
        size_t shown_keys = 0;
        FILE *file;

        (void)state;
        assert_int_equal(agent_config_load(path, &shown, &message), 0);
        assert_int_equal(agent_config_load(NULL, &defaults, &message), 0);
        for (const struct config_key *key = agent_config_keys; key->section; key++) {
                const char *a = (const char *)&shown + key->offset;
                const char *b = (const char *)&defaults + key->offset;

                if (key->type == CONFIG_STRING)
                        assert_string_equal(*(char *const *)a, *(char *const *)b);
                else if (key->type == CONFIG_BOOL)
                        assert_int_equal(*(const bool *)a, *(const bool *)b);
                else
                        assert_int_equal(*(const uint64_t *)a, *(const uint64_t *)b);
        }
        file = fopen(path, "r");
        while (fgets(line, sizeof(line), file))
                shown_keys += line[0] != '#' && strstr(line, " =") != NULL;
        fclose(file);
        unlink(path);
        assert_int_equal(shown_keys, key_count());
}

static void ceph_is_allowed_only_where_it_is_enabled(void **state)
{
        CLEANUP(agent_config) struct agent_config config = {0};
        CLEANUP(str) char *message = NULL;

        (void)state;
        assert_int_equal(agent_config_load(NULL, &config, &message), 0);
        assert_false(agent_config_allows(&config, SOURCE_CEPH));
        assert_true(agent_config_allows(&config, SOURCE_DISKSTATS));
        config.ceph_enabled = true;
        assert_true(agent_config_allows(&config, SOURCE_CEPH));
}

static void expect_refusal(const char *line, const char *sentence)
{
        CLEANUP(agent_config) struct agent_config config = {0};
        CLEANUP(str) char *message = NULL;
        char path[] = "/tmp/strata-agentd-conf-XXXXXX";
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        dprintf(fd, "%s\n", line);
        close(fd);
        assert_int_equal(agent_config_load(path, &config, &message), -EINVAL);
        unlink(path);
        assert_non_null(message);
        assert_non_null(strstr(message, path));
        if (!strstr(message, sentence))
                fail_msg("'%s' does not say '%s'", message, sentence);
}

static void names_what_could_never_reach_a_collector(void **state)
{
        (void)state;
        expect_refusal("[agent]\nhost_id = 00000000-0000-0000-0000-000000000000", "all zeros");
        expect_refusal("[agent]\nhost_id = node1", "host_id 'node1' is not a UUID");
        expect_refusal("[collector]\nurl = http://", "url 'http://' names no host");
        expect_refusal("[collector]\nurl = https://:7440", "names no host");
        expect_refusal("[collector]\nurl = node1:7440", "neither with http:// nor https://");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_shipped_file_shows_every_key_with_its_default),
                cmocka_unit_test(ceph_is_allowed_only_where_it_is_enabled),
                cmocka_unit_test(names_what_could_never_reach_a_collector),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
