/* SPDX-License-Identifier: MIT
 *
 * What a served model has of its own; see server_original.h.
 */
#include "live/server_original.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

/* -- The claim -------------------------------------------------------------------------------- */

static enum wg_code open_lock(struct wg_server_claim *claim, const char *server, const char *model,
                              struct wg_error *err)
{
    char folder[WG_STATE_DIR_MAX], lock[sizeof claim->path];
    enum wg_code code = wg__state_dir(folder, sizeof folder - sizeof "/servers", err);
    if (code == WG_OK) {
        memcpy(folder + strlen(folder), "/servers", sizeof "/servers");
        code = wg__state_dir_make(folder, err);
    }
    if (code != WG_OK)
        return code;
    const uint64_t hash =
        wg__hash_text(wg__hash_text(wg__hash_text(WG_HASH_START, server), "\n"), model);
    (void)snprintf(claim->path, sizeof claim->path, "%s/%016llx.json", folder,
                   (unsigned long long)hash);
    (void)snprintf(lock, sizeof lock, "%s/%016llx.lock", folder, (unsigned long long)hash);
    claim->fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return claim->fd >= 0 ? WG_OK : wg__fail_errno(err, errno, "opening %s", lock);
}

enum wg_code wg__server_claim(struct wg_server_claim *claim, const char *server, const char *model,
                              struct wg_error *err)
{
    struct wg_error cause = {.code = WG_OK};
    claim->fd = -1;
    const enum wg_code code = open_lock(claim, server, model, &cause);
    if (code != WG_OK)
        return wg__fail(err, code,
                        "%.150s; a model is not set before what it has is kept there: set "
                        "WATTGOV_STATE_DIR to a folder that can be written",
                        cause.text);
    long holder = 0;
    const int failed = wg__file_lock(claim->fd, &holder);
    if (failed == 0)
        return WG_OK;
    wg__server_unclaim(claim);
    if (failed != EBUSY)
        return wg__fail_errno(err, failed, "locking %.60s at %.80s", model, server);
    char who[32] = "";
    if (holder > 0)
        (void)snprintf(who, sizeof who, " (pid %ld)", holder);
    return wg__fail(err, WG_EBUSY, "model %.60s at %.80s is set by another wattgov%s", model,
                    server, who);
}

void wg__server_unclaim(struct wg_server_claim *claim)
{
    if (claim->fd >= 0)
        (void)close(claim->fd);
    claim->fd = -1;
}

/* -- The file --------------------------------------------------------------------------------- */

enum wg_code wg__server_original_write(const struct wg_server_claim *claim, const char *server,
                                       const char *model, const char *config, struct wg_error *err)
{
    struct wg_buffer text;
    struct wg_json json;
    wg__buffer_init(&text);
    wg__json_init(&json, &text);
    wg__json_object(&json);
    wg__json_member_string(&json, "server", server);
    wg__json_member_string(&json, "model", model);
    if (config != NULL)
        wg__json_member_string(&json, "config", config);
    wg__json_close(&json);
    const enum wg_code code = text.failed
                                  ? wg__fail(err, WG_ENOMEM, "%s: out of memory", claim->path)
                                  : wg__file_write(claim->path, text.data, text.length, err);
    wg__buffer_fini(&text);
    return code;
}

static bool is_text(const json_t *root, const char *key, const char *expected)
{
    const char *text = json_string_value(json_object_get(root, key));
    return text != NULL && strcmp(text, expected) == 0;
}

enum wg_code wg__server_original_read(const struct wg_server_claim *claim, const char *server,
                                      const char *model, bool *is_there, char **config_out,
                                      struct wg_error *err)
{
    *config_out = NULL;
    *is_there = access(claim->path, F_OK) == 0;
    if (!*is_there)
        return WG_OK;
    json_error_t cause;
    json_t *root = json_load_file(claim->path, 0, &cause);
    if (root == NULL)
        return wg__fail(err, WG_EDATA,
                        "%s:%d: a model's configuration is expected, as an earlier run kept it: %s",
                        claim->path, cause.line, cause.text);
    const char *config = json_string_value(json_object_get(root, "config"));
    enum wg_code code = WG_OK;
    *is_there = is_text(root, "server", server) && is_text(root, "model", model);
    if (*is_there && config != NULL) {
        *config_out = wg__strdup(config);
        if (*config_out == NULL)
            code = wg__fail(err, WG_ENOMEM, "%s: out of memory", claim->path);
    }
    json_decref(root);
    return code;
}

void wg__server_original_remove(const struct wg_server_claim *claim)
{
    (void)unlink(claim->path);
}
