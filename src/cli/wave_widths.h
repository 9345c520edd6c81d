/* SPDX-License-Identifier: MIT
 *
 * Widths that a file gives: a pruned network's, to align (`wattgov wave plan --pruned FILE`).
 *
 *     name,channels            CSV; other columns are ignored
 *     layer1.0.conv1,48
 *     {"layer1.0.conv1": 48}   JSON; a plan of the command itself (its `after`) is read, too
 *
 * A name is that of a width, of a layer that produces it, or the module that torch.onnx.export made
 * such a layer's name from: "/layer1/layer1.0/conv1/Conv" is "layer1.0.conv1". Widths that are not
 * named keep what the network has.
 *
 * And how much parameters count in a plan (`--importance FILE`), in the same words:
 *
 *     name,importance               CSV
 *     layer1.0.conv1,2.5
 *     {"layer1.0.conv1": 2.5,       a number for each parameter of the layer
 *      "conv1": [0.1, 3.2, 1.7]}    or one for each filter, whose mean counts
 *
 * What is not named counts 1; layers that share a width count as their mean.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#ifndef WG_CLI_WAVE_WIDTHS_H
#define WG_CLI_WAVE_WIDTHS_H

#include <stdbool.h>
#include <stddef.h>

#include "wave/network.h"

/* Fills `channels`, one a width. WG_EDATA: "FILE:LINE: ...": no such name, two sizes for one width,
 * another size for a fixed one; WG_ENOENT, WG_EPERM, WG_EIO, WG_ENOMEM. */
enum wg_code wg__wave_widths_read(const struct wg_network *network, const char *path,
                                  uint32_t *channels, struct wg_error *err);

/* Fills `importance`, one a width. WG_EDATA, too: a number below 0, all 0. */
enum wg_code wg__wave_importance_read(const struct wg_network *network, const char *path,
                                      double *importance, struct wg_error *err);

/* Whether this layer alone makes the width: its output is the width, channel by channel. */
bool wg__wave_makes_width(const struct wg_layer *layer, size_t width);

#endif
