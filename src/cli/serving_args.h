/* SPDX-License-Identifier: MIT
 *
 * What `wattgov simulate serving` is told, and the study that it asks for.
 *
 *     --slo, --duration    0.7, 0.7s or 700ms: a bare number is in seconds
 *     --slo-change         AT:SLO, both as above: 30:0.25
 *     --finetune           batch=64,iterations=10 | backlog[,batch=64] | off
 *     --clocks             default | governed | a rung's name
 *     --policy             none | greedy | polythrottle | wattgov | floor
 *
 * A policy has its own batcher and drop rule, unless --batcher or --drop say otherwise:
 *
 *     none, greedy     triton, standard    what PolyThrottle compares itself with
 *     polythrottle     triton, early
 *     wattgov, floor   wattgov, early      floor is wattgov without fine-tuning
 *
 * Owns: nothing; texts point into argv.    Threads: pure, but for the traces' files.
 */
#ifndef WG_CLI_SERVING_ARGS_H
#define WG_CLI_SERVING_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "simulate/serving_study.h"

struct wg_serving_args {
    const char *profile;
    struct wg_option_list arrivals;
    const char *slo;
    struct wg_option_list slo_changes;
    const char *finetune;
    struct wg_option_list policies;
    const char *batcher;
    const char *drop;
    const char *clocks;
    const char *duration;
    unsigned seeds;
    uint64_t seed;
    double believe;
    unsigned queue;
    double step_share, deadline_share, min_share; /* NAN: the policy's own */
    unsigned processes;
    bool json;
    const char *csv;
    const char *html;
};

/* "0.7", "0.7s", "700ms" as seconds within min_s (excluded, if it is 0) .. max_s. */
enum wg_code wg__parse_serving_seconds(const char *option, const char *text, double min_s,
                                       double max_s, double *out, struct wg_error *err);

/* --finetune; false in `has_job_out` for "off". */
enum wg_code wg__parse_serving_job(const char *text, bool *has_job_out, struct wg_finetune_job *out,
                                   struct wg_error *err);

/* `profile` with all times multiplied by `factor`. */
void wg__serving_believe(const struct wg_serving_profile *profile, double factor,
                         struct wg_serving_profile *out);

/* The study, all checked, traces opened once. `believed` is filled where --believe asks for it;
 * the request points to it, to `profile` and into `args`. WG_EINVAL: one line that names the option
 * and what is accepted; of a trace: its codes. */
enum wg_code wg__serving_request_make(const struct wg_serving_args *args,
                                      const struct wg_serving_profile *profile,
                                      struct wg_serving_profile *believed,
                                      struct wg_serving_study_request *out, struct wg_error *err);

#endif
