/* SPDX-License-Identifier: MIT
 *
 * The energy counter in amdgpu's binary file gpu_metrics.
 *
 * The file begins with its size and revision; where the counter lies depends on the revision
 * (drivers/gpu/drm/amd/include/kgd_pp_interface.h of the kernel):
 *
 *     0        2        3         4                        at
 *     | size   | format | content | ...                    | counter, 64 bits | ...
 *
 *     1.1 1.2 1.3   Radeon RX, MI100, MI200    24
 *     1.4           MI300                      24
 *     1.5           MI300                      88
 *     1.6           MI300                      16
 *     1.7 1.8       MI300, MI350               24
 *
 * 1.0 has 32 bits of an undocumented unit, 2.x and 3.x (processors with graphics) have no counter,
 * 1.9 is a list of attributes: none of them is read. A unit is 2^-16 J (15.259 uJ).
 *
 * Threads: pure, any thread.
 */
#ifndef WG_DEVICE_GPU_METRICS_H
#define WG_DEVICE_GPU_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { WG_GPU_METRICS_BYTES = 128 /* hold the counter of every revision that is known */ };

struct wg_gpu_metrics {
    unsigned format, content; /* revision */
    bool is_known;            /* its layout */
    bool may_wrap;            /* some devices of it fill 32 bits only */
    uint64_t energy;          /* units of 2^-16 J */
};

/* `bytes` is the file's beginning. WG_EDATA: too short for what its header says. WG_EUNSUPPORTED:
 * the revision has no counter that we know (is_known false), or the counter is all ones. `out` has
 * the revision even then. */
enum wg_code wg__gpu_metrics_parse(const unsigned char *bytes, size_t length,
                                   struct wg_gpu_metrics *out, struct wg_error *err);

/* Joules in a unit. */
double wg__gpu_metrics_unit_j(void);

#endif
