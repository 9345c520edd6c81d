/* SPDX-License-Identifier: MIT
 *
 * DATA of `wattgov wave calibrate` and `evaluate`: measurements of one GPU, with the options that
 * say what they are.
 *
 * Threads: the main thread.
 */
#ifndef WG_CLI_WAVE_DATA_H
#define WG_CLI_WAVE_DATA_H

#include "base/buffer.h"
#include "cli/options.h"
#include "cli/wave_gpu.h"
#include "model/measurements.h"

struct wg_wave_data_args {
    const char *word; /* the file */
    const char *gpu, *dtype;
    struct wg_option_list where;
};

#define WG_WAVE_DATA_OPTIONS(type, field)                                                          \
    {.name = "gpu",                                                                                \
     WG_OPTION_STRING(type, field.gpu),                                                            \
     .value = "GPU",                                                                               \
     .is_required = true,                                                                          \
     .help = "The GPU: an id of the table (a100-sxm4-80gb), a YAML file, or live. Rows of other "  \
             "GPUs are left out."},                                                                \
        {.name = "dtype",                                                                          \
         WG_OPTION_STRING(type, field.dtype),                                                      \
         .value = "DTYPE",                                                                         \
         .fallback = "the column dtype",                                                           \
         .help = "fp32, tf32, fp16, bf16, fp8 or int8: of data without such a column."},           \
        {.name = "where",                                                                          \
         WG_OPTION_LIST(type, field.where),                                                        \
         .value = "COLUMN=VALUE",                                                                  \
         .help = "Only rows where it is so, as in split=test."}

struct wg_wave_data {
    struct wg_wave_gpu gpu;
    struct wg_measurements measurements;
};

/* Takes the file's word out of argv. WG_EINVAL: there is none. */
enum wg_code wg__wave_data_take(const struct wg_option_set *set, int *argc, char ***argv,
                                struct wg_wave_data_args *args, struct wg_error *err);
/* Close it after a failure too; it must have been zeroed. */
enum wg_code wg__wave_data_open(struct wg_wave_data *out, const struct wg_wave_data_args *args,
                                struct wg_error *err);
/* Appends " (3 without a time, 4 of other GPUs left out)" where there are any. */
void wg__wave_data_left_out(const struct wg_wave_data *data, struct wg_buffer *out);
void wg__wave_data_close(struct wg_wave_data *data);

#endif
