/* SPDX-License-Identifier: MIT
 *
 * The report of `wattgov devices`: what is there, and for what is not, why and what to do.
 */
#include "cli/devices_report.h"

#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "support/check.h"
#include "support/devices.h"

struct scene {
    struct wg_device_info infos[2];
    const struct wg_device_info *pointers[2];
    struct wg_device_look looks[2];
    struct wg_process_line processes[2];
    struct wg_backend_info backends[2];
    const struct wg_backend_info *backend_pointers[2];
    struct wg_devices_report report;
};

static void make_scene(struct scene *scene)
{
    *scene = (struct scene){.infos = {device_gpu(0), device_cpu()}};
    scene->looks[0].sample.present = 1u << WG_METRIC_POWER_W;
    scene->looks[0].sample.values[WG_METRIC_POWER_W] = 412.34;
    scene->looks[0].sample.has_throttle = true;
    scene->looks[0].sample.throttle = WG_THROTTLE_POWER_LIMIT | WG_THROTTLE_THERMAL;
    scene->processes[0] = (struct wg_process_line){
        .process = {.pid = 4711, .memory_bytes = 1 << 30}, .name = "python"};
    scene->processes[1] =
        (struct wg_process_line){.process = {.pid = 12, .memory_bytes = UINT64_MAX}};
    scene->looks[0].processes = scene->processes;
    scene->looks[0].process_count = 2;
    scene->backends[0] =
        (struct wg_backend_info){.name = "nvml", .text = "1 GPU", .device_count = 1};
    scene->backends[1] = (struct wg_backend_info){
        .name = "amdgpu", .state = WG_ENODEV, .text = "no AMD GPU", .remedy = "load amdgpu"};
    for (size_t i = 0; i < 2; i++) {
        scene->pointers[i] = &scene->infos[i];
        scene->backend_pointers[i] = &scene->backends[i];
    }
    scene->report = (struct wg_devices_report){.infos = scene->pointers,
                                               .looks = scene->looks,
                                               .device_count = 2,
                                               .backends = scene->backend_pointers,
                                               .backend_count = 2};
}

static void expect(const struct wg_devices_report *report, const char *const *parts, size_t count,
                   bool is_there)
{
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__devices_text(report, false, &out);
    assert_false(out.failed);
    /* Where a long line is wrapped is not the matter here. */
    for (char *at = out.data; (at = strstr(at, "\n    ")) != NULL; at++) {
        if (at[5] == ' ')
            continue; /* a table */
        *at = ' ';
        memmove(at + 1, at + 5, strlen(at + 5) + 1);
    }
    for (size_t i = 0; i < count; i++)
        if ((strstr(out.data, parts[i]) != NULL) != is_there)
            fail_msg("'%s' is %s:\n%s", parts[i], is_there ? "not there" : "there", out.data);
    wg__buffer_fini(&out);
}
#define EXPECT_TEXT(report, ...)                                                                   \
    expect(report, (const char *const[]){__VA_ARGS__},                                             \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), true)
#define EXPECT_NO_TEXT(report, text) expect(report, (const char *const[]){text}, 1, false)

static void a_device_shows_identity_meters_and_knobs(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene);
    EXPECT_TEXT(&scene.report, "gpu0  NVIDIA H100 80GB HBM3\n",
                "  GPU-00, 0000:1a:00.0, driver 550.54.15, hopper, 80.0 GiB, by nvml, persist",
                "clock held down by: power limit, temperature\n",
                "power_w   412.3 W  0.001 W  100ms       25ms  field 186",
                "energy_j      n/a  0.001 J  100ms             field 83",
                "power_limit  500 W  200 W .. 700 W   700 W  no: no permission (4); run as root\n");
    scene.infos[0].knobs[WG_KNOB_POWER_LIMIT].is_writable = true;
    EXPECT_TEXT(&scene.report, "700 W   700 W  yes\n");
}

/* Field reports 62, 63: one that is missing hides no other, and says what to do. */
static void what_is_missing_is_grouped_by_reason_and_has_a_remedy(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene);
    EXPECT_TEXT(&scene.report, "missing: power_average_w, memory_power_w, module_power_w, clock_hz",
                "gpu_clock, memory_clock, cpu_clock: nvmlDeviceGetFieldValues: not supported (3)\n",
                "missing: energy_j: /sys/class/powercap/intel-rapl:0/energy_uj: Permission denied; "
                "run as root\n");
    EXPECT_NO_TEXT(&scene.report, "missing: module_power_w");
    scene.report.is_detailed = true;
    EXPECT_TEXT(&scene.report, "missing: module_power_w: nvmlDeviceGetFieldValues",
                "missing: clock_hz: nvmlDeviceGetFieldValues");
}

static void backends_that_found_nothing_say_why(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene);
    EXPECT_TEXT(&scene.report, "\namdgpu: none: no AMD GPU; load amdgpu\n");
    EXPECT_NO_TEXT(&scene.report, "1 GPU");
    scene.backends[0].state = WG_EIO;
    scene.backends[0].text = "driver/library mismatch (18)";
    EXPECT_TEXT(&scene.report, "\nnvml: failed: driver/library mismatch (18)\n");
    scene.report.device_count = 0;
    EXPECT_TEXT(&scene.report, "Nothing on this machine can be measured:\nnvml: failed: ");
}

static void a_device_that_does_not_answer_says_why(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene);
    scene.infos[0].state = WG_ELOST;
    scene.infos[0].state_text = "gpu0: nvmlDeviceGetUUID: GPU is lost (15)";
    scene.looks[1].trouble = "cpu0: it hangs";
    EXPECT_TEXT(&scene.report, "not answering: gpu0: nvmlDeviceGetUUID: GPU is lost (15)\n",
                "not answering: cpu0: it hangs\n");
}

static void processes_are_listed_only_on_request(void **state)
{
    (void)state; /* field report 84 */
    struct scene scene;
    make_scene(&scene);
    EXPECT_NO_TEXT(&scene.report, "python");
    scene.report.has_processes = true;
    EXPECT_TEXT(&scene.report, "4711  1.0 GiB  python\n", "     12      n/a  \n");
    scene.looks[0].process_count = 0;
    EXPECT_TEXT(&scene.report, "processes: none\n");
    scene.looks[0].process_trouble = "not supported";
    EXPECT_TEXT(&scene.report, "processes: not supported\n");
}

static void a_mig_gpu_lists_its_instances(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene);
    static const char *const instances[] = {"MIG-aaa", "MIG-bbb"};
    scene.infos[0].is_mig = true;
    scene.infos[0].mig_uuids = instances;
    scene.infos[0].mig_count = 2;
    EXPECT_TEXT(&scene.report, "those of all 2 instances together", " MIG-bbb\n");
}

static json_t *parse(const struct wg_devices_report *report)
{
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__devices_json(report, &out);
    json_error_t error;
    json_t *root = json_loads(out.data, 0, &error);
    if (root == NULL)
        fail_msg("%s:\n%s", error.text, out.data);
    wg__buffer_fini(&out);
    return root;
}

/* Field report 75: unknown numbers are null, never a sentinel. */
static void json_has_every_meter_and_knob_and_null_for_the_unknown(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene);
    static const double levels[] = {210e6, 1980e6};
    scene.infos[0].knobs[WG_KNOB_GPU_CLOCK] = (struct wg_knob_info){.is_present = true,
                                                                    .is_writable = true,
                                                                    .min = 210e6,
                                                                    .max = 1980e6,
                                                                    .preset = NAN,
                                                                    .current = NAN,
                                                                    .levels = levels,
                                                                    .level_count = 2,
                                                                    .source = "set"};
    scene.report.has_processes = true;
    json_t *root = parse(&scene.report);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "wattgov.devices/1");
    json_t *gpu = json_array_get(json_object_get(root, "devices"), 0);
    /* The names of the header, of Python and of recordings. */
    assert_true(json_is_false(json_object_get(gpu, "is_persistent")));
    assert_true(json_is_false(json_object_get(gpu, "is_mig")));
    assert_true(json_is_array(json_object_get(gpu, "mig_uuids")));
    json_t *meters = json_object_get(gpu, "meters"), *knobs = json_object_get(gpu, "knobs");
    assert_int_equal(json_object_size(meters), WG_METRIC_COUNT);
    assert_int_equal(json_object_size(knobs), WG_KNOB_COUNT);
    json_t *power = json_object_get(meters, "power_w");
    check_close(json_number_value(json_object_get(power, "value")), 412.34, 0);
    check_close(json_number_value(json_object_get(power, "averaging_window_s")), 0.025, 0);
    assert_true(json_is_null(json_object_get(power, "why_not")));
    json_t *energy = json_object_get(meters, "energy_j");
    assert_true(json_is_true(json_object_get(energy, "present")));
    assert_true(json_is_null(json_object_get(energy, "value"))); /* not read this time */
    json_t *clock = json_object_get(knobs, "gpu_clock");
    assert_true(json_is_null(json_object_get(clock, "current")));
    assert_true(json_is_null(json_object_get(clock, "step")));
    assert_int_equal(json_array_size(json_object_get(clock, "levels")), 2);
    assert_true(json_is_null(json_object_get(gpu, "numa_node")));
    json_t *processes = json_object_get(gpu, "processes");
    assert_int_equal(json_array_size(processes), 2);
    assert_true(json_is_null(json_object_get(json_array_get(processes, 1), "memory_bytes")));
    assert_int_equal(json_array_size(json_object_get(root, "backends")), 2);
    json_decref(root);
}

static void reports_survive_want_of_memory(void **state)
{
    (void)state;
    struct scene scene;
    make_scene(&scene);
    scene.report.has_processes = true;
    size_t failures = 0;
    for (bool has_worked = false; !has_worked; failures++) {
        struct wg_buffer text, json;
        wg__buffer_init(&text);
        wg__buffer_init(&json);
        wg__alloc_fail_from(failures + 1);
        wg__devices_text(&scene.report, true, &text);
        wg__devices_json(&scene.report, &json);
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
        cmocka_unit_test(a_device_shows_identity_meters_and_knobs),
        cmocka_unit_test(what_is_missing_is_grouped_by_reason_and_has_a_remedy),
        cmocka_unit_test(backends_that_found_nothing_say_why),
        cmocka_unit_test(a_device_that_does_not_answer_says_why),
        cmocka_unit_test(processes_are_listed_only_on_request),
        cmocka_unit_test(a_mig_gpu_lists_its_instances),
        cmocka_unit_test(json_has_every_meter_and_knob_and_null_for_the_unknown),
        cmocka_unit_test(reports_survive_want_of_memory),
    };
    return run_tests(tests);
}
