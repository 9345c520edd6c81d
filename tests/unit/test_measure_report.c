/* SPDX-License-Identifier: MIT
 *
 * The report of `wattgov measure`: numbers, what is missing and why, mean and spread.
 */
#include "cli/measure_report.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "support/check.h"
#include "support/devices.h"

enum { DEVICES_MAX = 3, RUNS_MAX = 3 };

struct scene {
    struct wg_device_info infos[DEVICES_MAX];
    const struct wg_device_info *pointers[DEVICES_MAX];
    const char *troubles[DEVICES_MAX];
    struct wg_window_result results[RUNS_MAX][DEVICES_MAX];
    struct wg_measure_run runs[RUNS_MAX];
    struct wg_measure_report report;
};

static struct wg_window_result measured(double energy_j)
{
    return (struct wg_window_result){.energy_j = energy_j,
                                     .energy_error_j = 0.61,
                                     .time_s = 3,
                                     .power_mean_w = energy_j / 3,
                                     .power_peak_w = 698.04,
                                     .idle_share = 0.03,
                                     .throttled_s = 0.125,
                                     .coverage = 1,
                                     .resolution_s = 0.1,
                                     .sample_count = 31,
                                     .source = WG_ENERGY_COUNTER};
}

static struct wg_window_result unknown(void)
{
    return (struct wg_window_result){.energy_j = NAN,
                                     .energy_error_j = NAN,
                                     .time_s = 3,
                                     .power_mean_w = NAN,
                                     .power_peak_w = NAN,
                                     .idle_share = NAN,
                                     .throttled_s = NAN,
                                     .coverage = 0,
                                     .resolution_s = NAN,
                                     .source = WG_ENERGY_NONE};
}

/* gpu0 and gpu1 are measured, cpu0 is not; each run takes 100 J more than the one before. */
static void make_scene(struct scene *scene, size_t run_count, char *const *command)
{
    *scene = (struct scene){.infos = {device_gpu(0), device_gpu(1), device_cpu()}};
    for (size_t i = 0; i < DEVICES_MAX; i++)
        scene->pointers[i] = &scene->infos[i];
    for (size_t r = 0; r < run_count; r++) {
        const double more_j = 100.0 * (double)r;
        scene->results[r][0] = measured(300.12 + more_j);
        scene->results[r][1] = measured(1234.56 + more_j);
        scene->results[r][2] = unknown();
        scene->runs[r] = (struct wg_measure_run){
            .time_s = 3.0 + (double)r,
            .has_child = command != NULL,
            .child = {.user_s = 2.5, .system_s = 0.25, .peak_memory_bytes = 3 << 20},
            .total = measured(1534.68 + 2 * more_j),
            .devices = scene->results[r]};
        scene->runs[r].total.flags = WG_WINDOW_PARTIAL;
    }
    scene->report = (struct wg_measure_report){.command = command,
                                               .infos = scene->pointers,
                                               .troubles = scene->troubles,
                                               .device_count = DEVICES_MAX,
                                               .runs = scene->runs,
                                               .run_count = run_count,
                                               .runs_wanted = run_count};
}

static void expect_text(const struct wg_measure_report *report, const char *const *parts,
                        size_t count)
{
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__measure_text(report, false, &out);
    assert_false(out.failed);
    for (size_t i = 0; i < count; i++)
        if (strstr(out.data, parts[i]) == NULL)
            fail_msg("the text lacks '%s':\n%s", parts[i], out.data);
    wg__buffer_fini(&out);
}
#define EXPECT_TEXT(report, ...)                                                                   \
    do {                                                                                           \
        static const char *const parts[] = {__VA_ARGS__};                                          \
        expect_text(report, parts, sizeof parts / sizeof *parts);                                  \
    } while (0)

static char *const train[] = {(char[]){"python"}, (char[]){"train.py"}, NULL};

static void one_run_shows_energy_error_power_shares_and_time(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene, 1, train);
    EXPECT_TEXT(
        &scene.report, "energy of python train.py\n",
        "gpu0    300.12 J  ± 0.61 J  100.04 W  698.04 W   3 %     0.12 s  counter     100 %",
        "1234.6 J", "total", "partial: a total that lacks a device",
        "3.000 s; processor 2.500 s user, 0.250 s system; memory at most 3.0 MiB\n",
        "gpu0, gpu1: NVIDIA H100 80GB HBM3\n");
}

/* Field reports 19, 63. */
static void what_could_not_be_measured_is_never_nought_but_has_reason_and_remedy(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene, 1, NULL);
    EXPECT_TEXT(&scene.report, "energy of this machine\n", "\ncpu0         n/a",
                "\ncpu0: energy n/a: /sys/class/powercap/intel-rapl:0/energy_uj: Permission "
                "denied; run as root\n");
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__measure_text(&scene.report, false, &out);
    assert_null(strstr(out.data, " 0 J"));
    assert_null(strstr(out.data, "nan"));
    wg__buffer_fini(&out);
}

static void devices_that_lack_it_for_the_same_reason_share_a_line(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene, 1, NULL);
    for (size_t i = 0; i < 2; i++) {
        scene.results[0][i] = unknown();
        device_fill_absent(&scene.infos[i], "nvmlDeviceGetPowerUsage: not supported (3)", NULL);
    }
    EXPECT_TEXT(&scene.report,
                "\ngpu0, gpu1: energy n/a: nvmlDeviceGetPowerUsage: not supported (3)\n",
                "\ncpu0: energy n/a: ");
}

/* Field reports 34, 36. */
static void a_device_that_was_lost_is_named_and_the_others_have_their_numbers(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene, 1, NULL);
    scene.results[0][1].flags = WG_WINDOW_LOST | WG_WINDOW_GAP;
    scene.troubles[1] = "gpu1: nvmlDeviceGetFieldValues: GPU is lost (15)";
    EXPECT_TEXT(&scene.report, "gpu0    300.12 J", "lost, gap\n",
                "\ngpu1: nvmlDeviceGetFieldValues: GPU is lost (15)\n",
                "lost: the device stopped answering for good",
                "gap: for a part of the time there were no samples\n");
}

static void a_machine_without_anything_says_so_and_has_the_time(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene, 1, train);
    scene.runs[0].total = unknown();
    scene.report.device_count = 0;
    static const struct wg_backend_info nvml = {.name = "nvml",
                                                .state = WG_ENODEV,
                                                .text = "libnvidia-ml.so.1 is not installed",
                                                .remedy = "install the NVIDIA driver"};
    static const struct wg_backend_info rapl = {
        .name = "rapl", .state = WG_ENODEV, .text = "no /sys/class/powercap"};
    const struct wg_backend_info *const backends[] = {&nvml, &rapl};
    scene.report.backends = backends;
    scene.report.backend_count = 2;
    EXPECT_TEXT(&scene.report, "total      n/a", "\n3.000 s; processor",
                "\nnvml: n/a: libnvidia-ml.so.1 is not installed; install the NVIDIA driver\n",
                "\nrapl: n/a: no /sys/class/powercap\n");
}

static void reasons_of_backends_are_a_line_each_and_told_once(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene, 1, train);
    scene.report.device_count = 0;
    char text[400], remedy[100];
    (void)memset(text, 'x', sizeof text - 1);
    (void)memset(remedy, 'y', sizeof remedy - 1);
    text[sizeof text - 1] = remedy[sizeof remedy - 1] = '\0';
    struct wg_backend_info items[] = {
        {.name = "nvml",
         .state = WG_EPERM,
         .text = "no permission; run as root",
         .remedy = "run as root"},
        {.name = "amdgpu", .state = WG_ENODEV, .text = "no GPU is chosen"},
        {.name = "intel", .state = WG_ENODEV, .text = "no GPU is chosen"},
        {.name = "jetson", .state = WG_EIO, .text = text, .remedy = "look"},
        {.name = "rapl", .state = WG_EIO, .text = text + 300, .remedy = remedy},
    };
    const struct wg_backend_info *const backends[] = {&items[0], &items[1], &items[2], &items[3],
                                                      &items[4]};
    scene.report.backends = backends;
    scene.report.backend_count = 5;
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__measure_text(&scene.report, false, &out);
    assert_non_null(strstr(out.data, "\nnvml: n/a: no permission; run as root\n"));
    assert_non_null(strstr(out.data, "\namdgpu, intel: n/a: no GPU is chosen\n"));
    const char *jetson = strstr(out.data, "\njetson: n/a: xxx");
    assert_non_null(jetson);
    assert_in_range(strcspn(jetson + 1, "\n"), 150, 200);
    assert_non_null(strstr(jetson, "x...; see 'wattgov devices'\n"));
    assert_non_null(strstr(out.data, "x; see 'wattgov devices'\n")); /* the remedy has no room */
    wg__buffer_fini(&out);
}

static void nobody_is_told_of_missing_amd_gpus_where_nvidia_has_some(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene, 1, NULL);
    static const struct wg_backend_info amd = {
        .name = "amdgpu", .state = WG_ENODEV, .text = "no AMD GPU"};
    static const struct wg_backend_info broken = {
        .name = "jetson", .state = WG_EIO, .text = "it failed"};
    const struct wg_backend_info *const backends[] = {&amd, &broken};
    scene.report.backends = backends;
    scene.report.backend_count = 2;
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__measure_text(&scene.report, false, &out);
    assert_null(strstr(out.data, "no AMD GPU"));
    assert_non_null(strstr(out.data, "\njetson: n/a: it failed\n"));
    wg__buffer_fini(&out);
}

static void the_spread_is_that_of_the_sample(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene, 3, train);
    const struct wg_spread spread = wg__measure_spread(&scene.report, 0, WG_MEASURE_ENERGY);
    assert_int_equal(spread.count, 3);
    check_close(spread.mean, 400.12, 1e-12);
    check_close(spread.sd, 100, 1e-12); /* of 300, 400, 500: sqrt((1e4 + 0 + 1e4) / 2) */
    check_close(spread.min, 300.12, 1e-12);
    check_close(spread.max, 500.12, 1e-12);
    check_close(wg__measure_spread(&scene.report, WG_MEASURE_TOTAL, WG_MEASURE_TIME).mean, 4,
                1e-12);
    scene.results[1][0].energy_j = NAN; /* unknown in one run: the others count */
    const struct wg_spread two = wg__measure_spread(&scene.report, 0, WG_MEASURE_ENERGY);
    assert_int_equal(two.count, 2);
    check_close(two.mean, 400.12, 1e-12);
    const struct wg_spread none = wg__measure_spread(&scene.report, 2, WG_MEASURE_ENERGY);
    assert_int_equal(none.count, 0);
    assert_true(isnan(none.mean) && isnan(none.sd) && isnan(none.min));
}

static void a_run_that_failed_or_was_cut_off_is_no_part_of_the_spread(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene, 3, train);
    scene.report.runs_wanted = 5;
    EXPECT_TEXT(&scene.report, "\n3 of 5 runs: 4.000 s ± 1.000 s (25.00 %) each\n");
    scene.runs[2].has_child = true;
    scene.runs[2].child.status = 3;
    const struct wg_spread two = wg__measure_spread(&scene.report, 0, WG_MEASURE_ENERGY);
    assert_int_equal(two.count, 2);
    check_close(two.mean, 350.12, 1e-12);
    scene.runs[1].has_child = true;
    scene.runs[1].is_cut = true; /* Ctrl-C, and it ended with 0 */
    check_close(wg__measure_spread(&scene.report, 0, WG_MEASURE_ENERGY).mean, 300.12, 1e-12);
    EXPECT_TEXT(&scene.report, "\n1 of 5 runs: 3.000 s\n");
    scene.runs[0].has_child = true;
    scene.runs[0].is_cut = true;
    EXPECT_TEXT(&scene.report, "\n0 of 5 runs: none succeeded\n", "total  ");
}

static void the_command_is_shown_as_a_shell_takes_it(void **state)
{
    (void)state;
    struct scene scene;
    char sh[] = "sh", c[] = "-c", script[] = "echo it's $1", empty[] = "";
    char *words[] = {sh, c, script, empty, NULL};
    make_scene(&scene, 1, words);
    EXPECT_TEXT(&scene.report, "energy of sh -c 'echo it'\\''s $1' ''\n");
}

static void several_runs_show_mean_and_spread(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene, 3, train);
    EXPECT_TEXT(&scene.report, "gpu0       400.12 J  ± 100.00 J  24.99 %  300.12 J  500.12 J",
                "3 runs: 4.000 s ± 1.000 s (25.00 %) each\n", "\ncpu0            n/a",
                "cpu0: energy n/a: ");
}

static void texts_from_outside_cannot_steer_the_terminal(void **state)
{
    (void)state;
    struct scene scene;
    char *const command[] = {(char[]){"a\033[31mb"}, NULL};
    make_scene(&scene, 1, command);
    scene.infos[0].name = "evil\033]0;title\a";
    scene.troubles[1] = "bad\nline";
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__measure_text(&scene.report, false, &out);
    assert_null(strchr(out.data, '\033'));
    assert_non_null(strstr(out.data, "bad line\n"));
    wg__buffer_fini(&out);
}

static json_t *parse(const struct wg_measure_report *report, int status)
{
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__measure_json(report, status, &out);
    assert_false(out.failed);
    json_error_t error;
    json_t *root = json_loads(out.data, 0, &error);
    if (root == NULL)
        fail_msg("%s:\n%s", error.text, out.data);
    wg__buffer_fini(&out);
    return root;
}

static void json_has_every_number_and_null_for_the_unknown(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene, 2, train);
    scene.results[0][0].flags = WG_WINDOW_THROTTLED | WG_WINDOW_GAP;
    json_t *root = parse(&scene.report, 3);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "wattgov.measure/1");
    assert_int_equal(json_array_size(json_object_get(root, "command")), 2);
    assert_int_equal(json_integer_value(json_object_get(root, "exit_status")), 3);
    json_t *repeats = json_object_get(root, "repeats");
    assert_int_equal(json_array_size(repeats), 2);
    json_t *run = json_array_get(repeats, 0);
    check_close(json_number_value(json_object_get(run, "time_s")), 3, 0);
    json_t *gpu = json_array_get(json_object_get(run, "devices"), 0);
    assert_string_equal(json_string_value(json_object_get(gpu, "label")), "gpu0");
    assert_string_equal(json_string_value(json_object_get(gpu, "id")), "GPU-00");
    check_close(json_number_value(json_object_get(gpu, "energy_j")), 300.12, 0);
    check_close(json_number_value(json_object_get(gpu, "throttled_s")), 0.125, 0);
    assert_string_equal(json_string_value(json_object_get(gpu, "source")), "counter");
    json_t *flags = json_object_get(gpu, "flags");
    assert_int_equal(json_array_size(flags), 2);
    assert_string_equal(json_string_value(json_array_get(flags, 0)), "throttled");
    json_t *cpu = json_array_get(json_object_get(run, "devices"), 2);
    assert_true(json_is_null(json_object_get(cpu, "energy_j")));
    assert_true(json_is_null(json_object_get(cpu, "power_mean_w")));
    assert_string_equal(json_string_value(json_object_get(cpu, "source")), "none");
    json_t *summary = json_object_get(root, "summary");
    json_t *energy = json_object_get(summary, "energy_j");
    check_close(json_number_value(json_object_get(energy, "mean")), 1634.68, 1e-12);
    json_decref(root);

    make_scene(&scene, 1, NULL);
    root = parse(&scene.report, 0);
    assert_true(json_is_null(json_object_get(root, "command")));
    assert_true(json_is_null(json_object_get(root, "exit_status")));
    json_decref(root);
}

static void reports_survive_want_of_memory(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene, 2, train);
    size_t failures = 0;
    for (bool has_worked = false; !has_worked; failures++) {
        struct wg_buffer text, json;
        wg__buffer_init(&text);
        wg__buffer_init(&json);
        wg__alloc_fail_from(failures + 1);
        wg__measure_text(&scene.report, true, &text);
        wg__measure_json(&scene.report, 0, &json);
        wg__alloc_fail_from(0);
        has_worked = !text.failed && !json.failed;
        wg__buffer_fini(&text);
        wg__buffer_fini(&json);
        assert_true(failures < 1000);
    }
    assert_true(failures > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_run_shows_energy_error_power_shares_and_time),
        cmocka_unit_test(what_could_not_be_measured_is_never_nought_but_has_reason_and_remedy),
        cmocka_unit_test(devices_that_lack_it_for_the_same_reason_share_a_line),
        cmocka_unit_test(a_device_that_was_lost_is_named_and_the_others_have_their_numbers),
        cmocka_unit_test(a_machine_without_anything_says_so_and_has_the_time),
        cmocka_unit_test(reasons_of_backends_are_a_line_each_and_told_once),
        cmocka_unit_test(nobody_is_told_of_missing_amd_gpus_where_nvidia_has_some),
        cmocka_unit_test(the_spread_is_that_of_the_sample),
        cmocka_unit_test(a_run_that_failed_or_was_cut_off_is_no_part_of_the_spread),
        cmocka_unit_test(the_command_is_shown_as_a_shell_takes_it),
        cmocka_unit_test(several_runs_show_mean_and_spread),
        cmocka_unit_test(texts_from_outside_cannot_steer_the_terminal),
        cmocka_unit_test(json_has_every_number_and_null_for_the_unknown),
        cmocka_unit_test(reports_survive_want_of_memory),
    };
    return run_tests(tests);
}
