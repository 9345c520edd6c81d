/* SPDX-License-Identifier: MIT
 *
 * Where the energy of a trial comes from.
 *
 *     gpu                    meters of the chosen GPUs
 *     cpu                    of all processors and their memory
 *     all                    of everything that counts
 *     command                the figure energy_j that the workload tells
 *     model:busy=W,idle=W    a stated model: so many watts while it works (figure busy_s; without
 *                            it all the time), so many else
 *     auto                   gpu if it can be measured, else cpu, else what the workload tells
 *
 * Every result says which one it was.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_LIVE_TUNE_ENERGY_H
#define WG_LIVE_TUNE_ENERGY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "wattgov/window.h"

struct wg_tune_devices;

#define WG_TUNE_ENERGIES(X)                                                                        \
    X(AUTO, "auto")                                                                                \
    X(GPU, "gpu")                                                                                  \
    X(CPU, "cpu")                                                                                  \
    X(ALL, "all")                                                                                  \
    X(COMMAND, "command")                                                                          \
    X(MODEL, "model")

enum wg_tune_energy_kind {
#define X(name, word) WG_TUNE_ENERGY_##name,
    WG_TUNE_ENERGIES(X)
#undef X
        WG_TUNE_ENERGY_KIND_COUNT
};

struct wg_tune_energy {
    enum wg_tune_energy_kind kind;
    double busy_w, idle_w; /* of MODEL */
    size_t device_count;   /* of meters: positions in the machine */
    size_t devices[128];
};

/* WG_EINVAL: what was expected. */
enum wg_code wg__tune_energy_parse(const char *text, struct wg_tune_energy *out,
                                   struct wg_error *err);

/* Chooses for `auto`, and the devices. WG_EUNSUPPORTED: they have no meter; the text says why and
 * what else there is. */
enum wg_code wg__tune_energy_resolve(struct wg_tune_energy *energy,
                                     const struct wg_tune_devices *devices, struct wg_error *err);

/* Whether our own meter is read. */
bool wg__tune_energy_is_metered(const struct wg_tune_energy *energy);

/* "the energy counter of gpu0", "a stated model: 65 W busy, 20 W idle"; `source` of the meter. */
enum { WG_TUNE_ENERGY_TEXT_SIZE = 160 };
void wg__tune_energy_text(char out[static WG_TUNE_ENERGY_TEXT_SIZE],
                          const struct wg_tune_energy *energy,
                          const struct wg_tune_devices *devices, enum wg_energy_source source);

const char *wg__tune_energy_word(enum wg_tune_energy_kind kind);

#endif
