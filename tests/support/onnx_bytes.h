/* SPDX-License-Identifier: MIT
 *
 * Writes ONNX files byte by byte: protobuf's wire format over a growing buffer.
 *
 *     struct wg_buffer node = bytes_new();
 *     put_text(&node, 1, "x");                    field 1: NodeProto.input
 *     put_message(&graph, 1, &node);              field 1 of GraphProto; frees the part
 *
 * Owns: nothing; each buffer is the caller's until put_message takes it.
 */
#ifndef WG_TESTS_SUPPORT_ONNX_BYTES_H
#define WG_TESTS_SUPPORT_ONNX_BYTES_H

#include <stdint.h>
#include <string.h>

#include "base/buffer.h"

static inline struct wg_buffer bytes_new(void)
{
    struct wg_buffer bytes;
    wg__buffer_init(&bytes);
    wg__buffer_append(&bytes, "", 0);
    return bytes;
}

static inline void put_raw_varint(struct wg_buffer *out, uint64_t value)
{
    while (value > 0x7f) {
        const char byte = (char)(value | 0x80);
        wg__buffer_append(out, &byte, 1);
        value >>= 7;
    }
    const char last = (char)value;
    wg__buffer_append(out, &last, 1);
}

static inline void put_varint(struct wg_buffer *out, unsigned field, uint64_t value)
{
    put_raw_varint(out, field << 3);
    put_raw_varint(out, value);
}

static inline void put_bytes(struct wg_buffer *out, unsigned field, const void *bytes,
                             size_t length)
{
    put_raw_varint(out, field << 3 | 2);
    put_raw_varint(out, length);
    wg__buffer_append(out, bytes, length);
}

static inline void put_text(struct wg_buffer *out, unsigned field, const char *text)
{
    put_bytes(out, field, text, strlen(text));
}

static inline void put_float(struct wg_buffer *out, unsigned field, float value)
{
    put_raw_varint(out, field << 3 | 5);
    wg__buffer_append(out, (const char *)&value, sizeof value);
}

static inline void put_double(struct wg_buffer *out, unsigned field, double value)
{
    put_raw_varint(out, field << 3 | 1);
    wg__buffer_append(out, (const char *)&value, sizeof value);
}

static inline void put_message(struct wg_buffer *out, unsigned field, struct wg_buffer *part)
{
    put_bytes(out, field, part->data, part->length);
    wg__buffer_fini(part);
}

/* ValueInfoProto of a tensor; a dimension below 0 is left without number and name. */
static inline struct wg_buffer value_info(const char *name, int elem_type, size_t rank,
                                          const int64_t *dims)
{
    struct wg_buffer shape = bytes_new();
    for (size_t i = 0; i < rank; i++) {
        struct wg_buffer dim = bytes_new();
        if (dims[i] >= 0)
            put_varint(&dim, 1, (uint64_t)dims[i]);
        put_message(&shape, 1, &dim);
    }
    struct wg_buffer tensor = bytes_new();
    struct wg_buffer type = bytes_new();
    struct wg_buffer info = bytes_new();
    put_varint(&tensor, 1, (uint64_t)elem_type);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&info, 1, name);
    put_message(&info, 2, &type);
    return info;
}

/* NodeProto with up to two inputs (NULL: none) and one output; the caller adds attributes. */
static inline struct wg_buffer node_bytes(const char *op, const char *first, const char *second,
                                          const char *output)
{
    struct wg_buffer node = bytes_new();
    if (first != NULL)
        put_text(&node, 1, first);
    if (second != NULL)
        put_text(&node, 1, second);
    put_text(&node, 2, output);
    put_text(&node, 4, op);
    return node;
}

/* ModelProto around a graph, which it takes. */
static inline struct wg_buffer model_bytes(struct wg_buffer *graph)
{
    struct wg_buffer opset = bytes_new();
    struct wg_buffer model = bytes_new();
    put_varint(&opset, 2, 17);
    put_varint(&model, 1, 8);
    put_message(&model, 8, &opset);
    put_message(&model, 7, graph);
    return model;
}

#endif
