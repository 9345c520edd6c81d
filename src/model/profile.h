/* SPDX-License-Identifier: MIT
 *
 * Profiles of other tools as networks: layers with kernels, grids and times, without a graph.
 *
 *     TENSORRT   graph.json of --exportLayerInfo (detailed), with profile.json of --exportProfile
 *                beside it, and trex' metadata where it is
 *     NCU        `ncu --csv`, the details (metric rows have 16 fields, rule rows 20) or --page raw
 *     NSYS       `nsys stats -r cuda_gpu_trace --format csv` (GrdX .. BlkZ, Name, Duration)
 *     TORCH      PyTorch profiler's chrome trace (JSON, gzipped or not), with record_shapes
 *
 * Each is recognised by its content. A launch's grid gives thread blocks whatever its name; a name
 * gives the tile. A layer of which only grid and time are known is a GEMM with m = 0.
 *
 * Owns: the network is the caller's.    Threads: one at a time.
 */
#ifndef WG_MODEL_PROFILE_H
#define WG_MODEL_PROFILE_H

#include "base/error.h"
#include "wave/network.h"

#define WG_PROFILE_KINDS(X)                                                                        \
    X(TENSORRT, "tensorrt")                                                                        \
    X(NCU, "ncu")                                                                                  \
    X(NSYS, "nsys")                                                                                \
    X(TORCH, "torch")

enum wg_profile_kind {
#define X(name, text) WG_PROFILE_##name,
    WG_PROFILE_KINDS(X)
#undef X
        WG_PROFILE_KIND_COUNT
};

const char *wg__profile_kind_name(enum wg_profile_kind kind);

enum { WG_PROFILE_LAUNCHES_MAX = 4000000 };

struct wg_launch {
    const char *name;  /* kernel */
    const char *layer; /* the network's that it is of */
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
    uint64_t batch;             /* of all convolutions; 0: there are none, or they differ */
    struct wg_launch *launches; /* NCU, NSYS, TORCH; in the network's arena */
    size_t launch_count;
};

/* WG_ENOENT, WG_EPERM, WG_EIO: a file; WG_EDATA: none of them, or malformed: "FILE:LINE: ..." or
 * "FILE: layer 3: ..."; WG_ENOMEM. `times` may be NULL: TensorRT's profile.json where it has
 * another name. */
enum wg_code wg__profile_read(struct wg_profile *out, const char *path, const char *times,
                              struct wg_error *err);
/* The same over memory, without files beside it; `name` stands for the file in messages. */
enum wg_code wg__profile_read_memory(struct wg_profile *out, const char *name, const char *bytes,
                                     size_t length, struct wg_error *err);
void wg__profile_fini(struct wg_profile *profile);

#endif
