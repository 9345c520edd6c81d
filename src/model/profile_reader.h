/* SPDX-License-Identifier: MIT
 *
 * What the readers of profiles share: the file, which they may read twice, and what they collect.
 *
 * Owns: a collector owns its tables; what it gives is in the profile's arena.    Threads: one.
 */
#ifndef WG_MODEL_PROFILE_READER_H
#define WG_MODEL_PROFILE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/source.h"
#include "model/profile.h"

struct wg_profile_file {
    const char *name;  /* for messages, and the path unless bytes are there */
    const char *bytes; /* NULL: a file */
    size_t length;
    const char *times; /* see profile.h */
};

enum wg_code wg__profile_file_open(const struct wg_profile_file *file, struct wg_source *out,
                                   struct wg_error *err);

/* Launches in the order in which they are added. */
struct wg_profile_collector {
    struct wg_profile *profile;
    const char *file_name;
    size_t launch_room;
    const char **names; /* a hash table of texts, each once; at most half full */
    size_t name_slots, name_count;
};

void wg__collector_init(struct wg_profile_collector *collector, struct wg_profile *profile,
                        const char *file_name);
void wg__collector_fini(struct wg_profile_collector *collector);

enum wg_code wg__collector_out_of_memory(const struct wg_profile_collector *collector,
                                         struct wg_error *err);
/* The one copy of a text. */
enum wg_code wg__collector_name(struct wg_profile_collector *collector, const char *text,
                                const char **out, struct wg_error *err);
/* Appends a copy; WG_EDATA beyond WG_PROFILE_LAUNCHES_MAX. */
enum wg_code wg__collector_launch(struct wg_profile_collector *collector,
                                  const struct wg_launch *launch, struct wg_error *err);
/* Nothing is told. */
struct wg_launch wg__launch_unknown(void);
/* What a kernel makes of FP32 operands: TF32 where it multiplies on tensor cores, as names with
 * tf32, 1688 (its instruction's shape), tensorop or nvjet tell. `kernel` may be NULL. */
enum wg_dtype wg__kernel_fp32(const char *kernel);
/* Makes room for `count` layers in the network. */
enum wg_code wg__collector_layers(struct wg_profile_collector *collector, size_t count,
                                  struct wg_error *err);
/* A layer of the launches first .. first + count - 1, of which the longest tells kernel and grid;
 * called `name`, "#" and its place. What is multiplied stays unknown. */
enum wg_code wg__collector_layer_of(struct wg_profile_collector *collector, const char *name,
                                    const char *op, size_t first, size_t count,
                                    struct wg_error *err);
/* A layer for each launch, called as its kernel. WG_EDATA: there are none. */
enum wg_code wg__collector_layers_of_launches(struct wg_profile_collector *collector,
                                              struct wg_error *err);

/* The readers: each gets an empty profile and fills it; the caller gives it back on failure. */
enum wg_code wg__profile_tensorrt(struct wg_profile *profile, const struct wg_profile_file *file,
                                  struct wg_error *err);
enum wg_code wg__profile_torch(struct wg_profile *profile, const struct wg_profile_file *file,
                               struct wg_error *err);

struct wg_csv;
/* -1: there is no such column. */
int wg__profile_column(const struct wg_csv *csv, const char *name);
enum wg_code wg__profile_ncu(struct wg_profile_collector *collector, struct wg_csv *csv,
                             struct wg_error *err);
enum wg_code wg__profile_nsys(struct wg_profile_collector *collector, struct wg_csv *csv,
                              struct wg_error *err);

#endif
