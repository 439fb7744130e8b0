#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/id.h"

static const struct id sample = {{0x4a, 0x1b, 0x2c, 0x3d, 0x4e, 0x5f, 0x60, 0x71, 0x82, 0x93, 0xa4,
        0xb5, 0xc6, 0xd7, 0xe8, 0xf9}};

static void reads_both_forms_in_either_case(void **state)
{
        static const char *const forms[] = {
                "4a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
                "4A1B2C3D-4E5F-6071-8293-A4B5C6D7E8F9",
                "4a1b2c3d4e5f60718293a4b5c6d7e8f9",
                "4A1b2C3d4E5f60718293A4b5C6d7E8f9",
        };

        (void)state;
        for (size_t i = 0; i < 4; i++) {
                struct id id = {0};

                assert_int_equal(id_parse(forms[i], &id), 0);
                assert_true(id_equal(&id, &sample));
        }
}

static void refuses_what_is_empty_cut_over_long_or_has_a_foreign_character(void **state)
{
        static const char *const forms[] = {
                "",
                "-",
                "4a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f",
                "4a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9a",
                "4a1b2c3d4e5f60718293a4b5c6d7e8f",
                "4a1b2c3d4e5f60718293a4b5c6d7e8f90",
                "4a1b2c3d-4e5f-6071-8293-a4b5c6d7e8g9",
                "4a1b2c3d+4e5f-6071-8293-a4b5c6d7e8f9",
                "4a1b2c3-d4e5f-6071-8293-a4b5c6d7e8f9",
                "4a1b2c3d-4e5f-6071-8293a-4b5c6d7e8f9",
                "{a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f}",
                " a1b2c3d4e5f60718293a4b5c6d7e8f9",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
                struct id id = sample;

                assert_int_equal(id_parse(forms[i], &id), -EINVAL);
                /* Out-parameters are written on success only. */
                assert_true(id_equal(&id, &sample));
        }
}

static void writes_the_lower_case_form_with_hyphens(void **state)
{
        char text[ID_TEXT_MAX];

        (void)state;
        assert_ptr_equal(id_format(&sample, text), text);
        assert_string_equal(text, "4a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9");
        assert_int_equal(strlen(text) + 1, ID_TEXT_MAX);
}

static void compares_every_byte(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(sample.bytes); i++) {
                struct id other = sample, one = {0};

                other.bytes[i] ^= 1;
                one.bytes[i] = 1;
                assert_false(id_equal(&other, &sample));
                assert_false(id_is_zero(&one));
        }
        assert_true(id_is_zero(&(struct id){0}));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_both_forms_in_either_case),
                cmocka_unit_test(refuses_what_is_empty_cut_over_long_or_has_a_foreign_character),
                cmocka_unit_test(writes_the_lower_case_form_with_hyphens),
                cmocka_unit_test(compares_every_byte),
        };

        return cmocka_run_group_tests_name("id", tests, NULL, NULL);
}
