/* SPDX-License-Identifier: MIT
 *
 * The live view at many sizes: nothing is cut that matters, nothing lies outside the screen.
 */
#include "cli/top_view.h"

#include <string.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/devices.h"

enum { ROWS = 10 };

struct scene {
    struct wg_device_info infos[ROWS];
    struct wg_top_row rows[ROWS];
    struct wg_process_line processes[2];
    struct wg_top_state state;
    struct wg_top_frame frame;
};

static void set(struct wg_sample *sample, enum wg_metric metric, double value)
{
    sample->present |= 1u << metric;
    sample->values[metric] = value;
}

static void open_scene(struct scene *scene, size_t gpu_count)
{
    *scene = (struct scene){0};
    for (unsigned i = 0; i < gpu_count; i++) {
        scene->infos[i] = device_gpu(i);
        struct wg_top_row *row = &scene->rows[i];
        *row = (struct wg_top_row){.info = &scene->infos[i], .energy_j = 12345.0 + i};
        set(&row->sample, WG_METRIC_POWER_W, 412.3);
        set(&row->sample, WG_METRIC_ENFORCED_POWER_LIMIT_W, 700);
        set(&row->sample, WG_METRIC_CLOCK_HZ, 1.98e9);
        set(&row->sample, WG_METRIC_MEMORY_CLOCK_HZ, 2.619e9);
        set(&row->sample, WG_METRIC_TEMPERATURE_C, 71);
        set(&row->sample, WG_METRIC_UTILIZATION, 0.98);
        set(&row->sample, WG_METRIC_MEMORY_USED_BYTES, 63.25 * 1073741824.0);
        row->sample.has_throttle = true;
        row->sample.throttle = WG_THROTTLE_POWER_LIMIT;
    }
    scene->processes[0] = (struct wg_process_line){
        .process = {.pid = 4711, .memory_bytes = 1 << 30}, .name = "python"};
    scene->processes[1] = (struct wg_process_line){
        .process = {.pid = 12, .memory_bytes = UINT64_MAX}, .name = "caf\xc3\xa9\033"};
    scene->state = (struct wg_top_state){.rows = scene->rows,
                                         .row_count = gpu_count,
                                         .interval_s = 1,
                                         .elapsed_s = 754,
                                         .total_energy_j = 24691};
}

/* The row as text, without the blanks at its end. */
static const char *line(const struct scene *scene, unsigned row)
{
    static char text[512];
    assert_true(row < scene->frame.height && scene->frame.width < sizeof text);
    for (unsigned i = 0; i < scene->frame.width; i++)
        text[i] = scene->frame.cells[(size_t)row * scene->frame.width + i].character;
    size_t length = scene->frame.width;
    while (length > 0 && text[length - 1] == ' ')
        length--;
    text[length] = '\0';
    return text;
}

static void draw(struct scene *scene, unsigned width, unsigned height)
{
    assert_int_equal(wg__top_frame_reset(&scene->frame, width, height, NULL), WG_OK);
    wg__top_view(&scene->state, &scene->frame);
}

static enum wg_top_style style_at(const struct scene *scene, unsigned row, unsigned column)
{
    return scene->frame.cells[(size_t)row * scene->frame.width + column].style;
}

static void at_80_by_24_every_number_is_there(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 2);
    draw(&scene, 80, 24);
    assert_string_equal(line(&scene, 0), "wattgov top  every 1s  for 00:12:34");
    assert_string_equal(
        line(&scene, 1),
        "device power          W/limit    energy   MHz temp util   memory held down by");
    assert_string_equal(
        line(&scene, 2),
        "gpu0   |||||||.....   412/700  12.35 kJ  1980  71C  98% 63.2 GiB power limit");
    assert_int_equal(style_at(&scene, 2, 7), WG_TOP_LOW);
    assert_int_equal(style_at(&scene, 2, 18), WG_TOP_FAINT);
    assert_int_equal(style_at(&scene, 1, 79), WG_TOP_HEADER);
    assert_string_equal(line(&scene, 22), "total                     825  24.69 kJ");
    assert_string_equal(line(&scene, 23),
                        "q quit  p processes  r reset energy  arrows scroll  ? help");
    wg__top_frame_fini(&scene.frame);
}

static void at_40_by_10_the_most_important_columns_stay(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 8);
    draw(&scene, 40, 10);
    assert_string_equal(line(&scene, 1), "device   W/limit    energy temp util");
    assert_string_equal(line(&scene, 2), "gpu0     412/700  12.35 kJ  71C  98%");
    assert_string_equal(line(&scene, 7), "gpu5     412/700  12.35 kJ  71C  98%");
    assert_string_equal(line(&scene, 8), "total       3298  24.69 kJ");
    assert_string_equal(line(&scene, 9), "q quit  p processes  r reset energy  arr");
    wg__top_frame_fini(&scene.frame);
}

static void at_200_by_50_all_columns_are_there(void **state)
{
    (void)state; /* field report 77: what holds the clock down */
    struct scene scene;
    open_scene(&scene, 2);
    scene.rows[0].sample.throttle =
        WG_THROTTLE_POWER_LIMIT | WG_THROTTLE_THERMAL | WG_THROTTLE_POWER_BRAKE;
    draw(&scene, 200, 50);
    assert_non_null(strstr(line(&scene, 1), "  MHz   mem temp util   memory held down by"));
    assert_non_null(strstr(line(&scene, 2),
                           " 1980  2619  71C  98% 63.2 GiB power limit, temperature, power brake"));
    assert_non_null(strstr(line(&scene, 2), "NVIDIA H100 80GB HBM3"));
    wg__top_frame_fini(&scene.frame);
}

static void it_scrolls_and_says_where_it_is(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 8);
    assert_int_equal(wg__top_view_scroll_max(&scene.state, 10), 2);
    assert_int_equal(wg__top_view_scroll_max(&scene.state, 24), 0);
    draw(&scene, 60, 10);
    assert_non_null(strstr(line(&scene, 0), "  rows 1-6 of 8"));
    scene.state.scroll = 2;
    draw(&scene, 60, 10);
    assert_non_null(strstr(line(&scene, 0), "  rows 3-8 of 8"));
    assert_memory_equal(line(&scene, 2), "gpu2 ", 5);
    assert_memory_equal(line(&scene, 7), "gpu7 ", 5);
    scene.state.scroll = 99; /* more than there is */
    draw(&scene, 60, 10);
    assert_memory_equal(line(&scene, 7), "gpu7 ", 5);
    wg__top_frame_fini(&scene.frame);
}

static void processes_stand_below_the_devices(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 2);
    scene.rows[1].processes = scene.processes;
    scene.rows[1].process_count = 2;
    draw(&scene, 80, 24);
    assert_string_equal(line(&scene, 5), "");
    scene.state.has_processes = true;
    draw(&scene, 80, 24);
    assert_string_equal(line(&scene, 4), "");
    assert_string_equal(line(&scene, 5), "device    process     memory name");
    assert_string_equal(line(&scene, 6), "gpu1         4711    1.0 GiB python");
    assert_string_equal(line(&scene, 7), "gpu1           12          - caf?");
    scene.rows[1].process_count = 0;
    draw(&scene, 80, 24);
    assert_string_equal(line(&scene, 5), "device    process     memory (none)");
    wg__top_frame_fini(&scene.frame);
}

/* Field report 34. */
static void a_lost_device_says_so_and_is_not_in_the_total(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 2);
    scene.rows[1].trouble = "gpu1: nvmlDeviceGetFieldValues: GPU is lost (15)";
    scene.state.is_total_partial = true;
    draw(&scene, 80, 24);
    assert_string_equal(line(&scene, 3), "gpu1   gpu1: nvmlDeviceGetFieldValues: GPU is lost (15)");
    assert_int_equal(style_at(&scene, 3, 7), WG_TOP_TROUBLE);
    assert_string_equal(line(&scene, 22), "total                     412  24.69 kJ not all of it");
    wg__top_frame_fini(&scene.frame);
}

/* Field reports 19, 75. */
static void what_is_unknown_is_a_dash_and_never_nought(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 1);
    scene.rows[0].sample = (struct wg_sample){0};
    scene.rows[0].energy_j = NAN;
    scene.state.total_energy_j = NAN;
    draw(&scene, 80, 24);
    assert_string_equal(line(&scene, 2),
                        "gpu0                        -         -     -    -    -        - -");
    assert_string_equal(line(&scene, 22), "total                       -         -");
    wg__top_frame_fini(&scene.frame);
}

static void a_part_of_another_device_is_not_counted_twice(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 2);
    scene.infos[1].counts_in_total = false;
    draw(&scene, 80, 24);
    assert_string_equal(line(&scene, 22), "total                     412  24.69 kJ");
    wg__top_frame_fini(&scene.frame);
}

static void a_bar_near_its_limit_is_high(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 1);
    set(&scene.rows[0].sample, WG_METRIC_POWER_W, 750); /* sensors overshoot */
    draw(&scene, 80, 24);
    assert_int_equal(style_at(&scene, 2, 7), WG_TOP_HIGH);
    assert_int_equal(style_at(&scene, 2, 18), WG_TOP_HIGH);
    wg__top_frame_fini(&scene.frame);
}

static void without_devices_it_says_why(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 0);
    static const struct wg_backend_info rapl = {.name = "rapl",
                                                .state = WG_ENODEV,
                                                .text = "no /sys/class/powercap",
                                                .remedy = "load intel_rapl_msr"};
    const struct wg_backend_info *const backends[] = {&rapl};
    scene.state.backends = backends;
    scene.state.backend_count = 1;
    draw(&scene, 80, 24);
    assert_string_equal(line(&scene, 2), "Nothing on this machine can be measured:");
    assert_string_equal(line(&scene, 3), "rapl: no /sys/class/powercap; load intel_rapl_msr");
    wg__top_frame_fini(&scene.frame);
}

static void the_help_names_every_key(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 2);
    scene.state.has_help = true;
    draw(&scene, 80, 24);
    assert_memory_equal(line(&scene, 2), "q, Ctrl-C ", 10);
    assert_memory_equal(line(&scene, 3), "p ", 2);
    assert_memory_equal(line(&scene, 4), "r ", 2);
    wg__top_frame_fini(&scene.frame);
}

static void it_draws_at_every_size_and_only_inside(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 8);
    scene.rows[3].trouble = "a long story";
    scene.rows[1].processes = scene.processes;
    scene.rows[1].process_count = 2;
    for (unsigned width = 1; width < 130; width += width < 90 ? 1 : 7) {
        for (unsigned height = 1; height < 30; height++) {
            scene.state.has_processes = (width + height) % 2 == 0;
            scene.state.has_help = (width + height) % 7 == 0;
            scene.state.scroll = height;
            draw(&scene, width, height); /* the sanitizer watches the cells */
            assert_int_equal(scene.frame.cells[0].character, 'w');
            for (size_t i = 0; i < (size_t)width * height; i++)
                assert_in_range(scene.frame.cells[i].character, ' ', '~');
        }
    }
    wg__top_frame_fini(&scene.frame);
}

static void a_frame_survives_want_of_memory(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 1);
    draw(&scene, 20, 5);
    struct wg_error err;
    wg__alloc_fail_from(1);
    assert_int_equal(wg__top_frame_reset(&scene.frame, 200, 50, &err), WG_ENOMEM);
    wg__alloc_fail_from(0);
    assert_int_equal(scene.frame.width, 20);
    assert_memory_equal(line(&scene, 2), "gpu0 ", 5);
    wg__top_frame_fini(&scene.frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_80_by_24_every_number_is_there),
        cmocka_unit_test(at_40_by_10_the_most_important_columns_stay),
        cmocka_unit_test(at_200_by_50_all_columns_are_there),
        cmocka_unit_test(it_scrolls_and_says_where_it_is),
        cmocka_unit_test(processes_stand_below_the_devices),
        cmocka_unit_test(a_lost_device_says_so_and_is_not_in_the_total),
        cmocka_unit_test(what_is_unknown_is_a_dash_and_never_nought),
        cmocka_unit_test(a_part_of_another_device_is_not_counted_twice),
        cmocka_unit_test(a_bar_near_its_limit_is_high),
        cmocka_unit_test(without_devices_it_says_why),
        cmocka_unit_test(the_help_names_every_key),
        cmocka_unit_test(it_draws_at_every_size_and_only_inside),
        cmocka_unit_test(a_frame_survives_want_of_memory),
    };
    return run_tests(tests);
}
