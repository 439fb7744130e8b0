/* The collector's configuration: what is shipped, and what must not start. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "collectord/collector-config.h"

static char *write_file(const char *text)
{
        char *path = strdup("/tmp/strata-config-XXXXXX");
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
        return path;
}

/* The shipped file with every "#key = value" line made real, and how many there are. */
static char *uncomment_shipped(size_t *ret_keys)
{
        CLEANUP(str) char *source = NULL, *text = NULL;
        CLEANUP(file) FILE *from = NULL;
        FILE *to;
        char line[512];
        size_t size;

        assert_true(asprintf(&source, "%s/../../systemd/strata-collectord.conf",
                            getenv("STRATA_FIXTURES")) > 0);
        from = fopen(source, "r");
        assert_non_null(from);
        to = open_memstream(&text, &size);
        *ret_keys = 0;
        while (fgets(line, sizeof(line), from)) {
                bool key = line[0] == '#' && line[1] != ' ';

                fputs(line + key, to);
                *ret_keys += key;
        }
        fclose(to);
        return write_file(text);
}

static void the_shipped_file_shows_every_key_with_its_default(void **state)
{
        CLEANUP(collector_config) struct collector_config shown = {0}, defaults = {0};
        CLEANUP(str) char *message = NULL;
        size_t n = 0, shown_keys;
        CLEANUP(str) char *path = uncomment_shipped(&shown_keys);

        (void)state;
        if (collector_config_load(path, &shown, &message) < 0)
                fail_msg("%s", message);
        unlink(path);
        assert_int_equal(collector_config_load(NULL, &defaults, &message), 0);
        for (const struct config_key *key = collector_config_keys; key->section; key++, n++) {
                const char *a = (const char *)&shown + key->offset;
                const char *b = (const char *)&defaults + key->offset;

                if (key->type == CONFIG_STRING)
                        assert_string_equal(*(char *const *)a, *(char *const *)b);
                else if (key->type == CONFIG_BOOL)
                        assert_int_equal(*(const bool *)a, *(const bool *)b);
                else
                        assert_int_equal(*(const uint64_t *)a, *(const uint64_t *)b);
        }
        assert_int_equal(shown_keys, n);
}

static void starts_open_to_others_only_with_certificate_and_tokens(void **state)
{
        static const char tls[] = "[tls]\ncertificate = /c\nkey = /k\n";
        static const char tokens[] = "[tokens]\nfile = /t\n";
        static const struct {
                const char *listen, *more, *and_more;
                int r;
        } cases[] = {
                {"127.0.0.1:7440", "", "", 0},
                {"127.3.2.1:1", "", "", 0},
                {"[::1]:7440", "", "", 0},
                {"[::ffff:127.0.0.1]:7440", "", "", 0},
                {"0.0.0.0:7440", "", "", -EINVAL},
                {"[::]:7440", "", "", -EINVAL},
                {"192.0.2.1:7440", tls, "", -EINVAL},
                {"192.0.2.1:7440", tokens, "", -EINVAL},
                {"192.0.2.1:7440", tls, tokens, 0},
                {"192.0.2.1:7440", "insecure = yes\n", "", 0},
                {"127.0.0.1:7440", "[tls]\nkey = /k\n", "", -EINVAL},
                {"localhost:7440", "", "", -EINVAL},
                {"127.0.0.1", "", "", -EINVAL},
                {"::1:7440", "", "", -EINVAL},
                {"127.0.0.1:70000", "", "", -EINVAL},
                {":7440", "", "", -EINVAL},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                CLEANUP(collector_config) struct collector_config config = {0};
                CLEANUP(str) char *message = NULL, *text = NULL, *path = NULL;
                int r;

                assert_true(asprintf(&text, "[collector]\nlisten = %s\n%s%s", cases[i].listen,
                                    cases[i].more, cases[i].and_more) > 0);
                path = write_file(text);
                r = collector_config_load(path, &config, &message);
                unlink(path);
                if (r != cases[i].r)
                        fail_msg("%s gives %d: %s", text, r, message ? message : "");
                if (r < 0)
                        assert_non_null(strstr(message, path));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_shipped_file_shows_every_key_with_its_default),
                cmocka_unit_test(starts_open_to_others_only_with_certificate_and_tokens),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
