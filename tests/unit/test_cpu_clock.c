/* SPDX-License-Identifier: MIT
 *
 * The clock of a CPU package, from policies of a made-up cpufreq.
 */
#include "device/cpu_clock.h"

#include <limits.h>
#include <math.h>

#include "support/backend.h"
#include "support/tree.h"

#define CPU     "/sys/devices/system/cpu"
#define CPUFREQ CPU "/cpufreq"

/* Two packages; the second has two dies; policy numbers sort as numbers. */
static const struct tree_entry server[] = {
    {.path = CPU "/cpu0/topology/physical_package_id", .text = "0\n"},
    {.path = CPU "/cpu0/topology/die_id", .text = "0\n"},
    {.path = CPU "/cpu2/topology/physical_package_id", .text = "1\n"},
    {.path = CPU "/cpu2/topology/die_id", .text = "0\n"},
    {.path = CPU "/cpu10/topology/physical_package_id", .text = "1\n"},
    {.path = CPU "/cpu10/topology/die_id", .text = "1\n"},
    {.path = CPUFREQ "/policy0/scaling_cur_freq", .text = "1000000\n"},
    {.path = CPUFREQ "/policy2/scaling_cur_freq", .text = "2000000\n"},
    {.path = CPUFREQ "/policy10/scaling_cur_freq", .text = "3000000\n"},
    {.path = CPUFREQ "/policy2/cpuinfo_min_freq", .text = "800000\n"},
    {.path = CPUFREQ "/policy2/cpuinfo_max_freq", .text = "3400000\n"},
    {.path = CPUFREQ "/policy2/scaling_max_freq", .text = "3000000\n"},
    {.path = CPUFREQ "/policy10/cpuinfo_min_freq", .text = "400000\n"},
    {.path = CPUFREQ "/policy10/cpuinfo_max_freq", .text = "2600000\n"},
    {.path = CPUFREQ "/policy10/scaling_max_freq", .text = "2600000\n"},
};

struct scene {
    struct tree tree;
    struct wg_kernel_device *kernel; /* for the knob */
    struct wg_cpu_clock clock;
};

static const struct wg_device_ops no_device_ops = {.read = NULL};
static const struct wg_kernel_ops no_ops = {.locate = NULL};

static void begin(struct scene *scene)
{
    *scene = (struct scene){.kernel = wg__alloc_zeroed(1, sizeof *scene->kernel)};
    assert_non_null(scene->kernel);
    tree_open(&scene->tree);
    scene->kernel->ops = &no_ops;
    scene->kernel->device.ops = &no_device_ops;
    scene->kernel->root = scene->tree.root;
}

static void open_clock(struct scene *scene, unsigned package, unsigned die)
{
    wg__cpu_clock_close(&scene->clock);
    assert_int_equal(wg__cpu_clock_open(&scene->clock, scene->tree.root, package, die,
                                        &scene->kernel->paths, NULL),
                     WG_OK);
}

static void end(struct scene *scene)
{
    wg__cpu_clock_close(&scene->clock);
    wg__kernel_free(scene->kernel);
    tree_close(&scene->tree);
}

static double read_hz(const struct scene *scene)
{
    double hz = 0.0;
    assert_int_equal(wg__cpu_clock_read(&scene->clock, &hz, NULL), WG_OK);
    return hz;
}

static void a_package_and_a_die_have_the_clocks_of_their_cores(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    TREE_ADD(&scene.tree, server);
    open_clock(&scene, UINT_MAX, UINT_MAX);
    assert_int_equal(scene.clock.count, 3);
    check_close(read_hz(&scene), 2e9, 1e-12);
    open_clock(&scene, 0, UINT_MAX);
    check_close(read_hz(&scene), 1e9, 1e-12);
    open_clock(&scene, 1, UINT_MAX);
    check_close(read_hz(&scene), 2.5e9, 1e-12);
    open_clock(&scene, 1, 1);
    check_close(read_hz(&scene), 3e9, 1e-12);
    assert_string_equal(scene.clock.policies[0], CPUFREQ "/policy10");
    open_clock(&scene, 2, UINT_MAX);
    assert_int_equal(scene.clock.count, 0);
    end(&scene);
}

static void a_core_that_goes_offline_is_left_out_of_the_mean(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    TREE_ADD(&scene.tree, server);
    open_clock(&scene, 1, UINT_MAX);
    tree_set(&scene.tree, CPUFREQ "/policy2/scaling_cur_freq", "<unknown>\n");
    check_close(read_hz(&scene), 3e9, 1e-12);
    tree_set(&scene.tree, CPUFREQ "/policy10/scaling_cur_freq", "");
    double hz = 7.0;
    struct wg_error err = {0};
    assert_int_equal(wg__cpu_clock_read(&scene.clock, &hz, &err), WG_EDATA);
    check_close(hz, 7.0, 0.0);
    assert_non_null(strstr(err.text, "/scaling_cur_freq"));
    end(&scene);
}

static void the_knob_spans_the_cores_of_both_kinds(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    TREE_ADD(&scene.tree, server);
    open_clock(&scene, 1, UINT_MAX);
    wg__cpu_clock_describe(&scene.clock, scene.kernel);
    const struct wg_knob_info *knob = &scene.kernel->device.info.knobs[WG_KNOB_CPU_CLOCK];
    assert_true(knob->is_present);
    check_close(knob->min, 4e8, 1e-12);
    check_close(knob->max, 3.4e9, 1e-12);
    check_close(knob->current, 3e9, 1e-12);
    check_close(knob->preset, 3.4e9, 1e-12);
    assert_string_equal(knob->source, CPUFREQ "/policy2/scaling_max_freq");
    /* A kernel's file can say anything. */
    tree_set(&scene.tree, CPUFREQ "/policy2/cpuinfo_max_freq", "18446744073709551615\n");
    wg__cpu_clock_describe(&scene.clock, scene.kernel);
    check_no_knob(&scene.kernel->device, WG_KNOB_CPU_CLOCK, "is no cpu_clock");
    tree_set(&scene.tree, CPUFREQ "/policy2/cpuinfo_max_freq", "0\n");
    tree_set(&scene.tree, CPUFREQ "/policy10/cpuinfo_max_freq", "0\n");
    wg__cpu_clock_describe(&scene.clock, scene.kernel);
    check_no_knob(&scene.kernel->device, WG_KNOB_CPU_CLOCK, "leave no range");
    end(&scene);
}

static void a_virtual_machine_has_no_clock_and_says_so(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    open_clock(&scene, 0, UINT_MAX);
    assert_int_equal(scene.clock.count, 0);
    double hz = 0.0;
    struct wg_error err = {0};
    assert_int_equal(wg__cpu_clock_read(&scene.clock, &hz, &err), WG_ENOENT);
    wg__cpu_clock_describe(&scene.clock, scene.kernel);
    check_no_knob(&scene.kernel->device, WG_KNOB_CPU_CLOCK, "no cpufreq policy here");
    end(&scene);
}

static void of_many_policies_a_few_are_read_evenly_spread(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    for (unsigned i = 0; i < 96; i++) {
        char path[96];
        char text[32];
        (void)snprintf(path, sizeof path, CPUFREQ "/policy%u/scaling_cur_freq", i);
        (void)snprintf(text, sizeof text, "%u\n", 1000000 + i);
        const struct tree_entry entry = {.path = path, .text = text};
        tree_add(&scene.tree, &entry, 1);
    }
    open_clock(&scene, UINT_MAX, UINT_MAX);
    assert_int_equal(scene.clock.count, WG_CPU_CLOCK_FILES);
    /* Policies 0, 12, .. 84. */
    check_close(read_hz(&scene), (1000000.0 + 42.0) * 1e3, 1e-12);
    end(&scene);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    TREE_ADD(&scene.tree, server);
    enum wg_code code = WG_ENOMEM;
    for (size_t n = 1; code != WG_OK; n++) {
        struct wg_arena paths;
        struct wg_cpu_clock clock;
        wg__arena_init(&paths);
        wg__alloc_fail_from(n);
        code = wg__cpu_clock_open(&clock, scene.tree.root, UINT_MAX, UINT_MAX, &paths, NULL);
        wg__alloc_fail_from(0);
        assert_true(code == WG_OK || code == WG_ENOMEM);
        assert_true(n < 1000);
        wg__cpu_clock_close(&clock);
        wg__arena_fini(&paths);
    }
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_package_and_a_die_have_the_clocks_of_their_cores),
        cmocka_unit_test(a_core_that_goes_offline_is_left_out_of_the_mean),
        cmocka_unit_test(the_knob_spans_the_cores_of_both_kinds),
        cmocka_unit_test(a_virtual_machine_has_no_clock_and_says_so),
        cmocka_unit_test(of_many_policies_a_few_are_read_evenly_spread),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return run_tests(tests);
}
