/* SPDX-License-Identifier: MIT
 *
 * Profiles kept in the store; see train_cache.h.
 */
#include "cli/train_cache.h"

#include <limits.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "live/profile_cache.h"

static const double patience_s = 2; /* for a store that others keep locked */

static void write_owner(const struct wg_train_cache_opts *opts, struct wg_buffer *out)
{
    char folder[PATH_MAX];
    if (opts->name != NULL) {
        wg__buffer_printf(out, "name %s", opts->name);
        return;
    }
    wg__buffer_printf(out, "command in %s:",
                      getcwd(folder, sizeof folder) != NULL ? folder : "a folder without a name");
    for (char *const *word = opts->words; *word != NULL; word++)
        wg__buffer_printf(out, " %s", *word);
}

static enum wg_code open_store(const struct wg_train_cache_opts *opts, enum wg_knob knob,
                               bool reads_only, struct wg_buffer *owner,
                               struct wg_store_profile_key *key, struct wg_store **out,
                               struct wg_error *err)
{
    wg__buffer_init(owner);
    write_owner(opts, owner);
    if (owner->failed)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    *key = (struct wg_store_profile_key){.owner = owner->data,
                                         .gpu_model = opts->gpu_model,
                                         .gpu_count = (unsigned)opts->gpu_count,
                                         .knob = wg_knob_key(knob),
                                         .batch_size = opts->batch_size};
    return wg__store_open(out,
                          &(struct wg_store_opts){.path = opts->store,
                                                  .patience_s = patience_s,
                                                  .reads_only = reads_only},
                          err);
}

enum wg_code wg__train_cache_get(const struct wg_train_cache_opts *opts, enum wg_knob knob,
                                 struct wg_train_point *out, size_t *count_out,
                                 struct wg_error *err)
{
    struct wg_buffer owner;
    struct wg_store_profile_key key;
    struct wg_store *store = NULL;
    double when_s = 0;
    *count_out = 0;
    enum wg_code code = open_store(opts, knob, true, &owner, &key, &store, err);
    if (code == WG_OK)
        code = wg__store_profile_get(store, &key, out, count_out, &when_s, err);
    else if (code == WG_ENOENT) /* nobody has measured anything yet */
        code = WG_OK;
    wg__store_close(store);
    wg__buffer_fini(&owner);
    return code;
}

enum wg_code wg__train_cache_put(const struct wg_train_cache_opts *opts,
                                 const struct wg_train_stage *stage, struct wg_error *err)
{
    if (stage->best >= stage->settings.count || stage->point_count == 0)
        return WG_OK;
    struct wg_buffer owner;
    struct wg_store_profile_key key;
    struct wg_store *store = NULL;
    enum wg_code code = open_store(opts, stage->settings.knob, false, &owner, &key, &store, err);
    if (code == WG_OK)
        code = wg__store_profile_put(store, &key, wg__clock_wall_s(), stage->points,
                                     stage->point_count, err);
    wg__store_close(store);
    wg__buffer_fini(&owner);
    return code;
}
