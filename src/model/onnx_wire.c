/* SPDX-License-Identifier: MIT
 *
 * Walks protobuf's wire format in place.
 *
 * A varint has seven bits a byte, the lowest first, and a high bit that says that more follow; 64
 * bits take ten bytes at most. As protobuf's own parsers do, we accept longer encodings of small
 * numbers and drop the bits of a tenth byte that don't fit.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#include "model/onnx_wire.h"

#include <stdarg.h>
#include <string.h>

#include "base/number.h"

enum { VARINT_MAX = 10 };

enum wg_code wg__wire_fail(const struct wg_wire *wire, const uint8_t *at, struct wg_error *err,
                           const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    const int length = wg__format(text, sizeof text, format, args);
    va_end(args);
    return wg__fail(err, WG_EDATA, "%s: at byte %zu: %s", wire->name, (size_t)(at - wire->first),
                    length >= 0 ? text : "malformed");
}

static enum wg_code take_varint(struct wg_wire *wire, uint64_t *out, struct wg_error *err)
{
    const uint8_t *at = wire->at;
    uint64_t value = 0;
    for (unsigned i = 0; i < VARINT_MAX; i++) {
        if (wire->at == wire->end)
            return wg__wire_fail(wire, at, err, "a number runs past the end of the message");
        const uint8_t byte = *wire->at++;
        value |= (uint64_t)(byte & 0x7f) << 7 * i;
        if ((byte & 0x80) == 0) {
            *out = value;
            return WG_OK;
        }
    }
    return wg__wire_fail(wire, at, err, "a number of more than %d bytes", VARINT_MAX);
}

static enum wg_code take_fixed(struct wg_wire *wire, size_t size, uint64_t *out,
                               struct wg_error *err)
{
    if ((size_t)(wire->end - wire->at) < size)
        return wg__wire_fail(wire, wire->at, err, "%zu bytes run past the end of the message",
                             size);
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)wire->at[i] << 8 * i;
    wire->at += size;
    *out = value;
    return WG_OK;
}

static enum wg_code take_bytes(struct wg_wire *wire, struct wg_wire_field *field,
                               struct wg_error *err)
{
    const uint8_t *at = wire->at;
    uint64_t length = 0;
    const enum wg_code code = take_varint(wire, &length, err);
    if (code != WG_OK)
        return code;
    const size_t left = (size_t)(wire->end - wire->at);
    if (length > left)
        return wg__wire_fail(wire, at, err,
                             "a length of %llu runs past the end of the message (%zu bytes left)",
                             (unsigned long long)length, left);
    field->bytes = wire->at;
    field->length = (size_t)length;
    wire->at += length;
    return WG_OK;
}

enum wg_code wg__wire_take(struct wg_wire *run, enum wg_wire_kind kind, uint64_t *out,
                           struct wg_error *err)
{
    if (kind == WG_WIRE_VARINT)
        return take_varint(run, out, err);
    return take_fixed(run, kind == WG_WIRE_FIXED64 ? 8 : 4, out, err);
}

enum wg_code wg__wire_next(struct wg_wire *wire, struct wg_wire_field *field, bool *has_out,
                           struct wg_error *err)
{
    *has_out = wire->at != wire->end;
    if (!*has_out)
        return WG_OK;
    const uint8_t *tag = wire->at;
    uint64_t number = 0;
    const enum wg_code code = take_varint(wire, &number, err);
    if (code != WG_OK)
        return code;
    const unsigned kind = number & 7;
    if (number > UINT32_MAX || number >> 3 == 0)
        return wg__wire_fail(wire, tag, err, "a field of number %llu, expected 1 .. 2^29 - 1",
                             (unsigned long long)(number >> 3));
    *field = (struct wg_wire_field){
        .number = (uint32_t)(number >> 3), .kind = (enum wg_wire_kind)kind, .tag = tag};
    switch (kind) {
    case WG_WIRE_VARINT:
    case WG_WIRE_FIXED64:
    case WG_WIRE_FIXED32:
        return wg__wire_take(wire, field->kind, &field->value, err);
    case WG_WIRE_BYTES:
        return take_bytes(wire, field, err);
    case 3:
    case 4:
        return wg__wire_fail(wire, tag, err, "field %u is a group, which ONNX doesn't use",
                             (unsigned)field->number);
    default:
        return wg__wire_fail(wire, tag, err, "field %u has wire type %u, which doesn't exist",
                             (unsigned)field->number, kind);
    }
}

struct wg_wire wg__wire_inside(const struct wg_wire *wire, const struct wg_wire_field *field)
{
    const uint8_t *end = field->bytes != NULL ? field->bytes + field->length : NULL;
    return (struct wg_wire){
        .name = wire->name, .first = wire->first, .at = field->bytes, .end = end};
}

enum wg_code wg__wire_expect(const struct wg_wire *wire, const struct wg_wire_field *field,
                             enum wg_wire_kind kind, const char *what, struct wg_error *err)
{
    if (field->kind == kind)
        return WG_OK;
    return wg__wire_fail(wire, field->tag, err, "%s has wire type %u, expected %u", what,
                         (unsigned)field->kind, (unsigned)kind);
}

/* Varints end where the high bit is not set; the last one must. */
static enum wg_code count_varints(const struct wg_wire *wire, const struct wg_wire_field *field,
                                  const char *what, size_t *out, struct wg_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < field->length; i++)
        count += (field->bytes[i] & 0x80) == 0;
    if (field->length != 0 && (field->bytes[field->length - 1] & 0x80) != 0)
        return wg__wire_fail(wire, field->tag, err, "%s: its last number has no end", what);
    *out = count;
    return WG_OK;
}

enum wg_code wg__wire_count(const struct wg_wire *wire, const struct wg_wire_field *field,
                            enum wg_wire_kind kind, const char *what, size_t *out,
                            struct wg_error *err)
{
    if (field->kind != WG_WIRE_BYTES) {
        *out = 1;
        return wg__wire_expect(wire, field, kind, what, err);
    }
    if (kind == WG_WIRE_VARINT)
        return count_varints(wire, field, what, out, err);
    const size_t size = kind == WG_WIRE_FIXED64 ? 8 : 4;
    if (field->length % size != 0)
        return wg__wire_fail(wire, field->tag, err, "%s has %zu bytes, no multiple of %zu", what,
                             field->length, size);
    *out = field->length / size;
    return WG_OK;
}
