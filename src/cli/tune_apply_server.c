/* SPDX-License-Identifier: MIT
 *
 * A served model while a command runs; see tune_apply_server.h.
 */
#include "cli/tune_apply_server.h"

#include <stdio.h>

#include "base/buffer.h"
#include "live/server_config.h"
#include "live/workload_server.h"

bool wg__tune_server_has(const struct wg_tune_applied *applied, size_t at)
{
    return applied->server.url[0] != '\0' && applied->knobs[at].path[0] != '\0' &&
           wg__server_place(applied->knobs[at].path) == WG_SERVER_PLACE_CONFIG;
}

static const char *given(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

/* "max_batch_size 4, instance_group[0].count 2" */
static void list_places(const struct wg_tune_applied *applied, struct wg_buffer *out)
{
    bool is_first = true;
    for (size_t i = 0; i < applied->count; i++) {
        if (!wg__tune_server_has(applied, i))
            continue;
        wg__buffer_printf(out, "%s%s ", is_first ? "" : ", ", applied->knobs[i].path);
        if (applied->knobs[i].label[0] != '\0')
            wg__buffer_puts(out, applied->knobs[i].label);
        else
            wg__buffer_printf(out, "%.12g", applied->knobs[i].value * applied->knobs[i].scale);
        is_first = false;
    }
}

static void tell(const struct wg_tune_applied *applied, bool is_held)
{
    struct wg_buffer places;
    wg__buffer_init(&places);
    list_places(applied, &places);
    const char *text = places.failed || places.data == NULL ? "" : places.data;
    if (is_held)
        (void)fprintf(stderr, "wattgov tune apply: model %s at %s is loaded with %s\n",
                      applied->server.model, applied->server.url, text);
    else
        (void)fprintf(stderr,
                      "wattgov tune apply: no server answers at %s: not set: %s of model %s; what "
                      "starts it must set that\n",
                      applied->server.url, text, applied->server.model);
    wg__buffer_fini(&places);
}

/* The knobs that it gets, with their places. */
static size_t collect(const struct wg_tune_applied *applied, struct wg_workload_setting *settings,
                      struct wg_server_knob_path *paths)
{
    size_t count = 0;
    for (size_t i = 0; i < applied->count; i++) {
        if (!wg__tune_server_has(applied, i))
            continue;
        settings[count] = (struct wg_workload_setting){.name = applied->knobs[i].name,
                                                       .value = applied->knobs[i].value,
                                                       .label = given(applied->knobs[i].label)};
        paths[count++] = (struct wg_server_knob_path){.knob = applied->knobs[i].name,
                                                      .path = applied->knobs[i].path,
                                                      .scale = applied->knobs[i].scale};
    }
    return count;
}

enum wg_code wg__tune_server_hold(struct wg_tune_server_hold *hold,
                                  const struct wg_tune_applied *applied, struct wg_signals *signals,
                                  bool is_quiet, struct wg_error *err)
{
    struct wg_workload_setting settings[WG_TUNING_KNOBS_MAX];
    struct wg_server_knob_path paths[WG_TUNING_KNOBS_MAX];
    const struct wg_tune_applied_server *server = &applied->server;
    const size_t count = collect(applied, settings, paths);
    if (count == 0)
        return WG_OK;
    const struct wg_workload_server_opts opts = {.protocol = server->protocol,
                                                 .url = server->url,
                                                 .control_url = given(server->control_url),
                                                 .model = given(server->model),
                                                 .model_version = given(server->model_version),
                                                 .paths = paths,
                                                 .path_count = count,
                                                 .config_file = given(server->model_config),
                                                 .signals = signals,
                                                 .is_only_set = true};
    enum wg_code code = wg__workload_server_open(&hold->workload, &opts, err);
    if (code == WG_EUNREACHABLE) {
        tell(applied, false);
        return WG_OK;
    }
    if (code != WG_OK)
        return code;
    enum wg_workload_outcome outcome = WG_WORKLOAD_OK;
    char why[WG_WORKLOAD_WHY_SIZE];
    code = hold->workload->ops->set(hold->workload, settings, count, &outcome, why, err);
    if (code == WG_OK && outcome != WG_WORKLOAD_OK)
        code = wg__fail(err, WG_ESTATE, "%.100s: %s", server->url, why);
    if (code == WG_OK && !is_quiet)
        tell(applied, true);
    return code;
}

bool wg__tune_server_release(struct wg_tune_server_hold *hold, bool is_interrupted, bool is_quiet)
{
    if (hold->workload == NULL)
        return true;
    char note[WG_WORKLOAD_WHY_SIZE];
    struct wg_error err;
    hold->workload->is_interrupted = is_interrupted;
    const enum wg_code code = hold->workload->ops->give_back(hold->workload, note, &err);
    if (code != WG_OK || (!is_quiet && note[0] != '\0'))
        (void)fprintf(stderr, "wattgov tune apply: %s\n", code != WG_OK ? err.text : note);
    hold->workload->ops->close(hold->workload);
    hold->workload = NULL;
    return code == WG_OK;
}
