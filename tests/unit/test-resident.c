#include "agentd/resident.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define TABLE_BYTES (1u << 20)

/* In a read-only segment of this program, and not all zeroes. */
static const uint8_t table[TABLE_BYTES] = {[0] = 3, [TABLE_BYTES / 2] = 5, [TABLE_BYTES - 1] = 7};

static unsigned table_sum(void)
{
        const uint8_t *bytes = table;
        unsigned sum = 0;

        /* The compiler knows the table. */
        __asm__ volatile("" : "+r"(bytes));

        for (size_t i = 0; i < TABLE_BYTES; i++)
                sum += bytes[i];
        return sum;
}

/* Of the mapping that holds the table. */
static unsigned long resident_kb(void)
{
        FILE *file = fopen("/proc/self/smaps", "re");
        uintptr_t begin, end, wanted = (uintptr_t)&table[TABLE_BYTES / 2];
        unsigned long kb = 0, found = 0;
        bool inside = false;
        char line[512];

        assert_non_null(file);
        while (fgets(line, sizeof(line), file)) {
                if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
                        inside = wanted >= begin && wanted < end;
                else if (inside && sscanf(line, "Rss: %lu kB", &kb) == 1)
                        found = kb;
        }
        fclose(file);
        return found;
}

static void what_is_only_read_is_unmapped_and_comes_back_when_needed(void **state)
{
        unsigned long before, after;

        (void)state;
        assert_int_equal(table_sum(), 15);
        before = resident_kb();
        resident_trim();
        after = resident_kb();
        assert_true(before >= TABLE_BYTES / 1024);
        assert_true(after + TABLE_BYTES / 1024 / 2 < before);
        assert_int_equal(table_sum(), 15);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_only_read_is_unmapped_and_comes_back_when_needed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
