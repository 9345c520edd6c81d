/* SPDX-License-Identifier: MIT
 *
 * libwattgov: what a program costs in joules and seconds. This header includes the others.
 *
 *     struct wg_machine *machine;
 *     struct wg_error err;
 *     if (wg_machine_open(&machine, NULL, &err) != WG_OK)
 *         return fprintf(stderr, "%s\n", err.text), 1;
 *     for (size_t i = 0; i < wg_machine_backend_count(machine); i++)
 *         printf("%s: %s\n", wg_machine_backend(machine, i)->name,
 *                wg_machine_backend(machine, i)->text);
 *     wg_machine_close(machine);
 *
 * The example of each header is the body of a main(). Compile with
 * `cc program.c $(pkg-config --cflags --libs wattgov)`; C++ is welcome too.
 */
#ifndef WATTGOV_WATTGOV_H
#define WATTGOV_WATTGOV_H

#include "wattgov/device.h"  // IWYU pragma: export
#include "wattgov/error.h"   // IWYU pragma: export
#include "wattgov/train.h"   // IWYU pragma: export
#include "wattgov/version.h" // IWYU pragma: export
#include "wattgov/window.h"  // IWYU pragma: export

#endif
