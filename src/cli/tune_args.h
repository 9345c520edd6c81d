/* SPDX-License-Identifier: MIT
 *
 * The options of `wattgov tune`, on the command line or in a file, made into a request.
 *
 * Owns: see tune_setup.    Threads: the main thread.
 */
#ifndef WG_CLI_TUNE_ARGS_H
#define WG_CLI_TUNE_ARGS_H

#include "cli/device_args.h"
#include "cli/option_file.h"
#include "cli/options.h"
#include "cli/tune_server_args.h"
#include "live/tune_runner.h"

struct wg_tune_args {
    struct wg_device_args devices;
    struct wg_tune_server_args server;
    const char *config;
    struct wg_option_list knobs, forbids, limits;
    const char *objective, *slo, *arrivals, *energy, *policy;
    unsigned load_requests, requests, max_trials;
    double idle_power_w, max_time_s, stop_share, precision;
    uint64_t seed;
    bool no_validate, no_warm_up, dry_run, explain, json, resume, quiet, verbose;
    double min_window_s, max_window_s, hung_s, settle_s, cool_s, idle_s;
    unsigned min_windows, max_windows;
    const char *state, *output, *html;
    struct wg_option_command command;
};

extern const struct wg_option_set wg__tune_options;

/* Everything that a run needs, made from the options. */
struct wg_tune_setup {
    const struct wg_tune_args *args;
    struct wg_machine *machine;
    struct wg_tune_devices devices;
    struct wg_tune_knobs knobs;
    struct wg_tune_goal goal;
    struct wg_tune_energy energy;
    struct wg_workload *workload;
    char slo[WG_TUNE_TERM_SIZE];
    char holder[128];
    char state[4096];
    char *workload_text; /* the command, or the server */
    struct wg_tune_server_opts server;
    char *server_command; /* for /bin/sh -c; NULL: none */
    char *identity;       /* JSON */
    struct wg_tune_request request;
};

void wg__tune_args_init(struct wg_tune_args *args);

/* Command line and file; false: the command ends with `*status_out`, everything being said. */
bool wg__tune_args_read(int argc, char *argv[], struct wg_tune_args *args,
                        struct wg_option_file *file, int *status_out);

/* Opens what is needed. Signals must be blocked. Free it after a failure too. */
enum wg_code wg__tune_setup_open(struct wg_tune_setup *setup, const struct wg_tune_args *args,
                                 struct wg_signals *signals, struct wg_error *err);
void wg__tune_setup_close(struct wg_tune_setup *setup);

#endif
