/* SPDX-License-Identifier: MIT
 *
 * What train and job run share; see train_args.h.
 *
 * Threads: the main thread.
 */
#include "cli/train_args.h"

#include <stdbool.h>
#include <string.h>

#include "cli/duration.h"
#include "cli/options.h"

/* "warmup=5s,measure=10s", in any order, each once at most. */
static enum wg_code parse_profile(const char *text, double *warmup_s, double *measure_s,
                                  struct wg_error *err)
{
    const char *const keys[] = {"warmup=", "measure="};
    double *const values[] = {warmup_s, measure_s};
    const char *at = text;
    while (at != NULL && *at != '\0') {
        char part[48];
        const size_t length = strcspn(at, ",");
        bool is_known = false;
        if (length >= sizeof part)
            break;
        memcpy(part, at, length);
        part[length] = '\0';
        for (size_t i = 0; i < 2; i++) {
            const size_t skip = strlen(keys[i]);
            if (strncmp(part, keys[i], skip) != 0)
                continue;
            is_known =
                wg__parse_duration(part + skip, values[i]) && *values[i] > 0 && *values[i] <= 86400;
        }
        if (!is_known)
            break;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    if (at != NULL)
        return wg__option_reject(err, "profile", text, "of the form warmup=5s,measure=10s");
    return WG_OK;
}

enum wg_code wg__train_args_take(const struct wg_train_args *args, struct wg_train_request *out,
                                 struct wg_error *err)
{
    out->observe = args->observe;
    out->progress.step_regex = args->step_regex;
    out->progress.epoch_regex = args->epoch_regex;
    out->progress.metric_regex = args->metric_regex;
    return args->profile == NULL
               ? WG_OK
               : parse_profile(args->profile, &out->warmup_s, &out->measure_s, err);
}

enum wg_code wg__train_gpus_find(const struct wg_machine *machine, struct wg_train_gpus *out,
                                 struct wg_error *err)
{
    const size_t count = wg_machine_device_count(machine);
    *out = (struct wg_train_gpus){0};
    for (size_t i = 0; i < count; i++) {
        const struct wg_device_info *info = wg_device_get_info(wg_machine_device(machine, i));
        if (info->kind != WG_DEVICE_GPU)
            continue;
        if (out->count == WG_TRAIN_GPUS_MAX)
            return wg__fail(err, WG_EINVAL, "more than %d GPUs: choose some with --gpu",
                            WG_TRAIN_GPUS_MAX);
        out->infos[out->count] = info;
        out->positions[out->count++] = i;
    }
    return WG_OK;
}
