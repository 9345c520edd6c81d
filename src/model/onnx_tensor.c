/* SPDX-License-Identifier: MIT
 *
 * TensorProto, SparseTensorProto and TypeProto: shapes, and where a constant's elements lie.
 *
 * No element is looked at here. Raw bytes are pointed at; for typed fields, packed or not, the
 * message is, and onnx_constant.c walks it again; external data is a name and a range. The name
 * must stay within the model's folder, since a model is somebody else's file.
 *
 * Owns: nothing; what is made is the arena's.    Threads: one thread at a time.
 */
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"
#include "model/onnx_reader.h"

enum wg_code wg__onnx_out_of_memory(const struct wg_wire *wire, struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "%s: out of memory", wire->name);
}

enum wg_code wg__onnx_text(struct wg_onnx_reader *reader, const struct wg_wire *wire,
                           const struct wg_wire_field *field, const char *what, const char **out,
                           struct wg_error *err)
{
    const enum wg_code code = wg__wire_expect(wire, field, WG_WIRE_BYTES, what, err);
    if (code != WG_OK)
        return code;
    if (field->length != 0 && memchr(field->bytes, 0, field->length) != NULL)
        return wg__wire_fail(wire, field->tag, err, "%s holds a zero byte", what);
    char *text = wg__arena_alloc(&reader->model->arena, field->length + 1, 1);
    if (text == NULL)
        return wg__onnx_out_of_memory(wire, err);
    if (field->length != 0)
        memcpy(text, field->bytes, field->length);
    for (size_t at = 0; at < field->length;) {
        const size_t step = wg__utf8_length((const unsigned char *)text + at);
        if (step == 0)
            return wg__wire_fail(wire, field->tag, err, "%s is no UTF-8", what);
        at += step;
    }
    *out = text;
    return WG_OK;
}

/* --- Constants -------------------------------------------------------------------------------- */

/* Appends the numbers of one occurrence of `dims`. */
static enum wg_code read_dims(const struct wg_wire *wire, const struct wg_wire_field *field,
                              struct wg_shape *shape, struct wg_error *err)
{
    size_t count = 0;
    enum wg_code code = wg__wire_count(wire, field, WG_WIRE_VARINT, "dims", &count, err);
    if (code != WG_OK)
        return code;
    if (count > WG_DIMS_MAX - shape->rank)
        return wg__fail(err, WG_EUNSUPPORTED,
                        "%s: at byte %zu: a constant of more than %d dimensions", wire->name,
                        (size_t)(field->tag - wire->first), WG_DIMS_MAX);
    struct wg_wire run = wg__wire_inside(wire, field);
    for (size_t i = 0; i < count; i++) {
        uint64_t value = field->value;
        if (field->kind == WG_WIRE_BYTES)
            code = wg__wire_take(&run, WG_WIRE_VARINT, &value, err);
        if (code != WG_OK)
            return code;
        if (value > INT64_MAX)
            return wg__wire_fail(wire, field->tag, err, "a constant's dimension of %lld",
                                 (long long)value);
        shape->dims[shape->rank++] = (struct wg_dim){.value = (int64_t)value};
    }
    return WG_OK;
}

static enum wg_code count_elements(const struct wg_wire *wire, const uint8_t *at,
                                   const struct wg_shape *shape, uint64_t *out,
                                   struct wg_error *err)
{
    uint64_t product = 1;
    bool is_empty = false;
    for (size_t i = 0; i < shape->rank; i++)
        is_empty = is_empty || shape->dims[i].value == 0;
    for (size_t i = 0; i < shape->rank && !is_empty; i++) {
        if (__builtin_mul_overflow(product, (uint64_t)shape->dims[i].value, &product))
            return wg__wire_fail(wire, at, err, "a constant of more than 2^64 elements");
    }
    *out = is_empty ? 0 : product;
    return WG_OK;
}

/* Whether a path names something within the folder that it is relative to. */
static bool stays_inside(const char *path)
{
    if (path[0] == '\0' || path[0] == '/' || path[0] == '\\')
        return false;
    while (*path != '\0') {
        const size_t length = strcspn(path, "/\\");
        if (length == 2 && path[0] == '.' && path[1] == '.')
            return false;
        path += length;
        path += *path != '\0';
    }
    return true;
}

/* One StringStringEntryProto. */
static enum wg_code read_entry(struct wg_onnx_reader *reader, struct wg_wire wire, const char **key,
                               const char **value, struct wg_error *err)
{
    *key = "";
    *value = "";
    struct wg_wire_field field;
    for (;;) {
        bool has = false;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        if (field.number == 1)
            code = wg__onnx_text(reader, &wire, &field, "an entry's key", key, err);
        else if (field.number == 2)
            code = wg__onnx_text(reader, &wire, &field, "an entry's value", value, err);
        if (code != WG_OK)
            return code;
    }
}

static enum wg_code read_external(struct wg_onnx_reader *reader, const struct wg_wire *wire,
                                  const struct wg_wire_field *field, struct wg_constant *constant,
                                  struct wg_error *err)
{
    const char *key = NULL;
    const char *value = NULL;
    enum wg_code code =
        wg__wire_expect(wire, field, WG_WIRE_BYTES, "TensorProto.external_data", err);
    if (code == WG_OK)
        code = read_entry(reader, wg__wire_inside(wire, field), &key, &value, err);
    if (code != WG_OK)
        return code;
    if (strcmp(key, "location") == 0) {
        if (!stays_inside(value))
            return wg__wire_fail(wire, field->tag, err,
                                 "external data at '%.100s', outside the model's folder", value);
        constant->external = value;
        return WG_OK;
    }
    uint64_t *number = strcmp(key, "offset") == 0   ? &constant->external_offset
                       : strcmp(key, "length") == 0 ? &constant->external_length
                                                    : NULL;
    if (number != NULL && (!wg__parse_uint64(value, number) || *number > INT64_MAX))
        return wg__wire_fail(wire, field->tag, err,
                             "external data with %s '%.40s', expected a whole number", key, value);
    return WG_OK;
}

/* What TensorProto says beside its dims and elements. */
struct tensor_parts {
    struct wg_onnx_tensor *out;
    struct wg_wire message;
    bool is_external;
};

static enum wg_code tensor_field(struct wg_onnx_reader *reader, const struct wg_wire *wire,
                                 const struct wg_wire_field *field, struct tensor_parts *parts,
                                 struct wg_error *err)
{
    struct wg_constant *constant = parts->out->constant;
    enum wg_code code = WG_OK;
    switch (field->number) {
    case 1:
        return read_dims(wire, field, &parts->out->shape, err);
    case 2:
        code = wg__wire_expect(wire, field, WG_WIRE_VARINT, "TensorProto.data_type", err);
        constant->elem_type = field->value <= INT32_MAX ? (int)field->value : WG_ELEM_UNKNOWN;
        return code;
    case 4:  /* float_data */
    case 5:  /* int32_data */
    case 6:  /* string_data */
    case 7:  /* int64_data */
    case 10: /* double_data */
    case 11: /* uint64_data */
        if (field->kind == WG_WIRE_BYTES && field->length == 0 && field->number != 6)
            return WG_OK;
        constant->typed = parts->message.at;
        constant->typed_length = (size_t)(parts->message.end - parts->message.at);
        constant->typed_field = (int)field->number;
        return WG_OK;
    case 8:
        return wg__onnx_text(reader, wire, field, "TensorProto.name", &parts->out->name, err);
    case 9:
        constant->bytes = field->bytes;
        constant->byte_count = field->length;
        return wg__wire_expect(wire, field, WG_WIRE_BYTES, "TensorProto.raw_data", err);
    case 13:
        return read_external(reader, wire, field, constant, err);
    case 14:
        parts->is_external = field->value == 1;
        return wg__wire_expect(wire, field, WG_WIRE_VARINT, "TensorProto.data_location", err);
    default:
        return WG_OK;
    }
}

/* External data counts only where data_location says so, and then it must say where. */
static enum wg_code settle_place(const struct wg_wire *wire, struct wg_constant *constant,
                                 bool is_external, struct wg_error *err)
{
    if (!is_external) {
        constant->external = NULL;
        return WG_OK;
    }
    if (constant->external == NULL)
        return wg__wire_fail(wire, wire->at, err, "external data without a location");
    constant->bytes = NULL;
    constant->byte_count = 0;
    constant->typed = NULL;
    constant->typed_length = 0;
    return WG_OK;
}

enum wg_code wg__onnx_tensor(struct wg_onnx_reader *reader, struct wg_wire wire,
                             struct wg_onnx_tensor *out, struct wg_error *err)
{
    *out = (struct wg_onnx_tensor){.name = "", .shape = {.is_known = true}};
    out->constant = wg__arena_alloc(&reader->model->arena, 1, sizeof *out->constant);
    if (out->constant == NULL)
        return wg__onnx_out_of_memory(&wire, err);
    struct tensor_parts parts = {.out = out, .message = wire};
    struct wg_wire_field field;
    for (;;) {
        bool has = false;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code == WG_OK && has)
            code = tensor_field(reader, &wire, &field, &parts, err);
        if (code != WG_OK)
            return code;
        if (!has)
            break;
    }
    const enum wg_code code = settle_place(&parts.message, out->constant, parts.is_external, err);
    if (code != WG_OK)
        return code;
    return count_elements(&wire, parts.message.at, &out->shape, &out->constant->element_count, err);
}

enum wg_code wg__onnx_sparse_tensor(struct wg_onnx_reader *reader, struct wg_wire wire,
                                    struct wg_onnx_tensor *out, struct wg_error *err)
{
    const uint8_t *begin = wire.at;
    struct wg_onnx_tensor values = {.name = ""};
    struct wg_shape shape = {.is_known = true};
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code == WG_OK && has && field.number == 1) {
            code = wg__wire_expect(&wire, &field, WG_WIRE_BYTES, "SparseTensorProto.values", err);
            if (code == WG_OK)
                code = wg__onnx_tensor(reader, wg__wire_inside(&wire, &field), &values, err);
        } else if (code == WG_OK && has && field.number == 3) {
            code = read_dims(&wire, &field, &shape, err);
        }
        if (code != WG_OK)
            return code;
        if (!has)
            break;
    }
    if (values.constant == NULL)
        return wg__wire_fail(&wire, begin, err, "a sparse tensor without values");
    *out =
        (struct wg_onnx_tensor){.name = values.name, .shape = shape, .constant = values.constant};
    *out->constant =
        (struct wg_constant){.elem_type = values.constant->elem_type, .is_sparse = true};
    return count_elements(&wire, begin, &shape, &out->constant->element_count, err);
}

/* --- Types ------------------------------------------------------------------------------------ */

static enum wg_code read_dimension(struct wg_onnx_reader *reader, struct wg_wire wire,
                                   struct wg_dim *out, struct wg_error *err)
{
    *out = (struct wg_dim){.value = WG_DIM_UNKNOWN};
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        if (field.number == 1) { /* exporters write -1 for "not known" */
            code = wg__wire_expect(&wire, &field, WG_WIRE_VARINT, "dim_value", err);
            out->value = field.value <= INT64_MAX ? (int64_t)field.value : WG_DIM_UNKNOWN;
        } else if (field.number == 2) {
            code = wg__onnx_text(reader, &wire, &field, "dim_param", &out->name, err);
        }
        if (code != WG_OK)
            return code;
        /* Paddle's exporter writes "?" for "not known": two of them need not be the same. */
        if (out->name != NULL && (out->name[0] == '\0' || strcmp(out->name, "?") == 0))
            out->name = NULL;
    }
}

static enum wg_code read_shape(struct wg_onnx_reader *reader, struct wg_wire wire,
                               struct wg_shape *out, struct wg_error *err)
{
    struct wg_shape shape = {.is_known = true};
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK)
            return code;
        if (!has)
            break;
        if (field.number != 1)
            continue;
        code = wg__wire_expect(&wire, &field, WG_WIRE_BYTES, "TensorShapeProto.dim", err);
        struct wg_dim dim = {.value = WG_DIM_UNKNOWN};
        if (code == WG_OK)
            code = read_dimension(reader, wg__wire_inside(&wire, &field), &dim, err);
        if (code != WG_OK)
            return code;
        if (shape.rank == WG_DIMS_MAX)
            return WG_OK; /* more than we hold: not known */
        shape.dims[shape.rank++] = dim;
    }
    *out = shape;
    return WG_OK;
}

/* TypeProto.Tensor and TypeProto.SparseTensor look alike. */
static enum wg_code read_tensor_type(struct wg_onnx_reader *reader, struct wg_wire wire,
                                     int *elem_type, struct wg_shape *shape, struct wg_error *err)
{
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        if (field.number == 1) {
            code = wg__wire_expect(&wire, &field, WG_WIRE_VARINT, "elem_type", err);
            *elem_type = field.value <= INT32_MAX ? (int)field.value : WG_ELEM_UNKNOWN;
        } else if (field.number == 2) {
            code = wg__wire_expect(&wire, &field, WG_WIRE_BYTES, "shape", err);
            if (code == WG_OK)
                code = read_shape(reader, wg__wire_inside(&wire, &field), shape, err);
        }
        if (code != WG_OK)
            return code;
    }
}

/* A TypeProto within a sequence or optional: a tensor, or a sequence of tensors. */
static enum wg_code read_held(struct wg_onnx_reader *reader, struct wg_wire wire,
                              struct wg_held *out, bool *has_out, struct wg_error *err);

/* TypeProto.Sequence and TypeProto.Optional look alike, too. */
static enum wg_code read_container(struct wg_onnx_reader *reader, struct wg_wire wire,
                                   struct wg_held *out, bool *has_out, struct wg_error *err)
{
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        if (field.number != 1)
            continue;
        code = wg__wire_expect(&wire, &field, WG_WIRE_BYTES, "elem_type", err);
        if (code == WG_OK)
            code = read_held(reader, wg__wire_inside(&wire, &field), out, has_out, err);
        if (code != WG_OK)
            return code;
    }
}

static enum wg_code read_held(struct wg_onnx_reader *reader, struct wg_wire wire,
                              struct wg_held *out, bool *has_out, struct wg_error *err)
{
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        if (field.number != 1 && !(field.number == 4 && out->kind == WG_KIND_OPTIONAL))
            continue;
        code = wg__wire_expect(&wire, &field, WG_WIRE_BYTES, "TypeProto", err);
        if (code != WG_OK)
            return code;
        if (field.number == 4) { /* an optional sequence: no deeper nesting exists */
            out->kind = WG_KIND_OPTIONAL_SEQUENCE;
            code = read_container(reader, wg__wire_inside(&wire, &field), out, has_out, err);
        } else {
            *has_out = true;
            code = read_tensor_type(reader, wg__wire_inside(&wire, &field), &out->elem_type,
                                    &out->shape, err);
        }
        if (code != WG_OK)
            return code;
    }
}

static enum wg_code keep_held(struct wg_onnx_reader *reader, const struct wg_wire_field *field,
                              const struct wg_wire *wire, struct wg_tensor *out,
                              struct wg_error *err)
{
    bool has = false;
    struct wg_held held = {.kind = field->number == 4 ? WG_KIND_SEQUENCE : WG_KIND_OPTIONAL};
    const enum wg_code code =
        read_container(reader, wg__wire_inside(wire, field), &held, &has, err);
    if (code != WG_OK || !has)
        return code;
    struct wg_held *kept = wg__arena_alloc(&reader->model->arena, 1, sizeof *kept);
    if (kept == NULL)
        return wg__onnx_out_of_memory(wire, err);
    *kept = held;
    out->held = kept;
    return WG_OK;
}

enum wg_code wg__onnx_type(struct wg_onnx_reader *reader, struct wg_wire wire,
                           struct wg_tensor *out, struct wg_error *err)
{
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        const bool is_tensor = field.number == 1 || field.number == 8;
        if (!is_tensor && field.number != 4 && field.number != 9)
            continue;
        code = wg__wire_expect(&wire, &field, WG_WIRE_BYTES, "TypeProto", err);
        if (code == WG_OK && is_tensor)
            code = read_tensor_type(reader, wg__wire_inside(&wire, &field), &out->elem_type,
                                    &out->shape, err);
        else if (code == WG_OK)
            code = keep_held(reader, &field, &wire, out, err);
        if (code != WG_OK)
            return code;
    }
}
