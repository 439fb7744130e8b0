#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/cleanup.h"
#include "lib/config.h"

struct options {
        char *url, *folder;
        bool verbose;
        uint64_t port, spool_bytes, interval_us, retries;
};

static const struct config_key keys[] = {
        {"collector", "url", CONFIG_STRING, offsetof(struct options, url), "http://127.0.0.1:7440"},
        {"agent", "folder", CONFIG_STRING, offsetof(struct options, folder), ""},
        {"agent", "verbose", CONFIG_BOOL, offsetof(struct options, verbose), "no"},
        {"agent", "port", CONFIG_INTEGER, offsetof(struct options, port), "7440", 1, 65535},
        {"agent", "spool", CONFIG_BYTES, offsetof(struct options, spool_bytes), "64M", 1 << 20,
                1ull << 40},
        {"agent", "interval", CONFIG_DURATION, offsetof(struct options, interval_us), "10s", 100000,
                3600000000},
        {"agent", "retries", CONFIG_INTEGER, offsetof(struct options, retries), "3"},
        {NULL},
};

static char path[] = "/tmp/strata-test-config-XXXXXX";

static int make_file(void **state)
{
        int fd = mkstemp(path);

        (void)state;
        if (fd < 0)
                return -1;
        close(fd);
        return 0;
}

static int remove_file(void **state)
{
        (void)state;
        return unlink(path);
}

static int load_bytes(const char *bytes, size_t size, struct options *options, char **ret_message)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        assert_int_equal(fclose(file), 0);
        return config_load(path, keys, options, ret_message);
}

static int load(const char *text, struct options *options, char **ret_message)
{
        return load_bytes(text, strlen(text), options, ret_message);
}

/* @text must fail, with a message that is the path and then @expected. */
static void fails_with(const char *text, const char *expected)
{
        CLEANUP(str) char *message = NULL, *whole = NULL;
        struct options options;

        assert_int_equal(load(text, &options, &message), -EINVAL);
        assert_non_null(message);
        assert_true(asprintf(&whole, "%s:%s", path, expected) > 0);
        assert_string_equal(message, whole);
        config_done(keys, &options);
}

static void is_complete_without_a_file_and_from_an_empty_one(void **state)
{
        (void)state;
        for (int from_file = 0; from_file < 2; from_file++) {
                CLEANUP(str) char *message = NULL;
                struct options options;

                memset(&options, 0xff, sizeof(options));
                if (from_file)
                        assert_int_equal(load("", &options, &message), 0);
                else
                        assert_int_equal(config_load(NULL, keys, &options, &message), 0);
                assert_null(message);
                assert_string_equal(options.url, "http://127.0.0.1:7440");
                assert_string_equal(options.folder, "");
                assert_false(options.verbose);
                assert_int_equal(options.port, 7440);
                assert_int_equal(options.spool_bytes, 64 << 20);
                assert_int_equal(options.interval_us, 10000000);
                assert_int_equal(options.retries, 3);
                config_done(keys, &options);
                assert_null(options.url);
        }
}

static void reads_every_type(void **state)
{
        CLEANUP(str) char *message = NULL;
        struct options options;

        (void)state;
        assert_int_equal(
                load("# a comment\n; another\n\n[collector]\r\nurl = https://c:1/?a=b#c\r\n"
                     "[agent]\n  folder=/a b/c\n\tverbose = on\nport = 65535\n"
                     "spool=1G ; inline\ninterval = 500ms\nretries = 0",
                        &options, &message),
                0);
        assert_null(message);
        assert_string_equal(options.url, "https://c:1/?a=b#c");
        assert_string_equal(options.folder, "/a b/c");
        assert_true(options.verbose);
        assert_int_equal(options.port, 65535);
        assert_int_equal(options.spool_bytes, 1 << 30);
        assert_int_equal(options.interval_us, 500000);
        assert_int_equal(options.retries, 0);
        config_done(keys, &options);
}

static void names_the_line_of_an_unknown_key_or_section(void **state)
{
        (void)state;
        fails_with("[agent]\nport = 1\nintervall = 5s\n",
                "3: unknown key 'intervall' in section [agent]");
        fails_with("[agent]\nurl = x\n", "2: unknown key 'url' in section [agent]");
        /* Also where the section has no key, and where it is indented. */
        fails_with("\n[agents]\n", "2: unknown section [agents]");
        fails_with("\n\n  [agents]\nport = 1\n", "3: unknown section [agents]");
        fails_with("port = 1\n", "1: key 'port' stands before any [section]");
        fails_with(
                "[agent]\nport = 1\nport = 2\n", "3: key 'port' is given twice in section [agent]");
}

static void takes_an_indented_line_for_a_key_of_its_own(void **state)
{
        (void)state;
        fails_with("[agent]\nfolder = /a\n   folders = /b\n",
                "3: unknown key 'folders' in section [agent]");
}

static void names_the_line_and_the_range_of_a_wrong_value(void **state)
{
        (void)state;
        fails_with("[agent]\nport = 0\n", "2: port = 0 is out of range: it must be 1 to 65535");
        fails_with("[agent]\nport = 99999999999999999999\n",
                "2: port = 99999999999999999999 is out of range: it must be 1 to 65535");
        fails_with("[agent]\nport = -1\n", "2: port = -1 is wrong: it must be a whole number");
        fails_with("[agent]\nport = 1x\n", "2: port = 1x is wrong: it must be a whole number");
        fails_with("[agent]\nport =\n", "2: port =  is wrong: it must be a whole number");
        fails_with("[agent]\nspool = 1K\n", "2: spool = 1K is out of range: it must be 1M to 1T");
        fails_with("[agent]\nspool = 1 M\n",
                "2: spool = 1 M is wrong: it must be a size such as 64K, 16M or 1G");
        fails_with("[agent]\ninterval = 99ms\n",
                "2: interval = 99ms is out of range: it must be 100ms to 1h");
        fails_with("[agent]\ninterval = 10\n", "2: interval = 10 is wrong: it must be a duration "
                                               "such as 100ms, 10s, 5m, 1h or 7d");
        fails_with(
                "[agent]\nverbose = maybe\n", "2: verbose = maybe is wrong: it must be yes or no");
}

static void names_the_first_broken_line(void **state)
{
        static const char broken[] =
                "the line is neither 'key = value' nor '[section]' nor a comment";
        char expected[128];

        (void)state;
        snprintf(expected, sizeof(expected), "2: %s", broken);
        fails_with("[agent]\nport\n", expected);
        fails_with("[agent]\nport\nnonsense = 1\n", expected);
        snprintf(expected, sizeof(expected), "1: %s", broken);
        fails_with("[agent\nport = 1\n", expected);
        fails_with("[agent]\nnonsense = 1\nport\n", "2: unknown key 'nonsense' in section [agent]");
}

static void refuses_an_over_long_line_and_a_zero_byte(void **state)
{
        CLEANUP(str) char *message = NULL;
        struct options options;
        char text[100000];

        (void)state;
        memset(text, 'x', sizeof(text));
        memcpy(text, "[agent]\nfolder = ", 17);
        text[sizeof(text) - 1] = '\0';
        assert_int_equal(load(text, &options, &message), -EINVAL);
        assert_non_null(strstr(message, ":2: the line is longer than "));
        config_done(keys, &options);

        free(STEAL(message));
        assert_int_equal(load_bytes("[agent]\nport = 1\0\n", 18, &options, &message), -EINVAL);
        assert_non_null(strstr(message, ":2: the line contains a zero byte"));
        config_done(keys, &options);
}

static void keeps_a_long_path_whole(void **state)
{
        CLEANUP(str) char *message = NULL;
        struct options options;
        char folder[181], text[256];

        (void)state;
        memset(folder, 'f', sizeof(folder) - 1);
        folder[sizeof(folder) - 1] = '\0';
        snprintf(text, sizeof(text), "[agent]\nfolder = %s\n", folder);
        assert_int_equal(load(text, &options, &message), 0);
        assert_string_equal(options.folder, folder);
        config_done(keys, &options);
}

static void says_which_file_it_cannot_read(void **state)
{
        CLEANUP(str) char *message = NULL;
        struct options options;

        (void)state;
        assert_int_equal(config_load("/nonexistent/a.conf", keys, &options, &message), -ENOENT);
        assert_string_equal(message, "cannot read /nonexistent/a.conf: No such file or directory");
        config_done(keys, &options);

        free(STEAL(message));
        assert_int_equal(config_load("/", keys, &options, &message), -EISDIR);
        assert_non_null(message);
        config_done(keys, &options);
}

static void refuses_numbers_beyond_64_bits(void **state)
{
        uint64_t value = 7;

        (void)state;
        assert_int_equal(config_parse_bytes("18446744073709551615", &value), 0);
        assert_true(value == UINT64_MAX);
        assert_int_equal(config_parse_bytes("18446744073709551616", &value), -ERANGE);
        assert_int_equal(config_parse_bytes("16777216T", &value), -ERANGE);
        assert_int_equal(config_parse_duration("213503983d", &value), -ERANGE);
        assert_int_equal(config_parse_duration("", &value), -EINVAL);
        assert_int_equal(config_parse_duration("s", &value), -EINVAL);
        assert_int_equal(config_parse_duration("1.5s", &value), -EINVAL);
        assert_int_equal(config_parse_duration(" 1s", &value), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(is_complete_without_a_file_and_from_an_empty_one),
                cmocka_unit_test(reads_every_type),
                cmocka_unit_test(names_the_line_of_an_unknown_key_or_section),
                cmocka_unit_test(takes_an_indented_line_for_a_key_of_its_own),
                cmocka_unit_test(names_the_line_and_the_range_of_a_wrong_value),
                cmocka_unit_test(names_the_first_broken_line),
                cmocka_unit_test(refuses_an_over_long_line_and_a_zero_byte),
                cmocka_unit_test(keeps_a_long_path_whole),
                cmocka_unit_test(says_which_file_it_cannot_read),
                cmocka_unit_test(refuses_numbers_beyond_64_bits),
        };

        return cmocka_run_group_tests_name("config", tests, make_file, remove_file);
}
