/* SPDX-License-Identifier: MIT
 *
 * Tests of the calibrations that tools/calibrations writes as a table, against the reader of JSON,
 * and of calibrations that start from that table.
 */
#include "wave/calibration_set.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/check.h"

enum { FILE_MAX = 1 << 20 };

static struct wg_calibration *built_in(void)
{
    struct wg_calibration *calibration = NULL;
    assert_int_equal(wg__calibration_built_in(&calibration, NULL), WG_OK);
    return calibration;
}

static const struct wg_calibrated *find(const struct wg_calibration *calibration,
                                        const struct wg_calibrated *like)
{
    for (size_t i = 0; i < wg__calibration_count(calibration); i++) {
        const struct wg_calibrated *entry = wg__calibration_at(calibration, i);
        if (entry->dtype == like->dtype && entry->op == like->op &&
            strcmp(entry->gpu, like->gpu) == 0)
            return entry;
    }
    fail_msg("%s %s %s is not built in", like->gpu, wg__dtype_name(like->dtype),
             wg__op_class_name(like->op));
    return NULL;
}

/* To the last bit; structures may have gaps, so member by member. */
#define SAME(a, b, member) assert_memory_equal(&(a)->member, &(b)->member, sizeof(a)->member)

static void check_error(const struct wg_kernel_error *a, const struct wg_kernel_error *b)
{
    assert_true(isnan(a->mape) ? isnan(b->mape) : !(a->mape < b->mape || a->mape > b->mape));
    SAME(a, b, low);
    SAME(a, b, high);
    SAME(a, b, rows);
}

static void check_tile(const struct wg_tile_params *a, const struct wg_tile_params *b)
{
    SAME(a, b, kernel.tile_m);
    SAME(a, b, kernel.tile_n);
    SAME(a, b, kernel.tile_k);
    SAME(a, b, kernel.threads);
    SAME(a, b, kernel.slices);
    SAME(a, b, kernel.split_k);
    SAME(a, b, kernel.cluster_m);
    SAME(a, b, kernel.cluster_n);
    SAME(a, b, kernel.is_persistent);
    SAME(a, b, is_winograd);
    SAME(a, b, efficiency);
    SAME(a, b, fill);
    SAME(a, b, prologue_k);
    SAME(a, b, overlap);
    SAME(a, b, step);
    SAME(a, b, start_s);
}

static void check_params(const struct wg_kernel_params *a, const struct wg_kernel_params *b)
{
    SAME(a, b, flops_share);
    SAME(a, b, bandwidth_share);
    SAME(a, b, floor_s);
    SAME(a, b, start_s);
    SAME(a, b, split_s);
    SAME(a, b, norm);
    SAME(a, b, split_traffic);
    SAME(a, b, long_k);
    SAME(a, b, long_power);
    SAME(a, b, long_cost);
    SAME(a, b, reread);
    SAME(a, b, straddle);
    SAME(a, b, l2_share);
    SAME(a, b, hot_s);
    SAME(a, b, hot_cost);
    SAME(a, b, tile_count);
    SAME(a, b, split_count);
    SAME(a, b, splits);
    SAME(a, b, option_count);
    SAME(a, b, node_count);
    for (size_t i = 0; i < a->tile_count; i++)
        check_tile(&a->tiles[i], &b->tiles[i]);
    for (size_t i = 0; i < a->option_count; i++) {
        SAME(a, b, options[i].tile);
        SAME(a, b, options[i].split_k);
    }
    for (size_t i = 0; i < a->node_count; i++) {
        SAME(a, b, nodes[i].threshold);
        SAME(a, b, nodes[i].options);
        SAME(a, b, nodes[i].feature);
        SAME(a, b, nodes[i].below);
    }
    check_error(&a->known, &b->known);
    check_error(&a->chosen, &b->chosen);
}

static void check_forest(const struct wg_forest *a, const struct wg_forest *b)
{
    assert_true((a == NULL) == (b == NULL));
    if (a == NULL)
        return;
    SAME(a, b, feature_count);
    SAME(a, b, depth);
    SAME(a, b, tree_count);
    SAME(a, b, bias);
    SAME(a, b, border_count);
    SAME(a, b, borders);
    for (size_t t = 0; t < a->tree_count; t++) {
        SAME(a, b, trees[t].scale);
        SAME(a, b, trees[t].feature);
        SAME(a, b, trees[t].border);
        SAME(a, b, trees[t].leaf);
    }
}

static void check_entry(const struct wg_calibrated *a, const struct wg_calibrated *b)
{
    assert_string_equal(a->gpu, b->gpu);
    assert_string_equal(a->arch, b->arch);
    SAME(a, b, dense_flops);
    SAME(a, b, memory_bandwidth_bytes_per_s);
    SAME(a, b, tdp_w);
    check_params(&a->params, &b->params);
    assert_int_equal(a->point_count, b->point_count);
    check_forest(a->correction, b->correction);
}

static struct wg_calibration *read_file(const char *folder, const char *name)
{
    static char bytes[FILE_MAX];
    char path[700];
    struct wg_calibration *calibration = NULL;
    struct wg_error err;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        fail_msg("%s cannot be read", path);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    assert_true(length > 0 && length < sizeof bytes);
    (void)fclose(file);
    if (wg__calibration_read(&calibration, name, bytes, length, &err) != WG_OK)
        fail_msg("%s", err.text);
    return calibration;
}

static void holds_to_the_last_bit_what_every_file_says(void **state)
{
    (void)state;
    struct wg_calibration *calibration = built_in();
    char folder[400];
    size_t entries = 0, corrections = 0;
    (void)snprintf(folder, sizeof folder, "%s/data/wave/calibration",
                   getenv("WATTGOV_SOURCE_ROOT"));
    DIR *files = opendir(folder);
    if (files == NULL)
        fail_msg("%s cannot be read", folder);
    for (struct dirent *file; (file = readdir(files)) != NULL;) {
        if (strstr(file->d_name, ".json") == NULL)
            continue;
        struct wg_calibration *read = read_file(folder, file->d_name);
        for (size_t i = 0; i < wg__calibration_count(read); i++) {
            const struct wg_calibrated *entry = wg__calibration_at(read, i);
            check_entry(entry, find(calibration, entry));
            corrections += entry->correction != NULL;
            entries++;
        }
        wg__calibration_free(read);
    }
    (void)closedir(files);
    assert_int_equal(entries, wg__calibration_count(calibration));
    assert_true(corrections > 0);
    wg__calibration_free(calibration);
}

/* What differs in `from`, of the entry that a correction is built in for. */
static struct wg_calibration *changed(const struct wg_calibrated *from, double tdp_w)
{
    struct wg_calibration *all = built_in(), *one = NULL;
    struct wg_buffer text;
    struct wg_error err;
    wg__buffer_init(&text);
    wg__calibration_write(all, &text);
    assert_int_equal(wg__calibration_read(&one, "all", text.data, text.length, &err), WG_OK);
    wg__buffer_fini(&text);
    wg__calibration_free(all);
    for (size_t i = 0; i < one->count; i++)
        if (strcmp(one->own[i].gpu, from->gpu) == 0)
            one->own[i].tdp_w = tdp_w;
    return one;
}

static const struct wg_calibrated *corrected(const struct wg_calibration *calibration)
{
    for (size_t i = 0; i < wg__calibration_count(calibration); i++)
        if (wg__calibration_at(calibration, i)->correction != NULL)
            return wg__calibration_at(calibration, i);
    fail_msg("no correction");
    return NULL;
}

static void a_users_calibration_goes_before_what_is_built_in(void **state)
{
    (void)state;
    struct wg_calibration *calibration = built_in();
    const size_t count = wg__calibration_count(calibration);
    const struct wg_calibrated *was = corrected(calibration);
    struct wg_calibration *other = changed(was, 123.0);
    assert_int_equal(wg__calibration_merge(calibration, other, NULL), WG_OK);
    assert_int_equal(wg__calibration_count(calibration), count);
    const struct wg_calibrated *now = find(calibration, was);
    check_close(now->tdp_w, 123.0, 0.0);
    assert_false(was->tdp_w < 124.0); /* the table itself is as it was */
    assert_true(now->correction == now->own_correction && now->correction != was->correction);
    check_forest(now->correction, was->correction);
    wg__calibration_free(other);
    wg__calibration_free(calibration);
}

static void a_merge_that_lacks_memory_leaves_a_calibration_to_free(void **state)
{
    (void)state;
    struct wg_calibration *other = built_in();
    for (size_t nth = 1;; nth++) {
        struct wg_calibration *calibration = NULL;
        wg__alloc_fail_from(nth);
        enum wg_code code = wg__calibration_built_in(&calibration, NULL);
        if (code == WG_OK)
            code = wg__calibration_merge(calibration, other, NULL);
        wg__alloc_fail_from(0);
        wg__calibration_free(calibration);
        if (code == WG_OK) {
            assert_int_equal(nth, 3); /* the calibration, and the table once copied */
            break;
        }
        assert_int_equal(code, WG_ENOMEM);
    }
    wg__calibration_free(other);
}

static void drops_no_points_of_what_is_built_in(void **state)
{
    (void)state;
    struct wg_calibration *calibration = built_in();
    wg__calibration_drop_points(calibration);
    assert_true(wg__calibration_count(calibration) > 0);
    wg__calibration_free(calibration);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_to_the_last_bit_what_every_file_says),
        cmocka_unit_test(a_users_calibration_goes_before_what_is_built_in),
        cmocka_unit_test(a_merge_that_lacks_memory_leaves_a_calibration_to_free),
        cmocka_unit_test(drops_no_points_of_what_is_built_in),
    };
    return run_tests(tests);
}
