/* SPDX-License-Identifier: MIT
 *
 * KServe's tensors, bodies, answers and counts, in JSON and protobuf. The wire bytes of protobuf
 * are written out by hand, from its encoding's document.
 */
#include "net/kserve.h"

#include <string.h>

#include "base/alloc.h"
#include "net/grpc.h"
#include "net/kserve_grpc.h"
#include "net/kserve_json.h"
#include "support/check.h"

static struct wg_kserve_tensor tensor(const char *name, enum wg_kserve_type type, int64_t first,
                                      int64_t second)
{
    struct wg_kserve_tensor out = {.type = type, .dims = {first, second}, .dim_count = 2};
    (void)snprintf(out.name, sizeof out.name, "%s", name);
    return out;
}

static void shapes_are_filled_with_and_without_the_batch(void **state)
{
    (void)state;
    struct wg_error err;
    bool is_it = false;
    struct wg_kserve_tensor input = tensor("x:0", WG_KSERVE_FP32, -1, -1);
    assert_int_equal(wg__kserve_shape(&input, "y:4", true, &is_it, &err), WG_OK);
    assert_false(is_it);
    assert_int_equal(wg__kserve_shape(&input, "x:0:4", true, &is_it, &err), WG_OK);
    assert_true(is_it);
    assert_int_equal(wg__kserve_close_shape(&input, true, 8, &err), WG_OK);
    assert_int_equal(wg__kserve_elements(&input), 32);
    input = tensor("x", WG_KSERVE_FP32, -1, -1);
    assert_int_equal(wg__kserve_shape(&input, "x:2x5", true, &is_it, &err), WG_OK);
    assert_int_equal(wg__kserve_close_shape(&input, true, 3, &err), WG_OK);
    assert_int_equal(input.dims[0], 3);
    assert_int_equal(input.dims[1], 5);
    input = tensor("x", WG_KSERVE_FP32, -1, -1);
    assert_int_equal(wg__kserve_shape(&input, "x:2x5", false, &is_it, &err), WG_OK);
    assert_int_equal(wg__kserve_close_shape(&input, false, 3, &err), WG_OK);
    assert_int_equal(input.dims[0], 2);
}

static void shapes_that_cannot_be_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_batched;
        const char *says;
    } cases[] = {
        {"x", true, "expected NAME"},
        {"x:", true, "expected NAME"},
        {":3", true, "expected NAME"},
        {"x:3x", true, "expected NAME"},
        {"x:-1", true, "expected NAME"},
        {"x:1x2x3", true, "has 2 dimensions"},
        {"x:4", false, "has 2 dimensions"},
        {"x:2x4", true, "dimension 2 is 3"},
        {"x:1x1x1x1x1x1x1x1x1", true, "at most 8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wg_kserve_tensor input = tensor("x", WG_KSERVE_FP32, -1, 3);
        struct wg_error err = {0};
        bool is_it = false;
        assert_int_equal(wg__kserve_shape(&input, cases[i].text, cases[i].is_batched, &is_it, &err),
                         WG_EINVAL);
        assert_non_null(strstr(err.text, cases[i].says));
    }
    struct wg_error err = {0};
    struct wg_kserve_tensor open = tensor("x", WG_KSERVE_FP32, -1, -1);
    assert_int_equal(wg__kserve_close_shape(&open, true, 1, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "dimension 2 is open"));
    struct wg_kserve_tensor huge = tensor("x", WG_KSERVE_FP64, 1 << 20, 1 << 20);
    assert_int_equal(wg__kserve_close_shape(&huge, false, 1, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "more than"));
}

static void all_inputs_of_a_request_are_bounded_together(void **state)
{
    (void)state;
    struct wg_error err = {0};
    size_t bytes = 0;
    struct wg_kserve_tensor inputs[] = {tensor("x", WG_KSERVE_FP32, 1 << 12, 1 << 12),
                                        tensor("y", WG_KSERVE_UINT8, 1 << 12, 1 << 13),
                                        tensor("z", WG_KSERVE_BYTES, 1 << 10, 1 << 10)};
    assert_int_equal(wg__kserve_request_bytes(inputs, 3, false, &bytes, &err), WG_OK);
    assert_int_equal(bytes, (64 << 20) + (32 << 20) + (12 << 20));
    assert_int_equal(wg__kserve_request_bytes(inputs, 1, true, &bytes, &err), WG_OK);
    assert_int_equal(bytes, 12 << 24);
    assert_int_equal(wg__kserve_request_bytes(inputs, 2, true, &bytes, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "the model's 2 inputs"));
    inputs[2] = tensor("z", WG_KSERVE_FP64, 1 << 12, 1 << 13);
    assert_int_equal(wg__kserve_close_shape(&inputs[2], false, 1, &err), WG_OK);
    assert_int_equal(wg__kserve_request_bytes(inputs, 3, false, &bytes, &err), WG_EINVAL);
}

static void data_have_the_size_and_range_of_their_type(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 7);
    for (enum wg_kserve_type type = 0; type < WG_KSERVE_BYTES; type++) {
        struct wg_buffer out;
        wg__buffer_init(&out);
        const struct wg_kserve_tensor input = tensor("x", type, 10, 10);
        wg__kserve_fill(&out, &input, &rng);
        assert_int_equal(out.length, 100 * wg__kserve_type_size(type));
        wg__buffer_fini(&out);
    }
    struct wg_buffer out;
    wg__buffer_init(&out);
    const struct wg_kserve_tensor singles = tensor("x", WG_KSERVE_FP32, 10, 100);
    wg__kserve_fill(&out, &singles, &rng);
    double sum = 0;
    for (size_t i = 0; i < 1000; i++) {
        float value;
        memcpy(&value, out.data + 4 * i, sizeof value);
        assert_true(value >= 0 && value < 1);
        sum += (double)value;
    }
    check_close_abs(sum / 1000, 0.5, 0, 0.05);
    out.length = 0;
    const struct wg_kserve_tensor halves = tensor("x", WG_KSERVE_FP16, 10, 100);
    wg__kserve_fill(&out, &halves, &rng);
    for (size_t i = 0; i < 1000; i++) {
        uint16_t bits;
        memcpy(&bits, out.data + 2 * i, sizeof bits);
        assert_true(bits < 0x3C00); /* one */
    }
    out.length = 0;
    const struct wg_kserve_tensor texts = tensor("x", WG_KSERVE_BYTES, 1, 2);
    wg__kserve_fill(&out, &texts, &rng);
    assert_int_equal(out.length, 24);
    assert_memory_equal(out.data, "\10\0\0\0", 4);
    wg__buffer_fini(&out);
}

static void an_inference_by_http_is_its_header_and_its_bytes(void **state)
{
    (void)state;
    const struct wg_kserve_tensor inputs[] = {tensor("a", WG_KSERVE_INT32, 1, 2),
                                              tensor("b", WG_KSERVE_BYTES, 1, 1)};
    struct wg_buffer out;
    size_t json_length = 0;
    wg__buffer_init(&out);
    wg__kserve_write_infer(&out, inputs, 2, false, NULL, &json_length);
    static const char header[] =
        "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"INT32\",\"shape\":[1,2],\"parameters\":"
        "{\"binary_data_size\":8}},{\"name\":\"b\",\"datatype\":\"BYTES\",\"shape\":[1,1],"
        "\"parameters\":{\"binary_data_size\":4}}],\"parameters\":{\"binary_data_output\":true}}";
    assert_int_equal(json_length, sizeof header - 1);
    assert_memory_equal(out.data, header, json_length);
    assert_int_equal(out.length, json_length + 12);
    out.length = 0;
    wg__kserve_write_infer(&out, inputs, 1, true, NULL, &json_length);
    assert_int_equal(json_length, 0);
    assert_string_equal(out.data, "{\"inputs\":[{\"name\":\"a\",\"datatype\":\"INT32\",\"shape\":"
                                  "[1,2],\"data\":[0,0]}]}");
    wg__buffer_fini(&out);
}

static void a_configuration_tells_batch_and_instances_over_groups_and_devices(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        size_t batch, instances;
    } cases[] = {
        {"{}", 0, 1},
        {"{\"max_batch_size\": 8, \"instance_group\": [{\"count\": 3}]}", 8, 3},
        {"{\"instance_group\": [{\"count\": 2, \"gpus\": [0, 1]}, {\"count\": \"1\"}]}", 0, 5},
        {"{\"max_batch_size\": \"4\", \"instance_group\": [{\"count\": -4}]}", 4, 1},
    };
    struct wg_error err;
    size_t batch = 0, instances = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(wg__kserve_read_shape(&batch, &instances, cases[i].config,
                                               strlen(cases[i].config), &err),
                         WG_OK);
        assert_int_equal(batch, cases[i].batch);
        assert_int_equal(instances, cases[i].instances);
    }
    assert_int_equal(wg__kserve_read_shape(&batch, &instances, "[", 1, &err), WG_EDATA);
}

static void models_are_listed_once(void **state)
{
    (void)state;
    static const char list[] = "[{\"name\": \"a\", \"version\": \"1\"}, {\"name\": \"a\"}, 3, "
                               "{\"name\": \"b\", \"state\": \"READY\"}]";
    struct wg_error err;
    struct wg_buffer out;
    wg__buffer_init(&out);
    assert_int_equal(wg__kserve_read_models(&out, list, sizeof list - 1, &err), WG_OK);
    assert_string_equal(out.data, "a, b");
    out.length = 0;
    assert_int_equal(wg__kserve_read_models(&out, "[]", 2, &err), WG_OK);
    assert_int_equal(wg__kserve_read_models(&out, "{", 1, &err), WG_EDATA);
    assert_int_equal(out.length, 0);
    wg__buffer_fini(&out);
}

static void messages_have_the_bytes_that_protobuf_says(void **state)
{
    (void)state;
    struct wg_buffer out;
    struct wg_error err;
    wg__buffer_init(&out);
    wg__kserve_pack_model(&out, "m", "1");
    assert_int_equal(out.length, 11);
    assert_memory_equal(out.data,
                        "\0\0\0\0\6\x0A\1m\x12\1"
                        "1",
                        11);
    wg__kserve_pack_empty(&out);
    assert_int_equal(out.length, 5);
    wg__kserve_pack_repository(&out, "m", "{}");
    static const char load[] = "\0\0\0\0\23\x12\1m\x1A\16\x0A\6config\x12\4\x1A\2{}";
    assert_int_equal(out.length, sizeof load - 1);
    assert_memory_equal(out.data, load, out.length);
    const struct wg_kserve_tensor input = tensor("x", WG_KSERVE_UINT8, 2, 3);
    assert_int_equal(wg__kserve_pack_infer(&out, "m", "", &input, 1, NULL, &err), WG_OK);
    static const char infer[] =
        "\0\0\0\0\33\x0A\1m\x2A\16\x0A\1x\x12\5UINT8\x1A\2\2\3\x3A\6\0\0\0\0\0\0";
    assert_int_equal(out.length, sizeof infer - 1);
    assert_memory_equal(out.data, infer, out.length);
    wg__buffer_fini(&out);
}

/* Framed bytes of a message. */
#define FRAME(text) "\0\0\0\0" text

static void answers_by_grpc_are_read(void **state)
{
    (void)state;
    struct wg_error err;
    bool is_ready = false;
    static const char ready[] = FRAME("\2\x08\1");
    assert_int_equal(wg__kserve_unpack_ready(&is_ready, ready, sizeof ready - 1, &err), WG_OK);
    assert_true(is_ready);
    struct wg_kserve_metadata metadata;
    /* input x FP32 [-1, 3] */
    static const char told[] =
        FRAME("\30\x22\26\x0A\1x\x12\4FP32\x18\377\377\377\377\377\377\377\377\377\1\x18\3");
    assert_int_equal(wg__kserve_unpack_metadata(&metadata, told, sizeof told - 1, &err), WG_OK);
    assert_int_equal(metadata.input_count, 1);
    assert_string_equal(metadata.inputs[0].name, "x");
    assert_int_equal(metadata.inputs[0].type, WG_KSERVE_FP32);
    assert_int_equal(metadata.inputs[0].dim_count, 2);
    assert_true(metadata.inputs[0].dims[0] == -1 && metadata.inputs[0].dims[1] == 3);
    size_t batch = 7;
    static const char config[] = FRAME("\4\x0A\2\x20\5");
    assert_int_equal(wg__kserve_unpack_max_batch(&batch, config, sizeof config - 1, &err), WG_OK);
    assert_int_equal(batch, 5);
    assert_int_equal(wg__kserve_unpack_max_batch(&batch, ready, 3, &err), WG_EDATA);
    assert_non_null(strstr(err.text, "shorter"));
    static const char damaged[] = FRAME("\2\x0A\x7F");
    assert_int_equal(wg__kserve_unpack_max_batch(&batch, damaged, sizeof damaged - 1, &err),
                     WG_EDATA);
    assert_null(wg__kserve_check_grpc(FRAME("\3\x0A\1m"), 8));
    assert_non_null(wg__kserve_check_grpc(FRAME("\3\xFF\xFF\xFF"), 8));
}

static const char stats_json[] =
    "{\"model_stats\":[{\"name\":\"m\",\"version\":\"1\",\"inference_count\":12,\"execution_"
    "count\":"
    "5,\"inference_stats\":{\"success\":{\"count\":9,\"ns\":900},\"fail\":{\"count\":1,\"ns\":2},"
    "\"queue\":{\"count\":9,\"ns\":90},\"compute_infer\":{\"count\":9,\"ns\":400},\"compute_"
    "input\":"
    "{\"count\":9,\"ns\":20}},\"batch_stats\":[{\"batch_size\":2,\"compute_input\":{\"count\":3,"
    "\"ns\":10},\"compute_infer\":{\"count\":3,\"ns\":300},\"compute_output\":{\"count\":3,\"ns\":"
    "5}},"
    "{\"batch_size\":4,\"compute_infer\":{\"count\":\"2\",\"ns\":\"100\"}}]},"
    "{\"inference_count\":1,\"batch_stats\":[{\"batch_size\":2,\"compute_infer\":{\"count\":1,"
    "\"ns\":50}}]}]}";

static void counts_are_read_and_summed_over_versions(void **state)
{
    (void)state;
    struct wg_error err;
    struct wg_kserve_statistics stats;
    assert_int_equal(wg__kserve_read_statistics(&stats, stats_json, sizeof stats_json - 1, &err),
                     WG_OK);
    assert_int_equal(stats.inferences, 13);
    assert_int_equal(stats.executions, 5);
    assert_int_equal(stats.success.count, 9);
    assert_int_equal(stats.queue.time_ns, 90);
    assert_int_equal(stats.compute.time_ns, 420);
    assert_int_equal(stats.compute.count, 9);
    assert_int_equal(stats.batch_count, 2);
    assert_int_equal(stats.batches[0].executions, 4);
    assert_int_equal(stats.batches[0].time_ns, 365);
    assert_int_equal(stats.batches[1].executions, 2);
    assert_int_equal(stats.batches[1].time_ns, 100);
    /* The same by gRPC: one model of 12 rows, 5 batches, success (9, 900), batch 2: (3, 300). */
    static const char told[] = FRAME("\32\x0A\30\x20\14\x28\5\x32\7\x0A\5\x08\11\x10\x84\7"
                                     "\x3A\11\x08\2\x1A\5\x08\3\x10\xAC\2");
    assert_int_equal(wg__kserve_unpack_statistics(&stats, told, sizeof told - 1, &err), WG_OK);
    assert_int_equal(stats.inferences, 12);
    assert_int_equal(stats.success.time_ns, 900);
    assert_int_equal(stats.batch_count, 1);
    assert_int_equal(stats.batches[0].executions, 3);
    assert_int_equal(stats.batches[0].time_ns, 300);
}

static void a_window_is_the_difference_unless_the_model_was_loaded_anew(void **state)
{
    (void)state;
    struct wg_kserve_statistics before = {.inferences = 10,
                                          .executions = 4,
                                          .success = {8, 800},
                                          .batches = {{2, 3, 30}, {4, 1, 20}},
                                          .batch_count = 2};
    struct wg_kserve_statistics after = before, out;
    after.inferences = 22;
    after.executions = 8;
    after.success = (struct wg_kserve_duration){14, 1500};
    after.batches[1] = (struct wg_kserve_batch){4, 3, 90};
    after.batches[2] = (struct wg_kserve_batch){1, 2, 5};
    after.batch_count = 3;
    wg__kserve_statistics_since(&out, &before, &after);
    assert_int_equal(out.inferences, 12);
    assert_int_equal(out.executions, 4);
    assert_int_equal(out.success.time_ns, 700);
    assert_int_equal(out.batch_count, 2); /* none of 2 */
    assert_int_equal(out.batches[0].size, 4);
    assert_int_equal(out.batches[0].executions, 2);
    assert_int_equal(out.batches[0].time_ns, 70);
    assert_int_equal(out.batches[1].executions, 2);
    after.inferences = 3;
    assert_true(wg__kserve_has_fallen(&before, &after));
    wg__kserve_statistics_since(&out, &before, &after);
    assert_int_equal(out.inferences, 3);
    assert_int_equal(out.batch_count, 3);
}

static void answers_by_http_are_judged(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        size_t json_length;
        const char *says; /* NULL: good */
    } cases[] = {
        {"{\"outputs\":[]}", 0, NULL},
        {"{\"outputs\":[{\"parameters\":{\"binary_data_size\":3}}]}abc", 51, NULL},
        {"{\"outputs\":[{\"parameters\":{\"binary_data_size\":3}}]}ab", 51, "shorter"},
        {"{\"outputs\":[{\"parameters\":{\"binary_data_size\":3}}]}abcd", 51, "longer"},
        {"{\"outputs\":[]}", 99, "shorter than its JSON"},
        {"{\"outputs\":[", 0, "no JSON object"},
        {"{\"outputs\":[}", 0, "no JSON"},
        {"{\"error\":\"x\"}", 0, "no list 'outputs'"},
        {"", 0, "no JSON object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *wrong =
            wg__kserve_check_infer(cases[i].body, strlen(cases[i].body), cases[i].json_length);
        if (cases[i].says == NULL)
            assert_null(wrong);
        else
            assert_true(wrong != NULL && strstr(wrong, cases[i].says) != NULL);
    }
}

static void foreign_texts_are_malformed_data(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{",
        "{\"inputs\":3}",
        "{\"inputs\":[3]}",
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\"}]}",
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[\"a\"]}]}",
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP99\",\"shape\":[1]}]}",
        "{\"inputs\":[{\"name\":\"\",\"datatype\":\"FP32\",\"shape\":[1]}]}",
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-2]}]}",
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,1,1,1,1,1,1,1,1]}]}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct wg_kserve_metadata metadata;
        struct wg_error err = {0};
        assert_int_equal(wg__kserve_read_metadata(&metadata, texts[i], strlen(texts[i]), &err),
                         WG_EDATA);
        assert_true(err.text[0] != '\0');
    }
}

static void errors_of_servers_are_one_line(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"error\":\"a\\nb\"}", "a b"},
        {"{\"error\":{\"message\":\"m\",\"code\":5}}", "m"},
        {"{\"detail\":\"d\"}", "d"},
        {"<html>\n", "<html>"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[32];
        wg__http_error_text(out, sizeof out, cases[i][0], strlen(cases[i][0]));
        assert_string_equal(out, cases[i][1]);
    }
    char out[4];
    wg__http_error_text(out, sizeof out, "abcdef", 6);
    assert_string_equal(out, "abc");
}

static void every_failing_allocation_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    const struct wg_kserve_tensor input = tensor("x", WG_KSERVE_FP32, 30, 30);
    size_t failures = 0;
    for (size_t nth = 1;; nth++) {
        struct wg_buffer out, json;
        struct wg_error err;
        size_t json_length = 0;
        wg__buffer_init(&out);
        wg__buffer_init(&json);
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__kserve_pack_infer(&out, "m", "", &input, 1, NULL, &err);
        wg__kserve_write_infer(&json, &input, 1, false, NULL, &json_length);
        wg__alloc_fail_from(0);
        const bool is_whole = code == WG_OK && !out.failed && !json.failed;
        wg__buffer_fini(&out);
        wg__buffer_fini(&json);
        if (is_whole)
            break;
        failures++;
    }
    assert_in_range(failures, 8, 40);
    static const char config[] = FRAME("\4\x0A\2\x20\5");
    for (size_t nth = 1, batch = 0;; nth++) {
        struct wg_error err;
        wg__alloc_fail_from(nth);
        const enum wg_code code =
            wg__kserve_unpack_max_batch(&batch, config, sizeof config - 1, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_EDATA);
        assert_in_range(nth, 1, 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_configuration_tells_batch_and_instances_over_groups_and_devices),
        cmocka_unit_test(models_are_listed_once),
        cmocka_unit_test(shapes_are_filled_with_and_without_the_batch),
        cmocka_unit_test(shapes_that_cannot_be_are_named),
        cmocka_unit_test(all_inputs_of_a_request_are_bounded_together),
        cmocka_unit_test(data_have_the_size_and_range_of_their_type),
        cmocka_unit_test(an_inference_by_http_is_its_header_and_its_bytes),
        cmocka_unit_test(messages_have_the_bytes_that_protobuf_says),
        cmocka_unit_test(answers_by_grpc_are_read),
        cmocka_unit_test(counts_are_read_and_summed_over_versions),
        cmocka_unit_test(a_window_is_the_difference_unless_the_model_was_loaded_anew),
        cmocka_unit_test(answers_by_http_are_judged),
        cmocka_unit_test(foreign_texts_are_malformed_data),
        cmocka_unit_test(errors_of_servers_are_one_line),
        cmocka_unit_test(every_failing_allocation_is_told_and_leaks_nothing),
    };
    return run_tests(tests);
}
