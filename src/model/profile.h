/* SPDX-License-Identifier: MIT
 *
 * Profiles of other tools as networks: layers with kernels, grids and times, without a graph.
 *
 *     TENSORRT   graph.json of --exportLayerInfo, with profile.json of --exportProfile beside it
 *     NCU        `ncu --csv` (page details; metric rows have 16 fields, rule rows 20)
 *     NSYS       `nsys stats -r cuda_gpu_trace --format csv` (GrdX .. BlkZ, Name, Duration)
 *     TORCH      PyTorch profiler's chrome trace (JSON, gzipped or not)
 *
 * Each is recognised by its content. A launch's grid gives thread blocks whatever its name; a name
 * gives the tile.
 *
 * Owns: the network is the caller's.    Threads: one at a time.
 */
#ifndef WG_MODEL_PROFILE_H
#define WG_MODEL_PROFILE_H

#include "base/error.h"
#include "wave/network.h"

enum wg_profile_kind {
    WG_PROFILE_TENSORRT,
    WG_PROFILE_NCU,
    WG_PROFILE_NSYS,
    WG_PROFILE_TORCH,
    WG_PROFILE_KIND_COUNT
};

struct wg_launch {
    const char *name;  /* kernel */
    const char *layer; /* "" when not told */
    uint64_t grid[3], block[3];
    double registers_per_thread, shared_memory_bytes; /* NAN: not told */
    double waves_per_sm;                              /* as the tool says it; NAN */
    double time_s;                                    /* NAN: not told */
    unsigned sms;                                     /* of the device; 0: not told */
};

struct wg_profile {
    struct wg_network network;
    enum wg_profile_kind kind;
    const char *device;         /* as the file says it; "" */
    unsigned sms;               /* 0: not told */
    struct wg_launch *launches; /* NCU, NSYS, TORCH; in the network's arena */
    size_t launch_count;
};

/* WG_EDATA: none of them, or malformed: "FILE:LINE: ..." or "FILE: layer 3: ...". `times` may be
 * NULL: TensorRT's profile.json where it has another name. */
enum wg_code wg__profile_read(struct wg_profile *out, const char *path, const char *times,
                              struct wg_error *err);
void wg__profile_fini(struct wg_profile *profile);

#endif
