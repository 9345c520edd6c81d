/* SPDX-License-Identifier: MIT
 *
 * The elements of constants: raw, in typed fields, beside the model, or in a node's attributes.
 *
 *     raw_data      little-endian, as wide as the type; 4-bit types two a byte, the lower first
 *     typed fields  one number an element, in the field that the type has: int32_data for all that
 *                   is narrower, too (FLOAT16 as its bits, 4-bit types two a number)
 *     external      as raw_data, at offset .. offset + length of a file in the model's folder
 *
 * A source gives elements as 64 bits, one after the other; what the bits mean is the type's.
 *
 * Owns: an open file while elements are read.    Threads: one thread at a time.
 */
#include "model/onnx_constant.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "model/onnx.h"
#include "model/onnx_wire.h"

/* --- What bits mean --------------------------------------------------------------------------- */

/* The field of TensorProto that a type's elements are in; 0: none that we read. */
static int typed_field_of(int elem_type)
{
    switch (elem_type) {
    case WG_ELEM_FLOAT:
        return 4;
    case WG_ELEM_INT64:
        return 7;
    case WG_ELEM_DOUBLE:
        return 10;
    case WG_ELEM_UINT32:
    case WG_ELEM_UINT64:
        return 11;
    case WG_ELEM_UNKNOWN:
    case WG_ELEM_STRING:
    case WG_ELEM_COMPLEX64:
    case WG_ELEM_COMPLEX128:
        return 0;
    default:
        return wg__elem_bits(elem_type) != 0 ? 5 : 0;
    }
}

static bool is_whole(int elem_type)
{
    switch (elem_type) {
    case WG_ELEM_UINT4:
    case WG_ELEM_INT4:
    case WG_ELEM_UINT8:
    case WG_ELEM_INT8:
    case WG_ELEM_UINT16:
    case WG_ELEM_INT16:
    case WG_ELEM_UINT32:
    case WG_ELEM_INT32:
    case WG_ELEM_UINT64:
    case WG_ELEM_INT64:
    case WG_ELEM_BOOL:
        return true;
    default:
        return false;
    }
}

static bool is_signed(int elem_type)
{
    return elem_type == WG_ELEM_INT4 || elem_type == WG_ELEM_INT8 || elem_type == WG_ELEM_INT16 ||
           elem_type == WG_ELEM_INT32 || elem_type == WG_ELEM_INT64;
}

/* The low bits of an integer type as a number; UINT64 beyond 2^63 wraps, as a cast to int64 does.
 */
static int64_t int_of(int elem_type, uint64_t bits)
{
    const unsigned width = wg__elem_bits(elem_type);
    if (width == 64)
        return (int64_t)bits;
    bits &= (UINT64_C(1) << width) - 1;
    if (elem_type == WG_ELEM_BOOL)
        return bits != 0;
    const uint64_t sign = UINT64_C(1) << (width - 1);
    return is_signed(elem_type) && (bits & sign) != 0 ? (int64_t)bits - (int64_t)(sign << 1)
                                                      : (int64_t)bits;
}

/* A number of `exponent` and `mantissa` bits below a sign, with IEEE's infinities. */
static double small_float(uint64_t bits, unsigned exponent, unsigned mantissa)
{
    const int bias = (1 << (exponent - 1)) - 1;
    const int most = (1 << exponent) - 1;
    const int power = (int)(bits >> mantissa) & most;
    const double part = (double)(bits & ((UINT64_C(1) << mantissa) - 1));
    const double sign = (bits >> (exponent + mantissa) & 1) != 0 ? -1.0 : 1.0;
    if (power == most)
        return part != 0.0 ? (double)NAN : sign * (double)INFINITY;
    if (power == 0)
        return sign * ldexp(part, 1 - bias - (int)mantissa);
    return sign * ldexp(part + (double)(UINT64_C(1) << mantissa), power - bias - (int)mantissa);
}

/* NAN for a type without a number that we know. */
static double double_of(int elem_type, uint64_t bits)
{
    double wide = 0.0;
    float narrow = 0.0F;
    const uint32_t low = (uint32_t)bits;
    switch (elem_type) {
    case WG_ELEM_DOUBLE:
        memcpy(&wide, &bits, sizeof wide);
        return wide;
    case WG_ELEM_FLOAT:
        memcpy(&narrow, &low, sizeof narrow);
        return (double)narrow;
    case WG_ELEM_FLOAT16:
        return small_float(bits & 0xffff, 5, 10);
    case WG_ELEM_BFLOAT16:
        return small_float(bits & 0xffff, 8, 7);
    case WG_ELEM_UINT64:
        return (double)bits;
    default:
        return is_whole(elem_type) ? (double)int_of(elem_type, bits) : (double)NAN;
    }
}

static bool is_number(int elem_type)
{
    return is_whole(elem_type) || elem_type == WG_ELEM_FLOAT || elem_type == WG_ELEM_DOUBLE ||
           elem_type == WG_ELEM_FLOAT16 || elem_type == WG_ELEM_BFLOAT16;
}

/* --- Where bits come from --------------------------------------------------------------------- */

/* Takes elements as they come and writes them where they are wanted. */
struct sink {
    int elem_type;
    int64_t *ints;   /* or */
    double *doubles; /* one of the two */
    size_t count, wanted;
};

static void put(struct sink *sink, uint64_t bits)
{
    if (sink->ints != NULL)
        sink->ints[sink->count++] = int_of(sink->elem_type, bits);
    else
        sink->doubles[sink->count++] = double_of(sink->elem_type, bits);
}

/* Raw elements; `bytes` hold all that are wanted. */
static void put_raw(struct sink *sink, const uint8_t *bytes)
{
    const unsigned width = wg__elem_bits(sink->elem_type);
    for (size_t i = 0; sink->count < sink->wanted; i++) {
        uint64_t bits = 0;
        if (width == 4) {
            bits = (uint64_t)bytes[i / 2] >> (i % 2 * 4) & 0xf;
        } else {
            for (unsigned byte = 0; byte < width / 8; byte++)
                bits |= (uint64_t)bytes[i * (width / 8) + byte] << 8 * byte;
        }
        put(sink, bits);
    }
}

static enum wg_code too_short(const char *where, uint64_t have, uint64_t want, struct wg_error *err)
{
    return wg__fail(err, WG_EDATA, "a constant has %llu bytes %s, its shape needs %llu",
                    (unsigned long long)have, where, (unsigned long long)want);
}

/* Bytes of `count` elements, false beyond 2^64. */
static bool size_of(int elem_type, uint64_t count, uint64_t *out)
{
    const unsigned width = wg__elem_bits(elem_type);
    if (width == 4) {
        *out = count / 2 + count % 2;
        return true;
    }
    return !__builtin_mul_overflow(count, (uint64_t)(width / 8), out);
}

/* One number of a typed field; 4-bit types have two elements in it. */
static void put_typed(struct sink *sink, uint64_t bits)
{
    put(sink, bits);
    if (wg__elem_bits(sink->elem_type) == 4 && sink->count < sink->wanted)
        put(sink, bits >> 4);
}

static enum wg_code put_occurrence(struct sink *sink, const struct wg_wire *wire,
                                   const struct wg_wire_field *field, enum wg_wire_kind kind,
                                   struct wg_error *err)
{
    size_t count = 0;
    enum wg_code code = wg__wire_count(wire, field, kind, "a constant's data", &count, err);
    struct wg_wire run = wg__wire_inside(wire, field);
    for (size_t i = 0; i < count && sink->count < sink->wanted && code == WG_OK; i++) {
        uint64_t bits = field->value;
        if (field->kind == WG_WIRE_BYTES)
            code = wg__wire_take(&run, kind, &bits, err);
        if (code == WG_OK)
            put_typed(sink, bits);
    }
    return code;
}

static enum wg_code read_typed(const struct wg_model *model, const struct wg_constant *constant,
                               struct sink *sink, struct wg_error *err)
{
    const int wanted_field = typed_field_of(constant->elem_type);
    const enum wg_wire_kind kind = wanted_field == 4    ? WG_WIRE_FIXED32
                                   : wanted_field == 10 ? WG_WIRE_FIXED64
                                                        : WG_WIRE_VARINT;
    struct wg_wire wire = {.name = "a constant",
                           .first = model->map != NULL ? model->map : constant->typed,
                           .at = constant->typed,
                           .end = constant->typed + constant->typed_length};
    while (sink->count < sink->wanted) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK)
            return code;
        if (!has)
            return wg__fail(err, WG_EDATA,
                            "a constant of type %s has %zu elements in field %d, its "
                            "shape needs %llu",
                            wg__elem_name(constant->elem_type), sink->count, wanted_field,
                            (unsigned long long)constant->element_count);
        if (field.number == (uint32_t)wanted_field)
            code = put_occurrence(sink, &wire, &field, kind, err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

/* Opens the file of external data, which must be a regular one. */
static enum wg_code open_external(const struct wg_model *model, const struct wg_constant *constant,
                                  int *fd_out, uint64_t *size_out, struct wg_error *err)
{
    char path[PATH_MAX];
    if (model->folder == NULL)
        return wg__fail(err, WG_EUNSUPPORTED, "external data '%.100s' of a model that is no file",
                        constant->external);
    const int length = snprintf(path, sizeof path, "%s/%s", model->folder, constant->external);
    if (length < 0 || (size_t)length >= sizeof path)
        return wg__fail_errno(err, ENAMETOOLONG, "external data '%.100s'", constant->external);
    /* A pipe would block the open. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return wg__fail_errno(err, errno, "external data '%.200s': cannot open", path);
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        (void)close(fd);
        return wg__fail(err, WG_EIO, "external data '%.200s': not a regular file", path);
    }
    *fd_out = fd;
    *size_out = (uint64_t)status.st_size;
    return WG_OK;
}

static enum wg_code read_external(const struct wg_model *model, const struct wg_constant *constant,
                                  uint64_t all, uint64_t needed, struct sink *sink,
                                  struct wg_error *err)
{
    int fd = -1;
    uint64_t size = 0;
    enum wg_code code = open_external(model, constant, &fd, &size, err);
    if (code != WG_OK)
        return code;
    uint64_t have = size > constant->external_offset ? size - constant->external_offset : 0;
    if (constant->external_length != 0 && constant->external_length < have)
        have = constant->external_length;
    uint8_t *bytes = NULL;
    if (have < all) {
        code = too_short("in its external data", have, all, err);
        goto out;
    }
    bytes = wg__alloc((size_t)needed);
    if (bytes == NULL) {
        code =
            wg__fail(err, WG_ENOMEM, "external data '%.100s': out of memory", constant->external);
        goto out;
    }
    for (uint64_t done = 0; done < needed;) {
        const ssize_t got = pread(fd, bytes + done, (size_t)(needed - done),
                                  (off_t)(constant->external_offset + done));
        if (got <= 0) {
            code = wg__fail_errno(err, got < 0 ? errno : EIO, "external data '%.100s': cannot read",
                                  constant->external);
            goto out;
        }
        done += (uint64_t)got;
    }
    put_raw(sink, bytes);
out:
    wg__free(bytes);
    (void)close(fd);
    return code;
}

static enum wg_code read_elements(const struct wg_model *model, const struct wg_constant *constant,
                                  struct sink *sink, size_t capacity, size_t *count_out,
                                  struct wg_error *err)
{
    if (constant->is_sparse)
        return wg__fail(err, WG_EUNSUPPORTED, "the elements of a sparse constant");
    if (sink->ints != NULL ? !is_whole(constant->elem_type) : !is_number(constant->elem_type))
        return wg__fail(err, WG_EUNSUPPORTED, "a constant of type %s as %s",
                        wg__elem_name(constant->elem_type),
                        sink->ints != NULL ? "whole numbers" : "numbers");
    uint64_t all = 0;
    uint64_t needed = 0;
    sink->wanted = constant->element_count < capacity ? (size_t)constant->element_count : capacity;
    if (!size_of(constant->elem_type, constant->element_count, &all) ||
        !size_of(constant->elem_type, sink->wanted, &needed))
        return wg__fail(err, WG_EDATA, "a constant of more than 2^64 bytes");
    enum wg_code code = WG_OK;
    if (all == 0)
        code = WG_OK;
    else if (constant->external != NULL)
        code = read_external(model, constant, all, needed, sink, err);
    else if (constant->typed != NULL)
        code = read_typed(model, constant, sink, err);
    else if (constant->bytes == NULL)
        code = wg__fail(err, WG_EUNSUPPORTED, "a constant without elements");
    else if (constant->byte_count < all)
        code = too_short("of raw data", constant->byte_count, all, err);
    else
        put_raw(sink, constant->bytes);
    if (code == WG_OK)
        *count_out = sink->count;
    return code;
}

enum wg_code wg__constant_ints(const struct wg_model *model, const struct wg_constant *constant,
                               int64_t *out, size_t capacity, size_t *count_out,
                               struct wg_error *err)
{
    struct sink sink = {.elem_type = constant->elem_type, .ints = out};
    return read_elements(model, constant, &sink, capacity, count_out, err);
}

enum wg_code wg__constant_doubles(const struct wg_model *model, const struct wg_constant *constant,
                                  double *out, size_t capacity, size_t *count_out,
                                  struct wg_error *err)
{
    struct sink sink = {.elem_type = constant->elem_type, .doubles = out};
    return read_elements(model, constant, &sink, capacity, count_out, err);
}

/* --- Constant nodes --------------------------------------------------------------------------- */

/* `count` numbers of `size` bytes as raw data. Files are little-endian, and so is every machine
 * with a GPU that we know of; the bytes are laid out by hand all the same. */
static bool lay_out(struct wg_arena *arena, const struct wg_attribute *attribute, int elem_type,
                    uint64_t count, struct wg_constant *constant)
{
    const unsigned size = wg__elem_bits(elem_type) / 8;
    uint8_t *bytes = wg__arena_alloc(arena, (size_t)count, size);
    if (bytes == NULL)
        return false;
    const bool is_list =
        attribute->type == WG_ATTRIBUTE_INTS || attribute->type == WG_ATTRIBUTE_FLOATS;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = 0;
        if (elem_type == WG_ELEM_INT64) {
            bits = (uint64_t)(is_list ? attribute->ints[i] : attribute->i);
        } else {
            const float value = is_list ? attribute->floats[i] : attribute->f;
            uint32_t narrow = 0;
            memcpy(&narrow, &value, sizeof narrow);
            bits = narrow;
        }
        for (unsigned byte = 0; byte < size; byte++)
            bytes[i * size + byte] = (uint8_t)(bits >> 8 * byte);
    }
    constant->bytes = bytes;
    constant->byte_count = (size_t)count * size;
    return true;
}

/* What value_int, value_floats and so on say. */
static const struct wg_constant *
plain_constant(struct wg_arena *arena, const struct wg_attribute *attribute, struct wg_shape *shape)
{
    struct wg_constant *constant = wg__arena_alloc(arena, 1, sizeof *constant);
    if (constant == NULL)
        return NULL;
    const int type = attribute->type;
    const bool is_list =
        type == WG_ATTRIBUTE_INTS || type == WG_ATTRIBUTE_FLOATS || type == WG_ATTRIBUTE_STRINGS;
    *shape = (struct wg_shape){.is_known = true, .rank = is_list ? 1 : 0};
    shape->dims[0] = (struct wg_dim){.value = is_list ? (int64_t)attribute->count : 0};
    constant->element_count = is_list ? attribute->count : 1;
    if (type == WG_ATTRIBUTE_INT || type == WG_ATTRIBUTE_INTS)
        constant->elem_type = WG_ELEM_INT64;
    else if (type == WG_ATTRIBUTE_FLOAT || type == WG_ATTRIBUTE_FLOATS)
        constant->elem_type = WG_ELEM_FLOAT;
    else
        constant->elem_type = WG_ELEM_STRING;
    if (constant->elem_type != WG_ELEM_STRING &&
        !lay_out(arena, attribute, constant->elem_type, constant->element_count, constant))
        return NULL;
    return constant;
}

static bool has_value(const struct wg_attribute *attribute)
{
    switch (attribute->type) {
    case WG_ATTRIBUTE_FLOAT:
    case WG_ATTRIBUTE_INT:
    case WG_ATTRIBUTE_STRING:
    case WG_ATTRIBUTE_TENSOR:
    case WG_ATTRIBUTE_FLOATS:
    case WG_ATTRIBUTE_INTS:
    case WG_ATTRIBUTE_STRINGS:
    case WG_ATTRIBUTE_SPARSE_TENSOR:
        return attribute->ref == NULL;
    default:
        return false;
    }
}

enum wg_code wg__onnx_constant_node(struct wg_arena *arena, struct wg_graph *graph,
                                    const struct wg_node *node, struct wg_error *err)
{
    if (strcmp(node->op, "Constant") != 0 || node->domain[0] != '\0' || node->output_count != 1 ||
        node->outputs[0] < 0 || node->attribute_count == 0)
        return WG_OK;
    const struct wg_attribute *value = NULL;
    for (size_t i = 0; i < node->attribute_count; i++) {
        const char *name = node->attributes[i].name;
        if (strncmp(name, "value", 5) == 0 || strcmp(name, "sparse_value") == 0)
            value = &node->attributes[i];
    }
    if (value == NULL || !has_value(value))
        return WG_OK;
    struct wg_shape shape = value->tensor_shape;
    const struct wg_constant *constant =
        value->type == WG_ATTRIBUTE_TENSOR || value->type == WG_ATTRIBUTE_SPARSE_TENSOR
            ? value->tensor
            : plain_constant(arena, value, &shape);
    if (constant == NULL)
        return wg__fail(err, WG_ENOMEM, "node '%.100s': out of memory", node->name);
    struct wg_tensor *made = &graph->tensors[node->outputs[0]];
    made->constant = constant;
    made->elem_type = constant->elem_type;
    made->shape = shape;
    return WG_OK;
}
