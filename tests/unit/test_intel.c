/* SPDX-License-Identifier: MIT
 *
 * Intel's discrete GPUs on fake trees: an Arc under i915, one under xe, graphics of a processor.
 */
#include <string.h>

#include "support/backend.h"
#include "support/tree.h"

#define DRM       "/sys/class/drm"
#define ARC       DRM "/card1"
#define ARC_HWMON ARC "/device/hwmon/hwmon4"
#define XE        DRM "/card2"
#define XE_HWMON  XE "/device/hwmon/hwmon7"
#define XE_CLOCK  XE "/device/tile0/gt0/freq0"

static const struct tree_entry entries[] = {
    {.path = DRM "/card0/device/vendor", .text = "0x8086\n"},
    {.path = DRM "/card0/device/device", .text = "0x4680\n"},
    {.path = DRM "/card0/device/uevent", .text = "DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0\n"},
    {.path = ARC "/device/vendor", .text = "0x8086\n"},
    {.path = ARC "/device/device", .text = "0x56a0\n"},
    {.path = ARC "/device/uevent", .text = "DRIVER=i915\nPCI_SLOT_NAME=0000:03:00.0\n"},
    {.path = ARC_HWMON "/energy1_input", .text = "1234500000\n"},
    {.path = ARC_HWMON "/power1_max", .text = "190000000\n"},
    {.path = ARC_HWMON "/power1_rated_max", .text = "190000000\n"},
    {.path = ARC "/gt_act_freq_mhz", .text = "2050\n"},
    {.path = ARC "/gt_max_freq_mhz", .text = "2400\n"},
    {.path = ARC "/gt_RPn_freq_mhz", .text = "300\n"},
    {.path = ARC "/gt_RP0_freq_mhz", .text = "2400\n"},
    {.path = XE "/device/vendor", .text = "0x8086\n"},
    {.path = XE "/device/device", .text = "0xe20b\n"},
    {.path = XE "/device/uevent", .text = "DRIVER=xe\nPCI_SLOT_NAME=0000:83:00.0\n"},
    {.path = XE_HWMON "/energy1_input", .text = "7000000\n"},
    {.path = XE_HWMON "/power1_max", .text = "0\n"},
    {.path = XE_HWMON "/power1_rated_max", .text = "0\n"},
    {.path = XE_HWMON "/temp2_input", .text = "44000\n"},
    {.path = XE_CLOCK "/act_freq", .text = "0\n"},
    {.path = XE_CLOCK "/max_freq", .text = "2850\n", .mode = 0444},
    {.path = XE_CLOCK "/rpn_freq", .text = "400\n"},
    {.path = XE_CLOCK "/rp0_freq", .text = "2850\n"},
};

static void open_tree(struct tree *tree, struct backend_run *run)
{
    tree_open(tree);
    TREE_ADD(tree, entries);
    backend_must_open(run, &wg__backend_intel, tree->root);
    check_complete(run);
}

static void cards_that_measure_themselves_are_listed(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    open_tree(&tree, &run);
    assert_int_equal(run.list.count, 2);
    struct wg_device *arc = backend_find(&run, "0000:03:00.0");
    assert_string_equal(arc->info.name, "Intel GPU 0x56a0");
    struct wg_sample sample = backend_read(arc);
    check_metric(sample, WG_METRIC_ENERGY_J, 1234.5);
    check_metric(sample, WG_METRIC_CLOCK_HZ, 2050e6);
    check_metric(sample, WG_METRIC_POWER_LIMIT_W, 190.0);
    check_absent(arc, WG_METRIC_POWER_W, "energy only");
    const struct wg_knob_info *knob = &arc->info.knobs[WG_KNOB_POWER_LIMIT];
    check_close(knob->max, 190.0, 1e-12);
    check_close(knob->current, 190.0, 1e-12);
    knob = &arc->info.knobs[WG_KNOB_GPU_CLOCK];
    assert_string_equal(knob->source, ARC "/gt_max_freq_mhz");
    check_close(knob->min, 300e6, 1e-12);
    check_close(knob->max, 2400e6, 1e-12);

    struct wg_device *xe = backend_find(&run, "0000:83:00.0");
    sample = backend_read(xe);
    check_metric(sample, WG_METRIC_ENERGY_J, 7.0);
    check_metric(sample, WG_METRIC_CLOCK_HZ, 0.0);
    check_metric(sample, WG_METRIC_TEMPERATURE_C, 44.0);
    check_no_knob(xe, WG_KNOB_POWER_LIMIT, "no largest limit");
    knob = &xe->info.knobs[WG_KNOB_GPU_CLOCK];
    assert_true(knob->is_present && !knob->is_writable);
    assert_string_equal(knob->source, XE_CLOCK "/max_freq");
    backend_close(&run);
    tree_close(&tree);
}

static void the_counter_says_how_often_it_must_be_read(void **state)
{
    (void)state; /* field report 74: the driver sees one wrap of 262 kJ between two reads */
    struct tree tree;
    struct backend_run run;
    open_tree(&tree, &run);
    const struct wg_device *arc = backend_find(&run, "0000:03:00.0");
    check_close(arc->info.meters[WG_METRIC_ENERGY_J].wrap_s, 262.144, 1e-12);
    backend_close(&run);
    tree_close(&tree);
}

static void without_a_card_it_says_so_and_one_that_goes_is_lost(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    backend_open(&run, &wg__backend_intel, tree.root);
    assert_int_equal(run.code, WG_ENODEV);
    backend_close(&run);
    tree_close(&tree);
    open_tree(&tree, &run);
    struct wg_device *arc = backend_find(&run, "0000:03:00.0");
    struct wg_error err;
    assert_int_equal(arc->ops->reopen(arc, &err), WG_OK);
    check_metric(backend_read(arc), WG_METRIC_ENERGY_J, 1234.5);
    arc->ops->release(arc);
    tree_remove_folder(&tree, ARC "/device/hwmon");
    assert_int_equal(arc->ops->reopen(arc, &err), WG_ELOST);
    assert_non_null(strstr(err.text, "0000:03:00.0 has no hwmon"));
    backend_close(&run);
    tree_close(&tree);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, entries);
    const struct wg_backend_config config = {.root = tree.root};
    backend_walk(&wg__backend_intel, &config);
    tree_close(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_that_measure_themselves_are_listed),
        cmocka_unit_test(the_counter_says_how_often_it_must_be_read),
        cmocka_unit_test(without_a_card_it_says_so_and_one_that_goes_is_lost),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return run_tests(tests);
}
