/* SPDX-License-Identifier: MIT
 *
 * Reads ONNX files (IR 3 on, opsets 7 to 23) without protobuf: the file is mapped, one pass over
 * the wire format notes where things lie.
 *
 * Whatever is malformed gives one line with the offset: "m.onnx: at byte 1234: a length of 99 runs
 * past the end of the message (40 bytes left)". Nesting is bounded, so is what is allocated by what
 * the file holds. A file that shrinks while it is mapped is the caller's risk, as with any mapping.
 *
 * Owns: see graph.h.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_ONNX_H
#define WG_MODEL_ONNX_H

#include "model/graph.h"

/* WG_ENOENT, WG_EPERM, WG_EIO; WG_EDATA: malformed; WG_EUNSUPPORTED: an IR version before 3;
 * WG_ENOMEM. */
enum wg_code wg__onnx_open(struct wg_model **out, const char *path, struct wg_error *err);
/* The same over bytes that must outlive the model; external data is not looked for. */
enum wg_code wg__onnx_open_memory(struct wg_model **out, const char *name, const uint8_t *bytes,
                                  size_t length, struct wg_error *err);

/* The elements of an integer or float constant as numbers, up to `capacity`; reads external data.
 * WG_EUNSUPPORTED: strings, complex numbers; WG_EDATA: fewer bytes than the shape needs. */
enum wg_code wg__constant_ints(const struct wg_model *model, const struct wg_constant *constant,
                               int64_t *out, size_t capacity, size_t *count_out,
                               struct wg_error *err);
enum wg_code wg__constant_doubles(const struct wg_model *model, const struct wg_constant *constant,
                                  double *out, size_t capacity, size_t *count_out,
                                  struct wg_error *err);

#endif
