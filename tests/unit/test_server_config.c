/* SPDX-License-Identifier: MIT
 *
 * Knobs of a served model: their places, the configuration, the command.
 */
#include "live/server_config.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "support/check.h"

static const char base[] =
    "{\"name\":\"m\",\"max_batch_size\":8,\"instance_group\":[{\"count\":1}],"
    "\"dynamic_batching\":{\"preferred_batch_size\":[4,8]},\"none\":null}";

/* `base` with one value at one path. */
static void expect(const char *path, double value, const char *label, const char *expected)
{
    const struct wg_workload_setting setting = {.name = "k", .value = value, .label = label};
    struct wg_error err = {0};
    char *text = NULL;
    if (wg__server_config_edit(&text, base, &path, &setting, 1, &err) != WG_OK)
        fail_msg("%s: %s", path, err.text);
    if (strstr(text, expected) == NULL)
        fail_msg("%s: %s lacks %s", path, text, expected);
    wg__free(text);
}

static void values_land_at_their_paths(void **state)
{
    (void)state;
    expect("max_batch_size", 16, NULL, "\"max_batch_size\":16");
    expect("instance_group[0].count", 3, NULL, "[{\"count\":3}]");
    expect("instance_group[1].count", 3, NULL, "[{\"count\":1},{\"count\":3}]");
    expect("dynamic_batching.max_queue_delay_microseconds", 500, NULL,
           "\"max_queue_delay_microseconds\":500");
    expect("parameters.threads.string_value", 2, NULL,
           "\"parameters\":{\"threads\":{\"string_value\":\"2\"}}");
    expect("none.x", 0.5, NULL, "\"none\":{\"x\":0.5}");
    expect("kind", 1, "KIND_CPU", "\"kind\":\"KIND_CPU\"");
    expect("a[0][0]", 1, NULL, "\"a\":[[1]]");
    /* 0.0007 s in microseconds is a whole number, whatever the product is. */
    expect("d", 0.0007 * 1e6, NULL, "\"d\":700");
}

static void preferred_batches_above_the_largest_go(void **state)
{
    (void)state;
    expect("max_batch_size", 4, NULL, "\"preferred_batch_size\":[4]");
    expect("max_batch_size", 2, NULL, "\"dynamic_batching\":{}");
    expect("max_batch_size", 8, NULL, "\"preferred_batch_size\":[4,8]");
    expect("max_batch_size", 16, NULL, "\"preferred_batch_size\":[4]"); /* 8 was Triton's own */
    expect("dynamic_batching.preferred_batch_size[0]", 3, NULL, "\"preferred_batch_size\":[3,8]");
}

static void paths_that_cannot_be_are_named(void **state)
{
    (void)state;
    static const char *const paths[] = {"",      ".",        "a.",      "a..b",
                                        "[0]",   "a[",       "a[x]",    "a[0",
                                        "a[0]b", "name.x",   "name[0]", "instance_group.count",
                                        "a[1]",  "a[99999]", "a]",      "instance_group[2].count"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const struct wg_workload_setting setting = {.name = "knob7", .value = 1};
        struct wg_error err = {0};
        char *text = NULL;
        if (wg__server_config_edit(&text, base, &paths[i], &setting, 1, &err) != WG_EINVAL)
            fail_msg("'%s' is taken", paths[i]);
        assert_non_null(strstr(err.text, "knob7"));
        assert_null(text);
    }
    struct wg_error err = {0};
    char *text = NULL;
    assert_int_equal(wg__server_config_edit(&text, "[]", NULL, NULL, 0, &err), WG_EDATA);
    assert_int_equal(wg__server_config_edit(&text, "{", NULL, NULL, 0, &err), WG_EDATA);
}

static void knobs_have_places_by_name(void **state)
{
    (void)state;
    assert_string_equal(wg__server_path("batch", true), "client.batch");
    assert_string_equal(wg__server_path("batch", false), "max_batch_size");
    assert_string_equal(wg__server_path("instances", false), "instance_group[0].count");
    assert_null(wg__server_path("volume", false));
    assert_int_equal(wg__server_place("client.concurrency"), WG_SERVER_PLACE_CONCURRENCY);
    assert_int_equal(wg__server_place("client.max_tokens"), WG_SERVER_PLACE_MAX_TOKENS);
    assert_int_equal(wg__server_place("command"), WG_SERVER_PLACE_COMMAND);
    assert_int_equal(wg__server_place("command.x"), WG_SERVER_PLACE_CONFIG);
    assert_true(wg__server_scale("a.b_microseconds") == 1e6);
    assert_true(wg__server_scale("microseconds.b") == 1);
}

static void commands_take_values_and_labels(void **state)
{
    (void)state;
    const struct wg_workload_setting settings[] = {
        {.name = "batch", .value = 8}, {.name = "dtype", .value = 1, .label = "float16"}};
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__server_command_fill(&out, "run -b {batch} -t {dtype} {other} {batch", settings, 2);
    assert_string_equal(out.data, "run -b 8 -t float16 {other} {batch");
    wg__buffer_fini(&out);
    assert_true(wg__server_command_has("x{batch}", "batch"));
    assert_false(wg__server_command_has("x{batch", "batch"));
    assert_false(wg__server_command_has("x{batches}", "batch"));
}

static void failing_memory_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    const char *path = "max_batch_size";
    const struct wg_workload_setting setting = {.name = "k", .value = 3};
    struct wg_error err = {0};
    char *text = NULL;
    wg__alloc_fail_from(1); /* jansson's own memory is not ours to fail */
    assert_int_equal(wg__server_config_edit(&text, base, &path, &setting, 1, &err), WG_ENOMEM);
    wg__alloc_fail_from(0);
    assert_null(text);
}

static void what_stands_at_a_path_is_read(void **state)
{
    (void)state;
    static const char config[] = "{\"max_batch_size\": 8, \"instance_group\": [{\"count\": 2}], "
                                 "\"parameters\": {\"threads\": {\"string_value\": \"4\"}, "
                                 "\"engine\": {\"string_value\": \"fp16\"}}}";
    static const struct {
        const char *path, *text;
        double number;
    } cases[] = {{"max_batch_size", "8", 8},
                 {"instance_group[0].count", "2", 2},
                 {"parameters.threads.string_value", "4", 4},
                 {"parameters.engine.string_value", "fp16", NAN}};
    char text[WG_WORKLOAD_NAME_SIZE];
    double number = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(wg__server_config_value(config, cases[i].path, &number, text));
        assert_string_equal(text, cases[i].text);
        assert_true(isnan(cases[i].number) ? isnan(number) : number == cases[i].number);
    }
    static const char *const missing[] = {
        "instance_group", "instance_group[1].count", "a.b[0]", "max_batch_size.x", "[", ""};
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++)
        assert_false(wg__server_config_value(config, missing[i], &number, text));
    assert_false(wg__server_config_value("{", "max_batch_size", &number, text));
}

static void the_same_is_the_same_however_it_is_written(void **state)
{
    (void)state;
    assert_true(wg__server_config_is_same("{\"a\": 1, \"b\": [2, {}]}", "{\"b\":[2,{}],\"a\":1}"));
    assert_false(wg__server_config_is_same("{\"a\": 1}", "{\"a\": 2}"));
    assert_false(wg__server_config_is_same("{\"a\": 1}", "{\"a\": 1, \"b\": 1}"));
    assert_false(wg__server_config_is_same("{", "{")); /* no configurations at all */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_land_at_their_paths),
        cmocka_unit_test(preferred_batches_above_the_largest_go),
        cmocka_unit_test(paths_that_cannot_be_are_named),
        cmocka_unit_test(knobs_have_places_by_name),
        cmocka_unit_test(commands_take_values_and_labels),
        cmocka_unit_test(failing_memory_is_told_and_leaks_nothing),
        cmocka_unit_test(what_stands_at_a_path_is_read),
        cmocka_unit_test(the_same_is_the_same_however_it_is_written),
    };
    return run_tests(tests);
}
