/* SPDX-License-Identifier: MIT
 *
 * Which Jetson this is, and the power mode that nvpmodel has set.
 *
 * nvpmodel limits clocks and cores to a mode ("15W", "MAXN"); it and jetson_clocks may overwrite
 * what anyone else sets, so the mode belongs to every measurement.
 *
 * Threads: any thread.
 */
#ifndef WG_DEVICE_JETSON_BOARD_H
#define WG_DEVICE_JETSON_BOARD_H

#include <stdbool.h>

#include "base/arena.h"

struct wg_jetson_board {
    bool is_jetson;
    char model[96];  /* "NVIDIA Jetson AGX Orin Developer Kit" */
    char mode[64];   /* "nvpmodel 2: MODE_30W"; "" when it is not known */
    char driver[64]; /* "L4T R35 (release), REVISION: 4.1"; "" when it is not known */
};

void wg__jetson_board(const char *root, struct wg_arena *arena, struct wg_jetson_board *out);

#endif
