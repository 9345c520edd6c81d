/* SPDX-License-Identifier: MIT
 *
 * What a served model has of its own: kept before we set it, given back at the end.
 *
 *     claim --> learn it --> keep it in a file --> set, measure, set ... --> give back
 *                                                       | killed                 | cannot be
 *                                                       +--> the next to claim it gives it back
 *
 * Owns: nothing of its own.    Threads: one at a time.
 */
#include <poll.h>
#include <stdio.h>

#include "base/alloc.h"
#include "live/server_config.h"
#include "live/server_parts.h"

static const char *control_url(const struct wg_workload_server *server)
{
    return server->opts.control_url != NULL ? server->opts.control_url : server->opts.url;
}

enum wg_code wg__server_claim_model(struct wg_workload_server *server, struct wg_error *err)
{
    if (server->claim.fd >= 0 || server->has_process)
        return WG_OK;
    enum wg_code code = wg__server_claim(&server->claim, control_url(server), server->model, err);
    if (code != WG_OK)
        return code;
    code = wg__server_original_read(&server->claim, control_url(server), server->model,
                                    &server->was_left, &server->original, err);
    server->is_changed = server->was_left;
    if (code == WG_OK && server->original != NULL && server->base_config == NULL) {
        server->base_config = wg__strdup(server->original);
        code = server->base_config != NULL
                   ? WG_OK
                   : wg__fail(err, WG_ENOMEM, "a configuration of the server: out of memory");
    }
    if (code != WG_OK)
        wg__server_unclaim(&server->claim);
    return code;
}

enum wg_code wg__server_keep_original(struct wg_workload_server *server, struct wg_error *err)
{
    if (server->is_changed || server->has_process)
        return WG_OK;
    enum wg_code code = wg__server_claim_model(server, err);
    if (code != WG_OK)
        return code;
    if (server->original == NULL)
        code = wg__triton_config(server->control, &server->original, err);
    if (code == WG_OK || code == WG_EUNSUPPORTED || code == WG_ENOENT)
        code = wg__server_original_write(&server->claim, control_url(server), server->model,
                                         server->original, err);
    server->is_changed = code == WG_OK;
    return code;
}

void wg__server_adopt(struct wg_workload *workload)
{
    struct wg_workload_server *server = wg__server_of(workload);
    if (!server->is_changed)
        return;
    server->is_changed = server->was_left = false;
    wg__server_original_remove(&server->claim);
    wg__server_unclaim(&server->claim);
}

/* Signals that came while it is given back what it had. */
struct patience {
    struct wg_signals *signals;
    unsigned left;
};

static bool is_over(void *context)
{
    struct patience *patience = context;
    bool to_group = false;
    int signal;
    while (patience->left > 0 && (signal = wg__signals_wait(patience->signals, 0, &to_group)) != 0)
        patience->left -= wg__signal_ends(signal);
    return patience->left == 0;
}

/* A server that is busy, or just starting, is asked again for a moment. */
static enum wg_code load_patiently(struct wg_workload_server *server, const char *config,
                                   struct wg_error *err)
{
    static const int pauses_ms[] = {100, 200, 400, 800};
    enum wg_code code = wg__server_load(server, config, err);
    for (size_t i = 0; i < sizeof pauses_ms / sizeof pauses_ms[0]; i++) {
        if (code != WG_ESTATE && code != WG_EIO && code != WG_EUNREACHABLE)
            break;
        (void)poll(NULL, 0, pauses_ms[i]);
        code = wg__server_load(server, config, err);
    }
    return code;
}

/* Whether somebody else has set the model since, or the server was started anew: what is to be held
 * is not to be taken back then. A tuning sets it again and again, so nobody else's would last. */
static bool is_anothers(struct wg_workload_server *server)
{
    struct wg_error ignored;
    char *present = NULL;
    const bool is_it = server->opts.is_only_set && server->held != NULL &&
                       wg__triton_config(server->control, &present, &ignored) == WG_OK &&
                       !wg__server_config_is_same(present, server->held);
    wg__free(present);
    return is_it;
}

/* Waits no longer than until the signal that gives it up. */
static enum wg_code give_back(struct wg_workload_server *server, bool *is_left,
                              struct wg_error *err)
{
    struct patience patience = {server->opts.signals, server->base.is_interrupted ? 1 : 2};
    const struct wg_http_stop stop = server->stop;
    if (server->opts.signals != NULL)
        server->stop = (struct wg_http_stop){.should_stop = is_over, .context = &patience};
    *is_left = is_anothers(server);
    const enum wg_code code = *is_left ? WG_OK : load_patiently(server, server->original, err);
    server->stop = stop;
    return code;
}

enum wg_code wg__server_give_back(struct wg_workload *workload, char note[WG_WORKLOAD_WHY_SIZE],
                                  struct wg_error *err)
{
    struct wg_workload_server *server = wg__server_of(workload);
    note[0] = '\0';
    if (!server->is_changed)
        return WG_OK;
    bool is_left = false;
    struct wg_error cause = {.code = WG_OK};
    const enum wg_code code = give_back(server, &is_left, &cause);
    wg__server_forget(server);
    if (code != WG_OK)
        return wg__fail(err, code,
                        "%.40s at %.50s does not have its own configuration back (the next tune or "
                        "tune apply of it gives it back): %.70s",
                        server->model, server->opts.url, cause.text);
    if (is_left)
        (void)snprintf(note, WG_WORKLOAD_WHY_SIZE,
                       "%.50s at %.50s was loaded with something else meanwhile: that stays",
                       server->model, server->opts.url);
    else
        (void)snprintf(note, WG_WORKLOAD_WHY_SIZE, "%.50s at %.50s has the configuration %s again",
                       server->model, server->opts.url,
                       server->original == NULL ? "of its repository"
                       : server->was_left       ? "that it had before an earlier run"
                                                : "that it had before");
    wg__server_adopt(workload);
    return WG_OK;
}
