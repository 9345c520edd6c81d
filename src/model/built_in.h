/* SPDX-License-Identifier: MIT
 *
 * Networks that the program can draw itself, as graphs without weights: those of the papers.
 *
 *     vgg16, vgg16-cifar, resnet18, resnet50, resnet56-cifar, mobilenet-v2, bert-base
 *
 * Owns: see graph.h.    Threads: one at a time.
 */
#ifndef WG_MODEL_BUILT_IN_H
#define WG_MODEL_BUILT_IN_H

#include "model/graph.h"

size_t wg__built_in_count(void);
const char *wg__built_in_name(size_t index);
/* The inputs' batch is the named dimension "batch", BERT's length "sequence". WG_ENOENT: no such
 * network (the message lists them). */
enum wg_code wg__built_in_open(struct wg_model **out, const char *name, struct wg_error *err);

#endif
