/* SPDX-License-Identifier: MIT
 *
 * One simulated run moment by moment: what waited, what ran, what was late.
 *
 *      late, dropped      x     o
 *      waiting         __/\__/\/\_____
 *      inference       [3][4]   [2]        batches with their rows
 *      fine-tuning           ||||    ||||  steps
 *      clocks          max      low        where they are governed
 *
 * A run of any length is recorded for its first minutes only: as far as a window of it is shown.
 *
 * Owns: its notes.    Threads: one at a time.
 */
#ifndef WG_CLI_SERVING_TIMELINE_H
#define WG_CLI_SERVING_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simulate/serving_study.h"

struct wg_buffer;

struct wg_serving_note {
    double at_s;
    enum wg_timeline_kind kind;
    uint64_t value;
};

struct wg_serving_timeline {
    const char *title;                        /* the policy */
    const char *law;                          /* of the arrivals */
    bool is_careless;                         /* greedy: what goes wrong there is no news */
    const struct wg_serving_profile *profile; /* for the rungs' names */
    bool has_clocks;                          /* governed: a lane of their own */
    size_t first_rung;
    double until_s; /* what happens later is not recorded */
    size_t count, capacity;
    struct wg_serving_note *notes;
    bool has_overflowed; /* memory ran out while it was recorded */
};

/* Runs a policy of the study again with the study's first seed. WG_ENOMEM and the world's codes. */
enum wg_code wg__serving_timeline_run(struct wg_serving_timeline *out,
                                      const struct wg_serving_study_request *request, size_t policy,
                                      size_t law, struct wg_error *err);
void wg__serving_timeline_fini(struct wg_serving_timeline *timeline);

/* The law under which ours (else the first policy) fares worst. */
size_t wg__serving_timeline_law(const struct wg_serving_study *study,
                                const struct wg_serving_study_request *request);

struct wg_serving_window {
    double begin_s, end_s;
};

/* Around the first change of the SLO, else where the most went wrong in all of them together, but
 * for the careless ones while there are others. */
struct wg_serving_window wg__serving_timeline_window(const struct wg_serving_timeline *timelines,
                                                     size_t count,
                                                     const struct wg_serving_setup *setup);

/* Appends one <svg> element of that width. */
void wg__serving_timeline_write(const struct wg_serving_timeline *timeline,
                                const struct wg_serving_window *window, double width,
                                struct wg_buffer *out);

#endif
