#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <cmocka.h>

#include "lib/metric.h"

static void every_row_is_found_by_its_number_and_its_name(void **state)
{
        const struct metric *all;
        size_t count;

        (void)state;
        all = metric_all(&count);
        assert_true(count > 100);
        for (size_t i = 0; i < count; i++) {
                assert_ptr_equal(metric_get(all[i].id), &all[i]);
                assert_ptr_equal(metric_find(all[i].source, all[i].name), &all[i]);
        }
}

/* The search by number needs the order. */
static void numbers_ascend_and_are_not_zero(void **state)
{
        const struct metric *all;
        size_t count;

        (void)state;
        all = metric_all(&count);
        assert_true(all[0].id > 0);
        for (size_t i = 1; i < count; i++)
                assert_true(all[i].id > all[i - 1].id);
}

static void every_row_is_complete(void **state)
{
        const struct metric *all;
        size_t count;

        (void)state;
        all = metric_all(&count);
        for (size_t i = 0; i < count; i++) {
                assert_true(all[i].source > SOURCE_NONE && all[i].source < SOURCE_MAX_);
                assert_true(all[i].layer < LAYER_MAX_);
                assert_true(all[i].width == 32 || all[i].width == 64);
                assert_non_null(metric_unit_name(all[i].unit));
                assert_true(strlen(all[i].help) > 0);
                assert_int_equal(strspn(all[i].name, "abcdefghijklmnopqrstuvwxyz0123456789_"),
                        strlen(all[i].name));
        }
}

/* Blocks in stores and spools hold these numbers. */
static void numbers_of_the_wire_format_stay(void **state)
{
        (void)state;
        assert_int_equal(METRIC_DISK_READ_OPS, 1);
        assert_int_equal(METRIC_DISK_READ_TIME, 4);
        assert_int_equal(METRIC_DISK_WRITE_TIME, 8);
        assert_int_equal(METRIC_DISK_WEIGHTED_TIME, 11);
        assert_int_equal(METRIC_DISK_DISCARD_TIME, 15);
        assert_int_equal(METRIC_DISK_FLUSH_TIME, 17);
        assert_int_equal(METRIC_OSD_OP_R, 100);
        assert_int_equal(METRIC_BLUESTORE_WRITE_BIG, 200);
        assert_int_equal(SOURCE_DISKSTATS, 1);
        assert_int_equal(SOURCE_OSD, 2);
        assert_int_equal(SOURCE_CEPH, 3);
        assert_int_equal(SOURCE_HOST, 4);
        assert_int_equal(SOURCE_AGENT, 5);
        assert_int_equal(SOURCE_OSD_HISTOGRAM, 6);
}

/* /proc/diskstats: milliseconds wrap at 32 bits, operations and sectors do not. */
static void only_the_kernels_times_of_disks_have_32_bits(void **state)
{
        const struct metric *all;
        size_t count;

        (void)state;
        all = metric_all(&count);
        for (size_t i = 0; i < count; i++)
                if (all[i].source == SOURCE_DISKSTATS)
                        assert_int_equal(all[i].width, all[i].unit == UNIT_MILLISECONDS ? 32 : 64);
}

static void cells_of_histograms_have_the_bounds_of_their_buckets(void **state)
{
        struct metric_cell cell;

        (void)state;
        /* Stored blocks hold these numbers too. */
        assert_int_equal(METRIC_CELL_R_OUT_SIZE_1_LATENCY_1, METRIC_CELL_FIRST);
        assert_int_equal(
                METRIC_CELL_RW_OUT_SIZE_16_LATENCY_20, METRIC_CELL_FIRST + METRIC_CELL_COUNT - 1);
        assert_int_equal(METRIC_CELL_W_IN_SIZE_7_LATENCY_6, 4096 + 320 + 5 * 16 + 6);
        assert_string_equal(
                metric_get(METRIC_CELL_W_IN_SIZE_7_LATENCY_6)->name, "op_w_in_size_7_latency_6");
        assert_int_equal(metric_cell_get(METRIC_CELL_W_IN_SIZE_7_LATENCY_6, &cell), 0);
        assert_int_equal(cell.histogram, 1);
        assert_int_equal(cell.size_from_bytes, 16384);
        assert_int_equal(cell.size_to_bytes, 32768);
        assert_int_equal(cell.latency_from_ns, 1600000);
        assert_int_equal(cell.latency_to_ns, 3200000);
        assert_int_equal(metric_cell_get(METRIC_CELL_R_OUT_SIZE_1_LATENCY_1, &cell), 0);
        assert_int_equal(cell.size_from_bytes, 0);
        assert_int_equal(cell.size_to_bytes, 512);
        assert_int_equal(cell.latency_to_ns, 100000);
        assert_int_equal(metric_cell_get(METRIC_CELL_RW_OUT_SIZE_16_LATENCY_20, &cell), 0);
        assert_int_equal(cell.histogram, 3);
        assert_int_equal(cell.size_from_bytes, 8 << 20);
        assert_true(cell.size_to_bytes == UINT64_MAX && cell.latency_to_ns == UINT64_MAX);
        assert_int_equal(cell.latency_from_ns, 26214400000);
        assert_int_equal(metric_cell_get(METRIC_CELL_FIRST - 1, &cell), -ENOENT);
        assert_int_equal(metric_cell_get(METRIC_CELL_FIRST + METRIC_CELL_COUNT, &cell), -ENOENT);
}

static void what_does_not_exist_is_not_found(void **state)
{
        enum source_id source;
        enum layer layer;

        (void)state;
        assert_null(metric_get(0));
        assert_null(metric_get(UINT16_MAX));
        assert_null(metric_get(99));
        assert_null(metric_find(SOURCE_DISKSTATS, "op_r"));
        assert_null(metric_find(SOURCE_OSD, "read_ops"));
        assert_null(metric_find(SOURCE_OSD, ""));
        assert_null(source_name(SOURCE_NONE));
        assert_null(source_name(SOURCE_MAX_));
        assert_null(layer_name(LAYER_MAX_));
        assert_null(metric_unit_name(UNIT_FLAG + 1));
        assert_int_equal(source_parse("disk", &source), -ENOENT);
        assert_int_equal(source_parse("", &source), -ENOENT);
        assert_int_equal(layer_parse("Storage", &layer), -ENOENT);
}

static void names_of_sources_and_layers_are_parsed_back(void **state)
{
        (void)state;
        for (int i = SOURCE_NONE + 1; i < SOURCE_MAX_; i++) {
                enum source_id source;

                assert_int_equal(source_parse(source_name(i), &source), 0);
                assert_int_equal(source, i);
        }
        for (int i = LAYER_NONE + 1; i < LAYER_MAX_; i++) {
                enum layer layer;

                assert_int_equal(layer_parse(layer_name(i), &layer), 0);
                assert_int_equal(layer, i);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_row_is_found_by_its_number_and_its_name),
                cmocka_unit_test(numbers_ascend_and_are_not_zero),
                cmocka_unit_test(every_row_is_complete),
                cmocka_unit_test(numbers_of_the_wire_format_stay),
                cmocka_unit_test(only_the_kernels_times_of_disks_have_32_bits),
                cmocka_unit_test(cells_of_histograms_have_the_bounds_of_their_buckets),
                cmocka_unit_test(what_does_not_exist_is_not_found),
                cmocka_unit_test(names_of_sources_and_layers_are_parsed_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
