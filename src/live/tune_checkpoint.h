/* SPDX-License-Identifier: MIT
 *
 * What was measured, kept after each trial: one JSON file, written whole or not at all.
 *
 *     {"schema": "wattgov.tune.state/1",
 *      "identity": {...},             what must be the same for the trials to mean the same
 *      "bounds": [0.05],              of the limits, once known
 *      "trials": [{"levels": [7, 0, 2], "outcome": "measured", ...}]}
 *
 * Trials name levels by their positions; `identity` holds knobs, goal, policy, seed and workload,
 * so a position means what it meant.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#ifndef WG_LIVE_TUNE_CHECKPOINT_H
#define WG_LIVE_TUNE_CHECKPOINT_H

#include "live/tune_runner.h"

/* Replaces the file. WG_EIO and its like: the text names it; the old one is still there. */
enum wg_code wg__tune_checkpoint_write(const char *path, const struct wg_tune_request *request,
                                       const struct wg_tune_result *result, struct wg_error *err);

/* Reads trials and bounds into an empty result. WG_ENOENT: there is no such file; WG_EDATA: it is
 * malformed, or of another tuning: the text says in what they differ. */
enum wg_code wg__tune_checkpoint_read(const char *path, const struct wg_tune_request *request,
                                      struct wg_tune_result *result, struct wg_error *err);

/* No other process's tuning goes on with this file while `*lock` is open (a descriptor; -1: none
 * yet; what it was is closed). The lock is on the file as it is now, so it is claimed again after
 * each write. One that is not there yet, and a file system that has no locks, are WG_OK. WG_EBUSY:
 * another one has it; the text says which. */
enum wg_code wg__tune_checkpoint_claim(const char *path, int *lock, struct wg_error *err);

/* The identity of a request, as JSON; `workload` tells commands and servers apart. */
struct wg_buffer;
void wg__tune_identity(struct wg_buffer *out, const struct wg_tune_knobs *knobs,
                       const struct wg_tune_goal *goal, enum wg_tuner_policy policy, uint64_t seed,
                       const char *workload, const char *energy, const char *arrivals);

#endif
