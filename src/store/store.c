/* SPDX-License-Identifier: MIT
 *
 * Opening a store, whatever holds it; see store.h.
 */
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#include "base/state_dir.h"

static const double default_patience_s = 10;

const char *wg__run_state_name(enum wg_run_state state)
{
    static const char *const names[WG_RUN_STATE_COUNT] = {
        [WG_RUN_OPEN] = "open",       [WG_RUN_REACHED] = "reached", [WG_RUN_STOPPED] = "stopped",
        [WG_RUN_FAILED] = "failed",   [WG_RUN_CRASHED] = "crashed", [WG_RUN_RETURNED] = "returned",
        [WG_RUN_EXPIRED] = "expired",
    };
    return (unsigned)state < WG_RUN_STATE_COUNT ? names[state] : NULL;
}

/* The place of a store that nobody named. */
static enum wg_code usual_path(char *out, size_t size, bool makes_folder, struct wg_error *err)
{
    static const char name[] = "/jobs.db";
    enum wg_code code = wg__state_dir(out, size - sizeof name, err);
    if (code == WG_OK && makes_folder)
        code = wg__state_dir_make(out, err);
    if (code != WG_OK)
        return code;
    memcpy(out + strlen(out), name, sizeof name);
    return WG_OK;
}

enum wg_code wg__store_open(struct wg_store **out, const struct wg_store_opts *opts,
                            struct wg_error *err)
{
    struct wg_store_opts filled = *opts;
    char path[WG_STATE_DIR_MAX];
    if (filled.path == NULL) {
        const enum wg_code code =
            usual_path(path, sizeof path, !filled.must_exist && !filled.reads_only, err);
        if (code != WG_OK)
            return code;
        filled.path = path;
    }
    if (!(filled.patience_s > 0))
        filled.patience_s = default_patience_s;
    return wg__store_open_sqlite(out, &filled, err);
}

void wg__store_close(struct wg_store *store)
{
    if (store != NULL)
        store->ops->close(store);
}
