/* SPDX-License-Identifier: MIT
 *
 * The MODEL that the commands of `wattgov wave` take, whatever it is: an ONNX file, the name of a
 * built-in network, or what another tool has written about one (TensorRT, ncu, nsys, PyTorch).
 *
 * A word without '/' that names a built-in network is that; a file of the same name needs "./". A
 * profile is known by its text, whatever its name; everything else is read as ONNX.
 *
 *     struct args { struct wg_wave_model_args model; bool json; };
 *     static const struct wg_option options[] = {
 *         WG_WAVE_MODEL_OPTIONS(struct args, model),
 *         {.name = "json", ...},
 *     };
 *     ...
 *     code = wg__wave_model_take(&set, &argc, &argv, &args.model, &err);    before the options
 *     code = wg__wave_model_open(&model, &args.model, &err);
 *
 * Owns: all of it; texts of the arguments are argv's.    Threads: the main thread.
 */
#ifndef WG_CLI_WAVE_MODEL_H
#define WG_CLI_WAVE_MODEL_H

#include "cli/options.h"
#include "model/graph.h"
#include "model/profile.h"
#include "wave/network.h"

struct wg_buffer;

enum { WG_WAVE_BATCH_MAX = 1 << 20 };

struct wg_wave_model_args {
    const char *word; /* MODEL */
    unsigned batch;   /* 0: not given */
    const char *precision;
    struct wg_option_list dims;
    const char *times;  /* TensorRT's profile.json */
    bool is_graph_only; /* a graph's shapes suffice: its layers are not asked for */
};

/* clang-format off */
#define WG_WAVE_MODEL_OPTIONS(type, field)                                                         \
    {.name = "batch",                                                                              \
     WG_OPTION_UNSIGNED(type, field.batch),                                                        \
     .value = "N",                                                                                 \
     .min = 1,                                                                                     \
     .max = WG_WAVE_BATCH_MAX,                                                                     \
     .fallback = "that of the model; 1 where it has none",                                         \
     .help = "Samples at once: the first dimension of the model's inputs."},                       \
    {.name = "precision",                                                                          \
     WG_OPTION_STRING(type, field.precision),                                                      \
     .value = "TYPE",                                                                              \
     .fallback = "fp16; that of a profile",                                                        \
     .help = "What the layers multiply: fp32, tf32, fp16, bf16, fp8 or int8."},                    \
    {.name = "set-dim",                                                                            \
     WG_OPTION_LIST(type, field.dims),                                                             \
     .value = "NAME=VALUE",                                                                        \
     .fallback = "none",                                                                           \
     .help = "A size that the model leaves open, by its name (sequence=128) or by input and "      \
             "axis (x:2=224)."},                                                                   \
    {.name = "times",                                                                              \
     WG_OPTION_STRING(type, field.times),                                                          \
     .value = "FILE",                                                                              \
     .fallback = "beside the model",                                                               \
     .help = "Measured times of TensorRT (--exportProfile), where MODEL is its --exportLayerInfo."}
/* clang-format on */

struct wg_wave_model {
    const char *name;                 /* for people: the file's, or that of the network */
    const char *kind;                 /* "onnx", "built-in", "tensorrt", "ncu", "nsys", "torch" */
    uint64_t batch;                   /* that the layers' sizes are for; 0: not known */
    enum wg_dtype dtype;              /* of a graph's layers */
    struct wg_model *graph;           /* NULL: a profile */
    const struct wg_profile *profile; /* NULL: none */
    struct wg_network *network;
    struct wg_network lowered;
    struct wg_profile read;
};

/* Takes the word out of argv; WG_EINVAL: there is none, or a second one. */
enum wg_code wg__wave_model_take(const struct wg_option_set *set, int *argc, char ***argv,
                                 struct wg_wave_model_args *args, struct wg_error *err);

/* WG_EINVAL: an option; WG_ENOENT, WG_EPERM, WG_EIO, WG_EDATA: the file; WG_ENOMEM. Close it after
 * a failure too; it must have been zeroed. */
enum wg_code wg__wave_model_open(struct wg_wave_model *out, const struct wg_wave_model_args *args,
                                 struct wg_error *err);
/* A sentence on the nodes that are in no layer; false: there are none. */
bool wg__wave_left_out_text(const struct wg_wave_model *model, struct wg_buffer *out);
void wg__wave_model_close(struct wg_wave_model *model);

#endif
