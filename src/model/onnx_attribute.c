/* SPDX-License-Identifier: MIT
 *
 * AttributeProto: numbers, texts, a tensor or a subgraph of a node.
 *
 * Two walks over the message: the first counts what repeats, so that arrays are made once and as
 * large as what the file holds; the second fills them. Lists of tensors, graphs and types are
 * passed over: no operator of ONNX has them.
 *
 * Owns: nothing; what is made is the arena's.    Threads: one thread at a time.
 */
#include <string.h>

#include "model/onnx_reader.h"

/* Where the second walk writes. */
struct attribute_lists {
    float *floats;
    int64_t *ints;
    const char **strings;
    size_t float_count, int_count, string_count;
};

static enum wg_code count_lists(struct wg_wire wire, struct attribute_lists *lists,
                                struct wg_error *err)
{
    for (;;) {
        bool has = false;
        size_t count = 0;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        if (field.number == 7) {
            code = wg__wire_count(&wire, &field, WG_WIRE_FIXED32, "floats", &count, err);
            lists->float_count += count;
        } else if (field.number == 8) {
            code = wg__wire_count(&wire, &field, WG_WIRE_VARINT, "ints", &count, err);
            lists->int_count += count;
        } else if (field.number == 9) {
            code = wg__wire_expect(&wire, &field, WG_WIRE_BYTES, "strings", err);
            lists->string_count++;
        }
        if (code != WG_OK)
            return code;
    }
}

static enum wg_code make_lists(struct wg_onnx_reader *reader, const struct wg_wire *wire,
                               struct attribute_lists *lists, struct wg_error *err)
{
    struct wg_arena *arena = &reader->model->arena;
    if (lists->float_count != 0)
        lists->floats = wg__arena_alloc(arena, lists->float_count, sizeof *lists->floats);
    if (lists->int_count != 0)
        lists->ints = wg__arena_alloc(arena, lists->int_count, sizeof *lists->ints);
    if (lists->string_count != 0)
        lists->strings = wg__arena_alloc(arena, lists->string_count, sizeof *lists->strings);
    if ((lists->float_count != 0 && lists->floats == NULL) ||
        (lists->int_count != 0 && lists->ints == NULL) ||
        (lists->string_count != 0 && lists->strings == NULL))
        return wg__onnx_out_of_memory(wire, err);
    lists->float_count = lists->int_count = lists->string_count = 0; /* of those filled in */
    return WG_OK;
}

static float float_of(uint64_t bits)
{
    const uint32_t narrow = (uint32_t)bits;
    float value = 0.0F;
    memcpy(&value, &narrow, sizeof value);
    return value;
}

static enum wg_code fill_numbers(const struct wg_wire *wire, const struct wg_wire_field *field,
                                 struct attribute_lists *lists, struct wg_error *err)
{
    const enum wg_wire_kind kind = field->number == 7 ? WG_WIRE_FIXED32 : WG_WIRE_VARINT;
    size_t count = 0;
    enum wg_code code = wg__wire_count(wire, field, kind, "a list", &count, err);
    struct wg_wire run = wg__wire_inside(wire, field);
    for (size_t i = 0; i < count && code == WG_OK; i++) {
        uint64_t value = field->value;
        if (field->kind == WG_WIRE_BYTES)
            code = wg__wire_take(&run, kind, &value, err);
        if (kind == WG_WIRE_FIXED32 && lists->floats != NULL)
            lists->floats[lists->float_count++] = float_of(value);
        else if (kind == WG_WIRE_VARINT && lists->ints != NULL)
            lists->ints[lists->int_count++] = (int64_t)value;
    }
    return code;
}

static enum wg_code read_subgraph(struct wg_onnx_reader *reader, const struct wg_wire *wire,
                                  const struct wg_wire_field *field, struct wg_graph_build *build,
                                  struct wg_attribute *out, struct wg_error *err)
{
    const enum wg_code code = wg__wire_expect(wire, field, WG_WIRE_BYTES, "AttributeProto.g", err);
    if (code != WG_OK)
        return code;
    return wg__onnx_graph(reader, wg__wire_inside(wire, field), build, &out->graph, err);
}

static enum wg_code read_tensor(struct wg_onnx_reader *reader, const struct wg_wire *wire,
                                const struct wg_wire_field *field, struct wg_attribute *out,
                                struct wg_error *err)
{
    struct wg_onnx_tensor tensor;
    enum wg_code code = wg__wire_expect(wire, field, WG_WIRE_BYTES, "AttributeProto.t", err);
    if (code != WG_OK)
        return code;
    const struct wg_wire inside = wg__wire_inside(wire, field);
    code = field->number == 5 ? wg__onnx_tensor(reader, inside, &tensor, err)
                              : wg__onnx_sparse_tensor(reader, inside, &tensor, err);
    if (code != WG_OK)
        return code;
    out->tensor = tensor.constant;
    out->tensor_shape = tensor.shape;
    return WG_OK;
}

/* One field; `*seen` becomes the type that it stands for. */
static enum wg_code attribute_field(struct wg_onnx_reader *reader, const struct wg_wire *wire,
                                    const struct wg_wire_field *field, struct wg_graph_build *build,
                                    struct attribute_lists *lists, struct wg_attribute *out,
                                    int *seen, struct wg_error *err)
{
    switch (field->number) {
    case 1:
        return wg__onnx_text(reader, wire, field, "AttributeProto.name", &out->name, err);
    case 2:
        *seen = WG_ATTRIBUTE_FLOAT;
        out->f = float_of(field->value);
        return wg__wire_expect(wire, field, WG_WIRE_FIXED32, "AttributeProto.f", err);
    case 3:
        *seen = WG_ATTRIBUTE_INT;
        out->i = (int64_t)field->value;
        return wg__wire_expect(wire, field, WG_WIRE_VARINT, "AttributeProto.i", err);
    case 4:
        *seen = WG_ATTRIBUTE_STRING;
        out->s = (const char *)field->bytes;
        out->s_length = field->length;
        return wg__wire_expect(wire, field, WG_WIRE_BYTES, "AttributeProto.s", err);
    case 5:
    case 22:
        *seen = field->number == 5 ? WG_ATTRIBUTE_TENSOR : WG_ATTRIBUTE_SPARSE_TENSOR;
        return read_tensor(reader, wire, field, out, err);
    case 6:
        *seen = WG_ATTRIBUTE_GRAPH;
        return read_subgraph(reader, wire, field, build, out, err);
    case 7:
    case 8:
        *seen = field->number == 7 ? WG_ATTRIBUTE_FLOATS : WG_ATTRIBUTE_INTS;
        return fill_numbers(wire, field, lists, err);
    case 9:
        *seen = WG_ATTRIBUTE_STRINGS;
        return wg__onnx_text(reader, wire, field, "AttributeProto.strings",
                             &lists->strings[lists->string_count++], err);
    case 20:
        out->type = field->value <= INT32_MAX ? (int)field->value : 0;
        return wg__wire_expect(wire, field, WG_WIRE_VARINT, "AttributeProto.type", err);
    case 21:
        return wg__onnx_text(reader, wire, field, "AttributeProto.ref_attr_name", &out->ref, err);
    default:
        return WG_OK;
    }
}

static void settle_lists(const struct attribute_lists *lists, struct wg_attribute *out)
{
    out->floats = lists->floats;
    out->ints = lists->ints;
    out->strings = lists->strings;
    if (out->type == WG_ATTRIBUTE_FLOATS)
        out->count = lists->float_count;
    else if (out->type == WG_ATTRIBUTE_INTS)
        out->count = lists->int_count;
    else if (out->type == WG_ATTRIBUTE_STRINGS)
        out->count = lists->string_count;
}

/* A type without its value would have readers follow a null pointer. */
static enum wg_code check_value(const struct wg_wire *wire, const uint8_t *begin,
                                const struct wg_attribute *attribute, struct wg_error *err)
{
    const bool needs_tensor =
        attribute->type == WG_ATTRIBUTE_TENSOR || attribute->type == WG_ATTRIBUTE_SPARSE_TENSOR;
    if (attribute->ref != NULL ||
        ((!needs_tensor || attribute->tensor != NULL) &&
         (attribute->type != WG_ATTRIBUTE_GRAPH || attribute->graph != NULL)))
        return WG_OK;
    return wg__wire_fail(wire, begin, err, "attribute '%.100s' of type %d has no value",
                         attribute->name, attribute->type);
}

enum wg_code wg__onnx_attribute(struct wg_onnx_reader *reader, struct wg_wire wire,
                                struct wg_graph_build *build, struct wg_attribute *out,
                                struct wg_error *err)
{
    const uint8_t *begin = wire.at;
    struct attribute_lists lists = {0};
    *out = (struct wg_attribute){.name = "", .s = ""};
    enum wg_code code = count_lists(wire, &lists, err);
    if (code == WG_OK)
        code = make_lists(reader, &wire, &lists, err);
    int seen = 0;
    while (code == WG_OK) {
        bool has = false;
        struct wg_wire_field field;
        code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            break;
        code = attribute_field(reader, &wire, &field, build, &lists, out, &seen, err);
    }
    if (code != WG_OK)
        return code;
    if (out->type == 0) /* the first IR versions had no type */
        out->type = seen;
    settle_lists(&lists, out);
    return check_value(&wire, begin, out, err);
}
