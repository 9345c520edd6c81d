/* SPDX-License-Identifier: MIT
 *
 * Walks protobuf's wire format in place: a message is a run of fields, each a tag and a value.
 *
 *     tag = number << 3 | kind     kind 0: varint   1: 8 bytes   2: length and bytes   5: 4 bytes
 *
 * Nothing is copied: a field of bytes points into the file, and a message within it is walked by a
 * cursor of its own. Kinds 3 and 4 (groups) were given up before ONNX and are refused, 6 and 7 are
 * none. Every message of an error names the file and the offset of what is wrong.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_MODEL_ONNX_WIRE_H
#define WG_MODEL_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum wg_wire_kind {
    WG_WIRE_VARINT = 0,
    WG_WIRE_FIXED64 = 1,
    WG_WIRE_BYTES = 2,
    WG_WIRE_FIXED32 = 5
};

struct wg_wire {
    const char *name;     /* of the file, for messages */
    const uint8_t *first; /* of the file, for offsets */
    const uint8_t *at;
    const uint8_t *end; /* of this message */
};

struct wg_wire_field {
    uint32_t number;
    enum wg_wire_kind kind;
    uint64_t value;       /* VARINT, FIXED64, FIXED32 */
    const uint8_t *bytes; /* BYTES */
    size_t length;
    const uint8_t *tag; /* where the field begins */
};

/* The next field; `*has_out` is false at the message's end. WG_EDATA. */
enum wg_code wg__wire_next(struct wg_wire *wire, struct wg_wire_field *field, bool *has_out,
                           struct wg_error *err);
/* A cursor over the message in a field of bytes; of another kind: over nothing. */
struct wg_wire wg__wire_inside(const struct wg_wire *wire, const struct wg_wire_field *field);

/* WG_EDATA unless the field has the kind; `what` names it in the message ("GraphProto.node"). */
enum wg_code wg__wire_expect(const struct wg_wire *wire, const struct wg_wire_field *field,
                             enum wg_wire_kind kind, const char *what, struct wg_error *err);
/* How many numbers a repeated field's occurrence holds: one of `kind`, or a packed run of them. */
enum wg_code wg__wire_count(const struct wg_wire *wire, const struct wg_wire_field *field,
                            enum wg_wire_kind kind, const char *what, size_t *out,
                            struct wg_error *err);
/* Takes the next of those numbers; `run` is wire_inside's cursor for a packed field. At least one
 * is left. WG_EDATA. */
enum wg_code wg__wire_take(struct wg_wire *run, enum wg_wire_kind kind, uint64_t *out,
                           struct wg_error *err);

/* "FILE: at byte N: ..." */
enum wg_code wg__wire_fail(const struct wg_wire *wire, const uint8_t *at, struct wg_error *err,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
