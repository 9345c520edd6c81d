/* SPDX-License-Identifier: MIT
 *
 * The elements of constants: every type in raw and typed form, external data, Constant nodes.
 */
#include <math.h>

#include "model/onnx.h"
#include "support/check.h"
#include "support/onnx_bytes.h"
#include "support/scratch.h"

static struct wg_model *open_constant(struct wg_buffer *tensor, struct wg_buffer *bytes)
{
    struct wg_model *model = NULL;
    struct wg_error err = {0};
    struct wg_buffer graph = bytes_new();
    put_message(&graph, 5, tensor);
    *bytes = model_bytes(&graph);
    if (wg__onnx_open_memory(&model, "m.onnx", (const uint8_t *)bytes->data, bytes->length, &err) !=
        WG_OK)
        fail_msg("does not open: %s", err.text);
    assert_int_equal(model->graph->tensor_count, 1);
    assert_non_null(model->graph->tensors[0].constant);
    return model;
}

static struct wg_buffer tensor_bytes(int elem_type, uint64_t count)
{
    struct wg_buffer tensor = bytes_new();
    put_varint(&tensor, 1, count);
    put_varint(&tensor, 2, (uint64_t)elem_type);
    put_text(&tensor, 8, "c");
    return tensor;
}

static void expect_doubles(struct wg_buffer tensor, size_t count, const double *expected)
{
    struct wg_buffer bytes;
    struct wg_model *model = open_constant(&tensor, &bytes);
    double values[8] = {0};
    size_t read = 0;
    struct wg_error err = {0};
    const struct wg_constant *constant = model->graph->tensors[0].constant;
    if (wg__constant_doubles(model, constant, values, 8, &read, &err) != WG_OK)
        fail_msg("%s: %s", wg__elem_name(constant->elem_type), err.text);
    assert_int_equal(read, count);
    for (size_t i = 0; i < count; i++) {
        if (isnan(expected[i]))
            assert_true(isnan(values[i]));
        else
            assert_true(values[i] == expected[i]);
    }
    wg__model_close(model);
    wg__buffer_fini(&bytes);
}

/* Raw bytes of each type, and the same numbers in the typed field; 0: the type has none. */
static const struct {
    int elem_type;
    uint64_t count;
    const char *raw;
    size_t length;
    double expected[4];
} types[] = {
    {WG_ELEM_FLOAT, 2, "\x00\x00\x80\x3f\x00\x00\x20\xc0", 8, {1.0, -2.5}},
    {WG_ELEM_DOUBLE, 1, "\x00\x00\x00\x00\x00\x00\xf8\x3f", 8, {1.5}},
    {WG_ELEM_UINT8, 2, "\x01\xff", 2, {1, 255}},
    {WG_ELEM_INT8, 2, "\x01\xff", 2, {1, -1}},
    {WG_ELEM_UINT16, 1, "\xfe\xff", 2, {65534}},
    {WG_ELEM_INT16, 1, "\xfe\xff", 2, {-2}},
    {WG_ELEM_INT32, 1, "\xfd\xff\xff\xff", 4, {-3}},
    {WG_ELEM_UINT32, 1, "\xfd\xff\xff\xff", 4, {4294967293.0}},
    {WG_ELEM_INT64, 1, "\xfc\xff\xff\xff\xff\xff\xff\xff", 8, {-4}},
    {WG_ELEM_UINT64, 1, "\x00\x00\x00\x00\x00\x00\x00\x80", 8, {9223372036854775808.0}},
    {WG_ELEM_BOOL, 3, "\x00\x01\x02", 3, {0, 1, 1}},
    /* IEEE 754 binary16: 1, the least subnormal, -infinity, NaN */
    {WG_ELEM_FLOAT16, 4, "\x00\x3c\x01\x00\x00\xfc\x01\x7e", 8, {1, 0x1p-24, -INFINITY, NAN}},
    {WG_ELEM_BFLOAT16, 2, "\x80\x3f\x20\xc0", 4, {1.0, -2.5}},
    {WG_ELEM_UINT4, 3, "\xf1\x02", 2, {1, 15, 2}},
    {WG_ELEM_INT4, 3, "\xf1\x07", 2, {1, -1, 7}},
};

static void reads_raw_elements_of_each_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct wg_buffer tensor = tensor_bytes(types[i].elem_type, types[i].count);
        put_bytes(&tensor, 9, types[i].raw, types[i].length);
        expect_doubles(tensor, (size_t)types[i].count, types[i].expected);
    }
}

static void reads_typed_fields_packed_and_not(void **state)
{
    (void)state;
    struct wg_buffer floats = tensor_bytes(WG_ELEM_FLOAT, 3);
    put_float(&floats, 4, 1.0F);
    put_bytes(&floats, 4, "\x00\x00\x20\xc0\x00\x00\x00\x3f", 8);
    expect_doubles(floats, 3, (const double[]){1.0, -2.5, 0.5});
    struct wg_buffer ints = tensor_bytes(WG_ELEM_INT64, 4);
    put_bytes(&ints, 7, "\x05\xac\x02", 3);
    put_varint(&ints, 7, (uint64_t)-7);
    put_varint(&ints, 7, 8);
    expect_doubles(ints, 4, (const double[]){5, 300, -7, 8});
    struct wg_buffer bytes = tensor_bytes(WG_ELEM_INT8, 2);
    put_varint(&bytes, 5, (uint64_t)-1);
    put_varint(&bytes, 5, 127);
    expect_doubles(bytes, 2, (const double[]){-1, 127});
    struct wg_buffer halves = tensor_bytes(WG_ELEM_FLOAT16, 1);
    put_varint(&halves, 5, 0xc000);
    expect_doubles(halves, 1, (const double[]){-2.0});
    struct wg_buffer doubles = tensor_bytes(WG_ELEM_DOUBLE, 1);
    put_double(&doubles, 10, 0.1);
    expect_doubles(doubles, 1, (const double[]){0.1});
    struct wg_buffer longs = tensor_bytes(WG_ELEM_UINT64, 1);
    put_varint(&longs, 11, UINT64_C(1) << 63);
    expect_doubles(longs, 1, (const double[]){9223372036854775808.0});
    struct wg_buffer nibbles = tensor_bytes(WG_ELEM_INT4, 3);
    put_varint(&nibbles, 5, 0xf1);
    put_varint(&nibbles, 5, 0x08);
    expect_doubles(nibbles, 3, (const double[]){1, -1, -8});
}

static void expect_failure(struct wg_buffer tensor, enum wg_code code, const char *expected)
{
    struct wg_buffer bytes;
    struct wg_model *model = open_constant(&tensor, &bytes);
    int64_t values[4];
    size_t read = 77;
    struct wg_error err = {0};
    const struct wg_constant *constant = model->graph->tensors[0].constant;
    assert_int_equal(wg__constant_ints(model, constant, values, 4, &read, &err), code);
    assert_string_equal(err.text, expected);
    assert_int_equal(read, 77);
    wg__model_close(model);
    wg__buffer_fini(&bytes);
}

static void refuses_elements_that_are_not_there_or_no_numbers(void **state)
{
    (void)state;
    struct wg_buffer tensor = tensor_bytes(WG_ELEM_INT64, 2);
    put_bytes(&tensor, 9, "\0\0\0\0\0\0\0\0", 8);
    expect_failure(tensor, WG_EDATA, "a constant has 8 bytes of raw data, its shape needs 16");
    tensor = tensor_bytes(WG_ELEM_INT64, 2);
    put_varint(&tensor, 7, 1);
    expect_failure(tensor, WG_EDATA,
                   "a constant of type INT64 has 1 elements in field 7, its shape needs 2");
    expect_failure(tensor_bytes(WG_ELEM_INT64, 2), WG_EUNSUPPORTED, "a constant without elements");
    expect_failure(tensor_bytes(WG_ELEM_STRING, 1), WG_EUNSUPPORTED,
                   "a constant of type STRING as whole numbers");
    expect_failure(tensor_bytes(WG_ELEM_FLOAT, 1), WG_EUNSUPPORTED,
                   "a constant of type FLOAT as whole numbers");
    expect_failure(tensor_bytes(99, 1), WG_EUNSUPPORTED,
                   "a constant of type unknown as whole numbers");
}

static void reads_no_more_than_there_is_room_for(void **state)
{
    (void)state;
    struct wg_buffer bytes;
    struct wg_buffer tensor = tensor_bytes(WG_ELEM_INT8, 3);
    put_bytes(&tensor, 9, "\1\2\3", 3);
    struct wg_model *model = open_constant(&tensor, &bytes);
    int64_t values[3] = {0, 0, -9};
    size_t read = 0;
    const struct wg_constant *constant = model->graph->tensors[0].constant;
    assert_int_equal(wg__constant_ints(model, constant, values, 2, &read, NULL), WG_OK);
    assert_int_equal(read, 2);
    assert_int_equal(values[1], 2);
    assert_int_equal(values[2], -9);
    wg__model_close(model);
    wg__buffer_fini(&bytes);
}

/* --- External data ---------------------------------------------------------------------------- */

static struct wg_buffer entry_bytes(const char *key, const char *value)
{
    struct wg_buffer entry = bytes_new();
    put_text(&entry, 1, key);
    put_text(&entry, 2, value);
    return entry;
}

static struct wg_buffer external_tensor(const char *location, const char *offset,
                                        const char *length)
{
    struct wg_buffer tensor = tensor_bytes(WG_ELEM_INT32, 2);
    struct wg_buffer entry = entry_bytes("location", location);
    put_message(&tensor, 13, &entry);
    entry = entry_bytes("offset", offset);
    put_message(&tensor, 13, &entry);
    entry = entry_bytes("length", length);
    put_message(&tensor, 13, &entry);
    put_varint(&tensor, 14, 1);
    return tensor;
}

/* The message, "" where the elements are read. */
static void read_external(struct scratch *scratch, struct wg_buffer tensor, struct wg_error *err)
{
    const char *path = scratch_path(scratch, "m.onnx");
    struct wg_model *model = NULL;
    struct wg_buffer graph = bytes_new();
    int64_t values[2] = {0};
    size_t read = 0;
    put_message(&graph, 5, &tensor);
    struct wg_buffer bytes = model_bytes(&graph);
    scratch_write(path, bytes.data, bytes.length);
    wg__buffer_fini(&bytes);
    *err = (struct wg_error){0};
    if (wg__onnx_open(&model, path, err) != WG_OK)
        return;
    if (wg__constant_ints(model, model->graph->tensors[0].constant, values, 2, &read, err) ==
        WG_OK) {
        assert_int_equal(values[0], 7);
        assert_int_equal(values[1], -1);
    }
    wg__model_close(model);
}

static void reads_external_data_within_the_folder_only(void **state)
{
    (void)state;
    struct wg_error err;
    struct scratch scratch;
    scratch_open(&scratch);
    scratch_write(scratch_path(&scratch, "w.bin"), "....\7\0\0\0\xff\xff\xff\xff", 12);
    read_external(&scratch, external_tensor("w.bin", "4", "8"), &err);
    assert_string_equal(err.text, "");
    read_external(&scratch, external_tensor("./w.bin", "4", "0"), &err);
    assert_string_equal(err.text, "");
    read_external(&scratch, external_tensor("w.bin", "5", "8"), &err);
    assert_string_equal(err.text, "a constant has 7 bytes in its external data, its shape needs 8");
    read_external(&scratch, external_tensor("w.bin", "4", "7"), &err);
    assert_string_equal(err.text, "a constant has 7 bytes in its external data, its shape needs 8");
    read_external(&scratch, external_tensor("gone.bin", "0", "8"), &err);
    assert_int_equal(err.code, WG_ENOENT);
    read_external(&scratch, external_tensor(".", "0", "8"), &err);
    assert_int_equal(err.code, WG_EIO);
    assert_non_null(strstr(err.text, "not a regular file"));
    static const char *const outside[] = {
        "/etc/passwd", "../w.bin", "a/../../w.bin", "a\\..\\w.bin", "", "\\w.bin", ".."};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        read_external(&scratch, external_tensor(outside[i], "0", "8"), &err);
        assert_int_equal(err.code, WG_EDATA);
        assert_non_null(strstr(err.text, "outside the model's folder"));
    }
    read_external(&scratch, external_tensor("w.bin", "-4", "8"), &err);
    assert_non_null(strstr(err.text, "external data with offset '-4', expected a whole number"));
    scratch_close(&scratch);
}

/* --- Constant nodes --------------------------------------------------------------------------- */

static struct wg_buffer attribute_bytes(const char *name)
{
    struct wg_buffer attribute = bytes_new();
    put_text(&attribute, 1, name);
    return attribute;
}

/* A Constant with one attribute, which it takes; the constant that its output has. */
static const struct wg_tensor *constant_of(struct wg_buffer *attribute, struct wg_buffer *bytes,
                                           struct wg_model **model)
{
    struct wg_error err = {0};
    struct wg_buffer graph = bytes_new();
    struct wg_buffer node = node_bytes("Constant", NULL, NULL, "c");
    put_message(&node, 5, attribute);
    put_message(&graph, 1, &node);
    *bytes = model_bytes(&graph);
    if (wg__onnx_open_memory(model, "m.onnx", (const uint8_t *)bytes->data, bytes->length, &err) !=
        WG_OK)
        fail_msg("does not open: %s", err.text);
    assert_int_equal((*model)->graph->tensors[0].producer, 0);
    return &(*model)->graph->tensors[0];
}

static void expect_node(struct wg_buffer attribute, int elem_type, size_t rank, size_t count,
                        const double *expected)
{
    struct wg_model *model = NULL;
    struct wg_buffer bytes;
    double values[4] = {0};
    size_t read = 0;
    struct wg_error err = {0};
    const struct wg_tensor *tensor = constant_of(&attribute, &bytes, &model);
    assert_non_null(tensor->constant);
    assert_int_equal(tensor->elem_type, elem_type);
    assert_true(tensor->shape.is_known);
    assert_int_equal(tensor->shape.rank, rank);
    assert_int_equal(tensor->constant->element_count, count);
    if (expected != NULL) {
        assert_int_equal(wg__constant_doubles(model, tensor->constant, values, 4, &read, &err),
                         WG_OK);
        assert_int_equal(read, count);
        for (size_t i = 0; i < count; i++)
            assert_true(values[i] == expected[i]);
    }
    wg__model_close(model);
    wg__buffer_fini(&bytes);
}

static void takes_the_values_of_constant_nodes(void **state)
{
    (void)state;
    struct wg_buffer attribute = attribute_bytes("value_int");
    put_varint(&attribute, 3, (uint64_t)-5);
    expect_node(attribute, WG_ELEM_INT64, 0, 1, (const double[]){-5});
    attribute = attribute_bytes("value_ints");
    put_varint(&attribute, 8, 3);
    put_bytes(&attribute, 8, "\x04\x05", 2);
    put_varint(&attribute, 20, WG_ATTRIBUTE_INTS);
    expect_node(attribute, WG_ELEM_INT64, 1, 3, (const double[]){3, 4, 5});
    attribute = attribute_bytes("value_float");
    put_float(&attribute, 2, -0.25F);
    expect_node(attribute, WG_ELEM_FLOAT, 0, 1, (const double[]){-0.25});
    attribute = attribute_bytes("value_floats");
    put_float(&attribute, 7, 0.5F);
    put_float(&attribute, 7, 2.0F);
    expect_node(attribute, WG_ELEM_FLOAT, 1, 2, (const double[]){0.5, 2.0});
    attribute = attribute_bytes("value_string");
    put_text(&attribute, 4, "abc");
    expect_node(attribute, WG_ELEM_STRING, 0, 1, NULL);
    attribute = attribute_bytes("value");
    struct wg_buffer tensor = tensor_bytes(WG_ELEM_INT8, 2);
    put_bytes(&tensor, 9, "\1\2", 2);
    put_message(&attribute, 5, &tensor);
    expect_node(attribute, WG_ELEM_INT8, 1, 2, (const double[]){1, 2});
}

static void knows_the_shape_of_a_sparse_constant(void **state)
{
    (void)state;
    struct wg_buffer attribute = attribute_bytes("sparse_value");
    struct wg_buffer sparse = bytes_new();
    struct wg_buffer values = tensor_bytes(WG_ELEM_FLOAT, 1);
    put_message(&sparse, 1, &values);
    put_bytes(&sparse, 3, "\x03\x04", 2);
    put_message(&attribute, 22, &sparse);
    struct wg_model *model = NULL;
    struct wg_buffer bytes;
    struct wg_error err = {0};
    double value = 0.0;
    size_t read = 0;
    const struct wg_tensor *tensor = constant_of(&attribute, &bytes, &model);
    assert_true(tensor->constant->is_sparse);
    assert_int_equal(tensor->constant->element_count, 12);
    assert_int_equal(tensor->shape.dims[1].value, 4);
    assert_int_equal(wg__constant_doubles(model, tensor->constant, &value, 1, &read, &err),
                     WG_EUNSUPPORTED);
    assert_string_equal(err.text, "the elements of a sparse constant");
    wg__model_close(model);
    wg__buffer_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_raw_elements_of_each_type),
        cmocka_unit_test(reads_typed_fields_packed_and_not),
        cmocka_unit_test(refuses_elements_that_are_not_there_or_no_numbers),
        cmocka_unit_test(reads_no_more_than_there_is_room_for),
        cmocka_unit_test(reads_external_data_within_the_folder_only),
        cmocka_unit_test(takes_the_values_of_constant_nodes),
        cmocka_unit_test(knows_the_shape_of_a_sparse_constant),
    };
    return run_tests(tests);
}
