/* SPDX-License-Identifier: MIT
 *
 * How long a profile's measurements take, as the option --profile of 'train' and 'job run' has it:
 * "warmup=5s,measure=10s". What is not given is found out while the job runs.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_CLI_TRAIN_PROFILE_H
#define WG_CLI_TRAIN_PROFILE_H

#include "wattgov/error.h"

/* Either may be left out, and stays as it is; each is above 0 and at most a day. */
enum wg_code wg__train_profile_parse(const char *text, double *warmup_s, double *measure_s,
                                     struct wg_error *err);

#endif
