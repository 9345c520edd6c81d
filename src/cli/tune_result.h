/* SPDX-License-Identifier: MIT
 *
 * The file that `wattgov tune -o` writes and `wattgov tune apply` holds.
 *
 *     schema: wattgov.tune.result/1
 *     gpus:
 *       - {index: 0, uuid: GPU-..., name: NVIDIA A100-SXM4-80GB}
 *     knobs:
 *       - {name: gpu_clock, role: gpu_clock, is_device: true, value: 1005000000}
 *       - {name: batch, role: batch, value: 8}
 *       - {name: precision, role: category, value: fp16}
 *
 *     server: {url: 'http://127.0.0.1:8000', protocol: kserve_http, model: resnet}
 *     knobs:
 *       - {name: delay, role: delay, value: 0.005, path: dynamic_batching.max_..., scale: 1000000}
 *
 * Values are SI. Knobs of GPUs are set on the GPUs that are named, and on no other; a file that
 * names none (one that was written by hand) means all. A knob with a `path` is set in the server's
 * model there, as value times scale. Whatever else stands in the file is for people, and is not
 * read.
 *
 * Owns: see the struct.    Threads: any, one at a time.
 */
#ifndef WG_CLI_TUNE_RESULT_H
#define WG_CLI_TUNE_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/tune_server_args.h"
#include "live/tune_knobs.h"

enum { WG_TUNE_GPU_TEXT_SIZE = 96, WG_TUNE_URL_SIZE = 1024 };

struct wg_tune_applied {
    size_t count;
    struct {
        char name[WG_TUNE_NAME_SIZE];
        bool is_device;
        enum wg_knob knob; /* of is_device */
        double value;
        char label[WG_TUNE_NAME_SIZE]; /* of a category; "" else */
        char path[WG_TUNE_PATH_SIZE];  /* with a server: the knob's place; "" else */
        double scale;
    } knobs[WG_TUNING_KNOBS_MAX];
    bool is_infeasible; /* it is told that not all limits were kept */
    size_t gpu_count;   /* 0: not told */
    struct wg_tune_applied_gpu {
        unsigned index;
        char uuid[WG_TUNE_GPU_TEXT_SIZE]; /* or the device's other lasting id */
        char name[WG_TUNE_GPU_TEXT_SIZE];
    } gpus[WG_TUNE_DEVICES_MAX];
    struct wg_tune_applied_server {
        enum wg_server_protocol protocol;
        char url[WG_TUNE_URL_SIZE], control_url[WG_TUNE_URL_SIZE];
        char model[WG_TUNE_PATH_SIZE], model_version[WG_TUNE_NAME_SIZE];
        char model_config[4096]; /* a file */
    } server;                    /* each text "": not told; no url: there is no server */
};

/* WG_EDATA: "FILE:LINE: ..."; else as wg__yaml_open. */
enum wg_code wg__tune_result_read(const char *path, struct wg_tune_applied *out,
                                  struct wg_error *err);

#endif
